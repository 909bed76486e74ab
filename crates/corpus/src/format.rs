//! The formats that are read: one table, a row each; nothing else enumerates them.
//!
//! A new format is a variant of [`Format`], its row in [`TABLE`], and a file with its [`Reader`].

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The format that a document was read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
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
    /// PDF.
    Pdf,
    /// Word, OOXML.
    Docx,
    /// Word, up to 2003.
    Doc,
    /// OpenDocument text.
    Odt,
    /// Rich Text Format.
    Rtf,
    /// PowerPoint, OOXML.
    Pptx,
    /// PowerPoint, up to 2003.
    Ppt,
    /// OpenDocument presentation.
    Odp,
    /// EPUB.
    Epub,
    /// Excel, OOXML.
    Xlsx,
    /// Excel, OOXML in binary.
    Xlsb,
    /// Excel, up to 2003.
    Xls,
    /// OpenDocument spreadsheet.
    Ods,
    /// Notebook of Jupyter.
    Ipynb,
    /// E-mail message.
    Eml,
    /// ZIP archive, each of whose files is read as what it is.
    Zip,
}

/// Facts about one format.
struct Row {
    format: Format,
    /// Name in answers and filters.
    name: &'static str,
    /// Name on the command line.
    short: &'static str,
    /// Number in the records of a segment: never another one.
    number: u32,
    /// Extensions in lower case, separated by blanks.
    extensions: &'static str,
    reader: Reader,
}

/// The reader of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Markdown,
    Text,
    Html,
    Jsonl,
    Csv,
    Parsed(Parser),
}

/// The reader of a format whose bytes are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parser {
    Pdf,
    Office(Office),
    Workbook(Book),
    Epub,
    Notebook,
    Mail,
    Archive,
}

/// Word processing and presentations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Office {
    Docx,
    Doc,
    Odt,
    Rtf,
    Pptx,
    Ppt,
    Odp,
}

/// Workbooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Book {
    Xlsx,
    Xlsb,
    Xls,
    Ods,
}

/// The part of a file that is one document, which is held at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// All of it, up to [`crate::ReadOptions::max_file_bytes`].
    Whole,
    /// One record at a time.
    Streamed,
    /// All of it, up to [`crate::ReadOptions::max_file_bytes`]; its bytes are no text, and a parser extracts that.
    Parsed,
}

/// Bytes of HTML, CSV and JSONL that are still read in the process. A page or table that somebody wrote is shorter, and
/// the parser of one that is not may want gigabytes.
pub const IN_PROCESS_BYTES_MAX: u64 = 4 << 20;

/// Extensions of text whose markup, if any, is read by what it looks like.
const TEXT: &str = "txt text rst adoc org tex log json xml yaml yml toml ini cfg";

static TABLE: [Row; 21] = [
    Row { short: "md", ..Row::new(0, Format::Markdown, "markdown", "md markdown mdx", Reader::Markdown) },
    Row::new(1, Format::Text, "text", TEXT, Reader::Text),
    Row::new(2, Format::Html, "html", "html htm xhtml", Reader::Html),
    Row::new(3, Format::Jsonl, "jsonl", "jsonl ndjson", Reader::Jsonl),
    Row::new(4, Format::Csv, "csv", "csv tsv", Reader::Csv),
    Row::new(5, Format::Pdf, "pdf", "pdf", Reader::Parsed(Parser::Pdf)),
    Row::new(6, Format::Docx, "docx", "docx docm", Reader::Parsed(Parser::Office(Office::Docx))),
    Row::new(7, Format::Doc, "doc", "doc", Reader::Parsed(Parser::Office(Office::Doc))),
    Row::new(8, Format::Odt, "odt", "odt", Reader::Parsed(Parser::Office(Office::Odt))),
    Row::new(9, Format::Rtf, "rtf", "rtf", Reader::Parsed(Parser::Office(Office::Rtf))),
    Row::new(10, Format::Pptx, "pptx", "pptx pptm ppsx ppsm", Reader::Parsed(Parser::Office(Office::Pptx))),
    Row::new(11, Format::Ppt, "ppt", "ppt pps pot", Reader::Parsed(Parser::Office(Office::Ppt))),
    Row::new(12, Format::Odp, "odp", "odp", Reader::Parsed(Parser::Office(Office::Odp))),
    Row::new(13, Format::Epub, "epub", "epub", Reader::Parsed(Parser::Epub)),
    Row::new(14, Format::Xlsx, "xlsx", "xlsx xlsm", Reader::Parsed(Parser::Workbook(Book::Xlsx))),
    Row::new(15, Format::Xlsb, "xlsb", "xlsb", Reader::Parsed(Parser::Workbook(Book::Xlsb))),
    Row::new(16, Format::Xls, "xls", "xls", Reader::Parsed(Parser::Workbook(Book::Xls))),
    Row::new(17, Format::Ods, "ods", "ods", Reader::Parsed(Parser::Workbook(Book::Ods))),
    Row::new(18, Format::Ipynb, "ipynb", "ipynb", Reader::Parsed(Parser::Notebook)),
    Row::new(19, Format::Eml, "eml", "eml", Reader::Parsed(Parser::Mail)),
    Row::new(20, Format::Zip, "zip", "zip", Reader::Parsed(Parser::Archive)),
];

