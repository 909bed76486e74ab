//! Normalisation around the mean (layer norm) or around zero (RMSNorm), alone or after adding a residual.

use candle_core::{D, DType, Result, Tensor};

use super::{Rows, Workspace};
use crate::kernels::cpu::heads::Heads;
pub(crate) use crate::kernels::cpu::norm::Centre;
use crate::kernels::cpu::norm::{Norm, NormHeads};
use crate::kernels::cuda::rows::{self, Picked, Sum};
use crate::kernels::gpu::launch::{GpuNorm, norm_heads};
use crate::kernels::gpu::{Gpu, GpuRows, Recorder};
use crate::precision::Precision;

/// `(x - centre) / √(variance + ε) * scale + shift`, over the last axis; the variance is that around the centre.
#[derive(Debug, Clone)]
pub(crate) struct LayerNorm {
    form: Form,
    epsilon: f64,
    centre: Centre,
}

#[derive(Debug, Clone)]
enum Form {
    Cpu {
        scale: Vec<f32>,
        shift: Option<Vec<f32>>,
    },
    Gpu(GpuNorm),
    /// f32 whatever the type of the rows.
    Device {
        scale: Tensor,
        shift: Option<Tensor>,
    },
}

impl LayerNorm {
    /// From a scale \[H\] and a shift \[H\], which is zero where there is none; on `gpu`, or where the scale lies.
    pub(crate) fn new(
        scale: &Tensor,
        shift: Option<&Tensor>,
        epsilon: f64,
        precision: Precision,
        gpu: Option<&Gpu>,
    ) -> Result<Self> {
        let form = if let Some(gpu) = gpu {
            let shift = shift.map(super::to_host).transpose()?;
            Form::Gpu(GpuNorm::new(gpu, &super::to_host(scale)?, shift.as_deref())?)
        } else if super::lives_on_cpu(scale) {
            let vector = |tensor: &Tensor| tensor.to_dtype(DType::F32)?.to_vec1::<f32>();
            Form::Cpu { scale: vector(scale)?, shift: shift.map(vector).transpose()? }
        } else {
            Self::for_device(scale, shift, precision)?
        };
        Ok(Self { form, epsilon, centre: Centre::Mean })
    }

    /// Around zero and without a shift; the scale is as exact as f32 on every device.
    pub(crate) fn rms(scale: &Tensor, epsilon: f64, gpu: Option<&Gpu>) -> Result<Self> {
        Ok(Self { centre: Centre::Zero, ..Self::new(scale, None, epsilon, Precision::F32, gpu)? })
    }

    fn for_device(scale: &Tensor, shift: Option<&Tensor>, precision: Precision) -> Result<Form> {
        let vector = |tensor: &Tensor| tensor.to_dtype(super::dtype(precision))?.to_dtype(DType::F32);
        Ok(Form::Device { scale: vector(scale)?, shift: shift.map(vector).transpose()? })
    }

    /// Normalises \[T, H\] in place.
    pub(crate) fn forward(&self, x: &mut Rows, workspace: &mut Workspace) -> Result<()> {
        self.normalize(x, None, workspace)
    }

    /// Replaces `x` by the normalised `x + residual`, both \[T, H\].
    pub(crate) fn forward_sum(&self, x: &mut Rows, residual: &Rows, workspace: &mut Workspace) -> Result<()> {
        self.normalize(x, Some(residual), workspace)
    }

    fn normalize(&self, x: &mut Rows, residual: Option<&Rows>, workspace: &mut Workspace) -> Result<()> {
        match (&self.form, x, residual) {
            (Form::Cpu { .. }, Rows::Cpu(x), None) => self.run(x.values_mut(), None, workspace),
            (Form::Cpu { .. }, Rows::Cpu(x), Some(Rows::Cpu(residual))) => {
                self.run(x.values_mut(), Some(residual.values()), workspace);
            }
            (Form::Gpu(norm), Rows::Gpu(x), None) => norm.forward(x, None, self.statistics(), workspace.recorder())?,
            (Form::Gpu(norm), Rows::Gpu(x), Some(Rows::Gpu(residual))) => {
                norm.forward(x, Some(residual), self.statistics(), workspace.recorder())?;
            }
            (Form::Device { .. }, Rows::Device(x), None) => *x = self.on_device(x, None)?,
            (Form::Device { .. }, Rows::Device(x), Some(Rows::Device(residual))) => {
                *x = self.on_device(x, Some(residual))?;
            }
            _ => unreachable!("one encoder lives on one device"),
        }
        Ok(())
    }

    fn on_device(&self, x: &Tensor, residual: Option<&Tensor>) -> Result<Tensor> {
        let norm = self.for_kernels().expect("called for the device's form");
        if rows::takes(x) {
            let all = |table| Picked { table, at: None };
            return Sum { first: all(x), second: residual.map(all), bias: None, norm: Some(norm) }.run();
        }
        match residual {
            Some(residual) => normalized(&(x + residual)?, norm),
            None => normalized(x, norm),
        }
    }

    /// A device's rows of any shape, by the tensor library.
    pub(super) fn of_tensor(&self, x: &Tensor) -> Result<Tensor> {
        normalized(x, self.for_kernels().expect("called for the device's form"))
    }

