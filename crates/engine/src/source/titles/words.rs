//! The words of titles and of the texts that name them: runs of letters and digits, in lower case, not stemmed.
//!
//! Differs from the words that BM25 counts: an apostrophe parts words, so that `Homer's` names `Homer`. Scripts that
//! put no spaces have no words here: a title in one is found only where marks stand around it.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Its bytes in the text.
    pub(super) span: Range<usize>,
    /// The hash of its lower case: the same in one process, and stored nowhere.
    pub(super) hash: u64,
}

/// The words of a text, in order.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut lowered = String::new();
    spans(text)
        .map(|span| {
            lowered.clear();
            lower(&text[span.clone()], &mut lowered);
            let mut hasher = DefaultHasher::new();
            hasher.write(lowered.as_bytes());
            Word { span, hash: hasher.finish() }
        })
        .collect()
}

/// The words of a text in lower case, a blank between two.
pub(super) fn normalized(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for span in spans(text) {
        if !words.is_empty() {
            words.push(' ');
        }
        lower(&text[span], &mut words);
    }
    words
}

/// A title without what stands in brackets at its end, which tells apart things of one name: `Mercury (planet)`.
pub(super) fn bare(title: &str) -> &str {
    let title = title.trim();
    let kept = title.strip_suffix(')').and_then(|open| open.rfind('(')).map_or(title, |at| title[..at].trim_end());
    if kept.is_empty() { title } else { kept }
}

fn spans(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = rest.find(|(_, c)| c.is_alphanumeric())?;
        let mut end = start + first.len_utf8();
        while let Some((at, c)) = rest.next_if(|(_, c)| c.is_alphanumeric()) {
            end = at + c.len_utf8();
        }
        Some(start..end)
    })
}

fn lower(word: &str, into: &mut String) {
    if word.is_ascii() {
        let start = into.len();
        into.push_str(word);
        into[start..].make_ascii_lowercase();
    } else {
        into.extend(word.chars().flat_map(char::to_lowercase));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        for (text, expected) in [
            ("Homer's Iliad, 2nd ed.", "homer s iliad 2nd ed"),
            ("New-York\n(city)", "new york city"),
            ("ÉTÉ İstanbul", "été i\u{307}stanbul"),
            ("…", ""),
            ("", ""),
        ] {
            assert_eq!(normalized(text), expected, "{text}");
            let at: Vec<&str> = words(text).into_iter().map(|word| &text[word.span]).collect();
            assert_eq!(normalized(&at.join(" ")), expected, "{text}");
        }
        assert_eq!(words("Moon")[0].hash, words("the MOON")[1].hash);
    }

    #[test]
    fn brackets_at_the_end_of_a_title_are_dropped_once() {
        for (title, expected) in [
            ("Mercury (planet)", "Mercury"),
            ("Live (in Rome) (album)", "Live (in Rome)"),
            (" f(x) ", "f"),
            ("(untitled)", "(untitled)"),
            ("a) b", "a) b"),
            ("Moon", "Moon"),
        ] {
            assert_eq!(bare(title), expected);
        }
    }
}
