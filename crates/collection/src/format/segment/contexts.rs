//! The contexts that a language model wrote for chunks: a line each, which stands behind the header for the encoder and
//! for BM25. They are kept, since nobody else would write the same again.

use std::io;
use std::path::Path;

use cento_vector as vector;

use super::files::CONTEXTS;
use super::records::ContextRecord;
use crate::error::{Error, Result};
use crate::format::table::{Table, TableWriter};
use crate::fs::{Folder, Fs};

/// A header with a context, a line, behind it.
#[must_use]
pub fn with_context(header: &str, context: &str) -> String {
    if context.is_empty() { header.to_owned() } else { format!("{header}{context}\n") }
}

/// Contexts of the rows of a segment; without a file where no row has any.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    table: Option<Table<ContextRecord>>,
}

impl Contexts {
    /// Opens the file, if there is one; reads header and block table only.
    pub(super) fn open(folder: &Folder) -> Result<Self> {
        match folder.map(CONTEXTS.1, &[CONTEXTS.0]) {
            Err(vector::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            mapped => Ok(Self { table: Some(Table::of(mapped?)?) }),
        }
    }

    /// Holds the file against the number of rows.
    pub(super) fn check(&self, n_rows: usize) -> Result<()> {
        match &self.table {
            Some(table) if table.len() != n_rows => {
                Err(table.corrupt(format!("{} contexts for {n_rows} rows", table.len())))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The context of a row that has one.
    pub(super) fn of(&self, row: usize) -> Result<&str> {
        match &self.table {
            Some(table) => table.text(table.record(row)?.text),
            None => {
                let reason = "the file is missing, and chunks of this collection have contexts".to_owned();
                Err(Error::Corrupt { path: CONTEXTS.1.into(), reason })
            }
        }
    }

    /// The mapped file, if there is one.
    pub(super) fn file(&self) -> Option<&vector::file::Mapped> {
        self.table.as_ref().map(Table::file)
    }

    /// Bytes of records and texts.
    pub(super) fn n_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, Table::n_bytes)
    }

    /// The file's name and its check, if there is one.
    pub(super) fn verify(&self) -> Option<(&'static str, Result<()>)> {
        self.table.as_ref().map(|table| (CONTEXTS.1, table.verify()))
    }
}

/// Gathers the contexts of a segment's rows.
#[derive(Debug)]
pub(super) struct ContextsWriter {
    table: TableWriter<ContextRecord>,
    has_any: bool,
}

impl ContextsWriter {
    pub(super) fn new() -> Self {
        Self { table: TableWriter::new(), has_any: false }
    }

    /// Bytes of memory that records and texts take.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes()
    }

    /// Adds the context of the next row.
    pub(super) fn push(&mut self, context: &str) {
        self.has_any |= !context.is_empty();
        let text = self.table.text(context);
        self.table.push(ContextRecord { text });
    }

    /// Writes and syncs the file, unless no row has a context.
    pub(super) fn write(self, fs: &dyn Fs, folder: &Path) -> Result<()> {
        if !self.has_any {
            return Ok(());
        }
        self.table.write(fs, &folder.join(CONTEXTS.1), CONTEXTS.0)
    }
}