    /// Normalises the heads of queries by the first norm and those of keys by the second, in rows `q | k | v` on the
    /// CPU.
    pub(super) fn forward_heads([queries, keys]: [&Self; 2], heads: Heads, qkv: &mut [f32], workspace: &Workspace) {
        let (Form::Cpu { scale: of_queries, .. }, Form::Cpu { scale: of_keys, .. }) = (&queries.form, &keys.form)
        else {
            unreachable!("one encoder lives on one device")
        };
        let (epsilon, centre) = (queries.epsilon as f32, queries.centre);
        NormHeads { scales: [of_queries, of_keys], epsilon, centre, heads, qkv }.run(workspace.simd);
    }

    /// As [`LayerNorm::forward_heads`], for rows on a GPU.
    pub(super) fn forward_gpu_heads(
        [queries, keys]: [&Self; 2],
        heads: Heads,
        qkv: &GpuRows,
        recorder: &mut Recorder,
    ) -> Result<()> {
        let (Form::Gpu(of_queries), Form::Gpu(of_keys)) = (&queries.form, &keys.form) else {
            unreachable!("one encoder lives on one device")
        };
        norm_heads([of_queries, of_keys], heads, queries.statistics(), qkv, recorder)
    }

    fn statistics(&self) -> (f64, Centre) {
        (self.epsilon, self.centre)
    }

    /// For kernels that normalise what they made; nothing on the CPU and on other GPUs.
    pub(super) fn for_kernels(&self) -> Option<rows::Norm<'_>> {
        match &self.form {
            Form::Cpu { .. } | Form::Gpu(_) => None,
            Form::Device { scale, shift } => {
                Some(rows::Norm { scale, shift: shift.as_ref(), epsilon: self.epsilon, centre: self.centre })
            }
        }
    }

    fn run(&self, rows: &mut [f32], residual: Option<&[f32]>, workspace: &Workspace) {
        let Form::Cpu { scale, shift } = &self.form else { unreachable!("called for the CPU's form") };
        let (shift, epsilon) = (shift.as_deref(), self.epsilon as f32);
        Norm { scale, shift, epsilon, centre: self.centre, residual, rows }.run(workspace.simd);
    }
}

/// Statistics in f32 whatever the type of `x`.
fn normalized(x: &Tensor, norm: rows::Norm<'_>) -> Result<Tensor> {
    let rows::Norm { scale, shift, epsilon, centre } = norm;
    let dtype = x.dtype();
    let x = x.to_dtype(DType::F32)?;
    let centred = match centre {
        Centre::Mean => x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?,
        Centre::Zero => x,
    };
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let unit = centred.broadcast_div(&(variance + epsilon)?.sqrt()?)?;
    let scaled = unit.broadcast_mul(scale)?;
    match shift {
        Some(shift) => scaled.broadcast_add(shift)?.to_dtype(dtype),
        None => scaled.to_dtype(dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{assert_close, both, noise, workspace};

    #[test]
    fn both_forms_agree() {
        let mut workspace = workspace();
        for (n_rows, hidden) in [(3, 5), (9, 32), (4, 390)] {
            let (scale, shift) = (noise(1, hidden), noise(2, hidden));
            let x = noise(3, n_rows * hidden).reshape((n_rows, hidden)).unwrap();
            let residual = noise(4, n_rows * hidden).reshape((n_rows, hidden)).unwrap();
            let residual = both(&residual, &mut workspace);
            for (shift, centre) in [(Some(&shift), Centre::Mean), (None, Centre::Mean), (None, Centre::Zero)] {
                let cpu = LayerNorm { centre, ..LayerNorm::new(&scale, shift, 1e-12, Precision::F32, None).unwrap() };
                let form = LayerNorm::for_device(&scale, shift, Precision::F32).unwrap();
                let device = LayerNorm { form, epsilon: 1e-12, centre };
                let (mut ours, mut theirs) = both(&x, &mut workspace);
                cpu.forward(&mut ours, &mut workspace).unwrap();
                device.forward(&mut theirs, &mut workspace).unwrap();
                assert_close(&ours, &theirs, 1e-5);
                let (mut ours, mut theirs) = both(&x, &mut workspace);
                cpu.forward_sum(&mut ours, &residual.0, &mut workspace).unwrap();
                device.forward_sum(&mut theirs, &residual.1, &mut workspace).unwrap();
                assert_close(&ours, &theirs, 1e-5);
            }
        }
    }

    #[test]
    fn a_large_mean_does_not_drown_the_variance() {
        let hidden = 64;
        let x = (noise(1, hidden).reshape((1, hidden)).unwrap() + 1000.0).unwrap();
        let ones = noise(1, hidden).ones_like().unwrap();
        let mut workspace = workspace();
        let (mut rows, _) = both(&x, &mut workspace);
        LayerNorm::new(&ones, None, 1e-12, Precision::F32, None).unwrap().forward(&mut rows, &mut workspace).unwrap();
        let variance = rows.to_host().unwrap().iter().map(|value| value * value).sum::<f32>() / hidden as f32;
        assert!((variance - 1.0).abs() < 1e-4, "{variance}");
    }
}
