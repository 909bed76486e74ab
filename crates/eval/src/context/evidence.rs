//! Evidence coverage: how much of the gold text is delivered, and how much of what is delivered is gold text.
//!
//! Source: Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval" (Chroma, 2024): with `g` the gold and
//! `d` the delivered tokens, `precision = |g & d| / |d|`, `recall = |g & d| / |g|`,
//! `IoU = |g & d| / (|d| + |g| - |g & d|)`. A gold token counts once, however many references or pieces have it;
//! delivered tokens count as often as they are delivered.
//! Differs: tokens are those of the whole document, and all of the context is delivered: headers, marks and separators
//! too. Over characters only the cited texts are, as in their code, which counts characters; there a stretch of gold
//! that two references share counts twice in the denominator of recall, here once, so that recall can reach 1.
//! Range: `[0, 1]`. No gold: no figure. Nothing delivered: 0.
//! Cost: a sort of the spans, two binary searches in the token ends of the document for each.

use std::ops::Range;

use super::intervals::Intervals;

/// Gold and delivered units, tokens or characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Gold units, each once.
    pub n_gold: u64,
    /// Gold units that are delivered, each once.
    pub n_found: u64,
    /// Delivered units, as often as they are delivered.
    pub n_delivered: u64,
}

impl Coverage {
    /// Share of what is delivered that is gold, each gold unit counted once; 0 if nothing is delivered.
    pub fn precision(&self) -> f64 {
        share(self.n_found, self.n_delivered())
    }

    /// Share of the gold that is delivered.
    pub fn recall(&self) -> f64 {
        share(self.n_found, self.n_gold)
    }

    /// Gold that is delivered, over all that is gold or delivered.
    pub fn iou(&self) -> f64 {
        share(self.n_found, self.n_delivered() + self.n_gold - self.n_found)
    }

    /// A piece that starts or ends inside a token of its document has fewer tokens by itself than the document has
    /// there; a context of nothing else would have a precision above 1.
    fn n_delivered(&self) -> u64 {
        self.n_delivered.max(self.n_found)
    }
}

fn share(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { n as f64 / of as f64 }
}

/// Gold tokens of one document and how many of them are in the delivered spans.
///
/// `ends` are the ends of the document's tokens in bytes. `n_delivered` is left 0: it is the context's, not the
/// document's.
pub fn tokens<'a>(
    ends: &[u64],
    gold: impl Iterator<Item = &'a Range<u64>>,
    delivered: impl Iterator<Item = &'a Range<u64>>,
) -> Coverage {
    let gold: Intervals = gold.map(|span| tokens_of(ends, span)).collect();
    let delivered: Intervals = delivered.map(|span| tokens_of(ends, span)).collect();
    Coverage { n_gold: gold.len(), n_found: gold.intersection(&delivered).len(), n_delivered: 0 }
}

/// Gold characters (code points) of one document and how many of them are in the delivered spans; `n_delivered` is left
/// 0.
///
/// Spans are bytes, in the text and at the bounds of characters.
pub fn chars<'a>(
    text: &str,
    gold: impl Iterator<Item = &'a Range<u64>>,
    delivered: impl Iterator<Item = &'a Range<u64>>,
) -> Coverage {
    let n_chars = |span: &Range<u64>| text[span.start as usize..span.end as usize].chars().count() as u64;
    let n_in = |set: &Intervals| set.iter().map(n_chars).sum();
    let gold: Intervals = gold.cloned().collect();
    let found = gold.intersection(&delivered.cloned().collect());
    Coverage { n_gold: n_in(&gold), n_found: n_in(&found), n_delivered: 0 }
}

/// The tokens that hold a byte of the span, by number.
fn tokens_of(ends: &[u64], span: &Range<u64>) -> Range<u64> {
    if span.is_empty() {
        return 0..0;
    }
    let first = ends.partition_point(|end| *end <= span.start);
    let last = ends.partition_point(|end| *end < span.end);
    first as u64..(last as u64 + 1).min(ends.len() as u64)
}

