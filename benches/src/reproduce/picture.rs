//! One context as a page shows it: what the budget went to, where delivered and rejected candidates lie, and why.
//!
//! Source: the file that `cento context … --trace FILE` writes; nothing is read beside it.
//! Units: tokens of the budget, bytes of a document's canonical text.
//! Differs: a trace does not say how long a document is; it ends where the last chunk does that the trace names.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, bail};
use cento_engine::trace::{Decision, Reason, Record, Trace};
use cento_engine::{ContextTrace, Why};
use serde::{Deserialize, Serialize};

use super::plan::{self, Plan};
use super::steps::in_folders;

/// Rejected candidates that are told one by one.
const N_REJECTED_MAX: usize = 12;
/// Parts a document from its heading in the name of a section.
const SECTION_SEPARATOR: char = '\u{1f}';

/// A context in pictures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Picture {
    pub(crate) title: String,
    pub(crate) query: String,
    pub(crate) strategy: String,
    /// Whose tokens.
    pub(crate) tokenizer: String,
    pub(crate) budget_tokens: usize,
    /// Tokens delivered.
    pub(crate) n_tokens: usize,
    /// Those of the texts; the rest are headers, marks and separators.
    pub(crate) text_tokens: usize,
    pub(crate) n_candidates: usize,
    /// Candidates that were looked at one by one.
    pub(crate) n_weighed: usize,
    pub(crate) n_delivered: usize,
    /// Those with something delivered, by name.
    pub(crate) sections: Vec<Section>,
    /// Others that have a share of the budget.
    pub(crate) n_empty_sections: usize,
    /// Those with something delivered, in the order of the context.
    pub(crate) documents: Vec<Document>,
    /// The most relevant.
    pub(crate) rejected: Vec<Rejected>,
    /// Rejected candidates by reason: of those that were weighed, most first, then of the others.
    pub(crate) reasons: Vec<Count>,
}

/// A section of which something was delivered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Section {
    /// Document, then heading.
    pub(crate) name: String,
    pub(crate) tokens: usize,
    /// Tokens it may fill; none without a limit.
    pub(crate) limit_tokens: Option<usize>,
}

/// A document and what lies in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) id: String,
    /// End of the last chunk known.
    pub(crate) n_bytes: u64,
    pub(crate) accepted: Vec<Accepted>,
    pub(crate) rejected: Vec<Outlined>,
}

/// What a mark cites.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Accepted {
    /// The number in the mark.
    pub(crate) n: usize,
    pub(crate) span: Range<u64>,
    pub(crate) n_chunks: usize,
    /// A part of its chunk.
    pub(crate) is_cut: bool,
}

/// A rejected candidate in its document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outlined {
    pub(crate) chunk: String,
    pub(crate) reason: String,
    pub(crate) span: Range<u64>,
    /// Looked at one by one; the others were never weighed.
    pub(crate) is_weighed: bool,
}

/// A rejected candidate and what decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rejected {
    pub(crate) chunk: String,
    /// Place in the walk; beyond it, by relevance.
    pub(crate) place: usize,
    /// By which the walk goes; none for what was never weighed.
    pub(crate) score: Option<f64>,
    pub(crate) retrieval_score: f64,
    pub(crate) reason: String,
    pub(crate) because: String,
}

/// How many candidates a reason kept out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) reason: String,
    pub(crate) n: usize,
}

/// The pictures of a plan whose steps have run.
pub(crate) fn pictures(plan: &Plan, folders: &[(&str, String)]) -> anyhow::Result<Vec<Picture>> {
    let read = |picture| read(picture, folders).with_context(|| format!("{}: picture {:?}", plan.name, picture.title));
    plan.picture.iter().map(read).collect()
}

fn read(picture: &plan::Picture, folders: &[(&str, String)]) -> anyhow::Result<Picture> {
    let path = in_folders(&picture.trace, folders)?;
    if !Path::new(&path).exists() {
        bail!("{path}: there is no such trace; a step of the plan writes one with `context … --trace FILE`");
    }
    let trace = ContextTrace::read(Path::new(&path))?;
    if trace.assembly.records.iter().any(|record| record.span.is_none()) {
        bail!(
            "{path}: it was written before traces said where a candidate lies; write it anew with `context … --trace FILE`"
        );
    }
    Ok(Picture::of(&picture.title, &trace))
}

