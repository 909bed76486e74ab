//! Small random models of every architecture against what transformers and sentence-transformers compute of them.
//!
//! The folders and their golden files are made by `scripts/make-parity-models`, which says what is in them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use candle_core::{Device, Tensor};
use serde::Deserialize;

use super::*;
use crate::late::LateDocument;
use crate::pack::pack;

mod gpu;
mod second;
mod t5;

/// Largest difference of one value of a token's vector.
const TOKEN_TOLERANCE: f32 = 2e-5;
/// Largest difference of one value of a text's vector, which has unit length.
const TEXT_TOLERANCE: f32 = 4e-6;
const MODES: [&str; 7] = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", "mean+max"];

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
    truncated: bool,
}

/// A folder of `models/parity` with its golden files.
struct Model {
    folder: PathBuf,
    texts: Vec<Text>,
    goldens: HashMap<String, Tensor>,
}

impl Model {
    fn open(name: &str) -> Self {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity")).join(name);
        let texts = serde_json::from_slice(&fs::read(folder.join("golden.json")).unwrap()).unwrap();
        let goldens = candle_core::safetensors::load(folder.join("golden.safetensors"), &Device::Cpu).unwrap();
        Self { folder, texts, goldens }
    }

    fn load(&self) -> Embedder {
        load(&self.folder, None)
    }

    fn values(&self, name: &str) -> Vec<f32> {
        self.goldens[name].flatten_all().unwrap().to_vec1().unwrap()
    }

    fn ids(&self, name: &str) -> Vec<u32> {
        self.goldens[name].to_vec1().unwrap()
    }

    fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> =
            self.goldens.keys().filter_map(|name| name.strip_prefix("ids.")).map(|n| n.parse().unwrap()).collect();
        lengths.sort_unstable();
        lengths
    }

    fn strings(&self) -> Vec<String> {
        self.texts.iter().map(|text| text.text.clone()).collect()
    }
}

fn load(folder: &Path, dimensions: Option<usize>) -> Embedder {
    let options = LoadOptions { device: DeviceChoice::Cpu, threads: 1, dimensions, ..LoadOptions::default() };
    Embedder::load(folder, &options).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// \[T, H\].
fn hidden(embedder: &Embedder, batch: &Batch) -> Vec<f32> {
    embedder.with_hidden(batch, NEVER, |hidden, _| hidden.to_vec()).unwrap()
}

#[track_caller]
fn check_close(what: &str, ours: &[f32], theirs: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let difference = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference <= tolerance, "{what} differs by {difference}");
}

/// Sequences of all lengths, alone and in one batch, token by token.
#[track_caller]
fn check_tokens(name: &str) {
    let model = Model::open(name);
    check_tokens_of(&model, name, &model.load());
}

#[track_caller]
fn check_tokens_of(model: &Model, name: &str, embedder: &Embedder) {
    let lengths = model.lengths();
    let sequences: Vec<Vec<u32>> = lengths.iter().map(|n| model.ids(&format!("ids.{n}"))).collect();
    let alone = sequences.iter().map(|ids| pack(vec![ids.clone()], usize::MAX).remove(0));
    for (batch, &n) in alone.zip(&lengths) {
        check_rows(model, &format!("{name}: {n} tokens alone"), n, &hidden(embedder, &batch));
    }
    for batch in pack(sequences.clone(), usize::MAX) {
        let hidden = hidden(embedder, &batch);
        let width = hidden.len() / batch.ids.len();
        for (span, &input) in batch.spans.iter().zip(&batch.inputs) {
            let (n, rows) = (lengths[input], &hidden[span.start * width..span.end * width]);
            check_rows(model, &format!("{name}: {n} tokens among others"), n, rows);
        }
    }
}

/// The rows of a sequence of `n` tokens against its golden ones.
#[track_caller]
fn check_rows(model: &Model, what: &str, n: usize, rows: &[f32]) {
    let width = rows.len() / n;
    let tokens = model.ids(&format!("tokens.{n}"));
    let chosen: Vec<f32> = tokens.iter().flat_map(|&token| rows[token as usize * width..][..width].to_vec()).collect();
    check_close(what, &chosen, &model.values(&format!("rows.{n}")), TOKEN_TOLERANCE);
    let sums: Vec<f32> = rows.chunks_exact(width).map(|row| row.iter().sum()).collect();
    check_close(what, &sums, &model.values(&format!("sums.{n}")), TOKEN_TOLERANCE * width as f32 / 4.0);
}

