//! What an ingest says of itself: how far it is, and what it did.

use serde::Serialize;

use cento_collection::format::files::FileReport;
use cento_collection::write::compact::{CompactReport, Copied};
use cento_corpus::guard::Confinement;

use super::contexts::{ContextCounts, Contexts};
use crate::encoder::Estimate;

/// Progress of an ingest.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// The current stage.
    pub stage: Stage,
    /// Documents read so far.
    pub n_documents: u64,
    /// Bytes of the files read so far.
    pub n_bytes: u64,
    /// Bytes of all files found.
    pub n_bytes_total: u64,
    /// Tokens embedded so far, those found in the cache not counted.
    pub n_tokens: u64,
    /// Contexts that a language model wrote so far, those found in the cache not counted.
    pub n_contexts: u64,
    /// Rows linked into the graph.
    pub n_graph_rows: u64,
    /// Rows copied by a compaction.
    pub n_rows: u64,
    /// Rows it has to copy.
    pub n_rows_total: u64,
}

impl Progress {
    /// The progress of copying rows into new segments.
    pub(crate) fn of_copying(copied: &Copied) -> Self {
        let Copied { n_rows, n_rows_total, n_graph_rows } = *copied;
        Self { stage: Stage::Compacting, n_rows, n_rows_total, n_graph_rows, ..Self::default() }
    }
}

/// The stages of an ingest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// Reading, chunking and embedding.
    #[default]
    Embedding,
    /// Writing the segment and, for large ones, its graph.
    Writing,
    /// Copying rows from old segments into a new one.
    Compacting,
}

/// Report of an ingest, file by file where something did not go as a user would expect.
#[derive(Debug, Clone, Default, Serialize)]
pub struct IndexReport {
    /// Generation that answers now.
    pub generation: u64,
    /// Documents that are new.
    pub n_added: u64,
    /// Documents whose content changed.
    pub n_changed: u64,
    /// Documents that were there already.
    pub n_unchanged: u64,
    /// Documents that vanished from the given roots.
    pub n_removed: u64,
    /// New rows.
    pub n_chunks: u64,
    /// Tokens of the new rows' vectors: those of its embedded text, special tokens counted; those pooled for a late
    /// vector.
    pub n_tokens: u64,
    /// Tokens that went through the encoder in this run.
    pub n_tokens_embedded: u64,
    /// Rows whose vectors came from the embedding cache.
    pub n_from_log: u64,
    /// Rows longer than the encoder's window, embedded by their beginning (only with `--chunk-tokens document`).
    pub n_truncated: u64,
    /// The contexts that a language model wrote, where it writes any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<ContextCounts>,
    /// Files left out, and why.
    pub skipped: Vec<Issue>,
    /// Files and folders that the system did not let be read.
    pub unread: Vec<Issue>,
    /// Files or documents that hold no text that can be read.
    pub failed: Vec<Issue>,
    /// Ids of the documents that stay as they were, because what they come from is there and could not be read.
    pub kept: Vec<String>,
    /// Remarks of readers.
    pub warnings: Vec<Issue>,
    /// The files that a parser read, and those that were refused: what was got out of each, the suspicious first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileReport>,
    /// The confinement of the children that read some of them; none where no child was needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
    /// The role each key was given, in files with keys; what else there is to say.
    pub notes: Vec<String>,
    /// The work that an encoder at an endpoint would be asked for, of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The compaction that followed, if one was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactReport>,
}

impl IndexReport {
    /// Tells of a damaged journal of contexts.
    pub(in crate::ingest) fn warn_of(&mut self, contexts: Option<&Contexts>) {
        let damage = contexts.and_then(Contexts::damage);
        self.warnings.extend(damage.map(|(path, reason)| Issue { path, reason }));
    }
}

/// One remark of a report.
#[derive(Debug, Clone, Serialize)]
pub struct Issue {
    /// The file or document.
    pub path: String,
    /// The reason.
    pub reason: String,
}
