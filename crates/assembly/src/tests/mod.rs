//! Assembly through its boundary.
//!
//! - `golden`: values computed by hand or taken from the paper
//! - `cutting`: budgets that no whole chunk fits
//! - `laws`: what holds for every input, by property
//! - `requested`: chunks in or out, another order, nothing without evidence
//! - `stopping`: a context that nobody wants any more
//! - `formats`: what is delivered, as snapshots, and how a reader takes it apart again
//! - `twins`: every strategy against a naive one

mod cutting;
mod formats;
mod golden;
mod laws;
mod requested;
mod stopping;
mod twins;

use crate::trace::{Decision, Reason, Record};
use crate::*;
use std::ops::Range;

/// Reads nothing, for what looks at no words.
pub(crate) const NO_READING: Reading<'static> =
    Reading { terms: &|_| Vec::new(), idf: &|_| 0.0, sentences: &|_| Vec::new() };

/// A chunk of a document without an end, in which every chunk is as long as this one.
pub(crate) fn candidate(document: &str, index: u32, text: &str, relevance: f64) -> Candidate {
    let start = u64::from(index) * text.len() as u64;
    Candidate {
        id: format!("{document}#{index}"),
        document: document.into(),
        types: Vec::new(),
        title: String::new(),
        index,
        n_chunks: u32::MAX,
        section: format!("{document} > Body"),
        label: "body".into(),
        path: vec!["Body".into()],
        span: start..start + text.len() as u64,
        source: "source",
        anchor: Anchor::default(),
        text: text.into(),
        n_tokens: text.split_whitespace().count() as u32,
        relevance,
        arms: Vec::new(),
        is_neighbor: false,
        parents: Vec::new(),
    }
}

/// Words in lower case: the analyser of these tests.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Some hundred words on no subject: nearly half function words, the others drawn by Zipf's law from 30,000.
pub(crate) fn unrelated_text(seed: usize) -> String {
    const FUNCTION: [&str; 12] = ["the", "of", "and", "in", "to", "a", "was", "is", "for", "on", "by", "with"];
    let mut state = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    let n = 60 + (uniform() * 80.0) as usize;
    let mut word = || match uniform() < 0.45 {
        true => FUNCTION[(uniform() * 12.0) as usize].to_owned(),
        false => format!("w{}", (uniform() * 30_000_f64.ln()).exp() as usize),
    };
    (0..n).map(|_| word()).collect::<Vec<_>>().join(" ")
}

/// Words between white space: an additive tokenizer, where texts are cut at white space.
fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// `x`s: a tokenizer that gets headers and marks for nothing, so that budgets can be worked out by hand.
fn count_x(text: &str) -> usize {
    text.matches('x').count()
}

/// A text of `n` tokens for [`count_x`], equal to no other seed's.
fn x(seed: &str, n: usize) -> String {
    format!("{seed} {}\n", "x ".repeat(n).trim_end())
}

fn sentences(text: &str) -> Vec<Range<usize>> {
    let ends = text.match_indices(". ").map(|(at, end)| at + end.len()).chain([text.len()]);
    let mut start = 0;
    ends.map(|end| std::mem::replace(&mut start, end)..end).filter(|range| !range.is_empty()).collect()
}

/// An assembly of these tests: the bubble, as Markdown, in words, unless told otherwise.
struct Assembly<'a> {
    candidates: Vec<Candidate>,
    query: &'a str,
    policy: &'a str,
    strategy: Strategy,
    format: Format,
    order: Order,
    marks: Marks,
    include: &'a [&'a str],
    exclude: &'a [&'a str],
    evidence: Option<Evidence>,
    count: &'a dyn Fn(&str) -> usize,
    stop: Stop<'a>,
}

impl<'a> Assembly<'a> {
    fn of(candidates: Vec<Candidate>) -> Self {
        let (strategy, format) = (Strategy::Bubble, Format::Markdown);
        Self {
            candidates,
            query: "query",
            policy: "",
            strategy,
            format,
            order: Order::Document,
            marks: Marks::Full,
            include: &[],
            exclude: &[],
            evidence: None,
            count: &count_words,
            stop: NEVER,
        }
    }

    fn policy(self, policy: &'a str) -> Self {
        Self { policy, ..self }
    }

    fn query(self, query: &'a str) -> Self {
        Self { query, ..self }
    }

    fn flat(self) -> Self {
        Self { strategy: Strategy::Flat, ..self }
    }

    fn lean(self) -> Self {
        Self { marks: Marks::Lean, ..self }
    }

    fn count(self, count: &'a dyn Fn(&str) -> usize) -> Self {
        Self { count, ..self }
    }

    fn format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    fn asked<T>(&self, budget_tokens: usize, ask: impl Fn(&Request<'_>) -> Result<T>) -> Result<T> {
        ask(&Request {
            query: self.query,
            candidates: &self.candidates,
            kept: &[],
            further: &[],
            include: self.include,
            exclude: self.exclude,
            evidence: self.evidence,
            budget_tokens,
            policy: &Policy::parse(self.policy)?,
            strategy: self.strategy,
            format: self.format,
            order: self.order,
            marks: self.marks,
            count: self.count,
            tokenizer: "test",
            reading: Reading { terms: &words, idf: &|_| 1.0, sentences: &sentences },
            cosine: None,
            stop: self.stop,
        })
    }

    fn try_within(&self, budget_tokens: usize) -> Result<Context> {
        self.asked(budget_tokens, assemble)
    }

    fn curve(&self, budget_tokens: usize) -> Result<Curve> {
        self.asked(budget_tokens, |request| budget_curve(request, 10))
    }

    #[track_caller]
    fn within(&self, budget_tokens: usize) -> Context {
        self.try_within(budget_tokens).unwrap()
    }
}

/// Delivered chunks, in the order of the walk.
fn chosen(context: &Context) -> Vec<&str> {
    let records = context.trace.records.iter();
    records
        .filter(|record| record.final_decision == Decision::Selected)
        .map(|record| record.chunk_id.as_str())
        .collect()
}

#[track_caller]
fn record<'a>(context: &'a Context, id: &str) -> &'a Record {
    context.trace.records.iter().find(|record| record.chunk_id == id).expect("every candidate has a record")
}

#[track_caller]
fn reason(context: &Context, id: &str) -> Reason {
    record(context, id).final_reason
}
