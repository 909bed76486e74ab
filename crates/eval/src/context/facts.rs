//! Supporting facts: the share of the gold sentences that are delivered.
//!
//! Source: the supporting facts of HotpotQA (arXiv 1809.09600) and the rationales of SciFact (arXiv 2004.14974), as
//! recall.
//! Differs: a sentence is looked for in the delivered pieces of its document, with every run of white space as one
//! space and case kept; a sentence that is cut off or stands in another document is not found.
//! Range: `[0, 1]`. A question without facts has no figure.
//! Cost: one substring search in the pieces of its document for each sentence.

use super::Piece;
use crate::questions::{Evidence, Fact};

/// The share of sentences that a piece of their document has; none without sentences.
pub fn recall(facts: &[Fact], pieces: &[Piece<'_>]) -> Option<f64> {
    let (mut n_sentences, mut n_found) = (0_u64, 0_u64);
    for Fact { document, sentences } in facts {
        let delivered: Vec<String> =
            pieces.iter().filter(|piece| piece.document == document).map(|piece| spaced_once(&piece.text)).collect();
        n_sentences += sentences.len() as u64;
        for sentence in sentences.iter().map(|sentence| spaced_once(sentence)) {
            n_found += u64::from(delivered.iter().any(|text| text.contains(&sentence)));
        }
    }
    (n_sentences > 0).then(|| n_found as f64 / n_sentences as f64)
}

/// The share of excerpts whose whole text stands in a delivered piece, of whatever document: unlike evidence by place,
/// it counts a copy of the text as the text. None without excerpts.
pub fn excerpts(evidence: &[Evidence], pieces: &[Piece<'_>]) -> Option<f64> {
    let delivered: Vec<String> = pieces.iter().map(|piece| spaced_once(&piece.text)).collect();
    let found = |one: &&Evidence| {
        let text = spaced_once(&one.text);
        delivered.iter().any(|piece| piece.contains(&text))
    };
    (!evidence.is_empty()).then(|| evidence.iter().filter(found).count() as f64 / evidence.len() as f64)
}

/// The text with every run of white space as one space.
fn spaced_once(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(facts: &[(&str, &[&str])], pieces: &[(&str, &str)], recall: Option<f64>) {
        let facts: Vec<Fact> = facts
            .iter()
            .map(|(document, sentences)| Fact {
                document: (*document).into(),
                sentences: sentences.iter().map(|sentence| (*sentence).into()).collect(),
            })
            .collect();
        let pieces: Vec<Piece<'_>> =
            pieces.iter().map(|(document, text)| Piece { document, text: (*text).into() }).collect();
        assert_eq!(super::recall(&facts, &pieces), recall);
    }

    #[test]
    fn an_excerpt_counts_wherever_its_text_stands() {
        let excerpt = |text: &str| Evidence { document: "a".into(), span: 0..0, text: text.into() };
        let pieces = [Piece { document: "b", text: "Nuts\nare hard. Bolts".into() }];
        assert_eq!(excerpts(&[excerpt("Nuts are hard."), excerpt("Bolts are not.")], &pieces), Some(0.5));
        assert_eq!(excerpts(&[], &pieces), None);
    }

    #[test]
    fn a_sentence_counts_where_a_piece_of_its_document_has_it_whole() {
        let facts: &[(&str, &[&str])] = &[("a", &["Nuts  are hard.", "Bolts are not."]), ("b", &["So it goes."])];
        check(facts, &[("a", "Well. Nuts are\nhard. Bolts are n"), ("b", "So it goes.")], Some(2.0 / 3.0));
        check(facts, &[("b", "Nuts are hard."), ("a", "so it goes. bolts are not.")], Some(0.0));
        check(facts, &[], Some(0.0));
    }

    #[test]
    fn a_question_without_facts_has_no_recall() {
        check(&[], &[("a", "text")], None);
        check(&[("a", &[])], &[("a", "text")], None);
    }
}
