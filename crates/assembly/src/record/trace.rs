//! The trace: what was decided about every candidate, on which numbers, and what was delivered in the end.
//!
//! Source: arXiv 2601.10681, appendix A: the fields of its audit log under their names, where `sheet_name` is
//! `section`, `bucket` the label and `row_number` the number of the chunk in its document.
//! Units: `token_count` is the encoder's, which the length penalty looks at; all other tokens are the budget
//! tokenizer's.

use crate::fuse::Contribution;
use crate::pack::{Format, Marks, Order};
use crate::policy::Policy;
use crate::question::NeedKind;
use crate::select::gates::Relaxed;
use crate::select::sections::Slack;
use crate::strategies::Strategy;
use crate::strategies::seal;
use crate::value::evidence::Evidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

pub use crate::select::decision::{BoundaryStop, Certificate, Radii, Reallocated, Reason, Stage, StepDetails};

/// Version of the trace as JSON; a field that changes its meaning raises it.
pub const TRACE_VERSION: u32 = 2;

/// Everything that was decided for one context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// [`TRACE_VERSION`].
    pub version: u32,
    /// The query.
    pub query: String,
    /// The thing asked for.
    pub config: Config,
    /// Settings that cannot do what they seem to.
    pub warnings: Vec<String>,
    /// Delivered chunks whose windows end at an edge, where the policy asks for them (`[window] log_boundaries`), best
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boundaries: Vec<BoundaryStop>,
    /// The delivery.
    pub manifest: Manifest,
    /// One record for every candidate: the pool in the order of the walk, then what lies beyond the pool.
    pub records: Vec<Record>,
}

/// The request, with the defaults that were worked out from the candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Config {
    /// The strategy that chose.
    pub strategy: Strategy,
    /// The form in which they were written.
    pub format: Format,
    /// In which order.
    #[serde(default)]
    pub order: Order,
    /// The marks around them.
    #[serde(default = "Marks::full")]
    pub marks: Marks,
    /// Further questions of the same context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<String>,
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
    /// Length that halves a score, given or the median of the pool, in the encoder's tokens; none where lengths do not
    /// matter.
    pub theta: Option<f64>,
    /// Candidates offered.
    pub n_candidates: usize,
    /// Candidates scored.
    pub n_pool: usize,
}

/// The delivery, and the use of the budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Ids of the delivered chunks, in the order of the context.
    pub selected: Vec<String>,
    /// The kind of the outcome.
    pub outcome: Outcome,
    /// The least budget that delivers something, where this one does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_budget: Option<usize>,
    /// Tokens of the context.
    pub tokens: usize,
    /// Tokens of the chunks' texts, each counted by itself; the rest are headers, marks and separators.
    pub text_tokens: usize,
    /// Sections with something delivered or with a share of their own, by name.
    pub sections: Vec<SectionTokens>,
    /// The use of unspent shares.
    pub slack: SlackRecord,
    /// The distance of the choice to the best; none where the strategy is a procedure that knows no bound.
    pub certificate: Option<Certificate>,
    /// The needs of the question, in its order, where the strategy looks at them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeedRecord>,
    /// Names that were searched for, as no document of theirs had been found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searched_for: Vec<String>,
    /// The support that the collection gives to an answer; none where that is not known.
    #[serde(default)]
    pub support: Option<Support>,
    /// The language model that was asked by whoever drove a repair, and what it said; none if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointRecord>,
    /// The reranker that read the best candidates, and its scores; none if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankRecord>,
    /// The radii of windows, where they go by the question or by the type of a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Radii>,
    /// The settings in which the search and the choice behind this context differ from what was asked, as nothing
    /// passed the gates at first; none where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_search: Option<Vec<Relaxed>>,
    /// The repair behind a context of `seal`: ledger, gaps, micro-queries, swaps and verdict of every loop, and what
    /// beat the passages that are not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<seal::Outcome>,
}

