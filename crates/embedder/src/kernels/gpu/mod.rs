//! Kernels for any GPU, by Vulkan or Metal: WGSL that the driver compiles for the adapter it finds at run time.
//!
//! A kernel is text with the model's shapes in front of it, so that it is chosen by the model and never by the number
//! of tokens: what a row gets does not depend on the rows beside it. Rows are f32 and packed as on the CPU, weights of
//! products f32 or f16, sums f32. Word vectors are gathered there where the tables fit, and texts are pooled there. A
//! layer is one submission, so that no watchdog stops it. Masks are finite numbers: a driver may compute as if there
//! were no infinities.
//!
//! A fault is the device's: whoever meets it first writes it down in the handle, and every thread that uses the device
//! from then on gets the same error. Only a full memory is an error of the one call that asked for it.

mod adapter;
mod adapters;
pub(crate) mod attention;
mod comparison;
pub(crate) mod ends;
mod failure;
mod handle;
pub(crate) mod launch;
#[cfg(test)]
mod pretence;
pub(crate) mod product;
mod record;
#[cfg(any(test, feature = "testing"))]
mod rehearsal;
mod table;

pub use adapter::{Adapter, AdapterKind};
pub(crate) use adapters::{NoAdapter, adapters, may_have_hardware, open};
pub(crate) use comparison::{Bits, Comparison, Found, ROWS_STEP};
pub(crate) use failure::NO_MEMORY;
pub(crate) use handle::Gpu;
pub(crate) use record::{Download, GpuRows, Recorder};
#[cfg(any(test, feature = "testing"))]
pub use rehearsal::lose_gpus_after;
#[cfg(test)]
pub(crate) use {pretence::Pretence, rehearsal::Waited};

#[cfg(test)]
mod tests;
