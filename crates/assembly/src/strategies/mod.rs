//! Strategies: a file or folder for each, with its settings, their ranges, its plan and its explanations.
//!
//! What all share is in `select`. A new strategy is a file here, a row in the table below and a line in
//! [`Policy::chooser`](crate::Policy); the compiler names what is missing.

pub mod cento;
mod flat;
pub mod mmr;
pub mod adaptive;
pub(crate) mod bubble;
pub mod rse;
pub mod rse_kadane;
mod rse_exact;
pub mod window;
pub mod parent;
pub mod automerge;
pub mod seal;
#[cfg(test)]
mod tests;

pub(crate) use flat::Flat;
pub(crate) use rse_exact::RseExact;

use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to choose among candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The segments that hold most relevant text within the budget, proven or with a bound.
    #[default]
    Cento,
    /// By descending relevance, gated by the budget alone.
    Flat,
    /// Maximal marginal relevance.
    Mmr,
    /// As many as stand before the largest gap of the scores.
    Adaptive,
    /// The context bubble: scored, then gated by budget, section and redundancy.
    Bubble,
    /// Relevant segments, chosen greedily as dsRAG does.
    Rse,
    /// One segment a document, by the capped running sum of the tutorial.
    RseKadane,
    /// The best set of segments by dsRAG's values.
    RseExact,
    /// The chunks around each chunk found.
    Window,
    /// The section of each chunk found.
    Parent,
    /// Sections of which enough is found, else chunks.
    Automerge,
    /// The passages that a repair of fixed size keeps, see [`seal`].
    Seal,
}

named! {
    Strategy, "strategy":
    Cento = "cento",
    Flat = "flat",
    Mmr = "mmr",
    Adaptive = "adaptive",
    Bubble = "bubble",
    Rse = "rse",
    RseKadane = "rse-kadane",
    RseExact = "rse-exact",
    Window = "window",
    Parent = "parent",
    Automerge = "automerge",
    Seal = "seal",
}
