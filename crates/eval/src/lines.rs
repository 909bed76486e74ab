//! Reading a text file line by line, with errors that say where.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The longest line that is read: a run in one JSON object may be one line.
const LINE_BYTES_MAX: u64 = 1 << 28;

/// The lines of a file that are not blank, one at a time: memory is one line.
pub(crate) struct Lines {
    path: PathBuf,
    input: Box<dyn BufRead>,
    number: u64,
    line: String,
}

impl Lines {
    /// Opens a file; `-` is stdin.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            Ok(Self::new(io::stdin().lock(), Path::new("stdin")))
        } else {
            Ok(Self::new(fs_err::File::open(path)?, path))
        }
    }

    /// Reads from anything; `name` is what errors call it.
    pub(crate) fn new(input: impl Read + 'static, name: &Path) -> Self {
        let input = Box::new(BufReader::with_capacity(1 << 16, input));
        Self { path: name.to_owned(), input, number: 0, line: String::new() }
    }

    /// The file's name in errors.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next line with its number, from 1, without its end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &str)>> {
        loop {
            self.line.clear();
            self.number += 1;
            let read = self.input.by_ref().take(LINE_BYTES_MAX + 1).read_line(&mut self.line);
            match read {
                Ok(0) => return Ok(None),
                Ok(n) if n as u64 > LINE_BYTES_MAX => {
                    let expected = format!("lines of at most {LINE_BYTES_MAX} bytes");
                    return Err(self.malformed(self.number, 1, expected, "a longer one"));
                }
                Ok(_) if self.line.trim().is_empty() => {}
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(self.malformed(self.number, 1, "UTF-8", "other bytes"));
                }
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", self.path.display())).into());
                }
            }
        }
        let line = self.line.trim_end_matches(['\n', '\r']);
        Ok(Some((self.number, if self.number == 1 { line.trim_start_matches('\u{feff}') } else { line })))
    }

    /// The error of a line of this file.
    pub(crate) fn malformed(
        &self,
        line: u64,
        column: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Error {
        Error::Malformed { path: self.path.clone(), line, column, expected: expected.into(), found: found.into() }
    }

    /// The error of what is wrong with a line of this file.
    pub(crate) fn fault(&self, line: u64, fault: Fault) -> Error {
        self.malformed(line, fault.column, fault.expected, fault.found)
    }
}

/// The longest file that is read whole.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The bytes of a file that is read whole.
pub(crate) fn read_bounded(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs_err::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let reason = format!("{}: more than the {FILE_BYTES_MAX} bytes that are read", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason).into());
    }
    Ok(bytes)
}

/// The fault in a line, before it is known which line of which file it is.
pub(crate) struct Fault {
    /// In characters, from 1.
    pub(crate) column: usize,
    pub(crate) expected: Cow<'static, str>,
    pub(crate) found: String,
}

impl Fault {
    pub(crate) fn new(column: usize, expected: impl Into<Cow<'static, str>>, found: impl Into<String>) -> Self {
        Self { column, expected: expected.into(), found: found.into() }
    }
}

/// The column of a field that is a part of the line, in characters from 1.
pub(crate) fn column_of(line: &str, field: &str) -> usize {
    let offset = field.as_ptr() as usize - line.as_ptr() as usize;
    line[..offset].chars().count() + 1
}

/// A line as a JSON object.
pub(crate) fn object(path: &Path, number: u64, line: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(line).map_err(|error| json_error(path, number, line, &error))
}

/// A line as a record with named fields; the error names the field that is missing, or says where one has another type.
pub(crate) fn record<T: DeserializeOwned>(path: &Path, number: u64, line: &str) -> Result<T> {
    serde_json::from_str(line).map_err(|error| json_error(path, number, line, &error))
}

fn json_error(path: &Path, number: u64, line: &str, error: &serde_json::Error) -> Error {
    let told = error.to_string();
    let what = told.rsplit_once(" at line ").map_or(&*told, |(what, _)| what);
    Error::Malformed {
        path: path.to_owned(),
        line: number,
        // serde_json counts bytes
        column: line.get(..error.column().saturating_sub(1)).map_or(1, |before| before.chars().count() + 1),
        expected: if error.is_data() { "a record".into() } else { "a JSON object".into() },
        found: if error.is_data() { what.to_owned() } else { format!("no JSON ({what})") },
    }
}
