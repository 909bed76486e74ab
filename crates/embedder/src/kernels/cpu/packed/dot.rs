//! Products of short numbers by the instructions that multiply several of them and add.
#![expect(unsafe_code, reason = "intrinsics on checked slices, where the processor has the instructions")]

use std::arch::x86_64::*;

use super::{Tile, TileRows, WIDTH};
use crate::kernels::cpu::aligned::{Buffer, prefetch};
use crate::kernels::cpu::simd::{Avx2, Bf16Dot, Vnni};

/// Holds rows and sums to what `H` rows of as many words as there are lines read and write.
fn check<R, S>(height: usize, rows: &[R], stride: usize, lines: &[[u32; WIDTH]], sums: &[[S; WIDTH]]) {
    let per_word = 4 / size_of::<R>();
    assert!(rows.len() >= (height - 1) * stride + lines.len() * per_word && sums.len() >= height);
}

/// Rows of bf16, two at a time, into f32: `vdpbf16ps`.
#[derive(Clone, Copy)]
pub(crate) struct Bf16Pairs(pub(crate) Bf16Dot);

impl Tile for Bf16Pairs {
    type Row = u16;
    type Sum = f32;
    const HEIGHT: usize = 12;

    fn multiply(
        self,
        rows: TileRows<'_, u16>,
        lines: &[[u32; WIDTH]],
        next: &[[u32; WIDTH]],
        sums: &mut [[f32; WIDTH]],
    ) {
        prefetch(next);
        let TileRows { n, values: rows, stride } = rows;
        let height = n.next_multiple_of(4);
        check(height, rows, stride, lines, sums);
        // SAFETY: `Bf16Dot` proves the instructions; `check` held the slices to the height.
        unsafe {
            match height {
                4 => bf16_pairs::<4>(rows, stride, lines, sums),
                8 => bf16_pairs::<8>(rows, stride, lines, sums),
                _ => bf16_pairs::<12>(rows, stride, lines, sums),
            }
        }
    }
}

/// A [`Tile`] that carries the proof with it.
pub(crate) trait HasBf16Dot {
    fn bf16_dot(self) -> Bf16Dot;
}

impl HasBf16Dot for Bf16Pairs {
    #[inline(always)]
    fn bf16_dot(self) -> Bf16Dot {
        self.0
    }
}

/// # Safety
/// As [`check`] with a height of `H`.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn bf16_pairs<const H: usize>(rows: &[u16], stride: usize, lines: &[[u32; WIDTH]], sums: &mut [[f32; WIDTH]]) {
    let mut local = [[_mm512_setzero_ps(); 2]; H];
    let mut row = rows.as_ptr().cast::<i32>();
    for line in lines {
        let line = line.as_ptr().cast::<__m512i>();
        // SAFETY: a line is two registers; word `step` of each of `H` rows is in the slice.
        unsafe {
            let weights = [_mm512_loadu_si512(line), _mm512_loadu_si512(line.add(1))];
            for (i, local) in local.iter_mut().enumerate() {
                let inputs = _mm512_set1_epi32(row.byte_add(i * stride * 2).read_unaligned());
                for (sum, weights) in local.iter_mut().zip(weights) {
                    *sum = _mm512_dpbf16_ps(*sum, bf16(inputs), bf16(weights));
                }
            }
            row = row.add(1);
        }
    }
    for (sums, local) in sums.iter_mut().zip(local) {
        for (sums, local) in sums.as_chunks_mut::<16>().0.iter_mut().zip(local) {
            // SAFETY: sixteen f32 are a register.
            unsafe { _mm512_storeu_ps(sums.as_mut_ptr(), local) };
        }
    }
}

#[target_feature(enable = "avx512f,avx512bf16")]
fn bf16(register: __m512i) -> __m512bh {
    // SAFETY: both are 512 bits of which any is valid.
    unsafe { std::mem::transmute(register) }
}

/// Some rows of `n` values that start `stride` apart, as bf16 in rows of `width`: nearest, ties to even, 0 beyond their
/// end.
pub(crate) fn round_rows(
    _proof: Bf16Dot,
    [n_rows, n, stride]: [usize; 3],
    rows: &[f32],
    width: usize,
    target: &mut [u16],
) {
    assert!(n <= width && width.is_multiple_of(16) && target.len() >= n_rows * width);
    assert!(n_rows == 0 || rows.len() >= (n_rows - 1) * stride + n);
    // SAFETY: `Bf16Dot` proves the instructions; the shapes were checked.
    unsafe { round_all([n_rows, n, stride], rows, width, target) }
}

