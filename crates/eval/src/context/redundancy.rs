//! Redundancy: how much of the delivered text is said twice.
//!
//! Source: overlap with what stands before, arXiv 2601.10681, eq. 12: `|words(x) & words(B)| / |words(x)|`, `B` all
//! earlier pieces together, here its mean over the pieces from the second on. The cosine is the mean over unordered
//! pairs of chunks.
//! Differs: the pairwise form is over content words and against the *one* piece that has most of them. The union grows
//! with the context until it holds every common word and depends on the order; the pairwise form does neither.
//! Range: `[0, 1]`, fewer than two pieces 0, a piece without words 0; the cosine `[-1, 1]`.
//! Cost: one step for each word and piece that has it; the cosine is linear in the vectors, not in the pairs.

use std::collections::{BTreeMap, BTreeSet};

/// Mean over pieces of the largest share of their distinct content words that any one other piece has.
pub fn pairwise(pieces: &[&str]) -> f64 {
    if pieces.len() < 2 {
        return 0.0;
    }
    let words: Vec<BTreeSet<String>> =
        pieces.iter().map(|text| words(text).filter(|word| !is_function_word(word)).collect()).collect();
    let mut pieces_with: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (piece, words) in words.iter().enumerate() {
        words.iter().for_each(|word| pieces_with.entry(word).or_default().push(piece));
    }
    let most_shared = |(piece, words): (usize, &BTreeSet<String>)| {
        let mut n_shared = vec![0_usize; pieces.len()];
        words.iter().flat_map(|word| &pieces_with[word.as_str()]).for_each(|other| n_shared[*other] += 1);
        n_shared[piece] = 0;
        n_shared.into_iter().max().unwrap_or(0) as f64 / words.len().max(1) as f64
    };
    words.iter().enumerate().map(most_shared).sum::<f64>() / pieces.len() as f64
}

/// Mean, over the pieces from the second on, of the share of their distinct words that the earlier pieces together
/// have.
pub fn overlap_union(pieces: &[&str]) -> f64 {
    let mut earlier: BTreeSet<String> = BTreeSet::new();
    let mut sum = 0.0;
    for text in pieces {
        let words: BTreeSet<String> = words(text).collect();
        sum += words.intersection(&earlier).count() as f64 / words.len().max(1) as f64;
        earlier.extend(words);
    }
    sum / pieces.len().saturating_sub(1).max(1) as f64
}

/// Mean cosine of unit vectors `[n, dim]` over the `n (n - 1) / 2` unordered pairs; none for fewer than two vectors.
///
/// The sum over pairs is `(|sum v|^2 - sum |v|^2) / 2`.
///
/// # Panics
/// Vectors of different lengths.
pub fn mean_pairwise_cosine(vectors: &[&[f32]]) -> Option<f64> {
    let [first, _, ..] = vectors else { return None };
    let mut sum = vec![0.0_f64; first.len()];
    let mut squares = 0.0;
    for vector in vectors {
        assert_eq!(vector.len(), sum.len(), "vectors of one context have one dimension");
        for (sum, value) in sum.iter_mut().zip(*vector) {
            *sum += f64::from(*value);
            squares += f64::from(*value) * f64::from(*value);
        }
    }
    let n = vectors.len() as f64;
    Some((sum.iter().map(|value| value * value).sum::<f64>() - squares) / (n * (n - 1.0)))
}

/// Words in lower case: runs of letters and digits, and pairs of neighbours where a script writes no spaces.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
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

/// English words that carry grammar, not content; other languages keep theirs, and their overlap is a little larger.
fn is_function_word(word: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairwise_redundancy_is_the_largest_share_in_any_one_other_piece() {
        // Content words: {red nuts}, {red bolts nuts}, {red gear}. Shares: 2/2 with the second, 2/3 with the first, 1/2
        // with either.
        let pieces = ["The red nuts.", "red bolts and NUTS", "a red gear"];
        assert_eq!(pairwise(&pieces), (2.0 / 2.0 + 2.0 / 3.0 + 1.0 / 2.0) / 3.0);
    }

    #[test]
    fn overlap_is_with_all_earlier_pieces_and_function_words_count() {
        // Second: {and bolts}, none before. Third: {the bolts nuts}, all before.
        assert_eq!(overlap_union(&["the nuts", "and bolts", "the bolts, nuts"]), (0.0 + 3.0 / 3.0) / 2.0);
    }

    #[test]
    fn fewer_than_two_pieces_and_pieces_without_words_are_not_redundant() {
        for pieces in [&[][..], &["nuts nuts"], &["...", "!"]] {
            assert_eq!((pairwise(pieces), overlap_union(pieces)), (0.0, 0.0));
        }
        assert_eq!(mean_pairwise_cosine(&[&[1.0, 0.0]]), None);
    }

    #[test]
    fn equal_pieces_are_wholly_redundant() {
        assert_eq!((pairwise(&["nuts, bolts"; 3]), overlap_union(&["nuts, bolts"; 3])), (1.0, 1.0));
        assert_eq!((pairwise(&["坚果螺栓"; 2]), overlap_union(&["坚果螺栓"; 2])), (1.0, 1.0));
    }

    #[test]
    fn mean_cosine_is_over_unordered_pairs() {
        // Cosines: 0.6 (first, second), 0 (first, third), 0.8 (second, third).
        let cosine = mean_pairwise_cosine(&[&[1.0, 0.0], &[0.6, 0.8], &[0.0, 1.0]]).unwrap();
        assert!((cosine - (0.6 + 0.0 + 0.8) / 3.0).abs() < 1e-7, "{cosine}");
    }

    #[test]
    fn function_words_are_sorted() {
        assert!(FUNCTION_WORDS.is_sorted());
    }

    fn texts() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("([a-e] ){0,6}(the )?", 2..6)
    }

    proptest! {
        #[test]
        fn shares_are_those_of_naive_sets(texts in texts()) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let all: Vec<BTreeSet<String>> = texts.iter().map(|text| words(text).collect()).collect();
            let content: Vec<BTreeSet<String>> =
                all.iter().map(|set| set.iter().filter(|word| !is_function_word(word)).cloned().collect()).collect();
            let share = |of: &BTreeSet<String>, with: &BTreeSet<String>| {
                of.iter().filter(|word| with.contains(*word)).count() as f64 / of.len().max(1) as f64
            };
            let n = texts.len();
            let best = |i: usize| (0..n).filter(|j| *j != i).map(|j| share(&content[i], &content[j])).fold(0.0, f64::max);
            prop_assert_eq!(pairwise(&texts), (0..n).map(best).sum::<f64>() / n as f64);
            let earlier = |i: usize| all[..i].iter().flatten().cloned().collect::<BTreeSet<String>>();
            let union: f64 = (1..n).map(|i| share(&all[i], &earlier(i))).sum();
            prop_assert_eq!(overlap_union(&texts), union / (n - 1) as f64);
        }

        #[test]
        fn pairwise_redundancy_does_not_depend_on_the_order(texts in texts()) {
            let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let forward = pairwise(&texts);
            texts.reverse();
            prop_assert!((forward - pairwise(&texts)).abs() < 1e-12);
        }

        #[test]
        fn mean_cosine_is_the_mean_of_all_pairs(rows in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, 5), 2..12)) {
            let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let pairs: Vec<f64> = (0..rows.len()).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| dot(rows[i], rows[j])).collect();
            let naive = pairs.iter().sum::<f64>() / pairs.len() as f64;
            prop_assert!((mean_pairwise_cosine(&rows).unwrap() - naive).abs() < 1e-12);
        }
    }
}
