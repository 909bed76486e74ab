//! Folders that differ from the tiny model in one respect: what loads, with what result, and what is refused by which
//! words.

use serde_json::{Value, json};
use tempfile::TempDir;

use std::fs;

use super::*;
use crate::{DeviceChoice, Embedder, Kind, LoadOptions};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny");
const FILES: [&str; 8] = [
    "modules.json",
    "config.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "model.safetensors",
];

/// A copy of the tiny model, to be altered.
struct Copy(TempDir);

impl Copy {
    fn new() -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        fs::create_dir(copy.path("1_Pooling")).unwrap();
        for name in FILES {
            fs::copy(Path::new(TINY).join(name), copy.path(name)).unwrap();
        }
        copy
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(self, name: &str, json: &Value) -> Self {
        fs::write(self.path(name), json.to_string()).unwrap();
        self
    }

    /// Sets one value of a JSON file.
    fn set(self, name: &str, key: &str, value: impl Into<Value>) -> Self {
        let mut json: Value = serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap();
        json[key] = value.into();
        self.write(name, &json)
    }

    fn remove(self, name: &str) -> Self {
        fs::remove_file(self.path(name)).unwrap();
        self
    }

    fn load(&self) -> Result<Embedder> {
        Embedder::load(self.0.path(), &LoadOptions { device: DeviceChoice::Cpu, threads: 1, ..LoadOptions::default() })
    }

    #[track_caller]
    fn refused(&self, words: &[&str]) {
        let message = self.load().map(|_| ()).unwrap_err().to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message:?} lacks one of {words:?}");
    }
}

fn embed(embedder: &Embedder) -> Vec<f32> {
    embedder.embed(&["the first city".to_owned()], Kind::Document).unwrap().remove(0).vector
}

/// The tiny model's files, as sentence-transformers wrote them before version 5.4.
fn old_schema() -> Copy {
    let module = |idx: usize, path: &str, name: &str| json!({"idx": idx, "name": idx.to_string(), "path": path, "type": format!("sentence_transformers.models.{name}")});
    let pooling = json!({
        "word_embedding_dimension": 32, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true,
        "pooling_mode_max_tokens": false, "pooling_mode_mean_sqrt_len_tokens": false,
    });
    Copy::new()
        .write(
            "modules.json",
            &json!([
                module(0, "", "Transformer"),
                module(1, "1_Pooling", "Pooling"),
                module(2, "2_Normalize", "Normalize")
            ]),
        )
        .write("1_Pooling/config.json", &pooling)
        .write("sentence_bert_config.json", &json!({"max_seq_length": 128, "do_lower_case": false}))
        .write("config_sentence_transformers.json", &json!({"__version__": {"sentence_transformers": "2.0.0"}}))
        .remove("tokenizer_config.json")
}

#[test]
fn both_schemas_are_the_same_model() {
    let (old, new) = (old_schema().load().unwrap(), Copy::new().load().unwrap());
    assert_eq!(old.fingerprint(), new.fingerprint());
    assert_eq!(embed(&old), embed(&new));
}

#[test]
fn the_encoder_may_lie_in_a_folder_of_its_own() {
    let copy = old_schema();
    let modules =
        fs::read_to_string(copy.path("modules.json")).unwrap().replacen(r#""path":"""#, r#""path":"0_Transformer""#, 1);
    fs::write(copy.path("modules.json"), modules).unwrap();
    fs::create_dir(copy.path("0_Transformer")).unwrap();
    for name in ["config.json", "sentence_bert_config.json", "tokenizer.json", "model.safetensors"] {
        fs::rename(copy.path(name), copy.path("0_Transformer").join(name)).unwrap();
    }
    assert_eq!(copy.load().unwrap().fingerprint(), Copy::new().load().unwrap().fingerprint());
}

#[test]
fn every_setting_that_shapes_vectors_changes_the_fingerprint() {
    let mut fingerprints = vec![
        Copy::new().load(),
        Copy::new().set("1_Pooling/config.json", "pooling_mode", "cls").load(),
        Copy::new().set("1_Pooling/config.json", "pooling_mode", "max").load(),
        Copy::new().set("tokenizer_config.json", "model_max_length", 64).load(),
        Copy::new().set("config_sentence_transformers.json", "prompts", json!({"query": "q: "})).load(),
        Copy::new().set("config_sentence_transformers.json", "prompts", json!({"document": "q: "})).load(),
        Copy::new().set("config.json", "layer_norm_eps", 1e-5).load(),
        Copy::new().set("tokenizer.json", "decoder", Value::Null).load(),
    ]
    .into_iter()
    .map(|embedder| embedder.unwrap().fingerprint().to_owned())
    .collect::<Vec<_>>();
    let n = fingerprints.len();
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), n);
}

