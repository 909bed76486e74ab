//! CSV and TSV: the file is a sheet, each row a block of `column: value` parts in one line.
//!
//! The text is extracted: the names of the header row stand with every row, so that a row can be read alone. Empty
//! cells are left out, white space in a cell becomes single spaces.
//! Cost: one raw row in memory besides the text.

use std::io::{self, BufReader, Read};

use csv::{ByteRecord, ReaderBuilder};

use super::{LINE_BYTES_MAX, Metadata, NotUtf8, ReadOptions, decode_lossily, file_stem};
use crate::anchor::Anchor;
use crate::budget::{self, BLOCKS_MAX, Excess, NAME_BYTES_MAX, within};
use crate::document::{Block, BlockKind, Document, TextKind};
use crate::error::{Error, Result};
use crate::folder::FoundFile;
use crate::format::Format;
use crate::links::{self, Markup};
use crate::section::Outline;

/// The number of rows named one by one in the warnings of one kind.
const ROWS_NAMED_MAX: usize = 10;

/// A cell of more lines than this has more likely swallowed rows, from a quote that opens it to one that was to open
/// another, than that somebody wrote it.
const CELL_LINES_MAX: u64 = 100;

/// Reads a table into its one document; the notes say which separator was used and what the columns are.
///
/// # Errors
/// The file is no text, too long, or exceeds a budget.
pub(super) fn read(input: impl Read, file: &FoundFile, options: &ReadOptions) -> Result<(Document, Vec<String>)> {
    let limit_bytes = options.max_file_bytes;
    let mut rows = Rows::open(input.take(limit_bytes.saturating_add(1)), file, options.not_utf8(), LINE_BYTES_MAX)?;
    let over = |excess: Excess| excess.at(&file.path, None);
    let mut sheet = Sheet { name: file_stem(&file.origin), ..Sheet::default() };
    if let Some(header) = rows.next_row()? {
        sheet.columns = header.cells.into_iter().map(|cell| one_line(&cell)).collect();
        let longest = sheet.columns.iter().map(String::len).max().unwrap_or(0) as u64;
        within("bytes in the name of a column", longest, NAME_BYTES_MAX).map_err(over)?;
    }
    while let Some(row) = rows.next_row()? {
        sheet.push(row);
        // While it grows: a few long names make gigabytes of many short rows.
        let n_bytes = file.n_bytes.max(rows.n_bytes());
        within("bytes of text", sheet.text.len() as u64, budget::text_bytes_max(n_bytes)).map_err(over)?;
        within("rows", u64::from(sheet.n_rows), BLOCKS_MAX).map_err(over)?;
    }
    if rows.n_bytes() > limit_bytes {
        return Err(Error::TooLarge { path: file.path.clone(), n_bytes: rows.n_bytes(), limit_bytes });
    }
    let notes = vec![format!(
        "{}: {} columns separated by {}",
        file.origin,
        sheet.columns.len(),
        separator_name(rows.separator)
    )];
    let mut warnings = rows.warnings.into_words();
    if sheet.columns.is_empty() {
        warnings.push("the file is empty".into());
    }
    Ok((sheet.into_document(file, warnings), notes))
}

/// Remarks on rows, of which the first few are named.
#[derive(Debug, Default)]
struct Remarks {
    named: Vec<String>,
    n: usize,
}

impl Remarks {
    fn add(&mut self, remark: impl FnOnce() -> String) {
        self.n += 1;
        if self.n <= ROWS_NAMED_MAX {
            self.named.push(remark());
        }
    }

    /// All of them, the last of which counts those not named.
    fn into_words(self, more: &str) -> Vec<String> {
        let Self { mut named, n } = self;
        if n > ROWS_NAMED_MAX {
            named.push(format!("{} more {more}", n - ROWS_NAMED_MAX));
        }
        named
    }
}

