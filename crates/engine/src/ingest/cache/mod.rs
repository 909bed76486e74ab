//! The embedding cache of a user: what one collection had embedded, no other embeds again.
//!
//! ```text
//! <folder>/<fingerprint>-<dimensions>-<arithmetic>/    one folder a model, and a kind of machine that computes it
//!   model.json                                         what they are called
//!   <time>-<process>/                                  a segment: keys, vectors
//! ```
//!
//! Devices, and in bf16 instruction sets, give vectors that are close, not equal. So that the same input gives the same
//! bytes whoever filled the cache, each finds its own alone: see [`Embedder::arithmetic`].
//!
//! Every process writes to segments of its own, so writers never wait for each other, and reads all segments. A vector
//! is handed out only if it is the one that was kept, checksum and all. A cache may be deleted at any time, whole or in
//! part: it costs time.
//!
//! **Limit.** After a run that wrote, the segments used longest ago are removed until all models together are within
//! the limit. A segment is used when something is written to it or found in it; segments that a process still writes to
//! are left alone.
//!
//! [`Embedder::arithmetic`]: cento_embedder::Embedder::arithmetic

mod options;
mod segment;
mod model;
mod prune;
mod embeddings;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use self::embeddings::CachedEmbeddings;
pub(crate) use self::model::ModelFile;
pub use self::options::{CACHE_BYTES_MAX, CacheOptions};
pub use self::prune::{CachePrune, CachePruned, prune};
pub use self::status::{CacheStatus, CachedModel, status};
