//! Titles of the documents of a collection, and where texts name them: as words that follow each other.
//!
//! Texts are looked through when a query asks, against the titles of the documents that live: a new document names what
//! was there before and is named by it, and compaction and deletion leave nothing to mend.
//! Cost: the titles are read once, when they are first asked for; then a look into a table for each word of a text, and
//! one more for each word of a title that goes on there.

mod words;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use cento_collection::keep::generation::Generation;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::source::refs::{ChunkRef, Chunks};
use crate::source::titles::words::{Word, bare, normalized, words};

/// The most documents that may share a title: one that more have, `Introduction`, tells none of them from another.
pub(crate) const SHARED_MAX: usize = 3;

/// Words of the longest title that is looked for.
const WORDS_MAX: usize = 32;

/// A title that a text names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mention {
    /// Its words in lower case, a blank between two.
    pub(crate) title: String,
    /// Bytes of the text where it stands first.
    pub(crate) span: Range<usize>,
    /// The documents that have it; of more than [`SHARED_MAX`], some.
    pub(crate) holders: Vec<Holder>,
}

impl Mention {
    /// Says if the text that names the title has no other words.
    pub(crate) fn is_all_of(&self, text: &str) -> bool {
        self.title == normalized(text)
    }
}

/// A document that has a title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) document: String,
    /// Its chunks, and the number of the first in the document.
    pub(crate) chunks: Chunks,
    pub(crate) number: u32,
}

/// The titles of live documents that have rows.
#[derive(Debug, Default)]
pub(super) struct Titles {
    /// By the hash of the words of a title, and of those that a title begins with.
    nodes: HashMap<u64, Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Some title begins with these words and has more.
    goes_on: bool,
    /// Segment and number of the documents whose title these words are.
    documents: Vec<(usize, u32)>,
}

impl Titles {
    pub(super) fn read(generation: &Generation) -> Result<Self> {
        let mut titles = Self::default();
        for (number, segment) in generation.segments.iter().enumerate() {
            for document in segment.live_documents() {
                let record = segment.document(document)?;
                if record.n_rows > 0 {
                    titles.insert(segment.documents.text(record.title)?, (number, document));
                }
            }
        }
        Ok(titles)
    }

    fn insert(&mut self, title: &str, document: (usize, u32)) {
        let words = words(bare(title));
        let Some((last, first)) = words.split_last().filter(|_| words.len() <= WORDS_MAX) else { return };
        let mut hash = 0;
        for word in first {
            hash = joined(hash, word);
            self.nodes.entry(hash).or_default().goes_on = true;
        }
        let documents = &mut self.nodes.entry(joined(hash, last)).or_default().documents;
        if documents.len() <= SHARED_MAX {
            documents.push(document);
        }
    }

    /// The titles that a text names, each once, by title ascending.
    pub(super) fn named(&self, generation: &Generation, text: &str) -> Result<Vec<Mention>> {
        let words = words(text);
        let mut found: HashMap<u64, (Range<usize>, &Node)> = HashMap::new();
        for (at, first) in words.iter().enumerate() {
            let mut hash = 0;
            for word in words[at..].iter().take(WORDS_MAX) {
                hash = joined(hash, word);
                let Some(node) = self.nodes.get(&hash) else { break };
                if !node.documents.is_empty()
                    && let Entry::Vacant(new) = found.entry(hash)
                {
                    new.insert((first.span.start..word.span.end, node));
                }
                if !node.goes_on {
                    break;
                }
            }
        }
        let mut mentions = Vec::with_capacity(found.len());
        for (span, node) in found.into_values() {
            let title = normalized(&text[span.clone()]);
            let mut holders = Vec::with_capacity(node.documents.len());
            for &place in &node.documents {
                holders.extend(holder(generation, place, &title)?);
            }
            if !holders.is_empty() {
                mentions.push(Mention { title, span, holders });
            }
        }
        mentions.sort_unstable_by(|a, b| a.title.cmp(&b.title));
        Ok(mentions)
    }
}

/// A document whose title has this hash, if it has these words too.
fn holder(generation: &Generation, (number, document): (usize, u32), title: &str) -> Result<Option<Holder>> {
    let segment = &generation.segments[number];
    let record = segment.document(document)?;
    if words_of(segment.documents.text(record.title)?) != title {
        return Ok(None);
    }
    Ok(Some(Holder {
        document: segment.documents.text(record.id)?.to_owned(),
        chunks: Chunks::new(number, record.rows()),
        number: segment.chunks.record(record.first_row as usize)?.index,
    }))
}

/// The words of a title in lower case, without what stands in brackets behind.
pub(super) fn words_of(title: &str) -> String {
    normalized(bare(title))
}

/// The words of a part of a text, as [`Mention`] has them.
pub(super) fn words_of_text(text: &str) -> String {
    normalized(text)
}

/// The title of the document of a chunk, as [`Mention`] has it.
pub(super) fn title(generation: &Generation, chunk: ChunkRef) -> Result<String> {
    let (number, row) = chunk.place();
    let segment = &generation.segments[number];
    let record = segment.document(segment.chunks.record(row as usize)?.document)?;
    Ok(words_of(segment.documents.text(record.title)?))
}

/// The hash of some words with one more behind them.
fn joined(hash: u64, word: &Word) -> u64 {
    // The hashes of words are mixed well; this keeps their order apart. Whoever is found is held against its words.
    (hash.rotate_left(23) ^ word.hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The text of a document from its beginning to the end of its last chunk within some bytes, or of its first chunk.
pub(super) fn opening(generation: &Generation, chunk: ChunkRef, bytes_max: u64) -> Result<String> {
    let (number, row) = chunk.place();
    let segment = &generation.segments[number];
    let record = segment.document(segment.chunks.record(row as usize)?.document)?;
    let mut end = record.text_bytes;
    if end > bytes_max {
        let rows = record.rows();
        end = segment.chunks.record(rows.start as usize)?.end;
        for row in rows {
            let chunk_end = segment.chunks.record(row as usize)?.end;
            if chunk_end > bytes_max {
                break;
            }
            end = chunk_end;
        }
    }
    Ok(segment.text(&record, 0..end)?)
}
