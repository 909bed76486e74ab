//! Made-up texts whose words follow Zipf's law.

use crate::Random;

/// Words there are.
pub(super) const N_WORDS: usize = 200_000;

/// Words of a document: the fewest, and how many more at most.
const LENGTHS: [usize; 2] = [20, 41];

/// Words of a query, and the rank from which they are taken: the most frequent ones are asked for by nobody.
const QUERY_WORDS: usize = 4;
const QUERY_RANK_MIN: usize = 50;

/// Texts, the same for the same seed.
pub(super) struct Texts {
    random: Random,
    /// Sums of the words' shares, ascending to 1.
    sums: Vec<f64>,
}

impl Texts {
    pub(super) fn new(seed: u64) -> Self {
        let mut sum = 0.0;
        let mut sums: Vec<f64> = (1..=N_WORDS)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        sums.iter_mut().for_each(|part| *part /= sum);
        Self { random: Random(seed), sums }
    }

    pub(super) fn document(&mut self) -> String {
        let n_words = LENGTHS[0] + self.random.below(LENGTHS[1]);
        self.words(n_words, 0)
    }

    pub(super) fn queries(&mut self, n: usize) -> Vec<String> {
        (0..n).map(|_| self.words(QUERY_WORDS, QUERY_RANK_MIN)).collect()
    }

    fn words(&mut self, n_words: usize, rank_min: usize) -> String {
        let mut words = Vec::with_capacity(n_words);
        while words.len() < n_words {
            let share = self.random.below(1 << 40) as f64 / (1_u64 << 40) as f64;
            let rank = self.sums.partition_point(|sum| *sum < share).min(N_WORDS - 1);
            if rank >= rank_min {
                words.push(word(rank));
            }
        }
        words.join(" ")
    }
}

/// The word of a rank: syllables that count it.
pub(super) fn word(rank: usize) -> String {
    const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
    const VOWELS: &[u8] = b"aeiou";
    let n_syllables = CONSONANTS.len() * VOWELS.len();
    let (mut rest, mut word) = (rank, String::new());
    loop {
        let syllable = rest % n_syllables;
        word.push(char::from(CONSONANTS[syllable / VOWELS.len()]));
        word.push(char::from(VOWELS[syllable % VOWELS.len()]));
        rest /= n_syllables;
        if rest == 0 {
            return word + "x"; // no ending that a stemmer knows
        }
    }
}
