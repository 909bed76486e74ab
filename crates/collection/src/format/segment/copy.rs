//! A segment copied as it is: file by file, each verified before it is copied, and synced.
//!
//! Cost: every byte is read twice, once for its checksum, and written once.

use std::io::Read;
use std::path::Path;

use super::files::LEXICAL;
use super::open::Segment;
use crate::error::{AtPath, Result};
use crate::fs::{Access, Folder, Fs};

/// Bytes that are in memory at a time.
const BUFFER_BYTES: usize = 1 << 20;

impl Segment {
    /// Copies its files from the folder that it was opened in into a new one, which has a folder for postings; the
    /// bytes that were copied.
    ///
    /// # Errors
    /// A file is damaged, or cannot be read or written.
    pub(crate) fn copy(&self, from: &Folder, fs: &dyn Fs, to: &Path) -> Result<u64> {
        let mut n_bytes = 0;
        for (name, verified) in self.verify() {
            verified?;
            n_bytes += match name {
                LEXICAL => copy_lexical(from, fs, to)?,
                file => copy_file(from, file, fs, to)?,
            };
        }
        fs.sync_dir(to).at(to)?;
        Ok(n_bytes)
    }
}

fn copy_lexical(from: &Folder, fs: &dyn Fs, to: &Path) -> Result<u64> {
    let (from, to) = (from.folder(LEXICAL).at(&from.path().join(LEXICAL))?, to.join(LEXICAL));
    let mut n_bytes = 0;
    for name in from.names().at(from.path())? {
        n_bytes += copy_file(&from, &name, fs, &to)?;
    }
    fs.sync_dir(&to).at(&to)?;
    Ok(n_bytes)
}

fn copy_file(from: &Folder, name: &str, fs: &dyn Fs, to: &Path) -> Result<u64> {
    let (from_path, to) = (from.path().join(name), to.join(name));
    let mut source = from.file(name, Access::Read).at(&from_path)?;
    let mut out = fs.create(&to).at(&to)?;
    let (mut buffer, mut n_bytes) = (vec![0; BUFFER_BYTES], 0);
    loop {
        let n_read = source.read(&mut buffer).at(&from_path)?;
        if n_read == 0 {
            out.sync().at(&to)?;
            return Ok(n_bytes);
        }
        out.write_all(&buffer[..n_read]).at(&to)?;
        n_bytes += n_read as u64;
    }
}