impl Trace {
    /// The policy that was chosen by: the request's, unless a second search relaxed it.
    pub(crate) fn policy(&self) -> Cow<'_, Policy> {
        match self.manifest.second_search {
            Some(_) => Cow::Owned(self.config.policy.relaxed(self.config.strategy)),
            None => Cow::Borrowed(&self.config.policy),
        }
    }

    /// Takes in that this is the answer of a second search, and the policy that the request asked for.
    pub fn searched_again(&mut self, asked: Policy, relaxed: Vec<Relaxed>) {
        let told: Vec<String> =
            relaxed.iter().map(|Relaxed { setting, from, to }| format!("{setting} {to} instead of {from}")).collect();
        let outcome = match self.manifest.outcome {
            Outcome::Whole | Outcome::Cut => "this is of a second search",
            Outcome::NothingRelevant | Outcome::NothingFits => "nor of a second search",
        };
        self.warnings.push(format!("nothing passed the gates: {outcome}, with {}", told.join(", ")));
        self.config.policy = asked;
        self.manifest.second_search = Some(relaxed);
    }

    /// Takes in the repair that chose what this context is made of; what lost says who beat it, and at which scores.
    pub fn repaired(&mut self, repair: seal::Outcome) {
        let losses: HashMap<&str, &seal::Loss> = repair.lost.iter().map(|loss| (loss.id.as_str(), loss)).collect();
        for record in self.records.iter_mut().filter(|record| record.final_reason == Reason::NotProposed) {
            if let Some(seal::Loss { score, by, by_score, .. }) = losses.get(record.chunk_id.as_str()) {
                let details = &mut record.step_details;
                details.partner.clone_from(by);
                (details.value, details.value_needed) =
                    (score.map(|score| score.total), by_score.map(|score| score.total));
            }
        }
        self.manifest.repair = Some(repair);
    }

    /// Takes out what [`repaired`](Self::repaired) took in.
    pub fn unrepaired(&mut self) {
        if self.manifest.repair.take().is_none() {
            return;
        }
        for record in self.records.iter_mut().filter(|record| record.final_reason == Reason::NotProposed) {
            let details = &mut record.step_details;
            (details.partner, details.value, details.value_needed) = (None, None, None);
        }
    }
}

/// One need of the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeedRecord {
    /// As the question writes it.
    pub text: String,
    /// Its kind.
    pub kind: NeedKind,
    /// Number of the part of the question that it is in.
    pub clause: usize,
    /// Its share of the question, in (0, 1].
    pub share: f64,
    /// The value that meeting it adds to the context; 0 if no likely candidate meets it.
    pub weight: f64,
    /// Delivered chunks that meet it, likeliest first.
    pub met_by: Vec<String>,
}

/// The support that the best chunks of the collection give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Support {
    /// The figures measured.
    pub evidence: Evidence,
    /// [`Evidence::support`].
    pub support: f64,
}

/// The part of a language model in a context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Its answers, in the order of the calls.
    pub answers: Vec<EndpointAnswer>,
}

/// One answer of a language model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointAnswer {
    /// BLAKE3 of what was asked, in hex.
    pub asked: String,
    /// The message, as it came.
    pub said: String,
}

/// The kind of thing that a context holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Whole chunks.
    Whole,
    /// The best chunk is cut to fit; others may stand beside it. A part of another one that fills what whole chunks
    /// leave is no such cut.
    Cut,
    /// Only the line that says so: there was no candidate, a gate kept out each one, or the collection does not support
    /// an answer.
    NothingRelevant,
    /// Only the line that says from which budget on something is delivered.
    NothingFits,
}

/// The part of a reranker in a context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RerankRecord {
    /// Its name.
    pub model: String,
    /// Its fingerprint; of an endpoint, that of its name and address.
    pub fingerprint: String,
    /// Candidates of each question that it was to read.
    pub depth: usize,
    /// Its scores, by what was read.
    pub scores: Vec<PairScore>,
}

/// The score of a question and a passage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairScore {
    /// BLAKE3 of both, in hex.
    pub pair: String,
    /// The logarithm of the odds that the passage answers.
    pub logit: f32,
}

/// Tokens of one section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlackRecord {
    /// The policy that was followed.
    pub policy: Slack,
    /// Tokens left of the budget after the first pass, where a section's share kept something out; else 0.
    pub pool_tokens: usize,
    /// Chunks taken in the second pass, best first.
    pub reallocated: Vec<Reallocated>,
}

/// The decision about one candidate, with its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// The contribution of each arm of the retrieval.
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
    /// The term that entered the score: tf, the share of the best candidate's retrieval score (flat: that score
    /// itself), or for `cento` the likelihood of the chunk.
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
    /// The decision of the first walk.
    pub step_decision: Reason,
    /// Delivered or not.
    pub final_decision: Decision,
    /// Why, in the end.
    pub final_reason: Reason,
    /// The numbers of the last decision.
    pub step_details: StepDetails,
}

/// A likelihood that a title lifted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BridgeRecord {
    /// The chunk that names the document; none: the question does.
    pub from: Option<String>,
    /// Likelihood before.
    pub before: f64,
}

/// In the context or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Delivered.
    Selected,
    /// Not delivered.
    Rejected,
}