#[test]
fn other_weights_change_the_fingerprint() {
    let copy = Copy::new();
    let mut weights = fs::read(copy.path("model.safetensors")).unwrap();
    let last = weights.len() - 1;
    weights[last - 3] ^= 1;
    fs::write(copy.path("model.safetensors"), weights).unwrap();
    assert_ne!(copy.load().unwrap().fingerprint(), Copy::new().load().unwrap().fingerprint());
}

#[test]
fn prompts_are_part_of_the_text() {
    let prompts = json!({"query": "what is ", "passage": "the ", "corpus": "unused "});
    let prompted = Copy::new().set("config_sentence_transformers.json", "prompts", prompts).load().unwrap();
    assert_eq!((prompted.prompt(Kind::Query), prompted.prompt(Kind::Document)), ("what is ", "the "));
    assert_eq!(prompted.bytes_embedded("river", Kind::Query), "what is river");
    let plain = Copy::new().load().unwrap();
    let vector = |embedder: &Embedder, text: &str, kind| embedder.embed(&[text.to_owned()], kind).unwrap().remove(0);
    assert_eq!(vector(&prompted, "river", Kind::Query), vector(&plain, "what is river", Kind::Document));
    assert_eq!(vector(&prompted, "river", Kind::Document), vector(&plain, "the river", Kind::Query));
}

#[test]
fn a_prompt_of_a_task_is_chosen_by_its_name_and_leaves_documents_alone() {
    let prompts = json!({"query": "what is ", "code": "the code of ", "empty": "", "none": null});
    let load = || Copy::new().set("config_sentence_transformers.json", "prompts", prompts.clone()).load().unwrap();
    let (plain, mut chosen) = (load(), load());
    chosen.choose_query_prompt("code").unwrap();
    assert_eq!((chosen.prompt(Kind::Query), chosen.prompt(Kind::Document)), ("the code of ", ""));
    assert_eq!(chosen.fingerprint(), plain.fingerprint());
    let vector = |embedder: &Embedder, text: &str, kind| embedder.embed(&[text.to_owned()], kind).unwrap().remove(0);
    let document = |embedder: &Embedder, text: &str| vector(embedder, text, Kind::Document);
    assert_eq!(vector(&chosen, "river", Kind::Query), document(&plain, "the code of river"));
    assert_eq!(document(&chosen, "river"), document(&plain, "river"));
    chosen.choose_query_prompt("empty").unwrap();
    assert_eq!(vector(&chosen, "river", Kind::Query), document(&plain, "river"));
    for unknown in ["none", "cod", ""] {
        let error = chosen.choose_query_prompt(unknown).unwrap_err().to_string();
        assert!(error.contains("is none of the model's: code, empty, query"), "{error}");
    }
    let mut without = Copy::new().remove("config_sentence_transformers.json").load().unwrap();
    let error = without.choose_query_prompt("query").unwrap_err().to_string();
    assert!(error.contains("names no prompt"), "{error}");
}

#[test]
fn the_window_comes_from_either_schema() {
    #[track_caller]
    fn check(copy: &Copy, max_tokens: usize) {
        assert_eq!(copy.load().unwrap().max_tokens(), max_tokens);
    }
    check(&Copy::new(), 128);
    check(&Copy::new().set("tokenizer_config.json", "model_max_length", 100), 100);
    check(&Copy::new().set("tokenizer_config.json", "model_max_length", 1e30), 128);
    check(&Copy::new().remove("tokenizer_config.json").remove("sentence_bert_config.json"), 128);
    check(&Copy::new().set("sentence_bert_config.json", "max_seq_length", 50), 50);
    Copy::new().set("sentence_bert_config.json", "max_seq_length", 129).refused(&["129", "128 positions"]);
    Copy::new().set("sentence_bert_config.json", "max_seq_length", 2).refused(&["no room for text"]);
}

