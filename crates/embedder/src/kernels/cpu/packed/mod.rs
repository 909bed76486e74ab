//! Products of short numbers: several inputs of one output in a word, multiplied and summed by one instruction.
//!
//! Shapes: a step is the inputs that share a word: two bf16 or four bytes. A weight \[N, K\] is, for every [`WIDTH`]
//! outputs, its steps as lines of one word per output.
//! Differs: weights and rows are padded with zeros to whole tiles, for every instruction set, so that one layout serves
//! all.

#[cfg(target_arch = "x86_64")]
pub(super) mod amx;
#[cfg(target_arch = "x86_64")]
pub(super) mod dot;

use std::ops::Range;

use super::aligned::{Buffer, Number};

/// Outputs in a line of weights.
pub(super) const WIDTH: usize = 32;
/// The number of steps is a multiple of this: the height of a tile register.
const STEPS: usize = 16;
/// Memory of the encoded rows of a block: they stay in the second-level cache while every weight passes by.
const BLOCK_BYTES: usize = 1 << 19;
/// The number of rows of a block is a multiple of this and so of every tile height.
const BLOCK_ROWS: usize = 96;

/// A way to multiply [`Tile::HEIGHT`] rows with a panel of weights.
pub(super) trait Tile: Copy {
    /// The type rows are encoded as.
    type Row: Number;
    /// The type products are summed in.
    type Sum: Number;
    /// Rows at once, at most.
    const HEIGHT: usize;

    /// `sums[i][j] = Σ rows[i][k] * weight of output j and input k` for the first `n` rows, at least 1 and at most
    /// [`Tile::HEIGHT`]; rows and sums up to that height may be read and overwritten. Meanwhile `next` is brought
    /// closer.
    fn multiply(
        self,
        rows: TileRows<'_, Self::Row>,
        lines: &[[u32; WIDTH]],
        next: &[[u32; WIDTH]],
        sums: &mut [[Self::Sum; WIDTH]],
    );
}

/// The rows of one tile.
#[derive(Clone, Copy)]
pub(super) struct TileRows<'a, R> {
    /// Number of them that count.
    pub(super) n: usize,
    pub(super) values: &'a [R],
    /// Row i starts at `i * stride`.
    pub(super) stride: usize,
}

/// A weight \[N, K\] in words of several inputs.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    words: Buffer<u32>,
    n_inputs: usize,
    n_outputs: usize,
    n_steps: usize,
    per_word: usize,
}

impl Packed {
    /// No weight yet.
    pub(super) fn empty() -> Self {
        Self { words: Buffer::new(), n_inputs: 0, n_outputs: 0, n_steps: 0, per_word: 1 }
    }

    /// Makes room for a weight \[N, K\] with `per_word` inputs to a word. The words are zeros, or what was there
    /// before.
    pub(super) fn start(&mut self, n_outputs: usize, n_inputs: usize, per_word: usize) {
        (self.n_inputs, self.n_outputs, self.per_word) = (n_inputs, n_outputs, per_word);
        self.n_steps = n_inputs.div_ceil(per_word).next_multiple_of(STEPS);
        self.words.resize(n_outputs.next_multiple_of(WIDTH) * self.n_steps);
    }

    /// From the word of every output and step.
    pub(super) fn of(n_outputs: usize, n_inputs: usize, per_word: usize, word: impl Fn(usize, usize) -> u32) -> Self {
        let mut packed = Self::empty();
        packed.start(n_outputs, n_inputs, per_word);
        let n_steps = packed.n_steps;
        for (i, line) in packed.words.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
            let (panel, step) = (i / n_steps, i % n_steps);
            for (j, target) in line.iter_mut().enumerate() {
                let output = panel * WIDTH + j;
                if output < n_outputs && step * per_word < n_inputs {
                    *target = word(output, step);
                }
            }
        }
        packed
    }

    pub(super) fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    pub(super) fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// The lines of the outputs from `panel * WIDTH` on.
    #[inline(always)]
    pub(super) fn panel(&self, panel: usize) -> &[[u32; WIDTH]] {
        &self.words.as_chunks::<WIDTH>().0[panel * self.n_steps..][..self.n_steps]
    }

    /// As [`Packed::panel`], to be written: the caller sees to the zeros that pad the steps.
    #[inline(always)]
    pub(super) fn panel_mut(&mut self, panel: usize) -> &mut [[u32; WIDTH]] {
        &mut self.words.as_chunks_mut::<WIDTH>().0[panel * self.n_steps..][..self.n_steps]
    }
}

