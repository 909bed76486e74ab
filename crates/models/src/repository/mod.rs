//! Models that no card ships for: any repository of the hub, read before its weights come, and pinned at first sight.
//!
//! Data flow: `wanted` (a name) → `listing` (what the repository holds, from the `hub` or the `cache` of Hugging
//! Face's own tools) → `select` (what of it is needed) → `pull` (small files, a look at the model, weights, a card).

pub(crate) mod cache;
pub(crate) mod listing;
pub(crate) mod origin;
pub(crate) mod pull;
pub(crate) mod remote;
mod select;
pub(crate) mod wanted;
