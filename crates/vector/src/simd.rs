//! Dot products in vector registers: AVX2 with FMA and F16C, and AVX-512F; of codes also AVX-VNNI and AVX-512 VNNI.
//!
//! One loop serves all shapes of f32 and f16. A tile of R rows and Q queries keeps two accumulators for each pair, so
//! that two rows hide the latency of the additions and each loaded register is used several times.
//!
//! Cost: per 16 (AVX2) or 32 (AVX-512) elements, 2 (R + Q) loads and 2 R Q fused multiplications; per 64 codes of a row
//! one multiplication (AVX-512 VNNI), two (AVX-VNNI) or four (AVX2).
#![expect(unsafe_code, reason = "vector instructions; each block states why its pointers and instructions are valid")]

use std::arch::x86_64::*;

use half::f16;

use crate::steps::{CODES, ELEMENTS as STEP};

/// Proof that this machine has AVX2, FMA and F16C: only [`Avx2::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2 {
    has_vnni: bool,
}

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c"))
            .then_some(Self { has_vnni: is_x86_feature_detected!("avxvnni") })
    }

    /// The same machine without AVX-VNNI.
    #[cfg(test)]
    pub(crate) fn without_vnni(self) -> Self {
        Self { has_vnni: false }
    }

    #[inline]
    pub(crate) fn dots<E: Lane, const R: usize, const Q: usize>(
        self,
        rows: [&[E]; R],
        queries: [&[f32]; Q],
    ) -> [[f32; Q]; R] {
        let length = common_length(&rows, &queries);
        // SAFETY: `self` proves the instructions; all slices have `length` elements, a multiple of STEP.
        unsafe { avx2_tile(rows, queries, length) }
    }

    #[inline]
    pub(crate) fn code_sums<const R: usize>(self, rows: [&[u8]; R], query: &[u8]) -> [i32; R] {
        check_codes(&rows, query);
        // SAFETY: `self` proves the instructions; all slices are as long as the query, a multiple of `CODES`.
        unsafe { if self.has_vnni { avx_vnni_codes(rows, query) } else { avx2_codes(rows, query) } }
    }
}

/// Proof that this machine has AVX-512F, and AVX2 for the last halves: only [`Avx512::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512 {
    has_vnni: bool,
    avx2: Avx2,
}

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let has_vnni = is_x86_feature_detected!("avx512vnni");
        Some(Self { has_vnni, avx2: Avx2::detect().filter(|_| is_x86_feature_detected!("avx512f"))? })
    }

    #[inline]
    pub(crate) fn code_sums<const R: usize>(self, rows: [&[u8]; R], query: &[u8]) -> [i32; R] {
        if !self.has_vnni {
            return self.avx2.code_sums(rows, query);
        }
        check_codes(&rows, query);
        // SAFETY: `self` proves the instructions; all slices are as long as the query, a multiple of `CODES`.
        unsafe { avx512_vnni_codes(rows, query) }
    }

    #[inline]
    pub(crate) fn dots<E: Lane, const R: usize, const Q: usize>(
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

/// What the pointers of a tile of codes rely on.
#[inline(always)]
fn check_codes<const R: usize>(rows: &[&[u8]; R], query: &[u8]) {
    let length = query.len();
    assert!(length.is_multiple_of(CODES), "{length} codes are not padded to a multiple of {}", CODES);
    assert!(rows.iter().all(|row| row.len() == length), "codes of different lengths");
}

/// Begins to load these bytes into the cache.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8]) {
    const LINE_BYTES: usize = 64;
    for line in bytes.chunks(LINE_BYTES) {
        // SAFETY: SSE, which this architecture always has; the address is valid, and a prefetch of any other would do
        // nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
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
/// Every function needs the instructions of its register; a load reads `LANES` elements from its pointer, of any
/// alignment.
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

/// # Safety
/// The machine has the instructions, and every slice is as long as the query, a multiple of [`CODES`].
#[target_feature(enable = "avx2")]
unsafe fn avx2_codes<const R: usize>(rows: [&[u8]; R], query: &[u8]) -> [i32; R] {
    // SAFETY: passed on from the caller.
    unsafe { code_tile::<Widened, R>(rows, query) }
}

/// # Safety
/// As [`avx2_codes`].
#[target_feature(enable = "avx2,avxvnni")]
unsafe fn avx_vnni_codes<const R: usize>(rows: [&[u8]; R], query: &[u8]) -> [i32; R] {
    // SAFETY: passed on from the caller.
    unsafe { code_tile::<Vnni, R>(rows, query) }
}

/// # Safety
/// As [`avx2_codes`].
#[target_feature(enable = "avx2,avx512f,avx512vnni")]
unsafe fn avx512_vnni_codes<const R: usize>(rows: [&[u8]; R], query: &[u8]) -> [i32; R] {
    // SAFETY: passed on from the caller.
    unsafe { code_tile::<Vnni512, R>(rows, query) }
}

/// # Safety
/// As [`avx2_codes`].
#[inline(always)]
unsafe fn code_tile<V: CodeRegister, const R: usize>(rows: [&[u8]; R], query: &[u8]) -> [i32; R] {
    const { assert!(CODES.is_multiple_of(V::CODES)) };
    // SAFETY: `at + CODES <= length` at every load, because the length is a multiple of STEP and STEP of a register.
    unsafe {
        let mut sums = [V::zero(); R];
        let mut at = 0;
        while at < query.len() {
            let signed = V::load_signed(query.as_ptr().add(at));
            for r in 0..R {
                sums[r] = sums[r].add_products(rows[r].as_ptr().add(at), signed);
            }
            at += V::CODES;
        }
        sums.map(|sum| sum.sum())
    }
}

/// 32-bit sums of products of codes; only this file implements or calls it.
///
/// # Safety
/// Every function needs the instructions of its register; a load reads `CODES` bytes from its pointer, of any
/// alignment.
trait CodeRegister: Copy {
    const CODES: usize;
    /// Codes of a query, signed.
    type Signed: Copy;
    unsafe fn zero() -> Self;
    /// Codes less 128.
    unsafe fn load_signed(from: *const u8) -> Self::Signed;
    unsafe fn add_products(self, codes: *const u8, by: Self::Signed) -> Self;
    unsafe fn sum(self) -> i32;
}

/// The sum of eight lanes.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn sum_of_eight(lanes: __m256i) -> i32 {
    // SAFETY: passed on from the caller.
    unsafe {
        let four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes));
        let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<1>(two)))
    }
}

