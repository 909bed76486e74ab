//! The events of a pull.

use crate::card::{Prompts, Use};
use crate::error::Attempt;

/// A model as its repository describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// `owner/name`.
    pub repository: String,
    /// The commit.
    pub revision: String,
    /// As its page says; `unknown` where it does not.
    pub license: String,
    /// All files that are needed.
    pub n_bytes: u64,
    /// As it was read.
    pub shape: Shape,
}

/// A model as its files say before the weights are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Its use.
    pub of_use: Use,
    /// The `model_type` of its configuration; [`crate::STATIC`] for a table of vectors.
    pub architecture: String,
    /// As [`crate::Card::pooling`].
    pub pooling: String,
    /// Length of a vector; a table of vectors says it with its weights alone.
    pub dimensions: Option<usize>,
    /// Tokens it reads of one text.
    pub max_tokens: usize,
    /// Words put before a text.
    pub prompts: Prompts,
}

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
    /// The model was read but for its weights, and they are next.
    Found(&'a Found),
    /// The hub asked to be left alone for a while.
    Resting {
        /// Until the next request.
        seconds: u64,
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
