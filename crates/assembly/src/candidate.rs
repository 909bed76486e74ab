//! A candidate: one chunk that retrieval found, with all that scoring, selection and citation need to know of it.

use crate::cite::Anchor;
use crate::error::{Error, Result};
use crate::fuse::Contribution;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashSet;
use std::ops::Range;

/// Name of the part of a score that a reranker gives: its `rank` is the place before, `raw` the logit, `normalized` the
/// probability that the chunk answers, and `contribution` what it added to the score before.
pub const RERANK: &str = "rerank";

/// One chunk of the corpus offered for delivery.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Candidate {
    /// Public id, `document#index`.
    pub id: String,
    /// Id of its document.
    pub document: String,
    /// Types of its document, the most particular first: the ending of its file, and the names of the format it was
    /// read as. The values of the field `type`.
    pub types: Vec<String>,
    /// Title of its document, may be empty.
    pub title: String,
    /// Number of the chunk in its document, from 0. Chunks `i` and `i + 1` touch.
    pub index: u32,
    /// Chunks of its document, those that cannot be found included: it ends behind number `n_chunks - 1`.
    pub n_chunks: u32,
    /// The section that budgets are kept for: document and top heading below the title.
    pub section: String,
    /// The normalised text of that heading, to which priors and section budgets are given.
    pub label: String,
    /// Headings open at the start of the chunk, outermost first.
    pub path: Vec<String>,
    /// Bytes of the document's canonical text; `text` is exactly these.
    pub span: Range<u64>,
    /// The text that the span points into: `source` (the file's own bytes) or `extracted` (text taken out of the file).
    pub source: &'static str,
    /// Where it is in the file.
    pub anchor: Anchor,
    /// The delivered text.
    pub text: String,
    /// Length in the encoder's tokens; what the length penalty looks at.
    pub n_tokens: u32,
    /// Score of retrieval, larger is better, on any scale.
    pub relevance: f64,
    /// The contribution of each arm of the retrieval; may be empty where only the sum is known.
    pub arms: Vec<Contribution>,
    /// Retrieval did not find it; it stands beside what was found, so that segments, windows and sections can be whole.
    /// Its relevance is not looked at.
    pub is_neighbor: bool,
    /// Numbers of the chunks of each section that it lies in, innermost first; empty in a document without headings.
    pub parents: Vec<Range<u32>>,
}

impl Candidate {
    /// The cosine of its vector and the query's, where the dense arm gave one.
    pub(crate) fn cosine(&self) -> Option<f64> {
        self.arms.iter().find(|arm| arm.arm == "dense").and_then(|arm| arm.raw)
    }

    /// The probability that it answers, in [0, 1], where a reranker read it.
    pub(crate) fn probability(&self) -> Option<f64> {
        self.reranked().and_then(|arm| arm.normalized)
    }

    /// The score before a reranker read it.
    pub(crate) fn fused(&self) -> f64 {
        self.relevance - self.reranked().map_or(0.0, |arm| arm.contribution)
    }

    fn reranked(&self) -> Option<&Contribution> {
        self.arms.iter().find(|arm| arm.arm == RERANK)
    }
}

/// A label or heading as priors and section budgets compare it: lower case, white space collapsed.
pub fn normalize_label(heading: &str) -> String {
    let words: Vec<&str> = heading.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// The candidates by id, checked: what follows never depends on the order in which they came.
pub(crate) fn by_id(candidates: &[Candidate]) -> Result<Vec<&Candidate>> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sorted.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].id == pair[1].id) {
        return Err(wrong(pair[0], "is there twice"));
    }
    let mut places = HashSet::with_capacity(sorted.len());
    for candidate in &sorted {
        if !candidate.relevance.is_finite() {
            return Err(wrong(candidate, "its relevance is not a finite number"));
        }
        if candidate.span.end.checked_sub(candidate.span.start) != Some(candidate.text.len() as u64) {
            return Err(wrong(candidate, "its span is not as long as its text"));
        }
        if !places.insert((candidate.document.as_str(), candidate.index)) {
            return Err(wrong(candidate, "another candidate has the same document and chunk number"));
        }
    }
    Ok(sorted)
}

fn wrong(candidate: &Candidate, reason: &'static str) -> Error {
    Error::Candidate { id: candidate.id.clone(), reason }
}
