//! Documents of a collection by id or file, and the bytes that a citation names.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use cento_assembly::Citation;
use cento_corpus::{self as corpus, Format};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::retrieve::citation::{Part, readings};
use crate::retrieve::searcher::Searcher;
use cento_collection::format::segment::{DocumentRecord, Segment};
use cento_collection::keep::generation::Generation;

/// Names that the error for an ambiguous name lists at most.
const NAMED_MAX: usize = 5;

/// Where a cited text stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitedPlace {
    /// `docs/a.md:12-40` where the lines of the file are known, else `docs/a.html bytes 10-20`.
    pub words: String,
    /// The file, if its root is known.
    pub file: Option<PathBuf>,
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
    /// Opens a citation: a document, a file or one of their parts, in any of the words that marks and [`Searcher::place`] use:
    /// `DOC`, `DOC#chunk`, `DOC:from-to` (lines), `DOC bytes from-to`. DOC is the id of a document, the path of an indexed file, or
    /// the end of a path if only one file has it. An id that holds `#` or `:` itself is tried first as it stands.
    pub fn get(&self, citation: &str) -> Result<Excerpt> {
        let readings = readings(citation);
        for (id, part) in &readings {
            if let Some((segment, record)) = self.find_document(id)? {
                return self.excerpt(segment, &record, id, part);
            }
        }
        for (name, part) in &readings {
            if let Some((segment, document)) = self.find_in_file(name, part)? {
                let id = segment.document_id(document)?.to_owned();
                let record = segment.document(document)?;
                // A line of a file with a document a line names the document, not a part of it.
                let is_line = record.format() == Some(Format::Jsonl) && matches!(part, Part::Lines(_));
                let part = if is_line { &Part::Whole } else { part };
                return self.excerpt(segment, &record, &id, part);
            }
        }
        let id = readings.last().map_or(citation, |(name, _)| name).to_owned();
        Err(Error::UnknownDocument { nearest: nearest(&self.snapshot, &id)?, id })
    }

    /// Says where a cited text stands, in words that [`Searcher::get`] takes.
    ///
    /// # Errors
    /// If the citation's document is not in this generation.
    pub fn place(&self, citation: &Citation) -> Result<CitedPlace> {
        let Some((segment, record)) = self.find_document(&citation.document)? else {
            return Err(Error::UnknownDocument { id: citation.document.clone(), nearest: None });
        };
        let origin = segment.documents.text(record.origin)?;
        let (label, rest) = origin.split_once('/').unwrap_or((origin, ""));
        let file = self.snapshot.manifest.roots.get(label).map(|root| within(root, rest));
        let words = match &citation.anchor.line {
            Some(lines) if record.format() == Some(Format::Jsonl) => format!("{origin}:{lines}"),
            Some(lines) if record.is_extracted == 0 => format!("{}:{lines}", citation.document),
            Some(_) | None => format!("{} bytes {}-{}", citation.document, citation.span.start, citation.span.end),
        };
        Ok(CitedPlace { words, file })
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

    /// The document of a file, by the file's path or by the end of it, if only one file has that end.
    fn find_in_file(&self, name: &str, part: &Part) -> Result<Option<(&Segment, u32)>> {
        let exact = self.origins_of_path(name);
        let end = format!("/{}", name.trim_start_matches("./"));
        let (mut of_path, mut of_end) = (BTreeMap::new(), BTreeMap::new());
        for segment in &self.snapshot.segments {
            for document in segment.live_documents() {
                let origin = segment.documents.text(segment.document(document)?.origin)?;
                let found = if exact.iter().any(|exact| exact == origin) {
                    &mut of_path
                } else if end.len() > 1 && origin.ends_with(&end) {
                    &mut of_end
                } else {
                    continue;
                };
                found.entry(origin).or_insert_with(Vec::new).push((segment, document));
            }
        }
        let files = if of_path.is_empty() { of_end } else { of_path };
        let ambiguous = |candidates: Vec<String>| Error::AmbiguousName { name: name.to_owned(), candidates };
        let mut files = files.into_iter();
        let Some((origin, documents)) = files.next() else { return Ok(None) };
        if files.len() > 0 {
            let origins = std::iter::once(origin).chain(files.map(|(origin, _)| origin));
            return Err(ambiguous(origins.take(NAMED_MAX).map(str::to_owned).collect()));
        }
        match (documents.as_slice(), part) {
            ([only], _) => Ok(Some(*only)),
            (several, Part::Lines(lines)) => {
                for (segment, document) in several {
                    if first_line(segment, *document)? == Some(*lines.start()) {
                        return Ok(Some((segment, *document)));
                    }
                }
                let (id, what) = (origin.to_owned(), format!("line {}", lines.start()));
                Err(Error::OutOfRange { id, what, has: format!("{} documents on other lines", several.len()) })
            }
            (several, Part::Whole | Part::Chunk(_) | Part::Bytes(_)) => {
                let ids = several.iter().take(NAMED_MAX);
                let ids = ids.map(|(segment, document)| Ok(segment.document_id(*document)?.to_owned()));
                Err(ambiguous(ids.collect::<Result<_>>()?))
            }
        }
    }

    /// A name as an origin: as it stands, and as a path of this machine that lies in an indexed root.
    fn origins_of_path(&self, name: &str) -> Vec<String> {
        let mut origins = vec![name.to_owned()];
        // Roots are recorded without links, so a path is also tried without them; one that is gone is taken by its words.
        let paths = [std::path::absolute(name).ok(), std::fs::canonicalize(name).ok()];
        for path in paths.iter().flatten() {
            for (label, root) in &self.snapshot.manifest.roots {
                let Ok(rest) = path.strip_prefix(root) else { continue };
                let parts = rest.components().map(|part| part.as_os_str().to_string_lossy());
                origins.push(std::iter::once(label.into()).chain(parts).collect::<Vec<_>>().join("/"));
            }
        }
        origins
    }
}

/// A file in its root; of a root that is a file, the root.
fn within(root: &Path, rest: &str) -> PathBuf {
    if rest.is_empty() { root.to_owned() } else { root.join(rest) }
}

/// The line of its file that a document's first chunk begins in.
fn first_line(segment: &Segment, document: u32) -> Result<Option<u32>> {
    let rows = segment.document(document)?.rows();
    if rows.is_empty() {
        return Ok(None);
    }
    Ok(segment.chunks.record(rows.start as usize)?.line())
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
