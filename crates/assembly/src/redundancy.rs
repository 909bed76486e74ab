//! Redundancy: how much of a candidate the chosen chunks already say.
//!
//! Source: arXiv 2601.10681, eqs. 12-13: `overlap(c, B) = |words(c) & words(B)| / |words(c)|`, `B` all chosen chunks together.
//! Differs: by default the overlap is the greatest with any *one* chosen chunk, over content words. The union grows with the
//! budget until it holds every common word, and then rejects text on any subject; one chunk stays as small as it is.
//! [`Similarity`] compares two chunks alone, by idf-weighted containment of shingles and by cosine, and so means the same at any budget.
//! Range: `[0, 1]`. A chunk that is equal to a chosen one but for white space overlaps by 1 whatever its length; else the pairwise
//! form needs [`MIN_CONTENT_WORDS`], as a heading of three words is contained in something by chance. No words at all: 0.
//! Cost: one pass over the words of a candidate, plus one step per word and chosen chunk that has it.

use crate::candidate::Candidate;
use crate::policy::Gate;
use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// Distinct content words a chunk must have for its pairwise overlap to mean anything.
pub const MIN_CONTENT_WORDS: usize = 8;

/// What the chosen chunks say.
#[derive(Debug)]
pub(crate) struct Bubble {
    gate: Gate,
    word_ids: HashMap<String, u32>,
    /// Per word the chosen chunks that have it, in the order in which they were chosen.
    chosen_with: Vec<Vec<u32>>,
    /// Chosen chunks by their text without its spacing.
    texts: HashMap<String, u32>,
    members: Vec<usize>,
}

/// The overlap of a candidate and the chosen chunk that has most of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Overlap {
    pub(crate) share: f64,
    pub(crate) partner: Option<usize>,
}

impl Bubble {
    pub(crate) fn new(gate: Gate) -> Self {
        Self { gate, word_ids: HashMap::new(), chosen_with: Vec::new(), texts: HashMap::new(), members: Vec::new() }
    }

    /// Overlap of `text` with what is chosen.
    pub(crate) fn overlap(&mut self, text: &str) -> Overlap {
        if self.gate == Gate::None || self.members.is_empty() {
            return Overlap { share: 0.0, partner: None };
        }
        if let Some(&equal) = self.texts.get(&spaced_once(text)) {
            return Overlap { share: 1.0, partner: Some(self.members[equal as usize]) };
        }
        let ids = self.ids(text);
        if ids.is_empty() || (self.gate == Gate::Pairwise && ids.len() < MIN_CONTENT_WORDS) {
            return Overlap { share: 0.0, partner: None };
        }
        let mut shared = vec![0_u32; self.members.len()];
        let mut covered = 0_u32;
        for &id in &ids {
            covered += u32::from(!self.chosen_with[id as usize].is_empty());
            for &member in &self.chosen_with[id as usize] {
                shared[member as usize] += 1;
            }
        }
        let (nearest, most) =
            shared.iter().enumerate().fold((0, 0), |best, (at, &n)| if n > best.1 { (at, n) } else { best });
        let overlap = if self.gate == Gate::Union { covered } else { most };
        Overlap { share: f64::from(overlap) / ids.len() as f64, partner: (most > 0).then(|| self.members[nearest]) }
    }

    /// Adds a chosen chunk.
    pub(crate) fn add(&mut self, candidate: usize, text: &str) {
        if self.gate == Gate::None {
            return;
        }
        let member = self.members.len() as u32;
        self.members.push(candidate);
        self.texts.entry(spaced_once(text)).or_insert(member);
        for id in self.ids(text) {
            self.chosen_with[id as usize].push(member);
        }
    }