impl Picture {
    /// What a trace says.
    pub(crate) fn of(title: &str, trace: &ContextTrace) -> Self {
        let assembly = &trace.assembly;
        let (config, manifest) = (&assembly.config, &assembly.manifest);
        let (full, empty): (Vec<_>, Vec<_>) = manifest.sections.iter().partition(|section| section.chunks > 0);
        let section = |section: &&cento_engine::trace::SectionTokens| Section {
            name: section.section.replace(SECTION_SEPARATOR, " › "),
            tokens: section.tokens,
            limit_tokens: section.limit,
        };
        let mut out: Vec<&Record> = rejected(assembly).collect();
        out.sort_by_key(|record| (!is_weighed(record), record.rank));
        Self {
            title: title.to_owned(),
            query: assembly.query.clone(),
            strategy: config.strategy.to_string(),
            tokenizer: config.tokenizer.clone(),
            budget_tokens: config.budget_tokens,
            n_tokens: trace.delivered.n_tokens,
            text_tokens: manifest.text_tokens.min(trace.delivered.n_tokens),
            n_candidates: assembly.records.len(),
            n_weighed: assembly.records.iter().filter(|record| is_weighed(record)).count(),
            n_delivered: manifest.selected.len(),
            sections: full.iter().map(section).collect(),
            n_empty_sections: empty.len(),
            documents: documents(trace),
            rejected: out.iter().take(N_REJECTED_MAX).map(|record| Rejected::of(assembly, record)).collect(),
            reasons: counts(&out),
        }
    }

    /// Tokens of headers, marks and separators.
    pub(crate) fn frame_tokens(&self) -> usize {
        self.n_tokens.saturating_sub(self.text_tokens)
    }

    pub(crate) fn unspent_tokens(&self) -> usize {
        self.budget_tokens.saturating_sub(self.n_tokens)
    }

    /// Rejected candidates that are not told one by one, by reason.
    pub(crate) fn untold(&self) -> Vec<Count> {
        let told = |reason: &str| self.rejected.iter().filter(|rejected| rejected.reason == reason).count();
        let left =
            |count: &Count| Count { reason: count.reason.clone(), n: count.n.saturating_sub(told(&count.reason)) };
        self.reasons.iter().map(left).filter(|count| count.n > 0).collect()
    }
}

impl Rejected {
    fn of(trace: &Trace, record: &Record) -> Self {
        Self {
            chunk: record.chunk_id.clone(),
            place: record.rank,
            score: is_weighed(record).then_some(record.score_final),
            retrieval_score: record.retrieval_score,
            reason: words(record.final_reason),
            because: Why::of(trace, record).because,
        }
    }
}

fn rejected(trace: &Trace) -> impl Iterator<Item = &Record> {
    trace.records.iter().filter(|record| record.final_decision == Decision::Rejected)
}

fn is_weighed(record: &Record) -> bool {
    !matches!(record.final_reason, Reason::BeyondCandidates | Reason::NotFound)
}

/// The documents of the citations, each with its candidates.
fn documents(trace: &ContextTrace) -> Vec<Document> {
    let mut documents: Vec<Document> = Vec::new();
    for citation in &trace.delivered.citations {
        let accepted = Accepted {
            n: citation.n,
            span: citation.span.clone(),
            n_chunks: citation.chunks.len(),
            is_cut: citation.cut,
        };
        match documents.iter_mut().find(|document| document.id == citation.document) {
            Some(document) => document.accepted.push(accepted),
            None => documents.push(Document {
                id: citation.document.clone(),
                accepted: vec![accepted],
                ..Document::default()
            }),
        }
    }
    for document in &mut documents {
        let out = rejected(&trace.assembly).filter(|record| record.document == document.id);
        document.rejected = out
            .filter_map(|record| {
                Some(Outlined {
                    chunk: record.chunk_id.clone(),
                    reason: words(record.final_reason),
                    span: record.span.clone()?,
                    is_weighed: is_weighed(record),
                })
            })
            .collect();
        document.rejected.sort_by(|a, b| (a.span.start, &a.chunk).cmp(&(b.span.start, &b.chunk)));
        let ends = document.accepted.iter().map(|accepted| accepted.span.end);
        document.n_bytes = ends.chain(document.rejected.iter().map(|out| out.span.end)).max().unwrap_or(0);
    }
    documents
}

/// Reasons of what was weighed before those of what was not; of each, most first, equal ones by name.
fn counts(rejected: &[&Record]) -> Vec<Count> {
    let mut by_reason: BTreeMap<(bool, String), usize> = BTreeMap::new();
    for record in rejected {
        *by_reason.entry((!is_weighed(record), words(record.final_reason))).or_default() += 1;
    }
    let mut counts: Vec<_> = by_reason.into_iter().collect();
    counts.sort_by_key(|((is_last, _), n)| (*is_last, Reverse(*n)));
    counts.into_iter().map(|((_, reason), n)| Count { reason, n }).collect()
}

/// A reason under the name that the trace has for it, in words.
fn words(reason: Reason) -> String {
    let name = serde_json::to_value(reason).ok();
    name.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().replace('_', " ")
}
