//! Dense layers in bf16: weights and inputs rounded to 8 bits of mantissa, to nearest and ties to even, sums in f32.
//!
//! Differs: every set adds in an order of its own (tiles, pairs, or one fused multiply-add after the other), so bits
//! are equal on one set, for any number of rows, and close between sets.

use std::ops::Range;

use super::aligned::{Buffer, prefetch};
use super::dense::Dense;
use super::elementary::{Activation, Function as _, with_function};
use super::packed::{self, Packed, Tile, TileRows, WIDTH, store_lines};
#[cfg(target_arch = "x86_64")]
use super::packed::{amx, dot};
use super::simd::{Kernel, Simd};

/// Inputs in a word of weights.
const PER_WORD: usize = 2;

/// A weight \[N, K\] in bf16.
#[derive(Debug, Clone)]
pub(crate) struct Bf16(pub(super) Packed);

/// Rows of inputs, as the set in use wants them: bf16, or f32 that are the value of some bf16.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) short: Buffer<u16>,
    wide: Buffer<f32>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self { short: Buffer::new(), wide: Buffer::new() }
    }
}

/// The bf16 nearest to `x`, ties to even; a NaN stays a NaN.
#[inline(always)]
pub(super) fn round(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    ((if x.is_nan() { bits | 0x0040_0000 } else { rounded }) >> 16) as u16
}

/// The value of a bf16.
#[inline(always)]
pub(super) fn widen(short: u16) -> f32 {
    f32::from_bits(u32::from(short) << 16)
}

impl Bf16 {
    /// Rounds and lays out `weight`, \[N, K\] row by row.
    pub(super) fn pack(weight: &[f32], n_outputs: usize, n_inputs: usize) -> Self {
        Self(Packed::of(n_outputs, n_inputs, PER_WORD, |output, step| {
            let row = &weight[output * n_inputs..][..n_inputs];
            let half = |k: usize| row.get(k).map_or(0, |&x| u32::from(round(x)));
            half(step * PER_WORD) | half(step * PER_WORD + 1) << 16
        }))
    }

    /// One dense layer with this weight.
    pub(super) fn run(&self, simd: Simd, layer: Dense<'_>) {
        let Dense { bias, activation, rows, n_rows, outputs, out, scratch, .. } = layer;
        let layer = Rounded { weight: &self.0, bias, activation, rows, n_rows, outputs, out };
        let scratch = &mut scratch.halves;
        #[cfg(target_arch = "x86_64")]
        if let (Some(proof), Some(dot)) = (simd.amx(), simd.bf16_dot()) {
            let scratch = &mut scratch.short;
            return amx::Tiles::with(proof, |tiles| simd.run(Run { tile: tiles.of_bf16(dot), layer, scratch }));
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = simd.bf16_dot() {
            return simd.run(Run { tile: dot::Bf16Pairs(proof), layer, scratch: &mut scratch.short });
        }
        simd.run(Run { tile: Widened, layer, scratch: &mut scratch.wide });
    }
}

/// A layer whose inputs are rounded.
struct Rounded<'a> {
    weight: &'a Packed,
    bias: Option<&'a [f32]>,
    activation: Activation,
    rows: &'a [f32],
    n_rows: usize,
    outputs: Range<usize>,
    out: &'a mut [f32],
}

impl Rounded<'_> {
    #[inline(always)]
    fn row(&self, t: usize) -> &[f32] {
        &self.rows[t * self.weight.n_inputs()..][..self.weight.n_inputs()]
    }

    /// Bias and activation on the way out.
    #[inline(always)]
    fn finish(&mut self, rows: Range<usize>, outputs: Range<usize>, sums: &[[f32; WIDTH]]) {
        let mut bias = [0.0; WIDTH];
        if let Some(all) = self.bias {
            packed::load(&mut bias, &all[outputs.clone()]);
        }
        with_function!(self.activation, function => store_lines!(
            self.out, self.outputs, rows, outputs, |i, t, j| function.of(sums[i][j] + bias[j])
        ));
    }
}

#[cfg(target_arch = "x86_64")]
impl<T: Tile<Row = u16, Sum = f32> + dot::HasBf16Dot> packed::Layer<T> for Rounded<'_> {
    #[inline(always)]
    fn encode(&mut self, tile: T, row: usize, target: &mut [u16]) {
        dot::round_rows(tile.bf16_dot(), [1, self.weight.n_inputs(), 0], self.row(row), target.len(), target);
    }

    #[inline(always)]
    fn finish(&mut self, rows: Range<usize>, outputs: Range<usize>, sums: &[[f32; WIDTH]]) {
        Rounded::finish(self, rows, outputs, sums);
    }
}

impl packed::Layer<Widened> for Rounded<'_> {
    #[inline(always)]
    fn encode(&mut self, _tile: Widened, row: usize, target: &mut [f32]) {
        let (target, rest) = target.split_at_mut(self.weight.n_inputs());
        rest.fill(0.0);
        for (wide, &x) in target.iter_mut().zip(self.row(row)) {
            *wide = widen(round(x));
        }
    }

    #[inline(always)]
    fn finish(&mut self, rows: Range<usize>, outputs: Range<usize>, sums: &[[f32; WIDTH]]) {
        Rounded::finish(self, rows, outputs, sums);
    }
}

struct Run<'a, T: Tile> {
    tile: T,
    layer: Rounded<'a>,
    scratch: &'a mut Buffer<T::Row>,
}

impl<'a, T: Tile> Kernel for Run<'a, T>
where
    Rounded<'a>: packed::Layer<T>,
{
    #[inline(always)]
    fn run(mut self) {
        let Rounded { weight, n_rows, ref outputs, .. } = self.layer;
        packed::multiply(self.tile, weight, n_rows, outputs.clone(), self.scratch, &mut self.layer);
    }
}

/// Fused multiply-adds in the order of the inputs, on weights widened on the fly.
#[derive(Clone, Copy)]
struct Widened;

impl Tile for Widened {
    type Row = f32;
    type Sum = f32;
    const HEIGHT: usize = 6;

    #[inline(always)]
    fn multiply(
        self,
        rows: TileRows<'_, f32>,
        lines: &[[u32; WIDTH]],
        next: &[[u32; WIDTH]],
        sums: &mut [[f32; WIDTH]],
    ) {
        prefetch(next);
        let TileRows { values: rows, stride, .. } = rows;
        const HALF: usize = WIDTH / 2; // six rows of sixteen sums fill the registers of the narrower set
        let rows: [&[f32]; 6] = std::array::from_fn(|i| &rows[i * stride..][..lines.len() * PER_WORD]);
        for part in [0, HALF] {
            let mut local = [[0.0f32; HALF]; 6];
            for (step, line) in lines.iter().enumerate() {
                for (row, sums) in rows.iter().zip(&mut local) {
                    let (low, high) = (row[step * PER_WORD], row[step * PER_WORD + 1]);
                    for (sum, &word) in sums.iter_mut().zip(&line[part..]) {
                        *sum = low.mul_add(f32::from_bits(word << 16), *sum);
                        *sum = high.mul_add(f32::from_bits(word & 0xffff_0000), *sum);
                    }
                }
            }
            for (sums, local) in sums.iter_mut().zip(local) {
                sums[part..part + HALF].copy_from_slice(&local);
            }
        }
    }
}
