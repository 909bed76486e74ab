//! Rows times a weight matrix that was laid out in panels beforehand, with bias and activation applied on the way out:
//! f32.
//!
//! Source: Goto and van de Geijn 2008: panels of the right matrix stay in the first-level cache, blocks of rows in the
//! second.
//! Shapes: rows \[T, K\] times weight \[K, N\] gives \[T, N\].
//! Differs: an output element is `fma(a[k], b[k], …)` for k = 0, 1, … K-1 from the bias on, whatever T, tile or block
//! it is in.
//! Cost: T K N fused multiply-adds; one copy of the rows per block of [`ROWS_PER_BLOCK`].

use std::ops::Range;

use super::aligned::{Buffer, prefetch};
use super::elementary::Activation;
use super::simd::{Kernel, Simd};
use super::transpose::transpose;

/// Rows whose inputs are held in the second-level cache at once; a multiple of both tile heights.
const ROWS_PER_BLOCK: usize = 384;
/// Values of one panel that stay in the first-level cache (24 KiB).
const PANEL_VALUES: usize = 6144;

/// Tile of outputs held in registers: 6 x 16 in sixteen registers of 256 bits, 12 x 32 in thirty-two of 512 bits.
const NARROW: (usize, usize) = (6, 16);
const WIDE: (usize, usize) = (12, 32);
/// Inputs in one block of a panel.
const NARROW_DEPTH: usize = PANEL_VALUES / NARROW.1;
const WIDE_DEPTH: usize = PANEL_VALUES / WIDE.1;

/// Ranges of inputs and outputs of a product start at a multiple of this: the width of the wider panel, and of the
/// partial sums of a softmax over outputs.
pub(crate) const ALIGNMENT: usize = WIDE.1;

/// A matrix \[K, N\] cut into panels of `width` columns, and each panel into blocks of `depth` rows: block by block,
/// panel by panel, row by row. Columns beyond N hold anything.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    values: Buffer<f32>,
    n_inputs: usize,
    n_outputs: usize,
    width: usize,
    simd: Simd,
}

impl Panels {
    /// No matrix yet: [`Panels::fill`] gives it one.
    pub(super) fn empty(simd: Simd) -> Self {
        let width = if simd.is_wide() { WIDE.1 } else { NARROW.1 };
        Self::of_width(simd, width)
    }

    fn of_width(simd: Simd, width: usize) -> Self {
        Self { values: Buffer::new(), n_inputs: 0, n_outputs: 0, width, simd }
    }

    /// Both widths there are, whatever the processor prefers.
    #[cfg(test)]
    pub(super) fn of_both_widths() -> [Self; 2] {
        [NARROW, WIDE].map(|(_, width)| Self::of_width(Simd::detect(), width))
    }

    /// Panels of the transpose of `weight`, \[N, K\] as stored in model files.
    pub(super) fn of_transposed(simd: Simd, weight: &[f32], n_outputs: usize, n_inputs: usize) -> Self {
        assert_eq!(weight.len(), n_outputs * n_inputs, "weight is [N, K]");
        let mut panels = Self::empty(simd);
        panels.fill_transposed(weight, n_inputs, n_outputs, n_inputs);
        panels
    }

    /// Takes the transpose of `n_outputs` rows of `n_inputs` values that start `stride` apart. Reuses the memory it
    /// has.
    #[inline(always)]
    pub(super) fn fill_transposed(&mut self, rows: &[f32], stride: usize, n_outputs: usize, n_inputs: usize) {
        self.start(n_inputs, n_outputs);
        let (width, depth, simd) = (self.width, PANEL_VALUES / self.width, self.simd);
        let mut target: &mut [f32] = &mut self.values;
        for first_input in (0..n_inputs).step_by(depth) {
            let height = depth.min(n_inputs - first_input);
            for first_output in (0..n_outputs).step_by(width) {
                let (panel, rest) = target.split_at_mut(height * width);
                let n = width.min(n_outputs - first_output);
                transpose(simd, &rows[first_output * stride + first_input..], stride, [n, height], panel, width);
                target = rest;
            }
        }
    }

