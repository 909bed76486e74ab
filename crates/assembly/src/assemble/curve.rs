//! The budget curve of a request.

use super::prepare::Prepared;
use super::request::Request;
use crate::error::{Error, Result};
use crate::strategies::Strategy;

pub use crate::strategies::cento::curve::{Curve, Point, Solved};

/// The curve of a request of the strategy `cento`, up to its budget, solved at `n_solved` budgets, evenly spread, and
/// at the knee; at none, not even the knee, where `n_solved` is 0.
///
/// # Errors
/// [`Error::Strategy`] for any other strategy, and those of [`assemble`](crate::assemble).
pub fn budget_curve(request: &Request<'_>, n_solved: usize) -> Result<Curve> {
    has_curve(request.strategy)?;
    let policy = request.policy.checked()?;
    let segments = policy.segments();
    let prepared = Prepared::new(request, &segments)?;
    let mut ledger = prepared.ledger(request);
    let similarity = prepared.similarity(request);
    segments.curve(&prepared.choice(request, &similarity), &mut ledger, n_solved)
}

/// Refuses a strategy that has no budget curve.
///
/// # Errors
/// [`Error::Strategy`] for any but `cento`.
pub fn has_curve(strategy: Strategy) -> Result<()> {
    match strategy {
        Strategy::Cento => Ok(()),
        _ => Err(Error::Strategy { what: "a budget curve", strategy }),
    }
}