#[test]
fn what_is_not_computed_is_refused_by_name() {
    Copy::new().set("config.json", "model_type", "deberta-v2").refused(&[
        "config.json",
        "architecture \"deberta-v2\"",
        "modernbert",
    ]);
    Copy::new().set("config.json", "hidden_act", "quick_gelu").refused(&["activation \"quick_gelu\"", "gelu"]);
    Copy::new().set("config.json", "position_embedding_type", "relative_key").refused(&["relative_key", "absolute"]);
    Copy::new().set("config.json", "is_decoder", true).refused(&["decoder"]);
    let pooling = |mode: Value| Copy::new().set("1_Pooling/config.json", "pooling_mode", mode);
    pooling(json!("median")).refused(&["pooling \"median\"", "cls, max, mean, mean_sqrt_len_tokens"]);
    pooling(json!(["mean", "median"])).refused(&["pooling \"mean + median\""]);
    pooling(json!([])).refused(&["pooling \"\""]);
    Copy::new().set("sentence_bert_config.json", "transformer_task", "fill-mask").refused(&["fill-mask"]);
    let text = json!({"text": {"method": "get_text_features", "method_output_name": "pooler_output"}});
    Copy::new().set("sentence_bert_config.json", "modality_config", text).refused(&["get_text_features", "forward"]);
    let processing = json!({"text": {"max_length": 5}});
    Copy::new().set("sentence_bert_config.json", "processing_kwargs", processing).refused(&["processing_kwargs"]);
    Copy::new().set("sentence_bert_config.json", "query_length", 32).refused(&["query_length = 32"]);
    Copy::new().set("sentence_bert_config.json", "model_args", json!({"trust_remote_code": true})).load().unwrap();
    Copy::new().set("tokenizer_config.json", "truncation_side", "left").refused(&["truncation side \"left\""]);
    let old = old_schema().set("1_Pooling/config.json", "pooling_mode_attention", true);
    old.refused(&["pooling \"mean + attention\""]);
}

#[test]
fn modules_are_refused_by_name() {
    let class = |class: &str| json!({"idx": 2, "name": "2", "path": "2", "type": class});
    #[track_caller]
    fn check(module: Value, words: &[&str]) {
        with_modules(&[module]).refused(words);
    }
    check(class("sentence_transformers.models.LSTM"), &["modules.json", "module \"LSTM\"", "Dense", "Normalize"]);
    check(class("sentence_transformers.sentence_transformer.modules.cnn.CNN"), &["module \"CNN\""]);
    check(class("custom_st.Transformer"), &["module \"custom_st.Transformer\""]);
    check(class("sentence_transformers.models.Pooling"), &["order of modules", "Transformer, Pooling, Pooling"]);
    check(class("sentence_transformers.models.Dense"), &["2/config.json", "not found", "module"]);
    let mut modules: Vec<Value> = serde_json::from_slice(&fs::read(Copy::new().path("modules.json")).unwrap()).unwrap();
    modules.remove(1);
    Copy::new().write("modules.json", &json!(modules)).refused(&["order of modules", "Transformer, Normalize"]);
}

/// The tiny model with other modules behind its pooling.
fn with_modules(following: &[Value]) -> Copy {
    let copy = Copy::new();
    let mut modules: Vec<Value> = serde_json::from_slice(&fs::read(copy.path("modules.json")).unwrap()).unwrap();
    modules.truncate(2);
    modules.extend_from_slice(following);
    copy.write("modules.json", &json!(modules))
}

/// The tiny model with a dense module from 32 to 2 dimensions: the sums of the first and of the second half of the
/// pooled row.
fn with_dense(config: Value) -> Copy {
    let copy = with_modules(&[json!({"idx": 2, "path": "2_Dense", "type": "sentence_transformers.models.Dense"})]);
    fs::create_dir(copy.path("2_Dense")).unwrap();
    let weight: Vec<f32> = (0..64).map(|i| if (i < 32) == (i % 32 < 16) { 1.0 } else { 0.0 }).collect();
    let tensor =
        |values: Vec<f32>, shape: &[usize]| candle_core::Tensor::from_vec(values, shape, &candle_core::Device::Cpu);
    let mut tensors = std::collections::HashMap::from([("linear.weight", tensor(weight, &[2, 32]).unwrap())]);
    if config["bias"] != false {
        tensors.insert("linear.bias", tensor(vec![0.0, 0.0], &[2]).unwrap());
    }
    candle_core::safetensors::save(&tensors, copy.path("2_Dense/model.safetensors")).unwrap();
    copy.write("2_Dense/config.json", &config)
}

fn dense() -> Value {
    json!({
        "in_features": 32, "out_features": 2, "bias": true,
        "activation_function": "torch.nn.modules.linear.Identity", "module_input_name": "sentence_embedding",
    })
}

fn altered(mut json: Value, key: &str, value: impl Into<Value>) -> Value {
    json[key] = value.into();
    json
}

