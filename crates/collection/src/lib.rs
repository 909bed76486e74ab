//! The collection folder: what it holds, how that gets there, who holds on to it, and how damage is found and mended.
//!
//! A collection is a set of immutable segments and one manifest that names them. [`keep::generation::Generation`] opens
//! one generation; [`format::segment::SegmentWriter`] and [`write::commit::Commit`] make the next. Nothing here knows a
//! query or an encoder.

pub mod error;
pub mod fs;
pub mod format;
pub mod keep;
pub mod write;
pub mod care;

#[cfg(feature = "testing")]
pub mod testing;

pub use error::{Error, Result, describe};
