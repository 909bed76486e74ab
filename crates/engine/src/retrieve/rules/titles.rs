//! Titles: a document whose title the query names scores higher by words.
//!
//! `score += weight · hit · (hit / all)²`, where `all` is the idf of the title's terms and `hit` that of those in the
//! query: a title named in full counts by all it says, one that shares a word by little. A title that more than
//! [`SHARED_MAX`] documents have counts nothing.
//! Cost: the titles of all candidates are read and analysed, which is why batches of topics alone do it.

use std::collections::{BTreeSet, HashSet};

use cento_lexical::Unit;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::retrieve::searcher::Searcher;
use crate::source::ranking::{Ranking, sort_ranking};
use crate::source::refs::ChunkRef;
use crate::source::seam::Counted;
use crate::source::titles::{Mention, SHARED_MAX};

/// Weight of titles unless a run asks for one: none, so that a score by words is BM25. On twelve sets .3 was best: up
/// to .012 of nDCG@10 on titled collections, -.002 on two.
pub const TITLE_WEIGHT_DEFAULT: f64 = 0.0;

/// A ranked document whose title has a term of the query.
struct Titled {
    at: usize,
    terms: BTreeSet<String>,
}

impl Searcher {
    /// Adds what titles give to a ranking of documents by words, and puts it in order again.
    pub(crate) fn add_titles(&self, ranking: &mut Ranking, query: &str, weight: f64, cancel: &Cancel) -> Result<()> {
        let asked: HashSet<String> = self.analyzer.terms(query).into_iter().collect();
        let documents: Vec<ChunkRef> = ranking.iter().map(|(document, _)| document.chunk).collect();
        let (mut titled, mut titles) = (Vec::new(), Vec::new());
        for (at, title) in self.source.titles(&documents)?.into_iter().enumerate() {
            let terms: BTreeSet<String> = self.analyzer.terms(&title).into_iter().collect();
            if terms.iter().any(|term| asked.contains(term)) {
                titled.push(Titled { at, terms });
                titles.push(title);
            }
        }
        let terms: Vec<String> = titled.iter().flat_map(|titled| titled.terms.iter().cloned()).collect();
        let statistics = self.source.statistics(Counted::Texts, &terms, cancel)?;
        let idf = |term: &String| statistics.idf(term).unwrap_or_default();
        for ((Titled { at, terms }, title), mentions) in titled.iter().zip(&titles).zip(self.source.named(&titles)?) {
            let own = |mention: &&Mention| mention.title == *title;
            if mentions.iter().find(own).is_some_and(|own| own.holders.len() <= SHARED_MAX) {
                let all: f64 = terms.iter().map(idf).sum();
                let hit: f64 = terms.iter().filter(|term| asked.contains(*term)).map(idf).sum();
                ranking[*at].1 += weight * hit * (hit / all).powi(2); // a hit is part of all, which is above 0
            }
        }
        sort_ranking(ranking, |chunks| self.source.ids(Unit::Document, chunks))
    }
}
