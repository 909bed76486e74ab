//! Explanation: a context's trace, its replay, what differs between two, and where a document was lost.

pub(crate) mod trace;
pub(crate) mod differences;
pub(crate) mod replay;
pub(crate) mod undo;
pub(crate) mod why;
pub(crate) mod why_not;
