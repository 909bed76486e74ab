//! RoBERTa, XLM-RoBERTa and CamemBERT: BERT with positions that count from behind the padding token's id.
//!
//! Source: Liu et al. 2019; Conneau et al. 2020; Martin et al. 2020.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::bert::{self, BertConfig};
use super::settings::{Settings, SpecialIds};
use super::transformer::Transformer;
use crate::error::Result;
use crate::layers::embedding::Positions;
use crate::precision::Precision;
use crate::weights::Weights;

/// The part of `config.json` that shapes the computation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RobertaConfig {
    pub(super) bert: BertConfig,
    padding: u32,
    #[serde(skip)]
    pub(super) special_ids: SpecialIds,
}

impl RobertaConfig {
    pub(super) fn parse(path: &Path, json: Value) -> Result<Self> {
        let settings = Settings::new(path, &json);
        let (start, end, padding) = (
            settings.id_or_none("bos_token_id")?,
            settings.id_or_none("eos_token_id")?,
            settings.id_or_none("pad_token_id")?,
        );
        let special_ids = SpecialIds { start, end, padding };
        let padding = padding.unwrap_or(1); // transformers' default for all three
        let bert = BertConfig::parse(path, json.clone())?;
        if bert.max_position_embeddings <= padding as usize + 1 {
            let n_rows = bert.max_position_embeddings;
            return Err(settings.damaged(format!("{n_rows} positions, all of them before the first, {}", padding + 1)));
        }
        Ok(Self { bert, padding, special_ids })
    }

    /// Rows of the table from the first position on.
    pub(super) fn n_positions(&self) -> usize {
        self.bert.max_position_embeddings - self.padding as usize - 1
    }
}

/// Tensors are BERT's, with or without the prefix `roberta.`.
pub(super) fn load(config: &RobertaConfig, weights: &Weights, precision: Precision) -> Result<Transformer> {
    let weights = weights.encoder(&["roberta"], bert::WORDS);
    bert::load_encoder(&config.bert, Positions::After { padding: config.padding }, &weights, precision)
}