/// Oddities of rows as they stand in the file.
#[derive(Debug, Default)]
struct Oddities {
    not_utf8: Remarks,
    long_cells: Remarks,
    unclosed: Option<String>,
}

impl Oddities {
    fn into_words(self) -> Vec<String> {
        let mut words = self.not_utf8.into_words("rows have invalid UTF-8, replaced by U+FFFD");
        words.extend(self.long_cells.into_words("rows have such cells"));
        words.extend(self.unclosed);
        words
    }
}

/// A row as it stands in the file.
struct Row {
    cells: Vec<String>,
    line: u64,
    source: std::ops::Range<u64>,
}

/// The rows of a file with their places.
struct Rows<'a, R> {
    reader: csv::Reader<Tap<R>>,
    file: &'a FoundFile,
    not_utf8: NotUtf8,
    separator: u8,
    record: ByteRecord,
    n_lines: u64,
    n_rows: u64,
    warnings: Oddities,
}

impl<'a, R: Read> Rows<'a, BufReader<R>> {
    fn open(input: R, file: &'a FoundFile, not_utf8: NotUtf8, row_bytes_max: u64) -> Result<Self> {
        let mut input = BufReader::with_capacity(64 * 1024, input);
        let start = io::BufRead::fill_buf(&mut input).map_err(Error::io(&file.path))?;
        let separator = separator(start, &file.origin);
        let tap = Tap { input, kept: Vec::new(), start: 0, max_bytes: row_bytes_max, too_long: false };
        let reader = ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(tap);
        let (record, warnings) = (ByteRecord::new(), Oddities::default());
        Ok(Self { reader, file, not_utf8, separator, record, n_lines: 0, n_rows: 0, warnings })
    }

    /// Bytes read so far.
    fn n_bytes(&self) -> u64 {
        self.reader.position().byte()
    }

    fn next_row(&mut self) -> Result<Option<Row>> {
        let path = &self.file.path;
        let found = self.reader.read_byte_record(&mut self.record).map_err(|error| {
            let line = self.n_lines + 1;
            if self.reader.get_ref().too_long {
                return Error::LineTooLong { path: path.clone(), line, limit_bytes: self.reader.get_ref().max_bytes };
            }
            Error::Io { path: path.clone(), source: error.into() }
        })?;
        if !found {
            return Ok(None);
        }
        let end = self.reader.position().byte();
        let tap = self.reader.get_mut();
        let start = tap.start;
        let raw = tap.take_until(end);
        let lead = raw.iter().take_while(|&&byte| byte == b'\n' || byte == b'\r').count();
        let lead = if start == 0 && raw.starts_with(b"\xef\xbb\xbf") { 3 } else { lead };
        let n_lines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let line = self.n_lines + n_lines(&raw[..lead]) + 1;
        self.n_lines += n_lines(&raw);
        let content = raw.trim_ascii_end().len().max(lead);
        if let Err(error) = std::str::from_utf8(&raw) {
            if self.not_utf8 == NotUtf8::Refused {
                return Err(Error::InvalidUtf8 { path: path.clone(), offset: start + error.valid_up_to() as u64 });
            }
            self.warnings.not_utf8.add(|| format!("line {line}: {}", decode_lossily(&raw).1));
        }
        self.remark_quotes(&raw[lead..], line);
        self.n_rows += 1;
        let cells = self.record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
        Ok(Some(Row { cells, line, source: start + lead as u64..start + content as u64 }))
    }
}

impl<R> Rows<'_, R> {
    /// Remarks on a quote that is never closed, and on one that was closed too late, in a row that begins on `line`.
    fn remark_quotes(&mut self, raw: &[u8], line: u64) {
        let row = match self.n_rows {
            0 => "the header row".to_owned(),
            n => format!("row {n}"),
        };
        for cell in quoted_cells(raw, self.separator) {
            let lines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            let opens = line + lines(&raw[..cell.start]);
            let n_lines = lines(&raw[cell.start..cell.end]);
            if !cell.is_closed {
                let rest = format!("the file ends in it, {n_lines} lines on");
                self.warnings.unclosed =
                    Some(format!("{row} (line {opens}): a quote opens here that nothing closes: {rest}"));
            } else if n_lines > CELL_LINES_MAX {
                self.warnings.long_cells.add(|| {
                    format!("{row} (line {opens}): a quoted cell of {n_lines} lines: is the quote that opens it part of its text?")
                });
            }
        }
    }
}

