//! Jina's second BERT: no position vectors; scores fall linearly with distance (ALiBi); a gated network.
//!
//! Source: Günther et al. 2023 (arXiv 2310.19923); ALiBi: Press et al. 2022, here without a direction.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::settings::{Settings, Shape, ShapeKeys};
use super::transformer::{Layer, Norms, Transformer};
use crate::error::Result;
use crate::layers::attention::{Order, RelativeBias};
use crate::layers::embedding::Embedding;
use crate::layers::gate::{Activated, Gate};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::{Bias, Weights};

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct JinaConfig {
    pub(super) shape: Shape,
    pub(super) n_positions: usize,
    pub(super) n_kinds: usize,
    #[serde(serialize_with = "super::by_name")]
    activation: Activation,
}

impl JinaConfig {
    pub(super) fn parse(path: &Path, json: &Value) -> Result<Self> {
        let settings = Settings::new(path, json);
        settings.only("attention", "is_decoder", "false")?;
        settings.only("scaling of distances", "alibi_scaling", "1")?;
        if json["auto_map"].to_string().contains("qk-post-norm") {
            return Err(settings.unsupported("attention", "norms of queries and keys", "jina-bert-implementation"));
        }
        let activation = match settings.text_or("feed_forward_type", "original")? {
            "geglu" => Activation::Gelu,
            "reglu" => Activation::Relu,
            other => return Err(settings.unsupported("network", other, "geglu, reglu")),
        };
        Ok(Self {
            shape: settings.shape(&ShapeKeys::BERT, 1e-12)?,
            n_positions: settings.size(&["max_position_embeddings"])?,
            n_kinds: settings.size(&["type_vocab_size"])?,
            activation,
        })
    }
}

/// With distances for texts of `n_positions`.
pub(super) fn load(
    config: &JinaConfig,
    weights: &Weights,
    n_positions: usize,
    precision: Precision,
) -> Result<Transformer> {
    let weights = weights.encoder(&["bert"], "embeddings.word_embeddings.weight");
    let Shape { vocab_size, hidden, n_heads, epsilon, .. } = config.shape;
    let tables = weights.at("embeddings");
    let words = tables.tensor("word_embeddings.weight", [vocab_size, hidden])?;
    let kinds = tables.tensor("token_type_embeddings.weight", [config.n_kinds, hidden])?;
    let order = Order::Relative(Arc::new(by_distance(n_heads, n_positions.max(1) - 1)));
    let layers = weights.at("encoder").at("layer");
    let encoder = Transformer {
        embedding: Embedding::new(&words, None, Some(&kinds), precision)?,
        embedding_norm: Some(tables.at("LayerNorm").norm(hidden, Bias::With, epsilon, precision)?),
        layers: (0..config.shape.n_layers)
            .map(|i| load_layer(config, &layers.at(&i.to_string()), &order, precision))
            .collect::<Result<_>>()?,
        final_norm: None,
    };
    weights.check_all_taken()?;
    Ok(encoder)
}

fn load_layer(config: &JinaConfig, weights: &Weights, order: &Order, precision: Precision) -> Result<Layer> {
    let Shape { hidden, inner, epsilon, .. } = config.shape;
    let (attention, network) = (weights.at("attention"), weights.at("mlp"));
    let norm = |weights: Weights| weights.norm(hidden, Bias::With, epsilon, precision);
    let linear = |weights: Weights, n_inputs, n_outputs, bias| {
        weights.linear(n_inputs, n_outputs, bias, Activation::None, precision)
    };
    let qkv = ["query", "key", "value"].map(|name| attention.at("self").at(name));
    Ok(Layer {
        norms: Norms::Post {
            attention: norm(attention.at("output").at("LayerNorm"))?,
            outer: norm(network.at("layernorm"))?,
        },
        qkv: Weights::side_by_side(&qkv, hidden, hidden, Bias::With, precision)?,
        attention: config.shape.attention(order.clone(), None, precision),
        attention_out: linear(attention.at("output").at("dense"), hidden, hidden, Bias::With)?,
        inner: linear(network.at("gated_layers"), hidden, 2 * inner, Bias::Without)?,
        gate: Some(Gate { activation: config.activation, activated: Activated::First }),
        outer: linear(network.at("wo"), inner, hidden, Bias::With)?,
    })
}

/// Minus slope times distance, for distances up to `reach`.
fn by_distance(n_heads: usize, reach: usize) -> RelativeBias {
    let distances = || (0..=2 * reach).map(|at| at.abs_diff(reach) as f32);
    let values = slopes(n_heads).into_iter().flat_map(|slope| distances().map(move |distance| -slope * distance));
    RelativeBias { n_heads, reach, values: values.collect() }
}

/// One a head: powers of 2^(-8/n) for n heads, a power of two; for other numbers those of the power of two below, then
/// every other one of the power of two above.
fn slopes(n_heads: usize) -> Vec<f32> {
    let powers = |n: usize| (1..=n).map(move |head| 2f64.powf(-8.0 * head as f64 / n as f64) as f32);
    if n_heads.is_power_of_two() {
        return powers(n_heads).collect();
    }
    let below = n_heads.next_power_of_two() / 2;
    powers(below).chain(powers(2 * below).step_by(2).take(n_heads - below)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_the_published_ones() {
        assert_eq!(slopes(8), [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]);
        assert_eq!(slopes(4), [0.25, 0.0625, 0.015625, 0.00390625]);
        assert_eq!(slopes(6), [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]);
        assert_eq!(slopes(1), [0.00390625]);
    }

    #[test]
    fn the_bias_falls_with_the_distance_to_either_side() {
        assert_eq!(by_distance(4, 2).values[..5], [-0.5, -0.25, 0.0, -0.25, -0.5]);
    }
}
