//! From a request to what a strategy chooses from: candidates checked, laid out along their documents, and scored.

use super::request::{Further, Request};
use crate::budget::Ledger;
use crate::budget::cut::Reader;
use crate::candidate::{Candidate, by_id};
use crate::error::{Error, Result};
use crate::line::Lines;
use crate::pack;
use crate::rank::best_first;
use crate::select::chooser::{Asked, Choice, Chooser, Ranking, Valued};
use crate::select::similarity::Similarity;
use crate::stop::check;
use crate::value::prior::Scored;
use std::collections::HashSet;

/// A request, ready to be decided on. Candidates are numbers into `candidates`.
pub(crate) struct Prepared<'a> {
    /// By id, without what is excluded.
    pub(crate) candidates: Vec<&'a Candidate>,
    pub(crate) excluded: Vec<&'a Candidate>,
    /// Must be delivered.
    pub(crate) include: Vec<usize>,
    pub(crate) lines: Lines,
    /// The rankings of further questions.
    pub(crate) further: Vec<Ranking>,
    pub(crate) valued: Valued,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(request: &Request<'a>, chooser: &dyn Chooser) -> Result<Self> {
        let least = (request.count)(pack::nothing_relevant(request.layout())).max(1);
        if request.budget_tokens < least {
            return Err(Error::BudgetTooSmall { budget: request.budget_tokens, needed: least });
        }
        let is_excluded = |chunk: &&Candidate| {
            request.exclude.iter().any(|&id| id == chunk.id.as_str() || id == chunk.document.as_str())
        };
        let (excluded, candidates): (Vec<&Candidate>, Vec<&Candidate>) =
            by_id(request.candidates)?.into_iter().partition(is_excluded);
        let include = included(&candidates, &excluded, request.include)?;
        let lines = Lines::new(&candidates);
        let further = request.further.iter().map(|further| ranked(&candidates, further)).collect::<Result<_>>()?;
        let &Request { query, reading, stop, .. } = request;
        check(stop)?;
        let mut valued = chooser.value(&Asked { query, candidates: &candidates, lines: &lines, reading, stop })?;
        check(stop)?;
        valued.scores.include(&include);
        Ok(Self { candidates, excluded, include, lines, further, valued })
    }

    /// An empty ledger of the request's budget.
    pub(crate) fn ledger<'s>(&'s self, request: &Request<'s>) -> Ledger<'s> {
        let scores = by_candidate(self.candidates.len(), &self.valued.scores.pool);
        Ledger::new(&self.candidates, scores, request.layout(), request.budget_tokens, request.count)
    }

    /// The pool and all that a strategy chooses from.
    pub(crate) fn choice<'s>(&'s self, request: &Request<'s>, similarity: &'s Similarity<'s>) -> Choice<'s> {
        Choice {
            reader: Reader { query: request.query, reading: request.reading },
            pool: &self.valued.scores.pool,
            further: &self.further,
            lines: &self.lines,
            kept: request.kept,
            include: &self.include,
            similarity,
            needs: &self.valued.needs,
            stop: request.stop,
        }
    }

    pub(crate) fn similarity<'s>(&'s self, request: &Request<'s>) -> Similarity<'s> {
        Similarity::new(&self.candidates, request.cosine, request.reading)
    }
}

/// The candidates that a request includes, in its order.
fn included(candidates: &[&Candidate], excluded: &[&Candidate], include: &[&str]) -> Result<Vec<usize>> {
    let mut places: Vec<usize> = Vec::with_capacity(include.len());
    for &id in include {
        let wrong = |reason| Err(Error::Include { id: id.to_owned(), reason });
        match candidates.binary_search_by(|chunk| chunk.id.as_str().cmp(id)) {
            Ok(place) if places.contains(&place) => return wrong("it is named twice; name it once"),
            Ok(place) => places.push(place),
            Err(_) if excluded.iter().any(|chunk| chunk.id == id) => {
                return wrong("it or its document is left out at once; do one or the other");
            }
            Err(_) => return wrong("it is no candidate; name a chunk of the collection as DOCUMENT#NUMBER"),
        }
    }
    Ok(places)
}

/// The candidates that a further question found, best first, equal ones by id descending.
fn ranked(candidates: &[&Candidate], further: &Further) -> Result<Ranking> {
    let (mut ranking, mut seen) = (Ranking::with_capacity(further.ranking.len()), HashSet::new());
    for (id, score) in &further.ranking {
        let Ok(place) = candidates.binary_search_by(|chunk| chunk.id.as_str().cmp(id)) else { continue };
        if !score.is_finite() {
            return Err(Error::Candidate { id: id.clone(), reason: "a question's score of it is not a finite number" });
        }
        if !seen.insert(place) {
            return Err(Error::Candidate { id: id.clone(), reason: "one question found it twice" });
        }
        ranking.push((place, *score + 0.0));
    }
    ranking.sort_by(|a, b| best_first((a.1, &candidates[a.0].id), (b.1, &candidates[b.0].id)));
    Ok(ranking)
}

fn by_candidate(n_candidates: usize, pool: &[Scored]) -> Vec<f64> {
    let mut scores = vec![f64::NEG_INFINITY; n_candidates];
    for scored in pool {
        scores[scored.candidate] = scored.raw;
    }
    scores
}
