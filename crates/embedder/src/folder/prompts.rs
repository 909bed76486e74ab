//! `config_sentence_transformers.json`: what is put before a text, and what its vectors are compared by.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::json::read_optional;
use crate::error::{Error, Result};

/// The prompts put before texts. Both are empty for most models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Prompts {
    pub(crate) query: String,
    pub(crate) document: String,
    /// All that the folder has, by their names: instruction models have one a task.
    pub(crate) named: BTreeMap<String, String>,
}

/// Names of the prompt of a document, the first first.
const DOCUMENT: [&str; 3] = ["document", "passage", "corpus"];

/// Settings of the whole model.
#[derive(Debug)]
pub(super) struct ModelConfig {
    pub(super) prompts: Prompts,
    /// `cosine` where the file names none.
    pub(super) similarity: String,
    /// Length that vectors are cut to unless the caller says otherwise.
    pub(super) truncate_dim: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    prompts: BTreeMap<String, Option<String>>,
    similarity_fn_name: Option<String>,
    truncate_dim: Option<usize>,
}

impl ModelConfig {
    /// A query takes the prompt named "query"; a document the first of "document", "passage", "corpus" that is not
    /// empty, and where there is none, none. `default_prompt_name` is for texts that are neither.
    ///
    /// Differs: sentence-transformers 6 documents this order, and never gets beyond "document", which it sets to the
    /// empty prompt.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("config_sentence_transformers.json");
        let file = read_optional::<File>(&path)?.unwrap_or_default();
        if file.truncate_dim == Some(0) {
            return Err(Error::Damaged { path, reason: "truncate_dim is 0".to_owned() });
        }
        let prompt = |name: &&str| file.prompts.get(*name).cloned().flatten().filter(|prompt| !prompt.is_empty());
        let (query, document) = (["query"].iter().find_map(prompt), DOCUMENT.iter().find_map(prompt));
        let named = file.prompts.into_iter().filter_map(|(name, prompt)| Some((name, prompt?))).collect();
        let prompts = Prompts { query: query.unwrap_or_default(), document: document.unwrap_or_default(), named };
        let similarity = file.similarity_fn_name.unwrap_or_else(|| "cosine".to_owned());
        Ok(Self { prompts, similarity, truncate_dim: file.truncate_dim })
    }
}
