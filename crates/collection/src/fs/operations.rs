//! The operations that a commit depends on, and the operating system's own.

use std::fmt::Debug;
use std::io::{self, Seek, Write};
use std::path::Path;

use crate::error::{AtPath, Result};

/// A file being written.
pub trait File: Write + Seek + Send {
    /// Waits until everything written is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file operations of a collection.
pub trait Fs: Send + Sync + Debug {
    /// A new, empty file; an old one of that name is emptied.
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>>;
    /// Makes the folder and its parents.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Names of what lies in a folder, ascending.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Atomic within one file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Waits until the folder's entries are on the disk.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder and what is in it.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// True where these are the operating system's own, so that those below an open folder may stand in for them.
    fn is_system(&self) -> bool {
        false
    }
}

/// The operating system's.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFs;

impl File for std::fs::File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Fs for OsFs {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(Box::new(std::fs::File::create(path)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = std::fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::File::open(path)?.sync_all()
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(path)
    }

    fn is_system(&self) -> bool {
        true
    }
}

/// Writes a file beside its place, syncs it, moves it there and syncs the folder: a crash leaves the old file or the
/// new one.
///
/// # Errors
/// `Io`, with the path of the step that failed.
pub fn write_atomically(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    let mut file = fs.create(temporary).at(temporary)?;
    file.write_all(bytes).at(temporary)?;
    file.sync().at(temporary)?;
    drop(file);
    fs.rename(temporary, path).at(path)?;
    fs.sync_dir(folder).at(folder)
}
