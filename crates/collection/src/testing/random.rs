//! Seeded choices: the same seed, the same run.

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The choices of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// All of these, none, the first few, or any of them; in their order.
    pub fn part_of<'a, T>(&mut self, items: &'a [T]) -> Vec<&'a T> {
        match self.below(4) {
            0 => items.iter().collect(),
            1 => Vec::new(),
            2 => items[..self.below(items.len() + 1)].iter().collect(),
            _ => items.iter().filter(|_| self.below(2) == 0).collect(),
        }
    }
}