/// A dense layer by way of a [`Tile`]: what its inputs become, and what its sums become.
///
/// A trait and no closures: only `#[inline(always)]` code is compiled for the instruction set in use.
pub(super) trait Layer<T: Tile> {
    /// Writes row `row` as the tile wants it, and zeros beyond its end. Rows come in order, each once.
    fn encode(&mut self, tile: T, row: usize, target: &mut [T::Row]);
    /// Turns the sums of some rows and outputs into the layer's outputs.
    fn finish(&mut self, rows: Range<usize>, outputs: Range<usize>, sums: &[[T::Sum; WIDTH]]);
}

/// Multiplies `n_rows` rows with some outputs of `weight`, from a multiple of [`WIDTH`] on.
#[inline(always)]
pub(super) fn multiply<T: Tile>(
    tile: T,
    weight: &Packed,
    n_rows: usize,
    outputs: Range<usize>,
    encoded: &mut Buffer<T::Row>,
    layer: &mut impl Layer<T>,
) {
    let n_values = weight.n_steps * weight.per_word;
    // An odd number of cache lines, so that the rows of a tile lie in different sets of the cache.
    let line = 64 / size_of::<T::Row>();
    let stride = (n_values.div_ceil(line) | 1) * line;
    let block = (BLOCK_BYTES / (stride * size_of::<T::Row>()) / BLOCK_ROWS).max(1) * BLOCK_ROWS;
    let mut sums = [[T::Sum::ZERO; WIDTH]; 32];
    for first in (0..n_rows).step_by(block) {
        let rows = first..n_rows.min(first + block);
        encoded.resize(rows.len().next_multiple_of(T::HEIGHT).next_multiple_of(16) * stride);
        for (target, row) in encoded.chunks_exact_mut(stride).zip(rows.clone()) {
            layer.encode(tile, row, target);
        }
        for output in outputs.clone().step_by(WIDTH) {
            let line = output..outputs.end.min(output + WIDTH);
            let lines = weight.panel(output / WIDTH);
            // While this panel is in use, the next one comes closer, a part with every tile.
            let after = if line.end < outputs.end { weight.panel(output / WIDTH + 1) } else { &[] };
            let mut next = after.chunks(after.len().div_ceil(rows.len().div_ceil(T::HEIGHT)).max(1));
            for row in rows.clone().step_by(T::HEIGHT) {
                let n = T::HEIGHT.min(rows.end - row);
                let values = &encoded[(row - first) * stride..];
                tile.multiply(TileRows { n, values, stride }, lines, next.next().unwrap_or_default(), &mut sums);
                layer.finish(row..row + n, line.clone(), &sums[..n]);
            }
        }
    }
}

/// `line` from its first numbers.
#[inline(always)]
pub(super) fn load(line: &mut [f32; WIDTH], from: &[f32]) {
    line[..from.len()].copy_from_slice(from);
}

/// Writes `value` of every row of some and every output of some, to \[T, all\]: a full line in one piece, as all are
/// but the last of a weight.
macro_rules! store_lines {
    ($out:expr, $all:expr, $rows:expr, $outputs:expr, |$i:ident, $t:ident, $j:ident| $value:expr) => {{
        let (rows, outputs): (Range<usize>, Range<usize>) = ($rows, $outputs);
        let is_full = outputs.len() == WIDTH;
        let (stride, outputs) = ($all.len(), outputs.start - $all.start..outputs.end - $all.start);
        for ($i, $t) in rows.enumerate() {
            let out = &mut $out[$t * stride..][outputs.clone()];
            if is_full {
                let mut values = [0.0f32; WIDTH];
                for $j in 0..WIDTH {
                    values[$j] = $value;
                }
                out[..WIDTH].copy_from_slice(&values);
            } else {
                for ($j, out) in out.iter_mut().enumerate() {
                    *out = $value;
                }
            }
        }
    }};
}
pub(super) use store_lines;