    /// The distinct words the gate compares, as ids.
    fn ids(&mut self, text: &str) -> Vec<u32> {
        let gate = self.gate;
        let mut ids: Vec<u32> = words(text)
            .filter(|word| gate == Gate::Union || !is_function_word(word))
            .map(|word| self.id(word))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn id(&mut self, word: String) -> u32 {
        let next = self.word_ids.len() as u32;
        let id = *self.word_ids.entry(word).or_insert(next);
        if id == next {
            self.chosen_with.push(Vec::new());
        }
        id
    }
}

/// How alike candidates are, two by two. Symmetric, and the same at any budget: it looks at nothing but the two.
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

/// What two candidates share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Alike {
    /// Share of the shorter one's shingles that the other has, each weighed by its idf among the candidates, in `[0, 1]`: what stands in
    /// every chunk, as letterheads do, makes no two the same, and what tells them apart weighs most.
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

const FNV_PRIME: u64 = 0x100_0000_01b3;

/// FNV-1a, the same on every machine.
fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// Hashes of the words of a text, those that are kept.
fn hashes(text: &str, keep: impl Fn(&str) -> bool) -> Vec<u64> {
    if text.is_ascii() {
        let lower = text.to_ascii_lowercase(); // one allocation for all words
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        return words.filter(|word| keep(word)).map(hash).collect();
    }
    words(text).filter(|word| keep(word)).map(|word| hash(&word)).collect()
}

/// Words of a text in lower case: runs of letters and digits, and pairs of neighbours where a script writes no spaces.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()).flat_map(|run| {
        let run = run.to_lowercase();
        if !run.chars().any(writes_no_spaces) {
            return vec![run];
        }
        let letters: Vec<char> = run.chars().collect();
        letters.windows(2.min(letters.len())).map(|pair| pair.iter().collect()).collect()
    })
}

/// Thai to Khmer, Chinese and Japanese.
fn writes_no_spaces(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// English words that carry grammar, not content. Other languages keep theirs, which makes the gate a little stricter there.
pub(crate) fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.binary_search(&word).is_ok()
}

const FUNCTION_WORDS: [&str; 104] = [
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before",
    "being", "both", "but", "by", "can", "could", "did", "do", "does", "each", "for", "from", "had", "has", "have",
    "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "may", "me", "more",
    "most", "must", "my", "no", "not", "of", "on", "only", "or", "other", "our", "out", "over", "s", "same", "she",
    "should", "so", "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "through", "to", "under", "up", "upon", "us", "very", "was", "we", "were", "what", "when",
    "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "within", "without", "would", "you",
];

