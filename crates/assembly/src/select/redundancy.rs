//! Redundancy: how much of a candidate the chosen chunks already say.
//!
//! Source: arXiv 2601.10681, eqs. 12-13: `overlap(c, B) = |words(c) & words(B)| / |words(c)|`, `B` all chosen chunks
//! together.
//! Differs: by default the overlap is the greatest with any *one* chosen chunk, over content words. The union grows
//! with the budget until it holds every common word, and then rejects text on any subject; one chunk stays as small as
//! it is. `similarity` compares two chunks alone.
//! Range: `[0, 1]`. A chunk that is equal to a chosen one but for white space overlaps by 1 whatever its length; else
//! the pairwise form needs [`MIN_CONTENT_WORDS`], as a heading of three words is contained in something by chance. No
//! words at all: 0.
//! Cost: one pass over the words of a candidate, plus one step per word and chosen chunk that has it.

use super::words::{spaced_once, words};
use crate::question::is_function_word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

pub use super::words::MIN_CONTENT_WORDS;

/// Overlap from which a candidate is redundant: what says nearly the same. The paper's .55 also keeps out what only
/// shares its subject with a chosen chunk, and evidence with it.
pub const DEFAULT_DELTA: f64 = 0.9;

/// The overlap that makes a candidate redundant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// With the one chosen chunk that shares most; means the same at any budget.
    #[default]
    Pairwise,
    /// With all chosen chunks together, as in the paper; rejects more the larger the budget.
    Union,
    /// Nothing is redundant.
    None,
}

/// The words of the chosen chunks.
#[derive(Debug)]
pub(crate) struct Chosen {
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

impl Chosen {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::unrelated_text;

    fn overlap(gate: Gate, chosen: &[&str], text: &str) -> Overlap {
        let mut bubble = Chosen::new(gate);
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
        let text = "吾輩は猫である。名前はまだ無い。";
        assert!(overlap(Gate::Pairwise, &["前置き。吾輩は猫である。名前はまだ無い。後書き"], text).share > 0.9);
        assert!(overlap(Gate::Pairwise, &["国境の長いトンネルを抜けると雪国であった。"], text).share < 0.3);
    }

    /// Share of unrelated passages of ~100 words that delta = .55 rejects while the chosen text grows to 6,400 words.
    fn rejected(gate: Gate, passages: impl IntoIterator<Item = String>) -> (usize, usize) {
        let (mut bubble, mut n_words, mut n, mut n_rejected) = (Chosen::new(gate), 0, 0, 0);
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