impl Row {
    /// A format with one name for answers and the command line.
    const fn new(number: u32, format: Format, name: &'static str, extensions: &'static str, reader: Reader) -> Self {
        Self { format, name, short: name, number, extensions, reader }
    }
}

/// Extensions of source code, which is read as text.
const SOURCE_CODE: &str = "rs c h cc cpp cxx hpp hh cs java kt kts scala go py pyi rb pl pm php js mjs cjs jsx ts tsx swift m mm lua r jl hs ml \
    mli ex exs erl clj el lisp scm sh bash zsh fish ps1 bat sql proto graphql cmake mk gradle nix zig d dart vue svelte css scss \
    less f90 f95 f for pas asm s v sv vhd vhdl tf dockerfile makefile tcl groovy";

/// Extensions of formats that this version does not read, which may pass for text by their first bytes.
const UNREAD: &str = "zip gz tgz bz2 xz zst 7z rar tar jar whl png jpg jpeg gif \
    webp bmp ico tif tiff mp3 mp4 wav ogg webm avi mov mkv ttf otf woff woff2 eot so dll exe o a class pyc wasm bin npy npz pt \
    onnx safetensors parquet arrow sqlite db";

impl Format {
    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.format == self).expect("each format has a row: a test holds the table to that")
    }

    /// Its name in answers and filters: `markdown`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its number in the records of a segment.
    pub fn number(self) -> u32 {
        self.row().number
    }

    /// The format of a number in a record; none if there is no such format.
    pub fn of_number(number: u32) -> Option<Self> {
        TABLE.iter().find(|row| row.number == number).map(|row| row.format)
    }

    pub(crate) fn reader(self) -> Reader {
        self.row().reader
    }

    /// True if the lines of a document are those of its file, so that they can be counted in its text: it is the bytes
    /// of the file.
    pub fn has_lines_of_file(self) -> bool {
        matches!(self.reader(), Reader::Markdown | Reader::Text)
    }

    pub(crate) fn reading(self) -> Reading {
        match self.reader() {
            Reader::Markdown | Reader::Text | Reader::Html | Reader::Csv => Reading::Whole,
            Reader::Jsonl => Reading::Streamed,
            Reader::Parsed(_) => Reading::Parsed,
        }
    }

    /// True if a file of so many bytes is read in a child that can do nothing else.
    pub(crate) fn is_guarded(self, n_bytes: u64) -> bool {
        match self.reader() {
            Reader::Markdown | Reader::Text => false,
            Reader::Html | Reader::Jsonl | Reader::Csv => n_bytes > IN_PROCESS_BYTES_MAX,
            Reader::Parsed(_) => true,
        }
    }

    /// True if it is never read but in a child: its parser takes in what others wrote byte by byte.
    pub(crate) fn needs_guard(self) -> bool {
        self.reading() == Reading::Parsed
    }

    /// The format that a file's extension says; none for an extension that is not known.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let row = TABLE.iter().find(|row| has(row.extensions, &extension));
        row.map(|row| row.format).or(is_source_code(&extension).then_some(Self::Text))
    }

    /// The extension of `path` if it is one that this version does not read.
    pub(crate) fn unread_extension(path: &Path) -> Option<&'static str> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        UNREAD.split_ascii_whitespace().find(|&unread| unread == extension)
    }
}

