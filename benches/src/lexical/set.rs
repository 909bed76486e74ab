//! A test collection in BEIR's layout: documents, queries, judgements.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use cento_eval::qrels::Qrels;
use cento_eval::topics::{self, Topic};
use serde::Deserialize;

pub(super) struct Set {
    pub(super) documents: Vec<Document>,
    pub(super) topics: Vec<Topic>,
    pub(super) qrels: Qrels,
}

/// A line of `corpus.jsonl`.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(rename = "_id")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) text: String,
}

impl Set {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("corpus.jsonl");
        let lines = BufReader::new(File::open(&path).with_context(|| path.display().to_string())?).lines();
        let document = |line: std::io::Result<String>| Ok(serde_json::from_str(&line?)?);
        let documents = lines.map(document).collect::<Result<_>>().with_context(|| path.display().to_string())?;
        Ok(Self { documents, topics: topics::read(folder)?, qrels: Qrels::read(folder)? })
    }
}

impl Document {
    /// Title and text as one.
    pub(super) fn whole(&self) -> String {
        if self.title.is_empty() { self.text.clone() } else { format!("{} {}", self.title, self.text) }
    }
}