/// Token ends made such that every token holds a byte and together they hold the text: ends that repeat are one, and
/// what follows the last end belongs to the last token. The reason, if they descend or leave the text.
pub(crate) fn contiguous(mut ends: Vec<u64>, n_bytes: u64) -> Result<Vec<u64>, String> {
    if let Some(pair) = ends.windows(2).find(|pair| pair[0] > pair[1]) {
        return Err(format!("the token that ends at byte {} follows one that ends at {}", pair[1], pair[0]));
    }
    ends.retain(|end| *end > 0);
    ends.dedup();
    match ends.last_mut() {
        Some(last) if *last > n_bytes => return Err(format!("a token ends at byte {last} of {n_bytes}")),
        Some(last) => *last = n_bytes,
        None if n_bytes > 0 => return Err("there are no tokens".to_owned()),
        None => {}
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::iter::{empty, once};

    use super::*;
    use proptest::prelude::*;

    // Tokens:  [aa][bbb][c][dddd]
    // Bytes:    01  234  5  6789
    const ENDS: [u64; 4] = [2, 5, 6, 10];

    #[test]
    fn a_token_belongs_to_a_span_that_holds_any_of_its_bytes() {
        assert_eq!(tokens_of(&ENDS, &(0..2)), 0..1);
        assert_eq!(tokens_of(&ENDS, &(1..3)), 0..2);
        assert_eq!(tokens_of(&ENDS, &(4..7)), 1..4);
        assert_eq!(tokens_of(&ENDS, &(9..10)), 3..4);
        assert_eq!(tokens_of(&ENDS, &(5..5)), 0..0);
    }

    #[test]
    fn a_gold_token_counts_once_and_every_delivered_token_counts() {
        // Gold: bytes 0..3 and 1..6 are tokens 0, 1, 2. Delivered: 2..6 and 5..10, tokens 1, 2, 3; found: 1 and 2.
        let gold = [0..3, 1..6];
        let delivered = [2..6, 5..10];
        let coverage = Coverage { n_delivered: 10, ..tokens(&ENDS, gold.iter(), delivered.iter()) };
        assert_eq!(coverage, Coverage { n_gold: 3, n_found: 2, n_delivered: 10 });
        assert_eq!(coverage.precision(), 2.0 / 10.0);
        assert_eq!(coverage.recall(), 2.0 / 3.0);
        assert_eq!(coverage.iou(), 2.0 / (10.0 + 3.0 - 2.0));
    }

    #[test]
    fn a_gold_character_counts_once_however_many_pieces_and_references_have_it() {
        // Gold: "éb" and "bc" are 3 characters. Delivered: "bcd" twice and "é": 7 characters, all 3 gold ones are
        // found.
        let text = "aébcd";
        let (gold, delivered) = ([1..4, 3..5], [3..6, 3..6, 1..3]);
        let coverage = Coverage { n_delivered: 3 + 3 + 1, ..chars(text, gold.iter(), delivered.iter()) };
        assert_eq!(coverage, Coverage { n_gold: 3, n_found: 3, n_delivered: 7 });
        assert_eq!((coverage.precision(), coverage.recall(), coverage.iou()), (3.0 / 7.0, 1.0, 3.0 / 7.0));
    }

    #[test]
    fn nothing_delivered_is_worth_nothing() {
        let coverage = tokens(&ENDS, once(&(0..3)), empty());
        assert_eq!((coverage.precision(), coverage.recall(), coverage.iou()), (0.0, 0.0, 0.0));
    }

    #[test]
    fn a_precision_is_never_above_one() {
        // One delivered token that lies in two tokens of the document.
        let coverage = Coverage { n_delivered: 1, ..tokens(&ENDS, once(&(0..5)), once(&(1..3))) };
        assert_eq!((coverage.precision(), coverage.iou()), (1.0, 1.0));
    }

    #[test]
    fn token_ends_cover_the_text_or_are_refused() {
        assert_eq!(contiguous(vec![0, 2, 2, 5], 7), Ok(vec![2, 7]));
        assert_eq!(contiguous(vec![], 0), Ok(vec![]));
        assert_eq!(contiguous(vec![3, 2], 7), Err("the token that ends at byte 2 follows one that ends at 3".into()));
        assert_eq!(contiguous(vec![3, 8], 7), Err("a token ends at byte 8 of 7".into()));
        assert_eq!(contiguous(vec![], 7), Err("there are no tokens".into()));
    }

    fn spans() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0_u64..50, 0_u64..20).prop_map(|(start, length)| start..(start + length).min(50)), 0..8)
    }

    proptest! {
        #[test]
        fn coverage_is_that_of_sets_of_tokens(lengths in prop::collection::vec(1_u64..6, 10..50), gold in spans(), delivered in spans()) {
            let ends: Vec<u64> = lengths.iter().scan(0, |end, length| { *end += length; Some(*end) }).collect();
            let n_bytes = *ends.last().unwrap();
            let fit = |spans: Vec<Range<u64>>| -> Vec<Range<u64>> {
                spans.into_iter().map(|span| span.start.min(n_bytes)..span.end.min(n_bytes)).collect()
            };
            let (gold, delivered) = (fit(gold), fit(delivered));
            let naive = |spans: &[Range<u64>]| -> BTreeSet<usize> {
                let holds = |token: &usize| {
                    let bytes = ends[*token] - lengths[*token]..ends[*token];
                    bytes.into_iter().any(|byte| spans.iter().any(|span| span.contains(&byte)))
                };
                (0..ends.len()).filter(holds).collect()
            };
            let (in_gold, in_delivered) = (naive(&gold), naive(&delivered));
            let n_found = in_gold.intersection(&in_delivered).count() as u64;
            let expected = Coverage { n_gold: in_gold.len() as u64, n_found, n_delivered: 0 };
            prop_assert_eq!(tokens(&ends, gold.iter(), delivered.iter()), expected);
        }

        #[test]
        fn coverage_of_characters_is_that_of_sets(unit in "[aé€😀]{1,5}", gold in spans(), delivered in spans()) {
            // Spans count characters here; bytes are looked up.
            let text = unit.repeat(50);
            let starts: Vec<u64> = text.char_indices().map(|(start, _)| start as u64).collect();
            let bytes = |spans: &[Range<u64>]| -> Vec<Range<u64>> {
                spans.iter().map(|span| starts[span.start as usize]..starts.get(span.end as usize).copied().unwrap_or(text.len() as u64)).collect()
            };
            let set = |spans: &[Range<u64>]| -> BTreeSet<u64> { spans.iter().cloned().flatten().collect() };
            let expected = Coverage {
                n_gold: set(&gold).len() as u64,
                n_found: set(&gold).intersection(&set(&delivered)).count() as u64,
                n_delivered: 0,
            };
            let (gold, delivered) = (bytes(&gold), bytes(&delivered));
            prop_assert_eq!(chars(&text, gold.iter(), delivered.iter()), expected);
        }
    }
}
