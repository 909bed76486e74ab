//! The reports on files from one generation to the next: those of a run take the place of those that it covers, and
//! those of documents that were deleted go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use roaring::RoaringBitmap;
use serde::Serialize;

use super::generation::Generation;
use super::snapshots::At;
use crate::error::{AtPath, Result};
use crate::format::files::{self, FileReport};
use crate::format::manifest::Manifest;
use crate::fs::{Folder, Fs};

/// The reports on files that a generation has.
#[derive(Debug, Clone, Serialize)]
pub struct FileReports {
    /// Format of this answer.
    pub version: u32,
    /// Generation that answers.
    pub generation: u64,
    /// The files, the suspicious first; none where the collection was last indexed by a version that kept no report, or
    /// holds nothing but text that is the files' own.
    pub files: Option<Vec<FileReport>>,
}

/// Reads the reports of a generation of the collection at `folder`.
///
/// # Errors
/// There is no such generation, or its report is damaged.
pub fn file_reports(folder: &Path, at: &At) -> Result<FileReports> {
    let manifest = at.manifest(folder)?;
    let mut files = read(folder, &manifest)?;
    if let Some(files) = &mut files {
        sort(files);
    }
    Ok(FileReports { version: 1, generation: manifest.generation, files })
}

/// Puts the files first that want most attention.
pub fn sort(files: &mut [FileReport]) {
    files.sort_by(|a, b| b.suspicion.cmp(&a.suspicion).then_with(|| a.origin.cmp(&b.origin)));
}

pub(crate) fn read(folder: &Path, manifest: &Manifest) -> Result<Option<Vec<FileReport>>> {
    let name = manifest.reports.as_deref();
    name.map(|name| files::read(&Folder::open(folder).at(folder)?, name)).transpose()
}

/// The reports after a run over files.
#[derive(Debug)]
pub struct Reports {
    /// The name of those before, if these are the same.
    kept: Option<Option<String>>,
    now: Vec<FileReport>,
}

impl Reports {
    /// Joins the reports of a run with those of the generation before on files that it does not cover. Those that
    /// cannot be read are left out, which the remark says.
    pub fn after(
        folder: &Path,
        before: Option<&Manifest>,
        mut now: Vec<FileReport>,
        is_covered: impl Fn(&str) -> bool,
    ) -> (Self, Option<String>) {
        let (old, remark) = match before.map_or(Ok(None), |manifest| read(folder, manifest)) {
            Ok(old) => (old.unwrap_or_default(), None),
            Err(error) => (Vec::new(), Some(format!("the report on files is lost: {}", crate::describe(&error)))),
        };
        now.extend(old.iter().filter(|file| !is_covered(&file.origin)).cloned());
        now.sort_by(|a, b| a.origin.cmp(&b.origin));
        let is_kept = old == now && remark.is_none();
        (Self { kept: is_kept.then(|| before.and_then(|manifest| manifest.reports.clone())), now }, remark)
    }

    /// True if nothing is other than it was.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// The name of the reports for the manifest of a generation; writes them if they are new.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn store(&self, fs: &dyn Fs, folder: &Path, generation: u64) -> Result<Option<String>> {
        match &self.kept {
            Some(kept) => Ok(kept.clone()),
            None => store(fs, folder, generation, &self.now),
        }
    }
}

fn store(fs: &dyn Fs, folder: &Path, generation: u64, files: &[FileReport]) -> Result<Option<String>> {
    if files.is_empty() {
        return Ok(None);
    }
    let name = generation.to_string();
    files::write(fs, folder, &name, files)?;
    Ok(Some(name))
}

/// The name of the reports after documents of `old` have died: a report goes with the last document of its file. One
/// that cannot be read stays as it is.
///
/// # Errors
/// The documents of the generation cannot be read, or the reports not be written.
pub fn without(
    fs: &dyn Fs,
    folder: &Path,
    old: &Generation,
    dying: &BTreeMap<usize, RoaringBitmap>,
) -> Result<Option<String>> {
    let name = old.manifest.reports.clone();
    let Ok(Some(mut files)) = read(folder, &old.manifest) else { return Ok(name) };
    let mut gone = BTreeSet::new();
    for (&at, documents) in dying {
        for document in documents {
            gone.extend(places(old.segments[at].origin(document)?));
        }
    }
    gone.retain(|origin| files.binary_search_by(|file| file.origin.as_str().cmp(origin)).is_ok());
    if gone.is_empty() {
        return Ok(name);
    }
    for (at, segment) in old.segments.iter().enumerate() {
        let dies = |document: &u32| dying.get(&at).is_some_and(|documents| documents.contains(*document));
        for document in segment.live_documents().filter(|document| !dies(document)) {
            for place in places(segment.origin(document)?) {
                gone.remove(place);
            }
        }
    }
    files.retain(|file| !gone.contains(file.origin.as_str()));
    store(fs, folder, old.manifest.generation + 1, &files)
}

/// An origin and all that it lies in: a document may come from a file within a file.
fn places(origin: &str) -> impl Iterator<Item = &str> {
    origin.match_indices('/').map(|(end, _)| &origin[..end]).chain([origin])
}
