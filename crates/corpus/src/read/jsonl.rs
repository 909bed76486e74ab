//! JSONL, BEIR corpora included: one JSON object a line, each a document.
//!
//! The text is `title`, an empty line, `text`; after a BERT tokenizer's normalisation that reads as `title text`.
//! Cost: one line in memory at a time, and the ids met so far, by which a repeated one is found.

use std::collections::{BTreeSet, HashMap};
use std::io::BufRead;

use serde_json::{Map, Value};

use super::records::{Record, Records, quoted};
use super::{Metadata, NotUtf8, text};
use crate::anchor::Anchor;
use crate::budget::Excess;
use crate::document::{BlockKind, Document, TextKind, blocks_from_starts, record_id};
use crate::error::{Error, Result};
use crate::folder::{FoundFile, RecordIds};
use crate::format::Format;
use crate::links::{self, Markup};
use crate::metadata::add_json;
use crate::section::Outline;

/// The names of keys that a note lists at most.
const KEYS_NAMED_MAX: usize = 50;

/// The documents of a JSONL file.
#[derive(Debug)]
pub(super) struct Lines<R> {
    records: Records<R>,
    origin: String,
    record_ids: RecordIds,
    /// Remarks on the file, which its first document carries.
    warnings: Vec<String>,
    /// The line of each id.
    ids: HashMap<Box<str>, u64>,
    metadata: BTreeSet<String>,
    n_numbered: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, file: &FoundFile, not_utf8: NotUtf8) -> Self {
        Self {
            records: Records::new(input, &file.path).not_utf8(not_utf8),
            origin: file.origin.clone(),
            record_ids: file.record_ids,
            warnings: Vec::new(),
            ids: HashMap::new(),
            metadata: BTreeSet::new(),
            n_numbered: 0,
        }
    }

    /// Adds remarks on the file.
    pub(super) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    /// The use of each key.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("{}: {}", self.origin, self.records.note())];
        if !self.metadata.is_empty() {
            let keys = quoted(self.metadata.iter().take(KEYS_NAMED_MAX).map(String::as_str));
            let n_more = self.metadata.len().saturating_sub(KEYS_NAMED_MAX);
            let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
            notes.push(format!("{}: {keys}{more} kept as metadata", self.origin));
        }
        if self.n_numbered > 0 {
            notes.push(format!(
                "{}: lines without an id, which are named by their number: {}",
                self.origin, self.n_numbered
            ));
        }
        notes
    }

    fn document(&mut self, record: Record) -> Result<Document> {
        let Record { line, source, id, title, text, others, warnings } = record;
        let id = match (id, self.record_ids) {
            (Some(id), RecordIds::Own) => id,
            (Some(id), RecordIds::UnderFile) => record_id(&self.origin, &id),
            (None, _) => {
                self.n_numbered += 1;
                format!("{}:{line}", self.origin)
            }
        };
        if let Some(&first_line) = self.ids.get(id.as_str()) {
            return Err(Error::DuplicateId { path: self.records.path().to_owned(), id, first_line, line });
        }
        self.ids.insert(id.as_str().into(), line);
        let n_bytes = source.end - source.start;
        let anchor = Anchor { line: u32::try_from(line).ok(), source: Some(source), ..Anchor::default() };
        let (title, text) = (title.unwrap_or_default(), text.unwrap_or_default());
        let document = self.metadata(others).and_then(|metadata| {
            let document = compose(id, self.origin.clone(), title, text, anchor, metadata, warnings)?;
            document.within_budgets(n_bytes).map(|()| document)
        });
        let mut document = document.map_err(|excess| excess.at(self.records.path(), Some(line)))?;
        document.warnings.splice(..0, std::mem::take(&mut self.warnings));
        Ok(document)
    }

    fn metadata(&mut self, object: Map<String, Value>) -> Result<Metadata, Excess> {
        let mut metadata = Metadata::new();
        for (key, value) in object {
            if value.is_null() {
                continue;
            }
            add_json(&mut metadata, &key, &value)?;
            if !self.metadata.contains(&key) {
                self.metadata.insert(key);
            }
        }
        Ok(metadata)
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.records.next()?.and_then(|record| self.document(record)))
    }
}