/// The text with every run of white space as one space.
fn spaced_once(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{candidate, unrelated_text};

    fn overlap(gate: Gate, chosen: &[&str], text: &str) -> Overlap {
        let mut bubble = Bubble::new(gate);
        for (at, chosen) in chosen.iter().enumerate() {
            bubble.add(at, chosen);
        }
        bubble.overlap(text)
    }

    #[test]
    fn the_papers_overlap_counts_every_word_of_the_union() {
        let chosen = ["the red house", "a blue car"];
        assert_eq!(overlap(Gate::Union, &chosen, "the red car, today"), Overlap { share: 0.75, partner: Some(0) });
        assert_eq!(overlap(Gate::Union, &chosen, "nothing shared"), Overlap { share: 0.0, partner: None });
    }

    #[test]
    fn the_pairwise_overlap_is_the_greatest_with_one_chunk_over_content_words() {
        let text = "one two three four five six seven eight the of";
        assert_eq!(
            overlap(Gate::Pairwise, &["One two the of.", "five Six SEVEN", "four"], text),
            Overlap { share: 0.375, partner: Some(1) }
        );
        assert_eq!(overlap(Gate::None, &[text], text), Overlap { share: 0.0, partner: None });
    }

    #[test]
    fn no_words_and_few_words_do_not_trip_by_chance() {
        let long = "see also one two three four five six seven eight nine";
        for gate in [Gate::Pairwise, Gate::Union] {
            assert_eq!(overlap(gate, &[long], "--- *** ---").share, 0.0);
            assert_eq!(overlap(gate, &[], "see also").share, 0.0);
            assert_eq!(overlap(gate, &["--- ***"], "---\n***").share, 1.0, "equal text is redundant, words or not");
        }
        assert_eq!(overlap(Gate::Pairwise, &[long], "see also").share, 0.0);
        assert_eq!(
            overlap(Gate::Pairwise, &[long, "see also"], "see  also\n"),
            Overlap { share: 1.0, partner: Some(1) }
        );
        assert_eq!(overlap(Gate::Union, &[long], "see also").share, 1.0, "the paper's form has no minimum");
    }

    #[test]
    fn scripts_without_spaces_are_compared_by_pairs_of_letters() {
        assert_eq!(words("東京都").collect::<Vec<_>>(), ["東京", "京都"]);
        assert_eq!(words("Éa 1x都").collect::<Vec<_>>(), ["éa", "1x", "x都"]);
        let text = "吾輩は猫である。名前はまだ無い。";
        assert!(overlap(Gate::Pairwise, &["前置き。吾輩は猫である。名前はまだ無い。後書き"], text).share > 0.9);
        assert!(overlap(Gate::Pairwise, &["国境の長いトンネルを抜けると雪国であった。"], text).share < 0.3);
    }

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

    #[test]
    fn letters_of_ascii_and_others_are_hashed_alike() {
        let ascii = "The Harbour, of 1952 -- it's  shut_down\n(again).";
        let slow: Vec<u64> = words(ascii).map(|word| hash(&word)).collect();
        assert_eq!(hashes(ascii, |_| true), slow);
        let beyond = format!("{ascii} é");
        assert_eq!(hashes(&beyond, |word| word != "é"), slow);
    }

    #[test]
    fn function_words_are_sorted_for_the_search() {
        assert!(FUNCTION_WORDS.is_sorted());
    }

    /// Share of unrelated passages of ~100 words that delta = .55 rejects while the chosen text grows to 6,400 words.
    fn rejected(gate: Gate, passages: impl IntoIterator<Item = String>) -> (usize, usize) {
        let (mut bubble, mut n_words, mut n, mut n_rejected) = (Bubble::new(gate), 0, 0, 0);
        for (at, passage) in passages.into_iter().enumerate() {
            if n_words < 6_400 {
                bubble.add(at, &passage);
                n_words += passage.split_whitespace().count();
            } else {
                n += 1;
                n_rejected += usize::from(bubble.overlap(&passage).share >= 0.55);
            }
        }
        (n, n_rejected)
    }

    #[test]
    fn unrelated_text_is_not_redundant_at_6400_words() {
        let (n, pairwise) = rejected(Gate::Pairwise, (0..1_000).map(unrelated_text));
        let (_, union) = rejected(Gate::Union, (0..1_000).map(unrelated_text));
        assert!(n > 900 && pairwise * 20 < n, "pairwise rejects {pairwise} of {n}");
        assert!(
            union * 2 > n,
            "the text is as hard as the paper's gate finds Wikipedia: the union rejects {union} of {n}"
        );
    }

    #[test]
    fn unrelated_paragraphs_of_wikipedia_are_not_redundant_at_6400_words() {
        let Ok(folder) = std::env::var("CENTO_DATA") else { return println!("skipped: CENTO_DATA is not set") };
        let Ok(corpus) = std::fs::read_to_string(std::path::Path::new(&folder).join("wiki2_101/corpus.jsonl")) else {
            return println!("skipped: no wiki2_101 in CENTO_DATA");
        };
        let paragraph =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["text"].as_str().map(str::to_owned);
        let paragraphs: Vec<String> = corpus.lines().filter_map(paragraph).collect();
        // Neighbours in the file were gathered for the same question: a stride puts strangers side by side.
        let strangers = || (0..paragraphs.len()).map(|at| paragraphs[at * 2_003 % paragraphs.len()].clone());
        let (n, pairwise) = rejected(Gate::Pairwise, strangers());
        let (_, union) = rejected(Gate::Union, strangers());
        println!("of {n} paragraphs, pairwise rejects {pairwise}, the union {union}");
        assert!(n > 5_000 && pairwise * 20 < n, "pairwise rejects {pairwise} of {n}");
        assert!(union > pairwise * 5, "the union rejects {union}");
    }
}
