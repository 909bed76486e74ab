//! Readers: how each file format becomes documents.
//!
//! A file that is one document is read up to a limit; JSONL is streamed, with a limit for each record. What one
//! document may cost is in [`crate::budget`].

mod options;
mod decoded;

mod csv;
mod encoding;
mod front_matter;
mod html;
mod jsonl;
mod markdown;
pub(crate) mod parts;
mod records;
mod text;

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::budget::Excess;
use crate::document::Document;
use crate::error::{Error, Result};
use crate::folder::FoundFile;
use crate::format::{Format, ReadAs};
use crate::metadata::Metadata;

use self::decoded::{Decoded, decode_lossily, file_stem};
use self::encoding::Input;
pub(crate) use self::encoding::is_utf16;
use self::options::NotUtf8;
pub use self::options::{LINE_BYTES_MAX, MAX_FILE_BYTES, ReadOptions};
pub use self::records::{Record, Records};

/// Opens a file that [`crate::walk`] found and reads its documents one by one.
///
/// # Errors
/// The file cannot be opened; a file that is read whole cannot be read, is not UTF-8 or is too long. What is wrong with
/// one line of JSONL comes from the iterator, which goes on after it.
pub fn read(file: &FoundFile, options: &ReadOptions) -> Result<Documents> {
    let open = || File::open(&file.path).map_err(Error::io(&file.path));
    let whole = |document: fn(Decoded, &FoundFile) -> Result<Document, Excess>| {
        let source = Decoded::read(open()?, &file.path, options)?;
        let n_bytes = source.text.len() as u64;
        let document = within_budgets(document(source, file), n_bytes, &file.path)?;
        Ok(Documents { source: Source::One { document: Some(Box::new(document)), notes: Vec::new() } })
    };
    match file.format {
        Format::Markdown => whole(|source, file| markdown::document(source, &file.origin)),
        Format::Text => whole(|source, file| text::document(source, &file.origin, &file.path)),
        Format::Html => whole(|source, file| html::document(source, &file.origin)),
        Format::Jsonl => {
            let (input, warnings) = Input::open(open()?, &file.path, options)?;
            let lines = jsonl::Lines::new(input, file, options.not_utf8()).with_warnings(warnings);
            Ok(Documents { source: Source::Jsonl(Box::new(lines)) })
        }
        Format::Csv => {
            let (input, warnings) = Input::open(open()?, &file.path, options)?;
            let (mut document, notes) = csv::read(input, file, options)?;
            document.warnings.splice(..0, warnings);
            Ok(Documents { source: Source::One { document: Some(Box::new(document)), notes } })
        }
    }
}

/// The document, unless it exceeds a budget.
fn within_budgets(document: Result<Document, Excess>, n_bytes: u64, path: &Path) -> Result<Document> {
    let checked = document.and_then(|document| document.within_budgets(n_bytes).map(|()| document));
    checked.map_err(|excess| excess.at(path, None))
}

/// Reads one Markdown, text or HTML document from `bytes`, as if from a file at `origin`.
///
/// # Errors
/// The bytes are no text, or the document exceeds a budget.
pub fn parse(bytes: Vec<u8>, origin: &str, format: impl Into<ReadAs>) -> Result<Document> {
    let path = PathBuf::from(origin);
    let source = Decoded::new(bytes, &path, &ReadOptions::default())?;
    let n_bytes = source.text.len() as u64;
    let document = match format.into().of_file(&path) {
        Format::Markdown => markdown::document(source, origin),
        Format::Html => html::document(source, origin),
        Format::Text | Format::Jsonl | Format::Csv => text::document(source, origin, &path),
    };
    within_budgets(document, n_bytes, &path)
}

/// The documents of one file, in file order.
#[derive(Debug)]
pub struct Documents {
    source: Source,
}

#[derive(Debug)]
enum Source {
    One { document: Option<Box<Document>>, notes: Vec<String> },
    Jsonl(Box<jsonl::Lines<Input>>),
}

impl Documents {
    /// The reader's decisions for this file, in words: the JSON keys used, the separator of a table. Complete once the
    /// iterator has ended.
    pub fn notes(&self) -> Vec<String> {
        match &self.source {
            Source::One { notes, .. } => notes.clone(),
            Source::Jsonl(lines) => lines.notes(),
        }
    }
}

impl Iterator for Documents {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::One { document, .. } => document.take().map(|document| Ok(*document)),
            Source::Jsonl(lines) => lines.next(),
        }
    }
}
