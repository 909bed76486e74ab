//! BERT: word, position and type vectors; post-norm layers with full attention and a GELU network.
//!
//! Source: Devlin et al. 2019.
//! Differs: queries, keys and values are one product \[T, 3H\].

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::transformer::{Layer, Norms, Transformer};
use crate::error::{Error, Result};
use crate::layers::attention::{Order, SelfAttention};
use crate::layers::embedding::{Embedding, Positions};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::{Bias, Weights};

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

/// The encoder from tensors named as in Hugging Face transformers, with or without the prefix `bert.`.
pub(super) fn load(config: &BertConfig, weights: &Weights, precision: Precision) -> Result<Transformer> {
    let weights =
        if weights.has("bert.embeddings.word_embeddings.weight") { weights.at("bert") } else { weights.clone() };
    let BertConfig { vocab_size, hidden_size: hidden, max_position_embeddings, type_vocab_size, .. } = *config;
    let tables = weights.at("embeddings");
    let words = tables.tensor("word_embeddings.weight", [vocab_size, hidden])?;
    let positions = tables.tensor("position_embeddings.weight", [max_position_embeddings, hidden])?;
    let kinds = tables.tensor("token_type_embeddings.weight", [type_vocab_size, hidden])?;
    let layers = weights.at("encoder").at("layer");
    Ok(Transformer {
        embedding: Embedding::new(&words, Some((&positions, Positions::FromZero)), Some(&kinds), precision)?,
        embedding_norm: Some(tables.at("LayerNorm").norm(hidden, Bias::With, config.layer_norm_eps, precision)?),
        layers: (0..config.num_hidden_layers)
            .map(|i| load_layer(config, &layers.at(&i.to_string()), precision))
            .collect::<Result<_>>()?,
        final_norm: None,
    })
}

fn load_layer(config: &BertConfig, weights: &Weights, precision: Precision) -> Result<Layer> {
    let (hidden, inner, epsilon) = (config.hidden_size, config.intermediate_size, config.layer_norm_eps);
    let attention = weights.at("attention");
    let part = |name: &str| attention.at("self").at(name);
    let attention_out = attention.at("output");
    Ok(Layer {
        norms: Norms::Post {
            attention: attention_out.at("LayerNorm").norm(hidden, Bias::With, epsilon, precision)?,
            outer: weights.at("output").at("LayerNorm").norm(hidden, Bias::With, epsilon, precision)?,
        },
        qkv: Weights::side_by_side(
            &[part("query"), part("key"), part("value")],
            hidden,
            hidden,
            Bias::With,
            precision,
        )?,
        attention: SelfAttention {
            n_heads: config.num_attention_heads,
            scale: 1.0 / ((hidden / config.num_attention_heads) as f32).sqrt(),
            order: Order::InRows,
            window: None,
            precision,
        },
        attention_out: attention_out.at("dense").linear(hidden, hidden, Bias::With, Activation::None, precision)?,
        inner: weights.at("intermediate").at("dense").linear(hidden, inner, Bias::With, Activation::Gelu, precision)?,
        gate: None,
        outer: weights.at("output").at("dense").linear(inner, hidden, Bias::With, Activation::None, precision)?,
    })
}
