//! BM25 with any parameters over plain postings, because tantivy has k1 1.2 and b 0.75 as private constants.
//!
//! Source: Robertson and Zaragoza 2009, eq. 3.15, with the idf of Lucene and tantivy; tantivy's further factor `k1 + 1`
//! changes no order and is left out.
//! Cost: one division a posting.

use std::collections::HashMap;

use tantivy::fieldnorm::FieldNormReader;

use super::analysis::Analysis;
use super::set::{Document, Set};
use super::{DEPTH, Ranked};

#[derive(Debug, Clone, Copy)]
pub(super) struct Bm25 {
    pub(super) k1: f64,
    pub(super) b: f64,
    pub(super) lengths: Lengths,
}

/// What a document's length is remembered as.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lengths {
    /// The largest of 256 values that is not above it, as tantivy and Lucene have it. The average is exact.
    OneByte,
    Exact,
}

impl Bm25 {
    /// A ranking of `title text` for each query, in the order of the topics.
    pub(super) fn rank(self, set: &Set, analysis: Analysis) -> Vec<Ranked> {
        let mut terms = analysis.terms();
        let index = Postings::build(set.documents.iter().map(|document| terms(&Document::whole(document))));
        let lengths: Vec<f64> = index.lengths.iter().map(|&length| self.lengths.kept(length)).collect();
        set.topics.iter().map(|topic| self.ranked(&index, &lengths, &terms(&topic.text))).collect()
    }

    fn ranked(self, index: &Postings, lengths: &[f64], query: &[String]) -> Ranked {
        let mut scores = vec![0.0; lengths.len()];
        let n = lengths.len() as f64;
        let average = index.lengths.iter().map(|&length| u64::from(length)).sum::<u64>() as f64 / n;
        for list in query.iter().filter_map(|term| index.lists.get(term)) {
            let df = list.len() as f64;
            let idf = ((n - df + 0.5) / (df + 0.5)).ln_1p();
            for &(document, tf) in list {
                let norm = self.k1 * (1.0 - self.b + self.b * lengths[document] / average);
                scores[document] += idf * f64::from(tf) / (f64::from(tf) + norm);
            }
        }
        let mut ranked: Ranked = scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked.truncate(DEPTH);
        ranked
    }
}

impl Lengths {
    fn kept(self, length: u32) -> f64 {
        f64::from(match self {
            Self::OneByte => FieldNormReader::id_to_fieldnorm(FieldNormReader::fieldnorm_to_id(length)),
            Self::Exact => length,
        })
    }
}

struct Postings {
    /// For each term the documents that have it, ascending, and how often.
    lists: HashMap<String, Vec<(usize, u32)>>,
    /// Terms in each document.
    lengths: Vec<u32>,
}

impl Postings {
    fn build(documents: impl Iterator<Item = Vec<String>>) -> Self {
        let mut lists: HashMap<String, Vec<(usize, u32)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (document, terms) in documents.enumerate() {
            lengths.push(terms.len() as u32);
            for term in terms {
                let list = lists.entry(term).or_default();
                match list.last_mut() {
                    Some((last, tf)) if *last == document => *tf += 1,
                    _ => list.push((document, 1)),
                }
            }
        }
        Self { lists, lengths }
    }
}
