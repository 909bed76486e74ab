//! Cards: what a model is, where it comes from, and what each of its files must be, to the bit.
//!
//! Cards are TOML files in `models/`, compiled in. A card is checked when it is read, so the rest of the crate may
//! trust it.

use std::path::{Component, Path};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Every card in `models/`, with its file name; a test holds this list to the folder.
const COMPILED_IN: &[(&str, &str)] =
    &[("all-minilm-l6-v2.toml", include_str!("../../../models/all-minilm-l6-v2.toml"))];

/// Most bytes of a file that weights are in.
const WEIGHTS_BYTES_MAX: u64 = 64 << 30;
/// Most bytes of any other file: the largest `tokenizer.json` of a published encoder has 33 MB.
const SETTINGS_BYTES_MAX: u64 = 256 << 20;

/// The compiled-in cards.
#[must_use]
pub fn cards() -> &'static [Card] {
    static CARDS: LazyLock<Vec<Card>> = LazyLock::new(|| {
        let parse = |&(file, text): &(&str, &str)| Card::parse(file, text).expect("a compiled-in card is well-formed");
        COMPILED_IN.iter().map(parse).collect()
    });
    &CARDS
}

/// One model: identity, shape, files and sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Name on the command line and of the model's folder: lowercase letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Use of the model, in a line.
    pub description: String,
    /// `owner/name` on the hub.
    pub repository: String,
    /// Commit of the repository.
    pub revision: String,
    /// SPDX identifier, or the word of the repository's page.
    pub license: String,
    /// Its use.
    #[serde(rename = "use", default)]
    pub of_use: Use,
    /// The `model_type` of its configuration, where it was read from the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// The branch, tag or commit that was asked for when the model was pulled; none stands for the main branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The steps from token vectors to one vector: `mean`, `cls`, or another mode of sentence-transformers; several
    /// are joined by ` + `.
    pub pooling: String,
    /// Length of a vector.
    pub dimensions: usize,
    /// Tokens the model reads of one text, special tokens included.
    pub max_tokens: usize,
    /// Words put before a text.
    pub prompts: Prompts,
    /// Every file that Cento reads; nothing else is downloaded.
    #[serde(rename = "file")]
    pub files: Vec<CardFile>,
    /// Where else the files are to be had, in the order to try them after the hub.
    #[serde(rename = "source", default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

/// The use of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Turns a text into a vector.
    #[default]
    Encoder,
    /// Scores a pair of texts.
    Reranker,
}

/// Ways to make one vector of those of the tokens.
const POOLINGS: [&str; 6] = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"];

/// Words put before a text; empty for models trained without prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompts {
    /// Before a query.
    pub query: String,
    /// Before a document.
    pub document: String,
}

/// One file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardFile {
    /// Relative to the model's folder, with `/`.
    pub path: String,
    /// Its exact size.
    pub size_bytes: u64,
    /// 64 lowercase hexadecimal digits.
    pub sha256: String,
}

/// A place other than the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A wheel on the Python package index.
    Wheel {
        /// Name of the package.
        package: String,
        /// Exact version.
        version: String,
        /// Of the wheel file.
        sha256: String,
        /// The folder inside the wheel that holds the files.
        folder: String,
    },
}

impl Card {
    /// Reads and checks a card; `file` names it in errors.
    ///
    /// # Errors
    /// [`Error::CardSyntax`] for TOML that is no card, [`Error::CardValue`] for a value that cannot be right.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let card: Self = toml::from_str(text).map_err(|source| Error::CardSyntax { file: file.to_owned(), source })?;
        match card.fault() {
            None => Ok(card),
            Some((field, reason)) => Err(Error::CardValue { file: file.to_owned(), field, reason }),
        }
    }

    /// Size of all files together.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// True if its checksums are those of what came at the first pull.
    pub(crate) fn is_of_first_sight(&self) -> bool {
        self.architecture.is_some()
    }

    /// The first field that cannot be right, and why.
    fn fault(&self) -> Option<(String, &'static str)> {
        let when = |is_wrong: bool, field: &str, reason| is_wrong.then(|| (field.to_owned(), reason));
        when(!is_name(&self.name), "name", "wants lowercase letters, digits, `-`, `_` and `.`, a letter or digit first")
            .or_else(|| when(self.repository.split('/').count() != 2, "repository", "is not owner/name"))
            .or_else(|| when(self.revision.is_empty(), "revision", "is empty"))
            .or_else(|| when(self.dimensions == 0, "dimensions", "is zero"))
            .or_else(|| {
                let is_known = self.pooling.split(" + ").all(|mode| POOLINGS.contains(&mode));
                when(!is_known, "pooling", "is no mode of sentence-transformers, nor several joined by ` + `")
            })
            .or_else(|| when(self.max_tokens == 0, "max_tokens", "is zero"))
            .or_else(|| when(self.files.is_empty(), "file", "names no file"))
            .or_else(|| self.files.iter().find_map(CardFile::fault))
            .or_else(|| self.sources.iter().find_map(Source::fault))
    }
}

impl CardFile {
    fn fault(&self) -> Option<(String, &'static str)> {
        let reason = if !is_inside(&self.path) {
            "is not a path inside the model's folder"
        } else if self.size_bytes == 0 {
            "has no size"
        } else if self.size_bytes > bytes_max(&self.path) {
            "is larger than a file of its kind may be"
        } else if !is_sha256(&self.sha256) {
            "has no sha256 of 64 lowercase hexadecimal digits"
        } else {
            return None;
        };
        Some((format!("file {:?}", self.path), reason))
    }
}

impl Source {
    fn fault(&self) -> Option<(String, &'static str)> {
        let Self::Wheel { package, version, sha256, folder } = self;
        // Both become an argument of pip, which must not take them for an option.
        let is_word = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_alphanumeric())
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+!".contains(&b))
        };
        let reason = if !is_word(package) || !is_word(version) {
            "wants an exact package and version"
        } else if !is_inside(folder) {
            "has a folder that is not a path inside the wheel"
        } else if !is_sha256(sha256) {
            "has no sha256 of 64 lowercase hexadecimal digits"
        } else {
            return None;
        };
        Some((format!("source {package:?}"), reason))
    }
}

/// Most bytes that a file of this name may have, whatever its source says.
pub(crate) fn bytes_max(path: &str) -> u64 {
    if path.ends_with(".safetensors") { WEIGHTS_BYTES_MAX } else { SETTINGS_BYTES_MAX }
}

/// A name that is one plain folder on every system, and never a hidden one.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b))
}

/// True for a plain path below a folder.
pub(crate) fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\\')
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// True for 64 lowercase hexadecimal digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
