//! Snapshots: generations with a name, kept until it is taken away; and which generation a reader asks for.
//!
//! `snapshots/<name>.json` is a copy of the generation's manifest. Garbage collection keeps what it names.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::garbage;
use super::named::{all, check_name};
use crate::error::{AtPath, Error, Result};
use crate::format::layout::{GENERATIONS, SNAPSHOTS};
use crate::format::manifest::Manifest;
use crate::format::names;
use crate::fs::{Folder, Fs, write_atomically};
use crate::keep::lock::WriterLock;

/// The generation of a collection to open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum At {
    /// The one that was committed last.
    #[default]
    Current,
    /// The one of this number, if it is still there.
    Generation(u64),
    /// The one of this name.
    Snapshot(String),
}

impl At {
    /// The manifest of that generation.
    pub fn manifest(&self, folder: &Path) -> Result<Manifest> {
        let current = Manifest::read(folder)?;
        match self {
            Self::Current => Ok(current),
            Self::Generation(asked) if *asked == current.generation => Ok(current),
            Self::Generation(asked) => {
                let known = generations(folder, &current)?;
                match known.contains(asked) {
                    true => Manifest::read_generation(folder, *asked),
                    false => Err(Error::UnknownGeneration { asked: asked.to_string(), known: listed(&known) }),
                }
            }
            Self::Snapshot(name) => {
                let mut known = all(folder)?;
                if let Some(error) = known.unread.remove(name) {
                    return Err(error);
                }
                let manifest = known.whole.remove(name);
                manifest.ok_or_else(|| Error::UnknownSnapshot { name: name.clone(), known: listed(known.names()) })
            }
        }
    }
}

/// A named generation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NamedGeneration {
    /// Its name.
    pub name: String,
    /// Its number.
    pub generation: u64,
    /// Segments it has.
    pub n_segments: usize,
}

/// A snapshot that cannot be read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnreadSnapshot {
    /// Its name.
    pub name: String,
    /// Why not.
    pub problem: String,
}

/// A snapshot that is no more.
#[derive(Debug, Clone)]
pub struct RemovedSnapshot {
    /// The generation that it named; none where its file could not be read.
    pub generation: Option<NamedGeneration>,
    /// A remark on a later step that failed, or on what is kept although nothing that can be read names it.
    pub remark: Option<String>,
}

/// The snapshots of the collection at `folder`, by name; those that cannot be read are left out.
pub fn snapshots(folder: &Path) -> Result<Vec<NamedGeneration>> {
    Manifest::read(folder)?; // says that there is no collection
    Ok(all(folder)?.whole.into_iter().map(|(name, manifest)| named(name, &manifest)).collect())
}

/// The snapshots of the collection at `folder` that cannot be read, by name.
pub fn unread_snapshots(folder: &Path) -> Result<Vec<UnreadSnapshot>> {
    let unread = all(folder)?.unread.into_iter();
    Ok(unread.map(|(name, error)| UnreadSnapshot { name, problem: crate::describe(&error) }).collect())
}

/// Names the current generation, so that it stays.
pub fn create_snapshot(folder: &Path, name: &str, fs: &dyn Fs) -> Result<NamedGeneration> {
    check_name(name)?;
    Manifest::read(folder)?;
    let fs = &WriterLock::acquire(folder, fs)?;
    let manifest = Manifest::read(folder)?;
    let mut known = all(folder)?;
    if let Some(taken) = known.whole.get(name) {
        return Err(Error::SnapshotTaken { name: name.to_owned(), generation: taken.generation });
    }
    if let Some(error) = known.unread.remove(name) {
        return Err(error);
    }
    let place = folder.join(SNAPSHOTS);
    if !place.is_dir() {
        fs.create_dir(&place).at(&place)?;
        fs.sync_dir(folder).at(folder)?;
    }
    write_atomically(fs, &place.join(format!("{name}.json")), &manifest.seal())?;
    Ok(named(name.to_owned(), &manifest))
}

/// Takes a name away, and removes what only its generation named. A snapshot that cannot be read goes as well.
pub fn remove_snapshot(folder: &Path, name: &str, fs: &dyn Fs) -> Result<RemovedSnapshot> {
    Manifest::read(folder)?;
    let fs = &WriterLock::acquire(folder, fs)?;
    let current = Manifest::read(folder)?;
    let known = all(folder)?;
    if !known.whole.contains_key(name) && !known.unread.contains_key(name) {
        return Err(Error::UnknownSnapshot { name: name.to_owned(), known: listed(known.names()) });
    }
    let place = folder.join(SNAPSHOTS);
    let path = place.join(format!("{name}.json"));
    fs.remove_file(&path).at(&path)?;
    fs.sync_dir(&place).at(&place)?;
    // A generation whose manifest cannot be read is opened by nobody.
    let previous = Manifest::read_generation(folder, current.generation - 1).ok();
    let remark = garbage::collected(fs, folder, &current, previous.as_ref());
    Ok(RemovedSnapshot { generation: known.whole.get(name).map(|manifest| named(name.to_owned(), manifest)), remark })
}

/// The generations that can be opened by number, ascending.
pub fn generations(folder: &Path, current: &Manifest) -> Result<Vec<u64>> {
    let place = folder.join(GENERATIONS);
    let opened = Folder::open(folder).and_then(|folder| folder.folder(GENERATIONS)).at(&place)?;
    let names = opened.names().at(&place)?;
    let mut known: Vec<u64> = names.iter().filter_map(|name| names::manifest(name)).collect();
    known.retain(|generation| *generation <= current.generation); // above: a commit that was cut short
    known.sort_unstable();
    Ok(known)
}

fn named(name: String, manifest: &Manifest) -> NamedGeneration {
    NamedGeneration { name, generation: manifest.generation, n_segments: manifest.segments.len() }
}

fn listed(names: impl IntoIterator<Item = impl ToString>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
