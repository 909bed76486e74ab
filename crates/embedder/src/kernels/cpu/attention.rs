//! Scaled dot-product attention of the tokens of one text among themselves.
//!
//! Source: Vaswani et al. 2017, eq. 1, for every head.
//! Shapes: packed queries, keys and values \[S, 3H\] (a row is `q | k | v`, each H = heads * D wide) give \[S, H\].
//! Cost: 2 S² H multiply-adds and S² exponentials per head; scores of one head, S² values, are in memory at once.

use super::elementary::exp_of_negative;
use super::product::{Activation, Panels, Product};
use super::simd::{Kernel, Simd};
use super::{lane_max, lane_sum};

/// Memory that attention and the products reuse from text to text.
#[derive(Debug)]
pub(crate) struct Scratch {
    keys: Panels,
    values: Panels,
    scores: Vec<f32>,
    rows: Vec<f32>,
}

impl Scratch {
    pub(crate) fn new(simd: Simd) -> Self {
        Self { keys: Panels::empty(simd), values: Panels::empty(simd), scores: Vec::new(), rows: Vec::new() }
    }
}

/// Attention within one text: `out = softmax(q kᵀ / √D) v` for each of `n_heads` heads.
pub(crate) struct Attention<'a> {
    pub(crate) n_heads: usize,
    /// H.
    pub(crate) hidden: usize,
    /// \[S, 3H\].
    pub(crate) qkv: &'a [f32],
    /// \[S, H\].
    pub(crate) out: &'a mut [f32],
    pub(crate) scratch: &'a mut Scratch,
}

impl Kernel for Attention<'_> {
    #[inline(always)]
    fn run(self) {
        let (hidden, dimensions) = (self.hidden, self.hidden / self.n_heads);
        let stride = 3 * hidden;
        let n_tokens = self.out.len() / hidden;
        let scale = 1.0 / (dimensions as f32).sqrt();
        let Scratch { keys, values, scores, rows } = self.scratch;
        scores.clear();
        scores.resize(n_tokens * n_tokens, 0.0);
        for first in (0..hidden).step_by(dimensions) {
            keys.fill_transposed(&self.qkv[hidden + first..], stride, n_tokens, dimensions);
            values.fill(&self.qkv[2 * hidden + first..], stride, n_tokens, dimensions);
            let product = Product {
                weight: keys,
                bias: None,
                activation: Activation::None,
                rows: &self.qkv[first..],
                row_stride: stride,
                n_rows: n_tokens,
                out: scores,
                out_stride: n_tokens,
                scratch: rows,
            };
            product.run();
            for row in scores.chunks_exact_mut(n_tokens) {
                softmax(row, scale);
            }
            let product = Product {
                weight: values,
                bias: None,
                activation: Activation::None,
                rows: scores,
                row_stride: n_tokens,
                n_rows: n_tokens,
                out: &mut self.out[first..],
                out_stride: hidden,
                scratch: rows,
            };
            product.run();
        }
    }
}

/// `e^(scale (x - max)) / Σ` over a row of at least one value.
#[inline(always)]
fn softmax(row: &mut [f32], scale: f32) {
    let max = lane_max(row);
    for value in row.iter_mut() {
        *value = exp_of_negative((*value - max) * scale);
    }
    let inverse = 1.0 / lane_sum(row, |value| value);
    for value in row.iter_mut() {
        *value *= inverse;
    }
}
