//! A folder held against its card: by sizes, at once, or by sha256, at the speed of the disk.

use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::card::{Card, CardFile};
use crate::error::{AtPath, Result};

/// Bytes read of a file at a time.
const READ_BYTES: usize = 1 << 20;

/// One file of a card, held against the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileCheck {
    /// Relative to the model's folder.
    pub path: String,
    /// The finding.
    #[serde(flatten)]
    pub state: FileState,
}

/// State of a file against its card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum FileState {
    /// As far as it was checked.
    Ok,
    /// No file of that name.
    Missing,
    /// Another size.
    Size {
        /// Bytes in the card.
        expected: u64,
        /// Bytes on the disk.
        found: u64,
    },
    /// The right size, other content.
    Checksum {
        /// The card's sha256.
        expected: String,
        /// The file's sha256.
        found: String,
    },
}

impl fmt::Display for FileCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        match &self.state {
            FileState::Ok => f.write_str("ok"),
            FileState::Missing => f.write_str("missing"),
            FileState::Size { expected, found } => write!(f, "{found} bytes, the card says {expected}"),
            FileState::Checksum { expected, found } => write!(f, "sha256 {found}, the card says {expected}"),
        }
    }
}

/// Every file by its size, in the card's order.
fn sizes(card: &Card, folder: &Path) -> Result<Vec<FileCheck>> {
    check(card, folder, size)
}

/// Every file by its size and sha256, in the card's order.
pub(crate) fn checksums(card: &Card, folder: &Path) -> Result<Vec<FileCheck>> {
    check(card, folder, |file, path| match size(file, path)? {
        FileState::Ok => {
            let found = sha256(path)?;
            let is_same = found == file.sha256;
            Ok(if is_same { FileState::Ok } else { FileState::Checksum { expected: file.sha256.clone(), found } })
        }
        fault => Ok(fault),
    })
}

/// The first file that is missing or of another size.
pub(crate) fn first_fault(card: &Card, folder: &Path) -> Result<Option<FileCheck>> {
    Ok(sizes(card, folder)?.into_iter().find(|check| check.state != FileState::Ok))
}

fn check(card: &Card, folder: &Path, state: impl Fn(&CardFile, &Path) -> Result<FileState>) -> Result<Vec<FileCheck>> {
    let check =
        |file: &CardFile| Ok(FileCheck { path: file.path.clone(), state: state(file, &folder.join(&file.path))? });
    card.files.iter().map(check).collect()
}

fn size(file: &CardFile, path: &Path) -> Result<FileState> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Ok(FileState::Missing),
        Ok(found) if found.len() == file.size_bytes => Ok(FileState::Ok),
        Ok(found) => Ok(FileState::Size { expected: file.size_bytes, found: found.len() }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(FileState::Missing),
        Err(error) => Err(error).at(path),
    }
}

/// Hexadecimal sha256 of a file.
pub(crate) fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).at(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer).at(path)? {
            0 => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            n => hash.update(&buffer[..n]),
        }
    }
}
