//! The steps of the widest instructions, to multiples of which vectors are padded.

/// Elements that the widest path takes in one step; rows and queries are padded to a multiple of it.
pub(crate) const ELEMENTS: usize = 32;

/// Codes that the widest path takes in one step.
pub(crate) const CODES: usize = 64;
