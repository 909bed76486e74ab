//! Holding on: the writer's lock, readers' pins, generations with a name, and the garbage that nobody holds.

pub mod lock;
pub mod pins;
pub mod named;
pub mod snapshots;
pub mod generation;
pub mod reports;
pub mod garbage;
