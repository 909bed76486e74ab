//! For the tests of every crate that writes: a file system that forgets what was not synced, and seeded choices.

pub mod random;
pub mod volatile;
