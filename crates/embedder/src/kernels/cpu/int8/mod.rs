//! Dense layers in 8-bit integers: signed weights, unsigned inputs, exact sums.
//!
//! Source: Jacob et al. 2018, eq. 1 and 4, with the smallest input in place of a zero point: `x ≈ min + step u`, so
//! that `Σ x w ≈ scale (step Σ u q + min Σ q)`. Weights and inputs are turned first ([`rotation`]): a few large inputs
//! or weights would otherwise make the steps of all others wide.
//! Shapes: one scale per output of a weight, one step and smallest value per row of inputs: a row's result does not
//! depend on other rows. K is padded with zeros to whole blocks of the rotation.
//! Differs: sums are exact 32-bit integers, and what comes before and after is one formula, so every instruction set
//! gives the same bits.
//! Range: at most [`INPUTS_MAX`] inputs, beyond which a sum might not fit. A row that is not finite, or within a factor
//! of [`rotation::BLOCK`] of the largest float, gives NaNs.

pub(super) mod rotation;

use std::ops::Range;

use super::aligned::{Buffer, prefetch};
use super::dense::Dense;
use super::elementary::{Activation, Function as _, with_function};
use super::packed::{self, Packed, Tile, TileRows, WIDTH, store_lines};
#[cfg(target_arch = "x86_64")]
use super::packed::{amx, dot};
use super::simd::{Kernel, Simd};
use rotation::rotate;

/// Inputs in a word of weights.
const PER_WORD: usize = 4;
/// The largest weight, and its negative the smallest.
const WEIGHT_MAX: f32 = 127.0;
/// The largest input.
const INPUT_MAX: f32 = 255.0;
/// So many products of 255 and 127 fit into a signed word, in whole blocks of the rotation.
pub(crate) const INPUTS_MAX: usize = i32::MAX as usize / (127 * 255) / rotation::BLOCK * rotation::BLOCK;

/// A weight \[N, K\] in signed bytes.
#[derive(Debug, Clone)]
pub(crate) struct Int8 {
    /// Of turned weights, as many inputs as whole blocks hold.
    packed: Packed,
    /// K.
    n_inputs: usize,
    /// Of every output: what 1 stands for, and the sum of the weights in f32.
    scales: Vec<f32>,
    totals: Vec<f32>,
}

/// Rows of inputs in bytes, and what they stand for.
#[derive(Debug)]
pub(super) struct Rows {
    bytes: Buffer<u8>,
    ranges: Vec<RowRange>,
    /// One row, turned.
    turned: Buffer<f32>,
}

/// `x ≈ min + step u`.
#[derive(Debug, Clone, Copy)]
struct RowRange {
    min: f32,
    step: f32,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self { bytes: Buffer::new(), ranges: Vec::new(), turned: Buffer::new() }
    }
}

impl Int8 {
    /// Rounds and lays out `weight`, \[N, K\] row by row.
    ///
    /// # Panics
    /// If K exceeds [`INPUTS_MAX`].
    pub(super) fn pack(simd: Simd, weight: &[f32], n_outputs: usize, n_inputs: usize) -> Self {
        assert!(n_inputs <= INPUTS_MAX, "{n_inputs} inputs; sums of more than {INPUTS_MAX} products may not fit");
        let n_turned = n_inputs.next_multiple_of(rotation::BLOCK);
        let mut turned = vec![0.0; n_outputs * n_turned];
        for (row, weights) in turned.chunks_exact_mut(n_turned).zip(weight.chunks_exact(n_inputs)) {
            row[..n_inputs].copy_from_slice(weights);
        }
        rotate(simd, &mut turned);
        // A NaN is passed over by the largest; then it makes the total one, and with it every output.
        let step =
            |row: &[f32]| row.iter().fold(0.0f32, |max, x| if x.abs() > max { x.abs() } else { max }) / WEIGHT_MAX;
        let steps: Vec<f32> = turned.chunks_exact(n_turned).map(step).collect();
        let byte = |x: f32, step: f32| if step > 0.0 { (x / step).round_ties_even() as i8 } else { 0 };
        // The product of turned rows is that of the rows, times the block: a power of two, so this is exact.
        let scales: Vec<f32> = steps.iter().map(|step| step / rotation::BLOCK as f32).collect();
        let total = |(row, (&step, &scale)): (&[f32], (&f32, &f32))| {
            let sum: i32 = row.iter().map(|&x| i32::from(byte(x, step))).sum();
            let broken = row.iter().any(|x| !x.is_finite());
            if broken { f32::NAN } else { sum as f32 * scale }
        };
        let totals = turned.chunks_exact(n_turned).zip(steps.iter().zip(&scales)).map(total).collect();
        let packed = Packed::of(n_outputs, n_turned, PER_WORD, |output, word| {
            let row = &turned[output * n_turned..][..n_turned];
            u32::from_le_bytes([0, 1, 2, 3].map(|k| byte(row[word * PER_WORD + k], steps[output]) as u8))
        });
        Self { packed, n_inputs, scales, totals }
    }

