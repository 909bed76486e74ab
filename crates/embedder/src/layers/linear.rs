//! A dense layer: `activation(x Wᵀ + b)`.

use candle_core::{DType, Result, Tensor};

use super::{Rows, Workspace};
use crate::device;
pub(crate) use crate::kernels::cpu::dense::Activation;
use crate::kernels::cpu::dense::{Dense, Weight};
use crate::precision::Precision;

/// Weights of a dense layer with K inputs and N outputs.
#[derive(Debug)]
pub(crate) struct Linear {
    form: Form,
    activation: Activation,
}

#[derive(Debug)]
enum Form {
    Cpu { weight: Weight, bias: Option<Vec<f32>> },
    Device { transposed: Tensor, bias: Option<Tensor> },
}

impl Linear {
    /// From a weight \[N, K\] and a bias \[N\], which is zero where there is none.
    pub(crate) fn new(
        weight: &Tensor,
        bias: Option<&Tensor>,
        activation: Activation,
        precision: Precision,
    ) -> Result<Self> {
        let form = match weight.device().is_cpu() {
            true => Self::for_cpu(weight, bias, precision)?,
            false => Self::for_device(weight, bias, precision)?,
        };
        Ok(Self { form, activation })
    }

    fn for_cpu(weight: &Tensor, bias: Option<&Tensor>, precision: Precision) -> Result<Form> {
        let (n_outputs, n_inputs) = weight.dims2()?;
        let values = weight.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        let weight = Weight::pack(device::simd(), precision, &values, n_outputs, n_inputs);
        let bias = bias.map(|bias| bias.to_dtype(DType::F32)?.to_vec1()).transpose()?;
        Ok(Form::Cpu { weight, bias })
    }

    fn for_device(weight: &Tensor, bias: Option<&Tensor>, precision: Precision) -> Result<Form> {
        let dtype = super::dtype(precision);
        let transposed = weight.to_dtype(dtype)?.t()?.contiguous()?;
        Ok(Form::Device { transposed, bias: bias.map(|bias| bias.to_dtype(dtype)).transpose()? })
    }

    /// Multiply-adds for one row.
    pub(crate) fn n_products(&self) -> usize {
        match &self.form {
            Form::Cpu { weight, .. } => weight.n_inputs() * weight.n_outputs(),
            Form::Device { transposed, .. } => transposed.elem_count(),
        }
    }

    /// K.
    pub(crate) fn n_inputs(&self) -> usize {
        match &self.form {
            Form::Cpu { weight, .. } => weight.n_inputs(),
            Form::Device { transposed, .. } => transposed.dims()[0],
        }
    }

    /// \[T, K\] → \[T, N\].
    pub(crate) fn forward(&self, x: &Rows, workspace: &mut Workspace) -> Result<Rows> {
        match (&self.form, x) {
            (Form::Cpu { weight, bias }, Rows::Cpu(x)) => {
                assert_eq!(x.width(), weight.n_inputs(), "layers of one encoder fit together");
                let mut out = workspace.take(x.n_rows(), weight.n_outputs());
                let dense = Dense {
                    weight,
                    bias: bias.as_deref(),
                    activation: self.activation,
                    rows: x.values(),
                    n_rows: x.n_rows(),
                    out: out.values_mut(),
                    scratch: &mut workspace.scratch,
                };
                dense.run(workspace.simd);
                Ok(Rows::Cpu(out))
            }
            (Form::Device { transposed, bias }, Rows::Device(x)) => {
                let products = x.matmul(transposed)?;
                let sums = match bias {
                    Some(bias) => products.broadcast_add(bias)?,
                    None => products,
                };
                Ok(Rows::Device(super::activate(&sums, self.activation)?))
            }
            _ => unreachable!("one encoder lives on one device"),
        }
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
                    let cpu = Linear::new(&weight, bias, activation, Precision::F32).unwrap();
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
