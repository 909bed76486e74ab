//! The arithmetic of the encoder, written for the machine it runs on.
//!
//! A kernel sees slices only: no tensors, no models, no files.

pub(crate) mod cpu;
pub(crate) mod cuda;
