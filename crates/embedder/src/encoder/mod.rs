//! Encoders: packed token ids in, one hidden row per token out.
//!
//! A new architecture is one file here, a variant of [`Config`] and one of [`Encoder`].

pub(crate) mod bert;

use std::path::Path;

use candle_core::Tensor;
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::pack::Batch;
use crate::weights::Weights;
use bert::{Bert, BertConfig};

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
        let Self::Bert(config) = self;
        config.hidden_size
    }

    /// The longest text there are positions for, in tokens.
    pub(crate) fn n_positions(&self) -> usize {
        let Self::Bert(config) = self;
        config.max_position_embeddings
    }

    /// Rows of the table of positions, where there is one.
    pub(crate) fn n_position_rows(&self) -> Option<usize> {
        let Self::Bert(config) = self;
        Some(config.max_position_embeddings)
    }

    /// Token ids are below this.
    pub(crate) fn vocab_size(&self) -> usize {
        let Self::Bert(config) = self;
        config.vocab_size
    }
}

/// A loaded encoder.
#[derive(Debug)]
pub(crate) enum Encoder {
    Bert(Bert),
}

impl Encoder {
    pub(crate) fn load(config: &Config, weights: &Weights) -> Result<Self> {
        match config {
            Config::Bert(config) => Ok(Self::Bert(Bert::load(config, weights)?)),
        }
    }

    /// T tokens → \[T, H\].
    pub(crate) fn forward(&self, batch: &Batch) -> Result<Tensor> {
        match self {
            Self::Bert(bert) => Ok(bert.forward(batch)?),
        }
    }
}
