//! Runs: for each query its documents, best first.
//!
//! Source: trec_eval orders by score as a 32-bit float, descending, and equal scores by document id, descending by
//! bytes; it ignores the rank column. Everything here has that order, so figures agree with it whatever wrote the file.
//! Differs: an id is one column of a file, so blanks in it are percent-encoded; ids of JSON files are encoded on
//! reading.

mod ranking;
mod predictions;
mod read;
mod write;

pub use self::ranking::{Hit, Ranking};
pub use self::read::Rankings;
pub use self::write::{Ties, column, write};

#[cfg(test)]
mod tests;
