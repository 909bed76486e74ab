//! Writing: a folder for a new collection, a commit that publishes a generation, a compaction that merges segments.

pub mod create;
pub mod commit;
pub mod compact;
