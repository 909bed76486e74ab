//! Further questions: what each finds by itself, for a context of several.
//!
//! Source: dsRAG's list of search queries (`knowledge_base.py`): each is searched alone, with the settings of the
//! first.
//! Cost: a search for each, once for contexts of all budgets.

use std::collections::HashMap;
use std::rc::Rc;

use cento_assembly::{Candidate, Further, Strategy};

use crate::context::candidates::Found;
use crate::context::request::ContextSettings;
use crate::error::{Error, Result};
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::search::Timings;
use crate::retrieve::searcher::Searcher;
use crate::source::refs::ChunkRef;

/// The chunks that a further question found.
#[derive(Debug)]
pub(super) struct FurtherFound {
    pub(super) found: Vec<Candidate>,
    /// Ids and places of the chunks found.
    pub(super) places: HashMap<String, ChunkRef>,
    /// Warnings about the question.
    pub(super) warnings: Vec<String>,
}

impl FurtherFound {
    /// The results of a question, asked as `search` asks its own; never of the documents `removed`.
    pub(super) fn of(query: &str, searcher: &Searcher, search: &ChunkSearch, removed: &[String]) -> Result<Rc<Self>> {
        let search = ChunkSearch { query: query.to_owned(), ..search.clone() };
        let ranking = searcher.rank(&search, &mut Timings::default())?;
        let mut places = HashMap::with_capacity(ranking.fused.len());
        let mut found = searcher.candidates(ranking.fused.into_iter().map(Found::from).collect(), &mut places)?;
        found.retain(|candidate| !removed.contains(&candidate.document));
        Ok(Rc::new(Self { found, places, warnings: ranking.warnings }))
    }

    /// The chunks as they stand among the candidates of the first question, which did not find them.
    pub(super) fn unasked(&self) -> impl Iterator<Item = Candidate> {
        let unasked =
            |found: &Candidate| Candidate { relevance: 0.0, arms: Vec::new(), is_neighbor: true, ..found.clone() };
        self.found.iter().map(unasked)
    }

    /// The ranking as an assembly takes it.
    pub(super) fn ranking(&self, query: &str) -> Further {
        let ranking = self.found.iter().map(|found| (found.id.clone(), found.relevance)).collect();
        Further { query: query.to_owned(), ranking }
    }
}

/// An error where a strategy would look at the first question alone.
pub(super) fn check(request: &ContextSettings<'_>) -> Result<()> {
    let strategy = request.strategy;
    match request.queries.first() {
        Some(query) if strategy != Strategy::Rse => Err(Error::Setting {
            setting: "queries",
            value: query.clone(),
            reason: format!("is a further question, and of no use to the strategy {strategy}: rse chooses for several"),
        }),
        _ => Ok(()),
    }
}
