//! Bridges: a document that is named in likely text is likely too, and so is one whose text names a likely document.
//!
//! Answers that take two steps are in two documents, of which the question names one and the first names the second. Where the title of
//! one candidate's document stands in the text of another, the less likely of the two is lifted to the geometric mean of both.
//!
//! Source: ours, after the bridge entities of multi-hop questions (HotpotQA, arXiv 1809.09600) and the gaps of SEAL-RAG (arXiv
//! 2512.10787), without a second search.
//! Cost: [`PEAKS`] times [`REACH`] look-ups of a title in a text.

use crate::candidate::Candidate;
use crate::fuse::best_first;

/// The likeliest candidates that a bridge may start from.
const PEAKS: usize = 30;

/// The likeliest candidates that a bridge may lead to.
const REACH: usize = 150;

/// Shorter titles stand in any text.
const TITLE_LETTERS_MIN: usize = 4;

/// What a bridge did to a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bridge {
    /// The candidate it comes from.
    pub(crate) from: usize,
    /// Likelihood before.
    pub(crate) before: f64,
}

/// Lifts `likelihoods` (by candidate) over bridges; what was lifted, by candidate.
pub(crate) fn lift(candidates: &[&Candidate], likelihoods: &mut [f64]) -> Vec<Option<Bridge>> {
    let mut bridges = vec![None; candidates.len()];
    let mut order: Vec<usize> = (0..candidates.len()).filter(|&at| likelihoods[at] > 0.0).collect();
    order.sort_by(|&a, &b| best_first((likelihoods[a], &candidates[a].id), (likelihoods[b], &candidates[b].id)));
    order.truncate(REACH);
    let texts: Vec<String> = order.iter().map(|&at| spaced_words(&candidates[at].text)).collect();
    let titles: Vec<Option<String>> = order.iter().map(|&at| title(candidates[at])).collect();
    let names = |text: usize, title: usize| titles[title].as_ref().is_some_and(|title| texts[text].contains(title));
    let before = likelihoods.to_vec();
    for (rank, &from) in order.iter().enumerate().take(PEAKS) {
        for (other, &to) in order.iter().enumerate() {
            let lifted = (before[from] * before[to]).sqrt();
            let is_other = candidates[from].document != candidates[to].document;
            if is_other && lifted > likelihoods[to] && (names(rank, other) || names(other, rank)) {
                likelihoods[to] = lifted;
                bridges[to] = Some(Bridge { from, before: before[to] });
            }
        }
    }
    bridges
}

/// The title as [`spaced_words`] has texts, without a last part in brackets; none if it is too short to mean anything.
fn title(candidate: &Candidate) -> Option<String> {
    let title = candidate.title.trim();
    let title = title.strip_suffix(')').and_then(|open| open.rsplit_once('(')).map_or(title, |(before, _)| before);
    let words = spaced_words(title);
    (words.chars().filter(|c| c.is_alphanumeric()).count() >= TITLE_LETTERS_MIN).then_some(words)
}

/// Words in lower case, one space before and behind each.
fn spaced_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(' ');
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        out.push_str(&word.to_lowercase());
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;

    fn named(document: &str, title: &str, text: &str) -> Candidate {
        Candidate { title: title.into(), ..candidate(document, 0, text, 0.0) }
    }

    #[track_caller]
    fn check(chunks: &[Candidate], likelihoods: &[f64], expected: &[f64]) {
        let candidates: Vec<&Candidate> = chunks.iter().collect();
        let mut lifted = likelihoods.to_vec();
        lift(&candidates, &mut lifted);
        assert!(lifted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{lifted:?}");
    }

    #[test]
    fn a_document_named_in_likely_text_is_lifted_and_so_is_one_that_names_it() {
        let chunks = [
            named("a", "Counterparts (album)", "Counterparts is an album by Rush, whose drummer is Neil Peart."),
            named("b", "Neil Peart", "He was born in 1952."),
            named("c", "Test for Echo", "It followed Counterparts."),
            named("d", "Peartree", "A tree."),
        ];
        check(&chunks, &[0.64, 0.01, 0.04, 0.01], &[0.64, 0.08, 0.16, 0.01]);
    }

    #[test]
    fn short_titles_other_chunks_of_the_document_and_no_title_are_no_bridges() {
        let chunks = [
            named("a", "Of", "All of them say Of and Rush hour."),
            named("b", "Rus", "of"),
            Candidate { document: "a".into(), id: "a#1".into(), index: 1, ..named("a", "Rush hour", "text") },
            named("c", "", "text"),
        ];
        check(&chunks, &[0.5, 0.1, 0.1, 0.1], &[0.5, 0.1, 0.1, 0.1]);
    }
}
