//! Nomic BERT: post-norm layers with rotary positions, a gated network, and hardly a bias.
//!
//! Source: Nussbaum et al. 2024. Two schemas: that of the published code, after GPT-2's names, and that of
//! transformers 5.

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
pub(crate) struct NomicConfig {
    pub(super) shape: Shape,
    pub(super) n_positions: usize,
    pub(super) n_kinds: usize,
    #[serde(serialize_with = "super::by_name")]
    activation: Activation,
    base: f64,
    attention_bias: bool,
    inner_bias: bool,
    outer_bias: bool,
}

impl NomicConfig {
    pub(super) fn parse(path: &Path, json: &Value) -> Result<Self> {
        const KEYS: ShapeKeys = ShapeKeys {
            hidden: &["hidden_size", "n_embd"],
            n_layers: &["num_hidden_layers", "n_layer"],
            n_heads: &["num_attention_heads", "n_head"],
            inner: &["intermediate_size", "n_inner"],
            epsilon: &["layer_norm_eps", "layer_norm_epsilon"],
        };
        let settings = Settings::new(path, json);
        for flag in ["prenorm", "parallel_block", "use_rms_norm", "causal", "rotary_emb_interleaved"] {
            settings.only("setting", flag, "false")?;
        }
        settings.only("share of rotated dimensions", "rotary_emb_fraction", "1")?;
        for key in ["rotary_emb_scale_base", "rotary_scaling_factor", "rope_scaling"] {
            if let Some(value) = settings.value(&[key]) {
                return Err(settings.unsupported("rotary scaling", &format!("{key} = {value}"), "none"));
            }
        }
        if settings.size_or_none(&["num_experts"])?.is_some_and(|n| n > 0) {
            return Err(settings.unsupported("network", "mixture of experts", "one network a layer"));
        }
        let mut shape = settings.shape(&KEYS, 1e-12)?;
        settings.check_even_heads(&shape)?;
        // the table of words may have rows to spare
        let multiple = settings.size_or_none(&["pad_vocab_size_multiple"])?.unwrap_or(1).max(1);
        shape.vocab_size = shape.vocab_size.next_multiple_of(multiple);
        // only the published code's schema has this key; biases are on there unless switched off, and absent in the
        // other
        let old = settings.value(&["activation_function"]).is_some();
        let activation = if old {
            match settings.text_or("activation_function", "")? {
                "swiglu" => Activation::Silu,
                "geglu" => Activation::Gelu,
                other => return Err(settings.unsupported("activation", other, "swiglu, geglu")),
            }
        } else {
            settings.activation_or("hidden_act", "silu")?
        };
        let n_positions =
            [settings.size_or_none(&["n_positions"])?, settings.size_or_none(&["max_position_embeddings"])?];
        let Some(n_positions) = n_positions.into_iter().flatten().max() else {
            return Err(settings.damaged("missing field `max_position_embeddings`".to_owned()));
        };
        Ok(Self {
            shape,
            n_positions,
            n_kinds: settings.size_or_none(&["type_vocab_size"])?.unwrap_or(2),
            activation,
            base: settings.rotary_base("rotary_emb_base", if old { 10_000.0 } else { 1000.0 })?,
            attention_bias: settings.flag_or("qkv_proj_bias", old)?,
            inner_bias: settings.flag_or("mlp_fc1_bias", old)?,
            outer_bias: settings.flag_or("mlp_fc2_bias", old)?,
        })
    }
}

/// With tables for `n_positions`.
pub(super) fn load(
    config: &NomicConfig,
    weights: &Weights,
    n_positions: usize,
    precision: Precision,
) -> Result<Transformer> {
    let weights = weights.encoder(&["bert", "nomic_bert"], "embeddings.word_embeddings.weight");
    let Shape { vocab_size, hidden, epsilon, .. } = config.shape;
    let tables = weights.at("embeddings");
    let words = tables.tensor("word_embeddings.weight", [vocab_size, hidden])?;
    let kinds = match config.n_kinds {
        0 => None,
        n_kinds => Some(tables.tensor("token_type_embeddings.weight", [n_kinds, hidden])?),
    };
    let order = Order::Rotary(Arc::new(Rotary::new(config.shape.head(), config.base, n_positions)));
    let layers = weights.at("encoder").at("layers");
    let encoder = Transformer {
        embedding: Embedding::new(&words, None, kinds.as_ref(), precision)?,
        embedding_norm: Some(weights.at("emb_ln").norm(hidden, Bias::With, epsilon, precision)?),
        layers: (0..config.shape.n_layers)
            .map(|i| load_layer(config, &layers.at(&i.to_string()), &order, precision))
            .collect::<Result<_>>()?,
        final_norm: None,
    };
    weights.check_all_taken()?;
    Ok(encoder)
}

fn load_layer(config: &NomicConfig, weights: &Weights, order: &Order, precision: Precision) -> Result<Layer> {
    let Shape { hidden, inner, epsilon, .. } = config.shape;
    let (attention, network) = (weights.at("attn"), weights.at("mlp"));
    let norm = |name| weights.at(name).norm(hidden, Bias::With, epsilon, precision);
    let linear = |weights: Weights, n_inputs, n_outputs, bias| {
        weights.linear(n_inputs, n_outputs, Bias::if_set(bias), Activation::None, precision)
    };
    let halves = ["fc11", "fc12"].map(|name| network.at(name));
    Ok(Layer {
        norms: Norms::Post { attention: norm("norm1")?, outer: norm("norm2")? },
        qkv: linear(attention.at("Wqkv"), hidden, 3 * hidden, config.attention_bias)?,
        attention: config.shape.attention(order.clone(), None, precision),
        attention_out: linear(attention.at("out_proj"), hidden, hidden, config.attention_bias)?,
        inner: Weights::side_by_side(&halves, hidden, inner, Bias::if_set(config.inner_bias), precision)?,
        gate: Some(Gate { activation: config.activation, activated: Activated::Second }),
        outer: linear(network.at("fc2"), inner, hidden, config.outer_bias)?,
    })
}
