//! Encoders: packed token ids in, one hidden row per token out.
//!
//! A new architecture is one file here: its configuration, the names of its tensors, and a line in each `match` of [`Config`].

pub(crate) mod bert;
pub(crate) mod transformer;

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::precision::Precision;
use crate::weights::Weights;
use bert::BertConfig;
pub(crate) use transformer::Transformer;

/// What `config.json` says, by architecture. Serialised, it is part of the model's fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) enum Config {
    Bert(BertConfig),
}

impl Config {
    /// From the contents of `config.json` at `path`.
    pub(crate) fn parse(path: &Path, json: Value) -> Result<Self> {
        let architecture = json.get("model_type").and_then(Value::as_str).unwrap_or_default();
        match architecture {
            "bert" => Ok(Self::Bert(BertConfig::parse(path, json)?)),
            other => Err(Error::Unsupported {
                path: path.to_owned(),
                what: "architecture",
                name: other.to_owned(),
                supported: "bert",
            }),
        }
    }

    /// H.
    pub(crate) fn hidden_size(&self) -> usize {
        match self {
            Self::Bert(config) => config.hidden_size,
        }
    }

    /// The longest text there are positions for, in tokens.
    pub(crate) fn n_positions(&self) -> usize {
        match self {
            Self::Bert(config) => config.max_position_embeddings,
        }
    }

    /// Token ids are below this.
    pub(crate) fn vocab_size(&self) -> usize {
        match self {
            Self::Bert(config) => config.vocab_size,
        }
    }

    /// The encoder with the weights of a file.
    pub(crate) fn load(&self, weights: &Weights, precision: Precision) -> Result<Transformer> {
        match self {
            Self::Bert(config) => bert::load(config, weights, precision),
        }
    }
}
