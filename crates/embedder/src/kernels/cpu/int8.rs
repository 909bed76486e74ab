//! Dense layers in 8-bit integers: signed weights, unsigned inputs, exact sums.
//!
//! Source: Jacob et al. 2018, eq. 1 and 4, with the smallest input in place of a zero point: `x ≈ min + step u`, so
//! that `Σ x w ≈ scale (step Σ u q + min Σ q)`.
//! Shapes: one scale per output of a weight, one step and smallest value per row of inputs: a row's result does not
//! depend on other rows.
//! Differs: sums are exact 32-bit integers, and what follows is one formula, so every instruction set gives the same
//! bits.
//! Range: at most [`INPUTS_MAX`] inputs, beyond which a sum might not fit. A row that is not finite gives NaNs.

use std::ops::Range;

use super::aligned::{Buffer, prefetch};
use super::dense::Dense;
use super::elementary::{Activation, Function as _, with_function};
use super::packed::{self, Packed, Tile, TileRows, WIDTH, store_lines};
#[cfg(target_arch = "x86_64")]
use super::packed::{amx, dot};
use super::simd::{Kernel, Simd};

/// Inputs in a word of weights.
const PER_WORD: usize = 4;
/// The largest weight, and its negative the smallest.
const WEIGHT_MAX: f32 = 127.0;
/// The largest input.
const INPUT_MAX: f32 = 255.0;
/// So many products of 255 and 127 fit into a signed word.
pub(crate) const INPUTS_MAX: usize = i32::MAX as usize / (127 * 255);

/// A weight \[N, K\] in signed bytes.
#[derive(Debug, Clone)]
pub(crate) struct Int8 {
    packed: Packed,
    /// Of every output: what 1 stands for, and the sum of the weights in f32.
    scales: Vec<f32>,
    totals: Vec<f32>,
}

/// Rows of inputs in bytes, and what they stand for.
#[derive(Debug)]
pub(super) struct Rows {
    bytes: Buffer<u8>,
    ranges: Vec<RowRange>,
}

/// `x ≈ min + step u`.
#[derive(Debug, Clone, Copy)]
struct RowRange {
    min: f32,
    step: f32,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self { bytes: Buffer::new(), ranges: Vec::new() }
    }
}

impl Int8 {
    /// Rounds and lays out `weight`, \[N, K\] row by row.
    ///
    /// # Panics
    /// If K exceeds [`INPUTS_MAX`].
    pub(super) fn pack(weight: &[f32], n_outputs: usize, n_inputs: usize) -> Self {
        assert!(n_inputs <= INPUTS_MAX, "{n_inputs} inputs; sums of more than {INPUTS_MAX} products may not fit");
        // A NaN is passed over by the largest; then it makes the total one, and with it every output.
        let scale =
            |row: &[f32]| row.iter().fold(0.0f32, |max, x| if x.abs() > max { x.abs() } else { max }) / WEIGHT_MAX;
        let scales: Vec<f32> = weight.chunks_exact(n_inputs).map(scale).collect();
        let byte = |x: f32, scale: f32| if scale > 0.0 { (x / scale).round_ties_even() as i8 } else { 0 };
        let total = |(row, &scale): (&[f32], &f32)| {
            let sum: i32 = row.iter().map(|&x| i32::from(byte(x, scale))).sum();
            let broken = row.iter().any(|x| !x.is_finite());
            if broken { f32::NAN } else { sum as f32 * scale }
        };
        let totals = weight.chunks_exact(n_inputs).zip(&scales).map(total).collect();
        let packed = Packed::of(n_outputs, n_inputs, PER_WORD, |output, step| {
            let row = &weight[output * n_inputs..][..n_inputs];
            let byte = |k| row.get(step * PER_WORD + k).map_or(0, |&x| byte(x, scales[output]) as u8);
            u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
        });
        Self { packed, scales, totals }
    }

    pub(super) fn n_inputs(&self) -> usize {
        self.packed.n_inputs()
    }

    pub(super) fn n_outputs(&self) -> usize {
        self.packed.n_outputs()
    }

