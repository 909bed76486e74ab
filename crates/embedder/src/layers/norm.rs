//! Layer normalisation, alone or after adding a residual.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, D, DType, Layout, Result, Shape, Tensor};

use super::values;
use crate::kernels::cpu::Simd;
use crate::kernels::cpu::norm::Norm;

/// `(x - mean) / √(variance + ε) * scale + shift`, over the last axis.
#[derive(Debug)]
pub(crate) enum LayerNorm {
    Cpu(CpuNorm),
    Device { scale: Tensor, shift: Tensor, epsilon: f64 },
}

/// The parameters as slices.
#[derive(Debug)]
pub(crate) struct CpuNorm {
    scale: Vec<f32>,
    shift: Vec<f32>,
    epsilon: f64,
}

impl LayerNorm {
    /// From scale and shift, both \[H\].
    pub(crate) fn new(scale: &Tensor, shift: &Tensor, epsilon: f64) -> Result<Self> {
        if !scale.device().is_cpu() {
            return Ok(Self::Device { scale: scale.clone(), shift: shift.clone(), epsilon });
        }
        let vector = |tensor: &Tensor| tensor.to_dtype(DType::F32)?.to_vec1::<f32>();
        Ok(Self::Cpu(CpuNorm { scale: vector(scale)?, shift: vector(shift)?, epsilon }))
    }

    /// \[T, H\] → \[T, H\].
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Cpu(norm) => x.apply_op1_no_bwd(norm),
            Self::Device { scale, shift, epsilon } => normalize(x, scale, shift, *epsilon),
        }
    }

    /// Normalises `x + residual`, both \[T, H\].
    pub(crate) fn forward_sum(&self, x: &Tensor, residual: &Tensor) -> Result<Tensor> {
        match self {
            Self::Cpu(norm) => x.apply_op2_no_bwd(residual, norm),
            Self::Device { scale, shift, epsilon } => normalize(&(x + residual)?, scale, shift, *epsilon),
        }
    }
}

fn normalize(x: &Tensor, scale: &Tensor, shift: &Tensor, epsilon: f64) -> Result<Tensor> {
    let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    centred.broadcast_div(&(variance + epsilon)?.sqrt()?)?.broadcast_mul(scale)?.broadcast_add(shift)
}

impl CpuNorm {
    fn run(&self, x: &[f32], residual: Option<&[f32]>, shape: &Shape) -> (CpuStorage, Shape) {
        let mut rows = x.to_vec();
        let (scale, shift, epsilon) = (&self.scale, &self.shift, self.epsilon as f32);
        Norm { scale, shift: Some(shift), epsilon, residual, rows: &mut rows }.run(Simd::detect());
        (CpuStorage::F32(rows), shape.clone())
    }
}

impl CustomOp1 for CpuNorm {
    fn name(&self) -> &'static str {
        "layer norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok(self.run(values(x, layout)?, None, layout.shape()))
    }
}

impl CustomOp2 for CpuNorm {
    fn name(&self) -> &'static str {
        "layer norm of a sum"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, residual: &CpuStorage, lr: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok(self.run(values(x, lx)?, Some(values(residual, lr)?), lx.shape()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{assert_close, noise};

    #[test]
    fn both_forms_agree() {
        for (n_rows, hidden) in [(1, 1), (3, 5), (9, 32), (4, 390)] {
            let (scale, shift) = (noise(1, hidden), noise(2, hidden));
            let x = noise(3, n_rows * hidden).reshape((n_rows, hidden)).unwrap();
            let residual = noise(4, n_rows * hidden).reshape((n_rows, hidden)).unwrap();
            let ours = LayerNorm::new(&scale, &shift, 1e-12).unwrap();
            let theirs = LayerNorm::Device { scale, shift, epsilon: 1e-12 };
            if hidden > 1 {
                assert_close(&ours.forward(&x).unwrap(), &theirs.forward(&x).unwrap(), 1e-5);
            }
            let (ours, theirs) = (ours.forward_sum(&x, &residual).unwrap(), theirs.forward_sum(&x, &residual).unwrap());
            assert_close(&ours, &theirs, 1e-5);
        }
    }

    #[test]
    fn a_large_mean_does_not_drown_the_variance() {
        let hidden = 64;
        let x = (noise(1, hidden).reshape((1, hidden)).unwrap() + 1000.0).unwrap();
        let (ones, zeros) = (noise(1, hidden).ones_like().unwrap(), noise(1, hidden).zeros_like().unwrap());
        let normed = LayerNorm::new(&ones, &zeros, 1e-12).unwrap().forward(&x).unwrap();
        let variance = normed.sqr().unwrap().mean_all().unwrap().to_scalar::<f32>().unwrap();
        assert!((variance - 1.0).abs() < 1e-4, "{variance}");
    }
}
