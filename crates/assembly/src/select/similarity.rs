//! Similarity: how alike two candidates are, whatever else is chosen.
//!
//! Containment of three-word runs (shingles), each weighed by how rare its words are in the collection, and the cosine
//! of the vectors. Both look at nothing but the two, and so mean the same at any budget and among any candidates:
//! copies that multiply do not make what they share common.
//! Range: containment in `[0, 1]`; two texts with fewer shingles than [`MIN_CONTENT_WORDS`] are alike if they are equal
//! but for spacing.
//! Cost: one pass over the words of each candidate that is looked at, one look-up in a set of bits for each word of two
//! that are compared, and one in the collection for each word of those that share a tenth of their shingles.

use super::words::{FNV_PRIME, MIN_CONTENT_WORDS, hashes, spaced_once, words};
use crate::candidate::Candidate;
use crate::question::{Reading, is_function_word};
use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

/// The likeness of candidates, two by two. Symmetric, and the same at any budget: it looks at nothing but the two.
pub(crate) struct Similarity<'a> {
    candidates: &'a [&'a Candidate],
    cosine: Option<&'a dyn Fn(&str, &str) -> f64>,
    /// Ascending hashes of the content words of each candidate, made when first asked for.
    words: Vec<OnceCell<Vec<u64>>>,
    /// The runs of [`SHINGLE_WORDS`] words of each candidate, to tell at once that it shares few with another.
    prints: Vec<OnceCell<Box<Print>>>,
    /// Their hashes, ascending.
    shingles: Vec<OnceCell<Vec<u64>>>,
    /// The weights of the shingles of each candidate, in their order.
    weights: Vec<OnceCell<Vec<f64>>>,
    reading: Reading<'a>,
    /// The idf of words in the collection.
    idf: RefCell<HashMap<String, f64>>,
}

/// Some candidates, of which one is compared with all others at once.
pub(crate) struct Among<'s> {
    similarity: &'s Similarity<'s>,
    chosen: &'s [usize],
    /// Numbers of the content words of each; none where vectors are compared.
    words: Vec<Vec<usize>>,
    /// Places of those that have a word, by its number: a part of `places`.
    who_has: Vec<Range<usize>>,
    places: Vec<usize>,
}

impl Among<'_> {
    /// The likeness of the one at a place with those at others: the cosine of the vectors, or without vectors the share
    /// of the shorter one's content words that the other has.
    pub(crate) fn with(&self, at: usize, others: &[usize]) -> Vec<f64> {
        if let Some(cosine) = self.similarity.cosine {
            let id = |at: usize| self.similarity.candidates[self.chosen[at]].id.as_str();
            return others.iter().map(|&other| cosine(id(at), id(other))).collect();
        }
        let mut shared = vec![0_usize; self.chosen.len()];
        for &word in &self.words[at] {
            self.places[self.who_has[word].clone()].iter().for_each(|&other| shared[other] += 1);
        }
        let shorter = |other: usize| self.words[at].len().min(self.words[other].len()).max(1);
        others.iter().map(|&other| shared[other] as f64 / shorter(other) as f64).collect()
    }
}

/// Shingles that two chunks share, as a share of the shorter one's, below which it does not matter how rare they are.
const FEW_SHARED: f64 = 0.1;

/// The weight of a shingle whose words stand everywhere; each adds its idf. A text says something by its common words
/// too, so that one rare word does not make another text of a copy.
const COMMON_WEIGHT: f64 = 1.0;

/// Multiplied by it, the upper bits of a hash are as mixed as all of it.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Words of a shingle.
const SHINGLE_WORDS: usize = 3;

/// A text's shingles as they come, and a set that has all of them and few others.
struct Print {
    /// Their hashes in the order of the text.
    shingles: Vec<u64>,
    /// A bit for each of the values that [`Print::bit`] has.
    bits: [u64; PRINT_BITS / 64],
    /// Bits that are set: no more than there are different shingles.
    n_bits: usize,
}

/// Forty bits for each shingle of a chunk of some hundred words.
const PRINT_BITS: usize = 4_096;

/// The likeness of two candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Alike {
    /// Share of the shorter one's shingles that the other has, each weighed by the idf of its words in the collection,
    /// in `[0, 1]`: what stands in every chunk, as letterheads do, weighs least, and what tells them apart most.
    pub(crate) containment: f64,
    /// Cosine of their vectors, where there are any.
    pub(crate) cosine: Option<f64>,
}

