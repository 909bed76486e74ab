//! Shards that gave no answer: an answer without them says so, wherever it goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of the collection that had no part in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingShard {
    /// The address of its server.
    pub shard: String,
    /// Why it gave no answer.
    pub why: String,
}

impl MissingShard {
    /// Warning to whoever asked.
    #[must_use]
    pub fn warning(&self) -> String {
        let Self { shard, why } = self;
        format!("shard {shard} is missing ({why}): this is of a part of the collection")
    }
}

/// The shards that a request cannot do without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Needed {
    /// All of them.
    #[default]
    All,
    /// One: those without an answer when the request begins are left out of all of it.
    Any,
}