/// AVX2: codes widened to 16 bits, since products of bytes would saturate when they are added in pairs.
#[derive(Clone, Copy)]
struct Widened(__m256i);

// SAFETY of all three: the caller has the instructions; loads are of the unaligned kind and read CODES bytes.
impl CodeRegister for Widened {
    const CODES: usize = 16;
    type Signed = __m256i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn load_signed(from: *const u8) -> __m256i {
        unsafe { _mm256_sub_epi16(_mm256_cvtepu8_epi16(unaligned(from)), _mm256_set1_epi16(128)) }
    }

    #[inline(always)]
    unsafe fn add_products(self, codes: *const u8, by: __m256i) -> Self {
        unsafe { Self(_mm256_add_epi32(self.0, _mm256_madd_epi16(_mm256_cvtepu8_epi16(unaligned(codes)), by))) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> i32 {
        unsafe { sum_of_eight(self.0) }
    }
}

/// AVX-VNNI.
#[derive(Clone, Copy)]
struct Vnni(__m256i);

impl CodeRegister for Vnni {
    const CODES: usize = 32;
    type Signed = __m256i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn load_signed(from: *const u8) -> __m256i {
        unsafe { _mm256_xor_si256(unaligned(from), _mm256_set1_epi8(-128)) }
    }

    #[inline(always)]
    unsafe fn add_products(self, codes: *const u8, by: __m256i) -> Self {
        unsafe { Self(_mm256_dpbusd_avx_epi32(self.0, unaligned(codes), by)) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> i32 {
        unsafe { sum_of_eight(self.0) }
    }
}

/// AVX-512 VNNI.
#[derive(Clone, Copy)]
struct Vnni512(__m512i);

impl CodeRegister for Vnni512 {
    const CODES: usize = 64;
    type Signed = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    unsafe fn load_signed(from: *const u8) -> __m512i {
        unsafe { _mm512_xor_si512(unaligned(from), _mm512_set1_epi8(-128)) }
    }

    #[inline(always)]
    unsafe fn add_products(self, codes: *const u8, by: __m512i) -> Self {
        unsafe { Self(_mm512_dpbusd_epi32(self.0, unaligned(codes), by)) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> i32 {
        unsafe {
            sum_of_eight(_mm256_add_epi32(_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0)))
        }
    }
}
