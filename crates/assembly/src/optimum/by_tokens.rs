//! The relaxation at every budget at once: its best value by number of tokens.
//!
//! Cost: states times chunks times tokens, an addition each.

use super::problem::Problem;
use super::relaxation::Relaxation;
use super::step::{Direction, UNREACHED};
use crate::error::Result;
use crate::stop::check;

/// Bounds of the problem at every budget from 0 to its own. Returns nothing if what is forced alone does not fit, or
/// breaks a rule.
///
/// # Errors
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub(crate) fn by_tokens(problem: &Problem<'_>) -> Result<Option<Vec<f64>>> {
    let Some(relaxation) = Relaxation::new(problem, &problem.fixed(), &problem.need_weights()) else { return Ok(None) };
    let Ok(budget) = usize::try_from(problem.budget) else { return Ok(None) };
    let width = budget.saturating_add(1);
    let mut now = vec![vec![UNREACHED; width]; relaxation.n_states];
    let mut next = now.clone();
    now[0].fill(0.0);
    for stages in relaxation.documents() {
        for &place in stages {
            check(problem.stop)?;
            next.iter_mut().for_each(|values| values.fill(UNREACHED));
            relaxation.step(Direction::Forward, place, &now, &mut next, |before, arc, behind| {
                let Ok(tokens) = usize::try_from(arc.tokens) else { return };
                for (behind, before) in behind.iter_mut().skip(tokens).zip(before) {
                    *behind = behind.max(before + arc.value);
                }
            });
            std::mem::swap(&mut now, &mut next);
        }
        // The best of a document's states is where the next one starts.
        let (start, others) = now.split_at_mut(1);
        for values in others {
            start[0].iter_mut().zip(&*values).for_each(|(best, value)| *best = best.max(*value));
            values.fill(UNREACHED);
        }
    }
    let values: Vec<f64> = now[0].iter().map(|value| value + relaxation.constant).collect();
    Ok((values[width - 1] != UNREACHED).then_some(values))
}
