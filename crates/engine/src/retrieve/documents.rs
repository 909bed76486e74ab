//! Documents of a collection by id, and the bytes that a citation names.

use std::ops::Range;

use cento_corpus as corpus;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::retrieve::searcher::Searcher;
use cento_collection::format::segment::{DocumentRecord, Segment};
use cento_collection::keep::generation::Generation;

/// What part of a document is asked for: `DOC`, `DOC#chunk` or `DOC:from-to`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// All of it.
    Whole,
    /// A chunk, by its number in the document.
    Chunk(u32),
    /// A byte range of the canonical text.
    Bytes(Range<u64>),
}

/// A document or a part of it.
#[derive(Debug, Clone, Serialize)]
pub struct Excerpt {
    /// Format of this answer.
    pub version: u32,
    /// Id of the document.
    pub document: String,
    /// The file it came from: root label and relative path.
    pub origin: String,
    /// Its title.
    pub title: String,
    /// What its reader knew besides.
    pub metadata: corpus::Metadata,
    /// Whether the text is the file's bytes (`source`) or was extracted from it.
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
}

impl Searcher {
    /// Opens a citation: `DOC`, `DOC#chunk` or `DOC:from-to`. An id that holds `#` or `:` itself is tried first as it stands.
    pub fn get(&self, citation: &str) -> Result<Excerpt> {
        let (id, part) = match self.find_document(citation)? {
            Some(_) => (citation.to_owned(), Part::Whole),
            None => parse_citation(citation),
        };
        let Some((segment, record)) = self.find_document(&id)? else {
            return Err(Error::UnknownDocument { nearest: nearest(&self.snapshot, &id)?, id });
        };
        self.excerpt(segment, &record, &id, &part)
    }

    fn excerpt(&self, segment: &Segment, record: &DocumentRecord, id: &str, part: &Part) -> Result<Excerpt> {
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
            Part::Chunk(index) => {
                let chunks = segment.chunks.records(record.rows().start as usize..record.rows().end as usize)?;
                let Some(chunk) = chunks.iter().find(|chunk| chunk.index == *index) else {
                    let has = format!("{} chunks, of which {} are searched", record.n_chunks, record.n_rows);
                    return Err(out_of_range(format!("chunk {index}"), has));
                };
                excerpt.span = [chunk.start, chunk.end];
                excerpt.path = crate::context::candidates::heading_path(segment, record, chunk.section)?;
                excerpt.anchor = crate::context::candidates::anchor(chunk).to_string();
                excerpt.source_span = chunk.source().map(|range| [range.start, range.end]);
            }
        }
        let text = segment.document_text(record)?;
        let [start, end] = excerpt.span;
        let slice = text.get(start as usize..end as usize);
        let within = slice.ok_or_else(|| {
            out_of_range(format!("bytes {start}-{end}"), "a character across that boundary".to_owned())
        })?;
        excerpt.text = within.to_owned();
        Ok(excerpt)
    }

    fn find_document(&self, id: &str) -> Result<Option<(&Segment, DocumentRecord)>> {
        let Some((at, document)) = self.snapshot.find(id)? else { return Ok(None) };
        let segment = &self.snapshot.segments[at];
        Ok(Some((segment, segment.document(document)?)))
    }
}

/// The closest id, among those that share the end of the path or differ by few letters.
pub(crate) fn nearest(snapshot: &Generation, id: &str) -> Result<Option<String>> {
    let mut best: Option<(usize, String)> = None;
    for segment in &snapshot.segments {
        for document in segment.live_documents() {
            let known = segment.document_id(document)?;
            let distance = match known.ends_with(id) || id.ends_with(known) {
                true => 1,
                false => strsim::levenshtein(known, id),
            };
            let close = distance <= 2 + id.len() / 4;
            if close
                && best
                    .as_ref()
                    .is_none_or(|(known_distance, known_id)| (distance, known) < (*known_distance, known_id.as_str()))
            {
                best = Some((distance, known.to_owned()));
            }
        }
    }
    Ok(best.map(|(_, id)| id))
}

fn parse_citation(citation: &str) -> (String, Part) {
    if let Some((id, index)) = citation.rsplit_once('#')
        && let Ok(index) = index.parse()
    {
        return (id.to_owned(), Part::Chunk(index));
    }
    if let Some((id, range)) = citation.rsplit_once(':')
        && let Some((start, end)) = range.split_once('-')
        && let (Ok(start), Ok(end)) = (start.parse(), end.parse())
    {
        return (id.to_owned(), Part::Bytes(start..end));
    }
    (citation.to_owned(), Part::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_name_a_document_a_chunk_or_bytes() {
        assert_eq!(parse_citation("docs/a.md"), ("docs/a.md".to_owned(), Part::Whole));
        assert_eq!(parse_citation("docs/a.md#3"), ("docs/a.md".to_owned(), Part::Chunk(3)));
        assert_eq!(parse_citation("docs/a.md:10-20"), ("docs/a.md".to_owned(), Part::Bytes(10..20)));
        assert_eq!(parse_citation("c#/a#b.md"), ("c#/a#b.md".to_owned(), Part::Whole));
    }
}
