//! Dot products in vector registers: AVX2 with FMA and F16C, and AVX-512F.
//!
//! One loop serves all shapes. A tile of R rows and Q queries keeps two accumulators for each pair, so that two rows hide the
//! latency of the additions and each loaded register is used several times.
//!
//! Cost: per 16 (AVX2) or 32 (AVX-512) elements, 2 (R + Q) loads and 2 R Q fused multiplications.
#![expect(unsafe_code, reason = "vector instructions; each block states why its pointers and instructions are valid")]

use std::arch::x86_64::*;

use half::f16;

use crate::distance::{Element, STEP};

/// Proof that this machine has AVX2, FMA and F16C: only [`Avx2::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c"))
            .then_some(Self(()))
    }

    #[inline]
    pub(crate) fn dots<E: Element, const R: usize, const Q: usize>(
        self,
        rows: [&[E]; R],
        queries: [&[f32]; Q],
    ) -> [[f32; Q]; R] {
        let length = common_length(&rows, &queries);
        // SAFETY: `self` proves the instructions; all slices have `length` elements, a multiple of STEP.
        unsafe { avx2_tile(rows, queries, length) }
    }
}

/// Proof that this machine has AVX-512F, and AVX2 for the last halves: only [`Avx512::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && Avx2::detect().is_some()).then_some(Self(()))
    }

    #[inline]
    pub(crate) fn dots<E: Element, const R: usize, const Q: usize>(
        self,
        rows: [&[E]; R],
        queries: [&[f32]; Q],
    ) -> [[f32; Q]; R] {
        let length = common_length(&rows, &queries);
        // SAFETY: `self` proves the instructions; all slices have `length` elements, a multiple of STEP.
        unsafe { avx512_tile(rows, queries, length) }
    }
}

/// The one length of all slices: what the pointers of a tile rely on.
#[inline(always)]
fn common_length<E, const R: usize, const Q: usize>(rows: &[&[E]; R], queries: &[&[f32]; Q]) -> usize {
    let length = rows[0].len();
    assert!(length.is_multiple_of(STEP), "{length} elements are not padded to a multiple of {STEP}");
    assert!(rows.iter().all(|row| row.len() == length), "rows of different lengths");
    assert!(queries.iter().all(|query| query.len() == length), "a query of another length than {length}");
    length
}

/// # Safety
/// The machine has the instructions, and every slice has `length` elements, a multiple of [`STEP`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2_tile<E: Lane, const R: usize, const Q: usize>(
    rows: [&[E]; R],
    queries: [&[f32]; Q],
    length: usize,
) -> [[f32; Q]; R] {
    // SAFETY: passed on from the caller; `__m256` needs no other instructions than those enabled here.
    unsafe { tile::<__m256, E, R, Q>(rows, queries, length) }
}

/// # Safety
/// The machine has the instructions, and every slice has `length` elements, a multiple of [`STEP`].
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
unsafe fn avx512_tile<E: Lane, const R: usize, const Q: usize>(
    rows: [&[E]; R],
    queries: [&[f32]; Q],
    length: usize,
) -> [[f32; Q]; R] {
    // SAFETY: passed on from the caller; `__m512` needs no other instructions than those enabled here.
    unsafe { tile::<__m512, E, R, Q>(rows, queries, length) }
}

/// # Safety
/// The machine has the instructions of `V`, and every slice has `length` elements, a multiple of [`STEP`].
#[inline(always)]
unsafe fn tile<V: Register, E: Lane, const R: usize, const Q: usize>(
    rows: [&[E]; R],
    queries: [&[f32]; Q],
    length: usize,
) -> [[f32; Q]; R] {
    const { assert!(STEP.is_multiple_of(2 * V::LANES)) };
    // SAFETY: `at + LANES <= length` at every load, because the length is a multiple of STEP and STEP of two registers.
    unsafe {
        let mut sums = [[[V::zero(); Q]; R]; 2];
        let mut start = 0;
        while start < length {
            for (half, sums) in sums.iter_mut().enumerate() {
                let at = start + half * V::LANES;
                let mut row = [V::zero(); R];
                for r in 0..R {
                    row[r] = E::load(rows[r].as_ptr().add(at));
                }
                for q in 0..Q {
                    let query = V::load(queries[q].as_ptr().add(at));
                    for r in 0..R {
                        sums[r][q] = row[r].multiply_add(query, sums[r][q]);
                    }
                }
            }
            start += 2 * V::LANES;
        }
        let mut dots = [[0.0; Q]; R];
        for r in 0..R {
            for q in 0..Q {
                dots[r][q] = sums[0][r][q].add(sums[1][r][q]).sum();
            }
        }
        dots
    }
}

/// A register of f32 lanes; only this file implements or calls it.
///
/// # Safety
/// Every function needs the instructions of its register; a load reads `LANES` elements from its pointer, of any alignment.
pub(crate) trait Register: Copy {
    const LANES: usize;
    unsafe fn zero() -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn load_half(from: *const f16) -> Self;
    unsafe fn multiply_add(self, by: Self, plus: Self) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    /// Adds the lanes in halves: the upper half to the lower, until one is left.
    unsafe fn sum(self) -> f32;
}

/// An element that a register can take from memory.
pub(crate) trait Lane: Copy {
    /// # Safety
    /// As [`Register`]'s loads.
    unsafe fn load<V: Register>(from: *const Self) -> V;
}

impl Lane for f32 {
    #[inline(always)]
    unsafe fn load<V: Register>(from: *const Self) -> V {
        // SAFETY: passed on from the caller.
        unsafe { V::load(from) }
    }
}

impl Lane for f16 {
    #[inline(always)]
    unsafe fn load<V: Register>(from: *const Self) -> V {
        // SAFETY: passed on from the caller.
        unsafe { V::load_half(from) }
    }
}

/// A register as it lies in memory, on any address.
#[repr(C, packed)]
struct Unaligned<V>(V);

/// Loads a register. Not by the intrinsics for it: with debug assertions on, these compare addresses at every load.
///
/// # Safety
/// `size_of::<V>()` bytes from here can be read, and `V` is a register, for which all bits are values.
#[inline(always)]
unsafe fn unaligned<V: Copy, E>(from: *const E) -> V {
    // SAFETY: passed on from the caller; a packed structure needs no alignment.
    unsafe { (*from.cast::<Unaligned<V>>()).0 }
}

// SAFETY of both: the caller has the instructions; loads are of the unaligned kind and read LANES elements.
impl Register for __m256 {
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { unaligned(from) }
    }

    #[inline(always)]
    unsafe fn load_half(from: *const f16) -> Self {
        unsafe { _mm256_cvtph_ps(unaligned(from)) }
    }

    #[inline(always)]
    unsafe fn multiply_add(self, by: Self, plus: Self) -> Self {
        unsafe { _mm256_fmadd_ps(self, by, plus) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { _mm256_add_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

impl Register for __m512 {
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { unaligned(from) }
    }

    #[inline(always)]
    unsafe fn load_half(from: *const f16) -> Self {
        unsafe { _mm512_cvtph_ps(unaligned(from)) }
    }

    #[inline(always)]
    unsafe fn multiply_add(self, by: Self, plus: Self) -> Self {
        unsafe { _mm512_fmadd_ps(self, by, plus) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { _mm512_add_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            // By way of f64 lanes, because extracting eight f32 lanes would need AVX-512DQ.
            let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self)));
            _mm256_add_ps(_mm512_castps512_ps256(self), upper).sum()
        }
    }
}
