//! Lines of JSONL as records: an id, a title and a text under the keys that corpora use for them.
//!
//! What is wrong with one line is the error of that line; the next one is read. Cost: one line in memory at a time.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{LINE_BYTES_MAX, NotUtf8, decode_lossily};
use crate::budget::{Excess, NAME_BYTES_MAX, VALUES_MAX, within};
use crate::error::{Error, Result};

/// Keys of an id, the first present is used.
pub const ID_KEYS: [&str; 4] = ["_id", "id", "docid", "doc_id"];
/// The key of a title.
pub const TITLE_KEYS: [&str; 1] = ["title"];
/// Keys of the text, the first present is used.
pub const TEXT_KEYS: [&str; 3] = ["text", "contents", "body"];

/// One line of JSONL; a title, a text, or both.
#[derive(Debug)]
pub struct Record {
    /// From 1.
    pub line: u64,
    /// Its bytes in the input, without the line's end.
    pub source: Range<u64>,
    /// Of `_id`, `id`, `docid`, `doc_id`, the first that is there; not empty.
    pub id: Option<String>,
    /// Of `title`.
    pub title: Option<String>,
    /// Of `text`, `contents`, `body`, the first that is there.
    pub text: Option<String>,
    /// The other keys.
    pub(super) others: Map<String, Value>,
    pub(super) warnings: Vec<String>,
}

/// The records of JSONL, in order; blank lines are passed over.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    path: PathBuf,
    not_utf8: NotUtf8,
    pub(super) line_bytes_max: u64,
    n_lines: u64,
    n_bytes: u64,
    ended: bool,
    keys: Keys,
}

/// The keys met, by what they were used for.
#[derive(Debug, Default)]
struct Keys {
    id: BTreeSet<&'static str>,
    title: BTreeSet<&'static str>,
    text: BTreeSet<&'static str>,
}

impl<R: BufRead> Records<R> {
    /// Reads from `input`, which errors call `path`.
    pub fn new(input: R, path: &Path) -> Self {
        Self {
            input,
            path: path.to_owned(),
            not_utf8: NotUtf8::Refused,
            line_bytes_max: LINE_BYTES_MAX,
            n_lines: 0,
            n_bytes: 0,
            ended: false,
            keys: Keys::default(),
        }
    }

    /// The input lies behind so many lines and bytes, which places in it count.
    #[must_use]
    pub fn behind(mut self, n_lines: u64, n_bytes: u64) -> Self {
        (self.n_lines, self.n_bytes) = (n_lines, n_bytes);
        self
    }

    /// Refuses or replaces bytes that are not UTF-8; without it they are refused.
    pub(super) fn not_utf8(mut self, not_utf8: NotUtf8) -> Self {
        self.not_utf8 = not_utf8;
        self
    }

    /// The input; after an item, all bytes up to the end of its line are consumed, and none behind it.
    pub fn get_ref(&self) -> &R {
        &self.input
    }

