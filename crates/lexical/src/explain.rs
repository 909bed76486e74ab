//! Why a unit has the score it has: the terms of the query and what each contributed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::bm25::idf;
use crate::searcher::{Postings, Searcher};
use crate::segment::guard::guarded;
use crate::statistics::Statistics;
use crate::{Error, Result};

/// A score and its terms.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// The contributions of the terms, added up in their order: to the last bit what [`Searcher::score`] gives.
    pub score: f64,
    /// Every distinct term of the query in the order of its first appearance, those the unit does not have included.
    pub terms: Vec<TermExplanation>,
}

/// One term; `contribution = n_occurrences · idf · tf / (tf + k1 · (1 - b + b · length / average_length))`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TermExplanation {
    /// As analysed.
    pub term: String,
    /// Number of times the query has it.
    pub n_occurrences: u32,
    /// `ln(1 + (n - df + 0.5) / (df + 0.5))`.
    pub idf: f64,
    /// Live units of the collection that have the term.
    pub df: u64,
    /// Live units of the collection.
    pub n: u64,
    /// Occurrences in the unit: in the text, plus weighted in the header (of a row), or in the title (of a document).
    pub tf: f64,
    /// Length of the unit in terms, combined as `tf` is.
    pub length: f64,
    /// Average length of the live units of the collection.
    pub average_length: f64,
    /// The term's part of the score.
    pub contribution: f64,
}

impl Searcher<'_> {
    /// Explains the score of one unit of one part, whether or not a filter allows it as a result.
    ///
    /// # Errors
    ///
    /// Those of [`Searcher::explain_all`].
    pub fn explain(&self, query: &str, part: usize, unit: u32) -> Result<Explanation> {
        self.explain_all(query, &[(part, unit)], None).map(only)
    }

    /// Explains a score that [`Searcher::score_under`] gave.
    ///
    /// # Errors
    ///
    /// Those of [`Searcher::explain_all`].
    pub fn explain_under(&self, query: &str, part: usize, unit: u32, statistics: &Statistics) -> Result<Explanation> {
        self.explain_all(query, &[(part, unit)], Some(statistics)).map(only)
    }

    /// Explains the scores of units, each named by its part and its number there, in a collection that has these
    /// statistics, or in that of the parts alone. The postings are read once for all of them; where statistics are
    /// given, those of the units alone.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchUnit`] for a unit that does not exist or is deleted, [`Error::Statistics`] where given ones lack
    /// a term of the query, and those of [`Searcher::score`].
    pub fn explain_all(
        &self,
        query: &str,
        units: &[(usize, u32)],
        statistics: Option<&Statistics>,
    ) -> Result<Vec<Explanation>> {
        if units.is_empty() {
            return Ok(Vec::new());
        }
        guarded(|| self.explain_unguarded(query, units, statistics))
    }

    fn explain_unguarded(
        &self,
        query: &str,
        units: &[(usize, u32)],
        given: Option<&Statistics>,
    ) -> Result<Vec<Explanation>> {
        let totals = given.map_or(self.totals, |given| given.totals);
        let average_length = totals.average_length(self.beside_weight);
        let length = |&(part, unit): &(usize, u32)| {
            let scope = self.scopes.get(part).filter(|scope| scope.is_live(unit));
            let scope = scope.ok_or(Error::NoSuchUnit { part, unit })?;
            Ok(scope.lengths.length(unit, self.beside_weight))
        };
        let lengths = units.iter().map(length).collect::<Result<Vec<f64>>>()?;
        let of_part = |part| units.iter().filter(move |unit| unit.0 == part).map(|unit| unit.1);
        let rows = given.map(|_| {
            let rows = self.scopes.iter().enumerate().map(|(part, scope)| scope.rows_of(of_part(part)));
            rows.collect::<Vec<_>>()
        });
        let mut postings = Postings::default();
        let mut frequencies = vec![Vec::new(); self.scopes.len()];
        let mut explanations: Vec<Explanation> =
            units.iter().map(|_| Explanation { score: 0.0, terms: Vec::new() }).collect();
        for term in self.query_terms(query) {
            let own = self.frequencies(&term, rows.as_deref(), &mut postings, &mut frequencies)?;
            let df = given.map_or(Ok(own), |given| given.df(&term.text))?;
            for ((explanation, &(part, unit)), &length) in explanations.iter_mut().zip(units).zip(&lengths) {
                let found = frequencies[part].binary_search_by_key(&unit, |frequency| frequency.unit);
                let tf = found.map_or(0.0, |at| frequencies[part][at].tf);
                let contribution = if tf > 0.0 {
                    term.weight(totals.n, df) * self.bm25.saturation(tf, length, average_length)
                } else {
                    0.0
                };
                explanation.score += contribution;
                explanation.terms.push(TermExplanation {
                    idf: idf(totals.n, df),
                    term: term.text.clone(),
                    n_occurrences: term.n_occurrences,
                    df,
                    n: totals.n,
                    tf,
                    length,
                    average_length,
                    contribution,
                });
            }
        }
        Ok(explanations)
    }
}

/// The explanation of the one unit that was asked for.
fn only(explanations: Vec<Explanation>) -> Explanation {
    explanations.into_iter().next().expect("there is one for each unit")
}
