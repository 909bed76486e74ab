//! The languages a text can be analysed in: which stemmer, and which stop words.
//!
//! Source: the Snowball stemmers and stop lists that tantivy carries; the English list is Lucene's 33 words.

use strum::{Display, EnumString, VariantArray, VariantNames};
use tantivy::tokenizer::Language as Snowball;

use crate::Error;

/// The language of a text, as far as stemming and stop words go. The default is English.
///
/// Every language but `none` is stemmed. Arabic, Greek, Romanian, Tamil and Turkish have no stop list: every word of
/// theirs is indexed. Text in a script without spaces is searchable under each of them.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Display, EnumString, VariantArray, VariantNames,
)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive, parse_err_ty = Error, parse_err_fn = unknown)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum Language {
    #[default]
    English,
    Arabic,
    Danish,
    Dutch,
    Finnish,
    French,
    German,
    Greek,
    Hungarian,
    Italian,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Tamil,
    Turkish,
    /// No stemming and no stop words: any language, or several.
    None,
}

impl Language {
    /// Every language, the default first.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Its stemmer.
    pub(crate) fn snowball(self) -> Option<Snowball> {
        Some(match self {
            Self::English => Snowball::English,
            Self::Arabic => Snowball::Arabic,
            Self::Danish => Snowball::Danish,
            Self::Dutch => Snowball::Dutch,
            Self::Finnish => Snowball::Finnish,
            Self::French => Snowball::French,
            Self::German => Snowball::German,
            Self::Greek => Snowball::Greek,
            Self::Hungarian => Snowball::Hungarian,
            Self::Italian => Snowball::Italian,
            Self::Norwegian => Snowball::Norwegian,
            Self::Portuguese => Snowball::Portuguese,
            Self::Romanian => Snowball::Romanian,
            Self::Russian => Snowball::Russian,
            Self::Spanish => Snowball::Spanish,
            Self::Swedish => Snowball::Swedish,
            Self::Tamil => Snowball::Tamil,
            Self::Turkish => Snowball::Turkish,
            Self::None => return None,
        })
    }
}

fn unknown(name: &str) -> Error {
    Error::UnknownLanguage { name: name.to_owned(), known: Language::NAMES.join(", ") }
}
