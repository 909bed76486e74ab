//! Documents of a collection by id, their parts, and the ids that are nearest to one that is not there.

use std::collections::HashSet;
use std::ops::{Range, RangeInclusive};

use cento_collection::format::segment::{DocumentRecord, Segment};
use cento_collection::keep::generation::Generation;
use cento_corpus::{self as corpus, Format};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::source::chunks::{anchor, heading_path};
use crate::source::refs::{ChunkRef, Chunks, Named};
use crate::source::selected::{Pick, picked};

/// The part of a document that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// A chunk, by its number in the document.
    Chunk(u32),
    /// A byte range of the canonical text.
    Bytes(Range<u64>),
    /// Lines of the file, from 1, both ends included.
    Lines(RangeInclusive<u32>),
}

/// Names that documents are sought by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sought<'a> {
    /// The id of a document.
    Id(&'a str),
    /// The own ids of records of JSONL, each of which may stand in several files.
    Records(&'a HashSet<&'a str>),
    /// The file that documents came from.
    File {
        /// Its name in the collection, as any of these.
        names: &'a [String],
        /// Or the end of that name; none for no end.
        end: Option<&'a str>,
    },
}

/// A document with what tells it from others of its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LocatedDocument {
    /// The file it came from: root label and relative path.
    pub(crate) origin: String,
    pub(crate) id: String,
    pub(crate) format: Option<Format>,
    /// True if its text is the bytes of the file.
    pub(crate) is_source: bool,
    /// Line of the file that its first chunk begins in.
    pub(crate) first_line: Option<u32>,
}

/// A document or a part of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Excerpt {
    /// Format of this answer.
    pub version: u32,
    /// Id of the document.
    pub document: String,
    /// The file it came from: root label and relative path.
    pub origin: String,
    /// Its title.
    pub title: String,
    /// Other facts that its reader knew.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub metadata: corpus::Metadata,
    /// `source` if the text is the file's bytes, `extracted` if it was extracted from it.
    pub text_kind: &'static str,
    /// Bytes of the excerpt in the canonical text.
    pub span: [u64; 2],
    /// Headings above it, outermost first (of a chunk).
    pub path: Vec<String>,
    /// Where it stands in the source (of a chunk): line, page or row; may be empty.
    pub anchor: String,
    /// Byte range in the source file, where the reader kept a map to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_span: Option<[u64; 2]>,
    /// Chunks of the document.
    pub n_chunks: u32,
    /// The text.
    pub text: String,
    /// Why the document may be older than its file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A section of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentSection {
    /// 1 is the outermost.
    pub level: u32,
    /// Its heading; empty for the whole document and for what stands before the first heading.
    pub heading: String,
    /// Its bytes in the canonical text, subsections included.
    pub span: [u64; 2],
    /// The number of the section around it, in the order of the list, from 0; none for an outermost one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
}

/// A document in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedDocument {
    /// Its id.
    pub id: String,
    /// The file it came from: root label and relative path.
    pub origin: String,
    /// The type it was read as.
    pub r#type: &'static str,
    /// Its title.
    pub title: String,
    /// Other facts that its reader knew.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub metadata: corpus::Metadata,
    /// Chunks that are searched.
    pub n_chunks: u32,
}

/// The documents of a pick, by id ascending.
pub(super) fn list(generation: &Generation, pick: &Pick<'_>) -> Result<Vec<ListedDocument>> {
    let mut listed = Vec::new();
    for (segment, documents) in generation.segments.iter().zip(picked(generation, pick)?) {
        for document in documents {
            let record = segment.document(document)?;
            let text = |text| segment.documents.text(text).map(str::to_owned);
            listed.push(ListedDocument {
                id: text(record.id)?,
                origin: text(record.origin)?,
                r#type: segment.format(&record)?.name(),
                title: text(record.title)?,
                metadata: segment.metadata_of(&record)?,
                n_chunks: record.n_rows,
            });
        }
    }
    listed.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(listed)
}

/// A live document, and its chunk of a number.
pub(super) fn find(generation: &Generation, id: &str, number: Option<u32>) -> Result<Option<Named>> {
    let Some((at, document)) = generation.find(id)? else { return Ok(None) };
    let segment = &generation.segments[at];
    let rows = segment.document(document)?.rows();
    let mut chunk = None;
    if let Some(number) = number {
        for row in rows.clone() {
            if segment.chunks.record(row as usize)?.index == number {
                chunk = Some(ChunkRef::new(at, row));
                break;
            }
        }
    }
    Ok(Some(Named { chunks: Chunks::new(at, rows), chunk }))
}

/// The sections of a live document, in the order of its text.
pub(super) fn sections(generation: &Generation, id: &str) -> Result<Option<Vec<DocumentSection>>> {
    let Some((at, document)) = generation.find(id)? else { return Ok(None) };
    let segment = &generation.segments[at];
    let record = segment.document(document)?;
    let section = |number| {
        let section = segment.section(&record, number)?;
        Ok(DocumentSection {
            level: section.level,
            heading: segment.sections.text(section.heading)?.to_owned(),
            span: [section.start, section.end],
            parent: section.parent(),
        })
    };
    (0..record.n_sections).map(section).collect::<Result<_>>().map(Some)
}

/// A part of a live document.
pub(super) fn excerpt(generation: &Generation, id: &str, part: &Part) -> Result<Option<Excerpt>> {
    let Some((at, document)) = generation.find(id)? else { return Ok(None) };
    let segment = &generation.segments[at];
    read(segment, &segment.document(document)?, id, part).map(Some)
}

