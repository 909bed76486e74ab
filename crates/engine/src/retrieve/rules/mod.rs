//! Rules beyond the two arms: what documents say of each other, and what they are called.

pub(crate) mod known;
pub(crate) mod links;
pub(crate) mod titles;
