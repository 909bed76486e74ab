//! BERT: word, position and type vectors; post-norm layers with full attention and a plain network.
//!
//! Source: Devlin et al. 2019.
//! Differs: queries, keys and values are one product \[T, 3H\].

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::{ACTIVATIONS, Settings, Shape, activation};
use super::transformer::{Layer, Norms, Transformer};
use crate::error::Result;
use crate::layers::attention::Order;
use crate::layers::embedding::{Embedding, Positions};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::{Bias, Weights};

/// The tensor by which the prefix of all is found.
pub(super) const WORDS: &str = "embeddings.word_embeddings.weight";

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BertConfig {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    pub(super) max_position_embeddings: usize,
    pub(super) type_vocab_size: usize,
    layer_norm_eps: f64,
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
        let settings = Settings::new(path, &json);
        let config = Self::deserialize(&json).map_err(|error| settings.damaged(error.to_string()))?;
        if activation(&config.hidden_act).is_none() {
            return Err(settings.unsupported("activation", &config.hidden_act, ACTIVATIONS));
        }
        if config.position_embedding_type != "absolute" {
            return Err(settings.unsupported("position embedding", &config.position_embedding_type, "absolute"));
        }
        if config.is_decoder {
            let decoder = "decoder (is_decoder = true)";
            return Err(settings.unsupported("attention", decoder, "encoder (is_decoder = false)"));
        }
        for key in ["vocab_size", "intermediate_size", "max_position_embeddings", "type_vocab_size"] {
            settings.size(&[key])?;
        }
        settings.shape(&super::settings::ShapeKeys::BERT, config.layer_norm_eps)?;
        Ok(config)
    }

    pub(super) fn shape(&self) -> Shape {
        Shape {
            vocab_size: self.vocab_size,
            hidden: self.hidden_size,
            n_layers: self.num_hidden_layers,
            n_heads: self.num_attention_heads,
            inner: self.intermediate_size,
            epsilon: self.layer_norm_eps,
        }
    }
}

/// The encoder from tensors named as in Hugging Face transformers, with or without the prefix `bert.`.
pub(super) fn load(config: &BertConfig, weights: &Weights, precision: Precision) -> Result<Transformer> {
    load_encoder(config, Positions::FromZero, &weights.encoder(&["bert"], WORDS), precision)
}

/// The same without a prefix.
pub(super) fn load_encoder(
    config: &BertConfig,
    positions: Positions,
    weights: &Weights,
    precision: Precision,
) -> Result<Transformer> {
    let Shape { vocab_size, hidden, n_layers, epsilon, .. } = config.shape();
    let tables = weights.at("embeddings");
    let words = tables.tensor("word_embeddings.weight", [vocab_size, hidden])?;
    let places = tables.tensor("position_embeddings.weight", [config.max_position_embeddings, hidden])?;
    let kinds = tables.tensor("token_type_embeddings.weight", [config.type_vocab_size, hidden])?;
    let layers = weights.at("encoder").at("layer");
    let encoder = Transformer {
        embedding: Embedding::new(&words, Some((&places, positions)), Some(&kinds), precision)?,
        embedding_norm: Some(tables.at("LayerNorm").norm(hidden, Bias::With, epsilon, precision)?),
        layers: (0..n_layers)
            .map(|i| load_layer(config, &layers.at(&i.to_string()), precision))
            .collect::<Result<_>>()?,
        final_norm: None,
    };
    weights.check_all_taken()?;
    Ok(encoder)
}

fn load_layer(config: &BertConfig, weights: &Weights, precision: Precision) -> Result<Layer> {
    let shape = config.shape();
    let Shape { hidden, inner, epsilon, .. } = shape;
    let activation = activation(&config.hidden_act).expect("checked when the configuration was read");
    let (attention, network, output) = (weights.at("attention"), weights.at("intermediate"), weights.at("output"));
    let norm = |weights: &Weights| weights.at("LayerNorm").norm(hidden, Bias::With, epsilon, precision);
    let linear = |weights: &Weights, n_inputs, n_outputs, activation| {
        weights.at("dense").linear(n_inputs, n_outputs, Bias::With, activation, precision)
    };
    let qkv = ["query", "key", "value"].map(|name| attention.at("self").at(name));
    Ok(Layer {
        norms: Norms::Post { attention: norm(&attention.at("output"))?, outer: norm(&output)? },
        qkv: Weights::side_by_side(&qkv, hidden, hidden, Bias::With, precision)?,
        attention: shape.attention(Order::InRows, None, precision),
        attention_out: linear(&attention.at("output"), hidden, hidden, Activation::None)?,
        inner: linear(&network, hidden, inner, activation)?,
        gate: None,
        outer: linear(&output, inner, hidden, Activation::None)?,
    })
}
