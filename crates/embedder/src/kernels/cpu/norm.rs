//! Layer normalisation of rows, with the residual added on the way in.
//!
//! Source: Ba, Kiros and Hinton 2016, eq. 4; around zero: Zhang and Sennrich 2019 (RMSNorm). Mean first, then the
//! variance around it: `E[x²] - E[x]²` cancels for large means.
//! Cost: three passes over a row that stays in the first-level cache.

use super::heads::Heads;
use super::lane_sum;
use super::simd::{Kernel, Simd};

/// The number that values are taken to lie around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Centre {
    /// Their mean: layer normalisation.
    Mean,
    /// Zero: the root of the mean square.
    Zero,
}

/// `out[t] = normalised(rows[t] + residual[t]) * scale + shift`.
pub(crate) struct Norm<'a> {
    /// \[H\]; its length is the row length.
    pub(crate) scale: &'a [f32],
    /// \[H\]; zero where there is none.
    pub(crate) shift: Option<&'a [f32]>,
    pub(crate) epsilon: f32,
    pub(crate) centre: Centre,
    /// \[T, H\], added to `rows` first.
    pub(crate) residual: Option<&'a [f32]>,
    /// \[T, H\], normalised in place.
    pub(crate) rows: &'a mut [f32],
}

impl Norm<'_> {
    /// Normalises the rows.
    pub(crate) fn run(self, simd: Simd) {
        let n = self.scale.len();
        assert!(self.rows.len().is_multiple_of(n), "rows are [T, H]");
        assert!(self.residual.is_none_or(|residual| residual.len() == self.rows.len()), "residual is [T, H]");
        assert!(self.shift.is_none_or(|shift| shift.len() == n), "shift is [H]");
        simd.run(self);
    }
}

impl Kernel for Norm<'_> {
    #[inline(always)]
    fn run(self) {
        let n = self.scale.len();
        let mut residual = self.residual.map(|residual| residual.chunks_exact(n));
        for row in self.rows.chunks_exact_mut(n) {
            if let Some(residual) = residual.as_mut().and_then(Iterator::next) {
                for (value, add) in row.iter_mut().zip(residual) {
                    *value += add;
                }
            }
            normalize(row, self.scale, self.shift, self.epsilon, self.centre);
        }
    }
}

/// Norms of the queries and of the keys of every head, in place; values stay.
pub(crate) struct NormHeads<'a> {
    /// Of queries and of keys, both \[D\].
    pub(crate) scales: [&'a [f32]; 2],
    pub(crate) epsilon: f32,
    pub(crate) centre: Centre,
    pub(crate) heads: Heads,
    /// \[T, (A + 2G) D\]: a row is `q | k | v`.
    pub(crate) qkv: &'a mut [f32],
}

impl NormHeads<'_> {
    /// Normalises queries and keys.
    pub(crate) fn run(self, simd: Simd) {
        assert!(self.scales.iter().all(|scale| scale.len() == self.heads.width), "scales are [D]");
        assert!(self.qkv.len().is_multiple_of(self.heads.row()), "qkv is [T, (A + 2G) D]");
        simd.run(self);
    }
}

impl Kernel for NormHeads<'_> {
    #[inline(always)]
    fn run(self) {
        let heads = self.heads;
        for row in self.qkv.chunks_exact_mut(heads.row()) {
            let (queries, rest) = row.split_at_mut(heads.queries());
            for head in queries.chunks_exact_mut(heads.width) {
                normalize(head, self.scales[0], None, self.epsilon, self.centre);
            }
            for head in rest[..heads.keys()].chunks_exact_mut(heads.width) {
                normalize(head, self.scales[1], None, self.epsilon, self.centre);
            }
        }
    }
}

#[inline(always)]
fn normalize(row: &mut [f32], scale: &[f32], shift: Option<&[f32]>, epsilon: f32, centre: Centre) {
    let n = row.len() as f32;
    let mean = match centre {
        Centre::Mean => lane_sum(row, |value| value) / n,
        Centre::Zero => 0.0,
    };
    let variance = lane_sum(row, |value| (value - mean) * (value - mean)) / n;
    let inverse = 1.0 / (variance + epsilon).sqrt();
    match shift {
        Some(shift) => {
            for ((value, &scale), &shift) in row.iter_mut().zip(scale).zip(shift) {
                *value = ((*value - mean) * inverse).mul_add(scale, shift);
            }
        }
        None => {
            for (value, &scale) in row.iter_mut().zip(scale) {
                *value = (*value - mean) * inverse * scale;
            }
        }
    }
}
