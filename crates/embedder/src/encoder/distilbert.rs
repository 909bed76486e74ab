//! DistilBERT: BERT without types of texts and with other names.
//!
//! Source: Sanh et al. 2019.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::settings::{Settings, Shape, ShapeKeys};
use super::transformer::{Layer, Norms, Transformer};
use crate::error::Result;
use crate::layers::attention::Order;
use crate::layers::embedding::{Embedding, Positions};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::{Bias, Weights};

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DistilBertConfig {
    pub(super) shape: Shape,
    pub(super) n_positions: usize,
    #[serde(serialize_with = "super::by_name")]
    activation: Activation,
}

impl DistilBertConfig {
    pub(super) fn parse(path: &Path, json: &Value) -> Result<Self> {
        const KEYS: ShapeKeys = ShapeKeys {
            hidden: &["dim"],
            n_layers: &["n_layers"],
            n_heads: &["n_heads"],
            inner: &["hidden_dim"],
            epsilon: &[], // always 1e-12
        };
        let settings = Settings::new(path, json);
        Ok(Self {
            shape: settings.shape(&KEYS, 1e-12)?,
            n_positions: settings.size(&["max_position_embeddings"])?,
            activation: settings.activation_or("activation", "gelu")?,
        })
    }
}

/// Sinusoidal positions are a table in the file like trained ones.
pub(super) fn load(config: &DistilBertConfig, weights: &Weights, precision: Precision) -> Result<Transformer> {
    let weights = weights.encoder(&["distilbert"], "embeddings.word_embeddings.weight");
    let Shape { vocab_size, hidden, epsilon, .. } = config.shape;
    let tables = weights.at("embeddings");
    let words = tables.tensor("word_embeddings.weight", [vocab_size, hidden])?;
    let positions = tables.tensor("position_embeddings.weight", [config.n_positions, hidden])?;
    let layers = weights.at("transformer").at("layer");
    let encoder = Transformer {
        embedding: Embedding::new(&words, Some((&positions, Positions::FromZero)), None, precision)?,
        embedding_norm: Some(tables.at("LayerNorm").norm(hidden, Bias::With, epsilon, precision)?),
        layers: (0..config.shape.n_layers)
            .map(|i| load_layer(config, &layers.at(&i.to_string()), precision))
            .collect::<Result<_>>()?,
        final_norm: None,
    };
    weights.check_all_taken()?;
    Ok(encoder)
}

fn load_layer(config: &DistilBertConfig, weights: &Weights, precision: Precision) -> Result<Layer> {
    let Shape { hidden, inner, epsilon, .. } = config.shape;
    let (attention, network) = (weights.at("attention"), weights.at("ffn"));
    let norm = |name| weights.at(name).norm(hidden, Bias::With, epsilon, precision);
    let linear = |weights: Weights, n_inputs, n_outputs, activation| {
        weights.linear(n_inputs, n_outputs, Bias::With, activation, precision)
    };
    let qkv = ["q_lin", "k_lin", "v_lin"].map(|name| attention.at(name));
    Ok(Layer {
        norms: Norms::Post { attention: norm("sa_layer_norm")?, outer: norm("output_layer_norm")? },
        qkv: Weights::side_by_side(&qkv, hidden, hidden, Bias::With, precision)?,
        attention: config.shape.attention(Order::InRows, None, precision),
        attention_out: linear(attention.at("out_lin"), hidden, hidden, Activation::None)?,
        inner: linear(network.at("lin1"), hidden, inner, config.activation)?,
        gate: None,
        outer: linear(network.at("lin2"), inner, hidden, Activation::None)?,
    })
}