impl<'a> Similarity<'a> {
    /// `cosine` of two candidates' vectors by id, where there are vectors.
    pub(crate) fn new(
        candidates: &'a [&'a Candidate],
        cosine: Option<&'a dyn Fn(&str, &str) -> f64>,
        reading: Reading<'a>,
    ) -> Self {
        let n = candidates.len();
        let (words, shingles, weights) = (vec![OnceCell::new(); n], vec![OnceCell::new(); n], vec![OnceCell::new(); n]);
        let prints = std::iter::repeat_with(OnceCell::new).take(n).collect();
        Self { candidates, cosine, words, prints, shingles, weights, reading, idf: RefCell::default() }
    }

    /// Candidates that are compared with each other.
    pub(crate) fn among<'s>(&'s self, chosen: &'s [usize]) -> Among<'s> {
        if self.cosine.is_some() {
            return Among { similarity: self, chosen, words: Vec::new(), who_has: Vec::new(), places: Vec::new() };
        }
        let of_each = chosen.iter().map(|&candidate| self.words(candidate)).enumerate();
        let mut all: Vec<(u64, usize)> =
            of_each.flat_map(|(at, words)| words.iter().map(move |&word| (word, at))).collect();
        all.sort_unstable();
        let (mut words, mut who_has) = (vec![Vec::new(); chosen.len()], Vec::new());
        for of_word in all.chunk_by(|a, b| a.0 == b.0) {
            of_word.iter().for_each(|&(_, at)| words[at].push(who_has.len()));
            let start = who_has.last().map_or(0, |before: &Range<usize>| before.end);
            who_has.push(start..start + of_word.len());
        }
        let places = all.into_iter().map(|(_, at)| at).collect();
        Among { similarity: self, chosen, words, who_has, places }
    }

    /// Says if the containment of two candidates is `least` or more. Nearly all share so few shingles that their prints
    /// tell.
    pub(crate) fn contain_each_other(&self, a: usize, b: usize, least: f64) -> bool {
        let few = self.print(a).share_at_most(self.print(b));
        let may_be = few.is_none_or(|few| few >= least.min(FEW_SHARED));
        may_be && self.containment(a, b) >= least
    }

    /// Shingles and vectors.
    pub(crate) fn alike(&self, a: usize, b: usize) -> Alike {
        Alike { containment: self.containment(a, b), cosine: self.cosine_of(a, b) }
    }

    fn containment(&self, a: usize, b: usize) -> f64 {
        let (of_a, of_b) = (self.shingles(a), self.shingles(b));
        if of_a.len().min(of_b.len()) >= MIN_CONTENT_WORDS {
            match contained(of_a, of_b) {
                few if few < FEW_SHARED => few,
                _ => shared_weight((of_a, self.weights(a)), (of_b, self.weights(b))),
            }
        } else {
            f64::from(spaced_once(&self.candidates[a].text) == spaced_once(&self.candidates[b].text))
        }
    }

    fn words(&self, at: usize) -> &[u64] {
        let hashes = |text: &str| hashes(text, |word| !is_function_word(word));
        self.words[at].get_or_init(|| ascending(hashes(&self.candidates[at].text)))
    }

    fn shingles(&self, at: usize) -> &[u64] {
        self.shingles[at].get_or_init(|| ascending(self.print(at).shingles.clone()))
    }

    fn print(&self, at: usize) -> &Print {
        self.prints[at].get_or_init(|| Box::new(Print::new(shingles(&self.candidates[at].text))))
    }

    /// The weights of a candidate's shingles, in the order of their hashes: the sum of its words' idf.
    fn weights(&self, at: usize) -> &[f64] {
        self.weights[at].get_or_init(|| {
            let text = &self.candidates[at].text;
            let idfs: Vec<f64> = words(text).map(|word| self.idf(word)).collect();
            let weights = idfs.windows(SHINGLE_WORDS).map(|run| COMMON_WEIGHT + run.iter().sum::<f64>());
            let mut weighed: Vec<(u64, f64)> = shingles(text).into_iter().zip(weights).collect();
            weighed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            weighed.dedup_by_key(|(hash, _)| *hash);
            weighed.into_iter().map(|(_, weight)| weight).collect()
        })
    }

    /// The greatest idf of the terms that a word is analysed to; 0 for a word that is not searched.
    fn idf(&self, word: String) -> f64 {
        if let Some(&known) = self.idf.borrow().get(&word) {
            return known;
        }
        let terms = (self.reading.terms)(&word);
        let idf = terms.iter().map(|term| (self.reading.idf)(term)).fold(0.0, f64::max);
        self.idf.borrow_mut().insert(word, idf);
        idf
    }

    /// The cosine of two candidates' vectors, where there are any.
    pub(crate) fn cosine_of(&self, a: usize, b: usize) -> Option<f64> {
        self.cosine.map(|cosine| cosine(&self.candidates[a].id, &self.candidates[b].id))
    }
}

