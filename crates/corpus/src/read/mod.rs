//! Readers: how each file format becomes documents.
//!
//! Markdown, text and HTML files are read whole, up to a limit; JSONL and CSV are streamed, with a limit for each record.

mod csv;
mod front_matter;
mod html;
mod jsonl;
mod markdown;
mod records;
mod text;

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::document::{Document, TextKind};
use crate::error::{Error, Result};
use crate::folder::FoundFile;
use crate::metadata::Metadata;

pub use self::records::{Record, Records};

/// Default of [`ReadOptions::max_file_bytes`].
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Longest line of JSONL and longest row of CSV, in bytes; a longer one is an error and is never held in memory.
pub const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A file format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// By the file's extension.
    #[default]
    Auto,
    /// CommonMark with tables, footnotes and front matter.
    Markdown,
    /// Plain text, source code and everything else that is text.
    Text,
    /// HTML.
    Html,
    /// One JSON object a line, each a document.
    Jsonl,
    /// Comma- or tab-separated values with a header row.
    Csv,
    /// A folder with `corpus.jsonl` and queries or judgements, which are not indexed.
    Beir,
}

impl Format {
    /// The names, as written on the command line.
    pub const NAMES: &'static str = "auto, md, text, html, jsonl, csv, beir";

    /// The whole word, where the command line has a short one: `markdown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Html => "html",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Beir => "beir",
        }
    }

    /// The format that a file's extension says; none for an extension that is not known.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "md" | "markdown" | "mdx" => Self::Markdown,
            "html" | "htm" | "xhtml" => Self::Html,
            "jsonl" | "ndjson" => Self::Jsonl,
            "csv" | "tsv" => Self::Csv,
            "txt" | "text" | "rst" | "adoc" | "org" | "tex" | "log" | "json" | "xml" | "yaml" | "yml" | "toml"
            | "ini" | "cfg" => Self::Text,
            _ if text::is_source_code(&extension) => Self::Text,
            _ => return None,
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Markdown => "md",
            other => other.name(),
        })
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "md" => Ok(Self::Markdown),
            "text" => Ok(Self::Text),
            "html" => Ok(Self::Html),
            "jsonl" => Ok(Self::Jsonl),
            "csv" => Ok(Self::Csv),
            "beir" => Ok(Self::Beir),
            _ => Err(Error::UnknownName { what: "format", value: name.into(), expected: Self::NAMES }),
        }
    }
}

/// How files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format of every file, or by extension.
    pub format: Format,
    /// Replace bytes that are not UTF-8 by U+FFFD, with a warning, where it would be an error.
    pub lossy: bool,
    /// Longest file that is read whole (Markdown, text, HTML), in bytes.
    pub max_file_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { format: Format::Auto, lossy: false, max_file_bytes: MAX_FILE_BYTES }
    }
}

/// What happens to bytes that are not UTF-8.
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
/// The file cannot be opened; a file that is read whole cannot be read, is not UTF-8 or is too long. What is wrong with one
/// line of JSONL comes from the iterator, which goes on after it.
pub fn read(file: &FoundFile, options: &ReadOptions) -> Result<Documents> {
    let asked = if file.format == Format::Auto { options.format } else { file.format };
    let format = if asked == Format::Auto { Format::of_path(&file.path).unwrap_or(Format::Text) } else { asked };
    let open = || File::open(&file.path).map_err(Error::io(&file.path));
    match format {
        Format::Jsonl | Format::Beir => {
            let lines = jsonl::Lines::new(BufReader::new(open()?), file, options.not_utf8());
            Ok(Documents { source: Source::Jsonl(Box::new(lines)) })
        }
        Format::Csv => {
            let (document, notes) = csv::read(open()?, file, options.not_utf8())?;
            Ok(Documents { source: Source::One { document: Some(Box::new(document)), notes } })
        }
        _ => {
            let source = Decoded::read(open()?, &file.path, options)?;
            let document = document(source, &file.origin, &file.path, format);
            Ok(Documents { source: Source::One { document: Some(Box::new(document)), notes: Vec::new() } })
        }
    }
}

/// Reads one Markdown, text or HTML document from `bytes`, as if from a file at `origin`.
///
/// # Errors
/// The bytes are not UTF-8.
pub fn parse(bytes: Vec<u8>, origin: &str, format: Format) -> Result<Document> {
    let path = PathBuf::from(origin);
    let source = Decoded::new(bytes, &path, &ReadOptions::default())?;
    let format = if format == Format::Auto { Format::of_path(&path).unwrap_or(Format::Text) } else { format };
    Ok(document(source, origin, &path, format))
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
    /// What the reader decided for this file, in words: the JSON keys used, the separator of a table. Complete once the
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

fn document(source: Decoded, origin: &str, path: &Path, format: Format) -> Document {
    match format {
        Format::Markdown => markdown::document(source, origin),
        Format::Html => html::document(source, origin),
        _ => text::document(source, origin, path),
    }
}

/// The name of the file at `origin` without its extension: the title of last resort.
fn file_stem(origin: &str) -> String {
    let name = origin.rsplit('/').next().unwrap_or(origin);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.into(),
        _ => name.into(),
    }
}
