//! The languages a text can be analysed in: which stemmer, and which stop words.
//!
//! Source: the Snowball stemmers and stop lists that tantivy carries; the English list is Lucene's 33 words.

use std::fmt;
use std::str::FromStr;

use tantivy::tokenizer::Language as Snowball;

use crate::{Error, Result};

/// What a text is written in, as far as stemming and stop words go. The default is English.
///
/// Every language but `none` is stemmed. Arabic, Greek, Romanian, Tamil and Turkish have no stop list: every word of theirs
/// is indexed. Text in a script without spaces is searchable under each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    pub const ALL: [Self; 19] = [
        Self::English,
        Self::Arabic,
        Self::Danish,
        Self::Dutch,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hungarian,
        Self::Italian,
        Self::Norwegian,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Spanish,
        Self::Swedish,
        Self::Tamil,
        Self::Turkish,
        Self::None,
    ];

    fn row(self) -> (&'static str, Option<Snowball>) {
        match self {
            Self::English => ("english", Some(Snowball::English)),
            Self::Arabic => ("arabic", Some(Snowball::Arabic)),
            Self::Danish => ("danish", Some(Snowball::Danish)),
            Self::Dutch => ("dutch", Some(Snowball::Dutch)),
            Self::Finnish => ("finnish", Some(Snowball::Finnish)),
            Self::French => ("french", Some(Snowball::French)),
            Self::German => ("german", Some(Snowball::German)),
            Self::Greek => ("greek", Some(Snowball::Greek)),
            Self::Hungarian => ("hungarian", Some(Snowball::Hungarian)),
            Self::Italian => ("italian", Some(Snowball::Italian)),
            Self::Norwegian => ("norwegian", Some(Snowball::Norwegian)),
            Self::Portuguese => ("portuguese", Some(Snowball::Portuguese)),
            Self::Romanian => ("romanian", Some(Snowball::Romanian)),
            Self::Russian => ("russian", Some(Snowball::Russian)),
            Self::Spanish => ("spanish", Some(Snowball::Spanish)),
            Self::Swedish => ("swedish", Some(Snowball::Swedish)),
            Self::Tamil => ("tamil", Some(Snowball::Tamil)),
            Self::Turkish => ("turkish", Some(Snowball::Turkish)),
            Self::None => ("none", None),
        }
    }

    /// Its stemmer.
    pub(crate) fn snowball(self) -> Option<Snowball> {
        self.row().1
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().0)
    }
}

impl FromStr for Language {
    type Err = Error;

    /// Reads a name as [`Display`](fmt::Display) writes it, in any case.
    fn from_str(name: &str) -> Result<Self> {
        let lower = name.to_lowercase();
        Self::ALL.into_iter().find(|language| language.row().0 == lower).ok_or_else(|| Error::UnknownLanguage {
            name: name.to_owned(),
            known: Self::ALL.map(|language| language.row().0).join(", "),
        })
    }
}
