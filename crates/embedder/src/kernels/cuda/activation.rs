//! What follows the products of a feed-forward network, in one pass: bias and activation, or the gate.

use candle_core::{Result, Tensor};

use super::PACK;
use super::launch::{Address, Grid, launch, unfilled};
use crate::layers::gate::Activated;
use crate::layers::linear::Activation;

/// As `ActivateArguments` in activation.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct ActivateArguments {
    x: Address,
    bias: Address,
    n_packs: u64,
    width: u32,
    activation: u32,
}

/// As `GateArguments` in activation.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct GateArguments {
    out: Address,
    x: Address,
    n_packs: u64,
    width: u32,
    activated_at: u32,
    activation: u32,
}

/// As the enumeration in activation.cu.
fn number(activation: Activation) -> u32 {
    match activation {
        Activation::None => 0,
        Activation::Gelu => 1,
        Activation::GeluTanh => 2,
        Activation::Relu => 3,
        Activation::Silu => 4,
        Activation::Tanh => 5,
    }
}

/// `activation(x + bias)` in place: `x` \[T, N\] was just computed and nobody else holds it; the bias is f32, \[N\].
pub(crate) fn activate(x: Tensor, bias: Option<&Tensor>, activation: Activation) -> Result<Tensor> {
    if bias.is_none() && activation == Activation::None {
        return Ok(x);
    }
    let n_packs = x.elem_count() / PACK;
    let arguments = ActivateArguments {
        x: Address::of(&x)?,
        bias: Address::of_option(bias)?,
        n_packs: n_packs as u64,
        width: x.dim(1)? as u32,
        activation: number(activation),
    };
    launch("activate", x.dtype(), Grid::over(n_packs), arguments, x.device())?;
    Ok(x)
}

/// One half of each row, activated, times the other: \[T, 2F\] → \[T, F\].
pub(crate) fn gate(x: &Tensor, activated: Activated, activation: Activation) -> Result<Tensor> {
    let (n_rows, width) = (x.dim(0)?, x.dim(1)? / 2);
    let out = unfilled((n_rows, width), x.dtype(), x.device())?;
    let n_packs = out.elem_count() / PACK;
    let arguments = GateArguments {
        out: Address::of(&out)?,
        x: Address::of(x)?,
        n_packs: n_packs as u64,
        width: width as u32,
        activated_at: if activated == Activated::First { 0 } else { width as u32 },
        activation: number(activation),
    };
    launch("gate", x.dtype(), Grid::over(n_packs), arguments, x.device())?;
    Ok(out)
}
