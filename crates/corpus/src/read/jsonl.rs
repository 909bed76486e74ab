//! JSONL, BEIR corpora included: one JSON object a line, each a document.
//!
//! The text is `title`, an empty line, `text`; after a BERT tokenizer's normalisation that reads as `title text`.
//! Cost: one line in memory at a time, and the ids met so far, by which a repeated one is found.

use std::collections::{BTreeSet, HashMap};
use std::io::BufRead;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{LINE_BYTES_MAX, Metadata, decode_lossily, metadata_value, text};
use crate::document::{Anchor, BlockKind, Document, TextKind, blocks_from_starts};
use crate::error::{Error, Result};
use crate::folder::FoundFile;
use crate::section::Outline;

/// Keys of an id, the first present is used.
const ID_KEYS: [&str; 4] = ["_id", "id", "docid", "doc_id"];
const TITLE_KEYS: [&str; 1] = ["title"];
/// Keys of the text, the first present is used.
const TEXT_KEYS: [&str; 3] = ["text", "contents", "body"];

/// The documents of a JSONL file.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    path: PathBuf,
    origin: String,
    lossy: bool,
    line_bytes_max: u64,
    /// Lines and bytes read.
    n_lines: u64,
    n_bytes: u64,
    n_documents: u64,
    ended: bool,
    /// The line of each id.
    ids: HashMap<Box<str>, u64>,
    keys: Keys,
}

/// The keys met, by what they were used for.
#[derive(Debug, Default)]
struct Keys {
    id: BTreeSet<&'static str>,
    title: BTreeSet<&'static str>,
    text: BTreeSet<&'static str>,
    metadata: BTreeSet<String>,
    n_numbered: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, file: &FoundFile, lossy: bool) -> Self {
        Self {
            input,
            path: file.path.clone(),
            origin: file.origin.clone(),
            lossy,
            line_bytes_max: LINE_BYTES_MAX,
            n_lines: 0,
            n_bytes: 0,
            n_documents: 0,
            ended: false,
            ids: HashMap::new(),
            keys: Keys::default(),
        }
    }

    /// Which keys became what.
    pub(super) fn notes(&self) -> Vec<String> {
        let used = |what: &str, keys: &BTreeSet<&'static str>| match keys.is_empty() {
            true => format!("no {what}"),
            false => format!("{what} from {}", quoted(keys.iter().copied())),
        };
        let mut notes = vec![format!(
            "{}: {}, {}, {}",
            self.origin,
            used("id", &self.keys.id),
            used("title", &self.keys.title),
            used("text", &self.keys.text)
        )];
        if !self.keys.metadata.is_empty() {
            let keys = quoted(self.keys.metadata.iter().map(String::as_str));
            notes.push(format!("{}: {keys} kept as metadata", self.origin));
        }
        if self.keys.n_numbered > 0 {
            notes.push(format!(
                "{}: {} lines without an id are named by their line number",
                self.origin, self.keys.n_numbered
            ));
        }
        notes
    }

    /// The next line that is not blank and where its bytes lie in the file, without its end.
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

    fn document(&mut self, line: Vec<u8>, start: u64) -> Result<Document> {
        let source = start..start + line.len() as u64;
        let mut warnings = Vec::new();
        let line = match String::from_utf8(line) {
            Ok(line) => line,
            Err(error) if self.lossy => {
                let (line, warning) = decode_lossily(error.as_bytes());
                warnings.push(format!("line {}: {warning}", self.n_lines));
                line
            }
            Err(error) => {
                let offset = start + error.utf8_error().valid_up_to() as u64;
                return Err(Error::InvalidUtf8 { path: self.path.clone(), offset });
            }
        };
        let mut object: Map<String, Value> = serde_json::from_str(&line).map_err(|source| Error::Json {
            path: self.path.clone(),
            line: self.n_lines,
            source,
        })?;
        let id = self.extract(&mut object, &ID_KEYS, |keys| &mut keys.id)?.filter(|id| !id.is_empty());
        let title = self.extract(&mut object, &TITLE_KEYS, |keys| &mut keys.title)?;
        let text = self.extract(&mut object, &TEXT_KEYS, |keys| &mut keys.text)?;
        if text.is_none() && title.is_none() {
            return Err(self.record_error(format!("no text: expected one of the keys {}", quoted(TEXT_KEYS))));
        }
        if text.is_none() {
            warnings.push(format!("line {}: a title without any of {}", self.n_lines, quoted(TEXT_KEYS)));
        }
        let id = id.unwrap_or_else(|| {
            self.keys.n_numbered += 1;
            format!("{}:{}", self.origin, self.n_lines)
        });
        if let Some(&first_line) = self.ids.get(id.as_str()) {
            return Err(Error::DuplicateId { path: self.path.clone(), id, first_line, line: self.n_lines });
        }
        self.ids.insert(id.as_str().into(), self.n_lines);
        let metadata = self.metadata(object);
        let anchor = Anchor { line: u32::try_from(self.n_lines).ok(), source: Some(source), ..Anchor::default() };
        let (title, text) = (title.unwrap_or_default(), text.unwrap_or_default());
        self.n_documents += 1;
        Ok(compose(id, self.origin.clone(), title, text, anchor, metadata, warnings))
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
                Some(_) => return Err(self.record_error(format!("`{key}` is neither text nor a number"))),
            };
            used(&mut self.keys).insert(key);
            return Ok(Some(value));
        }
        Ok(None)
    }

    fn metadata(&mut self, object: Map<String, Value>) -> Metadata {
        let mut metadata = Metadata::new();
        for (key, value) in object {
            let Some(value) = metadata_value(&value) else { continue };
            if !self.keys.metadata.contains(&key) {
                self.keys.metadata.insert(key.clone());
            }
            metadata.insert(key, value);
        }
        metadata
    }

    fn record_error(&self, reason: String) -> Error {
        Error::Record { path: self.path.clone(), line: self.n_lines, reason }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        Some(self.next_line()?.and_then(|(line, start)| self.document(line, start)))
    }
}

