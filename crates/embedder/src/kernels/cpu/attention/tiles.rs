//! Attention in bf16, by tile registers: queries, keys, values and weights are rounded, sums and the softmax are f32.
//!
//! Shapes: queries in blocks of 32; of one head, keys as a weight \[S, D\] and values as a weight \[D, S\], in the
//! layout of [`super::super::packed`].

use std::ops::Range;

use super::{Attention, Row, Scoring};
use crate::kernels::cpu::LANES;
use crate::kernels::cpu::aligned::Buffer;
use crate::kernels::cpu::packed::amx::{Bf16Tiles, Tiles};
use crate::kernels::cpu::packed::dot;
use crate::kernels::cpu::packed::{Packed, Tile, TileRows, WIDTH};
use crate::kernels::cpu::simd::{Bf16Dot, Kernel, Simd};
use crate::kernels::cpu::transpose::transpose;

/// Queries at once: the height of two tiles.
const QUERIES: usize = 32;
const PER_WORD: usize = 2;

/// Memory that is reused from head to head and text to text.
#[derive(Debug)]
pub(in super::super) struct Halves {
    /// Of one head: keys \[S, D\] and values \[D, S\].
    keys: Packed,
    values: Packed,
    /// Queries, or keys on their way, \[32, D\].
    rows: Buffer<u16>,
    /// Of one block of queries: for every 32 keys a tile of 32 lines.
    scores: Buffer<f32>,
    /// The same as rows, \[32, S\].
    weights: Buffer<u16>,
    /// The sum of the weights of each of them.
    sums: [f32; QUERIES],
}

impl Halves {
    pub(in super::super) fn new() -> Self {
        Self {
            keys: Packed::empty(),
            values: Packed::empty(),
            rows: Buffer::new(),
            scores: Buffer::new(),
            weights: Buffer::new(),
            sums: [0.0; QUERIES],
        }
    }
}

pub(super) struct InTiles<'a> {
    pub(super) attention: Attention<'a>,
    pub(super) scoring: Scoring<'a>,
    pub(super) tiles: &'a Tiles,
    pub(super) dot: Bf16Dot,
    pub(super) simd: Simd,
}

/// One head of one text.
struct Head<'a> {
    number: usize,
    dimensions: usize,
    /// D in whole cache lines: the length of a row of queries.
    width: usize,
    scoring: Scoring<'a>,
    tiles: Bf16Tiles<'a>,
    dot: Bf16Dot,
}

impl Kernel for InTiles<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { attention: Attention { heads, qkv, out, scratch, .. }, scoring, tiles, dot, simd } = self;
        let (dimensions, stride, out_stride) = (heads.width, heads.row(), heads.queries());
        let (tiles, halves) = (tiles.of_bf16(dot), &mut scratch.tiles);
        for shared in 0..heads.n_shared {
            let keys = heads.queries() + shared * dimensions;
            let values = keys + heads.keys();
            for number in shared * heads.n_each()..(shared + 1) * heads.n_each() {
                let head = Head { number, dimensions, width: dimensions.next_multiple_of(32), scoring, tiles, dot };
                if number == shared * heads.n_each() {
                    head.pack_keys(&qkv[keys..], stride, halves, simd);
                    head.pack_values(&qkv[values..], stride, halves);
                }
                let first = number * dimensions;
                for start in (0..scoring.n_tokens).step_by(QUERIES) {
                    let queries = start..scoring.n_tokens.min(start + QUERIES);
                    head.weigh(&qkv[start * stride + first..], stride, queries.clone(), halves);
                    head.mix(queries, &mut out[start * out_stride + first..], out_stride, halves);
                }
            }
        }
    }
}

