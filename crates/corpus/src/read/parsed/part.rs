//! What the readers of this folder are given, and what they give back.

use std::path::Path;

use super::super::decoded::file_stem;
use crate::budget::Excess;
use crate::document::Document;
use crate::error::Error;
use crate::extraction::Extraction;
use crate::format::Format;
use crate::read::options::ReadOptions;

/// The bytes of one file, or of one that stands in another.
#[derive(Clone, Copy)]
pub(in crate::read) struct Part<'a> {
    pub(in crate::read) bytes: &'a [u8],
    /// Id of the document that is read from it; its last component is the name of the part.
    pub(in crate::read) id: &'a str,
    /// The file that it is, or that it stands in.
    pub(in crate::read) origin: &'a str,
    pub(in crate::read) options: &'a ReadOptions,
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

/// Why nothing was read.
#[derive(Debug)]
pub(in crate::read) enum Fault {
    /// The bytes are encrypted.
    Encrypted,
    /// A parser gave up.
    Unparsed { engine: &'static str, reason: String },
    /// The document costs more than one may.
    Excess(Excess),
}

impl Fault {
    /// The reason in words.
    pub(in crate::read) fn reason(self) -> String {
        match self {
            Self::Encrypted => "encrypted".into(),
            Self::Unparsed { engine, reason } => format!("{engine}: {reason}"),
            Self::Excess(Excess { what, n, limit }) => format!("{n} {what}, the limit is {limit}"),
        }
    }

    /// The error of the file at `path`.
    pub(in crate::read) fn at(self, path: &Path) -> Error {
        match self {
            Self::Encrypted => Error::Encrypted { path: path.to_owned() },
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
