//! T5's encoder: pre-norm layers with norms around zero, scores that are not scaled, one bias of them by distance for
//! all layers, a plain or gated network, and no other bias.
//!
//! Source: Raffel et al. 2020; the gated network: T5 1.1 (Shazeer 2020) and mT5 (Xue et al. 2021).
//! Shapes: A D need not be H.
//! Differs: the decoder of a file that has one is passed over, as sentence-transformers does.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::settings::{self, Settings, Shape, ShapeKeys, SpecialIds};
use super::transformer::{Layer, Norms, Transformer};
use crate::error::Result;
use crate::layers::attention::{Heads, Order, RelativeBias, SelfAttention, Sight};
use crate::layers::embedding::Embedding;
use crate::layers::gate::{Activated, Gate};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::{Bias, Weights};

const KEYS: ShapeKeys = ShapeKeys {
    hidden: &["d_model"],
    n_layers: &["num_layers"],
    n_heads: &["num_heads"],
    inner: &["d_ff"],
    epsilon: &["layer_norm_epsilon"],
};
/// The names of the word vectors; tied in the model, so that files hold one of them or both.
const WORDS: [&str; 2] = ["shared.weight", "encoder.embed_tokens.weight"];
/// Of `d_kv`.
const HEAD_WIDTH: usize = 64;
/// Most heads: eight times those of the largest T5. A table of distances is made for each.
const N_HEADS_MAX: usize = 1 << 10;
/// The longest text where `config.json` has no `n_positions`: there are no positions that could run out.
const N_POSITIONS: usize = 1 << 16;

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct T5Config {
    pub(super) shape: Shape,
    pub(super) n_positions: usize,
    heads: Heads,
    buckets: Buckets,
    #[serde(serialize_with = "super::by_name")]
    activation: Activation,
    gated: bool,
    #[serde(skip)]
    pub(super) special_ids: SpecialIds,
}

impl T5Config {
    /// `network` is the feed-forward network where `config.json` names none: `relu` for T5, `gated-gelu` for mT5.
    pub(super) fn parse(path: &Path, json: &Value, network: &str) -> Result<Self> {
        let settings = Settings::new(path, json);
        settings.only("attention", "is_decoder", "false")?;
        let shape = settings.sizes(&KEYS, 1e-6)?;
        if shape.n_heads > N_HEADS_MAX {
            let n_heads = shape.n_heads;
            return Err(settings.damaged(format!("num_heads is {n_heads}, more than the {N_HEADS_MAX} that can be")));
        }
        let buckets = Buckets {
            n: settings.size_or_none(&["relative_attention_num_buckets"])?.unwrap_or(Buckets::USUAL.n),
            distance_max: settings
                .size_or_none(&["relative_attention_max_distance"])?
                .unwrap_or(Buckets::USUAL.distance_max),
        };
        if buckets.n_exact() == 0 || buckets.distance_max <= buckets.n_exact() {
            let Buckets { n, distance_max } = buckets;
            return Err(settings.damaged(format!("{n} buckets cannot part the distances up to {distance_max}")));
        }
        let (activation, gated) = activation(&settings, settings.text_or("feed_forward_proj", network)?)?;
        Ok(Self {
            shape,
            n_positions: settings.size_or_none(&["n_positions"])?.filter(|&n| n > 0).unwrap_or(N_POSITIONS),
            heads: Heads::alike(shape.n_heads, settings.size_or_none(&["d_kv"])?.unwrap_or(HEAD_WIDTH).max(1)),
            buckets,
            activation,
            gated,
            special_ids: SpecialIds { end: settings.id_or_none("eos_token_id")?, ..SpecialIds::default() },
        })
    }
}

/// The activation of a network named `relu`, `gated-gelu` and the like, and whether the network is gated.
fn activation(settings: &Settings<'_>, network: &str) -> Result<(Activation, bool)> {
    let (name, gated) = match network.strip_prefix("gated-") {
        Some("gelu") => ("gelu_new", true), // as T5 1.1 was trained, whatever it is called
        Some(name) => (name, true),
        None => (network, false),
    };
    let activation = settings::activation(name);
    let supported = "gated- or nothing, then gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, silu, swish, tanh";
    activation
        .map(|activation| (activation, gated))
        .ok_or_else(|| settings.unsupported("feed-forward network", network, supported))
}

/// With distances for texts of `n_positions`.
pub(super) fn load(
    config: &T5Config,
    weights: &Weights,
    n_positions: usize,
    precision: Precision,
) -> Result<Transformer> {
    let Shape { vocab_size, hidden, n_layers, n_heads, epsilon, .. } = config.shape;
    let name = WORDS.into_iter().find(|name| weights.has(name)).unwrap_or(WORDS[0]);
    let words = weights.tensor(name, [vocab_size, hidden])?;
    let (encoder, blocks) = (weights.at("encoder"), weights.at("encoder").at("block"));
    let attention = |block: usize| blocks.at(&block.to_string()).at("layer.0.SelfAttention");
    let of_buckets = attention(0).vector("relative_attention_bias.weight", [config.buckets.n, n_heads])?;
    let order = Order::Relative(Arc::new(config.buckets.by_distance(&of_buckets, n_heads, n_positions.max(1) - 1)));
    let transformer = Transformer {
        embedding: Embedding::new(&words, None, None, precision)?,
        embedding_norm: None,
        layers: (0..n_layers)
            .map(|block| load_layer(config, &blocks.at(&block.to_string()).at("layer"), &order, precision))
            .collect::<Result<_>>()?,
        final_norm: Some(encoder.at("final_layer_norm").rms_norm(hidden, 0.0, epsilon)?),
    };
    weights.check_all_taken()?;
    Ok(transformer)
}

