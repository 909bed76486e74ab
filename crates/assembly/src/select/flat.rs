//! The flat strategy: by descending relevance until the budget is full. The baseline that every other is measured against.

use super::{Selection, Verdict, admit_first, quoted};
use crate::budget::Ledger;
use crate::pack::Excerpt;
use crate::prior::Scored;
use crate::trace::{Reason, Stage};

pub(super) fn walk(pool: &[Scored], ledger: &mut Ledger<'_>, first: Option<&Excerpt>) -> Selection {
    ledger.clear();
    let first = first.map(|excerpt| (excerpt.candidate, admit_first(ledger, excerpt)));
    let mut verdict = |candidate: usize| match &first {
        Some((first, verdict)) if *first == candidate => verdict.clone(),
        _ => match ledger.offer(&[Excerpt { candidate, part: None }]) {
            Ok(quote) => Verdict::new(Stage::Walk, Reason::PassedAllGates, quoted(ledger, quote)),
            Err(quote) => Verdict::over_budget(Stage::Walk, ledger, quote),
        },
    };
    Selection { verdicts: pool.iter().map(|scored| verdict(scored.candidate)).collect(), ..Selection::default() }
}
