//! Kernels for NVIDIA GPUs, over tensors: what the tensor library does slowly or in many steps.
//!
//! The kernels are CUDA C++ (`*.cu`). `scripts/make-ptx` compiles them to `ptx/`, which the driver finishes for its GPU
//! when a kernel is first launched. A Rust file beside each says what it computes, for which shapes, and how it is
//! launched. Matrix products are cuBLAS's. Everything runs on one stream of the device, in the order it was asked for;
//! sums, norms and softmax are f32 whatever the type of the rows.
//!
//! In tests the same launches go to an emulation of the device, so that grids, arguments and kernels are checked
//! without one.

pub(crate) mod activation;
pub(crate) mod attention;
pub(crate) mod batch;
pub(crate) mod largest;
mod launch;
pub(crate) mod pool;
pub(crate) mod products;
pub(crate) mod rotary;
pub(crate) mod rows;
pub(crate) mod transfer;

#[cfg(test)]
pub(crate) mod emulation;
#[cfg(test)]
mod tests;

use candle_core::{DType, Device, Tensor};

pub(crate) use launch::name;
#[cfg(feature = "cuda")]
pub(crate) use launch::open;

/// Values that a thread reads at a time: widths of rows are multiples of this, or the tensor library does the work.
pub(crate) const PACK: usize = 8;
const WARP: usize = 32;

/// True if kernels run on this device: it is a GPU of the right kind, or, in tests, played by the host.
pub(crate) fn runs_on(device: &Device) -> bool {
    #[cfg(test)]
    if device.is_cpu() && emulation::is_on() {
        return true;
    }
    device.is_cuda()
}

/// True if our kernels can work on this tensor: where it is, and of what type.
pub(crate) fn takes(tensor: &Tensor) -> bool {
    runs_on(tensor.device()) && matches!(tensor.dtype(), DType::F32 | DType::BF16 | DType::F16)
}

/// As [`takes`], for rows of a width that fills whole packs.
pub(crate) fn takes_rows(tensor: &Tensor) -> bool {
    takes(tensor) && tensor.dims().last().is_some_and(|width| width.is_multiple_of(PACK))
}
