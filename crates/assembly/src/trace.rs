//! The trace: what was decided about every candidate, on which numbers, and what was delivered in the end.
//!
//! Source: arXiv 2601.10681, appendix A: the fields of its audit log under their names, where `sheet_name` is `section`, `bucket`
//! the label and `row_number` the number of the chunk in its document.
//! Units: `token_count` is the encoder's, which the length penalty looks at; all other tokens are the budget tokenizer's.

use crate::evidence::Evidence;
use crate::fuse::Contribution;
use crate::policy::{Policy, Slack};
use crate::seal::needs::NeedKind;
use crate::select::small_to_big::Boundary;
use crate::{Format, Order, Strategy};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Version of the trace as JSON; a field that changes its meaning raises it.
pub const TRACE_VERSION: u32 = 2;

/// Everything that was decided for one context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// [`TRACE_VERSION`].
    pub version: u32,
    /// The query.
    pub query: String,
    /// What was asked for.
    pub config: Config,
    /// Settings that cannot do what they seem to.
    pub warnings: Vec<String>,
    /// Delivered chunks whose windows end at an edge, where the policy asks for them (`[window] log_boundaries`), best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boundaries: Vec<BoundaryStop>,
    /// What was delivered.
    pub manifest: Manifest,
    /// One record for every candidate: the pool in the order of the walk, then what lies beyond the pool.
    pub records: Vec<Record>,
}

/// A window that does not reach as far as its radius, as the document or section ends before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundaryStop {
    /// The chunk found.
    pub chunk_id: String,
    /// What ends.
    pub boundary: Boundary,
    /// Chunks that the radius asks for and that would lie before its start.
    pub before: usize,
    /// Chunks that would lie behind its end.
    pub after: usize,
}

/// The request, with the defaults that were worked out from the candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// How chunks were chosen.
    pub strategy: Strategy,
    /// How they were written.
    pub format: Format,
    /// In which order.
    #[serde(default)]
    pub order: Order,
    /// Ids of chunks that had to be delivered.
    #[serde(default)]
    pub include: Vec<String>,
    /// Ids of chunks and documents that must not be.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// The budget.
    pub budget_tokens: usize,
    /// Name of the tokenizer that counts it.
    pub tokenizer: String,
    /// The policy, labels and keywords normalised. The flat strategy looks at none of it.
    pub policy: Policy,
    /// Length that halves a score, given or the median of the pool, in the encoder's tokens; none where lengths do not matter.
    pub theta: Option<f64>,
    /// Candidates offered.
    pub n_candidates: usize,
    /// Candidates scored.
    pub n_pool: usize,
}

/// What was delivered, and what the budget went to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Ids of the delivered chunks, in the order of the context.
    pub selected: Vec<String>,
    /// What the context says of itself.
    pub outcome: Outcome,
    /// Tokens of the context.
    pub tokens: usize,
    /// Tokens of the chunks' texts, each counted by itself; the rest are headers, marks and separators.
    pub text_tokens: usize,
    /// Sections with something delivered or with a share of their own, by name.
    pub sections: Vec<SectionTokens>,
    /// What happened to unspent shares.
    pub slack: SlackRecord,
    /// How near the choice is to the best; none where the strategy is a procedure that knows no bound.
    pub certificate: Option<Certificate>,
    /// What the question needs, in its order, where the strategy looks at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeedRecord>,
    /// Names that were searched for, as no document of theirs had been found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searched_for: Vec<String>,
    /// How far the collection supports an answer at all; none where that is not known.
    #[serde(default)]
    pub support: Option<Support>,
    /// The language model that was asked by whoever drove a repair, and what it said; none if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointRecord>,
}

/// One need of the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeedRecord {
    /// As the question writes it.
    pub text: String,
    /// What it is.
    pub kind: NeedKind,
    /// Number of the part of the question that it is in.
    pub clause: usize,
    /// Its share of the question, in (0, 1].
    pub share: f64,
    /// What meeting it adds to the value of the context; 0 if no likely candidate meets it.
    pub weight: f64,
    /// Delivered chunks that meet it, likeliest first.
    pub met_by: Vec<String>,
}

/// What the best of the collection has for the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Support {
    /// What was measured.
    pub evidence: Evidence,
    /// [`Evidence::support`].
    pub support: f64,
}

/// What a language model had to do with a context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointRecord {
    /// Host, and port if it is not the scheme's.
    pub host: String,
    /// Name of the model there.
    pub model: String,
    /// Calls made, one that failed included.
    pub n_calls: usize,
    /// Things it said: names, other forms of them, triples, dates, numbers, missing things.
    pub n_found: usize,
    /// Those that were dropped: not in their passage, or missing and neither in the question nor in the ledger.
    pub n_dropped: usize,
    /// Kept passages that it was not asked about, as the policy has no more calls.
    pub n_untold: usize,
    /// Why the rest was done without it; none if it was asked to the end.
    pub fallback: Option<String>,
    /// What it said, in the order of the calls.
    pub answers: Vec<EndpointAnswer>,
}

/// What a language model said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointAnswer {
    /// BLAKE3 of what was asked, in hex.
    pub asked: String,
    /// The message, as it came.
    pub said: String,
}

