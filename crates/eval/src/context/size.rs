//! Size: what a context costs, and how it is spread over sections.
//!
//! Tokens are those that the context was counted with, headers, separators and marks too.

use std::collections::BTreeSet;

use crate::contexts::Context;

/// Share of the budget that is used; none for a budget of 0.
pub fn budget_used(context: &Context) -> Option<f64> {
    (context.budget_tokens > 0).then(|| context.n_tokens as f64 / context.budget_tokens as f64)
}

/// Share of the delivered tokens that is no text of a source: headers, marks and separators. Texts are counted each by
/// itself, so it is a little too small where they have fewer tokens together.
pub fn wrapping(context: &Context) -> Option<f64> {
    let around = context.n_tokens.saturating_sub(context.n_text_tokens);
    (context.n_tokens > 0).then(|| around as f64 / context.n_tokens as f64)
}

/// Number of distinct sections with a delivered chunk.
pub fn sections(context: &Context) -> usize {
    let delivered = context.sections.iter().filter(|section| section.chunks > 0);
    delivered.map(|section| &section.section).collect::<BTreeSet<_>>().len()
}
