//! The repair through its boundary.
//!
//! - `reading`: what is found in texts, as tables of text and finding
//! - `extraction`: what another reader says, checked and believed
//! - `golden`: two hops, ties, the dwell guard, budgets, worked by hand
//! - `laws`: what holds for every input; the replacement against a naive one

mod extraction;
mod golden;
mod laws;
mod reading;

use super::*;
use crate::question::Reading;
use crate::tests::words;
use std::ops::Range;

/// A passage that is its own document.
fn passage(id: &str, title: &str, text: &str, relevance: f64) -> Passage {
    let n_tokens = text.split_whitespace().count();
    Passage { id: id.into(), document: id.into(), title: title.into(), text: text.into(), n_tokens, relevance }
}

/// Sentences end at a full stop and a space, or a line end.
fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let ends: Vec<usize> = text.match_indices(". ").map(|(at, end)| at + end.len()).chain([text.len()]).collect();
    ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).filter(|range| !range.is_empty()).collect()
}

/// Content words; all are worth the same.
fn content(text: &str) -> Vec<String> {
    words(text).into_iter().filter(|word| !crate::question::is_function_word(word)).collect()
}

fn plain() -> Reading<'static> {
    Reading { terms: &content, idf: &|_| 1.0, sentences: &sentences }
}

fn items(k: usize) -> SealConfig {
    SealConfig { budget: Budget::Items(k), ..SealConfig::default() }
}

/// Runs a repair against a corpus: a micro-query finds what shares most words with it.
fn run(question: &str, config: &SealConfig, first: Vec<Passage>, corpus: &[Passage]) -> Outcome {
    let mut repair = Repair::new(question, config, first, plain()).unwrap();
    loop {
        let queries = repair.next_queries();
        if queries.is_empty() {
            return repair.finish();
        }
        repair.offer(queries.iter().map(|query| search(&query.text, corpus)).collect()).unwrap();
    }
}

/// The two passages that share most words with a query.
fn search(query: &str, corpus: &[Passage]) -> Vec<Passage> {
    let wanted = content(query);
    let shared = |passage: &Passage| {
        let has = content(&format!("{} {}", passage.title, passage.text));
        wanted.iter().filter(|term| has.contains(term)).count() as f64
    };
    let found = corpus.iter().map(|passage| Passage { relevance: shared(passage), ..passage.clone() });
    let mut found: Vec<Passage> = found.filter(|passage| passage.relevance > 0.0).collect();
    found.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then_with(|| a.id.cmp(&b.id)));
    found.truncate(2);
    found
}
