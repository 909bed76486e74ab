//! Similarity: how alike two candidates are, whatever else is chosen.
//!
//! Containment of three-word runs (shingles), each weighed by its idf among the candidates, and the cosine of the
//! vectors. Both look at nothing but the two, and so mean the same at any budget.
//! Range: containment in `[0, 1]`; two texts with fewer shingles than [`MIN_CONTENT_WORDS`] are alike if they are equal
//! but for spacing.
//! Cost: one pass over the words of each candidate that is looked at, and one over a sample to tell how rare shingles
//! are.

use super::words::{FNV_PRIME, MIN_CONTENT_WORDS, hashes, spaced_once};
use crate::candidate::Candidate;
use crate::question::is_function_word;
use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// The likeness of candidates, two by two. Symmetric, and the same at any budget: it looks at nothing but the two.
pub(crate) struct Similarity<'a> {
    candidates: &'a [&'a Candidate],
    cosine: Option<&'a dyn Fn(&str, &str) -> f64>,
    /// Ascending hashes of the content words of each candidate, made when first asked for.
    words: RefCell<HashMap<usize, Rc<[u64]>>>,
    /// Ascending hashes of the runs of [`SHINGLE_WORDS`] words of each candidate.
    shingles: RefCell<HashMap<usize, Rc<[u64]>>>,
    /// Of a sample of the candidates, how many have each shingle, and how many there are; made when first asked for.
    frequencies: OnceCell<(HashMap<u64, u32>, usize)>,
}

/// Shingles that two chunks share, as a share of the shorter one's, below which it does not matter how rare they are.
const FEW_SHARED: f64 = 0.1;

/// Candidates, evenly spread, that tell how rare a shingle is.
const SAMPLE_MAX: usize = 256;

/// Words of a shingle.
const SHINGLE_WORDS: usize = 3;

/// The likeness of two candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Alike {
    /// Share of the shorter one's shingles that the other has, each weighed by its idf among the candidates, in `[0,
    /// 1]`: what stands in every chunk, as letterheads do, makes no two the same, and what tells them apart weighs
    /// most.
    pub(crate) containment: f64,
    /// Cosine of their vectors, where there are any.
    pub(crate) cosine: Option<f64>,
}

impl<'a> Similarity<'a> {
    /// `cosine` of two candidates' vectors by id, where there are vectors.
    pub(crate) fn new(candidates: &'a [&'a Candidate], cosine: Option<&'a dyn Fn(&str, &str) -> f64>) -> Self {
        Self {
            candidates,
            cosine,
            words: RefCell::default(),
            shingles: RefCell::default(),
            frequencies: OnceCell::new(),
        }
    }

    /// Cosine of the vectors, or without vectors the share of the shorter one's content words that the other has.
    pub(crate) fn between(&self, a: usize, b: usize) -> f64 {
        self.cosine_of(a, b).unwrap_or_else(|| {
            let words = |at| self.cached(&self.words, at, |text| hashes(text, |word| !is_function_word(word)));
            contained(&words(a), &words(b))
        })
    }

    /// Shingles and vectors.
    pub(crate) fn alike(&self, a: usize, b: usize) -> Alike {
        let shingles = |at| self.cached(&self.shingles, at, shingles);
        let (of_a, of_b) = (shingles(a), shingles(b));
        let containment = if of_a.len().min(of_b.len()) >= MIN_CONTENT_WORDS {
            match contained(&of_a, &of_b) {
                few if few < FEW_SHARED => few,
                _ => self.weighed(&of_a, &of_b),
            }
        } else {
            f64::from(spaced_once(&self.candidates[a].text) == spaced_once(&self.candidates[b].text))
        };
        Alike { containment, cosine: self.cosine_of(a, b) }
    }

    /// The idf of what two ascending lists of shingles share, as a share of the lighter one's.
    fn weighed(&self, a: &[u64], b: &[u64]) -> f64 {
        let (frequencies, n) = self.frequencies.get_or_init(|| self.frequencies());
        let idf = |shingle: &u64| {
            let df = frequencies.get(shingle).copied().unwrap_or(0);
            ((*n as f64 + 1.0) / (f64::from(df) + 0.5)).ln()
        };
        let mass = |shingles: &mut dyn Iterator<Item = &u64>| shingles.map(idf).sum::<f64>();
        let shared = mass(&mut a.iter().filter(|shingle| b.binary_search(shingle).is_ok()));
        (shared / mass(&mut a.iter()).min(mass(&mut b.iter()))).clamp(0.0, 1.0)
    }

    fn frequencies(&self) -> (HashMap<u64, u32>, usize) {
        let mut frequencies: HashMap<u64, u32> = HashMap::new();
        let sample = (0..self.candidates.len()).step_by(self.candidates.len().div_ceil(SAMPLE_MAX).max(1));
        let n = sample.len();
        for at in sample {
            for &shingle in self.cached(&self.shingles, at, shingles).iter() {
                *frequencies.entry(shingle).or_default() += 1;
            }
        }
        (frequencies, n)
    }

    fn cosine_of(&self, a: usize, b: usize) -> Option<f64> {
        self.cosine.map(|cosine| cosine(&self.candidates[a].id, &self.candidates[b].id))
    }

    fn cached(
        &self,
        cache: &RefCell<HashMap<usize, Rc<[u64]>>>,
        at: usize,
        of: impl Fn(&str) -> Vec<u64>,
    ) -> Rc<[u64]> {
        let mut cache = cache.borrow_mut();
        let entry = cache.entry(at).or_insert_with(|| {
            let mut hashes = of(&self.candidates[at].text);
            hashes.sort_unstable();
            hashes.dedup();
            hashes.into()
        });
        Rc::clone(entry)
    }
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

/// Hashes of every run of [`SHINGLE_WORDS`] words.
fn shingles(text: &str) -> Vec<u64> {
    let hashes = hashes(text, |_| true);
    let joined = |run: &[u64]| run.iter().fold(0_u64, |sum, hash| sum.rotate_left(21).wrapping_mul(FNV_PRIME) ^ hash);
    hashes.windows(SHINGLE_WORDS).map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;

    #[test]
    fn what_stands_in_every_chunk_makes_no_two_the_same() {
        let letterhead =
            "harbour office of the city of elbow bay and its islands please answer within ten days of the date above";
        let letter = |at: usize| format!("{letterhead} berth{at} of captain{at} pays{at} crowns{at} on day{at}");
        let mut chunks: Vec<Candidate> =
            (0..40).map(|at| candidate(&format!("d{at:02}"), 0, &letter(at), 0.5)).collect();
        chunks.push(candidate("z", 0, &(letter(7) + " signed by hand"), 0.5));
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let similarity = Similarity::new(&candidates, None);
        let alike = |a: usize, b: usize| similarity.alike(a, b).containment;
        let plain = contained(
            &similarity.cached(&similarity.shingles, 3, shingles),
            &similarity.cached(&similarity.shingles, 4, shingles),
        );
        assert!(plain > 0.7 && alike(3, 4) < 0.1, "{plain} by number, {} by idf", alike(3, 4));
        assert!(alike(7, 40) > 0.99 && alike(40, 7) == alike(7, 40));
        assert_eq!(alike(5, 5), 1.0);
        let copies: Vec<&Candidate> = vec![candidates[0]; 30];
        assert!(Similarity::new(&copies, None).alike(0, 1).containment > 0.999, "nothing but copies are copies");
    }
}
