//! The commands on a collection as a whole: its documents, its segments, its health.

pub(crate) mod documents;
pub(crate) mod compact;
pub(crate) mod adopt;
pub(crate) mod snapshot;
pub(crate) mod repair;
pub(crate) mod inspect;
pub(crate) mod health;
