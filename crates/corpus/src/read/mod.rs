//! Readers: how each file format becomes documents.
//!
//! Markdown, text and HTML files are read whole, up to a limit; JSONL and CSV are streamed, with a limit for each
//! record.

mod csv;
mod front_matter;
mod html;
mod jsonl;
mod markdown;
mod records;
mod text;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::document::{Document, TextKind};
use crate::error::{Error, Result};
use crate::folder::FoundFile;
use crate::format::{Format, ReadAs};
use crate::metadata::Metadata;

pub use self::records::{Record, Records};

/// Default of [`ReadOptions::max_file_bytes`].
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Longest line of JSONL and longest row of CSV, in bytes; a longer one is an error and is never held in memory.
pub const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The way files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format of every file, or by extension.
    pub format: ReadAs,
    /// Replace bytes that are not UTF-8 by U+FFFD, with a warning, where it would be an error.
    pub lossy: bool,
    /// Longest file that is read whole (Markdown, text, HTML), in bytes.
    pub max_file_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { format: ReadAs::Auto, lossy: false, max_file_bytes: MAX_FILE_BYTES }
    }
}

/// The treatment of bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotUtf8 {
    /// They are an error.
    Refused,
    /// U+FFFD stands in their place, with a warning.
    Replaced,
}

impl ReadOptions {
    fn not_utf8(&self) -> NotUtf8 {
        if self.lossy { NotUtf8::Replaced } else { NotUtf8::Refused }
    }
}

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

/// A whole file as text.
struct Decoded {
    text: String,
    kind: TextKind,
    warnings: Vec<String>,
}

impl Decoded {
    fn read(file: File, path: &Path, options: &ReadOptions) -> Result<Self> {
        let limit_bytes = options.max_file_bytes;
        let mut bytes = Vec::new();
        file.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(Error::io(path))?;
        let n_bytes = bytes.len() as u64;
        if n_bytes > limit_bytes {
            return Err(Error::TooLarge { path: path.into(), n_bytes, limit_bytes });
        }
        Self::new(bytes, path, options)
    }

    fn new(bytes: Vec<u8>, path: &Path, options: &ReadOptions) -> Result<Self> {
        match String::from_utf8(bytes) {
            Ok(text) => {
                let warnings = if text.is_empty() { vec!["the file is empty".into()] } else { Vec::new() };
                Ok(Self { text, kind: TextKind::Source, warnings })
            }
            Err(error) if options.lossy => {
                let (text, warning) = decode_lossily(error.as_bytes());
                Ok(Self { text, kind: TextKind::Extracted, warnings: vec![warning] })
            }
            Err(error) => {
                Err(Error::InvalidUtf8 { path: path.into(), offset: error.utf8_error().valid_up_to() as u64 })
            }
        }
    }
}

/// `bytes` with U+FFFD for what is not UTF-8, and the warning that says so.
fn decode_lossily(bytes: &[u8]) -> (String, String) {
    let n_invalid = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    let first = bytes.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let text = String::from_utf8_lossy(bytes).into_owned();
    (text, format!("invalid UTF-8 in {n_invalid} places, the first at byte {first}, replaced by U+FFFD"))
}

/// The name of the file at `origin` without its extension: the title of last resort.
fn file_stem(origin: &str) -> String {
    let name = origin.rsplit('/').next().unwrap_or(origin);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.into(),
        _ => name.into(),
    }
}
