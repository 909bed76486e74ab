//! Blocks: a strategy that wants chunks together says which, in which order, and the budget admits a block whole or not
//! at all.

use super::chooser::{Choice, First, Selection, Verdict, Walk, admit_firsts, quoted};
use super::decision::{BoundaryStop, Certificate, Reason, Stage, StepDetails};
use crate::budget::Ledger;
use crate::error::Result;
use crate::pack::Excerpt;
use crate::stop::check;
use crate::value::prior::Scored;
use std::collections::HashMap;

/// Chunks of one document that are delivered together; those that another block brought already are not delivered
/// twice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    /// In the order of the document.
    pub(crate) candidates: Vec<usize>,
    /// Its worth to the strategy, on the strategy's own scale.
    pub(crate) value: f64,
    /// Number of the question that wants it, where there are several.
    pub(crate) question: Option<usize>,
    /// Substitutes where it does not fit, widest first.
    pub(crate) narrower: Vec<Vec<usize>>,
}

impl Block {
    pub(crate) fn new(candidates: Vec<usize>, value: f64) -> Self {
        Self { candidates, value, question: None, narrower: Vec::new() }
    }
}

/// Blocks in the order of offering, and why what is in none of them is not.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) blocks: Vec<Block>,
    /// The reason for what no block has; [`Reason::NotProposed`] for what is not here.
    pub(crate) reasons: HashMap<usize, (Reason, StepDetails)>,
    pub(crate) warnings: Vec<String>,
    /// Windows that end at an edge, of chunks that may be delivered.
    pub(crate) boundaries: Vec<BoundaryStop>,
    pub(crate) certificate: Option<Certificate>,
}

impl Plan {
    /// The walk that offers these blocks.
    pub(crate) fn offered<'w>(self, choice: &'w Choice<'w>) -> Walk<'w> {
        Box::new(move |ledger, firsts| walk(choice, ledger, &self, firsts))
    }
}

fn walk(choice: &Choice<'_>, ledger: &mut Ledger<'_>, plan: &Plan, firsts: &[First]) -> Result<Selection> {
    let mut verdicts = admit_firsts(ledger, firsts);
    for block in &plan.blocks {
        check(choice.stop)?;
        for wanted in std::iter::once(&block.candidates).chain(&block.narrower) {
            let is_in = |candidate: &usize| verdicts.get(candidate).is_some_and(Verdict::is_selected);
            let missing: Vec<Excerpt> = wanted
                .iter()
                .filter(|candidate| !is_in(candidate))
                .map(|&candidate| Excerpt { candidate, part: None })
                .collect();
            if missing.is_empty() {
                break; // other blocks brought all of it
            }
            let offered = ledger.offer(&missing);
            let (reason, quote) = match offered {
                Ok(quote) => (Reason::PassedAllGates, quote),
                Err(quote) => (Reason::BudgetExceeded, quote),
            };
            let details = StepDetails { value: Some(block.value), question: block.question, ..quoted(ledger, quote) };
            for excerpt in missing {
                verdicts.insert(excerpt.candidate, Verdict::new(Stage::Walk, reason, details.clone()));
            }
            if offered.is_ok() {
                break;
            }
        }
    }
    let mut verdict = |scored: &Scored| {
        verdicts.remove(&scored.candidate).unwrap_or_else(|| {
            let (reason, details) =
                plan.reasons.get(&scored.candidate).cloned().unwrap_or((Reason::NotProposed, StepDetails::default()));
            Verdict::new(Stage::Walk, reason, details)
        })
    };
    Ok(Selection {
        verdicts: choice.pool.iter().map(&mut verdict).collect(),
        warnings: plan.warnings.clone(),
        boundaries: plan.boundaries.clone(),
        certificate: plan.certificate.clone(),
        ..Selection::default()
    })
}
