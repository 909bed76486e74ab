//! The gate of a gated feed-forward network: one half of each row, activated, times the other half.
//!
//! Source: Shazeer 2020, "GLU variants improve transformer": GEGLU and SwiGLU.
//! Shapes: \[T, 2F\] → \[T, F\].

use candle_core::Result;

use super::linear::Activation;
use super::{Rows, Workspace};
use crate::kernels::cpu::gate;
pub(crate) use crate::kernels::cpu::gate::Activated;
use crate::kernels::cuda;
use crate::kernels::gpu;

/// The activated half of a row, and the activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gate {
    pub(crate) activation: Activation,
    pub(crate) activated: Activated,
}

impl Gate {
    pub(crate) fn forward(self, x: &Rows, workspace: &mut Workspace) -> Result<Rows> {
        match x {
            Rows::Cpu(x) => {
                let width = x.width() / 2;
                let mut out = workspace.take(x.n_rows(), width);
                let Self { activation, activated } = self;
                let gate = gate::Gate { activation, activated, width, rows: x.values(), out: out.values_mut() };
                gate.run(workspace.simd);
                Ok(Rows::Cpu(out))
            }
            Rows::Gpu(x) => Ok(Rows::Gpu(gpu::launch::gate(x, self.activation, self.activated, workspace.recorder())?)),
            Rows::Device(x) if cuda::takes_rows(x) && (x.dim(1)? / 2).is_multiple_of(cuda::PACK) => {
                Ok(Rows::Device(cuda::activation::gate(x, self.activated, self.activation)?))
            }
            Rows::Device(x) => {
                let width = x.dim(1)? / 2;
                let halves = (x.narrow(1, 0, width)?, x.narrow(1, width, width)?);
                let (activated, other) = match self.activated {
                    Activated::First => halves,
                    Activated::Second => (halves.1, halves.0),
                };
                Ok(Rows::Device((super::activate(&activated.contiguous()?, self.activation)? * other)?))
            }
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
        for (n_rows, width) in [(1, 1), (3, 17), (40, 64)] {
            let x = noise(1, n_rows * 2 * width).reshape((n_rows, 2 * width)).unwrap();
            let (ours, theirs) = both(&x, &mut workspace);
            for activated in [Activated::First, Activated::Second] {
                for activation in [Activation::Gelu, Activation::Silu] {
                    let gate = Gate { activation, activated };
                    let ours = gate.forward(&ours, &mut workspace).unwrap();
                    assert_close(&ours, &gate.forward(&theirs, &mut workspace).unwrap(), 2e-6);
                }
            }
        }
    }
}