/// Texts as the reference tokenizes them, and their vectors by every pooling that the golden file has.
#[track_caller]
fn check_texts(name: &str) {
    let model = Model::open(name);
    let embedder = model.load();
    for text in &model.texts {
        let encoded = embedder.tokenizer.encode(&text.text, embedder.max_tokens).unwrap();
        assert_eq!((&encoded.ids, encoded.truncated), (&text.ids, text.truncated), "{name}: {:?}", text.text);
    }
    for mode in MODES {
        for (kind, prompt) in [("pooled", ""), ("prompted", "the text: ")] {
            let golden = format!("{kind}.{mode}");
            if !model.goldens.contains_key(&golden) {
                continue;
            }
            let copy = copy_with(&model.folder, mode, prompt);
            let vectors = embed(&load(copy.path(), None), &model.strings(), Kind::Document);
            check_close(&format!("{name}: {golden}"), &vectors, &model.values(&golden), TEXT_TOLERANCE);
        }
    }
}

/// A folder with the files of another, but for its pooling and its prompts.
fn copy_with(folder: &Path, mode: &str, prompt: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let config: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
    let hidden = ["hidden_size", "dim", "n_embd", "d_model"].iter().find_map(|key| config[*key].as_u64());
    let modes: Vec<&str> = mode.split('+').collect();
    let pooling = serde_json::json!({
        "embedding_dimension": hidden, "pooling_mode": modes, "include_prompt": prompt.is_empty(),
    });
    fs::create_dir(copy.path().join("1_Pooling")).unwrap();
    fs::write(copy.path().join("1_Pooling/config.json"), pooling.to_string()).unwrap();
    let prompts = serde_json::json!({"prompts": {"document": prompt}});
    fs::write(copy.path().join("config_sentence_transformers.json"), prompts.to_string()).unwrap();
    copy
}

fn embed(embedder: &Embedder, texts: &[String], kind: Kind) -> Vec<f32> {
    embedder.embed(texts, kind).unwrap().into_iter().flat_map(|embedding| embedding.vector).collect()
}

