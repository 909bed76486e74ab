//! Rows times a weight matrix that was laid out in panels beforehand, with bias and activation applied on the way out.
//!
//! Source: Goto and van de Geijn 2008: panels of the right matrix stay in the first-level cache, blocks of rows in the second.
//! Shapes: rows \[T, K\] times weight \[K, N\] gives \[T, N\].
//! Differs: an output element is `fma(a[k], b[k], …)` for k = 0, 1, … K-1 from the bias on, whatever T, tile or block it is in.
//! Cost: T K N fused multiply-adds; one copy of the rows per block of [`ROWS_PER_BLOCK`].

use super::elementary::gelu;
use super::simd::{Kernel, Simd};

/// Rows whose inputs are held in the second-level cache at once; a multiple of both tile heights.
const ROWS_PER_BLOCK: usize = 120;
/// Values of one panel that stay in the first-level cache (24 KiB).
const PANEL_VALUES: usize = 6144;

/// Tile of outputs held in registers: 6 x 16 in sixteen registers of 256 bits, 12 x 32 in thirty-two of 512 bits.
const NARROW: (usize, usize) = (6, 16);
const WIDE: (usize, usize) = (12, 32);

/// What happens to an output after its sum is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    None,
    /// `x Φ(x)` with the exact error function.
    Gelu,
}

/// A matrix \[K, N\] cut into panels of `width` columns, and each panel into blocks of `depth` rows: block by block, panel
/// by panel, row by row. Columns beyond N are zero.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    values: Vec<f32>,
    n_inputs: usize,
    n_outputs: usize,
    width: usize,
}

impl Panels {
    /// No matrix yet: [`Panels::fill`] gives it one.
    pub(super) fn empty(simd: Simd) -> Self {
        let width = if simd.is_wide() { WIDE.1 } else { NARROW.1 };
        Self::of_width(width)
    }

    fn of_width(width: usize) -> Self {
        Self { values: Vec::new(), n_inputs: 0, n_outputs: 0, width }
    }

    /// Both widths there are, whatever the processor prefers.
    #[cfg(test)]
    pub(super) fn of_both_widths() -> [Self; 2] {
        [NARROW, WIDE].map(|(_, width)| Self::of_width(width))
    }

    /// Panels of the transpose of `weight`, \[N, K\] as stored in model files.
    pub(crate) fn of_transposed(simd: Simd, weight: &[f32], n_outputs: usize, n_inputs: usize) -> Self {
        assert_eq!(weight.len(), n_outputs * n_inputs, "weight is [N, K]");
        let mut panels = Self::empty(simd);
        panels.fill_transposed(weight, n_inputs, n_outputs, n_inputs);
        panels
    }

