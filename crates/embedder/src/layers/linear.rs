//! A dense layer: `activation(x Wᵀ + b)`.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{DType, Result, Tensor};

use super::{CpuRows, Rows, Workspace};
use crate::device;
use crate::kernels::cpu::Simd;
pub(crate) use crate::kernels::cpu::dense::Activation;
use crate::kernels::cpu::dense::{Dense, Scratch, Weight};
use crate::kernels::cuda::{self, products};
use crate::kernels::gpu::Gpu;
use crate::kernels::gpu::product::{GpuLinear, WeightType};
use crate::precision::Precision;

/// Weights of a dense layer with K inputs and N outputs.
#[derive(Debug)]
pub(crate) struct Linear {
    form: Form,
    activation: Activation,
}

/// On the CPU.
#[derive(Debug)]
pub(crate) struct CpuLinear {
    weight: Weight,
    bias: Option<Vec<f32>>,
    activation: Activation,
}

#[derive(Debug)]
enum Form {
    Cpu(Arc<CpuLinear>), // a team of threads holds it too
    Gpu(GpuLinear),
    Device { weight: Tensor, bias: Option<DeviceBias> },
}

/// In both types there is a use for.
#[derive(Debug)]
struct DeviceBias {
    f32: Tensor,
    of_rows: Tensor,
}

impl Linear {
    /// From a weight \[N, K\] and a bias \[N\], which is zero where there is none; on `gpu`, or where the weight lies.
    pub(crate) fn new(
        weight: &Tensor,
        bias: Option<&Tensor>,
        activation: Activation,
        precision: Precision,
        gpu: Option<&Gpu>,
    ) -> Result<Self> {
        let form = if let Some(gpu) = gpu {
            Self::for_gpu(gpu, weight, bias, activation, precision)?
        } else if super::lives_on_cpu(weight) {
            Self::for_cpu(weight, bias, activation, precision)?
        } else {
            Self::for_device(weight, bias, precision)?
        };
        Ok(Self { form, activation })
    }

    fn for_cpu(weight: &Tensor, bias: Option<&Tensor>, activation: Activation, precision: Precision) -> Result<Form> {
        let (n_outputs, n_inputs) = weight.dims2()?;
        let values = weight.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        let weight = Weight::pack(device::simd(), precision, &values, n_outputs, n_inputs);
        let bias = bias.map(|bias| bias.to_dtype(DType::F32)?.to_vec1()).transpose()?;
        Ok(Form::Cpu(Arc::new(CpuLinear { weight, bias, activation })))
    }

    fn for_gpu(
        gpu: &Gpu,
        weight: &Tensor,
        bias: Option<&Tensor>,
        activation: Activation,
        precision: Precision,
    ) -> Result<Form> {
        let (_, n_inputs) = weight.dims2()?;
        let of_weight = match precision {
            Precision::F32 => WeightType::F32,
            Precision::F16 => WeightType::F16,
            Precision::Bf16 | Precision::Int8 => unreachable!("refused for GPUs when the model was loaded"),
        };
        let (weight, bias) = (super::to_host(weight)?, bias.map(super::to_host).transpose()?);
        Ok(Form::Gpu(GpuLinear::new(gpu, &weight, bias.as_deref(), n_inputs, (activation, of_weight))?))
    }

    fn for_device(weight: &Tensor, bias: Option<&Tensor>, precision: Precision) -> Result<Form> {
        let dtype = super::dtype(precision);
        let both = |bias: &Tensor| -> Result<DeviceBias> {
            Ok(DeviceBias { f32: bias.to_dtype(DType::F32)?, of_rows: bias.to_dtype(dtype)? })
        };
        Ok(Form::Device { weight: weight.to_dtype(dtype)?.contiguous()?, bias: bias.map(both).transpose()? })
    }

    /// Multiply-adds for one row.
    pub(crate) fn n_products(&self) -> usize {
        match &self.form {
            Form::Cpu(layer) => layer.shape().iter().product(),
            Form::Gpu(layer) => layer.n_inputs() * layer.n_outputs(),
            Form::Device { weight, .. } => weight.elem_count(),
        }
    }

    /// K.
    pub(crate) fn n_inputs(&self) -> usize {
        match &self.form {
            Form::Cpu(layer) => layer.weight.n_inputs(),
            Form::Gpu(layer) => layer.n_inputs(),
            Form::Device { weight, .. } => weight.dims()[1],
        }
    }

