//! One file on its way in: never longer than its card says, and on the disk before it counts.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cento_collection::fs::{File, Fs};

use crate::card::CardFile;
use crate::error::{AtPath, Error, Failure, Halt};

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 18;
/// Ends the name of what an interrupted writing left, while it is copied.
const LEFT: &str = ".left";

/// A file of a model that is being written.
pub(crate) struct Incoming {
    /// As the card names it.
    name: String,
    size_bytes: u64,
    path: PathBuf,
    out: Box<dyn File>,
    n_bytes: u64,
}

impl Incoming {
    /// Makes the file and its folders below `folder`, unless the source announces more than the card says.
    pub(crate) fn create(
        disk: &dyn Fs,
        folder: &Path,
        card_file: &CardFile,
        announced_bytes: Option<u64>,
    ) -> Result<Self, Halt> {
        let (name, size_bytes) = (card_file.path.clone(), card_file.size_bytes);
        if announced_bytes.is_some_and(|announced| announced > size_bytes) {
            return Err(too_long(name, announced_bytes, size_bytes).into());
        }
        let path = folder.join(&name);
        if let Some(parent) = path.parent() {
            disk.create_dir(parent).at(parent)?;
        }
        let out = disk.create(&path).at(&path)?;
        Ok(Self { name, size_bytes, path, out, n_bytes: 0 })
    }

    /// The same file with what an interrupted writing left of it, which is copied: the file system appends to nothing.
    pub(crate) fn resume(disk: &dyn Fs, folder: &Path, name: &str, size_bytes: u64) -> Result<Self, Halt> {
        let path = folder.join(name);
        let mut left = path.clone().into_os_string();
        left.push(LEFT);
        let left = PathBuf::from(left);
        let length = |path: &Path| path.symlink_metadata().ok().filter(fs::Metadata::is_file).map(|file| file.len());
        if length(&path).is_some_and(|n_bytes| Some(n_bytes) > length(&left)) {
            disk.rename(&path, &left).at(&left)?;
        }
        let file = CardFile { path: name.to_owned(), size_bytes, sha256: String::new() };
        let mut incoming = Self::create(disk, folder, &file, None)?;
        if length(&left).is_some_and(|n_bytes| n_bytes <= size_bytes) {
            let old = fs::File::open(&left).at(&left)?;
            let broken = |source: &io::Error| Failure::Archive { what: name.to_owned(), reason: source.to_string() };
            incoming.write_all_of(old, broken)?;
        }
        if length(&left).is_some() {
            disk.remove_file(&left).at(&left)?;
        }
        Ok(incoming)
    }

    /// Appends what came.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        self.n_bytes += bytes.len() as u64;
        if self.n_bytes > self.size_bytes {
            return Err(too_long(self.name.clone(), None, self.size_bytes).into());
        }
        Ok(self.out.write_all(bytes).at(&self.path)?)
    }

    /// Appends all that `from` gives; its errors are `broken`.
    pub(crate) fn write_all_of(
        &mut self,
        mut from: impl Read,
        broken: impl Fn(&std::io::Error) -> Failure,
    ) -> Result<(), Halt> {
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => self.write(&buffer[..n])?,
                Err(error) => return Err(broken(&error).into()),
            }
        }
    }

    /// Bytes so far.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Waits until the file is on the disk; gives back its size.
    pub(crate) fn end(mut self) -> Result<u64, Error> {
        self.out.sync().at(&self.path)?;
        Ok(self.n_bytes)
    }
}

fn too_long(path: String, announced_bytes: Option<u64>, limit_bytes: u64) -> Failure {
    Failure::TooLong { path, announced_bytes, limit_bytes }
}
