//! Layer normalisation of rows, with the residual added on the way in.
//!
//! Source: Ba, Kiros and Hinton 2016, eq. 4. Mean first, then the variance around it: `E[x²] - E[x]²` cancels for large
//! means.
//! Cost: three passes over a row that stays in the first-level cache.

use super::lane_sum;
use super::simd::{Kernel, Simd};

/// `out[t] = normalised(rows[t] + residual[t]) * scale + shift`.
pub(crate) struct Norm<'a> {
    /// \[H\]; its length is the row length.
    pub(crate) scale: &'a [f32],
    /// \[H\]; zero where there is none.
    pub(crate) shift: Option<&'a [f32]>,
    pub(crate) epsilon: f32,
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
            let mean = lane_sum(row, |value| value) / n as f32;
            let variance = lane_sum(row, |value| (value - mean) * (value - mean)) / n as f32;
            let inverse = 1.0 / (variance + self.epsilon).sqrt();
            match self.shift {
                Some(shift) => {
                    for ((value, &scale), &shift) in row.iter_mut().zip(self.scale).zip(shift) {
                        *value = ((*value - mean) * inverse).mul_add(scale, shift);
                    }
                }
                None => {
                    for (value, &scale) in row.iter_mut().zip(self.scale) {
                        *value = (*value - mean) * inverse * scale;
                    }
                }
            }
        }
    }
}
