//! Evaluation of a run: every measure for every judged query, and the means.
//!
//! Source: trec_eval. With `-c`, the default here, the mean is over all judged queries and those that the run leaves
//! out count as 0; queries without judgements are left out.
//! Cost: one ranking and one number for each query and measure.

use std::collections::{BTreeMap, HashSet};

use crate::error::{Error, Result};
use crate::measure::{Graded, Measure};
use crate::qrels::Qrels;
use crate::run::{Ranking, column};

/// The settings of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The worth of judged queries without results.
    pub missing: Missing,
    /// The treatment of a document that is the query itself.
    pub self_hits: SelfHits,
}

/// The worth of a judged query for which the run has no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// 0: trec_eval with `-c`. A system cannot gain by leaving out what is difficult.
    #[default]
    Zero,
    /// Nothing: trec_eval without `-c`, pytrec_eval, BEIR.
    Skip,
}

/// The treatment of a document whose id is that of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SelfHits {
    /// It is a result.
    #[default]
    Keep,
    /// It is dropped before measuring: for sets whose queries are documents (ArguAna, Quora).
    Remove,
}

/// The figures of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// As asked for.
    pub measures: Vec<Measure>,
    /// Ids of the queries that count, sorted; at least one.
    pub queries: Vec<String>,
    /// For each measure the figures of the queries, in their order.
    pub values: Vec<Vec<f64>>,
    /// Judged queries without results: among `queries`, with 0, under [`Missing::Zero`], and not under
    /// [`Missing::Skip`].
    pub n_missing: usize,
    /// Queries with results and without judgements, which are left out.
    pub n_unjudged: usize,
}

impl Evaluation {
    /// The mean over the queries of the measure at this place in `measures`.
    ///
    /// # Panics
    /// When there is no measure at this place.
    pub fn mean(&self, at: usize) -> f64 {
        self.values[at].iter().sum::<f64>() / self.queries.len() as f64
    }
}

/// Measures a run, ranking by ranking.
///
/// # Errors
/// What the rankings report; [`Error::RankedTwice`] for a query with two rankings; [`Error::Nothing`] for a run without
/// results; [`Error::NoOverlap`] when no query of the run is judged, or no retrieved document is judged for any query:
/// judgements of another set, or ids of another form.
pub fn evaluate(
    qrels: &Qrels,
    rankings: impl Iterator<Item = Result<Ranking>>,
    measures: &[Measure],
    options: Options,
) -> Result<Evaluation> {
    let mut figures = BTreeMap::<&str, Vec<f64>>::new();
    let mut unjudged = HashSet::new();
    let mut overlap = Overlap::new(qrels);
    for ranking in rankings {
        let mut ranking = ranking?;
        ranking.sort();
        overlap.see(&ranking);
        if options.self_hits == SelfHits::Remove {
            ranking.hits.retain(|hit| hit.document != ranking.query);
        }
        if ranking.hits.is_empty() {
            continue;
        }
        match qrels.judged(&ranking.query) {
            Some((query, judgements)) => {
                let graded = Graded::from_hits(&ranking.hits, judgements);
                let values = measures.iter().map(|measure| measure.of(&graded)).collect();
                if figures.insert(query, values).is_some() {
                    return Err(Error::RankedTwice { query: ranking.query });
                }
            }
            None if unjudged.contains(&ranking.query) => return Err(Error::RankedTwice { query: ranking.query }),
            None => _ = unjudged.insert(ranking.query),
        }
    }
    overlap.check()?;
    let n_missing = qrels.n_queries() - figures.len();
    if options.missing == Missing::Zero {
        for (query, _) in qrels.iter() {
            figures.entry(query).or_insert_with(|| vec![0.0; measures.len()]);
        }
    }
    if figures.is_empty() {
        return Err(Error::Nothing { what: "query with results and judgements" });
    }
    Ok(Evaluation {
        measures: measures.to_vec(),
        values: (0..measures.len()).map(|at| figures.values().map(|values| values[at]).collect()).collect(),
        queries: figures.into_keys().map(str::to_owned).collect(),
        n_missing,
        n_unjudged: unjudged.len(),
    })
}

/// Evidence that a run and judgements are of one set: a query in common, and a retrieved document that is judged for
/// any query.
struct Overlap<'a> {
    qrels: &'a Qrels,
    /// A query and a document of the run, to be named when nothing is in common.
    query: Option<String>,
    document: Option<String>,
    query_is_judged: bool,
    document_is_judged: bool,
    /// All judged documents as run files have them; collected when the first ranking has none of its own.
    judged: Option<HashSet<String>>,
}

impl<'a> Overlap<'a> {
    fn new(qrels: &'a Qrels) -> Self {
        let (query_is_judged, document_is_judged) = (false, false);
        Self { qrels, query: None, document: None, query_is_judged, document_is_judged, judged: None }
    }

    fn see(&mut self, ranking: &Ranking) {
        let Some(first) = ranking.hits.first() else { return };
        let judgements = self.qrels.of(&ranking.query);
        self.query.get_or_insert_with(|| ranking.query.clone());
        self.document.get_or_insert_with(|| first.document.clone());
        self.query_is_judged |= judgements.is_some();
        if self.document_is_judged {
            return;
        }
        let mut documents = ranking.hits.iter().map(|hit| hit.document.as_str());
        self.document_is_judged = match judgements {
            Some(judgements) => documents.clone().any(|document| judgements.grade(document).is_some()),
            None => false,
        } || {
            let judged = self.judged.get_or_insert_with(|| {
                let all = self.qrels.iter().flat_map(|(_, judgements)| judgements.iter());
                all.map(|(document, _)| column(document).into_owned()).collect()
            });
            documents.any(|document| judged.contains(column(document).as_ref()))
        };
    }

    fn check(self) -> Result<()> {
        let (Some(query), Some(document)) = (self.query, self.document) else {
            return Err(Error::Nothing { what: "results in the run" });
        };
        let judged = self.qrels.iter().find_map(|(query, judgements)| Some((query, judgements.iter().next()?.0)));
        let (judged_query, judged_document) = judged.unwrap_or_default();
        if !self.query_is_judged {
            return Err(Error::NoOverlap {
                what: "query",
                left: query,
                right: judged_query.to_owned(),
                check: "are these the judgements of the run's queries, and the ids of one form?",
            });
        }
        if !self.document_is_judged {
            return Err(Error::NoOverlap {
                what: "document",
                left: document,
                right: judged_document.to_owned(),
                check: "are these the judgements of the run's corpus, and the ids of one form?",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
