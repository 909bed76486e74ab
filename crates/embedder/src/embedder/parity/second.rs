//! A second oracle: the same folders as candle-transformers computes them, in the tensor library's own operations.
//!
//! It was not written after the same code as the goldens, so that a mistake of the one need not be one of the other.
//! It has no MPNet and no GTE. Where it computes less than transformers, or something else, both are given settings
//! that it computes: DistilBERT with the tanh of GELU, Qwen3 without local layers, Gemma 3 with scores scaled by the
//! width of a head, in texts within the window, which there has a token more.

use candle_core::{DType, Result};
use candle_nn::{Module, VarBuilder};
use candle_transformers::models::{
    bert, distilbert, gemma3, jina_bert, modernbert, nomic_bert, qwen3, t5, xlm_roberta,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Batch, Device, HashMap, Model, Tensor, fs, hidden, load, merge, renamed, with_config};

/// Largest difference of one value of a token's vector.
const TOLERANCE: f32 = 2e-5;
const LENGTHS: [usize; 8] = [1, 2, 3, 16, 31, 64, 128, 511];

/// Token ids \[1, S\] to rows \[1, S, H\].
type Encoder = Box<dyn FnMut(&Tensor) -> Result<Tensor>>;

/// Holds our rows of a folder of `models/parity` against those of another encoder of its files. `settings` are given to
/// both, `names` to the other alone.
#[track_caller]
fn check(
    name: &str,
    settings: &Value,
    names: &Value,
    open: impl FnOnce(&Value, VarBuilder<'static>) -> Result<Encoder>,
) {
    let folder = with_config(name, |config| merge(config, settings));
    let embedder = load(folder.path(), None);
    let mut encoder = open(&config_of(&folder, names), weights_of(&folder)).unwrap();
    let mut largest = 0f32;
    for ids in sequences(name, embedder.n_positions()) {
        let theirs = encoder(&Tensor::new(&ids[..], &Device::Cpu).unwrap().unsqueeze(0).unwrap()).unwrap();
        let theirs: Vec<f32> = theirs.flatten_all().unwrap().to_vec1().unwrap();
        let ours = hidden(&embedder, &Batch::new([(0, ids)]));
        largest = largest.max(difference(&ours, &theirs));
    }
    eprintln!("{name}: largest difference {largest:.1e}");
    assert!(largest <= TOLERANCE, "{name} differs by {largest}");
}

#[track_caller]
fn difference(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn sequences(name: &str, longest: usize) -> impl Iterator<Item = Vec<u32>> {
    let model = Model::open(name);
    let ids = model.ids(&format!("ids.{}", model.lengths().last().unwrap()));
    let sequence = move |n: usize| (0..n).map(|i| ids[(i * 7 + n) % ids.len()]).collect();
    LENGTHS.into_iter().filter(move |&n| n <= longest).map(sequence)
}

fn config_of(folder: &tempfile::TempDir, names: &Value) -> Value {
    let mut config = serde_json::from_slice(&fs::read(folder.path().join("config.json")).unwrap()).unwrap();
    merge(&mut config, names);
    config
}

/// The tensors of a folder, also under the names that those of whole language models have.
fn weights_of(folder: &tempfile::TempDir) -> VarBuilder<'static> {
    let tensors = candle_core::safetensors::load(folder.path().join("model.safetensors"), &Device::Cpu).unwrap();
    let within = |(name, tensor): (&String, &Tensor)| (format!("model.{name}"), tensor.clone());
    let within: HashMap<String, Tensor> = tensors.iter().map(within).collect();
    VarBuilder::from_tensors(tensors.into_iter().chain(within).collect(), DType::F32, &Device::Cpu)
}

fn settings<T: DeserializeOwned>(config: &Value) -> T {
    serde_json::from_value(config.clone()).unwrap()
}

#[test]
fn bert_agrees() {
    check("bert", &json!({}), &json!({}), |config, weights| {
        let model = bert::BertModel::load(weights, &settings(config))?;
        Ok(Box::new(move |ids| model.forward(ids, &ids.zeros_like()?, None)))
    });
}

#[test]
fn distilbert_agrees() {
    let approximate = json!({"activation": "gelu_new"}); // as it takes GELU there, whatever the file says
    check("distilbert", &approximate, &json!({"activation": "gelu"}), |config, weights| {
        let model = distilbert::DistilBertModel::load(weights, &settings(config))?;
        Ok(Box::new(move |ids| model.forward(ids, &ids.zeros_like()?))) // ones are what is not seen
    });
}

#[test]
fn roberta_and_its_like_agree() {
    for (name, prefix) in [("roberta", None), ("xlm-roberta", Some("roberta")), ("camembert", None)] {
        check(name, &json!({}), &json!({"position_embedding_type": "absolute"}), |config, weights| {
            let weights = prefix.map_or(weights.clone(), |prefix| weights.pp(prefix));
            let model = xlm_roberta::XLMRobertaModel::new(&settings(config), weights)?;
            Ok(Box::new(move |ids| model.forward(ids, &ids.ones_like()?, &ids.zeros_like()?, None, None, None)))
        });
    }
}

#[test]
fn modernbert_agrees() {
    let names = json!({"global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0, "layer_norm_eps": 1e-5});
    check("modernbert", &json!({}), &names, |config, weights| {
        let model = modernbert::ModernBert::load(weights, &settings(config))?;
        Ok(Box::new(move |ids| model.forward(ids, &ids.ones_like()?)))
    });
}

#[test]
fn nomic_bert_agrees() {
    check("nomic-bert", &json!({}), &json!({}), |config, weights| {
        let names = [
            ["hidden_size", "n_embd"],
            ["num_hidden_layers", "n_layer"],
            ["num_attention_heads", "n_head"],
            ["intermediate_size", "n_inner"],
            ["layer_norm_eps", "layer_norm_epsilon"],
            ["max_position_embeddings", "n_positions"],
            ["vocab_size", "vocab_size"],
            ["type_vocab_size", "type_vocab_size"],
        ];
        let model = nomic_bert::NomicBertModel::load(weights, &settings(&renamed(config, &names)))?;
        Ok(Box::new(move |ids| model.forward(ids, None, None)))
    });
}

#[test]
fn jina_bert_v2_agrees() {
    check("jina-bert-v2", &json!({}), &json!({}), |config, weights| {
        let model = jina_bert::BertModel::new(weights, &settings(config))?;
        Ok(Box::new(move |ids| model.forward(ids)))
    });
}

#[test]
fn t5_agrees() {
    for name in ["t5", "mt5"] {
        check(name, &json!({}), &json!({}), |config, weights| {
            let mut model = t5::T5EncoderModel::load(weights, &settings(config))?;
            Ok(Box::new(move |ids| model.forward(ids)))
        });
    }
}

#[test]
fn qwen3_agrees() {
    let global = json!({"use_sliding_window": false, "layer_types": vec!["full_attention"; 3]});
    check("qwen3", &global, &json!({"rope_theta": 1e6}), |config, weights| {
        let model = qwen3::Model::new(&settings(config), weights)?;
        Ok(Box::new(move |ids| model.clone().forward(ids, 0))) // it would remember the keys
    });
}

/// Held by what is given there, for the last token alone: a score for each word.
#[test]
fn gemma3_agrees() {
    let folder = with_config("gemma3-causal", |config| config["query_pre_attn_scalar"] = config["head_dim"].clone());
    let names = json!({"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 2});
    let (config, weights) = (config_of(&folder, &names), weights_of(&folder));
    let window = config["sliding_window"].as_u64().unwrap() as usize;
    let [n_words, width] = ["vocab_size", "hidden_size"].map(|key| config[key].as_u64().unwrap() as usize);
    let words = weights.get((n_words, width), "embed_tokens.weight").unwrap();
    let model = gemma3::Model::new(false, &settings(&config), weights).unwrap();
    let embedder = load(folder.path(), None);
    for ids in sequences("gemma3-causal", window) {
        let theirs = model.clone().forward(&Tensor::new(&ids[..], &Device::Cpu).unwrap().unsqueeze(0).unwrap(), 0);
        let theirs: Vec<f32> = theirs.unwrap().flatten_all().unwrap().to_vec1().unwrap();
        let n_before = ids.len() - 1;
        let rows = hidden(&embedder, &Batch::new([(0, ids)]));
        let last = Tensor::new(&rows[n_before * width..], &Device::Cpu).unwrap().unsqueeze(1).unwrap();
        let ours: Vec<f32> = words.matmul(&last).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        let largest = difference(&ours, &theirs);
        eprintln!("gemma3, {} tokens: largest difference {largest:.1e}", n_before + 1);
        assert!(largest <= TOLERANCE, "{} tokens differ by {largest}", n_before + 1);
    }
}
