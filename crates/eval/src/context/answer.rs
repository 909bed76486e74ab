//! Answer in context: whether a right answer stands in the delivered text, word for word.
//!
//! Source: arXiv 2607.00725: a gold answer is a contiguous run of words of the packed text. Words are those of SQuAD's
//! evaluation (arXiv 1606.05250): lower case, without punctuation and without the articles a, an, the.
//! Differs: the text is that of the delivered pieces, each by itself; a title in a header does not count, nor does a
//! run from one piece into another that it does not touch in its document. Punctuation is also Unicode's general and
//! CJK punctuation, so that quotes and dashes of any style are dropped.
//! Range: 0 or 1. `yes` and `no` are no text to be found: a question with no other answer has no figure. Long answers
//! in an annotator's own words (QMSum) are hardly ever found; there the figure says nothing.
//! Cost: one substring search for each answer and piece.

use super::Piece;

/// 1 if a piece has one of the answers, else 0; none if there is no answer that can be found.
pub fn in_context(answers: &[String], pieces: &[Piece<'_>]) -> Option<f64> {
    let answers: Vec<String> = answers.iter().map(|answer| words(answer)).filter(|words| can_be_found(words)).collect();
    if answers.is_empty() {
        return None;
    }
    let found = pieces.iter().map(|piece| words(&piece.text)).any(|text| answers.iter().any(|run| text.contains(run)));
    Some(f64::from(found))
}

/// An answer in [`words`] that text can contain: there are words, and not only a verdict.
fn can_be_found(words: &str) -> bool {
    !matches!(words, " " | " yes " | " no ")
}

/// The words of a text, each with a space before and after it, so that a run of words is a substring.
pub(crate) fn words(text: &str) -> String {
    let kept: String = text.to_lowercase().chars().filter(|c| !is_punctuation(*c)).collect();
    let mut words = String::with_capacity(kept.len() + 2);
    words.push(' ');
    for word in kept.split_whitespace().filter(|word| !matches!(*word, "a" | "an" | "the")) {
        words.push_str(word);
        words.push(' ');
    }
    words
}

/// ASCII punctuation as Python's `string.punctuation` has it, inverted marks, guillemets, general and CJK punctuation;
/// no white space.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c, '¡' | '¿' | '«' | '»' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{303f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answers: &[&str], pieces: &[&str], expected: Option<f64>) {
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).into()).collect();
        let pieces: Vec<Piece<'_>> = pieces.iter().map(|text| Piece { document: "d", text: (*text).into() }).collect();
        assert_eq!(in_context(&answers, &pieces), expected);
    }

    #[test]
    fn an_answer_is_a_run_of_whole_words() {
        check(&["New York"], &["He left new york, early."], Some(1.0));
        check(&["New York"], &["York is new. Newyork."], Some(0.0));
        check(&["art"], &["a start"], Some(0.0));
        check(&["x", "Ann Lee"], &["nothing", "It was Ann\nLee."], Some(1.0));
    }

    #[test]
    fn case_punctuation_articles_and_spacing_do_not_count() {
        check(&["The U.S. Army"], &["in an us   army"], Some(1.0));
        check(&["1990-1995"], &["from 1990–1995 on"], Some(1.0));
        check(&["“Rush”"], &["the band 'Rush'"], Some(1.0));
        check(&["king of Spain"], &["King of the Spain"], Some(1.0));
    }

    #[test]
    fn a_run_does_not_go_from_one_piece_into_the_next() {
        check(&["Ann Lee"], &["Ann", "Lee"], Some(0.0));
    }

    #[test]
    fn what_no_text_can_contain_has_no_figure() {
        check(&[], &["text"], None);
        check(&["Yes"], &["yes"], None);
        check(&["no."], &["no"], None);
        check(&["the", "?!"], &["the"], None);
        check(&["yes", "Ann"], &["yes"], Some(0.0));
        check(&["Ann"], &[], Some(0.0));
    }
}
