//! Size: what a context costs, and how it is spread over sections.
//!
//! Tokens are those that the context was counted with, headers, separators and marks too.

use std::collections::BTreeSet;

use crate::contexts::Context;

/// Share of the budget that is used; none for a budget of 0.
pub fn budget_used(context: &Context) -> Option<f64> {
    (context.budget_tokens > 0).then(|| context.n_tokens as f64 / context.budget_tokens as f64)
}

/// Number of distinct sections with a delivered chunk.
pub fn sections(context: &Context) -> usize {
    let delivered = context.sections.iter().filter(|section| section.chunks > 0);
    delivered.map(|section| &section.section).collect::<BTreeSet<_>>().len()
}
