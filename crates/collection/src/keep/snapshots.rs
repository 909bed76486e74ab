//! Snapshots: generations with a name, kept until it is taken away; and which generation a reader asks for.
//!
//! `snapshots/<name>.json` is a copy of the generation's manifest. Garbage collection keeps what it names.

use std::path::Path;

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
                known.remove(name).ok_or_else(|| Error::UnknownSnapshot {
                    name: name.clone(),
                    known: listed(known.keys().collect::<Vec<_>>()),
                })
            }
        }
    }
}

/// A named generation.
#[derive(Debug, Clone, Serialize)]
pub struct NamedGeneration {
    /// Its name.
    pub name: String,
    /// Its number.
    pub generation: u64,
    /// Segments it has.
    pub n_segments: usize,
}

/// The snapshots of the collection at `folder`, by name.
pub fn snapshots(folder: &Path) -> Result<Vec<NamedGeneration>> {
    Manifest::read(folder)?; // says that there is no collection
    Ok(all(folder)?.into_iter().map(|(name, manifest)| named(name, &manifest)).collect())
}

/// Names the current generation, so that it stays.
pub fn create_snapshot(folder: &Path, name: &str, fs: &dyn Fs) -> Result<NamedGeneration> {
    check_name(name)?;
    Manifest::read(folder)?;
    let fs = &WriterLock::acquire(folder, fs)?;
    let manifest = Manifest::read(folder)?;
    if let Some(taken) = all(folder)?.get(name) {
        return Err(Error::SnapshotTaken { name: name.to_owned(), generation: taken.generation });
    }
    let place = folder.join(SNAPSHOTS);
    if !place.is_dir() {
        fs.create_dir(&place).at(&place)?;
        fs.sync_dir(folder).at(folder)?;
    }
    write_atomically(fs, &place.join(format!("{name}.json")), &manifest.seal())?;
    Ok(named(name.to_owned(), &manifest))
}

/// Takes a name away, and removes what only its generation named.
pub fn remove_snapshot(folder: &Path, name: &str, fs: &dyn Fs) -> Result<NamedGeneration> {
    Manifest::read(folder)?;
    let fs = &WriterLock::acquire(folder, fs)?;
    let current = Manifest::read(folder)?;
    let mut known = all(folder)?;
    let Some(manifest) = known.remove(name) else {
        let known = listed(known.keys().collect::<Vec<_>>());
        return Err(Error::UnknownSnapshot { name: name.to_owned(), known });
    };
    let place = folder.join(SNAPSHOTS);
    let path = place.join(format!("{name}.json"));
    fs.remove_file(&path).at(&path)?;
    fs.sync_dir(&place).at(&place)?;
    let previous = current.generation - 1;
    let previous =
        generations(folder, &current)?.contains(&previous).then(|| Manifest::read_generation(folder, previous));
    garbage::collect(fs, folder, &current, previous.transpose()?.as_ref())?;
    Ok(named(name.to_owned(), &manifest))
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
