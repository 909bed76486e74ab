//! The operations that a commit depends on, and the operating system's own.

use std::fmt::Debug;
use std::fs::TryLockError;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{AtPath, Result};

/// A file being written.
pub trait File: Write + Seek + Send {
    /// Waits until everything written is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file operations of a collection.
pub trait Fs: Send + Sync + Debug {
    /// A new, empty file in the place of an old one of that name, or of a link.
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
    /// Makes a folder that must not be there.
    fn create_new_dir(&self, path: &Path) -> io::Result<()> {
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.create_dir(path)
    }
    /// Takes the lock of a file, without waiting.
    fn try_lock(&self, file: &std::fs::File) -> std::result::Result<(), TryLockError> {
        file.try_lock()
    }
    /// The machine whose processes see each other's locks: another after each start of it.
    fn machine(&self) -> String {
        super::machine::name()
    }
    /// True where a writer on another machine may be at work on the same collection, whose lock is not seen here.
    fn is_contested(&self) -> bool {
        false
    }
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
        // A link that lies there, as anybody may plant one, is replaced and not followed.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => Ok(Box::new(std::fs::File::options().write(true).create_new(true).open(path)?)),
        }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn create_new_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
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
/// new one, and so does a disk that is full.
///
/// # Errors
/// `Io`, with the path of the step that failed.
pub fn write_atomically(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let mut file = Replacement::create(fs, path, PathBuf::from(temporary))?;
    file.write_all(bytes).at(&file.temporary)?;
    file.publish()
}

/// A file that is written beside its place, and takes it when it is whole. Dropped before, it leaves nothing.
pub struct Replacement<'f> {
    fs: &'f dyn Fs,
    path: PathBuf,
    temporary: PathBuf,
    /// Taken once it is in its place.
    file: Option<Box<dyn File>>,
}

impl<'f> Replacement<'f> {
    /// Starts the file that is to take the place at `path`, under another name in the same folder.
    ///
    /// # Errors
    /// `Io`, with the path of the temporary file.
    pub fn create(fs: &'f dyn Fs, path: &Path, temporary: PathBuf) -> Result<Self> {
        let file = fs.create(&temporary).at(&temporary)?;
        Ok(Self { fs, path: path.to_owned(), temporary, file: Some(file) })
    }

    /// The file as it is called until it is whole.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the file, moves it to its place and syncs the folder.
    ///
    /// # Errors
    /// `Io`, with the path of the step that failed.
    pub fn publish(mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.sync().at(&self.temporary)?;
        }
        let file = self.file.take();
        drop(file);
        if let Err(error) = self.fs.rename(&self.temporary, &self.path) {
            let _ = self.fs.remove_file(&self.temporary); // or the next one writes over it
            return Err(error).at(&self.path);
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.fs.sync_dir(folder).at(folder)
    }

    fn file(&mut self) -> &mut dyn File {
        self.file.as_deref_mut().expect("it is taken when the replacement is used up")
    }
}

impl Write for Replacement<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl Seek for Replacement<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file().seek(to)
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = self.fs.remove_file(&self.temporary); // or the next one writes over it
        }
    }
}

/// Makes a folder and its parents; each folder that gets a new one is synced, so that a power loss takes none away.
///
/// # Errors
/// `Io`, with the path of the step that failed.
pub fn create_folders(fs: &dyn Fs, path: &Path) -> Result<()> {
    let n_missing = path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).count();
    fs.create_dir(path).at(path)?;
    sync_parents(fs, path, n_missing)
}

/// Syncs the folders that hold the last `n_new` names of a path, which are new.
///
/// # Errors
/// `Io`, with the path of the step that failed.
pub fn sync_parents(fs: &dyn Fs, path: &Path, n_new: usize) -> Result<()> {
    let whole = path.canonicalize().or_else(|_| std::path::absolute(path)).at(path)?;
    for folder in whole.ancestors().skip(1).take(n_new) {
        fs.sync_dir(folder).at(folder)?;
    }
    Ok(())
}
