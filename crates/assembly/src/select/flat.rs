//! The flat strategy: by descending relevance until the budget is full. The baseline that every other is measured against.

use super::{First, Selection, Verdict, admit_firsts, quoted};
use crate::budget::Ledger;
use crate::pack::Excerpt;
use crate::prior::Scored;
use crate::trace::{Reason, Stage};

pub(super) fn walk(pool: &[Scored], ledger: &mut Ledger<'_>, firsts: &[First]) -> Selection {
    ledger.clear();
    let firsts = admit_firsts(ledger, firsts);
    let mut verdict = |candidate: usize| match firsts.get(&candidate) {
        Some(verdict) => verdict.clone(),
        None => match ledger.offer(&[Excerpt { candidate, part: None }]) {
            Ok(quote) => Verdict::new(Stage::Walk, Reason::PassedAllGates, quoted(ledger, quote)),
            Err(quote) => Verdict::over_budget(Stage::Walk, ledger, quote),
        },
    };
    Selection { verdicts: pool.iter().map(|scored| verdict(scored.candidate)).collect(), ..Selection::default() }
}
