//! Writing: a folder for a new collection, segments within a bound of memory, a commit that publishes a generation, a
//! compaction that merges segments, segments of other collections that are adopted.

pub mod create;
pub mod memory;
pub mod segments;
pub mod commit;
pub mod compact;
pub mod adopt;