    /// Takes the transpose of `n_outputs` rows of `n_inputs` values that start `stride` apart. Reuses the memory it has.
    #[inline(always)]
    pub(super) fn fill_transposed(&mut self, rows: &[f32], stride: usize, n_outputs: usize, n_inputs: usize) {
        self.start(n_inputs, n_outputs);
        let (width, depth) = (self.width, PANEL_VALUES / self.width);
        let mut target = self.values.chunks_exact_mut(width);
        for first_input in (0..n_inputs).step_by(depth) {
            let last_input = n_inputs.min(first_input + depth);
            for first_output in (0..n_outputs).step_by(width) {
                for k in first_input..last_input {
                    let Some(line) = target.next() else { return };
                    for (value, j) in line.iter_mut().zip(first_output..n_outputs) {
                        *value = rows[j * stride + k];
                    }
                }
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
        self.values.clear();
        self.values.resize(n_inputs * n_outputs.div_ceil(self.width) * self.width, 0.0);
    }

    /// N, the length of an output row.
    pub(crate) fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// K, the length of an input row.
    pub(crate) fn n_inputs(&self) -> usize {
        self.n_inputs
    }
}

/// `out[t][n] = activation(bias[n] + Σ_k rows[t][k] weight[k][n])`.
pub(crate) struct Product<'a> {
    pub(crate) weight: &'a Panels,
    /// \[N\]; zero where there is none.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    /// Row t starts at `t * row_stride`; `n_rows` of them.
    pub(crate) rows: &'a [f32],
    pub(crate) row_stride: usize,
    pub(crate) n_rows: usize,
    /// Output row t starts at `t * out_stride`.
    pub(crate) out: &'a mut [f32],
    pub(crate) out_stride: usize,
    /// Memory for the copied rows, kept by the caller between products.
    pub(crate) scratch: &'a mut Vec<f32>,
}

impl Kernel for Product<'_> {
    #[inline(always)]
    fn run(self) {
        if self.weight.width == WIDE.1 {
            self.multiply::<{ WIDE.0 }, { WIDE.1 }>();
        } else {
            self.multiply::<{ NARROW.0 }, { NARROW.1 }>();
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn multiply<const HEIGHT: usize, const WIDTH: usize>(self) {
        let Panels { n_inputs, n_outputs, .. } = *self.weight;
        let depth = PANEL_VALUES / WIDTH;
        let n_panels = n_outputs.div_ceil(WIDTH);
        let (lines, _) = self.weight.values.as_chunks::<WIDTH>();
        let mut copy = std::mem::take(self.scratch);

        for first_row in (0..self.n_rows).step_by(ROWS_PER_BLOCK) {
            let n_rows = ROWS_PER_BLOCK.min(self.n_rows - first_row);
            let n_tiles = n_rows.div_ceil(HEIGHT);
            for first_input in (0..n_inputs).step_by(depth) {
                let inputs = first_input..n_inputs.min(first_input + depth);
                let (is_first, is_last) = (first_input == 0, inputs.end == n_inputs);
                copy.clear();
                copy.resize(n_tiles * inputs.len() * HEIGHT, 0.0);
                let (columns, _) = copy.as_chunks_mut::<HEIGHT>();
                for (row, i) in (first_row..first_row + n_rows).zip(0usize..) {
                    let values = &self.rows[row * self.row_stride..][inputs.clone()];
                    let tile = &mut columns[i / HEIGHT * inputs.len()..];
                    for (column, &value) in tile.iter_mut().zip(values) {
                        column[i % HEIGHT] = value;
                    }
                }
                for panel in 0..n_panels {
                    let first_output = panel * WIDTH;
                    let width = WIDTH.min(n_outputs - first_output);
                    let lines = &lines[first_input * n_panels + panel * inputs.len()..][..inputs.len()];
                    for (tile, columns) in columns.chunks_exact(inputs.len()).enumerate() {
                        let row = first_row + tile * HEIGHT;
                        let height = HEIGHT.min(first_row + n_rows - row);
                        let out = &mut self.out[row * self.out_stride + first_output..];
                        let mut sums = [[0.0f32; WIDTH]; HEIGHT];
                        if !is_first {
                            load(&mut sums, out, self.out_stride, height, width);
                        } else if let Some(bias) = self.bias {
                            for line in &mut sums {
                                copy_line(line, &bias[first_output..], width);
                            }
                        }
                        accumulate(columns, lines, &mut sums);
                        if is_last && self.activation == Activation::Gelu {
                            for line in &mut sums {
                                for value in line {
                                    *value = gelu(*value);
                                }
                            }
                        }
                        store(&sums, out, self.out_stride, height, width);
                    }
                }
            }
        }
        *self.scratch = copy;
    }
}

/// The inner loop: a column of `HEIGHT` inputs times a line of `WIDTH` weights, added to the tile of sums.
#[inline(always)]
fn accumulate<const HEIGHT: usize, const WIDTH: usize>(
    columns: &[[f32; HEIGHT]],
    lines: &[[f32; WIDTH]],
    sums: &mut [[f32; WIDTH]; HEIGHT],
) {
    let mut local = *sums;
    for (column, line) in columns.iter().zip(lines) {
        for i in 0..HEIGHT {
            for j in 0..WIDTH {
                local[i][j] = column[i].mul_add(line[j], local[i][j]);
            }
        }
    }
    *sums = local;
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
    sums: &mut [[f32; WIDTH]; HEIGHT],
    out: &[f32],
    stride: usize,
    height: usize,
    width: usize,
) {
    for (i, line) in sums.iter_mut().take(height).enumerate() {
        copy_line(line, &out[i * stride..], width);
    }
}

#[inline(always)]
fn store<const HEIGHT: usize, const WIDTH: usize>(
    sums: &[[f32; WIDTH]; HEIGHT],
    out: &mut [f32],
    stride: usize,
    height: usize,
    width: usize,
) {
    for (i, line) in sums.iter().take(height).enumerate() {
        let out = &mut out[i * stride..];
        match out.first_chunk_mut::<WIDTH>() {
            Some(out) if width == WIDTH => *out = *line,
            _ => out[..width].copy_from_slice(&line[..width]),
        }
    }
}
