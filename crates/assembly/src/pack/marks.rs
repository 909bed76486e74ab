//! How much of Cento's own stands between the texts of a context.

use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The marks around the texts of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Marks {
    /// A short mark for each source, numbered by source: its title (else the name of its file) and the heading above
    /// its first piece, where the piece does not say them itself. What is left out between two pieces of a source is
    /// `…`. All else is in the list of citations.
    #[default]
    Lean,
    /// A header for each piece, numbered by piece: document, headings, place, bytes; and how many chunks are left out.
    Full,
}

impl Marks {
    /// The marks of a trace that does not name them: it was written before there was a choice.
    pub(crate) fn full() -> Self {
        Self::Full
    }
}

named! {
    Marks, "marks":
    Lean = "lean",
    Full = "full",
}