/// # Safety
/// `rows` holds `n` values at each of `n_rows` places `stride` apart, `target` as many rows of `width`, a multiple of
/// 16 that is at least `n`.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn round_all([n_rows, n, stride]: [usize; 3], rows: &[f32], width: usize, target: &mut [u16]) {
    for i in 0..n_rows {
        for first in (0..width).step_by(16) {
            let mask = (0xffff_u32.unbounded_shr(16 - n.saturating_sub(first).min(16) as u32)) as u16;
            // SAFETY: the mask keeps to what the row has; sixteen bf16 fit from `first < width` on.
            unsafe {
                let values = _mm512_maskz_loadu_ps(mask, rows.as_ptr().wrapping_add(i * stride + first));
                let rounded = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(values));
                _mm256_storeu_si256(target.as_mut_ptr().add(i * width + first).cast(), rounded);
            }
        }
    }
}

/// Lines of scores, every [`WIDTH`] keys a tile of `height` lines, as bf16 in rows of `width`.
pub(crate) fn round_tiles(
    _proof: Bf16Dot,
    tiles: &[[f32; WIDTH]],
    [n_rows, height]: [usize; 2],
    width: usize,
    target: &mut [u16],
) {
    let n_tiles = tiles.len() / height;
    assert!(n_rows <= height && n_tiles * WIDTH <= width && target.len() >= n_rows * width);
    for (c, tile) in tiles.chunks_exact(height).enumerate() {
        let target = &mut target[c * WIDTH..];
        // SAFETY: `Bf16Dot` proves the instructions; the lines of a tile follow each other, and the shapes were
        // checked.
        unsafe { round_tile(&tile[..n_rows], width, target) }
    }
}

/// # Safety
/// `target` holds as many rows as there are lines, `width` apart and [`WIDTH`] long.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn round_tile(lines: &[[f32; WIDTH]], width: usize, target: &mut [u16]) {
    for (i, line) in lines.iter().enumerate() {
        // SAFETY: a line is two registers, and so is its row as bf16 half of them.
        unsafe {
            let (low, high) = (_mm512_loadu_ps(line.as_ptr()), _mm512_loadu_ps(line.as_ptr().add(16)));
            let rounded = std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low));
            _mm512_storeu_si512(target.as_mut_ptr().add(i * width).cast(), rounded);
        }
    }
}

/// Words of two bf16: `low[j]` and, in the upper half, `high[j]`; 0 beyond their end.
pub(crate) fn interleave(_proof: Bf16Dot, low: &[f32], high: &[f32], words: &mut [u32; WIDTH]) {
    assert!(low.len() == high.len() && low.len() <= WIDTH);
    // SAFETY: `Bf16Dot` proves the instructions; the lengths were checked.
    unsafe { interleave_all(low, high, words) }
}

/// # Safety
/// `low` and `high` have the same length, at most [`WIDTH`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn interleave_all(low: &[f32], high: &[f32], words: &mut [u32; WIDTH]) {
    for first in [0, 16] {
        let mask = (0xffff_u32.unbounded_shr(16 - low.len().saturating_sub(first).min(16) as u32)) as u16;
        // SAFETY: the mask keeps to what is left of both slices; a line of words is two registers.
        unsafe {
            let low = _mm512_maskz_loadu_ps(mask, low.as_ptr().wrapping_add(first));
            let high = _mm512_maskz_loadu_ps(mask, high.as_ptr().wrapping_add(first));
            let [low, high]: [__m256i; 2] = [low, high].map(|x| std::mem::transmute(_mm512_cvtneps_pbh(x)));
            let high = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(high));
            let pairs = _mm512_or_si512(_mm512_cvtepu16_epi32(low), high);
            _mm512_storeu_si512(words.as_mut_ptr().add(first).cast(), pairs);
        }
    }
}

/// The same memory, two bf16 to a word.
pub(crate) fn words(halves: &Buffer<u16>) -> &[u32] {
    // SAFETY: a buffer is aligned to more than a word, and half as many words have no more bytes.
    unsafe { std::slice::from_raw_parts(halves.as_ptr().cast(), halves.len() / 2) }
}

/// Rows of bytes, four at a time, into 32 bits: `vpdpbusd`.
#[derive(Clone, Copy)]
pub(crate) struct ByteFours(pub(crate) Vnni);

impl Tile for ByteFours {
    type Row = u8;
    type Sum = i32;
    const HEIGHT: usize = 12;

