//! Losses: documents that were damaged beyond repair; and stale documents, whose files could not be read again. The
//! manifest remembers them, and every answer warns of them, until they are indexed again or given up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Documents of one segment that could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// The segment; its files are in `quarantine/`.
    pub segment: String,
    /// Documents that are known by name.
    pub documents: Vec<LostDocument>,
    /// Documents of which not even the name could be read.
    pub n_unnamed: u64,
}

/// A document that could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostDocument {
    /// Its id.
    pub id: String,
    /// The file it came from: root label and relative path.
    pub origin: String,
}

impl Loss {
    /// Documents that do not answer any more.
    pub fn n_documents(&self) -> u64 {
        self.documents.len() as u64 + self.n_unnamed
    }

    /// Warnings for everybody who asks this collection.
    pub fn warning(&self) -> String {
        let (n, segment) = (self.n_documents(), &self.segment);
        let first =
            self.documents.first().map(|document| format!(" ({:?} and so on)", document.id)).unwrap_or_default();
        format!(
            "{n} documents of segment {segment}{first} were damaged and do not answer; indexing them again brings them back"
        )
    }
}

/// Documents that answer with the text they had before: their file is there, and could not be read when they were
/// indexed last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stale {
    /// The file, or what the origins of all files under a folder begin with.
    pub origin: String,
    /// Why it could not be read.
    pub reason: String,
    /// Ids of the documents, ascending; of very many the first [`Stale::NAMED_MAX`].
    pub documents: Vec<String>,
    /// The number of them.
    pub n_documents: u64,
}

impl Stale {
    /// Documents of one file or folder that a manifest names.
    pub const NAMED_MAX: usize = 10_000;

    /// Warnings for everybody who asks this collection.
    pub fn warning(&self) -> String {
        let Self { origin, reason, documents, n_documents } = self;
        let which = match (documents.as_slice(), n_documents) {
            ([only], 1) => format!("document {only:?} answers with the text it"),
            ([first, ..], n) => format!("{n} documents ({first:?} and so on) answer with the text they"),
            ([], n) => format!("{n} documents answer with the text they"),
        };
        format!("{which} had before: {origin} could not be read when it was indexed last ({reason})")
    }
}

/// The losses that remain after an index run over the roots of these labels. `is_settled` says of a document whether
/// the run has seen what became of it. A run over all roots has seen everything, named or not.
pub fn remaining(
    losses: &[Loss],
    labels: &[String],
    roots: &BTreeMap<String, PathBuf>,
    is_settled: impl Fn(&LostDocument) -> bool,
) -> Vec<Loss> {
    let indexed: BTreeSet<&String> = labels.iter().collect();
    let is_whole_run = roots.keys().all(|label| indexed.contains(label));
    let mut remaining = losses.to_vec();
    for loss in &mut remaining {
        loss.documents.retain(|document| !is_settled(document));
        loss.n_unnamed = if is_whole_run { 0 } else { loss.n_unnamed };
    }
    remaining.retain(|loss| loss.n_documents() > 0);
    remaining
}
