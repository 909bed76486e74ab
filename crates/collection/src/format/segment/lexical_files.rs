//! The files of a lexical segment, each in the checksummed container, as `lexical` asks for them.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use cento_lexical::{self as lexical, OwnedBytes};
use cento_vector::file;

use super::files::LEXICAL_KIND;
use crate::error::{AtPath, Result};
use crate::fs::Folder;

/// Ends of the names of the files that tantivy goes on reading without asking for the bytes again: its dictionaries.
const HELD: [&str; 1] = [".term"];

/// The files, by name.
#[derive(Debug)]
pub(crate) struct LexicalFiles {
    files: BTreeMap<String, Arc<LexicalFile>>,
}

#[derive(Debug)]
struct LexicalFile(file::Mapped);

impl LexicalFiles {
    pub(crate) fn open(folder: &Folder) -> Result<Self> {
        let mut files = BTreeMap::new();
        for name in folder.names().at(folder.path())? {
            let mapped = folder.map(&name, &[LEXICAL_KIND])?;
            files.insert(name, Arc::new(LexicalFile(mapped)));
        }
        Ok(Self { files })
    }

    /// As [`Mapped::renew`](file::Mapped::renew); what tantivy holds of a file is verified here, since it will not ask
    /// again.
    pub(crate) fn renew(&self, now: Instant) -> Result<()> {
        for (name, file) in &self.files {
            if file.0.renew(now)? && HELD.iter().any(|held| name.ends_with(held)) {
                file.0.verify()?;
            }
        }
        Ok(())
    }

    /// The mapped files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &file::Mapped> {
        self.files.values().map(|file| &file.0)
    }

    pub(crate) fn n_bytes(&self) -> usize {
        self.files.values().map(|file| file.0.len()).sum()
    }

    pub(crate) fn verify(&self) -> Result<()> {
        self.files.values().try_for_each(|file| Ok(file.0.verify()?))
    }
}

impl lexical::Files for LexicalFiles {
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn lexical::File>>> {
        Ok(self.files.get(name).map(|file| file.clone() as Arc<dyn lexical::File>))
    }

    fn names(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }
}

impl lexical::File for LexicalFile {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.0.bytes(range.clone()).map_err(io::Error::other)?; // verifies the blocks of the range
        Ok(OwnedBytes::new(self.0.clone()).slice(range))
    }
}
