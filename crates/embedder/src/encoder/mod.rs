//! Encoders: packed token ids in, one hidden row per token out.
//!
//! A new architecture is one file here: its configuration, the names of its tensors, and a line in each `match` of
//! [`Config`].

pub(crate) mod bert;
pub(crate) mod decoder;
mod distilbert;
mod gte;
mod jina;
mod modernbert;
mod mpnet;
mod nomic;
mod roberta;
mod settings;
pub(crate) mod stop;
mod t5;
pub(crate) mod table;
pub(crate) mod transformer;

use std::path::Path;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::layers::linear::Activation;
use crate::precision::Precision;
use crate::weights::Weights;
use bert::BertConfig;
use decoder::{DecoderConfig, gemma3, qwen3};
use distilbert::DistilBertConfig;
use gte::GteConfig;
use jina::JinaConfig;
use modernbert::ModernBertConfig;
use mpnet::MpnetConfig;
use nomic::NomicConfig;
use roberta::RobertaConfig;
use settings::{Shape, SpecialIds};
use t5::T5Config;
use table::TableConfig;
pub(crate) use transformer::Transformer;

/// The architectures that can be loaded, as `config.json` names them in `model_type`. Jina's second BERT calls itself
/// `bert`.
pub const ARCHITECTURES: [&str; 14] = [
    "bert",
    "distilbert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "mpnet",
    "modernbert",
    "nomic_bert",
    "new",
    "gte",
    "qwen3",
    "gemma3_text",
    "t5",
    "mt5",
];

/// The settings of `config.json`, by architecture. Serialised, part of the model's fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) enum Config {
    Bert(BertConfig),
    DistilBert(DistilBertConfig),
    Roberta(RobertaConfig),
    Mpnet(MpnetConfig),
    ModernBert(ModernBertConfig),
    Nomic(NomicConfig),
    Jina(JinaConfig),
    Gte(GteConfig),
    Qwen3(DecoderConfig),
    Gemma3(DecoderConfig),
    T5(T5Config),
    Table(TableConfig),
}

impl Config {
    /// From the contents of `config.json` at `path`.
    pub(crate) fn parse(path: &Path, json: Value) -> Result<Self> {
        let architecture = json.get("model_type").and_then(Value::as_str).unwrap_or_default();
        match architecture {
            // the second Jina BERT calls itself BERT
            "bert" if json["position_embedding_type"] == "alibi" => Ok(Self::Jina(JinaConfig::parse(path, &json)?)),
            "bert" => Ok(Self::Bert(BertConfig::parse(path, json)?)),
            "distilbert" => Ok(Self::DistilBert(DistilBertConfig::parse(path, &json)?)),
            "roberta" | "xlm-roberta" | "camembert" => Ok(Self::Roberta(RobertaConfig::parse(path, json)?)),
            "mpnet" => Ok(Self::Mpnet(MpnetConfig::parse(path, &json)?)),
            "modernbert" => Ok(Self::ModernBert(ModernBertConfig::parse(path, &json)?)),
            "nomic_bert" => Ok(Self::Nomic(NomicConfig::parse(path, &json)?)),
            "new" | "gte" => Ok(Self::Gte(GteConfig::parse(path, &json)?)),
            "qwen3" => Ok(Self::Qwen3(qwen3::parse(path, &json)?)),
            "gemma3_text" => Ok(Self::Gemma3(gemma3::parse(path, &json)?)),
            "t5" => Ok(Self::T5(T5Config::parse(path, &json, "relu")?)),
            "mt5" => Ok(Self::T5(T5Config::parse(path, &json, "gated-gelu")?)),
            other => Err(Error::Unsupported {
                path: path.to_owned(),
                what: "architecture",
                name: other.to_owned(),
                supported: "bert (Jina's v2, too), distilbert, roberta, xlm-roberta, camembert, mpnet, modernbert, \
                            nomic_bert, new, gte, qwen3, gemma3_text, t5, mt5",
            }),
        }
    }

    /// H.
    pub(crate) fn hidden_size(&self) -> usize {
        self.shape().hidden
    }

    /// Token ids are below this.
    pub(crate) fn vocab_size(&self) -> usize {
        self.shape().vocab_size
    }

    /// The longest text that the configuration has positions for, in tokens.
    pub(crate) fn n_positions(&self) -> usize {
        match self {
            Self::Bert(config) => config.max_position_embeddings,
            Self::DistilBert(config) => config.n_positions,
            Self::Roberta(config) => config.n_positions(),
            Self::Mpnet(config) => config.n_positions(),
            Self::ModernBert(config) => config.n_positions,
            Self::Nomic(config) => config.n_positions,
            Self::Jina(config) => config.n_positions,
            Self::Gte(config) => config.n_positions,
            Self::Qwen3(config) | Self::Gemma3(config) => config.n_positions,
            Self::T5(config) => config.n_positions,
            Self::Table(config) => config.max_tokens,
        }
    }

