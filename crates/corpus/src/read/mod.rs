//! Readers: how each file format becomes documents.
//!
//! A file that is one document is read up to a limit; JSONL is streamed, with a limit for each record. What one
//! document may cost is in [`crate::budget`].

mod password;
mod command;
mod options;
mod decoded;
pub(crate) mod written;

mod code;
mod csv;
mod encoding;
mod front_matter;
mod html;
mod jsonl;
mod markdown;
mod parsed;
pub(crate) mod parts;
mod records;
mod rst;
mod text;

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::budget::Excess;
use crate::document::{Document, TextKind};
use crate::error::{Error, Result};
use crate::extraction::{Extraction, name_first};
use crate::folder::{FoundFile, RecordIds};
use crate::format::{Format, ReadAs, Reader};
use crate::metadata::Metadata;

pub use self::command::{Commands, Gives, ReadCommand};
use self::decoded::{Decoded, decode_lossily, file_stem};
pub use self::encoding::Bytes;
use self::encoding::Input;
pub(crate) use self::encoding::is_utf16;
use self::options::NotUtf8;
pub use self::options::{LINE_BYTES_MAX, MAX_FILE_BYTES, ReadOptions};
use self::parsed::{Allowance, Fault, Parsed, Part};
pub use self::password::{Locked, PASSWORD_FILE_BYTES_MAX, Passwords};
pub use self::records::{ID_KEYS, Record, Records, TEXT_KEYS, TITLE_KEYS};

/// Opens a file that [`crate::walk`] found and reads its documents one by one.
///
/// # Errors
/// The file cannot be opened; a file that is read whole cannot be read, is not UTF-8 or is too long. What is wrong with
/// one line of JSONL comes from the iterator, which goes on after it.
pub fn read(file: &FoundFile, options: &ReadOptions) -> Result<Documents> {
    let input = File::open(&file.path).map_err(Error::io(&file.path))?;
    read_from(Box::new(input), file, options)
}

/// Reads the documents of a file from its bytes, as [`read`] does from the file; its path is only looked at.
///
/// # Errors
/// Those of [`read`], but for opening the file.
pub fn read_from(input: Bytes, file: &FoundFile, options: &ReadOptions) -> Result<Documents> {
    let whole = |input: Bytes, document: fn(Decoded, &FoundFile) -> Result<Document, Excess>| {
        let source = Decoded::read(input, &file.path, options)?;
        let n_bytes = source.text.len() as u64;
        let document = within_budgets(document(source, file), n_bytes, &file.path)?;
        Ok(Documents::one(document, Vec::new()))
    };
    match file.format.reader() {
        Reader::Markdown => whole(input, |source, file| markdown::document(source, &file.origin)),
        Reader::Text if is_code(file) => {
            let source = Decoded::read(input, &file.path, options)?;
            let n_bytes = source.text.len() as u64;
            let read = text::by_syntax(source, &file.origin, &file.path);
            let (document, without) = read.map_err(|excess| excess.at(&file.path, None))?;
            let document = within_budgets(Ok(document), n_bytes, &file.path)?;
            Ok(match without {
                None => Documents::one(document, Vec::new()),
                Some(reason) => Documents::plain(document, &reason),
            })
        }
        Reader::Text => whole(input, |source, file| text::document(source, &file.origin, &file.path)),
        Reader::Html => whole(input, |source, file| html::document(source, &file.origin)),
        Reader::Jsonl => {
            let (input, warnings) = Input::open(input, &file.path, options)?;
            let lines = jsonl::Lines::new(input, file, options.not_utf8()).with_warnings(warnings);
            Ok(Documents { source: Source::Jsonl(Box::new(lines)) })
        }
        Reader::Csv => {
            let (input, warnings) = Input::open(input, &file.path, options)?;
            let (mut document, notes) = csv::read(input, file, options)?;
            document.warnings.splice(..0, warnings);
            Ok(Documents::one(document, notes))
        }
        Reader::Parsed(_) => parsed(&encoding::read_whole(input, &file.path, options.max_file_bytes)?, file, options),
    }
}

/// True for source code whose functions and classes are its sections: it is read in a child, as all that a parser of
/// others reads.
pub(crate) fn is_code(file: &FoundFile) -> bool {
    file.format.reader() == Reader::Text && file.n_bytes > 0 && text::language_of(&file.path).is_some()
}

/// Reads source code as the plain text that it is, and says why it is not read by its syntax.
///
/// # Errors
/// Those of [`read_from`].
pub(crate) fn read_plain(input: Bytes, file: &FoundFile, options: &ReadOptions, reason: &str) -> Result<Documents> {
    let source = Decoded::read(input, &file.path, options)?;
    let n_bytes = source.text.len() as u64;
    let document = within_budgets(text::document(source, &file.origin, &file.path), n_bytes, &file.path)?;
    Ok(Documents::plain(document, reason))
}

