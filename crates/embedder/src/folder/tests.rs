//! Folders that differ from the tiny model in one respect: what loads, with what result, and what is refused by which words.

use serde_json::json;
use tempfile::TempDir;

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
    Copy::new().set("config.json", "model_type", "modernbert").refused(&[
        "config.json",
        "architecture \"modernbert\"",
        "bert",
    ]);
    Copy::new().set("config.json", "hidden_act", "gelu_new").refused(&["activation \"gelu_new\"", "gelu"]);
    Copy::new().set("config.json", "position_embedding_type", "relative_key").refused(&["relative_key", "absolute"]);
    Copy::new().set("config.json", "is_decoder", true).refused(&["decoder"]);
    let pooling = |mode: Value| Copy::new().set("1_Pooling/config.json", "pooling_mode", mode);
    pooling(json!("weightedmean")).refused(&["pooling \"weightedmean\"", "mean, cls, max"]);
    pooling(json!(["mean", "max"])).refused(&["pooling \"mean + max\""]);
    pooling(json!([])).refused(&["pooling \"\""]);
    Copy::new()
        .set("1_Pooling/config.json", "include_prompt", false)
        .set("config_sentence_transformers.json", "prompts", json!({"query": "q: "}))
        .refused(&["include_prompt"]);
    Copy::new().set("sentence_bert_config.json", "transformer_task", "fill-mask").refused(&["fill-mask"]);
    let old = old_schema().set("1_Pooling/config.json", "pooling_mode_lasttoken", true);
    old.refused(&["pooling \"lasttoken + mean\""]);
}

#[test]
fn modules_are_refused_by_name() {
    let class = |class: &str| json!({"idx": 2, "name": "2", "path": "2", "type": class});
    #[track_caller]
    fn check(module: Value, words: &[&str]) {
        let copy = Copy::new();
        let mut modules: Value = serde_json::from_slice(&fs::read(copy.path("modules.json")).unwrap()).unwrap();
        modules[2] = module;
        copy.write("modules.json", &modules).refused(words);
    }
    check(class("sentence_transformers.models.Dense"), &["modules.json", "module \"Dense\"", "Normalize"]);
    check(class("sentence_transformers.base.modules.dense.Dense"), &["module \"Dense\""]);
    check(class("custom_st.Transformer"), &["module \"custom_st.Transformer\""]);
    check(class("sentence_transformers.models.Pooling"), &["order of modules", "Transformer, Pooling, Pooling"]);
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

#[test]
fn weights_that_are_not_numbers_are_reported_with_the_text() {
    let copy = Copy::new();
    let mut weights = fs::read(copy.path("model.safetensors")).unwrap();
    let n_header = u64::from_le_bytes(*weights.first_chunk().unwrap()) as usize;
    weights[8 + n_header..].as_chunks_mut::<4>().0.iter_mut().for_each(|bytes| *bytes = f32::NAN.to_le_bytes());
    fs::write(copy.path("model.safetensors"), weights).unwrap();
    let error = copy.load().unwrap().embed(&["the".to_owned()], Kind::Query).unwrap_err();
    assert!(error.to_string().contains("text 0: the model's vector is not finite"), "{error}");
}
