//! Deletion: documents get tombstones, and the generation without them is published.

use std::path::Path;

use cento_collection::fs::Fs;
use cento_collection::keep::generation::{Generation, explained};
use cento_collection::keep::lock::WriterLock;
use cento_collection::write::commit::Commit;

use crate::error::Result;
use crate::source::selected::{self, Selection};

/// A delete's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// Generation that answers now.
    pub generation: u64,
    /// Ids of the documents that went, ascending.
    pub documents: Vec<String>,
    /// A later step that failed without harm to the collection.
    pub remark: Option<String>,
}

/// Tombstones documents and publishes the generation without them; all of them or, if one is unknown, none.
pub fn delete(folder: &Path, ids: &[String], fs: &dyn Fs) -> Result<u64> {
    delete_selected(folder, &Selection::Documents(ids.to_vec()), fs).map(|deleted| deleted.generation)
}

/// Tombstones the documents of a selection and publishes the generation without them; none selected leaves the
/// generation as it is.
pub fn delete_selected(folder: &Path, selection: &Selection, fs: &dyn Fs) -> Result<Deleted> {
    let snapshot = Generation::open_current(folder)?; // says that there is no collection before a lock file is made
    let fs = &WriterLock::acquire(folder, fs)?;
    let snapshot = match Generation::open_current(folder)? {
        current if current.manifest.generation != snapshot.manifest.generation => current,
        _ => snapshot,
    };
    explained([&snapshot], delete_from(folder, &snapshot, selection, fs))
}

fn delete_from(folder: &Path, snapshot: &Generation, selection: &Selection, fs: &dyn Fs) -> Result<Deleted> {
    let chosen = selected::select(snapshot, selection)?;
    let documents = selected::ids(snapshot, &chosen)?;
    let manifest = &snapshot.manifest;
    if documents.is_empty() {
        snapshot.check_whole()?;
        return Ok(Deleted { generation: manifest.generation, documents, remark: None });
    }
    let deleted = chosen.into_iter().enumerate().filter(|(_, documents)| !documents.is_empty()).collect();
    let commit =
        Commit { config: manifest.config.clone(), roots: manifest.roots.clone(), new_segments: Vec::new(), deleted };
    let committed = commit.publish(fs, folder, Some(snapshot))?;
    Ok(Deleted { generation: committed.generation, documents, remark: committed.remark })
}