    /// Rows of the table of positions; `None` where positions are computed.
    pub(crate) fn n_position_rows(&self) -> Option<usize> {
        match self {
            Self::Bert(config) => Some(config.max_position_embeddings),
            Self::DistilBert(config) => Some(config.n_positions),
            Self::Roberta(config) => Some(config.bert.max_position_embeddings),
            Self::Mpnet(config) => Some(config.n_position_rows),
            Self::ModernBert(_)
            | Self::Nomic(_)
            | Self::Jina(_)
            | Self::Gte(_)
            | Self::Qwen3(_)
            | Self::Gemma3(_)
            | Self::T5(_)
            | Self::Table(_) => None,
        }
    }

    /// Kinds of texts (`token_type`) that the encoder tells apart.
    pub(crate) fn n_kinds(&self) -> usize {
        match self {
            Self::Bert(config) => config.type_vocab_size,
            Self::Roberta(config) => config.bert.type_vocab_size,
            Self::Nomic(config) => config.n_kinds,
            Self::Jina(config) => config.n_kinds,
            Self::Gte(config) => config.n_kinds,
            Self::DistilBert(_)
            | Self::Mpnet(_)
            | Self::ModernBert(_)
            | Self::Qwen3(_)
            | Self::Gemma3(_)
            | Self::T5(_)
            | Self::Table(_) => 0,
        }
    }

    pub(crate) fn special_ids(&self) -> SpecialIds {
        match self {
            Self::Roberta(config) => config.special_ids,
            Self::Mpnet(config) => config.special_ids,
            Self::ModernBert(config) => config.special_ids,
            Self::T5(config) => config.special_ids,
            // others do not say, or say what was never true: multilingual models named BERT keep BERT's id of padding,
            // and language models name the tokens between which they write
            Self::Bert(_)
            | Self::DistilBert(_)
            | Self::Nomic(_)
            | Self::Jina(_)
            | Self::Gte(_)
            | Self::Qwen3(_)
            | Self::Gemma3(_)
            | Self::Table(_) => SpecialIds::default(),
        }
    }

    /// The encoder for sequences of at most `n_positions`, with the weights of a file.
    pub(crate) fn load(&self, weights: &Weights, n_positions: usize, precision: Precision) -> Result<Transformer> {
        match self {
            Self::Bert(config) => bert::load(config, weights, precision),
            Self::DistilBert(config) => distilbert::load(config, weights, precision),
            Self::Roberta(config) => roberta::load(config, weights, precision),
            Self::Mpnet(config) => mpnet::load(config, weights, precision),
            Self::ModernBert(config) => modernbert::load(config, weights, n_positions, precision),
            Self::Nomic(config) => nomic::load(config, weights, n_positions, precision),
            Self::Jina(config) => jina::load(config, weights, n_positions, precision),
            Self::Gte(config) => gte::load(config, weights, n_positions, precision),
            Self::Qwen3(config) | Self::Gemma3(config) => decoder::load(config, weights, n_positions, precision),
            Self::T5(config) => t5::load(config, weights, n_positions, precision),
            Self::Table(config) => table::load(config, weights, precision),
        }
    }

    /// The settings of a language model's decoder, where it is one.
    pub(crate) fn decoder(&self) -> Option<&DecoderConfig> {
        match self {
            Self::Qwen3(config) | Self::Gemma3(config) => Some(config),
            Self::Bert(_)
            | Self::DistilBert(_)
            | Self::Roberta(_)
            | Self::Mpnet(_)
            | Self::ModernBert(_)
            | Self::Nomic(_)
            | Self::Jina(_)
            | Self::Gte(_)
            | Self::T5(_)
            | Self::Table(_) => None,
        }
    }

    /// The settings of a table of vectors, where it is one.
    pub(crate) fn table(&self) -> Option<&TableConfig> {
        match self {
            Self::Table(config) => Some(config),
            Self::Bert(_)
            | Self::DistilBert(_)
            | Self::Roberta(_)
            | Self::Mpnet(_)
            | Self::ModernBert(_)
            | Self::Nomic(_)
            | Self::Jina(_)
            | Self::Gte(_)
            | Self::Qwen3(_)
            | Self::Gemma3(_)
            | Self::T5(_) => None,
        }
    }

    fn shape(&self) -> Shape {
        match self {
            Self::Bert(config) => config.shape(),
            Self::DistilBert(config) => config.shape,
            Self::Roberta(config) => config.bert.shape(),
            Self::Mpnet(config) => config.shape,
            Self::ModernBert(config) => config.shape,
            Self::Nomic(config) => config.shape,
            Self::Jina(config) => config.shape,
            Self::Gte(config) => config.shape,
            Self::Qwen3(config) | Self::Gemma3(config) => config.shape,
            Self::T5(config) => config.shape,
            Self::Table(config) => config.shape,
        }
    }
}

/// An activation as its name, for fingerprints.
fn by_name<S: Serializer>(activation: &Activation, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{activation:?}"))
}
