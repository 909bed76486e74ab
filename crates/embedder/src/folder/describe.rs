//! What a folder says of its model before its weights are there: enough to refuse it, or to know what it will be.

use std::path::Path;

use serde_json::{Value, json};

use super::modules::{EncoderModule, Modules};
use super::prompts::{ModelConfig, Prompts};
use super::table::Table;
use super::{Classification, Folder, of_table};
use crate::encoder::Config;
use crate::error::{Error, Result};
use crate::pooling::Mode;
use crate::tokens::Tokenizer;
use crate::tokens::bounded::read_bounded;

/// The architecture of a table of vectors, in [`Description::architecture`].
pub const TABLE: &str = "static";

/// The use of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Turns a text into a vector.
    Encoder,
    /// Scores a pair of texts.
    Reranker,
}

/// A model as its folder describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its use.
    pub of_use: Use,
    /// The `model_type` of its configuration; [`TABLE`] for a table of vectors.
    pub architecture: String,
    /// Modes of the pooling, joined by ` + `; that of the head for a reranker.
    pub pooling: String,
    /// Length of a vector; 1 for a reranker's score. A table says it with its weights alone.
    pub dimensions: Option<usize>,
    /// Tokens it reads of one text, special tokens included.
    pub max_tokens: usize,
    /// Words put before a query, and before a document.
    pub prompts: [String; 2],
}

/// Reads every file of a folder but its weights, as [`crate::Embedder::load`] and [`crate::CrossEncoder::load`] would.
///
/// # Errors
/// As theirs, where a file is missing, contradicts another or asks for what is not computed.
pub fn describe(folder: &Path) -> Result<Description> {
    let (folder, of_use) = match is_reranker(folder) {
        true => (Classification::open(folder)?.folder, Use::Reranker),
        false => match table(folder)? {
            Some(table) => return Ok(table),
            None => (Folder::open(folder)?, Use::Encoder),
        },
    };
    folder.tokenizer()?;
    let name = |mode: &Mode| Mode::NAMES.iter().find(|(_, known)| known == mode).map_or("", |(name, _)| *name);
    let architecture = match folder.config.table() {
        None => {
            let config = folder.tokenizer_path().with_file_name("config.json");
            json_at(&config)["model_type"].as_str().unwrap_or_default().to_owned()
        }
        Some(_) => TABLE.to_owned(),
    };
    Ok(Description {
        of_use,
        architecture,
        pooling: folder.pooling.modes.iter().map(name).collect::<Vec<_>>().join(" + "),
        dimensions: Some(match of_use {
            Use::Encoder => folder.truncate_dim.map_or(folder.n_dimensions, |cut| cut.min(folder.n_dimensions)),
            Use::Reranker => 1,
        }),
        max_tokens: folder.max_tokens,
        prompts: [folder.prompts.query, folder.prompts.document],
    })
}

/// A table whose weights are not there.
fn table(path: &Path) -> Result<Option<Description>> {
    let EncoderModule::Table(folder) = Modules::open(path)?.encoder else { return Ok(None) };
    let folder = path.join(folder);
    let table = Table::open(&folder)?;
    if table.config()?.is_some() {
        return Ok(None);
    }
    of_table(Tokenizer::load(&folder.join("tokenizer.json"))?, table.unknown());
    let Prompts { query, document, .. } = ModelConfig::open(path)?.prompts;
    Ok(Some(Description {
        of_use: Use::Encoder,
        architecture: TABLE.to_owned(),
        pooling: "mean".to_owned(),
        dimensions: None,
        max_tokens: table.max_tokens,
        prompts: [query, document],
    }))
}

/// True for a `model_type` that this version computes, and for [`TABLE`].
#[must_use]
pub fn knows_architecture(name: &str) -> bool {
    if name == TABLE {
        return true;
    }
    let parsed = Config::parse(Path::new("config.json"), json!({ "model_type": name }));
    !matches!(parsed, Err(Error::Unsupported { what: "architecture", .. }))
}

fn is_reranker(folder: &Path) -> bool {
    let architecture = json_at(&folder.join("config.json"));
    architecture["architectures"][0].as_str().is_some_and(|name| name.ends_with("ForSequenceClassification"))
}

/// The file's contents; null where it cannot be read, which the folder's own reading refuses by name.
fn json_at(path: &Path) -> Value {
    read_bounded(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}
