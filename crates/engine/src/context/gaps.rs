//! Gaps: one more search, for documents that are named where the answer seems to be and that the question did not find.
//!
//! Source: the gap repair of SEAL-RAG (arXiv 2512.10787), its micro-queries reduced to names, and the extraction to
//! capitals and quotation marks ([`cento_assembly::bridge::gaps`]).
//! Cost: a look at the titles of the collection for each of at most [`cento_assembly::bridge::GAPS_MAX`] names, and a
//! search by words for each that is one; nothing is embedded.

use std::collections::HashSet;

use cento_assembly::{Candidate, bridge};
use cento_corpus as corpus;

use crate::context::candidates::Found;
use crate::error::Result;
use crate::retrieve::request::{ChunkSearch, Mode};
use crate::retrieve::search::Timings;
use crate::retrieve::searcher::Searcher;
use crate::source::titles::Mention;

/// Chunks looked at for a name.
const DEPTH: usize = 20;

/// Names a repair searched for, and what it found.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    pub(crate) names: Vec<String>,
    /// Chunks of the documents with such titles, as if they stood beside what was found: bridges may lift them.
    pub(crate) candidates: Vec<Candidate>,
}

impl Searcher {
    /// Searches for the documents that `found` names and does not hold; never for those of `removed`. Nothing where
    /// words are not to be searched.
    pub(crate) fn repaired(&self, search: &ChunkSearch, found: &[Candidate], removed: &[String]) -> Result<Repaired> {
        if search.mode == Mode::Dense {
            return Ok(Repaired::default());
        }
        let names = bridge::gaps(&search.query, found, &corpus::sentences)?;
        let mut known: HashSet<String> = found.iter().map(|candidate| candidate.id.clone()).collect();
        let required = self.required(search).phrases;
        let mut candidates = Vec::new();
        let mentions = self.source.named(&names)?;
        let is_title = |(name, mentions): &(&String, Vec<Mention>)| mentions.iter().any(|title| title.is_all_of(name));
        for (name, _) in names.iter().zip(mentions).filter(is_title) {
            let (query, mode, required) = (name.clone(), Mode::Lexical, Some(required.clone()));
            let request = ChunkSearch { query, mode, required, candidates: DEPTH, rerank: None, ..search.clone() };
            let ranking = self.rank(&request, &mut Timings::default())?;
            let beside = ranking.fused.into_iter().take(DEPTH).map(|fused| Found::beside(fused.id)).collect();
            let titled = self.candidates(beside)?.into_iter().filter(|candidate| bridge::has_title(candidate, name));
            candidates.extend(
                titled.filter(|candidate| !removed.contains(&candidate.document) && known.insert(candidate.id.clone())),
            );
        }
        Ok(Repaired { names, candidates })
    }
}
