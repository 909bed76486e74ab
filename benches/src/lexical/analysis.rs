//! From a text to its terms: tantivy's ways, Lucene's for English, and Cento's.

use cento_lexical::Analyzer;
use tantivy::tokenizer::{
    Language, LowerCaser, RawTokenizer, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
    TokenStream,
};
use unicode_segmentation::UnicodeSegmentation;

/// An analysis made of tantivy's parts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pipeline {
    /// tantivy's `default`: runs of letters and digits of at most 39 bytes, in lower case.
    Default,
    /// tantivy's `en_stem`: the same and Snowball's English stems.
    EnglishStems,
    /// `en_stem` without Lucene's 33 stop words, which tantivy has, but in no analysis that it registers.
    EnglishStopWords,
}

impl Pipeline {
    pub(super) fn analyzer(self) -> TextAnalyzer {
        let words =
            TextAnalyzer::builder(SimpleTokenizer::default()).filter(RemoveLongFilter::limit(40)).filter(LowerCaser);
        match self {
            Self::Default => words.build(),
            Self::EnglishStems => words.filter(Stemmer::new(Language::English)).build(),
            Self::EnglishStopWords => words.filter(stop_words()).filter(Stemmer::new(Language::English)).build(),
        }
    }
}

/// Gives the terms of a text, in order.
pub(super) type Terms = Box<dyn FnMut(&str) -> Vec<String>>;

/// Any of the analyses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Analysis {
    Tantivy(Pipeline),
    /// Lucene's EnglishAnalyzer: words of Unicode (UAX 29), no possessive `'s`, stop words, stems (Snowball's; Lucene
    /// has Porter's).
    UnicodeWords,
    /// Cento's: identifiers also by their parts, accents folded.
    Cento,
}

impl Analysis {
    /// What gives the terms of a text, in order.
    pub(super) fn terms(self) -> Terms {
        match self {
            Self::Tantivy(pipeline) => {
                let mut analyzer = pipeline.analyzer();
                Box::new(move |text| terms(&mut analyzer, text))
            }
            Self::UnicodeWords => {
                let filters = TextAnalyzer::builder(RawTokenizer::default()).filter(LowerCaser).filter(stop_words());
                let mut analyzer = filters.filter(Stemmer::new(Language::English)).build();
                Box::new(move |text| {
                    let words = text.unicode_words().map(without_possessive);
                    words.flat_map(|word| terms(&mut analyzer, word)).collect()
                })
            }
            Self::Cento => {
                let analyzer = Analyzer::default();
                Box::new(move |text| analyzer.terms(text))
            }
        }
    }
}

/// The terms of a text, in order.
pub(super) fn terms(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    analyzer.token_stream(text).process(&mut |token| terms.push(token.text.clone()));
    terms
}

fn stop_words() -> StopWordFilter {
    StopWordFilter::new(Language::English).expect("tantivy has a list for English")
}

fn without_possessive(word: &str) -> &str {
    ["'s", "'S", "\u{2019}s", "\u{2019}S"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word)
}