    /// One dense layer with this weight.
    pub(super) fn run(&self, simd: Simd, layer: Dense<'_>) {
        let weight = self;
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = simd.amx() {
            return amx::Tiles::with(proof, |tiles| simd.run(Run { tile: tiles.of_bytes(), layer, weight }));
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = simd.vnni() {
            return simd.run(Run { tile: dot::ByteFours(proof), layer, weight });
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = simd.avx2() {
            return simd.run(Run { tile: dot::BytePairs(proof), layer, weight });
        }
        simd.run(Run { tile: Plain, layer, weight });
    }
}

/// A layer whose inputs become bytes.
struct Quantised<'a> {
    weight: &'a Int8,
    bias: Option<&'a [f32]>,
    activation: Activation,
    rows: &'a [f32],
    ranges: &'a [RowRange],
    outputs: Range<usize>,
    out: &'a mut [f32],
}

impl<T: Tile<Row = u8, Sum = i32>> packed::Layer<T> for Quantised<'_> {
    #[inline(always)]
    fn encode(&self, _tile: T, row: usize, target: &mut [u8]) {
        let n_inputs = self.weight.n_inputs();
        let (target, rest) = target.split_at_mut(n_inputs);
        self.ranges[row].encode(&self.rows[row * n_inputs..][..n_inputs], target);
        rest.fill(0);
    }

    #[inline(always)]
    fn finish(&mut self, rows: Range<usize>, outputs: Range<usize>, sums: &[[i32; WIDTH]]) {
        let [mut bias, mut scales, mut totals] = [[0.0; WIDTH]; 3];
        if let Some(all) = self.bias {
            packed::load(&mut bias, &all[outputs.clone()]);
        }
        packed::load(&mut scales, &self.weight.scales[outputs.clone()]);
        packed::load(&mut totals, &self.weight.totals[outputs.clone()]);
        let ranges = self.ranges;
        with_function!(self.activation, function => store_lines!(
            self.out, self.outputs, rows, outputs, |i, t, j| function.of(
                (sums[i][j] as f32).mul_add(ranges[t].step * scales[j], ranges[t].min.mul_add(totals[j], bias[j]))
            )
        ));
    }
}

struct Run<'a, T> {
    tile: T,
    layer: Dense<'a>,
    weight: &'a Int8,
}

impl<T: Tile<Row = u8, Sum = i32>> Kernel for Run<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Dense { bias, activation, rows, n_rows, outputs, out, scratch, .. } = self.layer;
        let Rows { bytes, ranges } = &mut scratch.bytes;
        ranges.clear();
        for row in rows.chunks_exact(self.weight.n_inputs()) {
            ranges.push(RowRange::of(row));
        }
        let mut layer =
            Quantised { weight: self.weight, bias, activation, rows, ranges, outputs: outputs.clone(), out };
        packed::multiply(self.tile, &self.weight.packed, n_rows, outputs, bytes, &mut layer);
    }
}

impl RowRange {
    /// The meaning of 0 and 1 in this row: its smallest value, and 1/255 of the way to its largest.
    #[inline(always)]
    fn of(row: &[f32]) -> Self {
        // As integers the keys have the order of the numbers, with infinities and NaNs at both ends.
        let key = |bits: i32| bits ^ (bits >> 31 & i32::MAX);
        let (mut min, mut max) = (i32::MAX, i32::MIN);
        for x in row {
            let key = key(x.to_bits() as i32);
            (min, max) = (min.min(key), max.max(key));
        }
        let [min, max] = [min, max].map(|bits| f32::from_bits(key(bits) as u32));
        if min.is_finite() && max.is_finite() {
            Self { min, step: (max - min) / INPUT_MAX }
        } else {
            Self { min: f32::NAN, step: f32::NAN }
        }
    }

    #[inline(always)]
    fn encode(self, row: &[f32], bytes: &mut [u8]) {
        let per_unit = if self.step > f32::MIN_POSITIVE { 1.0 / self.step } else { 0.0 };
        for (byte, &x) in bytes.iter_mut().zip(row) {
            let scaled = (x - self.min) * per_unit;
            let scaled = if scaled > INPUT_MAX { INPUT_MAX } else { scaled };
            // The nearest integer stands in the low bits of the sum.
            *byte = (scaled + 12_582_912.0).to_bits() as u8;
        }
    }
}

/// One product after the other.
#[derive(Clone, Copy)]
struct Plain;

impl Tile for Plain {
    type Row = u8;
    type Sum = i32;
    const HEIGHT: usize = 4;

    #[inline(always)]
    fn multiply(
        self,
        rows: TileRows<'_, u8>,
        lines: &[[u32; WIDTH]],
        next: &[[u32; WIDTH]],
        sums: &mut [[i32; WIDTH]],
    ) {
        prefetch(next);
        let TileRows { n, values: rows, stride } = rows;
        for (sums, row) in sums.iter_mut().zip(rows.chunks(stride)).take(n) {
            *sums = [0; WIDTH];
            for (inputs, line) in row.as_chunks::<PER_WORD>().0.iter().zip(lines) {
                for (sum, word) in sums.iter_mut().zip(line) {
                    for (&input, weight) in inputs.iter().zip(word.to_le_bytes()) {
                        *sum += i32::from(input) * i32::from(weight as i8);
                    }
                }
            }
        }
    }
}
