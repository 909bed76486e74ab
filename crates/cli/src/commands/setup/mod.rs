//! The commands on Cento itself: its settings, what it trusts, its schemas.

pub(crate) mod config;
pub(crate) mod trust;
pub(crate) mod schema;