/// A cell in quotes, as bytes of its row.
#[derive(Debug, PartialEq, Eq)]
struct QuotedCell {
    start: usize,
    end: usize,
    is_closed: bool,
}

/// The cells of a row that begin with a quote. Two quotes in such a cell are one, and one ends it.
fn quoted_cells(raw: &[u8], separator: u8) -> Vec<QuotedCell> {
    let (mut cells, mut at) = (Vec::new(), 0);
    while at < raw.len() {
        if raw[at] == b'"' {
            let (start, mut end, mut is_closed) = (at, at + 1, false);
            while !is_closed && end < raw.len() {
                let doubled = raw[end] == b'"' && raw.get(end + 1) == Some(&b'"');
                is_closed = raw[end] == b'"' && !doubled;
                end += if doubled { 2 } else { 1 };
            }
            cells.push(QuotedCell { start, end: end.min(raw.len()), is_closed });
            at = end;
        }
        at =
            raw[at.min(raw.len())..].iter().position(|&byte| byte == separator).map_or(raw.len(), |next| at + next + 1);
    }
    cells
}

/// Remembers the bytes of the row being read, and stops at a row that is too long.
struct Tap<R> {
    input: R,
    kept: Vec<u8>,
    /// Place of the first byte kept.
    start: u64,
    max_bytes: u64,
    too_long: bool,
}

impl<R> Tap<R> {
    fn take_until(&mut self, end: u64) -> Vec<u8> {
        let rest = self.kept.split_off((end - self.start) as usize);
        self.start = end;
        std::mem::replace(&mut self.kept, rest)
    }
}

impl<R: Read> Read for Tap<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.kept.len() as u64 > self.max_bytes {
            self.too_long = true;
            return Err(io::Error::other("row too long"));
        }
        let n_read = self.input.read(buffer)?;
        self.kept.extend_from_slice(&buffer[..n_read]);
        Ok(n_read)
    }
}

/// The text of a sheet in the making.
#[derive(Default)]
struct Sheet {
    name: String,
    columns: Vec<String>,
    text: String,
    blocks: Vec<Block>,
    n_rows: u32,
    n_empty: usize,
    ragged: Remarks,
}

impl Sheet {
    fn push(&mut self, row: Row) {
        self.n_rows += 1;
        if row.cells.len() != self.columns.len() {
            let (n, cells, columns) = (self.n_rows, row.cells.len(), self.columns.len());
            self.ragged.add(|| format!("row {n} (line {}) has {cells} cells, the header has {columns}", row.line));
        }
        let start = self.text.len();
        for (index, cell) in row.cells.iter().enumerate() {
            let cell = one_line(cell);
            if cell.is_empty() {
                continue;
            }
            if self.text.len() > start {
                self.text.push_str(" | ");
            }
            match self.columns.get(index).filter(|column| !column.is_empty()) {
                Some(column) => self.text.push_str(column),
                None => self.text.push_str(&format!("column {}", index + 1)),
            }
            self.text.push_str(": ");
            self.text.push_str(&cell);
        }
        if self.text.len() == start {
            self.n_empty += 1;
            return;
        }
        self.text.push('\n');
        let anchor = Anchor {
            line: u32::try_from(row.line).ok(),
            page: None,
            sheet: Some(self.name.clone()),
            row: Some(self.n_rows),
            source: Some(row.source),
        };
        self.blocks.push(Block { span: start..self.text.len(), kind: BlockKind::Row, section: 1, anchor });
    }

