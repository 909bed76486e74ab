//! A small encoder in a folder: one layer that passes words on, their mean, and a turn into more dimensions.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::text;
use crate::Random;

/// Dimensions in which vectors differ: about as many as those of a trained encoder do.
pub(super) const LATENT: usize = 16;

const HIDDEN: usize = 2 * LATENT;
const INNER: usize = 4;
const WINDOW: usize = 512;
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// The most frequent words are tokens of their own, the others are spelt.
const N_TOKENS: usize = 8_000;

/// Writes the folder of an encoder into vectors of so many dimensions.
pub(super) fn write(folder: &Path, dims: usize) -> Result<()> {
    let vocabulary = vocabulary();
    let n_tokens = vocabulary.len();
    let file = |name: &str, json: Value| -> Result<()> {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        Ok(fs::write(path, serde_json::to_vec_pretty(&json)?)?)
    };
    file(
        "config.json",
        json!({
            "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "intermediate_size": INNER,
            "layer_norm_eps": 1e-12, "max_position_embeddings": WINDOW, "num_attention_heads": 2,
            "num_hidden_layers": 1, "type_vocab_size": 2, "vocab_size": n_tokens,
        }),
    )?;
    let module = |n: usize, path: &str, class: &str| {
        let class = format!("sentence_transformers.models.{class}");
        json!({ "idx": n, "name": n.to_string(), "path": path, "type": class })
    };
    let modules = [
        module(0, "", "Transformer"),
        module(1, "1_Pooling", "Pooling"),
        module(2, "2_Dense", "Dense"),
        module(3, "3_Normalize", "Normalize"),
    ];
    file("modules.json", json!(modules))?;
    file("sentence_bert_config.json", json!({ "max_seq_length": WINDOW, "do_lower_case": true }))?;
    file("1_Pooling/config.json", json!({ "word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": true }))?;
    file(
        "2_Dense/config.json",
        json!({
            "in_features": HIDDEN, "out_features": dims, "bias": false,
            "activation_function": "torch.nn.modules.linear.Identity",
        }),
    )?;
    fs::create_dir_all(folder.join("3_Normalize"))?;
    file("tokenizer.json", tokenizer(&vocabulary))?;

    let mut random = Random(11);
    let mut turn = Tensors::default();
    turn.add("linear.weight", &[dims, HIDDEN], (0..dims * HIDDEN).map(|_| random.centred()).collect());
    turn.write(&folder.join("2_Dense/model.safetensors"))?;
    weights(n_tokens, &mut random).write(&folder.join("model.safetensors"))
}

/// The tensors of the layer: only the words' vectors are not zero. Half of each is the other half turned over, so that
/// it has no mean and the norms leave it as it is.
fn weights(n_tokens: usize, random: &mut Random) -> Tensors {
    let mut words = Vec::with_capacity(n_tokens * HIDDEN);
    for _ in 0..n_tokens {
        let vector: Vec<f32> = (0..LATENT).map(|_| random.centred()).collect();
        words.extend(vector.iter().copied().chain(vector.iter().map(|value| -value)));
    }
    let mut tensors = Tensors::default();
    let mut zeros = |name: &str, shape: &[usize]| tensors.add(name, shape, vec![0.0; shape.iter().product()]);
    zeros("embeddings.position_embeddings.weight", &[WINDOW, HIDDEN]);
    zeros("embeddings.token_type_embeddings.weight", &[2, HIDDEN]);
    let layer = |name: &str| format!("encoder.layer.0.{name}");
    for part in ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"] {
        zeros(&layer(&format!("{part}.weight")), &[HIDDEN, HIDDEN]);
        zeros(&layer(&format!("{part}.bias")), &[HIDDEN]);
    }
    for (part, shape) in [("intermediate.dense", [INNER, HIDDEN]), ("output.dense", [HIDDEN, INNER])] {
        zeros(&layer(&format!("{part}.weight")), &shape);
        zeros(&layer(&format!("{part}.bias")), &shape[..1]);
    }
    for norm in ["embeddings.LayerNorm", &layer("attention.output.LayerNorm"), &layer("output.LayerNorm")] {
        zeros(&format!("{norm}.bias"), &[HIDDEN]);
    }
    for norm in ["embeddings.LayerNorm", &layer("attention.output.LayerNorm"), &layer("output.LayerNorm")] {
        tensors.add(&format!("{norm}.weight"), &[HIDDEN], vec![1.0; HIDDEN]);
    }
    tensors.add("embeddings.word_embeddings.weight", &[n_tokens, HIDDEN], words);
    tensors
}

fn vocabulary() -> Vec<String> {
    let letters = || (b'a'..=b'z').map(|letter| char::from(letter).to_string());
    let special = SPECIAL.map(str::to_owned).into_iter();
    let spelt = letters().chain(letters().map(|letter| format!("##{letter}")));
    special.chain(spelt).chain((0..N_TOKENS).map(text::word)).collect()
}

fn tokenizer(vocabulary: &[String]) -> Value {
    let special = SPECIAL.iter().enumerate().map(|(id, content)| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true,
        })
    });
    let ids: Map<String, Value> = vocabulary.iter().enumerate().map(|(id, token)| (token.clone(), json!(id))).collect();
    let token = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let text = |name: &str, kind: u32| json!({ "Sequence": { "id": name, "type_id": kind } });
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": special.collect::<Vec<_>>(),
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true,
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]"), text("A", 0), token("[SEP]")],
            "pair": [token("[CLS]"), text("A", 0), token("[SEP]"), text("B", 1), token("[SEP]")],
            "special_tokens": {
                "[CLS]": { "id": "[CLS]", "ids": [2], "tokens": ["[CLS]"] },
                "[SEP]": { "id": "[SEP]", "ids": [3], "tokens": ["[SEP]"] },
            },
        },
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": ids,
        },
    })
}

/// Tensors of f32 on their way into a file of safetensors.
#[derive(Default)]
struct Tensors {
    header: Map<String, Value>,
    bytes: Vec<u8>,
}

impl Tensors {
    fn add(&mut self, name: &str, shape: &[usize], values: Vec<f32>) {
        let start = self.bytes.len();
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let place = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, self.bytes.len()] });
        self.header.insert(name.to_owned(), place);
    }

    fn write(self, path: &Path) -> Result<()> {
        let mut header = serde_json::to_vec(&self.header)?;
        header.resize(header.len().next_multiple_of(8), b' ');
        let n_bytes = (header.len() as u64).to_le_bytes();
        Ok(fs::write(path, [&n_bytes[..], &header, &self.bytes].concat())?)
    }
}
