//! The first vectors of tokens: rows of tables, added.

use super::simd::{Kernel, Simd};

/// `out[t] = words[ids[t]] + positions[t-th position] + constant`.
pub(crate) struct Gather<'a> {
    /// \[V, H\].
    pub(crate) words: &'a [f32],
    /// \[T\], each below V.
    pub(crate) ids: &'a [u32],
    /// A table \[P, H\], and T rows of it, each below P.
    pub(crate) positions: Option<(&'a [f32], &'a [u32])>,
    /// \[H\], added to every row.
    pub(crate) constant: Option<&'a [f32]>,
    /// \[T, H\].
    pub(crate) out: &'a mut [f32],
}

impl Gather<'_> {
    /// Writes `out`.
    pub(crate) fn run(self, simd: Simd) {
        assert!(!self.ids.is_empty() && self.out.len().is_multiple_of(self.ids.len()), "out is [T, H]");
        let hidden = self.out.len() / self.ids.len();
        assert!(self.constant.is_none_or(|constant| constant.len() == hidden), "constant is [H]");
        assert!(self.positions.is_none_or(|(_, rows)| rows.len() == self.ids.len()), "a position for every token");
        simd.run(self);
    }
}

impl Kernel for Gather<'_> {
    #[inline(always)]
    fn run(self) {
        let hidden = self.out.len() / self.ids.len();
        for (t, (out, &id)) in self.out.chunks_exact_mut(hidden).zip(self.ids).enumerate() {
            out.copy_from_slice(&self.words[id as usize * hidden..][..hidden]);
            if let Some((table, rows)) = self.positions {
                add(out, &table[rows[t] as usize * hidden..][..hidden]);
            }
            if let Some(constant) = self.constant {
                add(out, constant);
            }
        }
    }
}

#[inline(always)]
fn add(out: &mut [f32], other: &[f32]) {
    for (out, other) in out.iter_mut().zip(other) {
        *out += other;
    }
}