impl Print {
    fn new(shingles: Vec<u64>) -> Self {
        let mut bits = [0; PRINT_BITS / 64];
        for (word, bit) in shingles.iter().map(Self::bit) {
            bits[word] |= bit;
        }
        let n_bits = bits.iter().map(|bits| bits.count_ones() as usize).sum();
        Self { shingles, bits, n_bits }
    }

    /// The place of a shingle's bit: the number of its word, and the bit in it.
    fn bit(shingle: &u64) -> (usize, u64) {
        let at = (shingle.wrapping_mul(SPREAD) >> 52) as usize; // one of PRINT_BITS
        (at / 64, 1 << (at % 64))
    }

    /// A share of the shorter one's shingles that both have at most; none where one is too short for shares to tell.
    fn share_at_most(&self, other: &Self) -> Option<f64> {
        let fewest = self.n_bits.min(other.n_bits);
        let (short, long) = if self.shingles.len() < other.shingles.len() { (self, other) } else { (other, self) };
        let is_shared = |&(word, bit): &(usize, u64)| long.bits[word] & bit != 0;
        let n_shared = short.shingles.iter().map(Self::bit).filter(is_shared).count();
        (fewest >= MIN_CONTENT_WORDS).then(|| n_shared as f64 / fewest as f64)
    }
}

/// Hashes in ascending order, each once.
fn ascending(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Share of the shorter of two ascending lists that the other has; 0 where one is empty.
fn contained(a: &[u64], b: &[u64]) -> f64 {
    let (mut i, mut j, mut shared) = (0, 0, 0_usize);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            Ordering::Less => i += 1,
            Ordering::Greater => j += 1,
            Ordering::Equal => (i, j, shared) = (i + 1, j + 1, shared + 1),
        }
    }
    shared as f64 / a.len().min(b.len()).max(1) as f64
}

/// The weight of the shingles that two ascending lists share, as a share of the lighter list's.
fn shared_weight(a: (&[u64], &[f64]), b: (&[u64], &[f64])) -> f64 {
    let both = a.0.iter().zip(a.1).filter(|(shingle, _)| b.0.binary_search(shingle).is_ok());
    let shared: f64 = both.map(|(_, weight)| weight).sum();
    (shared / a.1.iter().sum::<f64>().min(b.1.iter().sum())).clamp(0.0, 1.0)
}