fn read(segment: &Segment, record: &DocumentRecord, id: &str, part: &Part) -> Result<Excerpt> {
    let out_of_range = |what: String, has: String| Error::OutOfRange { id: id.to_owned(), what, has };
    let mut excerpt = Excerpt {
        version: 1,
        document: id.to_owned(),
        origin: segment.documents.text(record.origin)?.to_owned(),
        title: segment.documents.text(record.title)?.to_owned(),
        metadata: segment.metadata_of(record)?,
        text_kind: record.text_kind(),
        span: [0, record.text_bytes],
        path: Vec::new(),
        anchor: String::new(),
        source_span: None,
        n_chunks: record.n_chunks,
        text: String::new(),
        warnings: Vec::new(),
    };
    match part {
        Part::Whole => {}
        Part::Bytes(range) if range.start <= range.end && range.end <= record.text_bytes => {
            excerpt.span = [range.start, range.end]
        }
        Part::Bytes(range) => {
            return Err(out_of_range(
                format!("bytes {}-{}", range.start, range.end),
                format!("{} bytes", record.text_bytes),
            ));
        }
        Part::Lines(lines) if record.is_extracted != 0 => {
            let has = format!(
                "an extracted text without the lines of its file; name bytes ({id} bytes 0-{}) or a chunk ({id}#0)",
                record.text_bytes
            );
            return Err(out_of_range(format!("line {}", lines.start()), has));
        }
        Part::Lines(lines) => {
            let text = segment.document_text(record)?;
            excerpt.span = bytes_of_lines(&text, lines).ok_or_else(|| {
                let has = format!("{} lines", text.lines().count());
                out_of_range(format!("lines {}-{}", lines.start(), lines.end()), has)
            })?;
        }
        Part::Chunk(index) => {
            let chunks = segment.chunks.records(record.rows().start as usize..record.rows().end as usize)?;
            let Some(chunk) = chunks.iter().find(|chunk| chunk.index == *index) else {
                let has = format!("{} chunks, of which {} are searched", record.n_chunks, record.n_rows);
                return Err(out_of_range(format!("chunk {index}"), has));
            };
            excerpt.span = [chunk.start, chunk.end];
            excerpt.path = heading_path(segment, record, chunk.section)?;
            excerpt.anchor = anchor(chunk).to_string();
            excerpt.source_span = chunk.source().map(|range| [range.start, range.end]);
        }
    }
    let text = segment.document_text(record)?;
    let [start, end] = excerpt.span;
    let slice = text.get(start as usize..end as usize);
    let within = slice
        .ok_or_else(|| out_of_range(format!("bytes {start}-{end}"), "a character across that boundary".to_owned()))?;
    excerpt.text = within.to_owned();
    Ok(excerpt)
}

/// The bytes of whole lines; none if the text does not have them all.
fn bytes_of_lines(text: &str, lines: &RangeInclusive<u32>) -> Option<[u64; 2]> {
    let (first, last) = (lines.start().checked_sub(1)?, *lines.end());
    let n_lines = last.checked_sub(first).filter(|n_lines| *n_lines > 0)?;
    let mut ends = std::iter::once(0).chain(text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len() as u64;
        Some(*end)
    }));
    let start = ends.nth(first as usize)?;
    Some([start, ends.nth(n_lines as usize - 1)?])
}

/// The live documents of a name.
pub(super) fn located(generation: &Generation, sought: &Sought<'_>) -> Result<Vec<LocatedDocument>> {
    if let Sought::Id(id) = sought {
        let Some((at, document)) = generation.find(id)? else { return Ok(Vec::new()) };
        return Ok(vec![locate(&generation.segments[at], document)?]);
    }
    let mut found = Vec::new();
    for segment in &generation.segments {
        for document in segment.live_documents() {
            let record = segment.document(document)?;
            if is_sought(segment.documents.text(record.id)?, segment.documents.text(record.origin)?, sought) {
                found.push(locate(segment, document)?);
            }
        }
    }
    Ok(found)
}

fn is_sought(id: &str, origin: &str, sought: &Sought<'_>) -> bool {
    match sought {
        Sought::Id(_) => false,
        Sought::Records(names) => corpus::own_id(id, origin).is_some_and(|own| names.contains(own)),
        Sought::File { names, end } => {
            names.iter().any(|name| name == origin) || end.is_some_and(|end| origin.ends_with(end))
        }
    }
}

fn locate(segment: &Segment, document: u32) -> Result<LocatedDocument> {
    let record = segment.document(document)?;
    let rows = record.rows();
    Ok(LocatedDocument {
        origin: segment.documents.text(record.origin)?.to_owned(),
        id: segment.documents.text(record.id)?.to_owned(),
        format: record.format(),
        is_source: record.is_extracted == 0,
        first_line: if rows.is_empty() { None } else { segment.chunks.record(rows.start as usize)?.line() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_all_there() {
        let text = "one\ntwo\r\nthree";
        for (lines, bytes) in [
            (1..=1, Some([0, 4])),
            (2..=3, Some([4, 14])),
            (1..=3, Some([0, 14])),
            (3..=4, None),
            (4..=4, None),
            (0..=1, None),
            (3..=2, None),
        ] {
            assert_eq!(bytes_of_lines(text, &lines), bytes, "{lines:?}");
        }
    }
}
