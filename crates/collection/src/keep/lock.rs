//! One writer at a time: an advisory lock on the collection's `LOCK` file, released by the system however the process
//! ends.
//!
//! Some file systems keep locks to the machine. So the file holds, while a writer lives, the name of its machine and of
//! itself. Who finds another machine's there goes on, since that writer may be dead, but touches nothing that it may be
//! making; and the one whose name is gone from the file may change nothing any more.
//!
//! A writer writes through its lock. Files are named by their paths, and a path may come to lead elsewhere: to nothing,
//! where a collection was moved, or to another collection. The lock file that is held says which is ours.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{AtPath, Error, Result};
use crate::format::layout::LOCK;
use crate::fs::{self, Access, Folder, Fs};

/// The right to write, held as long as it lives, and the file system to write with: it refuses once the collection is
/// elsewhere.
#[derive(Debug)]
pub struct WriterLock<'a> {
    path: PathBuf,
    file: File,
    /// Its machine and itself, as the file says.
    token: String,
    /// The file named a writer of another machine.
    is_contested: bool,
    fs: &'a dyn Fs,
    /// The same below the folder that holds the lock file.
    within: Option<Folder>,
}

impl<'a> WriterLock<'a> {
    /// Takes the lock of the collection at `folder`, or says that another writer has it.
    pub fn acquire(folder: &Path, fs: &'a dyn Fs) -> Result<Self> {
        let path = folder.join(LOCK);
        let folder = Folder::open(folder).at(folder)?;
        let mut file = folder.file(LOCK, Access::WriteOrCreate).map_err(|reason| Error::writing(&path, reason))?;
        match fs.try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path }),
            Err(TryLockError::Error(source)) => return Err(Error::Io { path, source }),
        }
        let machine = fs.machine();
        let found = read_token(&file).at(&path)?;
        let holder = found.strip_prefix(TOKEN).and_then(|words| words.split_whitespace().next());
        let is_contested = holder.is_some_and(|holder| holder != machine);
        let token = write_token(&mut file, token(&machine)).map_err(|reason| Error::writing(&path, reason))?;
        Ok(Self { path, file, token, is_contested, fs, within: fs.is_system().then_some(folder) })
    }

    /// That no other writer has taken the file over.
    fn check_token(&self) -> io::Result<()> {
        let opened = match &self.within {
            Some(folder) => folder.file(LOCK, Access::Read), // opened anew: what is open may be remembered
            None => File::open(&self.path),
        };
        match opened.and_then(|file| read_token(&file))? == self.token {
            true => Ok(()),
            false => Err(io::Error::other(
                "another writer has begun meanwhile, on a machine that does not see this lock; run the command again",
            )),
        }
    }

    /// The result of a writer, or the error that its collection is elsewhere, if that is why it failed.
    pub fn explained<T, E: From<Error>>(&self, ended: Result<T, E>) -> Result<T, E> {
        match (ended, self.check()) {
            (Err(_), Err(source)) => Err(Error::Io { path: self.path.clone(), source }.into()),
            (ended, _) => ended,
        }
    }

    /// The file system to read with.
    fn fs(&self) -> &dyn Fs {
        self.within.as_ref().map_or(self.fs, |folder| folder)
    }

    /// The file system to write with, if the collection is where it was and no other writer has begun.
    fn checked(&self) -> io::Result<&dyn Fs> {
        self.check()?;
        self.check_token()?;
        Ok(self.fs())
    }

    /// That the path still leads to the file that is locked.
    #[cfg(unix)]
    fn check(&self) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;

        let held = self.file.metadata()?;
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (held.dev(), held.ino()) => Ok(()),
            Ok(_) => Err(moved()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(moved()),
            Err(error) => Err(error),
        }
    }

    /// A folder with an open file in it cannot be moved.
    #[cfg(not(unix))]
    fn check(&self) -> io::Result<()> {
        self.file.metadata().map(drop)
    }
}

impl Drop for WriterLock<'_> {
    fn drop(&mut self) {
        // What stays behind names a writer that is no more, and costs the next one of another machine a little room.
        if read_token(&self.file).is_ok_and(|found| found == self.token) {
            let _ = self.file.set_len(0);
        }
    }
}

/// The first word of the file while a writer lives.
const TOKEN: &str = "writer ";

/// Bytes of the file that are read, at most.
const TOKEN_BYTES_MAX: u64 = 256;

/// A name for one writer among all.
fn token(machine: &str) -> String {
    static WRITERS: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{TOKEN}{machine} {} {since} {}\n", std::process::id(), WRITERS.fetch_add(1, Ordering::Relaxed))
}

/// Puts a name into the file, and returns it; none where the disk is full, since a writer may be there to make room.
fn write_token(file: &mut File, token: String) -> io::Result<String> {
    file.set_len(0)?;
    file.rewind()?;
    match file.write_all(token.as_bytes()) {
        Ok(()) => Ok(token),
        Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            file.set_len(0)?;
            Ok(String::new())
        }
        Err(error) => Err(error),
    }
}

fn read_token(mut file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(TOKEN_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn moved() -> io::Error {
    io::Error::other(
        "the collection was moved away or replaced while it was being written; run the command again where it is now",
    )
}

impl Fs for WriterLock<'_> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn fs::File>> {
        self.checked()?.create(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.checked()?.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.fs().list(path)
    }

    fn create_new_dir(&self, path: &Path) -> io::Result<()> {
        self.checked()?.create_new_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.checked()?.rename(from, to)
    }

    fn is_contested(&self) -> bool {
        self.is_contested
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.checked()?.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.checked()?.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.checked()?.remove_dir(path)
    }
}
