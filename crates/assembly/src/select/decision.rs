//! Decisions: what was decided about a candidate, at which stage, and on which numbers.
//!
//! Source: arXiv 2601.10681, appendix A: the fields of its audit log under their names.
//! Units: tokens are the budget tokenizer's.

use crate::question::QueryKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Why a candidate is in the context or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Delivered whole.
    PassedAllGates,
    /// Delivered in part, as the best candidate is longer than the budget.
    CutToFit,
    /// Not among the K most relevant.
    BeyondCandidates,
    /// Relevance below the policy's minimum; in the mode `tf`, none at all and no prior.
    LowRelevance,
    /// Its document has as many chunks as the policy allows.
    DocumentChunksExceeded,
    /// Its section has as many chunks as the policy allows.
    SectionChunksExceeded,
    /// Does not fit into what is left of the budget.
    BudgetExceeded,
    /// Does not fit into what is left of its section's share.
    SectionBudgetExceeded,
    /// Chosen chunks say it already.
    TooRedundant,
    /// Chosen, and dropped again as the whole came out longer than its parts.
    DroppedInRepair,
    /// Retrieval did not find it, and the strategy looks at nothing else.
    NotFound,
    /// In no segment, window or section that the strategy wants.
    NotProposed,
    /// More chunks in a row than the policy allows.
    RunTooLong,
    /// Delivered because the request includes it.
    Included,
    /// The request leaves it or its document out.
    Excluded,
    /// No likelier to answer than a candidate that nothing speaks for, so that it would only fill the budget.
    Unlikely,
    /// The collection as a whole has too little to say to the question, see [`crate::evidence`].
    NotSupported,
}

/// The numbers behind a decision; those that played no part are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StepDetails {
    /// Tokens of the context before this candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_used: Option<usize>,
    /// Tokens left of the budget before this candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_left: Option<usize>,
    /// Tokens it adds: text, header, marks. A lower bound where `estimated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_needed: Option<usize>,
    /// The text was not counted: to fit, its tokens would have to be twice as long as any text's counted before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Overlap with what was chosen before, in [0, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// The chosen chunk that has most of it; for `seal` the passage that beat this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partner: Option<String>,
    /// Tokens of its section before this candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_used: Option<usize>,
    /// Tokens of its text, which the section's share is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_needed: Option<usize>,
    /// The section's share of the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_limit: Option<usize>,
    /// Chunks of its document or section before this candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks_used: Option<usize>,
    /// The most the policy allows; for a candidate beyond the pool, K.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks_limit: Option<usize>,
    /// The least relevance the policy asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_relevance: Option<f64>,
    /// Cosine of its vector and the partner's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f64>,
    /// Its worth to the strategy: tokens weighed by likelihood for `cento`, S(c) for `seal`, the value of its block for
    /// others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Number of the question whose segment it is in, from 0, where several were asked (`rse`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<usize>,
    /// Tokens that it costs alone, header included, which `cento` multiplies its likelihood with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_tokens: Option<usize>,
    /// The worth it would need for its tokens, at the price that tokens had; for `seal` the S of what beat it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_needed: Option<f64>,
    /// The budget at which it would have fitted beside what was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_needed: Option<usize>,
    /// The support that the collection gives to an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support: Option<f64>,
    /// The least support the policy asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_support: Option<f64>,
    /// Its likelihood, with priors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<f64>,
    /// The least likelihood that the policy asks for among so many candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_likelihood: Option<f64>,
    /// Bytes of the document that were kept of a cut chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Range<u64>>,
}

impl StepDetails {
    pub(crate) fn budget(used: usize, left: usize, needed: usize) -> Self {
        Self { tokens_used: Some(used), tokens_left: Some(left), tokens_needed: Some(needed), ..Self::default() }
    }
}

/// The stages of an assembly, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The pool of the K most relevant.
    Pool,
    /// The walk in the order of the scores.
    Walk,
    /// The second pass, over what sections left of their shares.
    Slack,
    /// Cutting the best candidate to the budget.
    Cut,
    /// Counting the whole context.
    Repair,
}

/// The choice is worth `value`, and nothing within the constraints is worth more than `bound`, among the
/// candidates that were weighed, tokens counted part by part.
///
/// Units are the strategy's: tokens weighed by likelihood for `cento`, dsRAG's values for `rse-exact`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// Of the chosen chunks, whole ones; a chunk that is cut to fit counts for nothing.
    pub value: f64,
    /// Upper bound.
    pub bound: f64,
    /// `(bound - value) / bound`, in [0, 1]; 0: proven best.
    pub gap: f64,
    /// Relaxations that were solved for it.
    pub n_relaxations: usize,
    /// The candidates were those of a part of the collection: of the rest it says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_part: bool,
}

/// A chunk that its section's share alone had kept out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reallocated {
    /// Id of the chunk.
    pub chunk_id: String,
    /// Section that got more than its share.
    pub section: String,
    /// Tokens of the text.
    pub tokens: usize,
}

/// A window that does not reach as far as its radius, as the document or section ends before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundaryStop {
    /// The chunk found.
    pub chunk_id: String,
    /// The edge.
    pub boundary: Boundary,
    /// Chunks that the radius asks for and that would lie before its start.
    pub before: usize,
    /// Chunks that would lie behind its end.
    pub after: usize,
}

/// The radii of windows, where they go by the kind of the question or the type of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Radii {
    /// The kind of the question.
    pub kind: QueryKind,
    /// Chunks on either side of what was found in documents of no type that is named.
    pub radius: usize,
    /// Chunks on either side of what was found in documents of a type that is named, by that type; of those found.
    pub by_type: BTreeMap<String, usize>,
}

/// The edges that a window never crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The edges of the document.
    #[default]
    Document,
    /// The edges of the innermost section that the chunk found lies in; of the document where it lies in none.
    Section,
}
