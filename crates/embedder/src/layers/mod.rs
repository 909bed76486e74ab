//! The parts encoders are made of, over packed tokens: `[T, H]` tensors without padding.
//!
//! Each part has two forms of the same computation. On the CPU it calls our kernels; on other devices it is written in the
//! tensor library's own operations. Tests hold the one against the other.

pub(crate) mod attention;
pub(crate) mod embedding;
pub(crate) mod gate;
pub(crate) mod linear;
pub(crate) mod norm;

use candle_core::{CpuStorage, Layout, Result, bail};

/// The values of a contiguous f32 tensor on the CPU.
fn values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else {
        bail!("a kernel was given a tensor that is not contiguous: {layout:?}");
    };
    Ok(&storage.as_slice::<f32>()?[start..end])
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    /// `n` reproducible values in [-1, 1), \[n\].
    pub(crate) fn noise(seed: u64, n: usize) -> Tensor {
        Tensor::from_vec(crate::kernels::cpu::noise(seed, n), n, &Device::Cpu).unwrap()
    }

    #[track_caller]
    pub(crate) fn assert_close(ours: &Tensor, theirs: &Tensor, tolerance: f32) {
        assert_eq!(ours.dims(), theirs.dims());
        let difference = (ours - theirs).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
        let difference = difference.to_scalar::<f32>().unwrap();
        assert!(difference <= tolerance, "differs by {difference}");
    }
}
