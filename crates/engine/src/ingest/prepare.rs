//! Prepares documents for their rows: cuts each into chunks and gives every chunk its header.

use cento_collection::format::segment::{NewChunk, NewDocument};
use cento_corpus::{self as corpus, Chunk, ChunkConfig, Document};

use crate::encoder::Encoder;

/// Blake3 of everything of a document that shapes its rows or its citations.
pub(crate) type ContentHash = [u8; 32];

/// A document with its chunks and their headers, ready for its rows.
pub(super) struct Prepared {
    pub(super) document: Document,
    pub(super) hash: ContentHash,
    pub(super) chunks: Vec<Chunk>,
    pub(super) headers: Vec<String>,
    /// For each chunk the context at the end of its header; empty where it has none.
    pub(super) contexts: Vec<String>,
}

impl Prepared {
    /// The document with the chunks that are searched.
    pub(super) fn as_new(&self) -> NewDocument<'_> {
        let headers = self.headers.iter().zip(&self.contexts);
        let visible = self.chunks.iter().zip(headers).enumerate().filter(|(_, (chunk, _))| !chunk.hidden);
        NewDocument {
            document: &self.document,
            links: Some(&self.document.links),
            hash: self.hash,
            n_chunks: self.chunks.len() as u32,
            chunks: visible
                .map(|(index, (chunk, (header, context)))| NewChunk { index: index as u32, chunk, header, context })
                .collect(),
        }
    }
}

pub(super) fn prepare(document: Document, hash: ContentHash, chunking: &ChunkConfig, encoder: &Encoder) -> Prepared {
    let chunks = corpus::chunk(&document, chunking, &encoder.tokenizer());
    let headers = corpus::Headers::new(&document, chunking.header);
    let headers = chunks.iter().map(|chunk| headers.of(chunk)).collect();
    let contexts = vec![String::new(); chunks.len()];
    Prepared { document, hash, chunks, headers, contexts }
}