/// The documents that a parser finds in the bytes of a file.
fn parsed(bytes: &[u8], file: &FoundFile, options: &ReadOptions) -> Result<Documents> {
    let allowance = Allowance::default();
    let whole = Part { bytes, id: &file.origin, origin: &file.origin, options, allowance: &allowance };
    let Parsed { documents, extraction } = part(&whole, file.format, 0).map_err(|fault| fault.at(&file.path))?;
    let within = documents.iter().try_for_each(|document| document.within_budgets(bytes.len() as u64));
    within.map_err(|excess| excess.at(&file.path, None))?;
    let extraction = Box::new(extraction);
    Ok(Documents { source: Source::Parsed { documents: documents.into_iter(), extraction } })
}

/// The documents of a file that a parser reads, or of what stands in it, inside so many others: an attachment, a file
/// of an archive, the HTML of a message.
fn part(part: &Part<'_>, format: Format, depth: usize) -> Result<Parsed, Fault> {
    let path = Path::new(part.id);
    let options = ReadOptions { lossy: true, ..part.options.clone() };
    let fault = |error: Error| Fault::Unparsed { engine: "cento", reason: error.to_string() };
    let source = || Decoded::new(part.bytes.to_vec(), path, &options).map_err(fault);
    let mut document = match format.reader() {
        Reader::Parsed(_) => {
            return parsed::read(part, format, depth, &|inner, format| self::part(inner, format, depth + 1));
        }
        Reader::Markdown => markdown::document(source()?, part.id)?,
        Reader::Html => html::document(source()?, part.id)?,
        Reader::Csv => {
            let (path, origin, n_bytes) = (path.to_owned(), part.id.to_owned(), part.bytes.len() as u64);
            let file = FoundFile { path, origin, format, n_bytes, record_ids: RecordIds::UnderFile };
            csv::read(part.bytes, &file, &options).map_err(fault)?.0
        }
        Reader::Text | Reader::Jsonl => {
            let (mut document, without) = text::by_syntax(source()?, part.id, path)?;
            document.warnings.extend(without.map(|reason| format!("{PLAIN}: {reason}")));
            document
        }
    };
    document.origin = part.origin.to_owned();
    document.kind = TextKind::Extracted; // its bytes are those of no file
    Ok(Parsed::one(document, Extraction::default()))
}

/// The document, unless it exceeds a budget.
fn within_budgets(document: Result<Document, Excess>, n_bytes: u64, path: &Path) -> Result<Document> {
    let checked = document.and_then(|document| document.within_budgets(n_bytes).map(|()| document));
    checked.map_err(|excess| excess.at(path, None))
}

/// Reads one Markdown, text or HTML document from `bytes`, as if from a file at `origin`. Source code is plain text
/// here: its parsers run in children alone.
///
/// # Errors
/// The bytes are no text, or the document exceeds a budget.
pub fn parse(bytes: Vec<u8>, origin: &str, format: impl Into<ReadAs>) -> Result<Document> {
    let path = PathBuf::from(origin);
    let source = Decoded::new(bytes, &path, &ReadOptions::default())?;
    let n_bytes = source.text.len() as u64;
    let document = match format.into().of_file(&path).reader() {
        Reader::Markdown => markdown::document(source, origin),
        Reader::Html => html::document(source, origin),
        Reader::Text | Reader::Jsonl | Reader::Csv | Reader::Parsed(_) => text::document(source, origin, &path),
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
    One { document: Option<Box<Document>>, notes: Vec<String>, extraction: Option<Box<Extraction>> },
    Jsonl(Box<jsonl::Lines<Input>>),
    Parsed { documents: std::vec::IntoIter<Document>, extraction: Box<Extraction> },
}

/// The remark on source code that was not read by its syntax.
const PLAIN: &str = "read as plain text, without its functions and classes";

impl Documents {
    fn one(document: Document, notes: Vec<String>) -> Self {
        Self { source: Source::One { document: Some(Box::new(document)), notes, extraction: None } }
    }

    /// Source code without its syntax; the report on the file says so too.
    fn plain(mut document: Document, reason: &str) -> Self {
        document.warnings.push(format!("{PLAIN}: {reason}"));
        let mut unread = vec![format!("its functions and classes: {reason}")];
        name_first(&mut unread);
        let n_characters = document.text.chars().count() as u64;
        let extraction = Extraction { engine: code::ENGINE.into(), n_characters, unread, ..Extraction::default() };
        let (document, extraction) = (Some(Box::new(document)), Some(Box::new(extraction)));
        Self { source: Source::One { document, notes: Vec::new(), extraction } }
    }

    /// The reader's decisions for this file, in words: the JSON keys used, the separator of a table. Complete once the
    /// iterator has ended.
    pub fn notes(&self) -> Vec<String> {
        match &self.source {
            Source::One { notes, .. } => notes.clone(),
            Source::Jsonl(lines) => lines.notes(),
            Source::Parsed { .. } => Vec::new(),
        }
    }

    /// Figures of the reading of this file, for formats whose text is extracted by a parser. Complete once the iterator
    /// has ended.
    pub fn extraction(&self) -> Option<&Extraction> {
        match &self.source {
            Source::One { extraction, .. } => extraction.as_deref(),
            Source::Jsonl(_) => None,
            Source::Parsed { extraction, .. } => Some(extraction),
        }
    }
}

impl Iterator for Documents {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::One { document, .. } => document.take().map(|document| Ok(*document)),
            Source::Jsonl(lines) => lines.next(),
            Source::Parsed { documents, .. } => documents.next().map(Ok),
        }
    }
}
