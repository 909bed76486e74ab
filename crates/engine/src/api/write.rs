//! Changing a collection: what may be asked of a writer, and what it did.

use std::collections::BTreeSet;

use cento_corpus::Format;
use cento_corpus::budget::NAME_BYTES_MAX;
use cento_models::Models;
use cento_vector::Scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::parse::{Request, languages, refused_value, unrepeated, value};
use crate::error::{Error, Result};
use crate::ingest::IndexOptions;
use crate::ingest::writer::add::HANDED_OVER;
use crate::limits::{self, IDS_MAX, TEXT_BYTES_MAX};
use crate::source::filter::FILTER_BYTES_MAX;

/// The longest name of a new collection.
const COLLECTION_NAME_BYTES_MAX: usize = 64;

/// The longest name of a file, as most systems have it.
const FILE_NAME_BYTES_MAX: usize = 255;

/// The most files and folders of one run.
const PATHS_MAX: usize = 64;

/// Files and folders of the server, which a collection is brought up to date with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexRequest {
    /// Names of roots that may be indexed, or of files and folders below them, as `notes/drafts`.
    pub paths: Vec<String>,
    /// True if documents may go although most of them, or all of a root, would.
    #[serde(default)]
    pub allow_empty: bool,
}

impl Request for IndexRequest {
    fn check(&self) -> Result<()> {
        limits::within("paths", self.paths.len(), 1, PATHS_MAX)?;
        self.paths.iter().try_for_each(|path| limits::text("paths", path, NAME_BYTES_MAX as usize))
    }
}

/// Documents that are handed over. One whose id is there already takes the place of that one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddRequest {
    /// The documents.
    pub documents: Vec<NewDocument>,
}

/// A document that is handed over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDocument {
    /// Its id, which no document of a file has.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Its title; empty for the one that the text has, if any.
    #[serde(default)]
    pub title: String,
    /// Its metadata, which filters can speak of; a key may be there once.
    #[serde(default, deserialize_with = "unrepeated")]
    pub metadata: Map<String, Value>,
    /// The way its text is read.
    #[serde(default)]
    pub format: NewFormat,
}

/// The way the text of a document is read that is handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NewFormat {
    /// As a text under its title, as a line of JSONL has them.
    #[default]
    Record,
    /// As a plain text.
    Text,
    /// As Markdown.
    Markdown,
    /// As HTML.
    Html,
}

impl From<NewFormat> for Format {
    fn from(format: NewFormat) -> Self {
        match format {
            NewFormat::Record => Self::Jsonl,
            NewFormat::Text => Self::Text,
            NewFormat::Markdown => Self::Markdown,
            NewFormat::Html => Self::Html,
        }
    }
}

impl Request for AddRequest {
    fn check(&self) -> Result<()> {
        limits::within("documents", self.documents.len(), 1, IDS_MAX)?;
        let mut seen = BTreeSet::new();
        for NewDocument { id, .. } in &self.documents {
            limits::text("id", id, NAME_BYTES_MAX as usize)?;
            let refused =
                |reason: &str| Err(Error::Setting { setting: "id", value: id.clone(), reason: reason.to_owned() });
            if id.trim().is_empty() || id.contains(char::is_control) {
                return refused("cannot be an id: it is blank, or has a control character");
            }
            if !seen.insert(id) {
                return refused("is the id of two of these documents");
            }
        }
        Ok(())
    }
}

/// The settings of a new collection. Every one may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateRequest {
    /// The encoder: the name of a model that the server has.
    pub model: Option<String>,
    /// The header embedded with each chunk: `structured`, `flat`, `last` or `none`.
    pub header: Option<String>,
    /// Tokens that a chunk aims at, or `sentence` or `document` for a chunk each.
    pub chunk_tokens: Option<ChunkLength>,
    /// The language of stemming and stop words, or `none`.
    pub language: Option<String>,
    /// The way vectors are stored: `f32` or `f16`.
    pub vectors: Option<String>,
    /// The vectors of a chunk: `plain`, `late` or `both`.
    pub pooling: Option<String>,
    /// Tokens that are read together for late vectors.
    pub late_window: Option<usize>,
    /// The number type that the encoder computes in: `f32`, `bf16`, `f16` or `int8`.
    pub precision: Option<String>,
}

/// The length of chunks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ChunkLength {
    /// Tokens aimed at.
    Tokens(u32),
    /// A chunk for each `sentence` or `document`, or a number as text.
    Named(String),
}

impl Request for CreateRequest {
    fn check(&self) -> Result<()> {
        self.resolve(IndexOptions::default()).map(drop)
    }
}

