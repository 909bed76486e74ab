//! Matrices of vectors in files: NumPy's `.npy`, the `.fvecs` and `.bvecs` of the benchmarks of nearest neighbours,
//! Parquet, and HDF5 as ann-benchmarks has it.
//!
//! A header is held against the length of the file before anything is read, so that a lying one takes no memory. Rows
//! are read one at a time, or in batches of bounded size.
//! Shapes: N rows, D columns.

mod rows;
mod numpy;
mod counted;
mod parquet;
mod hdf5;
mod matrix;
mod query;
#[cfg(test)]
mod tests;

pub(crate) use self::matrix::Matrix;
pub use self::query::{bare_vectors, open_vectors, read_vectors};
pub(crate) use self::rows::Record;
