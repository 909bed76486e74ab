//! The gate of a gated feed-forward: one half of the inner values, activated, times the other.
//!
//! Source: Shazeer 2020 (GLU variants), eq. 5 and 6.

use super::elementary::Activation;
use super::simd::{Kernel, Simd};

/// The half of an inner row that goes through the activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activated {
    First,
    Second,
}

/// `out[t][j] = activation(x[t][a + j]) * x[t][b + j]`, where a and b are the starts of the halves.
pub(crate) struct Gate<'a> {
    pub(crate) activation: Activation,
    pub(crate) activated: Activated,
    /// F.
    pub(crate) width: usize,
    /// x, \[T, 2F\].
    pub(crate) rows: &'a [f32],
    /// \[T, F\].
    pub(crate) out: &'a mut [f32],
}

impl Gate<'_> {
    /// Writes `out`.
    pub(crate) fn run(self, simd: Simd) {
        assert!(
            self.out.len().is_multiple_of(self.width) && self.rows.len() == 2 * self.out.len(),
            "[T, 2F] to [T, F]"
        );
        simd.run(self);
    }
}

impl Kernel for Gate<'_> {
    #[inline(always)]
    fn run(self) {
        for (row, out) in self.rows.chunks_exact(2 * self.width).zip(self.out.chunks_exact_mut(self.width)) {
            let (first, second) = row.split_at(self.width);
            let (activated, other) = match self.activated {
                Activated::First => (first, second),
                Activated::Second => (second, first),
            };
            out.copy_from_slice(activated);
            self.activation.apply(out);
            for (out, &other) in out.iter_mut().zip(other) {
                *out *= other;
            }
        }
    }
}