/// Hashes of every run of [`SHINGLE_WORDS`] words.
fn shingles(text: &str) -> Vec<u64> {
    let hashes = hashes(text, |_| true);
    let joined = |run: &[u64]| run.iter().fold(0_u64, |sum, hash| sum.rotate_left(21).wrapping_mul(FNV_PRIME) ^ hash);
    hashes.windows(SHINGLE_WORDS).map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{candidate, unrelated_text};
    use proptest::prelude::*;

    /// Words as they stand, and their idf in a collection of these texts.
    fn with_reading<T>(texts: &[&str], then: impl FnOnce(Reading<'_>) -> T) -> T {
        let terms = |text: &str| words(text).collect::<Vec<_>>();
        let idf = |term: &str| {
            let n = texts.len() as f64;
            let df = texts.iter().filter(|text| words(text).any(|word| word == term)).count() as f64;
            (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
        };
        then(Reading { terms: &terms, idf: &idf, sentences: &|text| vec![0..text.len()] })
    }

    #[test]
    fn what_stands_in_every_chunk_weighs_least() {
        let letterhead =
            "harbour office of the city of elbow bay and its islands please answer within ten days of the date above";
        let letter = |at: usize| format!("{letterhead} berth{at} of captain{at} pays{at} crowns{at} on day{at}");
        let mut chunks: Vec<Candidate> =
            (0..40).map(|at| candidate(&format!("d{at:02}"), 0, &letter(at), 0.5)).collect();
        chunks.push(candidate("z", 0, &(letter(7) + " signed by hand"), 0.5));
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
        with_reading(&texts, |reading| {
            let similarity = Similarity::new(&candidates, None, reading);
            let alike = |a: usize, b: usize| similarity.alike(a, b).containment;
            let plain = contained(similarity.shingles(3), similarity.shingles(4));
            assert!(plain > 0.7 && alike(3, 4) < 0.4, "{plain} by number, {} by idf", alike(3, 4));
            assert!(alike(7, 40) > 0.99 && alike(40, 7) == alike(7, 40));
            assert_eq!(alike(5, 5), 1.0);
        });
    }

    proptest! {
        #[test]
        fn prints_tell_what_the_shingles_tell(
            texts in prop::collection::vec((0..60_usize, 0..40_usize, 0..160_usize), 2..6),
            least in prop_oneof![Just(0.01), Just(0.1), Just(0.4), Just(0.8), 0.001..1.0_f64],
        ) {
            // Runs of one long text, with words of their own behind them.
            let text = |(at, &(first, n, own)): (usize, &(usize, usize, usize))| {
                let shared = (first..first + n).map(|n| format!("w{} ", n % 50));
                shared.chain((0..own).map(|n| format!("own{} ", n * (at + 3) % 97))).collect::<String>()
            };
            let chunks: Vec<Candidate> =
                texts.iter().enumerate().map(text).enumerate().map(|(at, text)| candidate("d", at as u32, &text, 0.5)).collect();
            let candidates: Vec<&Candidate> = chunks.iter().collect();
            let all: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
            with_reading(&all, |reading| {
                let similarity = Similarity::new(&candidates, None, reading);
                for (a, b) in (0..chunks.len()).flat_map(|a| (0..chunks.len()).map(move |b| (a, b))) {
                    let slow = similarity.alike(a, b).containment >= least;
                    assert_eq!(similarity.contain_each_other(a, b, least), slow, "{a} {b} {all:?}");
                }
            });
        }
    }

    #[test]
    fn strangers_are_told_apart_by_their_prints_alone() {
        let chunks: Vec<Candidate> = (0..40).map(|at| candidate("d", at as u32, &unrelated_text(at), 0.5)).collect();
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let similarity = Similarity::new(&candidates, None, crate::tests::NO_READING);
        assert!((1..40).all(|at| !similarity.contain_each_other(0, at, 0.4)));
        assert!(similarity.shingles.iter().all(|shingles| shingles.get().is_none()), "prints were of no use");
    }

    #[test]
    fn all_at_once_are_as_alike_as_two_by_two() {
        let text =
            |at: usize| (0..at % 7 + at % 3 * 5).map(|n| format!("berth{} of ", (n * at) % 11)).collect::<String>();
        let chunks: Vec<Candidate> = (0..40).map(|at| candidate("d", at as u32, &text(at), 0.5)).collect();
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let similarity = Similarity::new(&candidates, None, crate::tests::NO_READING);
        let chosen: Vec<usize> = (0..40).filter(|at| at % 4 != 1).rev().collect();
        let slow = |at: usize| ascending(hashes(&chunks[at].text, |word| !is_function_word(word)));
        let among = similarity.among(&chosen);
        for (at, &a) in chosen.iter().enumerate() {
            let expected: Vec<f64> = chosen.iter().map(|&b| contained(&slow(a), &slow(b))).collect();
            assert_eq!(among.with(at, &(0..chosen.len()).collect::<Vec<_>>()), expected, "{a}");
        }
    }

    #[test]
    fn copies_that_differ_in_one_number_are_the_same_however_many_there_are() {
        let copy = |at: usize| {
            format!(
                "the harbour office of elbow bay lets its berths by the day from spring to autumn and asks captains \
                 to moor at the quay before noon with all papers ready and fees paid in crowns at berth number {at} \
                 where a clerk signs the book and hands out the key of the water house to every crew that stays"
            )
        };
        for n in [2, 5, 20, 60] {
            let mut chunks: Vec<Candidate> =
                (0..n).map(|at| candidate(&format!("d{at:02}"), 0, &copy(at + 100), 0.5)).collect();
            chunks.push(candidate("z", 0, "bread is flour water salt and time and nothing else goes into it", 0.5));
            let candidates: Vec<&Candidate> = chunks.iter().collect();
            let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
            with_reading(&texts, |reading| {
                let alike = Similarity::new(&candidates, None, reading).alike(0, 1).containment;
                assert!(alike >= 0.8, "{alike} among {n} copies");
            });
        }
    }
}