/// A document of a row: its title, if any, is a heading over all of it.
pub(super) fn compose(
    id: String,
    origin: String,
    title: String,
    text: String,
    anchor: Anchor,
    metadata: Metadata,
    warnings: Vec<String>,
) -> Result<Document, Excess> {
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
    let mut blocks = blocks_from_starts(&canonical, starts)?;
    for block in &mut blocks {
        block.anchor = anchor.clone();
    }
    let sections = outline.finish(canonical.len());
    let title = if has_title { title } else { String::new() };
    let mut document = Document {
        id,
        origin,
        format: Format::Jsonl,
        title,
        text: canonical,
        kind: TextKind::Extracted,
        sections,
        blocks,
        metadata,
        links: Vec::new(),
        warnings,
    };
    links::find(&mut document, Markup::default());
    Ok(document)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Field, Value};

    fn lines(text: &str) -> Lines<&[u8]> {
        let file = FoundFile {
            path: "d/corpus.jsonl".into(),
            origin: "d/corpus.jsonl".into(),
            format: Format::Jsonl,
            n_bytes: 0,
            record_ids: RecordIds::Own,
        };
        Lines::new(text.as_bytes(), &file, NotUtf8::Refused)
    }

    #[test]
    fn beir_rows() {
        let rows = "\u{feff}{\"_id\": \"4\", \"title\": \"T\", \"text\": \"One.\\n\\nTwo.\", \"metadata\": {\"a\": 1}}\r\n\n{\"id\": 7, \"title\": \"\", \"body\": \"b\", \"year\": 1999, \"x\": null}\n";
        let mut lines = lines(rows);
        let first = lines.next().unwrap().unwrap();
        assert_eq!((first.id.as_str(), first.title.as_str(), first.text.as_str()), ("4", "T", "T\n\nOne.\n\nTwo."));
        assert_eq!((first.sections[1].heading.as_str(), first.sections[1].span.clone()), ("T", 0..first.text.len()));
        assert_eq!(first.metadata["metadata.a"], Field::One(Value::Integer(1)));
        let source = first.blocks[1].anchor.source.clone().unwrap();
        assert_eq!(&rows[source.start as usize..source.end as usize], rows[3..].lines().next().unwrap());
        let blocks: Vec<&str> = first.blocks.iter().map(|block| &first.text[block.span.clone()]).collect();
        assert_eq!(blocks, ["T\n\n", "One.\n\n", "Two."]);
        let second = lines.next().unwrap().unwrap();
        assert_eq!((second.id.as_str(), second.title.as_str(), second.text.as_str()), ("7", "", "b"));
        assert_eq!((second.sections.len(), second.blocks[0].anchor.line), (1, Some(3)));
        let year = Field::One(Value::Integer(1999));
        assert_eq!(second.metadata.iter().collect::<Vec<_>>(), [(&"year".to_string(), &year)]);
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
        lines.records.line_bytes_max = 20;
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
        lines.records.line_bytes_max = 50;
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
        let file = FoundFile {
            path: "f".into(),
            origin: "f".into(),
            format: Format::Jsonl,
            n_bytes: 0,
            record_ids: RecordIds::UnderFile,
        };
        let mut strict = Lines::new(&bytes[..], &file, NotUtf8::Refused);
        assert!(matches!(strict.nth(1).unwrap(), Err(Error::InvalidUtf8 { offset: 24, .. })));
        let document = Lines::new(&bytes[..], &file, NotUtf8::Replaced).nth(1).unwrap().unwrap();
        assert_eq!((document.text.as_str(), document.warnings.len()), ("\u{fffd}", 1));
    }
}
