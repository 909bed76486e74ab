//! Late vectors of an ingest: a document as the encoder reads it, and what the vectors of its chunks are found by.
//!
//! What is read before every window is the document's line of a header, in the collection's header style: the headings
//! of a chunk stand in the document itself. The text is the document from its first chunk that is searched to its last,
//! so that front matter is not read.

use cento_corpus::{self as corpus, Anchor, Chunk, Document};
use cento_embedder::{Embedder, Kind, LateDocument, LateWindows, cache};

use crate::error::Result;
use cento_collection::format::config::LateReading;
use cento_collection::format::segment::NewDocument;

/// Changes when the same document would get other late vectors than before.
const VERSION: u32 = 1;

/// Documents whose late vectors are not known yet.
pub(super) struct LateQueue {
    pub(super) windows: LateWindows,
    /// Collection settings that shape a late vector: beginning of every key.
    domain: String,
    /// Where late vectors are kept in the segment.
    pub(super) column: usize,
    pub(super) pending: Vec<LatePending>,
    /// Their rows.
    pub(super) n_rows: usize,
}

/// A document of the queue, with the key of each of its chunks.
pub(super) struct LatePending {
    pub(super) first_row: u32,
    pub(super) keys: Vec<cache::Key>,
    pub(super) document: LateDocument,
}

impl LateQueue {
    pub(super) fn new(reading: LateReading, column: usize, encoder: &Embedder) -> Result<Self> {
        let LateReading { window_tokens, overlap_tokens } = reading;
        let fingerprint = encoder.fingerprint();
        Ok(Self {
            windows: encoder.late_windows(Some(window_tokens), Some(overlap_tokens))?,
            // longer than any fingerprint of plain vectors, so that no text has the key of a chunk
            domain: format!("{fingerprint} late {VERSION}, window {window_tokens}, overlap {overlap_tokens}"),
            column,
            pending: Vec::new(),
            n_rows: 0,
        })
    }

    /// The key of each chunk: BLAKE3 over the model, the windows, and everything of the document that is read.
    pub(super) fn keys(&self, document: &LateDocument) -> Vec<cache::Key> {
        let mut hasher = blake3::Hasher::new();
        for text in [&document.prefix, &document.text] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        for span in &document.spans {
            hasher.update(&(span.start as u64).to_le_bytes());
            hasher.update(&(span.end as u64).to_le_bytes());
        }
        let hash = hasher.finalize().to_hex();
        (0..document.spans.len()).map(|span| cache::key(&self.domain, &format!("{hash} {span}"))).collect()
    }
}

/// A document as it is read for late vectors; nothing where no chunk of it is searched.
pub(super) fn late_document(
    new: &NewDocument<'_>,
    style: corpus::HeaderStyle,
    encoder: &Embedder,
    windows: LateWindows,
) -> Option<LateDocument> {
    let spans: Vec<_> = new.chunks.iter().map(|chunk| chunk.chunk.span.clone()).collect();
    let (start, end) = (spans.first()?.start, spans.last()?.end);
    let fits = |prefix: &String| {
        let n_tokens = encoder.tokenizer().count(encoder.prompt(Kind::Document)) + encoder.tokenizer().count(prefix);
        n_tokens <= windows.prefix_tokens_max()
    };
    Some(LateDocument {
        // a line that takes more than half the window is left out, as from the header of a chunk
        prefix: Some(document_line(new.document, style)).filter(fits).unwrap_or_default(),
        text: new.document.text[start..end].to_owned(),
        spans: spans.into_iter().map(|span| span.start - start..span.end - start).collect(),
    })
}

/// The header of a place outside every section: the line with the title.
fn document_line(document: &Document, style: corpus::HeaderStyle) -> String {
    let nowhere =
        Chunk { span: 0..0, section: 0, n_tokens: 0, hidden: false, anchor: Anchor::default(), header_skip: 0 };
    corpus::header(document, &nowhere, style)
}
