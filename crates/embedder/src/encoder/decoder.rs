//! Language models' decoder blocks as encoders: pre-norm layers with norms around zero, heads that share keys and
//! values, normalised queries and keys, rotary positions and a gated network, all without biases.
//!
//! Source: Touvron et al. 2023 (the block), Yang et al. 2025 (Qwen3), Gemma Team 2025 (Gemma 3).
//! Shapes: A D need not be H.
//!
//! The architectures' own files read `config.json`; their tensors have the same names.

pub(super) mod gemma3;
pub(super) mod qwen3;

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use serde::Serialize;

use super::settings::{Reach, Settings, Shape};
use super::transformer::{After, Layer, Norms, Transformer};
use crate::error::Result;
use crate::layers::attention::{Heads, Order, Rotary, SelfAttention, Sight};
use crate::layers::embedding::Embedding;
use crate::layers::gate::{Activated, Gate};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::{Bias, Weights};

/// The tensor by which the prefix of all is found.
pub(crate) const WORDS: &str = "embed_tokens.weight";
/// Prefixes of all tensors in files of whole language models.
pub(crate) const PREFIXES: [&str; 1] = ["model"];

/// The widest head: four times the widest that is known. Tables of positions are made for it before its weights are
/// looked at.
const HEAD_WIDTH_MAX: usize = 1 << 10;

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct DecoderConfig {
    pub(super) shape: Shape,
    pub(super) n_positions: usize,
    pub(super) heads: Heads,
    /// Scores are divided by its root.
    pub(super) score_divisor: f64,
    #[serde(serialize_with = "super::by_name")]
    pub(super) activation: Activation,
    /// For each layer how far a token sees.
    pub(super) reaches: Vec<Reach>,
    /// Of a local layer: tokens that are seen before a token, and behind it where `is_causal` does not hold.
    pub(super) window: Option<usize>,
    pub(super) is_causal: bool,
    pub(super) global_base: f64,
    pub(super) local_base: f64,
    pub(super) family: Family,
    /// True if the language model's output has the word vectors for weights.
    #[serde(skip)]
    pub(super) ties_words: bool,
}

/// The family of a decoder, which decides on norms and on the scale of word vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Family {
    /// Two norms a layer, by their weights.
    Qwen,
    /// Four norms a layer, by their weights plus one; word vectors times √H.
    Gemma,
}

impl DecoderConfig {
    /// True if the language model's output has the word vectors for weights.
    pub(crate) fn ties_words(&self) -> bool {
        self.ties_words
    }

    /// V and H.
    pub(crate) fn table(&self) -> [usize; 2] {
        [self.shape.vocab_size, self.shape.hidden]
    }
}

/// The heads, and settings that no decoder is computed with.
pub(super) fn heads(settings: &Settings<'_>, shape: &Shape, default_width: usize) -> Result<Heads> {
    settings.only("setting", "attention_bias", "false")?;
    settings.only("share of rotated dimensions", "partial_rotary_factor", "1")?;
    for (what, key) in [("rotary scaling", "rope_scaling"), ("quantisation", "quantization_config")] {
        if let Some(value) = settings.value(&[key]) {
            return Err(settings.unsupported(what, &value.to_string(), "none"));
        }
    }
    if let Some(cap) = settings.value(&["attn_logit_softcapping"]) {
        return Err(settings.unsupported(
            "cap on attention scores",
            &format!("attn_logit_softcapping = {cap}"),
            "none",
        ));
    }
    let heads = Heads {
        n: shape.n_heads,
        n_shared: settings.size_or_none(&["num_key_value_heads"])?.unwrap_or(shape.n_heads),
        width: settings.size_or_none(&["head_dim"])?.unwrap_or(default_width),
    };
    let Heads { n, n_shared, width } = heads;
    if n_shared == 0 || !n.is_multiple_of(n_shared) {
        return Err(settings.damaged(format!("num_attention_heads {n} is not a multiple of {n_shared} shared ones")));
    }
    if width == 0 || !width.is_multiple_of(2) {
        return Err(settings.damaged(format!("heads of {width} dimensions cannot be rotated in pairs")));
    }
    if width > HEAD_WIDTH_MAX {
        return Err(
            settings.damaged(format!("heads of {width} dimensions, more than the {HEAD_WIDTH_MAX} that can be"))
        );
    }
    Ok(heads)
}

