//! Hashes of large files, and checks that devices passed, remembered from one start to the next, so that opening an
//! encoder does not read all of it twice.
//!
//! A file is the same as long as its device, inode, size, time of writing and time of change are: the last of these no
//! program can set back. A file that changed moments ago is not remembered, because two changes may fall on one tick of
//! the clock.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cento_collection::fs::{Fs, read_bounded};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A longer record is none.
const BYTES_MAX: u64 = 1 << 16;
/// Smaller files are hashed sooner than looked up.
const REMEMBERED_BYTES_MIN: u64 = 8 << 20;
/// Age of the last change before which a file is not remembered; clocks of file systems tick every two seconds at
/// worst.
const SETTLED: Duration = Duration::from_secs(3);

/// The hashes that are remembered on this machine.
#[derive(Debug)]
pub struct Hashes<'a> {
    folder: Option<PathBuf>,
    fs: &'a dyn Fs,
}

/// A hash, and the file it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    identity: Identity,
    hash: [u8; 32],
}

/// Differs when a file was written to, replaced or set back to an earlier time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    device: u64,
    inode: u64,
    n_bytes: u64,
    /// Seconds and nanoseconds since 1970.
    written: (i64, i64),
    changed: (i64, i64),
}

impl<'a> Hashes<'a> {
    /// Those in `folder`; without one, nothing is remembered.
    #[must_use]
    pub fn new(folder: Option<PathBuf>, fs: &'a dyn Fs) -> Self {
        Self { folder, fs }
    }

    /// Gives the hash of the open `file` at `path`: by `hash`, or as it was when the file was the same.
    ///
    /// # Errors
    /// Those of `hash`; a hash that cannot be remembered is worked out again the next time.
    pub fn of(&self, path: &Path, file: &File, hash: &mut dyn FnMut() -> io::Result<[u8; 32]>) -> io::Result<[u8; 32]> {
        let Some((place, identity)) = self.place(path).zip(Identity::of(file)) else { return hash() };
        if let Some(known) = read(&place).filter(|known| known.identity == identity) {
            return Ok(known.hash);
        }
        let hash = hash()?;
        if identity.is_settled() && Identity::of(file) == Some(identity) {
            let _ = self.write(&place, &Remembered { identity, hash });
        }
        Ok(hash)
    }

    /// True if [`Hashes::remember_pass`] was told of that check of a device, on this machine.
    #[must_use]
    pub fn has_passed(&self, check: &str) -> bool {
        let read = |place: PathBuf| read_bounded(&place, BYTES_MAX).ok();
        self.place_of_check(check).and_then(read).is_some_and(|kept| kept == check.as_bytes())
    }

    /// Remembers a check that a device passed; what cannot be written is checked again the next time.
    pub fn remember_pass(&self, check: &str) {
        if let Some(place) = self.place_of_check(check) {
            let _ = self.write_bytes(&place, check.as_bytes());
        }
    }

    fn place_of_check(&self, check: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("check-{}", digest(check.as_bytes()))))
    }

    /// Where the hash of the file at `path` is remembered.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        let path = std::fs::canonicalize(path).ok()?;
        Some(self.folder.as_ref()?.join(digest(path.as_os_str().as_encoded_bytes())))
    }

    /// Remembers a file whatever its age.
    #[cfg(test)]
    pub(crate) fn settle(&self, path: &Path, file: &File, hash: [u8; 32]) {
        let (place, identity) = self.place(path).zip(Identity::of(file)).expect("a large file");
        self.write(&place, &Remembered { identity, hash }).expect("a folder that can be written");
    }

    fn write(&self, place: &Path, remembered: &Remembered) -> io::Result<()> {
        self.write_bytes(place, &serde_json::to_vec(remembered)?)
    }

    fn write_bytes(&self, place: &Path, bytes: &[u8]) -> io::Result<()> {
        let Some(folder) = place.parent() else { return Ok(()) };
        self.fs.create_dir(folder)?;
        let new = place.with_extension(std::process::id().to_string());
        let mut file = self.fs.create(&new)?;
        file.write_all(bytes)?;
        file.sync()?;
        self.fs.rename(&new, place)
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(place: &Path) -> Option<Remembered> {
    serde_json::from_slice(&read_bounded(place, BYTES_MAX).ok()?).ok()
}

impl Identity {
    /// Nothing for a small file, and where the system does not say when a file changed.
    #[cfg(unix)]
    fn of(file: &File) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = file.metadata().ok().filter(|metadata| metadata.len() >= REMEMBERED_BYTES_MIN)?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            n_bytes: metadata.len(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    fn of(_: &File) -> Option<Self> {
        None
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
        now.saturating_sub(self.written.0.max(self.changed.0)) >= SETTLED.as_secs() as i64
    }
}
