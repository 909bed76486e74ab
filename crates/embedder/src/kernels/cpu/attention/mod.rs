//! Scaled dot-product attention of the tokens of one text among themselves.
//!
//! Source: Vaswani et al. 2017, eq. 1, for every head; the scores may have a bias by distance (Press et al. 2021;
//! Raffel et al. 2020) and may be kept to a window (Beltagy et al. 2020) or to what lies before the query.
//! Shapes: packed queries, keys and values \[S, (A + 2G) D\] (a row is `q | k | v`) give \[S, H\], H = A D here.
//! Cost: 2 S² H multiply-adds and S² exponentials per head, about half of it where no query sees ahead. Scores of some
//! queries of one head are in memory at once, never S². What a query gets does not depend on the queries beside it.

mod floats;
#[cfg(target_arch = "x86_64")]
pub(super) mod tiles;

use std::ops::Range;

use super::dense::Scratch;
use super::elementary::exp_of_negative;
use super::heads::{Heads, Sight};
use super::product::ALIGNMENT;
use super::simd::Simd;
use super::{LANES, reduced};
use crate::precision::Precision;

/// Queries whose scores are in memory at once, at most.
const QUERIES_MAX: usize = 120;

/// The bias on a score by the distance of its key from its query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RelativeBias {
    pub(crate) n_heads: usize,
    /// The largest distance known: at least the longest text less one.
    pub(crate) reach: usize,
    /// `[h * (2 * reach + 1) + reach + (key - query)]`.
    pub(crate) values: Vec<f32>,
}

/// Attention within one text: `out = softmax(scale q kᵀ + bias) v` for each head.
pub(crate) struct Attention<'a> {
    pub(crate) heads: Heads,
    /// The factor on scores, above 0; usually 1/√D.
    pub(crate) scale: f32,
    pub(crate) bias: Option<&'a RelativeBias>,
    /// The keys that count.
    pub(crate) sight: Sight,
    /// bf16: the products may be, where there are tile registers. Else they are f32, for the same bits on every set.
    pub(crate) precision: Precision,
    /// \[S, (A + 2G) D\].
    pub(crate) qkv: &'a [f32],
    /// \[S, A D\].
    pub(crate) out: &'a mut [f32],
    pub(crate) scratch: &'a mut Scratch,
}

impl Attention<'_> {
    /// Writes `out`.
    pub(crate) fn run(self, simd: Simd) {
        self.run_in_blocks(simd, QUERIES_MAX);
    }

    /// With at most `n_queries` queries at once, which changes no bit.
    pub(super) fn run_in_blocks(self, simd: Simd, n_queries: usize) {
        let Heads { n: n_heads, n_shared, .. } = self.heads;
        let (width, row) = (self.heads.queries(), self.heads.row());
        let n_tokens = self.out.len() / width;
        assert!(n_heads.is_multiple_of(n_shared), "{n_heads} heads of queries share {n_shared} of keys");
        assert!(self.out.len() == n_tokens * width && self.qkv.len() == n_tokens * row, "[S, (A + 2G) D] to [S, A D]");
        assert!(self.scale > 0.0, "scale is positive: {}", self.scale);
        if let Some(bias) = self.bias {
            assert!(bias.reach + 1 >= n_tokens, "a bias that reaches {} for {n_tokens} tokens", bias.reach);
            assert_eq!(bias.values.len(), n_heads * (2 * bias.reach + 1), "a bias for every head and distance");
            assert_eq!(bias.n_heads, n_heads, "a bias for every head");
        }
        let scoring = Scoring { scale: self.scale, bias: self.bias, sight: self.sight, n_tokens };
        #[cfg(target_arch = "x86_64")]
        if let (Precision::Bf16, Some(amx), Some(dot)) = (self.precision, simd.amx(), simd.bf16_dot()) {
            return super::packed::amx::Tiles::with(amx, |tiles| {
                simd.run(tiles::InTiles { attention: self, scoring, tiles, dot, simd });
            });
        }
        simd.run(floats::InFloats { attention: self, scoring, n_queries });
    }
}

/// The way a score becomes a weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scoring<'a> {
    scale: f32,
    bias: Option<&'a RelativeBias>,
    sight: Sight,
    n_tokens: usize,
}

impl Scoring<'_> {
    /// The keys that any of `queries` may attend to; the first is moved down to a multiple of [`ALIGNMENT`].
    #[inline(always)]
    fn keys_of(self, queries: Range<usize>) -> Range<usize> {
        let first = queries.start.saturating_sub(self.sight.back) / ALIGNMENT * ALIGNMENT;
        first..self.n_tokens.min(queries.end.saturating_add(self.sight.ahead))
    }

    /// The most keys that so many queries may attend to.
    #[inline(always)]
    fn n_keys_max(self, n_queries: usize) -> usize {
        let Sight { back, ahead } = self.sight;
        self.n_tokens.min(n_queries.saturating_add(back).saturating_add(ahead))
    }

    /// `e^(scale * score + bias - max)` of one query and the keys it may attend to, 0 for other keys and beyond the
    /// last; returns the sum. `row` holds the scores of `keys` in lines of [`LANES`], and as many more as fill the last
    /// line.
    #[inline(always)]
    fn softmax(self, row: &mut Row<'_>, head: usize, query: usize, keys: Range<usize>) -> f32 {
        let visible = self.sight.keys(query, self.n_tokens);
        let visible = keys.start.max(visible.start) - keys.start..keys.end.min(visible.end) - keys.start;
        let mut scale = self.scale;
        if let Some(bias) = self.bias {
            // The bias of the first of `keys` may lie before the table, where none of the keys is visible.
            let first = head * (2 * bias.reach + 1) + bias.reach + keys.start + visible.start - query;
            for c in visible.start / LANES..visible.end.div_ceil(LANES) {
                let part = visible.start.max(c * LANES)..visible.end.min(c * LANES + LANES);
                let biases = &bias.values[first + part.start - visible.start..][..part.len()];
                let line = row.line(c);
                for (score, &bias) in line[part.start - c * LANES..part.end - c * LANES].iter_mut().zip(biases) {
                    *score = score.mul_add(scale, bias);
                }
            }
            scale = 1.0;
        }
        let n_lines = keys.len().div_ceil(LANES);
        for c in (0..visible.start.div_ceil(LANES)).chain(visible.end / LANES..n_lines) {
            for (i, score) in row.line(c).iter_mut().enumerate() {
                *score = if visible.contains(&(c * LANES + i)) { *score } else { f32::NEG_INFINITY };
            }
        }
        let larger = |a: f32, b: f32| if b > a { b } else { a };
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for c in 0..n_lines {
            let line = row.line(c);
            for i in 0..LANES {
                lanes[i] = larger(lanes[i], line[i]);
            }
        }
        let max = reduced(lanes, larger);
        let mut lanes = [0.0; LANES];
        for c in 0..n_lines {
            let line = row.line(c);
            for i in 0..LANES {
                line[i] = exp_of_negative((line[i] - max) * scale);
                lanes[i] += line[i];
            }
        }
        reduced(lanes, |a, b| a + b)
    }
}

/// The scores of one query, in lines of [`LANES`] keys that need not follow each other.
struct Row<'a> {
    lines: &'a mut [[f32; LANES]],
    /// Line c is `lines[first + c * step]`.
    first: usize,
    step: usize,
}

impl Row<'_> {
    #[inline(always)]
    fn line(&mut self, c: usize) -> &mut [f32; LANES] {
        &mut self.lines[self.first + c * self.step]
    }
}