    /// N.
    pub(crate) fn n_outputs(&self) -> usize {
        match &self.form {
            Form::Cpu(layer) => layer.weight.n_outputs(),
            Form::Gpu(layer) => layer.n_outputs(),
            Form::Device { weight, .. } => weight.dims()[0],
        }
    }

    /// \[T, K\] → \[T, N\].
    pub(crate) fn forward(&self, x: &Rows, workspace: &mut Workspace) -> Result<Rows> {
        match (&self.form, x) {
            (Form::Cpu(layer), Rows::Cpu(x)) => Ok(Rows::Cpu(layer.forward(x, workspace))),
            (Form::Gpu(layer), Rows::Gpu(x)) => Ok(Rows::Gpu(layer.forward(x, workspace.recorder())?)),
            (Form::Device { weight, bias }, Rows::Device(x)) => {
                Ok(Rows::Device(on_device(x, weight, bias.as_ref(), self.activation)?))
            }
            _ => unreachable!("one encoder lives on one device"),
        }
    }
}

impl CpuLinear {
    /// K and N.
    pub(super) fn shape(&self) -> [usize; 2] {
        [self.weight.n_inputs(), self.weight.n_outputs()]
    }

    fn forward(self: &Arc<Self>, x: &CpuRows, workspace: &mut Workspace) -> CpuRows {
        let [n_inputs, n_outputs] = self.shape();
        assert_eq!(x.width(), n_inputs, "layers of one encoder fit together");
        let mut out = workspace.take(x.n_rows(), n_outputs);
        let Workspace { simd, scratch, team, .. } = workspace;
        let is_shared =
            team.as_mut().is_some_and(|team| team.share(self, x.values(), x.n_rows(), out.values_mut(), scratch));
        if !is_shared {
            self.run(*simd, 0..n_outputs, x.values(), x.n_rows(), out.values_mut(), scratch);
        }
        out
    }

    /// Some outputs, from a multiple of [`PART_ALIGNMENT`] on: \[T, K\] → \[T, outputs\].
    ///
    /// [`PART_ALIGNMENT`]: crate::kernels::cpu::dense::PART_ALIGNMENT
    pub(super) fn run(
        &self,
        simd: Simd,
        outputs: Range<usize>,
        rows: &[f32],
        n_rows: usize,
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let Self { weight, bias, activation } = self;
        let bias = bias.as_deref();
        Dense { weight, bias, activation: *activation, rows, n_rows, outputs, out, scratch }.run(simd);
    }
}

fn on_device(x: &Tensor, weight: &Tensor, bias: Option<&DeviceBias>, activation: Activation) -> Result<Tensor> {
    if let (Some(bias), Activation::None, true) = (bias, activation, products::takes_biased(x, weight)) {
        return products::biased(x, weight, &bias.of_rows);
    }
    let sums = products::plain(x, weight)?;
    if cuda::takes_rows(&sums) {
        return cuda::activation::activate(sums, bias.map(|bias| &bias.f32), activation);
    }
    match bias {
        Some(bias) => super::activate(&sums.broadcast_add(&bias.of_rows)?, activation),
        None => super::activate(&sums, activation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{assert_close, both, noise, workspace};

    #[test]
    fn both_forms_agree() {
        let mut workspace = workspace();
        for (n_rows, n_inputs, n_outputs) in [(1, 3, 5), (7, 32, 96), (33, 400, 40)] {
            let weight = noise(1, n_outputs * n_inputs).reshape((n_outputs, n_inputs)).unwrap();
            let (bias, x) = (noise(2, n_outputs), noise(3, n_rows * n_inputs).reshape((n_rows, n_inputs)).unwrap());
            let (ours, theirs) = both(&x, &mut workspace);
            for bias in [Some(&bias), None] {
                for activation in [
                    Activation::None,
                    Activation::Gelu,
                    Activation::GeluTanh,
                    Activation::Relu,
                    Activation::Silu,
                    Activation::Tanh,
                ] {
                    let cpu = Linear::new(&weight, bias, activation, Precision::F32, None).unwrap();
                    let form = Linear::for_device(&weight, bias, Precision::F32).unwrap();
                    let device = Linear { form, activation };
                    assert_eq!((cpu.n_products(), device.n_products()), (n_inputs * n_outputs, n_inputs * n_outputs));
                    let ours = cpu.forward(&ours, &mut workspace).unwrap();
                    assert_close(&ours, &device.forward(&theirs, &mut workspace).unwrap(), 2e-5);
                }
            }
        }
    }
}
