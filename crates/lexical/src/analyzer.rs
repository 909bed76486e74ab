//! From a text to the terms it is found by: words, then folding, lower case, stop words and stems.
//!
//! Source: the pipeline of Lucene's EnglishAnalyzer (possessive `'s`, lower case, its 33 stop words, stems), with the
//! Snowball stemmer of the language.
//! Differs: identifiers and scripts without spaces (see [`crate::words`]); for English and `none` accents are folded
//! (`naïve` is `naive`), for the other languages, where they tell words apart and the stemmers need them, they are
//! kept. Text is only ever terms: no character of it is an operator.

use std::fmt;

use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, Stemmer, StopWordFilter, TextAnalyzer, TextAnalyzerBuilder, TokenStream,
};
use unicode_segmentation::UNICODE_VERSION;

use crate::Language;
use crate::words::{Apostrophe, Marks, Words};

/// Goes up when the terms of any text change; a test holds them still.
const ANALYSIS_VERSION: u32 = 1;

/// Turns text into terms, the same way for what is indexed and what is asked.
///
/// - Words are those of Unicode (UAX 29) after composition (NFKC), in lower case, stemmed and without the stop words of
///   the [`Language`]; a possessive `'s` is dropped (English), `l'avion` is two words (French, Italian).
/// - An identifier counts whole and by its parts: `getUserName` is `getusername`, `get`, `user` and `name`.
/// - Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese count by character and by pair of characters.
/// - A word of more than [`TERM_BYTES_MAX`](crate::TERM_BYTES_MAX) bytes is cut into pieces, all of them indexed.
/// - Accents are folded for English and `none` only. Emoji, symbols and punctuation are not indexed.
#[derive(Clone)]
pub struct Analyzer {
    language: Language,
    pipeline: TextAnalyzer,
}

impl Analyzer {
    /// The analyser of a language.
    #[must_use]
    pub fn new(language: Language) -> Self {
        let mut builder = words(language);
        if let Some(snowball) = language.snowball() {
            if let Some(stop_words) = StopWordFilter::new(snowball) {
                builder = builder.filter_dynamic(stop_words);
            }
            // A stem can be empty: of an Arabic word that is all lengthening strokes, for one.
            let empty = StopWordFilter::remove([String::new()]);
            builder = builder.filter_dynamic(Stemmer::new(snowball)).filter_dynamic(empty);
        }
        Self { language, pipeline: builder.build() }
    }

    /// The words that the analyser of a language makes terms of: stop words too, and none stemmed. Where such words of
    /// one text follow each other in another, the other has all terms of the first.
    #[must_use]
    pub fn exact(language: Language) -> Self {
        Self { language, pipeline: words(language).build() }
    }

    /// The terms of a text, in order, repeated where they repeat.
    #[must_use]
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.pipeline().token_stream(text).process(&mut |token| terms.push(token.text.clone()));
        terms
    }

    /// The language it was made for.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// The settings that decide the terms, in words: two analysers with the same fingerprint give the same terms.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let (major, minor, _) = UNICODE_VERSION;
        format!("{} (analysis {ANALYSIS_VERSION}, Unicode {major}.{minor})", self.language)
    }

    /// A copy of the pipeline, for tantivy or for one text.
    pub(crate) fn pipeline(&self) -> TextAnalyzer {
        self.pipeline.clone()
    }
}

/// Words in lower case, folded where the language folds.
fn words(language: Language) -> TextAnalyzerBuilder {
    let folds = matches!(language, Language::English | Language::None);
    let apostrophe = match language {
        Language::English => Apostrophe::Possessive,
        Language::French | Language::Italian => Apostrophe::Separates,
        _ => Apostrophe::Joins,
    };
    let words = Words::new(apostrophe, if folds { Marks::Drop } else { Marks::Keep });
    let mut builder = TextAnalyzer::builder(words).dynamic();
    if folds {
        builder = builder.filter_dynamic(AsciiFoldingFilter);
    }
    builder.filter_dynamic(LowerCaser)
}

impl Default for Analyzer {
    fn default() -> Self {
        Self::new(Language::default())
    }
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Analyzer({})", self.fingerprint())
    }
}
