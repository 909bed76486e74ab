//! MPNet: BERT's layers, RoBERTa's positions, and in every layer the same bias of the scores by distance.
//!
//! Source: Song et al. 2020; the buckets of distances are those of T5 (Raffel et al. 2020).

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::settings::{Settings, Shape, ShapeKeys, SpecialIds};
use super::t5::Buckets;
use super::transformer::{Layer, Norms, Transformer};
use crate::error::Result;
use crate::layers::attention::Order;
use crate::layers::embedding::{Embedding, Positions};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::{Bias, Weights};

/// The padding token's id wherever positions are counted, whatever the configuration says.
const PADDING: u32 = 1;
/// Of distances; the configuration may not say otherwise.
const BUCKETS: Buckets = Buckets::USUAL;

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MpnetConfig {
    pub(super) shape: Shape,
    pub(super) n_position_rows: usize,
    #[serde(serialize_with = "super::by_name")]
    activation: Activation,
    #[serde(skip)]
    pub(super) special_ids: SpecialIds,
}

impl MpnetConfig {
    pub(super) fn parse(path: &Path, json: &Value) -> Result<Self> {
        let settings = Settings::new(path, json);
        settings.only("number of buckets", "relative_attention_num_buckets", "32")?;
        let n_position_rows = settings.size(&["max_position_embeddings"])?;
        if n_position_rows <= PADDING as usize + 1 {
            return Err(settings.damaged(format!("{n_position_rows} positions, all of them before the first")));
        }
        Ok(Self {
            shape: settings.shape(&ShapeKeys::BERT, 1e-12)?,
            n_position_rows,
            activation: settings.activation_or("hidden_act", "gelu")?,
            special_ids: SpecialIds {
                start: settings.id_or_none("bos_token_id")?,
                end: settings.id_or_none("eos_token_id")?,
                padding: Some(PADDING),
            },
        })
    }

    pub(super) fn n_positions(&self) -> usize {
        self.n_position_rows - PADDING as usize - 1
    }
}

pub(super) fn load(config: &MpnetConfig, weights: &Weights, precision: Precision) -> Result<Transformer> {
    let weights = weights.encoder(&["mpnet"], "embeddings.word_embeddings.weight");
    let Shape { vocab_size, hidden, n_heads, epsilon, .. } = config.shape;
    let (tables, encoder) = (weights.at("embeddings"), weights.at("encoder"));
    let words = tables.tensor("word_embeddings.weight", [vocab_size, hidden])?;
    let positions = tables.tensor("position_embeddings.weight", [config.n_position_rows, hidden])?;
    let of_buckets = encoder.vector("relative_attention_bias.weight", [BUCKETS.n, n_heads])?;
    let order = Order::Relative(Arc::new(BUCKETS.by_distance(&of_buckets, n_heads, config.n_positions() - 1)));
    let encoder = Transformer {
        embedding: Embedding::new(&words, Some((&positions, Positions::After { padding: PADDING })), None, precision)?,
        embedding_norm: Some(tables.at("LayerNorm").norm(hidden, Bias::With, epsilon, precision)?),
        layers: (0..config.shape.n_layers)
            .map(|i| load_layer(config, &encoder.at("layer").at(&i.to_string()), &order, precision))
            .collect::<Result<_>>()?,
        final_norm: None,
    };
    weights.check_all_taken()?;
    Ok(encoder)
}

fn load_layer(config: &MpnetConfig, weights: &Weights, order: &Order, precision: Precision) -> Result<Layer> {
    let Shape { hidden, inner, epsilon, .. } = config.shape;
    let (attention, network, output) = (weights.at("attention"), weights.at("intermediate"), weights.at("output"));
    let norm = |weights: &Weights| weights.at("LayerNorm").norm(hidden, Bias::With, epsilon, precision);
    let linear = |weights: Weights, n_inputs, n_outputs, activation| {
        weights.linear(n_inputs, n_outputs, Bias::With, activation, precision)
    };
    let qkv = ["q", "k", "v"].map(|name| attention.at("attn").at(name));
    Ok(Layer {
        norms: Norms::Post { attention: norm(&attention)?, outer: norm(&output)? },
        qkv: Weights::side_by_side(&qkv, hidden, hidden, Bias::With, precision)?,
        attention: config.shape.attention(order.clone(), None, precision),
        attention_out: linear(attention.at("attn").at("o"), hidden, hidden, Activation::None)?,
        inner: linear(network.at("dense"), hidden, inner, config.activation)?,
        gate: None,
        outer: linear(output.at("dense"), inner, hidden, Activation::None)?,
    })
}
