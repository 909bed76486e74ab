//! Attention in f32, by the products of [`super::super::product`].

use std::ops::Range;

use super::{Attention, QUERIES_MAX, Row, Scoring};
use crate::kernels::cpu::LANES;
use crate::kernels::cpu::dense::Scratch;
use crate::kernels::cpu::elementary::Activation;
use crate::kernels::cpu::heads::Heads;
use crate::kernels::cpu::product::{ALIGNMENT, Product};
use crate::kernels::cpu::simd::Kernel;

/// Queries whose scores are in memory at once: as many as fit into half a second-level cache, in whole tiles of either
/// height, and at least one.
const QUERIES_MIN: usize = 12;
const SCORES: usize = 1 << 16;

pub(super) struct InFloats<'a> {
    pub(super) attention: Attention<'a>,
    pub(super) scoring: Scoring<'a>,
    pub(super) n_queries: usize,
}

impl Kernel for InFloats<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { attention: Attention { heads, qkv, out, scratch, .. }, scoring, n_queries } = self;
        let (n_tokens, stride, dimensions) = (scoring.n_tokens, heads.row(), heads.width);
        let widest = scoring.n_keys_max(n_queries.min(n_tokens)) + ALIGNMENT;
        let fitting = SCORES / widest / QUERIES_MIN * QUERIES_MIN;
        let n_queries = n_queries.min(QUERIES_MAX).min(fitting.max(QUERIES_MIN));
        for shared in 0..heads.n_shared {
            let keys = heads.queries() + shared * dimensions;
            let values = keys + heads.keys();
            scratch.keys.fill_transposed(&qkv[keys..], stride, n_tokens, dimensions);
            scratch.values.fill(&qkv[values..], stride, n_tokens, dimensions);
            for head in shared * heads.n_each()..(shared + 1) * heads.n_each() {
                let first = head * dimensions;
                for start in (0..n_tokens).step_by(n_queries) {
                    let queries = start..n_tokens.min(start + n_queries);
                    let (rows, out) = (&qkv[start * stride + first..], &mut out[start * heads.queries() + first..]);
                    attend(scoring, head, queries, heads, rows, out, scratch);
                }
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
    heads: Heads,
    rows: &[f32],
    out: &mut [f32],
    scratch: &mut Scratch,
) {
    let (dimensions, out_stride) = (heads.width, heads.queries());
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
        row_stride: heads.row(),
        n_rows,
        out: &mut scratch.scores,
        out_stride: width,
        scratch: &mut scratch.rows,
    };
    product.run();
    let mut sums = [0.0; QUERIES_MAX];
    for ((row, query), sum) in scratch.scores.chunks_exact_mut(width).zip(queries).zip(&mut sums) {
        let mut row = Row { lines: row.as_chunks_mut().0, first: 0, step: 1 };
        *sum = scoring.softmax(&mut row, head, query, keys.clone());
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
        out_stride,
        scratch: &mut scratch.rows,
    };
    product.run();
    for (row, sum) in out.chunks_mut(out_stride).zip(&sums[..n_rows]) {
        let inverse = 1.0 / sum;
        for value in &mut row[..dimensions] {
            *value *= inverse;
        }
    }
}