/// Why a file of an extension that is not read is passed over.
pub(crate) fn unknown_type(extension: &str) -> String {
    format!("unknown type: .{extension} files are not read")
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().short)
    }
}

/// True for an extension, in lower case, of source code.
pub(crate) fn is_source_code(extension: &str) -> bool {
    has(SOURCE_CODE, extension)
}

fn has(extensions: &str, extension: &str) -> bool {
    extensions.split_ascii_whitespace().any(|known| known == extension)
}

/// The format that files are to be read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAs {
    /// Each by its extension.
    #[default]
    Auto,
    /// One format for all files of unknown extension; files whose extension says another are passed over.
    One(Format),
    /// A folder with `corpus.jsonl` and queries or judgements, which are not indexed.
    Beir,
}

impl ReadAs {
    /// The names, as written on the command line.
    pub const NAMES: &'static str = "auto, md, text, html, jsonl, csv, pdf, docx, doc, odt, rtf, pptx, ppt, odp, epub, xlsx, \
        xlsb, xls, ods, ipynb, eml, zip, beir";

    /// The format of one file: text where nothing says another.
    pub(crate) fn of_file(self, path: &Path) -> Format {
        match self {
            Self::Auto => Format::of_path(path).unwrap_or(Format::Text),
            Self::One(format) => format,
            Self::Beir => Format::Jsonl,
        }
    }
}

impl From<Format> for ReadAs {
    fn from(format: Format) -> Self {
        Self::One(format)
    }
}

impl fmt::Display for ReadAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::One(format) => format.fmt(f),
            Self::Beir => f.write_str("beir"),
        }
    }
}

impl FromStr for ReadAs {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "beir" => Ok(Self::Beir),
            _ => match TABLE.iter().find(|row| row.short == name) {
                Some(row) => Ok(Self::One(row.format)),
                None => Err(Error::UnknownName { what: "format", value: name.into(), expected: Self::NAMES }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_one_row_with_names_and_a_number_of_its_own() {
        // No format goes without a row: this match names all of them.
        let next = |format| match format {
            Format::Markdown => Some(Format::Text),
            Format::Text => Some(Format::Html),
            Format::Html => Some(Format::Jsonl),
            Format::Jsonl => Some(Format::Csv),
            Format::Csv => Some(Format::Pdf),
            Format::Pdf => Some(Format::Docx),
            Format::Docx => Some(Format::Doc),
            Format::Doc => Some(Format::Odt),
            Format::Odt => Some(Format::Rtf),
            Format::Rtf => Some(Format::Pptx),
            Format::Pptx => Some(Format::Ppt),
            Format::Ppt => Some(Format::Odp),
            Format::Odp => Some(Format::Epub),
            Format::Epub => Some(Format::Xlsx),
            Format::Xlsx => Some(Format::Xlsb),
            Format::Xlsb => Some(Format::Xls),
            Format::Xls => Some(Format::Ods),
            Format::Ods => Some(Format::Ipynb),
            Format::Ipynb => Some(Format::Eml),
            Format::Eml => Some(Format::Zip),
            Format::Zip => None,
        };
        let formats: Vec<Format> = std::iter::successors(Some(Format::Markdown), |&format| next(format)).collect();
        assert_eq!(TABLE.iter().map(|row| row.format).collect::<Vec<_>>(), formats);
        for (row, number) in TABLE.iter().zip(0..) {
            assert_eq!((row.number, Format::of_number(number)), (number, Some(row.format)));
            assert_eq!(row.short.parse::<ReadAs>().unwrap(), ReadAs::One(row.format));
            assert_eq!(serde_json::to_value(row.format).unwrap(), row.name);
            assert!(ReadAs::NAMES.split(", ").any(|name| name == row.short));
            let others = TABLE.iter().filter(|other| other.format != row.format);
            assert!(others.clone().all(|other| row.extensions.split(' ').all(|one| !has(other.extensions, one))));
        }
        assert_eq!(Format::of_number(TABLE.len() as u32), None);
        assert_eq!(ReadAs::NAMES.split(", ").count(), TABLE.len() + 2);
    }
}
