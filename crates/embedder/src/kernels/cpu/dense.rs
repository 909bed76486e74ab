//! A dense layer: `activation(x Wᵀ + b)`, with the weight laid out once for the processor and the precision.
//!
//! Shapes: rows \[T, K\] and a weight \[N, K\] give \[T, N\], or some of its columns.

use std::ops::Range;

use super::aligned::Buffer;
#[cfg(target_arch = "x86_64")]
use super::attention::tiles::Halves;
use super::bf16::{self, Bf16};
pub(crate) use super::elementary::Activation;
use super::int8::{self, Int8};
pub(crate) use super::product::ALIGNMENT as PART_ALIGNMENT;
use super::product::{Panels, Product};
use super::simd::Simd;
use crate::precision::{Precision, rounded_to_f16};

/// A weight \[N, K\] as the products want it.
#[derive(Debug, Clone)]
pub(crate) enum Weight {
    F32(Panels),
    Bf16(Bf16),
    Int8(Int8),
}

impl Weight {
    /// Lays out `weight`, \[N, K\] row by row, for the set it will be used on.
    ///
    /// In f16 the numbers are rounded and multiplied in f32, which costs as much as f32: what other devices are held
    /// to.
    pub(crate) fn pack(simd: Simd, precision: Precision, weight: &[f32], n_outputs: usize, n_inputs: usize) -> Self {
        assert_eq!(weight.len(), n_outputs * n_inputs, "weight is [N, K]");
        match precision {
            Precision::F32 => Self::F32(Panels::of_transposed(simd, weight, n_outputs, n_inputs)),
            Precision::Bf16 => Self::Bf16(Bf16::pack(weight, n_outputs, n_inputs)),
            Precision::Int8 => Self::Int8(Int8::pack(simd, weight, n_outputs, n_inputs)),
            Precision::F16 => {
                let rounded: Vec<f32> = weight.iter().map(|&value| rounded_to_f16(value)).collect();
                Self::F32(Panels::of_transposed(simd, &rounded, n_outputs, n_inputs))
            }
        }
    }

    /// K, the length of an input row.
    pub(crate) fn n_inputs(&self) -> usize {
        match self {
            Self::F32(weight) => weight.n_inputs(),
            Self::Bf16(Bf16(weight)) => weight.n_inputs(),
            Self::Int8(weight) => weight.n_inputs(),
        }
    }

    /// N, the length of an output row.
    pub(crate) fn n_outputs(&self) -> usize {
        match self {
            Self::F32(weight) => weight.n_outputs(),
            Self::Bf16(Bf16(weight)) => weight.n_outputs(),
            Self::Int8(weight) => weight.n_outputs(),
        }
    }
}

/// Memory that products and attention reuse from call to call; one for every thread that computes.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Inputs copied for the tiles.
    pub(super) rows: Buffer<f32>,
    pub(super) halves: bf16::Rows,
    pub(super) bytes: int8::Rows,
    /// Of one head: keys as columns, values, scores of some queries.
    pub(super) keys: Panels,
    pub(super) values: Panels,
    pub(super) scores: Buffer<f32>,
    #[cfg(target_arch = "x86_64")]
    pub(super) tiles: Halves,
}

impl Scratch {
    /// No memory yet.
    pub(crate) fn new(simd: Simd) -> Self {
        Self {
            rows: Buffer::new(),
            halves: bf16::Rows::new(),
            bytes: int8::Rows::new(),
            keys: Panels::empty(simd),
            values: Panels::empty(simd),
            scores: Buffer::new(),
            #[cfg(target_arch = "x86_64")]
            tiles: Halves::new(),
        }
    }
}

/// `out[t][n] = activation(bias[n] + Σ_k rows[t][k] weight[n][k])`.
pub(crate) struct Dense<'a> {
    pub(crate) weight: &'a Weight,
    /// \[N\]; zero where there is none.
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) activation: Activation,
    /// \[T, K\].
    pub(crate) rows: &'a [f32],
    /// T.
    pub(crate) n_rows: usize,
    /// The range of the N to compute, from a multiple of [`PART_ALIGNMENT`] on.
    pub(crate) outputs: Range<usize>,
    /// \[T, outputs\].
    pub(crate) out: &'a mut [f32],
    pub(crate) scratch: &'a mut Scratch,
}

impl Dense<'_> {
    /// Writes `out`. A row of it depends on its own row of inputs alone, bit for bit.
    pub(crate) fn run(self, simd: Simd) {
        let (n_inputs, n_outputs) = (self.weight.n_inputs(), self.weight.n_outputs());
        assert_eq!(self.rows.len(), self.n_rows * n_inputs, "rows are [T, K]");
        assert!(self.outputs.start.is_multiple_of(PART_ALIGNMENT) && self.outputs.end <= n_outputs, "outputs are of N");
        assert_eq!(self.out.len(), self.n_rows * self.outputs.len(), "out is [T, outputs]");
        assert!(self.bias.is_none_or(|bias| bias.len() == n_outputs), "bias is [N]");
        match self.weight {
            Weight::F32(weight) => simd.run(Product {
                weight,
                inputs: 0..n_inputs,
                out_stride: self.outputs.len(),
                outputs: self.outputs,
                bias: self.bias,
                activation: self.activation,
                rows: self.rows,
                row_stride: n_inputs,
                n_rows: self.n_rows,
                out: self.out,
                scratch: &mut self.scratch.rows,
            }),
            Weight::Bf16(weight) => weight.run(simd, self),
            Weight::Int8(weight) => weight.run(simd, self),
        }
    }
}