/// Token vectors and text vectors of the smaller number types against those of f32.
#[track_caller]
fn check_precisions(name: &str) {
    let model = Model::open(name);
    let exact = model.load();
    for (precision, mean_min, first_percentile_min, text_min) in
        [(Precision::Bf16, 0.9999, 0.999, 0.9999), (Precision::Int8, 0.995, 0.99, 0.99)]
    {
        let options = LoadOptions { device: DeviceChoice::Cpu, threads: 1, precision, ..LoadOptions::default() };
        let embedder = Embedder::load(&model.folder, &options).unwrap();
        let mut cosines = Vec::new();
        for n in model.lengths() {
            let batch = pack(vec![model.ids(&format!("ids.{n}"))], usize::MAX).remove(0);
            let (ours, theirs) = (hidden(&embedder, &batch), hidden(&exact, &batch));
            let width = ours.len() / n;
            cosines.extend(ours.chunks_exact(width).zip(theirs.chunks_exact(width)).map(|(a, b)| cosine(a, b)));
        }
        cosines.sort_by(f64::total_cmp);
        let (mean, low) = (cosines.iter().sum::<f64>() / cosines.len() as f64, cosines[cosines.len() / 100]);
        assert!(mean >= mean_min && low >= first_percentile_min, "{name} {precision}: mean {mean}, 1 % {low}");
        let vectors = |embedder: &Embedder| embedder.embed(&model.strings(), Kind::Document).unwrap();
        let (ours, theirs) = (vectors(&embedder), vectors(&exact));
        let cosines = ours.iter().zip(&theirs).map(|(ours, theirs)| cosine(&ours.vector, &theirs.vector));
        let (least, sum) = cosines.fold((1.0, 0.0), |(least, sum), one| (f64::min(least, one), sum + one));
        let mean = sum / ours.len() as f64;
        assert!(
            mean >= text_min && 1.0 - least <= 3.0 * (1.0 - text_min),
            "{name} {precision}: mean {mean}, least {least}"
        );
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

macro_rules! architectures {
    ($($test:ident: $name:literal,)*) => {$(
        mod $test {
            #[test]
            fn tokens() {
                super::check_tokens($name);
            }

            #[test]
            fn texts() {
                super::check_texts($name);
            }

            #[test]
            fn precisions() {
                super::check_precisions($name);
            }
        }
    )*};
}

architectures! {
    bert: "bert",
    distilbert: "distilbert",
    roberta: "roberta",
    xlm_roberta: "xlm-roberta",
    camembert: "camembert",
    mpnet: "mpnet",
    modernbert: "modernbert",
    nomic_bert: "nomic-bert",
    jina_bert_v2: "jina-bert-v2",
    gte: "gte",
    qwen3: "qwen3",
    gemma3: "gemma3",
    gemma3_causal: "gemma3-causal",
    t5_plain: "t5",
    t5_gated: "mt5",
}

#[test]
fn a_chain_of_modules_agrees_with_sentence_transformers() {
    let model = Model::open("modules");
    for (dimensions, cut) in [(12, None), (5, Some(5))] {
        let embedder = load(&model.folder, cut);
        assert_eq!(embedder.dimensions(), dimensions);
        for (name, kind) in [("document", Kind::Document), ("query", Kind::Query)] {
            let vectors = embed(&embedder, &model.strings(), kind);
            check_close(name, &vectors, &model.values(&format!("{name}.{dimensions}")), TEXT_TOLERANCE);
        }
    }
}

#[test]
fn a_decoder_with_dense_layers_behind_it_agrees_with_sentence_transformers() {
    let model = Model::open("embedding-gemma");
    for (dimensions, cut) in [(40, None), (16, Some(16))] {
        let embedder = load(&model.folder, cut);
        assert_eq!(embedder.prompt(Kind::Query), "task: search result | query: ");
        for (name, kind) in [("document", Kind::Document), ("query", Kind::Query)] {
            let vectors = embed(&embedder, &model.strings(), kind);
            check_close(name, &vectors, &model.values(&format!("{name}.{dimensions}")), TEXT_TOLERANCE);
        }
    }
}

#[test]
fn decoders_of_transformers_4() {
    check_same("qwen3", |config| {
        config.as_object_mut().unwrap().remove("rope_parameters");
        config.as_object_mut().unwrap().remove("layer_types");
        merge(config, &serde_json::json!({"rope_theta": 1_000_000, "rope_scaling": null, "torch_dtype": "bfloat16"}));
    });
    check_same("gemma3", |config| {
        config.as_object_mut().unwrap().remove("rope_parameters");
        let old = serde_json::json!({
            "rope_theta": 1_000_000, "rope_local_base_freq": 10_000, "rope_scaling": null, "_sliding_window_pattern": 6,
        });
        merge(config, &old);
    });
}

#[test]
fn decoders_and_t5_give_a_text_the_same_bits_in_any_company() {
    for name in ["qwen3", "gemma3", "t5", "mt5"] {
        let model = Model::open(name);
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let load = |threads, max_batch_tokens| {
                let device = DeviceChoice::Cpu;
                let options = LoadOptions { device, threads, max_batch_tokens, precision, dimensions: None };
                Embedder::load(&model.folder, &options).unwrap()
            };
            let (texts, one) = (model.strings(), load(1, 0));
            let alone: Vec<f32> =
                texts.iter().flat_map(|text| embed(&one, std::slice::from_ref(text), Kind::Document)).collect();
            for (threads, max_batch_tokens) in [(1, 0), (3, 40), (2, 1 << 20)] {
                let together = embed(&load(threads, max_batch_tokens), &texts, Kind::Document);
                assert!(together == alone, "{name} {precision}: {threads} threads, {max_batch_tokens} tokens");
            }
        }
    }
}

#[test]
fn late_chunks_of_a_causal_model_are_refused_and_those_of_others_share_their_document() {
    let late = |name: &str| {
        let model = Model::open(name);
        let copy = copy_with(&model.folder, "mean", ""); // a prompt would be pooled in the one and not in the other
        let embedder = load(copy.path(), None);
        embedder.late_windows(None, None).map(|windows| {
            let text = "The first city was built near the river. Its people made bread.".to_owned();
            let whole = LateDocument { prefix: String::new(), spans: vec![0..text.len()], text: text.clone() };
            let vector = embedder.embed_late(&[whole], windows).unwrap().remove(0).remove(0).vector;
            check_close(name, &vector, &embed(&embedder, &[text], Kind::Document), TEXT_TOLERANCE);
        })
    };
    late("gemma3").unwrap();
    for name in ["qwen3", "gemma3-causal"] {
        assert!(matches!(late(name), Err(Error::LateCausal)), "{name}");
    }
}

#[test]
fn every_architecture_named_is_read() {
    for name in crate::ARCHITECTURES {
        let path = Path::new("config.json");
        let error = crate::encoder::Config::parse(path, serde_json::json!({"model_type": name})).unwrap_err();
        assert!(!matches!(error, Error::Unsupported { what: "architecture", .. }), "{name}: {error}");
    }
    let other = crate::encoder::Config::parse(Path::new("config.json"), serde_json::json!({"model_type": "bart"}));
    let message = other.unwrap_err().to_string();
    assert!(crate::ARCHITECTURES.iter().all(|name| message.contains(name)), "{message}");
}

/// A folder of `models/parity` with another `config.json`.
fn with_config(name: &str, alter: impl FnOnce(&mut serde_json::Value)) -> tempfile::TempDir {
    let folder = Model::open(name).folder;
    let copy = copy_with(&folder, "mean", "");
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
    alter(&mut config);
    fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
    copy
}

/// The settings of `config` under the names `[ours, theirs]`, and nothing else of it.
fn renamed(config: &serde_json::Value, names: &[[&str; 2]]) -> serde_json::Value {
    names.iter().map(|[ours, theirs]| ((*theirs).to_owned(), config[*ours].clone())).collect()
}

fn merge(config: &mut serde_json::Value, more: &serde_json::Value) {
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
}

/// The same model under two schemas: equal fingerprints, so equal vectors.
#[track_caller]
fn check_same(name: &str, alter: impl FnOnce(&mut serde_json::Value)) {
    let (ours, theirs) = (with_config(name, |_| {}), with_config(name, alter));
    let (ours, theirs) = (load(ours.path(), None), load(theirs.path(), None));
    assert_eq!(ours.fingerprint(), theirs.fingerprint());
    let texts = ["the first city".to_owned()];
    assert_eq!(embed(&ours, &texts, Kind::Query), embed(&theirs, &texts, Kind::Query));
}

#[test]
fn modernbert_of_transformers_4() {
    check_same("modernbert", |config| {
        for key in ["layer_types", "rope_parameters"] {
            config.as_object_mut().unwrap().remove(key);
        }
        let old = serde_json::json!({
            "global_attn_every_n_layers": 3, "global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0,
            "position_embedding_type": "absolute", "reference_compile": null,
        });
        merge(config, &old);
    });
}

#[test]
fn nomic_bert_of_the_published_code() {
    check_same("nomic-bert", |config| {
        let names = [
            ["hidden_size", "n_embd"],
            ["num_hidden_layers", "n_layer"],
            ["num_attention_heads", "n_head"],
            ["intermediate_size", "n_inner"],
            ["layer_norm_eps", "layer_norm_epsilon"],
            ["max_position_embeddings", "n_positions"],
            ["vocab_size", "vocab_size"],
            ["model_type", "model_type"],
            ["type_vocab_size", "type_vocab_size"],
        ];
        let more = serde_json::json!({
            "activation_function": "swiglu", "prenorm": false, "parallel_block": false, "use_rms_norm": false,
            "causal": false, "qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false,
            "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": false,
            "rotary_emb_scale_base": null, "rotary_scaling_factor": null, "pad_vocab_size_multiple": 4,
            "max_trained_positions": 2048,
        });
        *config = renamed(config, &names);
        merge(config, &more);
    });
}

#[test]
fn gte_of_the_published_code() {
    check_same("gte", |config| {
        let base = config["rope_parameters"]["rope_theta"].clone();
        config.as_object_mut().unwrap().remove("rope_parameters");
        let old = serde_json::json!({
            "model_type": "new", "rope_theta": base, "rope_scaling": null, "layer_norm_type": "layer_norm",
            "position_embedding_type": "rope", "pack_qkv": true, "logn_attention_scale": false,
            "logn_attention_clip1": false, "unpad_inputs": false, "use_memory_efficient_attention": false,
        });
        merge(config, &old);
    });
}

#[test]
fn gte_with_scaled_rotary_positions() {
    let copy = with_config("gte", |config| {
        config.as_object_mut().unwrap().remove("rope_parameters");
        let scaled = serde_json::json!({
            "model_type": "new", "rope_theta": 10_000, "rope_scaling": {"factor": 2.0, "type": "ntk"},
        });
        merge(config, &scaled);
    });
    let mut model = Model::open("gte");
    model.goldens = candle_core::safetensors::load(model.folder.join("golden-ntk.safetensors"), &Device::Cpu).unwrap();
    let embedder = load(copy.path(), None);
    assert_eq!(model.lengths(), [2, 128, 600]);
    for n in model.lengths() {
        let batch = pack(vec![model.ids(&format!("ids.{n}"))], usize::MAX).remove(0);
        check_rows(&model, &format!("{n} tokens"), n, &hidden(&embedder, &batch));
    }
}

#[test]
fn a_folder_may_ask_for_a_longer_window_where_positions_are_computed() {
    let window = |name: &str, asked: usize| {
        let copy = with_config(name, |_| {});
        let settings = serde_json::json!({ "max_seq_length": asked }).to_string();
        fs::write(copy.path().join("sentence_bert_config.json"), settings).unwrap();
        let options = LoadOptions { device: DeviceChoice::Cpu, ..LoadOptions::default() };
        Embedder::load(copy.path(), &options).map(|embedder| embedder.max_tokens())
    };
    for name in ["modernbert", "nomic-bert", "jina-bert-v2", "gte", "t5"] {
        assert_eq!(window(name, 5000).unwrap(), 5000, "{name}");
        assert!(window(name, 1 << 20).unwrap_err().to_string().contains("65536 positions"), "{name}");
    }
    for (name, n_positions, n_rows) in [("bert", 512, 512), ("roberta", 512, 514), ("mpnet", 512, 514)] {
        assert_eq!(window(name, n_positions).unwrap(), n_positions, "{name}");
        assert_eq!(window(name, n_rows).unwrap(), n_positions, "{name}"); // some folders count the rows
        let message = window(name, n_rows + 1).unwrap_err().to_string();
        assert!(message.contains(&format!("{n_rows} positions")), "{message}");
    }
}

#[test]
fn settings_that_would_change_the_result_are_refused_by_name() {
    #[track_caller]
    fn check(name: &str, key: &str, value: impl Into<serde_json::Value>, words: &[&str]) {
        let copy = with_config(name, |config| config[key] = value.into());
        let options = LoadOptions { device: DeviceChoice::Cpu, ..LoadOptions::default() };
        let message = Embedder::load(copy.path(), &options).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("config.json"), "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message:?} lacks one of {words:?}");
    }
    check("distilbert", "activation", "quick_gelu", &["activation \"quick_gelu\""]);
    check("distilbert", "n_heads", 3, &["dim 40 is not a multiple of n_heads 3"]);
    check("distilbert", "hidden_dim", 0, &["hidden_dim is 0"]);
    check("distilbert", "hidden_dim", -1, &["hidden_dim is -1, not a whole number"]);
    check("roberta", "is_decoder", true, &["decoder"]);
    check("roberta", "pad_token_id", 600, &["514 positions, all of them before the first"]);
    check("mpnet", "relative_attention_num_buckets", 64, &["relative_attention_num_buckets = 64", "supported: 32"]);
    check("modernbert", "rope_scaling", serde_json::json!({"type": "yarn"}), &["rotary scaling", "yarn"]);
    check("modernbert", "layer_types", serde_json::json!(["full_attention"]), &["names 1 layers of 4"]);
    check("modernbert", "layer_types", serde_json::json!(["a", "b", "c", "d"]), &["layer type", "full_attention"]);
    let rotary = serde_json::json!({"full_attention": {"rope_type": "yarn"}});
    check("modernbert", "rope_parameters", rotary, &["rope_type = \\\"yarn\\\"", "default"]);
    for flag in ["prenorm", "parallel_block", "use_rms_norm", "causal", "rotary_emb_interleaved"] {
        check("nomic-bert", flag, true, &["setting", flag]);
    }
    check("nomic-bert", "rotary_emb_fraction", 0.5, &["rotary_emb_fraction = 0.5"]);
    check("nomic-bert", "rotary_scaling_factor", 2, &["rotary_scaling_factor = 2"]);
    check("nomic-bert", "num_experts", 8, &["mixture of experts"]);
    check("nomic-bert", "activation_function", "gelu", &["activation \"gelu\"", "swiglu"]);
    check("nomic-bert", "num_attention_heads", 8, &["heads of 5 dimensions"]);
    check("jina-bert-v2", "feed_forward_type", "original", &["network \"original\"", "geglu"]);
    check("jina-bert-v2", "alibi_scaling", 4, &["alibi_scaling = 4"]);
    check("jina-bert-v2", "position_embedding_type", "relative_key", &["relative_key", "absolute"]);
    let normed = serde_json::json!({"AutoModel": "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel"});
    check("jina-bert-v2", "auto_map", normed, &["norms of queries and keys"]);
    check("qwen3", "attention_bias", true, &["attention_bias = true"]);
    check("qwen3", "rope_scaling", serde_json::json!({"rope_type": "yarn", "factor": 4}), &["rotary scaling", "yarn"]);
    check("qwen3", "rope_parameters", serde_json::json!({"rope_type": "yarn"}), &["rope_type", "yarn", "default"]);
    check("qwen3", "use_bidirectional_attention", true, &["use_bidirectional_attention = true"]);
    check("qwen3", "is_causal", false, &["is_causal = false"]);
    check("qwen3", "num_key_value_heads", 3, &["4 is not a multiple of 3"]);
    check("qwen3", "head_dim", 15, &["heads of 15 dimensions"]);
    check("qwen3", "sliding_window", 0, &["sliding_window is 0"]);
    check("qwen3", "sliding_window", serde_json::Value::Null, &["no sliding_window"]);
    check("qwen3", "head_dim", 1 << 20, &["heads of 1048576 dimensions", "1024"]);
    check("qwen3", "num_attention_heads", u64::MAX, &["num_attention_heads", "more than the 16777216"]);
    check("gemma3", "num_hidden_layers", 1 << 20, &["num_hidden_layers is 1048576", "1024"]);
    check("qwen3", "quantization_config", serde_json::json!({"quant_method": "awq"}), &["quantisation", "awq"]);
    check("gemma3", "attn_logit_softcapping", 50.0, &["attn_logit_softcapping = 50"]);
    check("gemma3", "sliding_window", 0, &["sliding_window is 0"]);
    check("gemma3", "hidden_activation", "quick_gelu", &["quick_gelu"]);
    let scaled = serde_json::json!({"full_attention": {"rope_type": "linear", "factor": 8}});
    check("gemma3", "rope_parameters", scaled, &["linear", "default"]);
    check("t5", "is_decoder", true, &["is_decoder = true"]);
    check("t5", "feed_forward_proj", "gated-gelu-relu", &["feed-forward network \"gated-gelu-relu\"", "relu"]);
    check("t5", "relative_attention_num_buckets", 3, &["3 buckets cannot part the distances up to 128"]);
    check("t5", "relative_attention_max_distance", 8, &["32 buckets cannot part the distances up to 8"]);
    check("t5", "num_heads", 1 << 20, &["num_heads is 1048576", "1024"]);
    check("gte", "layer_norm_type", "rms_norm", &["rms_norm", "layer_norm"]);
    check("gte", "logn_attention_scale", true, &["logn_attention_scale = true"]);
    check("gte", "rope_scaling", serde_json::json!({"type": "dynamic", "factor": 2}), &["dynamic", "ntk"]);
    check("gte", "rope_scaling", serde_json::json!({"type": "ntk", "factor": 2, "mixed_b": 0.1}), &["mixed_b"]);
    check("gte", "rope_scaling", serde_json::json!({"type": "ntk", "factor": 0.5}), &["factor", "0.5"]);
}

