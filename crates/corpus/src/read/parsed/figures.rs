//! Figures of a reading: what was read, and its share of what a second reading of the same bytes finds.

use std::collections::HashMap;

use crate::document::Document;
use crate::extraction::Extraction;

/// A word of more letters is two, most often: a parser lost the space between them.
const LONG_WORD_LETTERS: usize = 25;

/// The words of a text, in the order of the text: letters and digits that stand together.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Adds the counts of the texts of some documents.
pub(in crate::read) fn count(extraction: &mut Extraction, documents: &[Document]) {
    for text in documents.iter().map(|document| document.text.as_str()) {
        extraction.n_characters += text.chars().count() as u64;
        extraction.n_unmapped +=
            text.chars().filter(|&character| character == char::REPLACEMENT_CHARACTER).count() as u64;
        let is_long = |word: &&str| word.len() > LONG_WORD_LETTERS && n_letters(word) > LONG_WORD_LETTERS;
        extraction.n_long_words += words(text).filter(is_long).count() as u64;
    }
}

fn n_letters(word: &str) -> usize {
    word.chars().filter(|character| character.is_alphabetic()).count()
}

/// Share of the words of a crude reading that a text has too, each as often as it stands there; none without words.
pub(super) fn completeness(read: &str, crude: &str) -> Option<f64> {
    let mut wanted: HashMap<String, u64> = HashMap::new();
    for word in words(crude) {
        *wanted.entry(word.to_lowercase()).or_default() += 1;
    }
    let n_wanted: u64 = wanted.values().sum();
    for word in words(read) {
        if let Some(n) = wanted.get_mut(&word.to_lowercase()) {
            *n = n.saturating_sub(1);
        }
    }
    let n_lost: u64 = wanted.values().sum();
    (n_wanted > 0).then(|| (n_wanted - n_lost) as f64 / n_wanted as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completeness_counts_words_as_often_as_they_stand() {
        assert_eq!(completeness("The tide rises, the tide falls", "the TIDE (the) tide"), Some(1.0));
        assert_eq!(completeness("the tide", "the tide, the sea"), Some(0.5));
        assert_eq!(completeness("anything", " — "), None);
    }
}