    /// Takes `n_inputs` rows of `n_outputs` values that start `stride` apart. Reuses the memory it has.
    #[inline(always)]
    pub(super) fn fill(&mut self, rows: &[f32], stride: usize, n_inputs: usize, n_outputs: usize) {
        self.start(n_inputs, n_outputs);
        let (width, depth) = (self.width, PANEL_VALUES / self.width);
        let mut target = self.values.chunks_exact_mut(width);
        for first_input in (0..n_inputs).step_by(depth) {
            let last_input = n_inputs.min(first_input + depth);
            for first_output in (0..n_outputs).step_by(width) {
                let n = width.min(n_outputs - first_output);
                for k in first_input..last_input {
                    let Some(line) = target.next() else { return };
                    line[..n].copy_from_slice(&rows[k * stride + first_output..][..n]);
                }
            }
        }
    }

    #[inline(always)]
    fn start(&mut self, n_inputs: usize, n_outputs: usize) {
        (self.n_inputs, self.n_outputs) = (n_inputs, n_outputs);
        self.values.resize(n_inputs * n_outputs.next_multiple_of(self.width));
    }

    /// N, the length of an output row.
    pub(super) fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// K, the length of an input row.
    pub(super) fn n_inputs(&self) -> usize {
        self.n_inputs
    }
}

/// `out[t][n] = activation(bias[n] + Σ_k rows[t][k] weight[k][n])`, over all of a weight or a part of it.
pub(super) struct Product<'a> {
    pub(super) weight: &'a Panels,
    /// The inputs k and outputs n to compute with; they start at a multiple of [`ALIGNMENT`].
    pub(super) inputs: Range<usize>,
    pub(super) outputs: Range<usize>,
    /// \[N\]; zero where there is none.
    pub(super) bias: Option<&'a [f32]>,
    pub(super) activation: Activation,
    /// Row t starts at `t * row_stride`, with the first of `inputs`; `n_rows` of them.
    pub(super) rows: &'a [f32],
    pub(super) row_stride: usize,
    pub(super) n_rows: usize,
    /// Output row t starts at `t * out_stride`, with the first of `outputs`.
    pub(super) out: &'a mut [f32],
    pub(super) out_stride: usize,
    /// Memory for the copied rows, kept by the caller between products.
    pub(super) scratch: &'a mut Buffer<f32>,
}

