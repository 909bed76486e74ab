//! What the readers of this folder are given, and what they give back.

use std::cell::Cell;
use std::path::Path;

use super::super::decoded::file_stem;
use crate::budget::Excess;
use crate::document::Document;
use crate::error::Error;
use crate::extraction::Extraction;
use crate::format::Format;
use crate::read::options::ReadOptions;
use crate::read::password::Locked;

/// The bytes of one file, or of one that stands in another.
#[derive(Clone, Copy)]
pub(in crate::read) struct Part<'a> {
    pub(in crate::read) bytes: &'a [u8],
    /// Id of the document that is read from it; its last component is the name of the part.
    pub(in crate::read) id: &'a str,
    /// The file that it is, or that it stands in.
    pub(in crate::read) origin: &'a str,
    pub(in crate::read) options: &'a ReadOptions,
    pub(in crate::read) allowance: &'a Allowance,
}

/// Files in archives that are read of one file.
const ENTRIES_MAX: u64 = 4_096;

/// Bytes that are unpacked of the archives of one file, and bytes of text that come of them.
pub(super) const UNPACKED_BYTES_MAX: u64 = 128 << 20;

/// The rest that all archives in one file may cost together, those inside others too: nesting them multiplies nothing.
#[derive(Debug)]
pub(in crate::read) struct Allowance {
    entries: Cell<u64>,
    bytes: Cell<u64>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { entries: Cell::new(ENTRIES_MAX), bytes: Cell::new(UNPACKED_BYTES_MAX) }
    }
}

impl Allowance {
    /// Lets one more entry be looked at, unless nothing is left.
    pub(super) fn enter(&self) -> Result<(), String> {
        let left = self.entries.get().checked_sub(1);
        let left = left.ok_or_else(|| format!("{ENTRIES_MAX} files in archives were read before it"))?;
        self.entries.set(left);
        Ok(())
    }

    /// Lets so many bytes be unpacked, if they are left.
    pub(super) fn unpack(&self, n_bytes: u64) -> Result<(), String> {
        let left = self.bytes.get();
        let rest = left.checked_sub(n_bytes).ok_or_else(|| {
            format!("{n_bytes} bytes, and {left} are left of the {UNPACKED_BYTES_MAX} that are unpacked of one file")
        })?;
        self.bytes.set(rest);
        Ok(())
    }
}

/// Bytes of a name that are shown in a remark.
const SHOWN_NAME_BYTES: usize = 200;

/// A name in a remark: its beginning, in quotation marks.
pub(super) fn quoted(name: &str) -> String {
    match name.len() > SHOWN_NAME_BYTES {
        true => format!("{:?}…", &name[..name.floor_char_boundary(SHOWN_NAME_BYTES)]),
        false => format!("{name:?}"),
    }
}

impl Part<'_> {
    /// The title of last resort.
    pub(super) fn name(&self) -> String {
        file_stem(self.id)
    }
}

/// The result of a reading.
#[derive(Debug, Default)]
pub(in crate::read) struct Parsed {
    pub(in crate::read) documents: Vec<Document>,
    pub(in crate::read) extraction: Extraction,
}

impl Parsed {
    /// Adds what was read of a part of this name.
    pub(super) fn take(&mut self, name: &str, part: Self) {
        let Extraction { n_tables, n_images, unread, .. } = part.extraction;
        self.extraction.n_tables += n_tables;
        self.extraction.n_images += n_images;
        self.extraction.unread.extend(unread.into_iter().map(|unread| format!("{name}: {unread}")));
        self.documents.extend(part.documents);
    }

    /// One document.
    pub(in crate::read) fn one(document: Document, extraction: Extraction) -> Self {
        Self { documents: vec![document], extraction }
    }
}

/// Reads what stands in a file, in any format.
pub(in crate::read) type Inner<'r> = &'r dyn Fn(&Part<'_>, Format) -> Result<Parsed, Fault>;

/// The reason for which an encrypted part of a file is not read.
pub(super) const ENCRYPTED: &str = "encrypted";

/// Why nothing was read.
#[derive(Debug)]
pub(in crate::read) enum Fault {
    /// The bytes are encrypted.
    Encrypted(Locked),
    /// A parser gave up.
    Unparsed { engine: &'static str, reason: String },
    /// The document costs more than one may.
    Excess(Excess),
}

impl Fault {
    /// The reason in words.
    pub(in crate::read) fn reason(self) -> String {
        match self {
            Self::Encrypted(locked) => format!("{ENCRYPTED}: {locked}"),
            Self::Unparsed { engine, reason } => format!("{engine}: {reason}"),
            Self::Excess(Excess { what, n, limit }) => format!("{n} {what}, the limit is {limit}"),
        }
    }

    /// The error of the file at `path`.
    pub(in crate::read) fn at(self, path: &Path) -> Error {
        match self {
            Self::Encrypted(locked) => Error::Encrypted { path: path.to_owned(), locked },
            Self::Unparsed { engine, reason } => Error::Unparsed { path: path.to_owned(), engine, reason },
            Self::Excess(excess) => excess.at(path, None),
        }
    }
}

impl From<Excess> for Fault {
    fn from(excess: Excess) -> Self {
        Self::Excess(excess)
    }
}
