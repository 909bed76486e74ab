//! BERT: word and position vectors, then layers of self-attention and a two-layer network, each with its residual and norm.
//!
//! Source: Devlin et al. 2019; tensor names as in Hugging Face transformers, with or without the prefix `bert.`.
//! Shapes: T tokens of all texts, packed, H hidden, F inner; every hidden tensor is \[T, H\].
//! Differs: queries, keys and values are one product \[T, 3H\]; texts are packed, so there is no padding and no mask.

use std::path::Path;

use candle_core::Tensor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::layers::attention::SelfAttention;
use crate::layers::embedding::Embedding;
use crate::layers::linear::{Activation, Linear};
use crate::layers::norm::LayerNorm;
use crate::pack::Batch;
use crate::weights::Weights;

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BertConfig {
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) max_position_embeddings: usize,
    pub(crate) type_vocab_size: usize,
    pub(crate) layer_norm_eps: f64,
    hidden_act: String,
    #[serde(default = "absolute")]
    position_embedding_type: String,
    #[serde(default)]
    is_decoder: bool,
}

fn absolute() -> String {
    "absolute".to_owned()
}

impl BertConfig {
    pub(super) fn parse(path: &Path, json: Value) -> Result<Self> {
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        let config: Self = serde_json::from_value(json).map_err(|error| damaged(error.to_string()))?;
        let unsupported = |what, name: &str, supported| Error::Unsupported {
            path: path.to_owned(),
            what,
            name: name.to_owned(),
            supported,
        };
        if config.hidden_act != "gelu" {
            return Err(unsupported("activation", &config.hidden_act, "gelu"));
        }
        if config.position_embedding_type != "absolute" {
            return Err(unsupported("position embedding", &config.position_embedding_type, "absolute"));
        }
        if config.is_decoder {
            return Err(unsupported("attention", "decoder (is_decoder = true)", "encoder (is_decoder = false)"));
        }
        let sizes = [
            ("vocab_size", config.vocab_size),
            ("hidden_size", config.hidden_size),
            ("num_attention_heads", config.num_attention_heads),
            ("intermediate_size", config.intermediate_size),
            ("max_position_embeddings", config.max_position_embeddings),
            ("type_vocab_size", config.type_vocab_size),
        ];
        if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(damaged(format!("{name} is 0")));
        }
        if !config.hidden_size.is_multiple_of(config.num_attention_heads) {
            let (hidden, heads) = (config.hidden_size, config.num_attention_heads);
            return Err(damaged(format!("hidden_size {hidden} is not a multiple of num_attention_heads {heads}")));
        }
        Ok(config)
    }
}

/// The encoder with its weights.
#[derive(Debug)]
pub(crate) struct Bert {
    embedding: Embedding,
    embedding_norm: LayerNorm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    qkv: Linear,
    attention: SelfAttention,
    attention_out: Linear,
    attention_norm: LayerNorm,
    inner: Linear,
    outer: Linear,
    norm: LayerNorm,
}

impl Bert {
    pub(super) fn load(config: &BertConfig, weights: &Weights) -> Result<Self> {
        let weights = weights.encoder(&["bert"], "embeddings.word_embeddings.weight");
        let BertConfig { vocab_size, hidden_size: hidden, max_position_embeddings, type_vocab_size, .. } = *config;
        let tables = weights.at("embeddings");
        let words = tables.tensor("word_embeddings.weight", [vocab_size, hidden])?;
        let positions = tables.tensor("position_embeddings.weight", [max_position_embeddings, hidden])?;
        let kinds = tables.tensor("token_type_embeddings.weight", [type_vocab_size, hidden])?;
        let layers = weights.at("encoder").at("layer");
        let bert = Self {
            embedding: Embedding::new(&words, &positions, &kinds.get(0)?)?,
            embedding_norm: load_norm(config, &tables)?,
            layers: (0..config.num_hidden_layers)
                .map(|i| Layer::load(config, &layers.at(&i.to_string())))
                .collect::<Result<_>>()?,
        };
        weights.check_all_taken()?;
        Ok(bert)
    }

    /// T tokens → \[T, H\].
    pub(super) fn forward(&self, batch: &Batch) -> candle_core::Result<Tensor> {
        let mut hidden = self.embedding_norm.forward(&self.embedding.forward(batch)?)?;
        for layer in &self.layers {
            hidden = layer.forward(&hidden, batch)?;
        }
        Ok(hidden)
    }
}

impl Layer {
    fn load(config: &BertConfig, weights: &Weights) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let attention = weights.at("attention");
        let part = |name: &str| attention.at("self").at(name);
        let (query, key, value) = (part("query"), part("key"), part("value"));
        let qkv_weight = [&query, &key, &value].map(|part| part.tensor("weight", [hidden, hidden]));
        let qkv_bias = [&query, &key, &value].map(|part| part.tensor("bias", [hidden]));
        let qkv_weight = Tensor::cat(&qkv_weight.into_iter().collect::<Result<Vec<_>>>()?, 0)?; // [3H, H]
        let qkv_bias = Tensor::cat(&qkv_bias.into_iter().collect::<Result<Vec<_>>>()?, 0)?; // [3H]
        let dense = |weights: &Weights, n_inputs, n_outputs, activation| -> Result<Linear> {
            let weights = weights.at("dense");
            let (weight, bias) =
                (weights.tensor("weight", [n_outputs, n_inputs])?, weights.tensor("bias", [n_outputs])?);
            Ok(Linear::new(&weight, &bias, activation)?)
        };
        Ok(Self {
            qkv: Linear::new(&qkv_weight, &qkv_bias, Activation::None)?,
            attention: SelfAttention { n_heads: config.num_attention_heads },
            attention_out: dense(&attention.at("output"), hidden, hidden, Activation::None)?,
            attention_norm: load_norm(config, &attention.at("output"))?,
            inner: dense(&weights.at("intermediate"), hidden, inner, Activation::Gelu)?,
            outer: dense(&weights.at("output"), inner, hidden, Activation::None)?,
            norm: load_norm(config, &weights.at("output"))?,
        })
    }

    fn forward(&self, hidden: &Tensor, batch: &Batch) -> candle_core::Result<Tensor> {
        let context = self.attention.forward(&self.qkv.forward(hidden)?, &batch.spans)?;
        let hidden = self.attention_norm.forward_sum(&self.attention_out.forward(&context)?, hidden)?;
        let inner = self.inner.forward(&hidden)?; // [T, F]
        self.norm.forward_sum(&self.outer.forward(&inner)?, &hidden)
    }
}

/// Older files call the scale `gamma` and the shift `beta`.
fn load_norm(config: &BertConfig, weights: &Weights) -> Result<LayerNorm> {
    let weights = weights.at("LayerNorm");
    let (scale, shift) = if weights.has("gamma") { ("gamma", "beta") } else { ("weight", "bias") };
    let (scale, shift) = (weights.tensor(scale, [config.hidden_size])?, weights.tensor(shift, [config.hidden_size])?);
    Ok(LayerNorm::new(&scale, &shift, config.layer_norm_eps)?)
}