    fn into_document(self, file: &FoundFile, mut warnings: Vec<String>) -> Document {
        let Self { name, text, blocks, n_empty, ragged, .. } = self;
        warnings.extend(ragged.into_words("rows have another number of cells than the header"));
        if n_empty > 0 {
            warnings.push(format!("empty rows left out: {n_empty}"));
        }
        let mut outline = Outline::new();
        outline.open(
            1,
            name.clone(),
            0..0,
            0,
            Anchor { line: Some(1), sheet: Some(name.clone()), ..Anchor::default() },
        );
        let sections = outline.finish(text.len());
        let mut document = Document {
            id: file.origin.clone(),
            origin: file.origin.clone(),
            format: Format::Csv,
            title: name,
            text,
            kind: TextKind::Extracted,
            sections,
            blocks,
            metadata: Metadata::new(),
            links: Vec::new(),
            warnings,
        };
        links::find(&mut document, Markup::default());
        document
    }
}

/// Tab for `.tsv`; else a comma, unless the header line has none and has a semicolon or tab.
fn separator(start: &[u8], origin: &str) -> u8 {
    if origin.to_ascii_lowercase().ends_with(".tsv") {
        return b'\t';
    }
    let header = start.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or(b"");
    let mut quoted = false;
    let outside: Vec<u8> = header
        .iter()
        .copied()
        .filter(|&byte| {
            quoted ^= byte == b'"';
            !quoted
        })
        .collect();
    [b',', b';', b'\t'].into_iter().find(|separator| outside.contains(separator)).unwrap_or(b',')
}

