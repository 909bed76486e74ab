//! One file on its way in: never longer than its card says, and on the disk before it counts.

use std::io::Read;
use std::path::{Path, PathBuf};

use cento_collection::fs::{File, Fs};

use crate::card::CardFile;
use crate::error::{AtPath, Error, Failure, Halt};

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 18;

/// A file of a card that is being written.
pub(crate) struct Incoming<'a> {
    card_file: &'a CardFile,
    path: PathBuf,
    out: Box<dyn File>,
    n_bytes: u64,
}

impl<'a> Incoming<'a> {
    /// Makes the file and its folders below `folder`, unless the source announces more than the card says.
    pub(crate) fn create(
        fs: &dyn Fs,
        folder: &Path,
        card_file: &'a CardFile,
        announced_bytes: Option<u64>,
    ) -> Result<Self, Halt> {
        if announced_bytes.is_some_and(|announced| announced > card_file.size_bytes) {
            return Err(too_long(card_file, announced_bytes).into());
        }
        let path = folder.join(&card_file.path);
        if let Some(parent) = path.parent() {
            fs.create_dir(parent).at(parent)?;
        }
        let out = fs.create(&path).at(&path)?;
        Ok(Self { card_file, path, out, n_bytes: 0 })
    }

    /// Appends what came.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        self.n_bytes += bytes.len() as u64;
        if self.n_bytes > self.card_file.size_bytes {
            return Err(too_long(self.card_file, None).into());
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

fn too_long(file: &CardFile, announced_bytes: Option<u64>) -> Failure {
    Failure::TooLong { path: file.path.clone(), announced_bytes, limit_bytes: file.size_bytes }
}