#[test]
fn a_dense_module_is_computed_as_its_settings_say() {
    let plain = embed(&Copy::new().load().unwrap());
    let halves = [plain[..16].iter().sum::<f32>(), plain[16..].iter().sum::<f32>()];
    let direction = halves[0] / halves[1];
    let vector = embed(&with_dense(dense()).load().unwrap());
    assert_eq!(vector.len(), 2);
    assert!((vector[0] / vector[1] - direction).abs() < 1e-4 * direction.abs());
    assert_eq!(embed(&with_dense(altered(dense(), "bias", false)).load().unwrap()), vector);
    let tanh =
        embed(&with_dense(altered(dense(), "activation_function", "torch.nn.modules.activation.Tanh")).load().unwrap());
    assert_ne!(tanh, vector);
    let mut unset = dense();
    unset.as_object_mut().unwrap().remove("activation_function");
    assert_eq!(embed(&with_dense(unset).load().unwrap()), tanh);
}

#[test]
fn dense_modules_that_do_not_fit_are_refused() {
    let refused = |key: &str, value: Value, words: &[&str]| with_dense(altered(dense(), key, value)).refused(words);
    refused("in_features", json!(31), &["2_Dense/config.json", "takes vectors of 31 dimensions", "have 32"]);
    refused("out_features", json!(3), &["2_Dense/model.safetensors", "\"linear.weight\"", "[2, 32]", "[3, 32]"]);
    refused("out_features", json!(0), &["1 or more"]);
    with_dense(dense()).set("2_Dense/config.json", "bias", false).refused(&["no place for: linear.bias"]);
    refused("use_residual", json!(true), &["no tensor \"residual.weight\""]);
    refused(
        "activation_function",
        json!("torch.nn.modules.activation.Mish"),
        &["activation \"torch.nn.modules.activation.Mish\""],
    );
    refused("activation_function", json!("os.system"), &["\"os.system\""]);
    refused("module_input_name", json!("token_embeddings"), &["\"token_embeddings\"", "sentence_embedding"]);
    refused("dropout_rate", json!(0.5), &["setting \"dropout_rate\""]);
    let pickled = with_dense(dense());
    fs::rename(pickled.path("2_Dense/model.safetensors"), pickled.path("2_Dense/pytorch_model.bin")).unwrap();
    pickled.refused(&["2_Dense/pytorch_model.bin", "pickle", "safe_serialization"]);
}

#[test]
fn what_stands_behind_the_pooling_changes_the_fingerprint_unless_it_changes_no_vector() {
    let fingerprint = |copy: Copy| copy.load().unwrap().fingerprint().to_owned();
    let plain = fingerprint(Copy::new());
    let module = |name: &str| json!({"idx": 2, "path": name, "type": format!("sentence_transformers.models.{name}")});
    assert_eq!(fingerprint(with_modules(&[])), plain);
    assert_eq!(fingerprint(with_modules(&[module("Dropout"), module("Normalize")])), plain);
    let dense_fingerprint = fingerprint(with_dense(dense()));
    assert_ne!(dense_fingerprint, plain);
    let tanh = altered(dense(), "activation_function", "torch.nn.modules.activation.Tanh");
    assert_ne!(fingerprint(with_dense(tanh)), dense_fingerprint);
    let other = with_dense(dense());
    let mut weights = fs::read(other.path("2_Dense/model.safetensors")).unwrap();
    *weights.last_mut().unwrap() ^= 1;
    fs::write(other.path("2_Dense/model.safetensors"), weights).unwrap();
    assert_ne!(fingerprint(other), dense_fingerprint);
}

#[test]
fn vectors_are_cut_as_asked_or_as_the_folder_says() {
    let load = |copy: &Copy, dimensions| {
        Embedder::load(copy.0.path(), &LoadOptions { device: DeviceChoice::Cpu, dimensions, ..LoadOptions::default() })
    };
    let whole = load(&Copy::new(), None).unwrap();
    let cut = load(&Copy::new(), Some(8)).unwrap();
    let (vector, first) = (embed(&cut), embed(&whole)[..8].to_vec());
    let norm: f32 = first.iter().map(|value| value * value).sum::<f32>().sqrt();
    assert!(vector.len() == 8 && vector.iter().zip(&first).all(|(a, b)| (a - b / norm).abs() < 1e-6));
    assert_ne!(cut.fingerprint(), whole.fingerprint());
    assert_eq!(load(&Copy::new(), Some(32)).unwrap().fingerprint(), whole.fingerprint());
    let folder = |cut: usize| Copy::new().set("config_sentence_transformers.json", "truncate_dim", cut);
    assert_eq!(load(&folder(8), None).unwrap().fingerprint(), cut.fingerprint());
    assert_eq!(load(&folder(8), Some(16)).unwrap().dimensions(), 16);
    assert_eq!(load(&folder(99), None).unwrap().dimensions(), 32);
    folder(0).refused(&["truncate_dim is 0"]);
    for asked in [0, 33] {
        let message = load(&Copy::new(), Some(asked)).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(&format!("{asked} dimensions")) && message.contains("1 to 32"), "{message}");
    }
}