fn separator_name(separator: u8) -> &'static str {
    match separator {
        b'\t' => "tabs",
        b';' => "semicolons",
        _ => "commas",
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(origin: &str) -> FoundFile {
        FoundFile {
            path: origin.into(),
            origin: origin.into(),
            format: Format::Csv,
            n_bytes: 0,
            record_ids: crate::RecordIds::UnderFile,
        }
    }

    /// Rows as `row line raw bytes`.
    #[track_caller]
    fn check(origin: &str, source: &str, text: &str, rows: &[(u32, u32, &str)]) -> Document {
        let (document, _) = read(source.as_bytes(), &file(origin), &ReadOptions::default()).unwrap();
        assert_eq!(document.text, text);
        let found: Vec<(u32, u32, &str)> = document
            .blocks
            .iter()
            .map(|block| {
                let bytes = block.anchor.source.clone().unwrap();
                (
                    block.anchor.row.unwrap(),
                    block.anchor.line.unwrap(),
                    &source[bytes.start as usize..bytes.end as usize],
                )
            })
            .collect();
        assert_eq!(found, rows);
        document
    }

    #[test]
    fn rows_carry_their_header_and_place() {
        let document = check(
            "d/stock.csv",
            "\u{feff}name,n,note\r\nnut,3,\r\n\r\n\"big\r\nbolt\",4,\"a, \"\"b\"\"\"\r\n,,\r\nlast,5,x",
            "name: nut | n: 3\nname: big bolt | n: 4 | note: a, \"b\"\nname: last | n: 5 | note: x\n",
            &[(1, 2, "nut,3,"), (2, 4, "\"big\r\nbolt\",4,\"a, \"\"b\"\"\""), (4, 7, "last,5,x")],
        );
        assert_eq!(document.sections[1].heading, "stock");
        assert_eq!(document.warnings, ["empty rows left out: 1"]);
    }

    #[test]
    fn ragged_rows_are_kept_and_reported() {
        let document = check(
            "d/r.csv",
            "a,\n1\n2,3,4\n",
            "a: 1\na: 2 | column 2: 3 | column 3: 4\n",
            &[(1, 2, "1"), (2, 3, "2,3,4")],
        );
        assert_eq!(document.warnings.len(), 2);
        assert_eq!(document.warnings[1], "row 2 (line 3) has 3 cells, the header has 2");
    }

    #[test]
    fn separators() {
        check("d/r.tsv", "a\tb\n1\t2,5\n", "a: 1 | b: 2,5\n", &[(1, 2, "1\t2,5")]);
        check("d/r.csv", "\"a,x\";b\n1;2,5\n", "a,x: 1 | b: 2,5\n", &[(1, 2, "1;2,5")]);
    }

    #[test]
    fn a_quote_never_closed_is_not_read_into_memory() {
        let source = format!("a,b\n\"{}", "x\n".repeat(200_000));
        let file = file("d/r.csv");
        let mut rows = Rows::open(source.as_bytes(), &file, NotUtf8::Refused, 1000).unwrap();
        assert!(rows.next_row().unwrap().is_some());
        assert!(matches!(rows.next_row(), Err(Error::LineTooLong { line: 2, limit_bytes: 1000, .. })));
        assert!(rows.reader.get_ref().kept.len() < 20_000);
    }

    #[test]
    fn bad_bytes_are_named_or_replaced() {
        let source = b"a\nok\n\xff\n";
        assert!(matches!(
            read(&source[..], &file("f.csv"), &ReadOptions::default()),
            Err(Error::InvalidUtf8 { offset: 5, .. })
        ));
        let lossy = ReadOptions { lossy: true, ..ReadOptions::default() };
        assert_eq!(read(&source[..], &file("f.csv"), &lossy).unwrap().0.text, "a: ok\na: \u{fffd}\n");
    }

    #[test]
    fn a_quote_that_nothing_closes_is_named_with_its_line() {
        let rows = |first: &str| format!("a,b\n1,2\n3,{first}\n{}", "4,5\n".repeat(499));
        let warnings =
            |source: &str| read(source.as_bytes(), &file("d/r.csv"), &ReadOptions::default()).unwrap().0.warnings;
        let swallowed = warnings(&rows("\"six"));
        assert_eq!(
            swallowed,
            ["row 2 (line 3): a quote opens here that nothing closes: the file ends in it, 500 lines on"]
        );
        // A stray quote further on closes it, and the rows between are as lost.
        let closed = warnings(&rows("\"six").replacen("4,5\n4,5\n4,5\n", "4,5\n4,5\n4,\"5\n", 1));
        assert!(closed.is_empty(), "three lines in a cell are nothing odd: {closed:?}");
        let closed = warnings(&(rows("\"six") + "7,8\"\n9,9\n"));
        assert!(closed[0].starts_with("row 2 (line 3): a quoted cell of 500 lines"), "{closed:?}");
        assert!(warnings("a,b\n\"x \"\"y\"\" z\",\"\"\n5\" disk,\"p\nq\"\n").is_empty());
    }

    #[test]
    fn names_of_columns_cannot_make_gigabytes() {
        let over = |source: String| {
            read(source.as_bytes(), &file("d/r.csv"), &ReadOptions::default()).unwrap_err().to_string()
        };
        let one = over(format!("{}\n{}", "h".repeat(500_000), "x\n".repeat(250_000)));
        assert_eq!(one, "d/r.csv: 500000 bytes in the name of a column, the limit for one document is 4096");
        let many = over(format!(
            "{}\n{}",
            vec!["h".repeat(999); 500].join(","),
            format!("{}\n", "1,".repeat(499)).repeat(500)
        ));
        assert!(many.starts_with("d/r.csv: ") && many.contains(" bytes of text, the limit"), "{many}");
        assert!(over(format!("a\n{}", "1\n".repeat(1_100_000))).contains("1048577 rows"));
        let short = ReadOptions { max_file_bytes: 5, ..ReadOptions::default() };
        assert!(matches!(read(&b"a\n1\n2\n"[..], &file("f.csv"), &short), Err(Error::TooLarge { limit_bytes: 5, .. })));
    }
}