#[test]
fn a_window_of_nothing_is_refused_where_no_layer_looks_through_it() {
    let copy = with_config("qwen3", |config| {
        config["layer_types"] = vec!["full_attention"; 3].into();
        config["sliding_window"] = 0.into();
    });
    let options = LoadOptions { device: DeviceChoice::Cpu, ..LoadOptions::default() };
    let message = Embedder::load(copy.path(), &options).map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("sliding_window is 0"), "{message}");
}

#[test]
fn a_tokenizer_with_other_special_tokens_is_refused() {
    #[track_caller]
    fn check(name: &str, key: &str, words: &[&str]) {
        let copy = with_config(name, |config| config[key] = 7.into());
        let options = LoadOptions { device: DeviceChoice::Cpu, ..LoadOptions::default() };
        let message = Embedder::load(copy.path(), &options).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("tokenizer.json"), "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message:?} lacks one of {words:?}");
    }
    check("roberta", "bos_token_id", &["0 for the first token of every text", "config.json 7"]);
    check("roberta", "eos_token_id", &["2 for the last token of every text", "config.json 7"]);
    check("roberta", "pad_token_id", &["1 for the padding token", "config.json 7"]);
    check("camembert", "bos_token_id", &["5 for the first token"]);
    check("mpnet", "eos_token_id", &["2 for the last token"]);
    check("modernbert", "cls_token_id", &["2 for the first token"]);
    check("modernbert", "sep_token_id", &["3 for the last token"]);
}
