//! ModernBERT: pre-norm layers with rotary positions and a gated network; most of them see only nearby tokens.
//!
//! Source: Warner et al. 2024.
//! Differs: nothing is dropped for padding, texts are packed.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::settings::{Reach, Settings, Shape, ShapeKeys, SpecialIds};
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
pub(crate) struct ModernBertConfig {
    pub(super) shape: Shape,
    pub(super) n_positions: usize,
    #[serde(serialize_with = "super::by_name")]
    activation: Activation,
    /// For each layer how far a token sees.
    pub(super) reaches: Vec<Reach>,
    /// A local layer's token sees this many others on either side.
    window: usize,
    global_base: f64,
    local_base: f64,
    attention_bias: bool,
    network_bias: bool,
    pub(super) norm_bias: bool,
    #[serde(skip)]
    pub(super) special_ids: SpecialIds,
}

impl ModernBertConfig {
    pub(super) fn parse(path: &Path, json: &Value) -> Result<Self> {
        const KEYS: ShapeKeys = ShapeKeys { epsilon: &["norm_eps"], ..ShapeKeys::BERT };
        let settings = Settings::new(path, json);
        let shape = settings.shape(&KEYS, 1e-5)?;
        settings.check_even_heads(&shape)?;
        if let Some(scaling) = settings.value(&["rope_scaling"]) {
            return Err(settings.unsupported("rotary scaling", &scaling.to_string(), "none"));
        }
        let (global_base, local_base) = rotary_bases(&settings)?;
        Ok(Self {
            shape,
            n_positions: settings.size(&["max_position_embeddings"])?,
            activation: settings.activation_or("hidden_activation", "gelu")?,
            reaches: reaches(&settings, shape.n_layers)?,
            window: settings.size_or_none(&["local_attention"])?.unwrap_or(128) / 2,
            global_base,
            local_base,
            attention_bias: settings.flag_or("attention_bias", false)?,
            network_bias: settings.flag_or("mlp_bias", false)?,
            norm_bias: settings.flag_or("norm_bias", false)?,
            special_ids: SpecialIds {
                start: settings.id_or_none("cls_token_id")?,
                end: settings.id_or_none("sep_token_id")?,
                padding: None,
            },
        })
    }
}

impl ModernBertConfig {
    /// Addend to a norm's variance, that of the head too.
    pub(crate) fn epsilon(&self) -> f64 {
        self.shape.epsilon
    }
}

/// `layer_types` of transformers 5, or every so many-th layer global, from the first on.
fn reaches(settings: &Settings<'_>, n_layers: usize) -> Result<Vec<Reach>> {
    if let Some(reaches) = settings.reaches_or_none(n_layers)? {
        return Ok(reaches);
    }
    let period = settings.size_or_none(&["global_attn_every_n_layers"])?.unwrap_or(3).max(1);
    let reach = |layer: usize| if layer.is_multiple_of(period) { Reach::Global } else { Reach::Local };
    Ok((0..n_layers).map(reach).collect())
}

/// Of global and local layers: `rope_parameters` of transformers 5, or two keys, of which the local one may be null: as
/// global.
fn rotary_bases(settings: &Settings<'_>) -> Result<(f64, f64)> {
    let parameters = settings.part("rope_parameters");
    let (global, local) = (parameters.part("full_attention"), parameters.part("sliding_attention"));
    for part in [global, local] {
        part.only("rotary positions", "rope_type", "default")?;
    }
    let old_global = settings.number_or_none(&["global_rope_theta"])?;
    let old_local = settings.number_or_none(&["local_rope_theta"])?;
    let global_base = global.number_or_none(&["rope_theta"])?.or(old_global).unwrap_or(160_000.0);
    let default_local = if old_global.is_some() { global_base } else { 10_000.0 };
    Ok((global_base, local.number_or_none(&["rope_theta"])?.or(old_local).unwrap_or(default_local)))
}

/// With tables for `n_positions`.
pub(super) fn load(
    config: &ModernBertConfig,
    weights: &Weights,
    n_positions: usize,
    precision: Precision,
) -> Result<Transformer> {
    let weights = weights.encoder(&["model"], "embeddings.tok_embeddings.weight");
    let Shape { vocab_size, hidden, epsilon, .. } = config.shape;
    let words = weights.at("embeddings").tensor("tok_embeddings.weight", [vocab_size, hidden])?;
    let norm = |weights: Weights| weights.norm(hidden, Bias::if_set(config.norm_bias), epsilon, precision);
    let rotary = |base| Order::Rotary(Arc::new(Rotary::new(config.shape.head(), base, n_positions)));
    let (global, local) = (rotary(config.global_base), rotary(config.local_base));
    let layer = |(number, reach): (usize, &Reach)| {
        let weights = weights.at("layers").at(&number.to_string());
        let (order, window) = match reach {
            Reach::Global => (&global, None),
            Reach::Local => (&local, Some(config.window)),
        };
        let norms = Norms::Pre {
            attention: (number > 0).then(|| norm(weights.at("attn_norm"))).transpose()?,
            inner: norm(weights.at("mlp_norm"))?,
            after: None,
        };
        load_layer(config, &weights, norms, order, window, precision)
    };
    let encoder = Transformer {
        embedding: Embedding::new(&words, None, None, precision)?,
        embedding_norm: Some(norm(weights.at("embeddings").at("norm"))?),
        layers: config.reaches.iter().enumerate().map(layer).collect::<Result<_>>()?,
        final_norm: Some(norm(weights.at("final_norm"))?),
    };
    weights.check_all_taken()?;
    Ok(encoder)
}

fn load_layer(
    config: &ModernBertConfig,
    weights: &Weights,
    norms: Norms,
    order: &Order,
    window: Option<usize>,
    precision: Precision,
) -> Result<Layer> {
    let Shape { hidden, inner, .. } = config.shape;
    let (attention, network) = (weights.at("attn"), weights.at("mlp"));
    let linear = |weights: Weights, n_inputs, n_outputs, bias| {
        weights.linear(n_inputs, n_outputs, Bias::if_set(bias), Activation::None, precision)
    };
    Ok(Layer {
        norms,
        qkv: linear(attention.at("Wqkv"), hidden, 3 * hidden, config.attention_bias)?,
        attention: config.shape.attention(order.clone(), window, precision),
        attention_out: linear(attention.at("Wo"), hidden, hidden, config.attention_bias)?,
        inner: linear(network.at("Wi"), hidden, 2 * inner, config.network_bias)?,
        gate: Some(Gate { activation: config.activation, activated: Activated::First }),
        outer: linear(network.at("Wo"), inner, hidden, config.network_bias)?,
    })
}