    /// The input's name in errors.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The keys that the id, the title and the text were taken from, in words.
    pub fn note(&self) -> String {
        let used = |what: &str, keys: &BTreeSet<&'static str>| {
            if keys.is_empty() { format!("no {what}") } else { format!("{what} from {}", quoted(keys.iter().copied())) }
        };
        let Keys { id, title, text } = &self.keys;
        [used("id", id), used("title", title), used("text", text)].join(", ")
    }

    /// The next line that is not blank and where its bytes lie in the input, without its end.
    fn next_line(&mut self) -> Option<Result<(Vec<u8>, u64)>> {
        loop {
            let start = self.n_bytes;
            let (mut line, n_read) = match read_line(&mut self.input, self.line_bytes_max) {
                Ok(read) => read,
                Err(source) => {
                    self.ended = true;
                    return Some(Err(Error::Io { path: self.path.clone(), source }));
                }
            };
            if n_read == 0 {
                self.ended = true;
                return None;
            }
            self.n_bytes += n_read;
            self.n_lines += 1;
            let Some(line) = &mut line else {
                let (path, line, limit_bytes) = (self.path.clone(), self.n_lines, self.line_bytes_max);
                return Some(Err(Error::LineTooLong { path, line, limit_bytes }));
            };
            let mut line = std::mem::take(line);
            let mut start = start;
            if start == 0 && line.starts_with(b"\xef\xbb\xbf") {
                line.drain(..3);
                start = 3;
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Ok((line, start)));
            }
        }
    }

    fn record(&mut self, line: Vec<u8>, start: u64) -> Result<Record> {
        let source = start..start + line.len() as u64;
        let mut warnings = Vec::new();
        let line = match String::from_utf8(line) {
            Ok(line) => line,
            Err(error) if self.not_utf8 == NotUtf8::Replaced => {
                let (line, warning) = decode_lossily(error.as_bytes());
                warnings.push(format!("line {}: {warning}", self.n_lines));
                line
            }
            Err(error) => {
                let offset = start + error.utf8_error().valid_up_to() as u64;
                return Err(Error::InvalidUtf8 { path: self.path.clone(), offset });
            }
        };
        let over = |excess: Excess| excess.at(&self.path, Some(self.n_lines));
        within("values", n_values(&line), VALUES_MAX).map_err(over)?;
        let mut others: Map<String, Value> = serde_json::from_str(&line).map_err(|source| Error::Json {
            path: self.path.clone(),
            line: self.n_lines,
            source,
        })?;
        let id = self.extract(&mut others, &ID_KEYS, |keys| &mut keys.id)?.filter(|id| !id.is_empty());
        let id_bytes = id.as_ref().map_or(0, |id| id.len() as u64);
        within("bytes of id", id_bytes, NAME_BYTES_MAX).map_err(|excess| excess.at(&self.path, Some(self.n_lines)))?;
        let title = self.extract(&mut others, &TITLE_KEYS, |keys| &mut keys.title)?;
        let text = self.extract(&mut others, &TEXT_KEYS, |keys| &mut keys.text)?;
        if text.is_none() && title.is_none() {
            return Err(self.error(format!("no text: expected one of the keys {}", quoted(TEXT_KEYS))));
        }
        if text.is_none() {
            warnings.push(format!("line {}: a title without any of {}", self.n_lines, quoted(TEXT_KEYS)));
        }
        Ok(Record { line: self.n_lines, source, id, title, text, others, warnings })
    }

    /// The value of the first of `keys` that is present, taken out of the object: text, or a number as text.
    fn extract(
        &mut self,
        object: &mut Map<String, Value>,
        keys: &[&'static str],
        used: fn(&mut Keys) -> &mut BTreeSet<&'static str>,
    ) -> Result<Option<String>> {
        for &key in keys {
            let value = match object.remove(key) {
                None | Some(Value::Null) => continue,
                Some(Value::String(text)) => text,
                Some(Value::Number(number)) => number.to_string(),
                Some(_) => return Err(self.error(format!("`{key}` is neither text nor a number"))),
            };
            used(&mut self.keys).insert(key);
            return Ok(Some(value));
        }
        Ok(None)
    }

    fn error(&self, reason: String) -> Error {
        Error::Record { path: self.path.clone(), line: self.n_lines, reason }
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        Some(self.next_line()?.and_then(|(line, start)| self.record(line, start)))
    }
}

/// At least the number of values in a line of JSON: parsed, each takes many times its bytes.
fn n_values(line: &str) -> u64 {
    let (mut n_values, mut in_text, mut escaped) = (0, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => n_values += 1,
            _ => {}
        }
    }
    n_values
}

pub(super) fn quoted<'a>(keys: impl IntoIterator<Item = &'a str>) -> String {
    keys.into_iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// One line without its end, and the bytes read with it; no line where it is longer than `max_bytes`, of which no more
/// than that is ever kept.
fn read_line(input: &mut impl BufRead, max_bytes: u64) -> std::io::Result<(Option<Vec<u8>>, u64)> {
    let mut line = Some(Vec::new());
    let mut n_read = 0;
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        let end = available.iter().position(|&byte| byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        line = line.filter(|line: &Vec<u8>| (line.len() + part.len()) as u64 <= max_bytes);
        if let Some(line) = &mut line {
            line.extend_from_slice(part);
        }
        let n_used = part.len() + usize::from(end.is_some());
        n_read += n_used as u64;
        input.consume(n_used);
        if end.is_some() || n_used == 0 {
            if let Some(line) = line.as_mut().filter(|line| line.ends_with(b"\r")) {
                line.pop();
            }
            return Ok((line, n_read));
        }
    }
}
