//! A dense layer: `activation(x Wᵀ + b)`.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor};

use super::values;
use crate::kernels::cpu::Simd;
pub(crate) use crate::kernels::cpu::dense::Activation;
use crate::kernels::cpu::dense::{Dense, Scratch, Weight};
use crate::precision::Precision;

/// Weights of a dense layer with K inputs and N outputs.
#[derive(Debug)]
pub(crate) enum Linear {
    Cpu(CpuLinear),
    Device { transposed: Tensor, bias: Tensor, activation: Activation },
}

/// The layer with its weight in panels, as the CPU kernel wants it.
#[derive(Debug)]
pub(crate) struct CpuLinear {
    simd: Simd,
    weight: Weight,
    bias: Vec<f32>,
    activation: Activation,
}

impl Linear {
    /// From a weight \[N, K\] and a bias \[N\].
    pub(crate) fn new(weight: &Tensor, bias: &Tensor, activation: Activation) -> Result<Self> {
        if weight.device().is_cpu() {
            Self::for_cpu(weight, bias, activation)
        } else {
            Self::for_device(weight, bias, activation)
        }
    }

    fn for_cpu(weight: &Tensor, bias: &Tensor, activation: Activation) -> Result<Self> {
        let simd = Simd::detect();
        let (n_outputs, n_inputs) = weight.dims2()?;
        let values = weight.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
        let weight = Weight::pack(simd, Precision::F32, &values, n_outputs, n_inputs);
        Ok(Self::Cpu(CpuLinear { simd, weight, bias: bias.to_dtype(DType::F32)?.to_vec1()?, activation }))
    }

    fn for_device(weight: &Tensor, bias: &Tensor, activation: Activation) -> Result<Self> {
        Ok(Self::Device { transposed: weight.t()?.contiguous()?, bias: bias.clone(), activation })
    }

    /// \[T, K\] → \[T, N\].
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Cpu(layer) => x.apply_op1_no_bwd(layer),
            Self::Device { transposed, bias, activation } => {
                let sums = x.matmul(transposed)?.broadcast_add(bias)?;
                match activation {
                    Activation::None => Ok(sums),
                    Activation::Gelu => sums.gelu_erf(),
                    Activation::GeluTanh => sums.gelu(),
                    Activation::Relu => sums.relu(),
                    Activation::Silu => sums.silu(),
                    Activation::Tanh => sums.tanh(),
                }
            }
        }
    }
}

impl CustomOp1 for CpuLinear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (n_rows, n_inputs) = layout.shape().dims2()?;
        assert_eq!(n_inputs, self.weight.n_inputs(), "layers of one encoder fit together");
        let n_outputs = self.weight.n_outputs();
        let mut out = vec![0.0; n_rows * n_outputs];
        Dense {
            weight: &self.weight,
            bias: Some(&self.bias),
            activation: self.activation,
            rows: values(storage, layout)?,
            n_rows,
            out: &mut out,
            scratch: &mut Scratch::new(self.simd),
        }
        .run(self.simd);
        Ok((CpuStorage::F32(out), (n_rows, n_outputs).into()))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::layers::tests::{assert_close, noise};

    #[test]
    fn both_forms_agree() {
        for (n_rows, n_inputs, n_outputs) in [(1, 3, 5), (7, 32, 96), (33, 400, 40)] {
            let weight = noise(1, n_outputs * n_inputs).reshape((n_outputs, n_inputs)).unwrap();
            let (bias, x) = (noise(2, n_outputs), noise(3, n_rows * n_inputs).reshape((n_rows, n_inputs)).unwrap());
            for activation in [Activation::None, Activation::Gelu] {
                let ours = Linear::new(&weight, &bias, activation).unwrap();
                assert!(matches!(ours, Linear::Cpu(_)) && x.device().same_device(&Device::Cpu));
                let theirs = Linear::for_device(&weight, &bias, activation).unwrap();
                assert_close(&ours.forward(&x).unwrap(), &theirs.forward(&x).unwrap(), 2e-5);
            }
        }
    }
}
