//! Selection: which candidates are delivered, and for every other one why not.
//!
//! A strategy ([`Chooser`]) walks the candidates best first and admits each that its gates and the budget let pass; one
//! that is too long is passed over, and shorter ones behind it are still tried. If the best candidate is longer than
//! the whole budget, and nothing near it in score fits, it is cut: a context is not filled with scraps because only
//! scraps are short enough.

pub(crate) mod decision;
mod words;
pub mod redundancy;
pub(crate) mod similarity;
pub(crate) mod sections;
pub(crate) mod gates;
pub(crate) mod chooser;
pub(crate) mod block;

use crate::budget::Ledger;
use crate::budget::cut::cut;
use crate::error::Result;
use crate::pack::Excerpt;
use crate::value::prior::Scored;
use chooser::{Choice, Chooser, First, Selection, Verdict};
use decision::{Reason, Stage, StepDetails};

/// A chosen chunk stands near a candidate that is too long if its score before the length penalty is at least this
/// share of the candidate's.
const NEAR: f64 = 0.9;

/// Chooses from the pool, best first, into the empty ledger.
///
/// # Errors
/// `Cancelled`.
pub(crate) fn select(chooser: &dyn Chooser, choice: &Choice<'_>, ledger: &mut Ledger<'_>) -> Result<Selection> {
    let pool = choice.pool;
    let planned = chooser.plan(choice, ledger)?;
    let included: Vec<First> = choice
        .include
        .iter()
        .map(|&candidate| First { excerpt: Excerpt { candidate, part: None }, included: true })
        .collect();
    let walk = |ledger: &mut Ledger<'_>, first: Option<Excerpt>| {
        let best = first.map(|excerpt| First { excerpt, included: false });
        let firsts: Vec<First> = included.iter().cloned().chain(best).collect();
        ledger.clear();
        let mut selection = planned(ledger, &firsts)?;
        repair(pool, ledger, &mut selection);
        Ok(selection)
    };
    let selection = walk(ledger, None)?;
    if !included.is_empty() {
        return Ok(selection); // what was asked for is there, so the rest need not be
    }
    let Some(best) = unrivalled(pool, &selection.verdicts) else { return Ok(selection) };
    let text_max = chooser.sections().and_then(|sections| sections.text_max(ledger, best));
    let (whole, nothing) = (Excerpt { candidate: best, part: None }, ledger.admitted().is_empty());
    if ledger.whole_tokens(std::slice::from_ref(&whole)) <= ledger.budget() as i64 {
        // It fits but for what scores higher; or its parts alone seemed not to fit.
        let share_fits = text_max.is_none_or(|max| ledger.text_tokens(&whole) <= max);
        return if nothing && share_fits { walk(ledger, Some(whole)) } else { Ok(selection) };
    }
    ledger.clear();
    match cut(ledger, best, &choice.reader, text_max) {
        Ok(excerpt) => walk(ledger, Some(excerpt)),
        Err(needed) if nothing && needed > ledger.budget() as i64 => {
            Ok(Selection { least_budget: Some(needed as usize), ..walk(ledger, None)? })
        }
        Err(_) => walk(ledger, None), // something shorter is there, or the share of its section is too small for it
    }
}

/// The best candidate that only the budget kept out, if nothing near it was admitted. Both leave the length penalty
/// aside, which would lift a scrap over what the query asks for.
fn unrivalled(pool: &[Scored], verdicts: &[Verdict]) -> Option<usize> {
    let kept_out =
        |verdict: &Verdict| verdict.fills() || matches!(verdict.last, Reason::BudgetExceeded | Reason::DroppedInRepair);
    let kept_out = pool.iter().zip(verdicts).filter(|(_, verdict)| kept_out(verdict)).map(|(scored, _)| scored);
    let best = kept_out.rev().max_by(|a, b| a.raw.total_cmp(&b.raw))?; // of equal ones the first in the walk
    let near = if best.raw > 0.0 { best.raw * NEAR } else { f64::NEG_INFINITY };
    let rivalled = pool
        .iter()
        .zip(verdicts)
        .any(|(scored, verdict)| verdict.is_selected() && !verdict.fills() && scored.raw >= near);
    (!rivalled).then_some(best.candidate)
}

/// Drops what the count of the whole context has no room for.
fn repair(pool: &[Scored], ledger: &mut Ledger<'_>, selection: &mut Selection) {
    for (candidate, whole) in ledger.repair() {
        let at = pool.iter().position(|scored| scored.candidate == candidate).expect("what is admitted is in the pool");
        let budget = ledger.budget();
        let verdict = &mut selection.verdicts[at];
        (verdict.stage, verdict.last) = (Stage::Repair, Reason::DroppedInRepair);
        verdict.details = StepDetails {
            tokens_used: Some(whole as usize),
            tokens_left: Some(0),
            tokens_needed: Some(whole as usize - budget),
            ..StepDetails::default()
        };
        let id = &ledger.candidates()[candidate].id;
        selection.reallocated.retain(|chunk| chunk.chunk_id != *id);
    }
}
