//! The folder of a table of vectors: as model2vec saves it, or the `StaticEmbedding` module of sentence-transformers.
//!
//! A `config.json` beside the table makes it one of model2vec's: unknown tokens are left out, and a text is read up to
//! its `max_length`. Without one it is read as sentence-transformers reads it: every token counts, and texts have no
//! limit but ours.
//!
//! Differs: model2vec also cuts a text at `max_length` times the median length of a token in characters before it makes
//! tokens of it; here the limit is of tokens alone.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json::read_optional;
use super::transformer::WINDOW_MAX;
use crate::encoder::table::{MAPPING, ROWS, TableConfig, Unknown, WEIGHTS};
use crate::error::{Error, Result};
use crate::weights;

/// The `model_type` of model2vec.
pub(super) const MODEL2VEC: &str = "model2vec";
/// Tokens that model2vec reads of a text unless its folder says otherwise.
const DEFAULT_MAX_LENGTH: usize = 512;

/// The settings of a table, without its weights.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) max_tokens: usize,
    unknown: Unknown,
    weights_path: PathBuf,
}

impl Table {
    /// The table in `folder`.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let (max_tokens, unknown) = match read_optional::<Value>(&path)? {
            None => (WINDOW_MAX, Unknown::Counted),
            Some(config) => (max_length(&path, &config)?, Unknown::LeftOut),
        };
        Ok(Self { max_tokens, unknown, weights_path: folder.join("model.safetensors") })
    }

    /// With the sizes of the tensors, where the weights are there.
    pub(super) fn config(&self) -> Result<Option<TableConfig>> {
        let Some(shapes) = weights::shapes(&self.weights_path)? else { return Ok(None) };
        let damaged = |reason: String| Error::Damaged { path: self.weights_path.clone(), reason };
        let rows = ROWS.iter().find_map(|name| shapes.get(*name));
        let Some(&[n_rows, hidden]) = rows.map(Vec::as_slice) else {
            return Err(damaged(format!("has no tensor {:?} of two dimensions", ROWS[0])));
        };
        if hidden == 0 {
            return Err(damaged("its vectors have no values".to_owned()));
        }
        let of_tokens = [MAPPING, WEIGHTS].iter().find_map(|name| shapes.get(*name));
        let vocab_size = of_tokens.and_then(|shape| shape.first().copied()).unwrap_or(n_rows);
        Ok(Some(TableConfig::new([n_rows, hidden], vocab_size, self.max_tokens, self.unknown)))
    }

    /// Why there is no [`Table::config`].
    pub(super) fn without_weights(&self) -> Error {
        weights::missing(&self.weights_path)
    }

    pub(super) fn unknown(&self) -> Unknown {
        self.unknown
    }
}

/// True for a folder that is a table without saying so in `modules.json`.
pub(super) fn is_table(folder: &Path) -> Result<bool> {
    let config: Option<Value> = read_optional(&folder.join("config.json"))?;
    Ok(config.is_some_and(|config| config["model_type"] == MODEL2VEC))
}

/// `max_length` of model2vec's `config.json`: null for no limit.
fn max_length(path: &Path, config: &Value) -> Result<usize> {
    if let Some(name) = config["model_type"].as_str().filter(|name| *name != MODEL2VEC) {
        let (path, name) = (path.to_owned(), name.to_owned());
        return Err(Error::Unsupported { path, what: "kind of table", name, supported: MODEL2VEC });
    }
    match config.get("max_length") {
        None => Ok(DEFAULT_MAX_LENGTH),
        Some(Value::Null) => Ok(WINDOW_MAX),
        Some(length) => match length.as_u64() {
            Some(length @ 1..) => Ok(usize::try_from(length).map_or(WINDOW_MAX, |length| length.min(WINDOW_MAX))),
            _ => {
                let reason = format!("max_length is {length}, not a whole number above 0");
                Err(Error::Damaged { path: path.to_owned(), reason })
            }
        },
    }
}