    pub(super) fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    pub(super) fn n_outputs(&self) -> usize {
        self.packed.n_outputs()
    }

    /// One dense layer with this weight.
    pub(super) fn run(&self, simd: Simd, layer: Dense<'_>) {
        let weight = self;
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = simd.amx() {
            return amx::Tiles::with(proof, |tiles| simd.run(Run { simd, tile: tiles.of_bytes(), layer, weight }));
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = simd.vnni() {
            return simd.run(Run { simd, tile: dot::ByteFours(proof), layer, weight });
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = simd.avx2() {
            return simd.run(Run { simd, tile: dot::BytePairs(proof), layer, weight });
        }
        simd.run(Run { simd, tile: Plain, layer, weight });
    }
}

/// A layer whose inputs become bytes.
struct Quantised<'a> {
    simd: Simd,
    weight: &'a Int8,
    bias: Option<&'a [f32]>,
    activation: Activation,
    rows: &'a [f32],
    /// Of the rows encoded so far.
    ranges: &'a mut Vec<RowRange>,
    turned: &'a mut Buffer<f32>,
    outputs: Range<usize>,
    out: &'a mut [f32],
}

impl<T: Tile<Row = u8, Sum = i32>> packed::Layer<T> for Quantised<'_> {
    #[inline(always)]
    fn encode(&mut self, _tile: T, row: usize, target: &mut [u8]) {
        let n_inputs = self.weight.n_inputs;
        let (values, padding) = self.turned.split_at_mut(n_inputs);
        values.copy_from_slice(&self.rows[row * n_inputs..][..n_inputs]);
        padding.fill(0.0);
        rotate(self.simd, self.turned);
        let range = RowRange::of(self.turned);
        let (target, rest) = target.split_at_mut(self.turned.len());
        range.encode(self.turned, target);
        rest.fill(0);
        assert_eq!(self.ranges.len(), row, "rows are encoded in order");
        self.ranges.push(range);
    }

    #[inline(always)]
    fn finish(&mut self, rows: Range<usize>, outputs: Range<usize>, sums: &[[i32; WIDTH]]) {
        let [mut bias, mut scales, mut totals] = [[0.0; WIDTH]; 3];
        if let Some(all) = self.bias {
            packed::load(&mut bias, &all[outputs.clone()]);
        }
        packed::load(&mut scales, &self.weight.scales[outputs.clone()]);
        packed::load(&mut totals, &self.weight.totals[outputs.clone()]);
        let ranges = &*self.ranges;
        with_function!(self.activation, function => store_lines!(
            self.out, self.outputs, rows, outputs, |i, t, j| function.of(
                (sums[i][j] as f32).mul_add(ranges[t].step * scales[j], ranges[t].min.mul_add(totals[j], bias[j]))
            )
        ));
    }
}

struct Run<'a, T> {
    simd: Simd,
    tile: T,
    layer: Dense<'a>,
    weight: &'a Int8,
}

impl<T: Tile<Row = u8, Sum = i32>> Kernel for Run<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Dense { bias, activation, rows, n_rows, outputs, out, scratch, .. } = self.layer;
        let (simd, weight) = (self.simd, self.weight);
        let Rows { bytes, ranges, turned } = &mut scratch.bytes;
        ranges.clear();
        turned.resize(weight.packed.n_inputs());
        let mut layer =
            Quantised { simd, weight, bias, activation, rows, ranges, turned, outputs: outputs.clone(), out };
        packed::multiply(self.tile, &weight.packed, n_rows, outputs, bytes, &mut layer);
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
