//! The commands that explain a context: why a chunk is in it or not, what differs, and the same again.

pub(crate) mod repair;
pub(crate) mod why;
pub(crate) mod why_not;
pub(crate) mod diff;
pub(crate) mod replay;
