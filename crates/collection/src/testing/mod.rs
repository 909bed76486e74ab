//! For the tests of every crate that writes: a file system that forgets what was not synced, reads that fail, and
//! seeded choices.

pub mod random;
pub mod volatile;

pub use cento_vector::faults::ReadFault;