impl CreateRequest {
    /// These settings in the place of those that the options have.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value that is none, and for a model that is not here under that name.
    pub(crate) fn resolve(&self, options: IndexOptions) -> Result<IndexOptions> {
        let length = self.chunk_tokens.as_ref().map(|length| match length {
            ChunkLength::Tokens(n_tokens) => n_tokens.to_string(),
            ChunkLength::Named(name) => name.clone(),
        });
        let vectors = match self.vectors.as_deref() {
            None => None,
            Some("f32") => Some(Scalar::F32),
            Some("f16") => Some(Scalar::F16),
            Some(other) => return Err(refused_value("vectors", other, "is neither f32 nor f16")),
        };
        Ok(IndexOptions {
            model: self.model.as_deref().map(model).transpose()?.or(options.model),
            header: value("header", self.header.as_deref(), "structured, flat, last, none")?,
            chunk_tokens: value("chunk_tokens", length.as_deref(), "a number of tokens from 1, sentence, document")?,
            language: value("language", self.language.as_deref(), &languages())?,
            vectors,
            pooling: value("pooling", self.pooling.as_deref(), "plain, late, both")?,
            late_window: self.late_window,
            precision: value("precision", self.precision.as_deref(), "f32, bf16, f16, int8")?,
            ..options
        })
    }
}

/// The name of the model that is here under a name. A folder is none: who asks does not say what is read here.
fn model(name: &str) -> Result<String> {
    limits::text("model", name, NAME_BYTES_MAX as usize)?;
    let models = Models::from_env()?;
    let found = models.resolve(name).ok().filter(|found| found.card.is_some()).map(|found| found.name);
    found.ok_or_else(|| refused_value("model", name, "is no model that the server has; whoever runs it may pull it"))
}

/// Holds the name of a new collection, which becomes that of a folder, against what a name may be.
///
/// # Errors
/// [`Error::Setting`].
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_name = name.len() <= COLLECTION_NAME_BYTES_MAX
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_name {
        return Ok(());
    }
    let reason = format!(
        "is no name for a collection: 1 to {COLLECTION_NAME_BYTES_MAX} of the letters a to z, A to Z, digits, `-`, `_` \
         and `.`, the first a letter or a digit"
    );
    Err(refused_value("collection", name, &reason))
}

/// Holds the path of a file that is handed over against what a path may be: names between slashes.
///
/// # Errors
/// [`Error::Setting`].
pub fn check_path(path: &str) -> Result<()> {
    limits::text("path", path, NAME_BYTES_MAX as usize - HANDED_OVER.len() - 1)?;
    let is_name = |part: &str| {
        !part.is_empty()
            && ![".", ".."].contains(&part)
            && part.len() <= FILE_NAME_BYTES_MAX
            && !part.contains(|letter: char| letter.is_control() || "\\:".contains(letter))
    };
    if path.split('/').all(is_name) {
        return Ok(());
    }
    Err(refused_value("path", path, "is no path of a file: its parts are names between slashes"))
}

/// Documents that are to go: by their ids, or those that a filter admits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeleteRequest {
    /// Ids, each of which must be there.
    pub ids: Vec<String>,
    /// A filter that they pass, as `type = "md" and year < 2020`.
    pub filter: Option<String>,
}

impl Request for DeleteRequest {
    fn check(&self) -> Result<()> {
        limits::ids("ids", &self.ids)?;
        self.filter.as_deref().map_or(Ok(()), |filter| limits::text("filter", filter, FILTER_BYTES_MAX))?;
        if self.ids.is_empty() == self.filter.is_none() {
            let reason = "cannot be told: give ids or a filter, one of the two".to_owned();
            return Err(Error::Setting { setting: "ids", value: format!("{} ids", self.ids.len()), reason });
        }
        self.ids.iter().try_for_each(|id| limits::text("ids", id, TEXT_BYTES_MAX))
    }
}

/// Segments that are to become fewer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompactRequest {
    /// True for all segments, false for those that the policy finds.
    pub all: bool,
}

impl Request for CompactRequest {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The result of a writer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Written {
    /// Generation that answers now.
    pub generation: u64,
    /// Documents that are new.
    pub n_added: u64,
    /// Documents whose content changed.
    pub n_changed: u64,
    /// Documents that were there already.
    pub n_unchanged: u64,
    /// Documents that went.
    pub n_removed: u64,
    /// New chunks.
    pub n_chunks: u64,
    /// Tokens that went through the encoder.
    pub n_tokens_embedded: u64,
    /// Files left out.
    pub n_skipped: u64,
    /// Files or documents that could not be read.
    pub n_failed: u64,
    /// Documents that stay as they were, because what they come from is there and could not be read.
    pub n_kept: u64,
    /// Segments that were merged.
    pub n_merged: u64,
    /// The first of those that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedDocument>,
}

/// A file or document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedDocument {
    /// Its name.
    pub document: String,
    /// Why.
    pub reason: String,
}