impl Kernel for Product<'_> {
    #[inline(always)]
    fn run(self) {
        if self.weight.width == WIDE.1 {
            self.multiply::<{ WIDE.0 }, { WIDE.1 }, WIDE_DEPTH>();
        } else {
            self.multiply::<{ NARROW.0 }, { NARROW.1 }, NARROW_DEPTH>();
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn multiply<const HEIGHT: usize, const WIDTH: usize, const DEPTH: usize>(mut self) {
        assert!(self.inputs.start.is_multiple_of(ALIGNMENT) && self.outputs.start.is_multiple_of(ALIGNMENT));
        for first_row in (0..self.n_rows).step_by(ROWS_PER_BLOCK) {
            let rows = first_row..self.n_rows.min(first_row + ROWS_PER_BLOCK);
            let mut start = self.inputs.start;
            loop {
                // The part of the inputs that lies in one block of the panels.
                let end = self.inputs.end.min(start / DEPTH * DEPTH + DEPTH);
                self.block::<HEIGHT, WIDTH, DEPTH>(rows.clone(), start..end);
                start = end;
                if start >= self.inputs.end {
                    break;
                }
            }
        }
    }

    /// Some rows times some inputs of every panel.
    #[inline(always)]
    fn block<const HEIGHT: usize, const WIDTH: usize, const DEPTH: usize>(
        &mut self,
        rows: Range<usize>,
        inputs: Range<usize>,
    ) {
        let Panels { n_inputs, n_outputs, .. } = *self.weight;
        let n_panels = n_outputs.div_ceil(WIDTH);
        let (all_lines, _) = self.weight.values.as_chunks::<WIDTH>();
        let (first, last) = (self.inputs.start, self.inputs.end);
        // Lines before this block, lines of one panel in it, and those of them that come before `inputs`.
        let block = inputs.start / DEPTH * DEPTH;
        let (height, skipped) = (DEPTH.min(n_inputs - block), inputs.start - block);

        self.scratch.resize(rows.len().next_multiple_of(HEIGHT) * DEPTH);
        let (copies, _) = self.scratch.as_chunks_mut::<DEPTH>();
        for (copy, row) in copies.iter_mut().zip(rows.clone()) {
            let values = &self.rows[row * self.row_stride..][inputs.start - first..inputs.end - first];
            copy[..values.len()].copy_from_slice(values);
        }
        let (tiles, _) = copies.as_chunks::<HEIGHT>();
        for first_output in self.outputs.clone().step_by(WIDTH) {
            let width = WIDTH.min(self.outputs.end - first_output);
            let start = block * n_panels + first_output / WIDTH * height + skipped;
            let lines = &all_lines[start..][..inputs.len()];
            let mut bias = [0.0; WIDTH];
            if let Some(all) = self.bias {
                copy_line(&mut bias, &all[first_output..], width);
            }
            // While this panel is in use, the next one comes closer, a part with every tile.
            let after = &all_lines[start + inputs.len()..];
            let after = &after[..after.len().min(inputs.len())];
            let mut next = after.chunks(after.len().div_ceil(tiles.len()).max(1));
            for (tile, row) in tiles.iter().zip(rows.clone().step_by(HEIGHT)) {
                let height = HEIGHT.min(rows.end - row);
                let out = &mut self.out[row * self.out_stride + first_output - self.outputs.start..];
                let next = next.next().unwrap_or_default();
                let sums = if inputs.start > first {
                    accumulate(tile, lines, next, load(out, self.out_stride, height, width))
                } else if self.bias.is_some() {
                    accumulate(tile, lines, next, [bias; HEIGHT])
                } else {
                    accumulate(tile, lines, next, [[0.0; WIDTH]; HEIGHT])
                };
                let activation = if inputs.end == last { self.activation } else { Activation::None };
                store(sums, activation, out, self.out_stride, height, width);
            }
        }
    }
}

/// The inner loop: a column of `HEIGHT` inputs times a line of `WIDTH` weights, added to the tile of sums. Meanwhile
/// `next`, which is no longer than `lines`, is brought closer, a line at a time: a short text spends more time on that
/// than on products.
#[inline(always)]
fn accumulate<const HEIGHT: usize, const WIDTH: usize, const DEPTH: usize>(
    rows: &[[f32; DEPTH]; HEIGHT],
    lines: &[[f32; WIDTH]],
    next: &[[f32; WIDTH]],
    mut sums: [[f32; WIDTH]; HEIGHT],
) -> [[f32; WIDTH]; HEIGHT] {
    let (first, rest) = lines.split_at(next.len().min(lines.len()));
    for (k, (line, next)) in first.iter().zip(next).enumerate().take(DEPTH) {
        prefetch(next);
        for i in 0..HEIGHT {
            for j in 0..WIDTH {
                sums[i][j] = rows[i][k].mul_add(line[j], sums[i][j]);
            }
        }
    }
    for (k, line) in (first.len()..DEPTH).zip(rest) {
        for i in 0..HEIGHT {
            for j in 0..WIDTH {
                sums[i][j] = rows[i][k].mul_add(line[j], sums[i][j]);
            }
        }
    }
    sums
}

/// A full line is copied with a length known to the compiler; only the last panel of a matrix has a shorter one.
#[inline(always)]
fn copy_line<const WIDTH: usize>(line: &mut [f32; WIDTH], from: &[f32], width: usize) {
    match from.first_chunk::<WIDTH>() {
        Some(from) if width == WIDTH => *line = *from,
        _ => line[..width].copy_from_slice(&from[..width]),
    }
}

#[inline(always)]
fn load<const HEIGHT: usize, const WIDTH: usize>(
    out: &[f32],
    stride: usize,
    height: usize,
    width: usize,
) -> [[f32; WIDTH]; HEIGHT] {
    let mut sums = [[0.0; WIDTH]; HEIGHT];
    for (i, line) in sums.iter_mut().take(height).enumerate() {
        copy_line(line, &out[i * stride..], width);
    }
    sums
}

#[inline(always)]
fn store<const HEIGHT: usize, const WIDTH: usize>(
    mut sums: [[f32; WIDTH]; HEIGHT],
    activation: Activation,
    out: &mut [f32],
    stride: usize,
    height: usize,
    width: usize,
) {
    if height == HEIGHT && width == WIDTH && activation == Activation::None {
        for (i, line) in sums.iter().enumerate() {
            out[i * stride..][..WIDTH].copy_from_slice(line); // from registers to memory
        }
        return;
    }
    activation.apply(sums.as_flattened_mut());
    for (i, line) in sums.iter().take(height).enumerate() {
        let out = &mut out[i * stride..];
        match out.first_chunk_mut::<WIDTH>() {
            Some(out) if width == WIDTH => *out = *line,
            _ => out[..width].copy_from_slice(&line[..width]),
        }
    }
}
