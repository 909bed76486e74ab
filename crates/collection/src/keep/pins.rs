//! Pins: a reader holds the generation it opened, so that no writer removes a file under it.
//!
//! `pins/<generation>` is an empty file that the commit of the generation makes. A reader takes a shared advisory lock
//! on it before it opens anything and holds it until it is dropped, however its process ends; garbage collection takes
//! the lock alone, and keeps the files of every generation where it does not get it. Neither waits for the other: a
//! writer passes over what is held, and a reader that comes while a generation is removed finds the next one.
//!
//! A hold ends [`HELD_FOR`] after the next generation was committed.
//!
//! A collection that was copied, or that lies where nothing can be locked, is read without a pin.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{AtPath, Error, Result};
use crate::format::layout::PINS;
use crate::format::names;
use crate::fs::{Access, Folder, Fs};

/// The time for which a reader holds a generation that another has taken the place of: a process that hangs, or that
/// anybody else started who may read the collection, would else hold its garbage for ever.
const HELD_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// A reader's hold on a generation, as long as it lives.
#[derive(Debug)]
pub struct Pin {
    _file: File,
}

impl Pin {
    /// Takes hold of a generation; `None` where there is nothing to hold, or where the file system has no locks.
    pub fn take(folder: &Path, generation: u64) -> Option<Self> {
        let file = Folder::open(folder).ok()?.file(format!("{PINS}/{generation}"), Access::Read).ok()?;
        file.lock_shared().ok()?;
        Some(Self { _file: file })
    }
}

/// Makes the file that readers of a generation will hold; before its manifest is published.
pub fn create(fs: &dyn Fs, folder: &Path, generation: u64) -> Result<()> {
    let pins = folder.join(PINS);
    if !pins.is_dir() {
        fs.create_dir(&pins).at(&pins)?;
    }
    let path = path(folder, generation);
    fs.create(&path).at(&path)?.sync().at(&path)?;
    fs.sync_dir(&pins).at(&pins)
}

/// The pins that no reader holds, locked so that none takes hold of them; they can be removed.
#[derive(Debug, Default)]
pub struct Free {
    pins: Vec<(PathBuf, File)>,
}

impl Free {
    /// Removes the files, then lets go of them.
    pub fn remove(self, fs: &dyn Fs) -> Result<()> {
        self.pins.iter().try_for_each(|(path, _)| fs.remove_file(path).at(path))
    }
}

/// The generations outside `kept` that readers hold, and the pins of the others.
pub fn held(fs: &dyn Fs, folder: &Path, kept: &BTreeSet<u64>) -> Result<(BTreeSet<u64>, Free)> {
    let (mut held, mut free) = (BTreeSet::new(), Free::default());
    let pins = folder.join(PINS);
    let names = fs.list(&pins).at(&pins)?;
    let opened = Folder::open(folder).and_then(|folder| folder.folder(PINS)).at(&pins)?;
    let mut generations: Vec<u64> = names.iter().filter_map(|name| names::generation(name)).collect();
    generations.sort_unstable();
    for (n, &generation) in generations.iter().enumerate().filter(|(_, generation)| !kept.contains(generation)) {
        let path = path(folder, generation);
        let Ok(file) = opened.file(generation.to_string(), Access::Write) else {
            continue; // a link or a pipe: no reader holds it
        };
        match file.try_lock() {
            Ok(()) => free.pins.push((path, file)),
            Err(TryLockError::WouldBlock) => {
                let next = generations.get(n + 1).map(|next| opened.file(next.to_string(), Access::Read));
                match next.transpose().ok().flatten().is_some_and(|next| is_past(&next)) {
                    true => free.pins.push((path, file)),
                    false => drop(held.insert(generation)),
                }
            }
            Err(TryLockError::Error(source)) => return Err(Error::Io { path, source }),
        }
    }
    Ok((held, free))
}

/// Tells whether the generation of this pin was committed so long ago that readers of the one before count no more.
/// They go on with the files that they have mapped, and the next one finds a newer generation.
fn is_past(next: &File) -> bool {
    let committed = next.metadata().and_then(|metadata| metadata.modified());
    committed.is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed > HELD_FOR))
}

fn path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(PINS).join(generation.to_string())
}
