//! Rows become columns: words of four bytes, moved and never changed.
//!
//! Cost: 64 shuffles per 16 x 16 words with AVX-512, 24 per 8 x 8 with AVX2; elsewhere one store per word.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "reads and writes registers at checked places of slices")
)]

use super::aligned::Number;
use super::simd::Simd;

/// A number of four bytes.
pub(super) trait Word: Number {}
impl Word for f32 {}
impl Word for u32 {}

/// `panel[k * width + j] = rows[j * stride + k]` for j below `n` and k below `depth`; `n <= width`. What the panel
/// holds between `n` and the next multiple of 16 is left open.
pub(super) fn transpose<T: Word>(
    simd: Simd,
    rows: &[T],
    stride: usize,
    [n, depth]: [usize; 2],
    panel: &mut [T],
    width: usize,
) {
    assert!(
        n >= 1 && n <= width && depth >= 1 && rows.len() >= (n - 1) * stride + depth && panel.len() >= depth * width
    );
    #[cfg(target_arch = "x86_64")]
    {
        let (from, to) = (rows.as_ptr().cast(), panel.as_mut_ptr().cast());
        if simd.avx512().is_some() && width.is_multiple_of(16) {
            // SAFETY: the assertion above holds both slices to the shape; `T` has four bytes; the processor has
            // AVX-512.
            return unsafe { avx512::transpose(from, stride, [n, depth], to, width) };
        }
        if simd.avx2().is_some() {
            // SAFETY: as above, with AVX2.
            let (n_done, depth_done) = unsafe { avx2::transpose(from, stride, [n, depth], to, width) };
            plain(rows, stride, [n_done..n, 0..depth], panel, width);
            return plain(rows, stride, [0..n_done, depth_done..depth], panel, width);
        }
    }
    let _ = simd;
    plain(rows, stride, [0..n, 0..depth], panel, width);
}

