//! The arithmetic of the encoder, written for the machine it runs on.
//!
//! A kernel sees slices only, or buffers of a device: no models, no files.

pub(crate) mod cpu;
pub(crate) mod cuda;
pub(crate) mod gpu;