    fn multiply(
        self,
        rows: TileRows<'_, u8>,
        lines: &[[u32; WIDTH]],
        next: &[[u32; WIDTH]],
        sums: &mut [[i32; WIDTH]],
    ) {
        prefetch(next);
        let TileRows { n, values: rows, stride } = rows;
        let height = n.next_multiple_of(4);
        check(height, rows, stride, lines, sums);
        // SAFETY: `Vnni` proves the instructions; `check` held the slices to the height.
        unsafe {
            match height {
                4 => byte_fours::<4>(rows, stride, lines, sums),
                8 => byte_fours::<8>(rows, stride, lines, sums),
                _ => byte_fours::<12>(rows, stride, lines, sums),
            }
        }
    }
}

/// # Safety
/// As [`check`] with a height of `H`.
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn byte_fours<const H: usize>(rows: &[u8], stride: usize, lines: &[[u32; WIDTH]], sums: &mut [[i32; WIDTH]]) {
    let mut local = [[_mm512_setzero_si512(); 2]; H];
    let mut row = rows.as_ptr().cast::<i32>();
    for line in lines {
        let line = line.as_ptr().cast::<__m512i>();
        // SAFETY: a line is two registers; word `step` of each of `H` rows is in the slice.
        unsafe {
            let weights = [_mm512_loadu_si512(line), _mm512_loadu_si512(line.add(1))];
            for (i, local) in local.iter_mut().enumerate() {
                let inputs = _mm512_set1_epi32(row.byte_add(i * stride).read_unaligned());
                for (sum, weights) in local.iter_mut().zip(weights) {
                    *sum = _mm512_dpbusd_epi32(*sum, inputs, weights);
                }
            }
            row = row.add(1);
        }
    }
    for (sums, local) in sums.iter_mut().zip(local) {
        for (sums, local) in sums.as_chunks_mut::<16>().0.iter_mut().zip(local) {
            // SAFETY: sixteen words are a register.
            unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), local) };
        }
    }
}

/// Rows of bytes widened to 16 bits, two at a time, into 32 bits: `vpmaddwd`. The instruction on bytes saturates.
#[derive(Clone, Copy)]
pub(crate) struct BytePairs(pub(crate) Avx2);

impl Tile for BytePairs {
    type Row = u8;
    type Sum = i32;
    const HEIGHT: usize = 4;

    fn multiply(
        self,
        rows: TileRows<'_, u8>,
        lines: &[[u32; WIDTH]],
        next: &[[u32; WIDTH]],
        sums: &mut [[i32; WIDTH]],
    ) {
        prefetch(next);
        let TileRows { values: rows, stride, .. } = rows;
        check(Self::HEIGHT, rows, stride, lines, sums);
        // SAFETY: `Avx2` proves the instructions; `check` held the slices to four rows.
        unsafe { byte_pairs(rows, stride, lines, sums) }
    }
}

/// # Safety
/// As [`check`] with a height of 4.
#[target_feature(enable = "avx2")]
unsafe fn byte_pairs(rows: &[u8], stride: usize, lines: &[[u32; WIDTH]], sums: &mut [[i32; WIDTH]]) {
    for half in [0, WIDTH / 2] {
        let mut local = [[_mm256_setzero_si256(); 2]; 4];
        let mut row = rows.as_ptr().cast::<i32>();
        for line in lines {
            let line = line[half..].as_ptr().cast::<__m256i>();
            // SAFETY: half a line is two registers; word `step` of each of four rows is in the slice.
            unsafe {
                // The bytes 0 and 2 of every word, and 1 and 3, as signed 16 bits.
                let weights = [_mm256_loadu_si256(line), _mm256_loadu_si256(line.add(1))];
                let even = weights.map(|weights| _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(weights)));
                let odd = weights.map(|weights| _mm256_srai_epi16::<8>(weights));
                for (i, local) in local.iter_mut().enumerate() {
                    let inputs = _mm256_set1_epi32(row.byte_add(i * stride).read_unaligned());
                    let even_inputs = _mm256_and_si256(inputs, _mm256_set1_epi16(0xff));
                    let odd_inputs = _mm256_srli_epi16::<8>(inputs);
                    for (j, sum) in local.iter_mut().enumerate() {
                        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(even_inputs, even[j]));
                        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(odd_inputs, odd[j]));
                    }
                }
                row = row.add(1);
            }
        }
        for (sums, local) in sums.iter_mut().zip(local) {
            for (sums, local) in sums[half..].as_chunks_mut::<8>().0.iter_mut().zip(local) {
                // SAFETY: eight words are a register.
                unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), local) };
            }
        }
    }
}
