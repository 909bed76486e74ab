//! The formats that are read: one table, a row each; nothing else enumerates them.
//!
//! A new format is a variant of [`Format`], its row in [`TABLE`], and a file with its reader.

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
    reading: Reading,
    lines: Lines,
    guarding: Guarding,
}

/// Where a format is read: in the process that wants its documents, or in a child that can do nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarding {
    /// In the process: its text is the file's own.
    Never,
    /// In a child, if the file has more bytes than this.
    Above(u64),
    /// In a child: its parser takes in what others wrote byte by byte.
    Always,
}

/// Bytes of HTML, CSV and JSONL that are still read in the process. A page or table that somebody wrote is shorter, and
/// the parser of one that is not may want gigabytes.
pub const IN_PROCESS_BYTES_MAX: u64 = 4 << 20;

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

/// The relation of a document's lines to those of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    /// They are the same: the text is the bytes of the file.
    OfFile,
    /// They are not: the text was extracted.
    Own,
}

static TABLE: [Row; 21] = [
    Row {
        format: Format::Markdown,
        name: "markdown",
        short: "md",
        number: 0,
        extensions: "md markdown mdx",
        reading: Reading::Whole,
        lines: Lines::OfFile,
        guarding: Guarding::Never,
    },
    Row {
        format: Format::Text,
        name: "text",
        short: "text",
        number: 1,
        extensions: "txt text rst adoc org tex log json xml yaml yml toml ini cfg",
        reading: Reading::Whole,
        lines: Lines::OfFile,
        guarding: Guarding::Never,
    },
    Row {
        format: Format::Html,
        name: "html",
        short: "html",
        number: 2,
        extensions: "html htm xhtml",
        reading: Reading::Whole,
        lines: Lines::Own,
        guarding: Guarding::Above(IN_PROCESS_BYTES_MAX),
    },
    Row {
        format: Format::Jsonl,
        name: "jsonl",
        short: "jsonl",
        number: 3,
        extensions: "jsonl ndjson",
        reading: Reading::Streamed,
        lines: Lines::Own,
        guarding: Guarding::Above(IN_PROCESS_BYTES_MAX),
    },
    Row {
        format: Format::Csv,
        name: "csv",
        short: "csv",
        number: 4,
        extensions: "csv tsv",
        reading: Reading::Whole,
        lines: Lines::Own,
        guarding: Guarding::Above(IN_PROCESS_BYTES_MAX),
    },
    Row::parsed(Format::Pdf, "pdf", 5, "pdf"),
    Row::parsed(Format::Docx, "docx", 6, "docx docm"),
    Row::parsed(Format::Doc, "doc", 7, "doc"),
    Row::parsed(Format::Odt, "odt", 8, "odt"),
    Row::parsed(Format::Rtf, "rtf", 9, "rtf"),
    Row::parsed(Format::Pptx, "pptx", 10, "pptx pptm ppsx ppsm"),
    Row::parsed(Format::Ppt, "ppt", 11, "ppt pps pot"),
    Row::parsed(Format::Odp, "odp", 12, "odp"),
    Row::parsed(Format::Epub, "epub", 13, "epub"),
    Row::parsed(Format::Xlsx, "xlsx", 14, "xlsx xlsm"),
    Row::parsed(Format::Xlsb, "xlsb", 15, "xlsb"),
    Row::parsed(Format::Xls, "xls", 16, "xls"),
    Row::parsed(Format::Ods, "ods", 17, "ods"),
    Row::parsed(Format::Ipynb, "ipynb", 18, "ipynb"),
    Row::parsed(Format::Eml, "eml", 19, "eml"),
    Row::parsed(Format::Zip, "zip", 20, "zip"),
];

impl Row {
    /// A format whose text a parser extracts; one name serves for all.
    const fn parsed(format: Format, name: &'static str, number: u32, extensions: &'static str) -> Self {
        Self {
            format,
            name,
            short: name,
            number,
            extensions,
            reading: Reading::Parsed,
            lines: Lines::Own,
            guarding: Guarding::Always,
        }
    }
}

/// Extensions of source code, which is read as text.
const SOURCE_CODE: &str = "rs c h cc cpp cxx hpp hh cs java kt kts scala go py pyi rb pl pm php js mjs cjs jsx ts tsx swift m mm lua r jl hs ml \
    mli ex exs erl clj el lisp scm sh bash zsh fish ps1 bat sql proto graphql cmake mk gradle nix zig d dart vue svelte css scss \
    less f90 f95 f for pas asm s v sv vhd vhdl tf dockerfile makefile tcl groovy";

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

    /// True if the lines of a document are those of its file, so that they can be counted in its text.
    pub fn has_lines_of_file(self) -> bool {
        self.row().lines == Lines::OfFile
    }

    pub(crate) fn reading(self) -> Reading {
        self.row().reading
    }

    /// True if a file of so many bytes is read in a child.
    pub(crate) fn is_guarded(self, n_bytes: u64) -> bool {
        match self.row().guarding {
            Guarding::Never => false,
            Guarding::Above(limit) => n_bytes > limit,
            Guarding::Always => true,
        }
    }

    /// True if it is never read but in a child.
    pub(crate) fn needs_guard(self) -> bool {
        self.row().guarding == Guarding::Always
    }

    /// The format that a file's extension says; none for an extension that is not known.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let row = TABLE.iter().find(|row| has(row.extensions, &extension));
        row.map(|row| row.format).or(is_source_code(&extension).then_some(Self::Text))
    }
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