/// With tables for `n_positions`.
pub(super) fn load(
    config: &DecoderConfig,
    weights: &Weights,
    n_positions: usize,
    precision: Precision,
) -> Result<Transformer> {
    let weights = weights.encoder(&PREFIXES, WORDS);
    let Shape { hidden, epsilon, .. } = config.shape;
    let mut words = weights.tensor(WORDS, config.table())?;
    if config.family == Family::Gemma {
        words = (words * word_scale(hidden, precision)?)?;
    }
    let rotary = |base| Order::Rotary(Arc::new(Rotary::new(config.heads.width, base, n_positions)));
    let (global, local) = (rotary(config.global_base), rotary(config.local_base));
    let sight = if config.is_causal { Sight::behind } else { Sight::around };
    let layer = |(number, reach): (usize, &Reach)| {
        let weights = weights.at("layers").at(&number.to_string());
        let (order, sight) = match reach {
            Reach::Global => (&global, sight(None)),
            Reach::Local => (&local, sight(config.window)),
        };
        load_layer(config, &weights, order, sight, precision)
    };
    let encoder = Transformer {
        embedding: Embedding::new(&words, None, None, precision)?,
        embedding_norm: None,
        layers: config.reaches.iter().enumerate().map(layer).collect::<Result<_>>()?,
        final_norm: Some(weights.at("norm").rms_norm(hidden, config.offset(), epsilon)?),
    };
    weights.check_all_taken()?;
    Ok(encoder)
}

impl DecoderConfig {
    /// The number added to the weights of every norm.
    fn offset(&self) -> f64 {
        match self.family {
            Family::Qwen => 0.0,
            Family::Gemma => 1.0,
        }
    }
}

/// √H as the reference rounds it: to the number type of the word vectors.
fn word_scale(hidden: usize, precision: Precision) -> Result<f64> {
    let dtype = match precision {
        Precision::F32 | Precision::Int8 => DType::F32,
        Precision::Bf16 => DType::BF16,
        Precision::F16 => DType::F16,
    };
    let root = Tensor::new((hidden as f64).sqrt(), &Device::Cpu)?;
    Ok(root.to_dtype(dtype)?.to_dtype(DType::F64)?.to_scalar()?)
}

fn load_layer(
    config: &DecoderConfig,
    weights: &Weights,
    order: &Order,
    sight: Sight,
    precision: Precision,
) -> Result<Layer> {
    let Shape { hidden, inner, epsilon, .. } = config.shape;
    let heads = config.heads;
    let (attention, network) = (weights.at("self_attn"), weights.at("mlp"));
    let norm = |weights: Weights, width| weights.rms_norm(width, config.offset(), epsilon);
    let norms = match config.family {
        Family::Qwen => Norms::Pre {
            attention: Some(norm(weights.at("input_layernorm"), hidden)?),
            inner: norm(weights.at("post_attention_layernorm"), hidden)?,
            after: None,
        },
        Family::Gemma => Norms::Pre {
            attention: Some(norm(weights.at("input_layernorm"), hidden)?),
            inner: norm(weights.at("pre_feedforward_layernorm"), hidden)?,
            after: Some(After {
                attention: norm(weights.at("post_attention_layernorm"), hidden)?,
                outer: norm(weights.at("post_feedforward_layernorm"), hidden)?,
            }),
        },
    };
    let qkv = [("q_proj", heads.queries()), ("k_proj", heads.keys()), ("v_proj", heads.keys())];
    let halves = ["gate_proj", "up_proj"].map(|name| network.at(name));
    let linear =
        |weights: Weights, n_inputs| weights.linear(n_inputs, hidden, Bias::Without, Activation::None, precision);
    Ok(Layer {
        norms,
        qkv: Weights::stacked(&qkv.map(|(name, width)| (attention.at(name), width)), hidden, precision)?,
        attention: SelfAttention {
            heads,
            scale: config.score_divisor.powf(-0.5) as f32,
            order: order.clone(),
            sight,
            norms: Some([norm(attention.at("q_norm"), heads.width)?, norm(attention.at("k_norm"), heads.width)?]),
            precision,
        },
        attention_out: linear(attention.at("o_proj"), heads.queries())?,
        inner: Weights::side_by_side(&halves, hidden, inner, Bias::Without, precision)?,
        gate: Some(Gate { activation: config.activation, activated: Activated::First }),
        outer: linear(network.at("down_proj"), inner)?,
    })
}
