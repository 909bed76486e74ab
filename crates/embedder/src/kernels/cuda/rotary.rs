//! Rotary positions, in place on the queries and keys of packed rows.

use candle_core::{Result, Tensor};

use super::launch::{Address, Grid, launch};

/// As `RotaryArguments` in rotary.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct Arguments {
    qkv: Address,
    cos: Address,
    sin: Address,
    positions: Address,
    n_pairs: u64,
    n_heads: u32,
    head_width: u32,
    half: u32,
}

/// Turns the queries and keys of `qkv` \[T, 3H\], which was just computed and nobody else holds. `cos` and `sin` are
/// f32, \[P, R / 2\]; `positions` \[T\] pick a row of them for each token.
pub(crate) fn rotate(qkv: &Tensor, n_heads: usize, cos: &Tensor, sin: &Tensor, positions: &Tensor) -> Result<()> {
    let (n_tokens, stride) = qkv.dims2()?;
    let (head_width, half) = (stride / 3 / n_heads, cos.dim(1)?);
    assert!(2 * half <= head_width, "{half} pairs do not fit in a head of {head_width}");
    let n_pairs = n_tokens * 2 * n_heads * half;
    let arguments = Arguments {
        qkv: Address::of(qkv)?,
        cos: Address::of(cos)?,
        sin: Address::of(sin)?,
        positions: Address::of(positions)?,
        n_pairs: n_pairs as u64,
        n_heads: n_heads as u32,
        head_width: head_width as u32,
        half: half as u32,
    };
    launch("rotate", qkv.dtype(), Grid::over(n_pairs), arguments, qkv.device())
}
