//! Gaps: one more search, for documents that are named where the answer seems to be and that the question did not find.
//!
//! Source: the gap repair of SEAL-RAG (arXiv 2512.10787), its micro-queries reduced to names, and the extraction to
//! capitals and quotation marks ([`cento_assembly::bridge::gaps`]).
//! Cost: a look at the titles of the collection for each of at most [`cento_assembly::bridge::GAPS_MAX`] names, and a
//! search by words for each that is one, all at once; nothing is embedded.

use std::collections::{HashMap, HashSet};

use cento_assembly::{Candidate, bridge};
use cento_corpus as corpus;

use crate::context::candidates::Found;
use crate::error::Result;
use crate::retrieve::request::{ChunkSearch, Mode};
use crate::retrieve::searcher::Searcher;
use crate::source::refs::{ChunkRef, RankedChunk};
use crate::source::seam::Matched;
use crate::source::titles::Mention;

/// Chunks looked at for a name.
const DEPTH: usize = 20;

/// Names a repair searched for, and what it found.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    pub(crate) names: Vec<String>,
    /// Chunks of the documents with such titles, as if they stood beside what was found: bridges may lift them.
    pub(crate) candidates: Vec<Candidate>,
    /// Where they are, by their ids.
    pub(crate) places: HashMap<String, ChunkRef>,
}

impl Searcher {
    /// Searches for the documents that `found` names and does not hold; never for those of `removed`. Nothing where
    /// words are not to be searched.
    pub(crate) fn repaired(&self, search: &ChunkSearch, found: &[Candidate], removed: &[String]) -> Result<Repaired> {
        if search.mode == Mode::Dense {
            return Ok(Repaired::default());
        }
        let names = bridge::gaps(&search.query, found, &corpus::sentences)?;
        let mentions = self.source.named(&names)?;
        let is_title = |(name, mentions): &(&String, Vec<Mention>)| mentions.iter().any(|title| title.is_all_of(name));
        let titles: Vec<String> = names.iter().zip(mentions).filter(is_title).map(|(name, _)| name.clone()).collect();
        if titles.is_empty() {
            return Ok(Repaired { names, ..Repaired::default() });
        }
        let required = Some(self.required(search).phrases);
        let request = ChunkSearch { mode: Mode::Lexical, required, candidates: DEPTH, rerank: None, ..search.clone() };
        for name in &titles {
            ChunkSearch { query: name.clone(), ..request.clone() }.check()?;
        }
        self.check_words(request.mode)?;
        let scope = self.allowed(&request)?.scope;
        let rankings = self.lexical_chunks_of(&titles, &request, scope.as_ref())?;
        request.cancel.check()?;
        let chunks = |matched: &Matched| matched.ranking.iter().map(|(ranked, _)| ranked.chunk).collect();
        let of_name: Vec<HashSet<ChunkRef>> = rankings.iter().map(chunks).collect();
        let all: HashSet<RankedChunk> =
            rankings.into_iter().flat_map(|matched| matched.ranking).map(|(ranked, _)| ranked).collect();
        let mut places: HashMap<String, ChunkRef> = HashMap::new();
        let read = self.candidates(all.into_iter().map(Found::beside).collect(), &mut places)?;
        let mut known: HashSet<&str> = found.iter().map(|candidate| candidate.id.as_str()).collect();
        let mut candidates = Vec::new();
        for (name, chunks) in titles.iter().zip(&of_name) {
            let own = read.iter().filter(|candidate| chunks.contains(&places[&candidate.id]));
            let titled = own.filter(|candidate| bridge::has_title(candidate, name));
            let fresh = titled.filter(|found| !removed.contains(&found.document) && known.insert(&found.id));
            candidates.extend(fresh.cloned());
        }
        Ok(Repaired { names, candidates, places })
    }
}
