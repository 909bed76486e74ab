//! Scaled dot-product attention of the tokens of one text among themselves.
//!
//! Source: Vaswani et al. 2017, eq. 1, for every head; the scores may have a bias by distance (Press et al. 2021; Raffel et al. 2020)
//! and may be kept to a window (Beltagy et al. 2020).
//! Shapes: packed queries, keys and values \[S, 3H\] (a row is `q | k | v`, each H = heads * D wide) give \[S, H\].
//! Cost: 2 S² H multiply-adds and S² exponentials per head. Scores of some queries of one head are in memory at once, never
//! S². What a query gets does not depend on the queries beside it.

use std::ops::Range;

use super::dense::Scratch;
use super::elementary::{Activation, exp_of_negative};
use super::product::{ALIGNMENT, Product};
use super::simd::{Kernel, Simd};
use super::{LANES, lane_max, reduced};
use crate::precision::Precision;

/// Queries whose scores are in memory at once: as many as fit into half a second-level cache, within these limits, in whole
/// tiles of either height.
const QUERIES_MIN: usize = 12;
const QUERIES_MAX: usize = 120;
const SCORES: usize = 1 << 16;

/// What is added to a score by the distance of its key from its query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RelativeBias {
    pub(crate) n_heads: usize,
    /// The largest distance known: at least the longest text less one.
    pub(crate) reach: usize,
    /// `[h * (2 * reach + 1) + reach + (key - query)]`.
    pub(crate) values: Vec<f32>,
}

/// Attention within one text: `out = softmax(scale q kᵀ + bias) v` for each of `n_heads` heads.
pub(crate) struct Attention<'a> {
    pub(crate) n_heads: usize,
    /// H = heads * D.
    pub(crate) hidden: usize,
    /// What scores are multiplied with, above 0; usually 1/√D.
    pub(crate) scale: f32,
    pub(crate) bias: Option<&'a RelativeBias>,
    /// Only keys at most so far from the query count.
    pub(crate) window: Option<usize>,
    /// What the products may be computed in.
    pub(crate) precision: Precision,
    /// \[S, 3H\].
    pub(crate) qkv: &'a [f32],
    /// \[S, H\].
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
        let n_tokens = self.out.len() / self.hidden;
        assert!(self.hidden.is_multiple_of(self.n_heads), "H = heads * D");
        assert!(self.out.len() == n_tokens * self.hidden && self.qkv.len() == 3 * self.out.len(), "[S, 3H] to [S, H]");
        assert!(self.scale > 0.0, "scale is positive: {}", self.scale);
        if let Some(bias) = self.bias {
            assert!(bias.reach + 1 >= n_tokens, "a bias that reaches {} for {n_tokens} tokens", bias.reach);
            assert_eq!(bias.values.len(), self.n_heads * (2 * bias.reach + 1), "a bias for every head and distance");
            assert_eq!(bias.n_heads, self.n_heads, "a bias for every head");
        }
        let scoring = Scoring { scale: self.scale, bias: self.bias, window: self.window, n_tokens };
        simd.run(InFloats { attention: self, scoring, n_queries });
    }
}

/// How a score becomes a weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scoring<'a> {
    scale: f32,
    bias: Option<&'a RelativeBias>,
    window: Option<usize>,
    n_tokens: usize,
}

