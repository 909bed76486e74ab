//! Queues: queries that come at the same time are embedded together, and then take turns at the cores.

pub(crate) mod encoder;
pub(crate) mod turns;
