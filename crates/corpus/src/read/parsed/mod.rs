//! Readers of formats that are no text: a parser extracts it.
//!
//! A file is read as what its bytes say that it is; where its extension says another, a warning tells so. Each reader
//! gives the documents of a file, and the figures of its reading.

mod draft;
mod figures;
mod part;
mod package;
mod key;
mod slides;

mod archive;
mod epub;
mod mail;
mod notebook;
mod office;
mod folio;
mod pdf;
mod workbook;

pub(super) use self::figures::count;
use self::part::Inner;
pub(super) use self::part::{Allowance, Fault, Parsed, Part};

use memchr::memmem;

use crate::extraction::{Extraction, PAGES_NAMED_MAX, name_first};
use crate::format::{Format, Parser, Reader};

/// Bytes from the start of a file within which a PDF says that it is one.
const PDF_MARK_WITHIN_BYTES: usize = 1_024;

/// The name of the stream of an encrypted workbook or text, as a compound file writes it.
const ENCRYPTED_PACKAGE: &str = "EncryptedPackage";

/// Files inside each other: a message attached to a message that is attached to a message.
const NESTED_MAX: usize = 4;

/// Reads the documents of a file whose extension says `format`, and which stands inside `depth` others; `inner` reads
/// what stands in it.
pub(super) fn read(part: &Part<'_>, format: Format, depth: usize, inner: Inner<'_>) -> Result<Parsed, Fault> {
    if depth >= NESTED_MAX {
        return Err(Fault::Unparsed { engine: "cento", reason: format!("inside {NESTED_MAX} other files") });
    }
    if part.bytes.is_empty() {
        let about = draft::About { warnings: vec!["the file is empty".into()], ..draft::About::default() };
        let document = draft::Draft::new(0).finish(part.id, part.origin, format, part.name(), about);
        return Ok(Parsed::one(document, Extraction::default()));
    }
    let opened;
    let part = if is_encrypted_package(part.bytes) {
        opened = key::open_office(part.bytes, &part.options.passwords)?;
        &Part { bytes: &opened, ..*part }
    } else {
        part
    };
    let found = of_content(part.bytes, format);
    let is_odf = matches!(found, Format::Odt | Format::Ods | Format::Odp);
    let plain = if is_odf { key::open_odf(part.bytes, &part.options.passwords)? } else { None };
    let part = &Part { bytes: plain.as_deref().unwrap_or(part.bytes), ..*part };
    let Reader::Parsed(parser) = found.reader() else { return inner(part, found) };
    let mut parsed = match parser {
        Parser::Pdf => pdf::read(part),
        Parser::Office(kind) => office::read(part, found, kind),
        Parser::Workbook(book) => workbook::read(part, found, book),
        Parser::Epub => epub::read(part, inner),
        Parser::Notebook => notebook::read(part),
        Parser::Mail => mail::read(part, inner),
        Parser::Archive => archive::read(part, inner),
    }?;
    if let Some(document) = parsed.documents.first_mut().filter(|_| found != format) {
        document.warnings.insert(0, format!("its extension says {format}, its content is {found}; read as {found}"));
    }
    warn(&mut parsed, depth);
    figures::count(&mut parsed.extraction, &parsed.documents);
    Ok(parsed)
}

/// The format that the bytes say, else the one that the extension says.
fn of_content(bytes: &[u8], named: Format) -> Format {
    let start = &bytes[..bytes.len().min(PDF_MARK_WITHIN_BYTES)];
    if memmem::find(start, b"%PDF-").is_some() && !matches!(named, Format::Eml | Format::Ipynb | Format::Zip) {
        return Format::Pdf;
    }
    match anydoc::Format::from_bytes(bytes) {
        None | Some(anydoc::Format::Csv) => named,
        Some(anydoc::Format::Pdf) => Format::Pdf,
        Some(anydoc::Format::Doc) => Format::Doc,
        Some(anydoc::Format::Docx) => Format::Docx,
        Some(anydoc::Format::Odt) => Format::Odt,
        Some(anydoc::Format::Ppt) => Format::Ppt,
        Some(anydoc::Format::Pptx) => Format::Pptx,
        Some(anydoc::Format::Rtf) => Format::Rtf,
        Some(anydoc::Format::Epub) => Format::Epub,
        Some(anydoc::Format::Odp) => Format::Odp,
        Some(anydoc::Format::Ods) => Format::Ods,
        Some(anydoc::Format::Excel) if !bytes.starts_with(b"PK") => Format::Xls,
        Some(anydoc::Format::Excel) if named == Format::Xlsb || memmem::find(bytes, b"xl/workbook.bin").is_some() => {
            Format::Xlsb
        }
        Some(anydoc::Format::Excel) => Format::Xlsx,
    }
}

/// Says that a compound file holds an encrypted package, as office programs save one with a password.
fn is_encrypted_package(bytes: &[u8]) -> bool {
    let name: Vec<u8> = ENCRYPTED_PACKAGE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.starts_with(b"\xd0\xcf\x11\xe0") && memmem::find(bytes, &name).is_some()
}

/// Says in the warnings of the first document what was not read. What stands in another file leaves that to the file,
/// which names the first of all its parts and counts the others.
fn warn(parsed: &mut Parsed, depth: usize) {
    let Parsed { documents, extraction } = parsed;
    extraction.pages_without_text.truncate(PAGES_NAMED_MAX);
    if depth == 0 {
        name_first(&mut extraction.unread);
    }
    documents.iter_mut().for_each(|document| name_first(&mut document.warnings));
    let Some(first) = documents.first_mut() else { return };
    if first.text.is_empty() && first.warnings.is_empty() {
        first.warnings.push("no text was found in it".into());
    }
    if depth == 0 {
        first.warnings.extend(extraction.unread.iter().map(|unread| format!("not read: {unread}")));
    }
    if let ([_, ..], Some(n_pages)) = (extraction.pages_without_text.as_slice(), extraction.n_pages) {
        let pages = ranges(&extraction.pages_without_text);
        first.warnings.push(format!("no text on {pages} of {n_pages} pages"));
    }
}

/// Ascending numbers as `1, 3-5`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[u32]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}