fn plain<T: Word>(rows: &[T], stride: usize, [n, depth]: [std::ops::Range<usize>; 2], panel: &mut [T], width: usize) {
    for k in depth {
        let line = &mut panel[k * width..][..width];
        for j in n.clone() {
            line[j] = rows[j * stride + k];
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    /// # Safety
    /// `from` is readable for `depth` words at each of `n` rows, `to` writable for `depth * width` words, `width` is a
    /// multiple of 16 that is no less than `n`, and neither `n` nor `depth` is 0.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn transpose(
        from: *const f32,
        stride: usize,
        [n, depth]: [usize; 2],
        to: *mut f32,
        width: usize,
    ) {
        for j in (0..n).step_by(16) {
            for k in (0..depth).step_by(16) {
                let n_words = (depth - k).min(16);
                let mask = (0xffff_u32 >> (16 - n_words)) as u16;
                let mut block = [_mm512_setzero_ps(); 16];
                for (i, row) in block.iter_mut().enumerate() {
                    // SAFETY: a row below `n`, the last one again where there are fewer; words below `depth` by the
                    // mask.
                    *row = unsafe { _mm512_maskz_loadu_ps(mask, from.add((j + i).min(n - 1) * stride + k)) };
                }
                for (i, column) in transposed(block).into_iter().enumerate().take(n_words) {
                    // SAFETY: line `k + i < depth`, words `j..j + 16` of `width`, which is a multiple of 16 above `j`.
                    unsafe { _mm512_storeu_ps(to.add((k + i) * width + j), column) };
                }
            }
        }
    }

    #[target_feature(enable = "avx512f")]
    fn transposed(rows: [__m512; 16]) -> [__m512; 16] {
        let mut pairs = rows;
        for i in (0..16).step_by(2) {
            pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
        }
        let mut fours = pairs; // fours[4 a + c]: in lane q, column 4 q + c of rows 4 a to 4 a + 3
        for a in (0..16).step_by(4) {
            for c in 0..2 {
                let low = _mm512_castps_pd(pairs[a + c]);
                let high = _mm512_castps_pd(pairs[a + c + 2]);
                fours[a + 2 * c] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
                fours[a + 2 * c + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
            }
        }
        let mut columns = fours;
        for c in 0..4 {
            let (a, b, d, e) = (fours[c], fours[4 + c], fours[8 + c], fours[12 + c]);
            let (low, high) = (_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0x44>(d, e));
            columns[c] = _mm512_shuffle_f32x4::<0x88>(low, high);
            columns[4 + c] = _mm512_shuffle_f32x4::<0xdd>(low, high);
            let (low, high) = (_mm512_shuffle_f32x4::<0xee>(a, b), _mm512_shuffle_f32x4::<0xee>(d, e));
            columns[8 + c] = _mm512_shuffle_f32x4::<0x88>(low, high);
            columns[12 + c] = _mm512_shuffle_f32x4::<0xdd>(low, high);
        }
        columns
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Transposes the full blocks of 8 x 8 and says how many rows and words of each they were.
    ///
    /// # Safety
    /// `from` is readable for `depth` words at each of `n` rows, `to` writable for `depth * width` words, `width >= n`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn transpose(
        from: *const f32,
        stride: usize,
        [n, depth]: [usize; 2],
        to: *mut f32,
        width: usize,
    ) -> (usize, usize) {
        let (n, depth) = (n / 8 * 8, depth / 8 * 8);
        for j in (0..n).step_by(8) {
            for k in (0..depth).step_by(8) {
                let mut block = [_mm256_setzero_ps(); 8];
                for (i, row) in block.iter_mut().enumerate() {
                    // SAFETY: row `j + i < n`, words `k..k + 8` of `depth`.
                    *row = unsafe { _mm256_loadu_ps(from.add((j + i) * stride + k)) };
                }
                for (i, column) in transposed(block).into_iter().enumerate() {
                    // SAFETY: line `k + i < depth`, words `j..j + 8` of `n <= width`.
                    unsafe { _mm256_storeu_ps(to.add((k + i) * width + j), column) };
                }
            }
        }
        (n, depth)
    }

    #[target_feature(enable = "avx2")]
    fn transposed(rows: [__m256; 8]) -> [__m256; 8] {
        let mut pairs = rows;
        for i in (0..8).step_by(2) {
            pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
            pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
        }
        let mut columns = rows;
        for c in 0..2 {
            let (low, high) = (_mm256_castps_pd(pairs[c]), _mm256_castps_pd(pairs[c + 2]));
            let (low2, high2) = (_mm256_castps_pd(pairs[4 + c]), _mm256_castps_pd(pairs[6 + c]));
            let first = [_mm256_unpacklo_pd(low, high), _mm256_unpackhi_pd(low, high)].map(|x| _mm256_castpd_ps(x));
            let second =
                [_mm256_unpacklo_pd(low2, high2), _mm256_unpackhi_pd(low2, high2)].map(|x| _mm256_castpd_ps(x));
            for i in 0..2 {
                columns[2 * c + i] = _mm256_permute2f128_ps::<0x20>(first[i], second[i]);
                columns[4 + 2 * c + i] = _mm256_permute2f128_ps::<0x31>(first[i], second[i]);
            }
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns_on_every_set() {
        for (n, depth, width, stride) in
            [(1, 1, 16, 1), (16, 16, 16, 16), (8, 8, 16, 9), (15, 17, 16, 20), (32, 40, 32, 40), (19, 100, 32, 128)]
        {
            let rows: Vec<u32> = (0..n * stride).map(|i| i as u32).collect();
            for simd in Simd::available() {
                let mut panel = vec![u32::MAX; depth * width];
                transpose(simd, &rows, stride, [n, depth], &mut panel, width);
                for (k, line) in panel.chunks_exact(width).enumerate() {
                    let expected: Vec<u32> = (0..n).map(|j| rows[j * stride + k]).collect();
                    assert_eq!(line[..n], expected, "{simd:?}, {n} x {depth}");
                }
            }
        }
    }
}