fn load_layer(config: &T5Config, weights: &Weights, order: &Order, precision: Precision) -> Result<Layer> {
    let Shape { hidden, inner, epsilon, .. } = config.shape;
    let heads = config.heads;
    let (attention, network) = (weights.at("0.SelfAttention"), weights.at("1.DenseReluDense"));
    let norm = |part: &str| weights.at(part).at("layer_norm").rms_norm(hidden, 0.0, epsilon);
    let linear = |weights: Weights, n_inputs, n_outputs, activation| {
        weights.linear(n_inputs, n_outputs, Bias::Without, activation, precision)
    };
    let qkv = ["q", "k", "v"].map(|name| attention.at(name));
    let (inner_layer, gate) = if config.gated {
        let halves = ["wi_0", "wi_1"].map(|name| network.at(name));
        let gate = Gate { activation: config.activation, activated: Activated::First };
        (Weights::side_by_side(&halves, hidden, inner, Bias::Without, precision)?, Some(gate))
    } else {
        (linear(network.at("wi"), hidden, inner, config.activation)?, None)
    };
    Ok(Layer {
        norms: Norms::Pre { attention: Some(norm("0")?), inner: norm("1")?, after: None },
        qkv: Weights::side_by_side(&qkv, hidden, heads.queries(), Bias::Without, precision)?,
        attention: SelfAttention {
            heads,
            scale: 1.0, // in the weights of the queries
            order: order.clone(),
            sight: Sight::around(None),
            norms: None,
            precision,
        },
        attention_out: linear(attention.at("o"), heads.queries(), hidden, Activation::None)?,
        inner: inner_layer,
        gate,
        outer: linear(network.at("wo"), inner, hidden, Activation::None)?,
    })
}

/// Buckets of distances between a query and a key.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Buckets {
    /// Half of them are for keys to the right.
    pub(super) n: usize,
    /// From this distance on all are in the last bucket of their side.
    distance_max: usize,
}

impl Buckets {
    /// Those of nearly all models.
    pub(super) const USUAL: Self = Self { n: 32, distance_max: 128 };

    /// Distances with a bucket of their own, on each side.
    fn n_exact(self) -> usize {
        self.n / 4
    }

    /// Values of buckets \[n, A\] as values of distances up to `reach`.
    pub(super) fn by_distance(self, of_buckets: &[f32], n_heads: usize, reach: usize) -> RelativeBias {
        let buckets: Vec<usize> = (0..=2 * reach).map(|at| self.bucket(at as i64 - reach as i64)).collect();
        let values =
            (0..n_heads).flat_map(|head| buckets.iter().map(move |bucket| of_buckets[bucket * n_heads + head]));
        RelativeBias { n_heads, reach, values: values.collect() }
    }

    /// The bucket of a key so far to the right of the query: one each for small distances, then wider and wider.
    fn bucket(self, distance: i64) -> usize {
        let (n_side, n_exact) = (self.n / 2, self.n_exact());
        let side = if distance > 0 { n_side } else { 0 };
        let far = distance.unsigned_abs() as usize;
        if far < n_exact {
            return side + far;
        }
        // in f32, as the reference, whose rounding decides at the borders
        let width = (self.distance_max as f64 / n_exact as f64).ln() as f32;
        let share = (far as f32 / n_exact as f32).ln() / width;
        side + (n_exact + (share * (n_side - n_exact) as f32) as usize).min(n_side - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_widen_with_the_distance() {
        let buckets = |distances: [i64; 7]| distances.map(|distance| Buckets::USUAL.bucket(distance));
        assert_eq!(buckets([0, -1, -7, -8, -11, -12, -15]), [0, 1, 7, 8, 8, 9, 9]);
        assert_eq!(buckets([-16, -22, -23, -32, -64, -127, -5000]), [10, 10, 11, 12, 14, 15, 15]);
        assert_eq!(buckets([1, 7, 8, 16, 32, 64, 128]), [17, 23, 24, 26, 28, 30, 31]);
    }

    #[test]
    fn other_numbers_of_buckets_have_other_borders() {
        let buckets = Buckets { n: 14, distance_max: 50 };
        assert_eq!([0, 2, 3, 4, 50, 5000].map(|far| buckets.bucket(-far)), [0, 2, 3, 3, 6, 6]);
        assert!((1..100).all(|far| buckets.bucket(far) == 7 + buckets.bucket(-far)));
    }
}