#[test]
fn a_missing_file_is_named_with_its_purpose() {
    for (name, purpose) in [
        ("modules.json", "modules"),
        ("config.json", "configuration"),
        ("1_Pooling/config.json", "pooling"),
        ("tokenizer.json", "tokenizer"),
        ("model.safetensors", "weights"),
    ] {
        Copy::new().remove(name).refused(&[name, "not found", purpose]);
    }
    let nowhere = Embedder::load(Path::new("/nowhere"), &LoadOptions::default()).map(|_| ()).unwrap_err();
    assert!(nowhere.to_string().contains("/nowhere/modules.json"));
}

#[test]
fn a_half_downloaded_file_is_refused() {
    for name in FILES {
        let copy = Copy::new();
        let whole = fs::read(copy.path(name)).unwrap();
        for n_bytes in [0, 1, whole.len() / 2, whole.len() - 2] {
            fs::write(copy.path(name), &whole[..n_bytes]).unwrap();
            copy.refused(&[name, "fetch the model again"]);
        }
    }
    let copy = Copy::new();
    fs::write(copy.path("model.safetensors"), "version https://git-lfs.github.com/spec/v1\n").unwrap();
    copy.refused(&["Git LFS pointer"]);
}

#[test]
fn files_that_contradict_each_other_are_refused() {
    Copy::new().set("config.json", "hidden_size", 64).refused(&["32 dimensions", "64"]);
    Copy::new().set("config.json", "num_hidden_layers", 3).refused(&["model.safetensors", "encoder.layer.2"]);
    Copy::new().set("config.json", "intermediate_size", 65).refused(&["intermediate.dense.weight"]);
    Copy::new().set("config.json", "vocab_size", 900).refused(&["tokenizer.json", "900"]);
    Copy::new().set("config.json", "num_attention_heads", 5).refused(&["not a multiple"]);
    Copy::new().set("config.json", "num_attention_heads", 0).refused(&["num_attention_heads is 0"]);
    Copy::new().set("sentence_bert_config.json", "do_lower_case", true).load().unwrap();
}

/// The tiny model with the bytes of its weights altered.
fn with_weights(alter: impl FnOnce(&mut Vec<u8>)) -> Copy {
    let copy = Copy::new();
    let mut weights = fs::read(copy.path("model.safetensors")).unwrap();
    alter(&mut weights);
    fs::write(copy.path("model.safetensors"), weights).unwrap();
    copy
}

#[test]
fn weights_that_are_not_numbers_are_refused() {
    for value in [f32::NAN, f32::INFINITY] {
        let copy = with_weights(|bytes| {
            let at = bytes.len() - 8;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        });
        copy.refused(&[
            "model.safetensors",
            "tensor \"",
            &format!("has the value {value} at"),
            "fetch the model again",
        ]);
    }
}

#[test]
fn a_tensor_that_the_encoder_has_no_place_for_is_refused() {
    let rename = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        with_weights(|bytes| {
            let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        })
    };
    rename("encoder.layer.1.output.dense.bias", "encoder.layer.1.output.dense.bios")
        .refused(&["no tensor \"encoder.layer.1.output.dense.bias\""]);
    Copy::new().set("config.json", "num_hidden_layers", 1).refused(&[
        "no place for",
        "encoder.layer.1.attention.output.LayerNorm.bias",
        "and 13 more",
    ]);
}

#[test]
fn another_models_tokenizer_is_refused() {
    Copy::new().set("config.json", "vocab_size", 5000).refused(&[
        "933 tokens",
        "vocabulary of 5000",
        "another model's",
    ]);
}

#[test]
fn a_vocabulary_alone_is_refused_with_the_way_out() {
    let copy = Copy::new().remove("tokenizer.json");
    fs::write(copy.path("vocab.txt"), "[PAD]\n").unwrap();
    copy.refused(&["tokenizer.json: not found", "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"]);
}

#[test]
fn the_prompt_is_counted_as_the_reference_does() {
    let tokenizer = Copy::new().load().unwrap();
    let tokenizer = tokenizer.tokenizer();
    for (prompt, max_tokens, n_tokens) in [("", 9, 0), ("the: ", 9, 3), ("the [SEP]", 9, 3), (&"the ".repeat(20), 9, 8)]
    {
        assert_eq!(tokenizer.n_prompt_tokens(prompt, max_tokens), Ok(n_tokens), "{prompt:?}");
    }
}