/// What was chosen is worth `value`, and nothing within the constraints is worth more than `bound`, among the candidates that were
/// weighed, tokens counted part by part.
///
/// Units are the strategy's: tokens weighed by likelihood for `cento`, dsRAG's values for `rse-exact`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Of the chosen chunks, whole ones; a chunk that is cut to fit counts for nothing.
    pub value: f64,
    /// Upper bound.
    pub bound: f64,
    /// `(bound - value) / bound`, in [0, 1]; 0: proven best.
    pub gap: f64,
    /// Relaxations that were solved for it.
    pub n_relaxations: usize,
}

/// What a context holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Whole chunks.
    Whole,
    /// One chunk is cut to fit; others may stand beside it.
    Cut,
    /// Only the line that says so: there was no candidate, a gate kept out each one, or the collection does not support an answer.
    NothingRelevant,
}

/// Tokens of one section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SectionTokens {
    /// Document and top heading.
    pub section: String,
    /// Its label.
    pub label: String,
    /// Chunks delivered.
    pub chunks: usize,
    /// Tokens of their texts.
    pub tokens: usize,
    /// The share of the budget it may fill, in tokens; none without a limit.
    pub limit: Option<usize>,
}

/// Tokens that sections left of the budget, and who got them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlackRecord {
    /// The policy that was followed.
    pub policy: Slack,
    /// Tokens left of the budget after the first pass, where a section's share kept something out; else 0.
    pub pool_tokens: usize,
    /// Chunks taken in the second pass, best first.
    pub reallocated: Vec<Reallocated>,
}

/// A chunk that its section's share alone had kept out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reallocated {
    /// Id of the chunk.
    pub chunk_id: String,
    /// Section that got more than its share.
    pub section: String,
    /// Tokens of the text.
    pub tokens: usize,
}

/// What was decided about one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Place in the walk from 1; beyond the pool, place by relevance.
    pub rank: usize,
    /// Public id of the chunk.
    pub chunk_id: String,
    /// Its document.
    pub document: String,
    /// Its section (`sheet_name` in the paper).
    pub section: String,
    /// Its section's label.
    pub bucket: String,
    /// Its number in the document.
    pub row_number: u32,
    /// Bytes of the document's canonical text; none in a trace that was written before records had them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Range<u64>>,
    /// Its length in the encoder's tokens.
    pub token_count: u32,
    /// Score of retrieval as received.
    pub retrieval_score: f64,
    /// What each arm of the retrieval gave to it.
    pub arms: Vec<Contribution>,
    /// Retrieval did not find it; it stands beside what was found.
    pub is_neighbor: bool,
    /// The chunk whose text names its document, where that made it likelier (`cento`).
    pub bridge: Option<BridgeRecord>,
    /// Needs of the question that it meets, as the question writes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meets: Vec<String>,
    /// Occurrences of the query's terms; counted in the mode `tf` only.
    pub tf: Option<u64>,
    /// What entered the score: tf, the share of the best candidate's retrieval score (flat: that score itself), or for `cento` the
    /// likelihood of the chunk.
    pub relevance: f64,
    /// Sum of the keywords' boosts; for `cento` what they added to the likelihood.
    pub boost: f64,
    /// Prior of the label; for `cento` what it added to the likelihood.
    pub prior: f64,
    /// Length penalty, in (0, 1].
    pub len_penalty: f64,
    /// relevance + prior + boost.
    pub score_raw: f64,
    /// score_raw times the penalty; divided by it where negative.
    pub score_final: f64,
    /// The last stage that decided about it.
    pub stage: Stage,
    /// How the first walk decided.
    pub step_decision: Reason,
    /// Delivered or not.
    pub final_decision: Decision,
    /// Why, in the end.
    pub final_reason: Reason,
    /// The numbers of the last decision.
    pub step_details: StepDetails,
}

/// A likelihood that a title lifted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BridgeRecord {
    /// The chunk that names the document; none: the question does.
    pub from: Option<String>,
    /// Likelihood before.
    pub before: f64,
}

/// The stages of an assembly, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// In the context or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Delivered.
    Selected,
    /// Not delivered.
    Rejected,
}

/// Why a candidate is in the context or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The collection as a whole has too little to say to the question, see [`Evidence`].
    NotSupported,
}

/// The numbers behind a decision; those that played no part are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
    /// The chosen chunk that has most of it.
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
    /// What it is worth to the strategy: tokens weighed by likelihood for `cento`, the value of its block for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// What it would have to be worth for the tokens it needs, at the price that tokens had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_needed: Option<f64>,
    /// The budget at which it would have fitted beside what was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_needed: Option<usize>,
    /// How far the collection supports an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support: Option<f64>,
    /// The least support the policy asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_support: Option<f64>,
    /// Bytes of the document that were kept of a cut chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Range<u64>>,
}

impl StepDetails {
    pub(crate) fn budget(used: usize, left: usize, needed: usize) -> Self {
        Self { tokens_used: Some(used), tokens_left: Some(left), tokens_needed: Some(needed), ..Self::default() }
    }
}
