//! Rows turned so that no number of them stands out: every [`BLOCK`] numbers become as many sums of all of them, each
//! with other signs.
//!
//! Source: the fast transform of Hadamard matrices (Yates 1937); before rounding as Ashkboos et al. 2024 (QuaRot). With
//! H of entries 1 and -1, `Hx · Hw = BLOCK x · w`: a product of turned rows is that of the rows.
//! Differs: no factor, so that whole numbers stay whole; blocks as small as the padding of packed rows.
//! Cost: log2 of [`BLOCK`] additions for each number.
//! Bits: every sum is the same tree of additions on every instruction set.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "intrinsics on arrays, where the processor has them"))]

use crate::kernels::cpu::Simd;

/// Numbers that are mixed with each other.
pub(in crate::kernels::cpu) const BLOCK: usize = 64;

/// Turns every block of `values`.
///
/// # Panics
/// If the last block is not whole.
#[inline(always)]
pub(in crate::kernels::cpu) fn rotate(simd: Simd, values: &mut [f32]) {
    let (blocks, rest) = values.as_chunks_mut::<BLOCK>();
    assert!(rest.is_empty(), "{} numbers follow the last whole block", rest.len());
    #[cfg(target_arch = "x86_64")]
    if simd.avx512().is_some() {
        // SAFETY: `Avx512` proves the instructions.
        return unsafe { wide::rotate(blocks) };
    }
    let _ = simd;
    for block in blocks {
        plain(block);
    }
}

/// Sums and differences of numbers 1, 2, 4, … apart.
#[inline(always)]
fn plain(block: &mut [f32; BLOCK]) {
    let mut apart = 1;
    while apart < BLOCK {
        for pair in block.chunks_exact_mut(2 * apart) {
            let (low, high) = pair.split_at_mut(apart);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        apart *= 2;
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    //! A block in four registers: the first four rounds within each, the last two between them.

    use std::arch::x86_64::*;

    use super::BLOCK;

    #[target_feature(enable = "avx512f")]
    pub(super) fn rotate(blocks: &mut [[f32; BLOCK]]) {
        for block in blocks {
            let at = block.as_mut_ptr();
            // SAFETY: a block is four registers.
            let rows = [0, 16, 32, 48].map(|first| unsafe { _mm512_loadu_ps(at.add(first)) });
            let [a, b, c, d] = rows.map(|x| {
                let x = fold(x, _mm512_permute_ps::<0b10_11_00_01>(x), 0b1010_1010_1010_1010);
                let x = fold(x, _mm512_permute_ps::<0b01_00_11_10>(x), 0b1100_1100_1100_1100);
                let x = fold(x, _mm512_shuffle_f32x4::<0b10_11_00_01>(x, x), 0b1111_0000_1111_0000);
                fold(x, _mm512_shuffle_f32x4::<0b01_00_11_10>(x, x), 0b1111_1111_0000_0000)
            });
            let [a, b, c, d] = [_mm512_add_ps(a, b), _mm512_sub_ps(a, b), _mm512_add_ps(c, d), _mm512_sub_ps(c, d)];
            let rows = [_mm512_add_ps(a, c), _mm512_add_ps(b, d), _mm512_sub_ps(a, c), _mm512_sub_ps(b, d)];
            for (i, row) in rows.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_storeu_ps(at.add(i * 16), row) };
            }
        }
    }

    /// The sum with the partner, or, for the second of a pair, the partner less it.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn fold(x: __m512, partner: __m512, second: __mmask16) -> __m512 {
        _mm512_mask_sub_ps(_mm512_add_ps(partner, x), second, partner, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::cpu::noise;

    /// The matrix, entry by entry: the sign is that of the bits that row and column share.
    #[test]
    fn every_set_multiplies_with_the_matrix() {
        for n_blocks in [0, 1, 3, 24] {
            let values = noise(n_blocks as u64, n_blocks * BLOCK);
            let turned = Simd::available().into_iter().map(|simd| {
                let mut turned = values.clone();
                rotate(simd, &mut turned);
                turned
            });
            let turned: Vec<Vec<f32>> = turned.collect();
            for other in &turned[1..] {
                assert!(turned[0].iter().zip(other).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
            for (i, &ours) in turned[0].iter().enumerate() {
                let (block, row) = (&values[i / BLOCK * BLOCK..][..BLOCK], i % BLOCK);
                let sign = |column: usize| if (row & column).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                let expected: f64 = block.iter().enumerate().map(|(j, &x)| sign(j) * f64::from(x)).sum();
                assert!((f64::from(ours) - expected).abs() < 1e-5, "{i}: {ours}, not {expected}");
            }
        }
    }

    #[test]
    fn turned_twice_is_the_row_times_the_block() {
        let numbers: Vec<f32> = (0..2 * BLOCK).map(|i| i as f32 - 50.0).collect();
        for simd in Simd::available() {
            let mut twice = numbers.clone();
            rotate(simd, &mut twice);
            rotate(simd, &mut twice);
            assert!(twice.iter().zip(&numbers).all(|(&twice, x)| twice == BLOCK as f32 * x));
        }
    }
}
