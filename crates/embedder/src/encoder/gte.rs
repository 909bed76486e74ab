//! GTE's "new" BERT: post-norm layers with rotary positions and a gated network.
//!
//! Source: Zhang et al. 2024 (mGTE). Two schemas: that of the published code (`"model_type": "new"`) and that of
//! transformers 5. The rotary scaling `ntk` is that of Su 2023 (kexue.fm/archives/9706, formula 6): base times factor,
//! frequencies over `factor^(2/D)`, at every length.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::settings::{Settings, Shape, ShapeKeys};
use super::transformer::{Layer, Norms, Transformer};
use crate::error::Result;
use crate::layers::attention::{Order, Rotary};
use crate::layers::embedding::Embedding;
use crate::layers::gate::{Activated, Gate};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::{Bias, Weights};

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct GteConfig {
    pub(super) shape: Shape,
    pub(super) n_positions: usize,
    pub(super) n_kinds: usize,
    #[serde(serialize_with = "super::by_name")]
    activation: Activation,
    base: f64,
    /// Of the NTK scaling; 1 where there is none.
    factor: f64,
}

impl GteConfig {
    pub(super) fn parse(path: &Path, json: &Value) -> Result<Self> {
        let settings = Settings::new(path, json);
        settings.only("norm", "layer_norm_type", "layer_norm")?;
        settings.only("position embedding", "position_embedding_type", "rope")?;
        settings.only("setting", "logn_attention_scale", "false")?;
        settings.only("setting", "logn_attention_clip1", "false")?;
        settings.only("setting", "pack_qkv", "true")?;
        let shape = settings.shape(&ShapeKeys::BERT, 1e-12)?;
        settings.check_even_heads(&shape)?;
        Ok(Self {
            shape,
            n_positions: settings.size(&["max_position_embeddings"])?,
            n_kinds: settings.size_or_none(&["type_vocab_size"])?.unwrap_or(1),
            activation: settings.activation_or("hidden_act", "gelu")?,
            base: settings.rotary_base("rope_theta", 160_000.0)?,
            factor: ntk_factor(&settings)?,
        })
    }
}

fn ntk_factor(settings: &Settings<'_>) -> Result<f64> {
    let Some(scaling) = settings.value(&["rope_scaling"]) else { return Ok(1.0) };
    let scaling_settings = settings.part("rope_scaling");
    let kind = scaling_settings.value(&["type", "rope_type"]).and_then(Value::as_str);
    if kind != Some("ntk") || scaling_settings.value(&["mixed_b"]).is_some() {
        return Err(settings.unsupported("rotary scaling", &scaling.to_string(), "none, or ntk without mixed_b"));
    }
    match scaling_settings.number_or_none(&["factor"])? {
        Some(factor) if factor >= 1.0 => Ok(factor),
        factor => Err(settings.damaged(format!("rope_scaling has the factor {factor:?}, not a number of 1 or more"))),
    }
}

/// With tables for `n_positions`.
pub(super) fn load(
    config: &GteConfig,
    weights: &Weights,
    n_positions: usize,
    precision: Precision,
) -> Result<Transformer> {
    let weights = weights.encoder(&["new", "gte"], "embeddings.word_embeddings.weight");
    let Shape { vocab_size, hidden, epsilon, .. } = config.shape;
    let tables = weights.at("embeddings");
    let words = tables.tensor("word_embeddings.weight", [vocab_size, hidden])?;
    let kinds = match config.n_kinds {
        0 => None,
        n_kinds => Some(tables.tensor("token_type_embeddings.weight", [n_kinds, hidden])?),
    };
    let head = config.shape.head();
    let slower = config.factor.powf(2.0 / head as f64);
    let order = Order::Rotary(Arc::new(Rotary::slower(head, config.base * config.factor, slower, n_positions)));
    let layers = weights.at("encoder").at("layer");
    let encoder = Transformer {
        embedding: Embedding::new(&words, None, kinds.as_ref(), precision)?,
        embedding_norm: Some(tables.at("LayerNorm").norm(hidden, Bias::With, epsilon, precision)?),
        layers: (0..config.shape.n_layers)
            .map(|i| load_layer(config, &layers.at(&i.to_string()), &order, precision))
            .collect::<Result<_>>()?,
        final_norm: None,
    };
    weights.check_all_taken()?;
    Ok(encoder)
}

fn load_layer(config: &GteConfig, weights: &Weights, order: &Order, precision: Precision) -> Result<Layer> {
    let Shape { hidden, inner, epsilon, .. } = config.shape;
    let (attention, network) = (weights.at("attention"), weights.at("mlp"));
    let norm = |name| weights.at(name).norm(hidden, Bias::With, epsilon, precision);
    let linear = |weights: Weights, n_inputs, n_outputs, bias| {
        weights.linear(n_inputs, n_outputs, bias, Activation::None, precision)
    };
    Ok(Layer {
        norms: Norms::Post { attention: norm("attn_ln")?, outer: norm("mlp_ln")? },
        qkv: linear(attention.at("qkv_proj"), hidden, 3 * hidden, Bias::With)?,
        attention: config.shape.attention(order.clone(), None, precision),
        attention_out: linear(attention.at("o_proj"), hidden, hidden, Bias::With)?,
        inner: linear(network.at("up_gate_proj"), hidden, 2 * inner, Bias::Without)?,
        gate: Some(Gate { activation: config.activation, activated: Activated::Second }),
        outer: linear(network.at("down_proj"), inner, hidden, Bias::With)?,
    })
}
