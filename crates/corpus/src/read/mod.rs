//! Readers: how each file format becomes documents.
//!
//! Markdown, text and HTML files are read whole, up to a limit; JSONL and CSV are streamed, with a limit for each
//! record.

mod options;
mod decoded;

mod csv;
mod front_matter;
mod html;
mod jsonl;
mod markdown;
mod records;
mod text;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use crate::document::Document;
use crate::error::{Error, Result};
use crate::folder::FoundFile;
use crate::format::{Format, ReadAs};
use crate::metadata::Metadata;

use self::decoded::{Decoded, decode_lossily, file_stem};
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
    let whole = |document: fn(Decoded, &FoundFile) -> Document| {
        let document = document(Decoded::read(open()?, &file.path, options)?, file);
        Ok(Documents { source: Source::One { document: Some(Box::new(document)), notes: Vec::new() } })
    };
    match file.format {
        Format::Markdown => whole(|source, file| markdown::document(source, &file.origin)),
        Format::Text => whole(|source, file| text::document(source, &file.origin, &file.path)),
        Format::Html => whole(|source, file| html::document(source, &file.origin)),
        Format::Jsonl => {
            let lines = jsonl::Lines::new(BufReader::new(open()?), file, options.not_utf8());
            Ok(Documents { source: Source::Jsonl(Box::new(lines)) })
        }
        Format::Csv => {
            let (document, notes) = csv::read(open()?, file, options.not_utf8())?;
            Ok(Documents { source: Source::One { document: Some(Box::new(document)), notes } })
        }
    }
}

/// Reads one Markdown, text or HTML document from `bytes`, as if from a file at `origin`.
///
/// # Errors
/// The bytes are not UTF-8.
pub fn parse(bytes: Vec<u8>, origin: &str, format: impl Into<ReadAs>) -> Result<Document> {
    let path = PathBuf::from(origin);
    let source = Decoded::new(bytes, &path, &ReadOptions::default())?;
    Ok(match format.into().of_file(&path) {
        Format::Markdown => markdown::document(source, origin),
        Format::Html => html::document(source, origin),
        Format::Text | Format::Jsonl | Format::Csv => text::document(source, origin, &path),
    })
}

/// The documents of one file, in file order.
#[derive(Debug)]
pub struct Documents {
    source: Source,
}

#[derive(Debug)]
enum Source {
    One { document: Option<Box<Document>>, notes: Vec<String> },
    Jsonl(Box<jsonl::Lines<BufReader<File>>>),
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
