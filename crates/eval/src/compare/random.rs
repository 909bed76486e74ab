//! Random numbers for resampling: fast, small, and the same everywhere.
//!
//! Source: xoshiro256++ 1.0 and splitmix64, Blackman and Vigna 2019, <https://prng.di.unimi.it>; the reduction to a
//! range is Lemire 2019 without its rejection step, whose bias is below n / 2^64.

/// The state of the generator.
pub(crate) struct Xoshiro([u64; 4]);

impl Xoshiro {
    /// Spreads a seed over the state.
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_give_the_numbers_of_their_authors() {
        // splitmix64 from 1234567, as in the reference code's output.
        assert_eq!(Xoshiro::new(1_234_567).0[..2], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
        let mut random = Xoshiro([1, 2, 3, 4]);
        let first: [u64; 4] = std::array::from_fn(|_| random.next());
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }
}
