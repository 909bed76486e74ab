//! Rotary positions: queries and keys turned by an angle that grows with their place.
//!
//! Source: Su et al. 2021, eq. 34, with the halves of a head as the pairs: `(x1, x2)` becomes
//! `(x1 cos - x2 sin, x2 cos + x1 sin)`.

use super::heads::Heads;
use super::simd::{Kernel, Simd};

/// Turns the first R of the D values of every head of queries and keys, in place.
pub(crate) struct Rotate<'a> {
    pub(crate) heads: Heads,
    /// Cosines and sines by position, both \[P, R/2\].
    pub(crate) cos: &'a [f32],
    pub(crate) sin: &'a [f32],
    /// R/2, at least 1 and at most D/2.
    pub(crate) half: usize,
    /// \[T\], each below P.
    pub(crate) positions: &'a [u32],
    /// \[T, (A + 2G) D\]: a row is `q | k | v`.
    pub(crate) qkv: &'a mut [f32],
}

impl Rotate<'_> {
    /// Turns queries and keys.
    pub(crate) fn run(self, simd: Simd) {
        let dimensions = self.heads.width;
        assert!(self.half >= 1 && 2 * self.half <= dimensions, "R is at most D: {} of {dimensions}", 2 * self.half);
        assert_eq!(self.cos.len(), self.sin.len(), "a sine for every cosine");
        assert_eq!(self.qkv.len(), self.positions.len() * self.heads.row(), "qkv is [T, (A + 2G) D]");
        simd.run(self);
    }
}

impl Kernel for Rotate<'_> {
    #[inline(always)]
    fn run(self) {
        let (half, heads) = (self.half, self.heads);
        for (row, &position) in self.qkv.chunks_exact_mut(heads.row()).zip(self.positions) {
            let cos = &self.cos[position as usize * half..][..half];
            let sin = &self.sin[position as usize * half..][..half];
            for head in row[..heads.queries() + heads.keys()].chunks_exact_mut(heads.width) {
                let (first, second) = head[..2 * half].split_at_mut(half);
                for (((x1, x2), &cos), &sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
                    (*x1, *x2) = (x1.mul_add(cos, -(*x2 * sin)), x2.mul_add(cos, *x1 * sin));
                }
            }
        }
    }
}
