//! Prepares documents for their rows: cuts each into chunks and gives every chunk its header.

use cento_collection::format::segment::{NewChunk, NewDocument};
use cento_corpus::{self as corpus, Chunk, ChunkConfig, Document};

use super::ledger::ContentHash;
use crate::encoder::Encoder;

/// A document with its chunks and their headers, ready for its rows.
pub(super) struct Prepared {
    pub(super) document: Document,
    pub(super) hash: ContentHash,
    pub(super) chunks: Vec<Chunk>,
    pub(super) headers: Vec<String>,
}

impl Prepared {
    /// The document with the chunks that are searched.
    pub(super) fn as_new(&self) -> NewDocument<'_> {
        let visible = self.chunks.iter().zip(&self.headers).enumerate().filter(|(_, (chunk, _))| !chunk.hidden);
        NewDocument {
            document: &self.document,
            links: Some(&self.document.links),
            hash: self.hash,
            n_chunks: self.chunks.len() as u32,
            chunks: visible.map(|(index, (chunk, header))| NewChunk { index: index as u32, chunk, header }).collect(),
        }
    }
}

pub(super) fn prepare(document: Document, hash: ContentHash, chunking: &ChunkConfig, encoder: &Encoder) -> Prepared {
    let chunks = corpus::chunk(&document, chunking, &encoder.tokenizer());
    let headers = corpus::Headers::new(&document, chunking.header);
    let headers = chunks.iter().map(|chunk| headers.of(chunk)).collect();
    Prepared { document, hash, chunks, headers }
}
