//! Layer normalisation of rows, with the residual added on the way in.
//!
//! Source: Ba, Kiros and Hinton 2016, eq. 4. Mean first, then the variance around it: `E[x²] - E[x]²` cancels for large means.
//! Cost: three passes over a row that stays in the first-level cache.

use super::lane_sum;
use super::simd::Kernel;

/// `out[t] = normalised(rows[t] + residual[t]) * scale + shift`.
pub(crate) struct Norm<'a> {
    /// Scale and shift, \[H\]; their length is the row length.
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
    pub(crate) epsilon: f32,
    /// \[T, H\], added to `rows` first.
    pub(crate) residual: Option<&'a [f32]>,
    /// \[T, H\], normalised in place.
    pub(crate) rows: &'a mut [f32],
}

impl Kernel for Norm<'_> {
    #[inline(always)]
    fn run(self) {
        let n = self.scale.len();
        if let Some(residual) = self.residual {
            for (value, &add) in self.rows.iter_mut().zip(residual) {
                *value += add;
            }
        }
        for row in self.rows.chunks_exact_mut(n) {
            let mean = lane_sum(row, |value| value) / n as f32;
            let variance = lane_sum(row, |value| (value - mean) * (value - mean)) / n as f32;
            let inverse = 1.0 / (variance + self.epsilon).sqrt();
            for ((value, &scale), &shift) in row.iter_mut().zip(self.scale).zip(self.shift) {
                *value = ((*value - mean) * inverse).mul_add(scale, shift);
            }
        }
    }
}
