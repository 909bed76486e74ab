//! Seams: delivered text that repeats, and delivered pieces that begin or end inside a sentence.
//!
//! Source: "Small-to-Big RAG" (Codcompass) asks to track duplication rates and boundary violations, and defines
//! neither. Here duplication is the share of the delivered words that stand in a run of [`RUN`] words which stood
//! earlier in the context, so bytes delivered twice and copies of a passage both count. A boundary is violated by a
//! piece whose first or last byte lies inside a sentence of its document; pieces that touch are one.
//! Range: `[0, 1]`; nothing delivered: no figure. A piece of a document whose text is not known is not judged.
//! Cost: one step for each word; two binary searches for each piece.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::redundancy::words;
use crate::contexts::Citation;

/// Words in a row that are no coincidence.
pub const RUN: usize = 8;

/// Share of the delivered words that repeat; none if there are no words.
pub fn duplication(pieces: &[&str]) -> Option<f64> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let (mut seen, mut n_words, mut n_repeated) = (HashSet::new(), 0, 0);
    for piece in pieces {
        let mut number = |word: String| {
            let next = numbers.len();
            *numbers.entry(word).or_insert(next)
        };
        let words: Vec<usize> = words(piece).map(&mut number).collect();
        let mut repeated_to = 0; // words before this one are judged
        for (at, run) in words.windows(RUN).enumerate() {
            if !seen.insert(<[usize; RUN]>::try_from(run).expect("a window is as long as a run")) {
                n_repeated += at + RUN - repeated_to.max(at);
                repeated_to = at + RUN;
            }
        }
        n_words += words.len();
    }
    (n_words > 0).then(|| n_repeated as f64 / n_words as f64)
}

/// Stretches of delivered text by document: the bytes of citations that touch, joined.
pub(super) fn stretches(citations: &[Citation]) -> Vec<(&str, Range<u64>)> {
    let mut stretches: Vec<(&str, Range<u64>)> = Vec::new();
    for Citation { document, span, .. } in citations {
        match stretches.last_mut() {
            Some((last, bytes)) if last == document && bytes.end == span.start => bytes.end = span.end,
            _ => stretches.push((document, span.clone())),
        }
    }
    stretches
}

/// Says if a stretch of a text begins or ends inside one of its sentences; white space at its ends belongs to none.
/// `sentences` are their bytes, in order.
pub fn is_broken(text: &str, sentences: &[Range<usize>], stretch: &Range<u64>) -> bool {
    let (start, end) = (stretch.start as usize, stretch.end as usize);
    let inside = |at: usize| {
        let sentence = sentences.partition_point(|sentence| sentence.end <= at);
        let sentence = sentences.get(sentence).filter(|sentence| sentence.start < at);
        let said = |bytes: Range<usize>| text.get(bytes).is_none_or(|text| !text.trim().is_empty());
        sentence.is_some_and(|sentence| said(sentence.start..at) && said(at..sentence.end))
    };
    inside(start) || inside(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_repeat_in_runs_alone() {
        let first = "one two three four five six seven eight nine ten";
        assert_eq!(duplication(&[first]), Some(0.0));
        assert_eq!(duplication(&[first, first]), Some(0.5));
        assert_eq!(
            duplication(&[first, "One, two three four five six seven."]),
            Some(0.0),
            "seven words are a turn of phrase"
        );
        // Eleven words, eight of them said before.
        let second = "so: two three four five six seven eight nine, they said";
        assert_eq!(duplication(&[first, second]), Some(8.0 / 21.0));
        assert_eq!(duplication(&[&format!("{first} {first}")]), Some(0.5), "inside one piece too");
        assert_eq!(duplication(&[]), None);
        assert_eq!(duplication(&["…"]), None);
    }

    #[test]
    fn a_stretch_is_broken_where_it_begins_or_ends_inside_a_sentence() {
        let text = "One is. Two are. Three.";
        let sentences = [0..8, 8..17, 17..23];
        let broken = |span: Range<u64>| is_broken(text, &sentences, &span);
        assert!(!broken(0..23) && !broken(8..17) && !broken(8..16) && !broken(0..7) && !broken(7..16));
        assert!(broken(0..10) && broken(9..17) && broken(0..6) && broken(18..23));
    }

    #[test]
    fn pieces_that_touch_are_one_stretch() {
        let cited = |document: &str, span: Range<u64>| Citation {
            n: 1,
            document: document.into(),
            path: Vec::new(),
            span,
            source: "source".into(),
            anchor: String::new(),
            chunks: Vec::new(),
            cut: false,
            text: String::new(),
        };
        let citations = [cited("a", 0..4), cited("a", 4..9), cited("b", 9..12), cited("b", 13..14)];
        assert_eq!(stretches(&citations), [("a", 0..9), ("b", 9..12), ("b", 13..14)]);
    }
}
