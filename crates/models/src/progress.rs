//! The events of a pull.

use crate::error::Attempt;

/// An event of a pull, as it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Another process is pulling this model; this one waits for it.
    Waiting,
    /// A source is being asked.
    Trying {
        /// Its name.
        source: &'a str,
    },
    /// Bytes of the model's files received; only the hub reports them.
    Bytes {
        /// So far; falls back to 0 when the next source is tried.
        done: u64,
        /// In all.
        total: u64,
    },
    /// A source failed; the next one is tried.
    Failed(&'a Attempt),
}