/// A document of a row: its title, if any, is a heading over all of it.
fn compose(
    id: String,
    origin: String,
    title: String,
    text: String,
    anchor: Anchor,
    metadata: Metadata,
    warnings: Vec<String>,
) -> Document {
    let has_title = !title.trim().is_empty();
    let canonical = match (has_title, text.is_empty()) {
        (true, true) => title.clone(),
        (true, false) => format!("{title}\n\n{text}"),
        (false, _) => text,
    };
    let mut outline = Outline::new();
    let mut starts = Vec::new();
    let mut body = 0;
    if has_title {
        outline.open(1, one_line(&title), 0..title.len(), 0, anchor.clone());
        starts.push((0, BlockKind::Heading, outline.innermost()));
        body = canonical.len().min(title.len() + 2);
    }
    let section = outline.innermost();
    starts.push((body, BlockKind::Prose, section));
    let paragraphs = text::paragraph_starts(&canonical[body..]).into_iter().skip(1);
    starts.extend(paragraphs.map(|start| (body + start, BlockKind::Prose, section)));
    let mut blocks = blocks_from_starts(&canonical, starts);
    for block in &mut blocks {
        block.anchor = anchor.clone();
    }
    let sections = outline.finish(canonical.len());
    let title = if has_title { title } else { String::new() };
    Document { id, origin, title, text: canonical, kind: TextKind::Extracted, sections, blocks, metadata, warnings }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn quoted<'a>(keys: impl IntoIterator<Item = &'a str>) -> String {
    keys.into_iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// One line without its end, and the bytes read with it; no line where it is longer than `max_bytes`, of which no more than
/// that is ever kept.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Format;

    fn lines(text: &str) -> Lines<&[u8]> {
        let file = FoundFile {
            path: "d/corpus.jsonl".into(),
            origin: "d/corpus.jsonl".into(),
            format: Format::Jsonl,
            n_bytes: 0,
        };
        Lines::new(text.as_bytes(), &file, false)
    }

    #[test]
    fn beir_rows() {
        let rows = "\u{feff}{\"_id\": \"4\", \"title\": \"T\", \"text\": \"One.\\n\\nTwo.\", \"metadata\": {\"a\": 1}}\r\n\n{\"id\": 7, \"title\": \"\", \"body\": \"b\", \"year\": 1999, \"x\": null}\n";
        let mut lines = lines(rows);
        let first = lines.next().unwrap().unwrap();
        assert_eq!((first.id.as_str(), first.title.as_str(), first.text.as_str()), ("4", "T", "T\n\nOne.\n\nTwo."));
        assert_eq!((first.sections[1].heading.as_str(), first.sections[1].span.clone()), ("T", 0..first.text.len()));
        assert_eq!(first.metadata["metadata"], r#"{"a":1}"#);
        let source = first.blocks[1].anchor.source.clone().unwrap();
        assert_eq!(&rows[source.start as usize..source.end as usize], rows[3..].lines().next().unwrap());
        let blocks: Vec<&str> = first.blocks.iter().map(|block| &first.text[block.span.clone()]).collect();
        assert_eq!(blocks, ["T\n\n", "One.\n\n", "Two."]);
        let second = lines.next().unwrap().unwrap();
        assert_eq!((second.id.as_str(), second.title.as_str(), second.text.as_str()), ("7", "", "b"));
        assert_eq!((second.sections.len(), second.blocks[0].anchor.line), (1, Some(3)));
        assert_eq!(second.metadata.iter().collect::<Vec<_>>(), [(&"year".to_string(), &"1999".to_string())]);
        assert!(lines.next().is_none());
        assert_eq!(
            lines.notes(),
            [
                "d/corpus.jsonl: id from `_id`, `id`, title from `title`, text from `body`, `text`",
                "d/corpus.jsonl: `metadata`, `year` kept as metadata"
            ]
        );
    }

    #[test]
    fn a_bad_line_is_an_error_that_names_it_and_the_rest_is_read() {
        let mut lines =
            lines("{\"text\": \"a\"}\n{\"text\": \n[1]\n{\"_id\": \"x\"}\n{\"text\": [1]}\n{\"text\": \"b\"}");
        lines.line_bytes_max = 20;
        assert_eq!(lines.next().unwrap().unwrap().id, "d/corpus.jsonl:1");
        for (line, part) in [
            (2, "line 2 is not a JSON object"),
            (3, "line 3"),
            (4, "`text`, `contents`, `body`"),
            (5, "`text` is neither"),
        ] {
            let message = lines.next().unwrap().unwrap_err().to_string();
            assert!(message.contains(part) && message.contains("d/corpus.jsonl"), "line {line}: {message}");
        }
        assert_eq!(lines.next().unwrap().unwrap().text, "b");
    }

    #[test]
    fn an_over_long_line_is_passed_over() {
        let text = format!("{{\"text\": \"{}\"}}\n{{\"text\": \"b\"}}\n", "a".repeat(100));
        let mut lines = lines(&text);
        lines.line_bytes_max = 50;
        assert!(matches!(lines.next().unwrap(), Err(Error::LineTooLong { line: 1, limit_bytes: 50, .. })));
        assert_eq!(lines.next().unwrap().unwrap().id, "d/corpus.jsonl:2");
    }

    #[test]
    fn repeated_ids_name_both_lines() {
        let mut lines = lines(
            "{\"id\": \"a\", \"text\": \"x\"}\n{\"id\": \"b\", \"text\": \"x\"}\n{\"id\": \"a\", \"text\": \"y\"}\n",
        );
        assert_eq!(lines.by_ref().take(2).filter(Result::is_ok).count(), 2);
        assert!(matches!(lines.next().unwrap(), Err(Error::DuplicateId { first_line: 1, line: 3, .. })));
    }

    #[test]
    fn invalid_utf8_is_named_by_its_place_or_replaced() {
        let bytes = b"{\"text\": \"a\"}\n{\"text\": \"\xff\"}\n";
        let file = FoundFile { path: "f".into(), origin: "f".into(), format: Format::Jsonl, n_bytes: 0 };
        let mut strict = Lines::new(&bytes[..], &file, false);
        assert!(matches!(strict.nth(1).unwrap(), Err(Error::InvalidUtf8 { offset: 24, .. })));
        let document = Lines::new(&bytes[..], &file, true).nth(1).unwrap().unwrap();
        assert_eq!((document.text.as_str(), document.warnings.len()), ("\u{fffd}", 1));
    }
}
