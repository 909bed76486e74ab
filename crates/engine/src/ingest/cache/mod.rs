//! The embedding cache of a user: what one collection had embedded, no other embeds again.
//!
//! ```text
//! <folder>/<fingerprint>-<dimensions>/    one folder a model
//!   model.json                            what the model is called
//!   <time>-<process>/                     a segment: keys, vectors
//! ```
//!
//! Every process writes to segments of its own, so writers never wait for each other, and reads all segments. A vector
//! is handed out only if it is the one that was kept, checksum and all. A cache may be deleted at any time, whole or in
//! part: it costs time.
//!
//! **Limit.** After a run that wrote, the segments used longest ago are removed until all models together are within
//! the limit. A segment is used when something is written to it or found in it; segments that a process still writes to
//! are left alone.

mod options;
mod segment;
mod model;
mod prune;
mod embeddings;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use self::embeddings::CachedEmbeddings;
pub use self::options::{CACHE_BYTES_MAX, CacheOptions};
pub use self::prune::{CachePrune, CachePruned, prune};
pub use self::status::{CacheStatus, CachedModel, status};
