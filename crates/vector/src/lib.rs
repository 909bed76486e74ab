//! Nearest neighbours over rows in memory-mapped files: an exact scan that is the truth, HNSW that is measured against
//! it.
//!
//! The crate reads as its data flows. A [`mod@file`] is a checksummed container, mapped into memory and verified block
//! by block as it is touched; [`Rows`] are unit vectors in such a file; [`exact`] compares a query with every row;
//! [`hnsw`] builds a graph over the rows, freezes it into a file of its own and searches it there.
//!
//! Distance is `1 - dot`, which for unit vectors is one minus the cosine: it ascends from 0, and a nearer row comes
//! first. A [`Lift`] makes unit vectors of others, whose cosine ranks by inner product or Euclidean distance.
//!
//! Shapes: N rows, D dimensions, Q queries.

#[cfg(target_endian = "big")]
compile_error!("the files are little-endian and mapped as they are: this crate needs a little-endian machine");

mod error;
mod neighbor;
mod stop;
mod threads;
mod topk;

mod steps;
#[cfg(target_arch = "x86_64")]
mod simd;
mod distance;
mod codes;
mod lift;

#[cfg(any(test, feature = "testing"))]
pub mod faults;
pub mod file;
mod rows;

pub mod exact;
pub mod hnsw;

pub use distance::Kernel;
pub use error::{Error, Result};
pub use lift::{EXPONENTS, Lift};
pub use neighbor::Neighbor;
pub use rows::{DIMENSIONS_MAX, RowWriter, Rows, Scalar, UNIT_TOLERANCE, write_rows};
pub use stop::{NEVER, Stop};

#[cfg(test)]
mod testing;
