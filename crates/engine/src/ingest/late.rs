//! Late vectors of an ingest: a document as the encoder reads it, and what the vectors of its chunks are found by.
//!
//! What is read before every window is the document's line of a header, in the collection's header style: the headings
//! of a chunk stand in the document itself. The text is the document from its first chunk that is searched to its last,
//! so that front matter is not read.

use std::collections::HashMap;

use cento_corpus::{self as corpus, Anchor, Chunk, Document};
use cento_embedder::{Embedder, Kind, LateDocument, LateWindows, cache};

use super::vectors::{EMBED_TEXTS, RowVectors};
use crate::error::Result;
use cento_collection::format::config::LateReading;
use cento_collection::format::segment::{NewDocument, SegmentWriter};

/// Changes when the same document would get other late vectors than before.
const VERSION: u32 = 1;

/// Documents whose late vectors are not known yet.
pub(super) struct LateQueue {
    windows: LateWindows,
    /// Collection settings that shape a late vector: beginning of every key.
    domain: String,
    /// Where late vectors are kept in the segment.
    column: usize,
    pending: Vec<Pending>,
    n_rows: usize,
}

struct Pending {
    first_row: u32,
    keys: Vec<cache::Key>,
    document: LateDocument,
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

    /// Rows whose vectors are not known yet.
    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The key of each chunk: BLAKE3 over the model, the windows, and everything of the document that is read.
    fn keys(&self, document: &LateDocument) -> Vec<cache::Key> {
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

impl RowVectors<'_> {
    /// Gives the rows of a document their late vectors from the log, or puts it in the queue; whether they were in the
    /// log.
    pub(super) fn add_late(
        &mut self,
        segment: &mut SegmentWriter<'_>,
        new: &NewDocument<'_>,
        first_row: u32,
    ) -> Result<bool> {
        let Some(late) = &mut self.late else { return Ok(true) };
        let Some(document) = late_document(new, self.chunking.header, self.encoder, late.windows) else {
            return Ok(true);
        };
        let keys = late.keys(&document);
        let mut known = Vec::with_capacity(keys.len());
        for key in &keys {
            match self.log.find(key) {
                Some(logged) => known.push(logged),
                None => {
                    late.n_rows += keys.len();
                    late.pending.push(Pending { first_row, keys, document });
                    return Ok(false);
                }
            }
        }
        for (row, logged) in (first_row..).zip(known) {
            segment.set_vector(late.column, row, &logged.vector)?;
            self.counts.n_tokens += u64::from(logged.n_tokens);
        }
        Ok(true)
    }

    /// Embeds the queue, logs it, and gives each row its vector. Equal documents are embedded once.
    pub(super) fn embed_late(&mut self, segment: &mut SegmentWriter<'_>, embedded: &mut dyn FnMut(u64)) -> Result<()> {
        let Some(late) = &mut self.late else { return Ok(()) };
        late.n_rows = 0;
        let mut rest = std::mem::take(&mut late.pending);
        while !rest.is_empty() {
            let mut n_rows = 0;
            let n_batch = rest.iter().take_while(|pending| {
                let fits = n_rows < EMBED_TEXTS;
                n_rows += pending.keys.len();
                fits
            });
            let n_batch = n_batch.count();
            let after = rest.split_off(n_batch);
            let batch = std::mem::replace(&mut rest, after);
            let mut first_with: HashMap<&[cache::Key], usize> = HashMap::new();
            let mut documents = Vec::new();
            let mut keys = Vec::new();
            for one in &batch {
                first_with.entry(&one.keys).or_insert_with(|| {
                    documents.push(one.document.clone());
                    keys.extend_from_slice(&one.keys);
                    documents.len() - 1
                });
            }
            let embeddings = self.encoder.embed_late(&documents, late.windows)?;
            for one in &batch {
                for (row, embedding) in (one.first_row..).zip(&embeddings[first_with[one.keys.as_slice()]]) {
                    segment.set_vector(late.column, row, &embedding.vector)?;
                    self.counts.n_tokens += u64::from(embedding.n_tokens);
                }
            }
            let embeddings = embeddings.concat();
            self.log.append(&keys, &embeddings)?;
            let n_tokens: u64 = embeddings.iter().map(|embedding| u64::from(embedding.n_tokens)).sum();
            self.counts.n_tokens_embedded += n_tokens;
            embedded(n_tokens);
        }
        Ok(())
    }
}

/// A document as it is read for late vectors; nothing where no chunk of it is searched.
fn late_document(
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