impl Scoring<'_> {
    /// The keys that any of `queries` may attend to; the first is moved down to a multiple of [`ALIGNMENT`].
    #[inline(always)]
    fn keys_of(self, queries: Range<usize>) -> Range<usize> {
        match self.window {
            None => 0..self.n_tokens,
            Some(window) => {
                let first = queries.start.saturating_sub(window) / ALIGNMENT * ALIGNMENT;
                first..self.n_tokens.min(queries.end.saturating_add(window))
            }
        }
    }

    /// `e^(scale * score + bias - max)` of one query and the keys it may attend to, 0 for other keys and beyond the last;
    /// returns the sum. `row` holds the scores of `keys`, and is as long as the next multiple of [`LANES`].
    #[inline(always)]
    fn softmax(self, row: &mut [f32], head: usize, query: usize, keys: Range<usize>) -> f32 {
        let mut scale = self.scale;
        let visible = match self.window {
            None => keys.clone(),
            Some(window) => {
                keys.start.max(query.saturating_sub(window))
                    ..keys.end.min(query.saturating_add(window).saturating_add(1))
            }
        };
        let visible = visible.start - keys.start..visible.end - keys.start;
        row[..visible.start].fill(f32::NEG_INFINITY);
        row[visible.end..].fill(f32::NEG_INFINITY);
        if let Some(bias) = self.bias {
            let first = head * (2 * bias.reach + 1) + bias.reach + keys.start + visible.start - query;
            for (score, &bias) in row[visible].iter_mut().zip(&bias.values[first..]) {
                *score = score.mul_add(scale, bias);
            }
            scale = 1.0;
        }
        let max = lane_max(row, |score| score);
        let mut lanes = [0.0; LANES];
        for chunk in row.as_chunks_mut::<LANES>().0 {
            for i in 0..LANES {
                chunk[i] = exp_of_negative((chunk[i] - max) * scale);
                lanes[i] += chunk[i];
            }
        }
        reduced(lanes, |a, b| a + b)
    }
}

struct InFloats<'a> {
    attention: Attention<'a>,
    scoring: Scoring<'a>,
    n_queries: usize,
}

impl Kernel for InFloats<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { attention: Attention { n_heads, hidden, qkv, out, scratch, .. }, scoring, n_queries } = self;
        let (dimensions, n_tokens) = (hidden / n_heads, scoring.n_tokens);
        let widest = scoring.keys_of(0..n_queries.min(n_tokens)).len() + ALIGNMENT;
        let fitting = SCORES / widest / QUERIES_MIN * QUERIES_MIN;
        let n_queries = n_queries.min(QUERIES_MAX).min(fitting.max(QUERIES_MIN));
        for head in 0..n_heads {
            let first = head * dimensions;
            scratch.keys.fill_transposed(&qkv[hidden + first..], 3 * hidden, n_tokens, dimensions);
            scratch.values.fill(&qkv[2 * hidden + first..], 3 * hidden, n_tokens, dimensions);
            for start in (0..n_tokens).step_by(n_queries) {
                let queries = start..n_tokens.min(start + n_queries);
                let rows = &qkv[start * 3 * hidden + first..];
                attend(scoring, head, queries, [dimensions, hidden], rows, &mut out[start * hidden + first..], scratch);
            }
        }
    }
}

/// Some queries of one head, whose keys and values are in the panels.
#[inline(always)]
fn attend(
    scoring: Scoring<'_>,
    head: usize,
    queries: Range<usize>,
    [dimensions, hidden]: [usize; 2],
    rows: &[f32],
    out: &mut [f32],
    scratch: &mut Scratch,
) {
    let (keys, n_rows) = (scoring.keys_of(queries.clone()), queries.len());
    let width = keys.len().next_multiple_of(LANES);
    scratch.scores.resize(n_rows * width);
    let product = Product {
        weight: &scratch.keys,
        inputs: 0..dimensions,
        outputs: keys.clone(),
        bias: None,
        activation: Activation::None,
        rows,
        row_stride: 3 * hidden,
        n_rows,
        out: &mut scratch.scores,
        out_stride: width,
        scratch: &mut scratch.rows,
    };
    product.run();
    let mut sums = [0.0; QUERIES_MAX];
    for ((row, query), sum) in scratch.scores.chunks_exact_mut(width).zip(queries).zip(&mut sums) {
        *sum = scoring.softmax(row, head, query, keys.clone());
    }
    let product = Product {
        weight: &scratch.values,
        inputs: keys,
        outputs: 0..dimensions,
        bias: None,
        activation: Activation::None,
        rows: &scratch.scores,
        row_stride: width,
        n_rows,
        out: &mut *out,
        out_stride: hidden,
        scratch: &mut scratch.rows,
    };
    product.run();
    for (row, sum) in out.chunks_mut(hidden).zip(&sums[..n_rows]) {
        let inverse = 1.0 / sum;
        for value in &mut row[..dimensions] {
            *value *= inverse;
        }
    }
}