impl Head<'_> {
    /// Rounds some rows that start `stride` apart.
    #[inline(always)]
    fn round(&self, rows: &[f32], stride: usize, n_rows: usize, target: &mut Buffer<u16>) {
        target.resize(QUERIES * self.width);
        dot::round_rows(self.dot, [n_rows, self.dimensions, stride], rows, self.width, target);
    }

    #[inline(always)]
    fn pack_keys(&self, rows: &[f32], stride: usize, halves: &mut Halves, simd: Simd) {
        let n_tokens = self.scoring.n_tokens;
        halves.keys.start(n_tokens, self.dimensions, PER_WORD);
        for first in (0..n_tokens).step_by(WIDTH) {
            let n = WIDTH.min(n_tokens - first);
            self.round(&rows[first * stride..], stride, n, &mut halves.rows);
            let n_steps = self.width / PER_WORD;
            let lines = halves.keys.panel_mut(first / WIDTH).as_flattened_mut();
            transpose(simd, dot::words(&halves.rows), n_steps, [n, n_steps], lines, WIDTH);
        }
    }

    #[inline(always)]
    fn pack_values(&self, rows: &[f32], stride: usize, halves: &mut Halves) {
        let n_tokens = self.scoring.n_tokens;
        halves.values.start(self.dimensions, n_tokens, PER_WORD);
        for first in (0..self.dimensions).step_by(WIDTH) {
            let n = WIDTH.min(self.dimensions - first);
            for (step, line) in halves.values.panel_mut(first / WIDTH).iter_mut().enumerate() {
                let row = |key: usize| rows.get(key * stride + first..).filter(|_| key < n_tokens).map(|row| &row[..n]);
                match (row(step * PER_WORD), row(step * PER_WORD + 1)) {
                    (Some(even), Some(odd)) => dot::interleave(self.dot, even, odd, line),
                    (Some(even), None) => dot::interleave(self.dot, even, &[0.0; WIDTH][..n], line),
                    _ => *line = [0; WIDTH],
                }
            }
        }
    }

    /// Softmax weights of a block of queries, not yet divided by their sums, which stand in `halves.sums`.
    #[inline(always)]
    fn weigh(&self, rows: &[f32], stride: usize, queries: Range<usize>, halves: &mut Halves) {
        let keys = self.scoring.keys_of(queries.clone());
        let n_lines = keys.len().div_ceil(WIDTH);
        self.round(rows, stride, queries.len(), &mut halves.rows);
        halves.scores.resize(n_lines * QUERIES * WIDTH);
        let (lines, _) = halves.scores.as_chunks_mut::<WIDTH>();
        for (c, sums) in lines.chunks_exact_mut(QUERIES).enumerate() {
            let keys = halves.keys.panel(keys.start / WIDTH + c);
            let rows = TileRows { n: queries.len(), values: &halves.rows, stride: self.width };
            self.tiles.multiply(rows, keys, &[], sums);
        }
        let stride = weights_stride(n_lines);
        halves.weights.resize(QUERIES * stride);
        for (i, query) in queries.clone().enumerate() {
            let mut row = Row { lines: &mut *lines, first: i, step: QUERIES };
            halves.sums[i] = self.scoring.softmax(&mut row, self.number, query, keys.clone());
        }
        dot::round_tiles(self.dot, lines, [queries.len(), QUERIES], stride, &mut halves.weights);
    }

    /// The values, weighed.
    #[inline(always)]
    fn mix(&self, queries: Range<usize>, out: &mut [f32], out_stride: usize, halves: &Halves) {
        let keys = self.scoring.keys_of(queries.clone());
        let n_lines = keys.len().div_ceil(WIDTH);
        let (first_step, n_steps) = (keys.start / PER_WORD, n_lines * WIDTH / PER_WORD);
        for first in (0..self.dimensions).step_by(WIDTH) {
            let n = WIDTH.min(self.dimensions - first);
            let values = &halves.values.panel(first / WIDTH)[first_step..][..n_steps];
            let mut sums = [[0.0; WIDTH]; QUERIES];
            let rows = TileRows { n: queries.len(), values: &halves.weights, stride: weights_stride(n_lines) };
            self.tiles.multiply(rows, values, &[], &mut sums);
            for (i, (sums, out)) in sums.iter().zip(out.chunks_mut(out_stride)).take(queries.len()).enumerate() {
                let inverse = 1.0 / halves.sums[i];
                let scaled = sums.map(|sum| sum * inverse);
                match out[first..first + n].first_chunk_mut::<WIDTH>() {
                    Some(out) => *out = scaled,
                    None => out[first..first + n].copy_from_slice(&scaled[..n]),
                }
            }
        }
    }
}

/// An odd number of cache lines, so that the rows of a tile lie in different sets of the cache.
#[inline(always)]
fn weights_stride(n_lines: usize) -> usize {
    (n_lines | 1) * LANES
}
