//! Inspection: a file as the indexer sees it, document by document; nothing is embedded or written.

use cento_corpus::{self as corpus, Root};
use serde::Serialize;

use super::options::{IndexOptions, chunk_config, load_encoder, settle};
use crate::encoder::Tokens;
use crate::error::Result;

/// A preview of [`index`](crate::index) for one file or folder, document by document; nothing is embedded or written.
pub fn inspect(root: &Root, options: &IndexOptions) -> Result<Vec<Inspection>> {
    let loaded = load_encoder(None, options)?;
    let config = settle(None, options, &loaded)?;
    let encoder = &loaded.encoder;
    let chunking = chunk_config(&config, encoder)?;
    let mut inspections = Vec::new();
    let files = corpus::walk(root, &options.read)?.files;
    for (_, documents) in corpus::guard::Reader::new(&files, &options.read, options.guard.as_ref()) {
        for document in documents? {
            inspections.push(of_document(&document?, &chunking, encoder.tokenizer()));
        }
    }
    Ok(inspections)
}

/// A document as the indexer sees it: sections, chunks with their headers, token counts.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Other facts from its reader.
    pub metadata: corpus::Metadata,
    /// Bytes of canonical text.
    pub n_bytes: usize,
    /// Remarks of its reader.
    pub warnings: Vec<String>,
    /// Headings with level and byte span, in order.
    pub sections: Vec<InspectedSection>,
    /// Chunks in order.
    pub chunks: Vec<InspectedChunk>,
}

/// A section of an [`Inspection`].
#[derive(Debug, Clone, Serialize)]
pub struct InspectedSection {
    /// 1 is the outermost.
    pub level: u8,
    /// Its heading.
    pub heading: String,
    /// Its bytes, subsections included.
    pub span: [usize; 2],
}

/// A chunk of an [`Inspection`].
#[derive(Debug, Clone, Serialize)]
pub struct InspectedChunk {
    /// Public id.
    pub id: String,
    /// Its bytes.
    pub span: [usize; 2],
    /// Tokens of its text.
    pub n_tokens: u32,
    /// Tokens of the header embedded with it.
    pub n_header_tokens: usize,
    /// Kept out of search: front matter, or nothing but blanks.
    pub hidden: bool,
    /// The header.
    pub header: String,
    /// The text.
    pub text: String,
}

/// Chunks a document as [`crate::index`] would.
fn of_document(document: &corpus::Document, chunking: &corpus::ChunkConfig, tokenizer: Tokens<'_>) -> Inspection {
    let chunks = corpus::chunk(document, chunking, &tokenizer);
    let headers = corpus::Headers::new(document, chunking.header);
    let inspect_chunk = |(index, chunk): (usize, &corpus::Chunk)| {
        let header = headers.of(chunk);
        InspectedChunk {
            id: format!("{}#{index}", document.id),
            span: [chunk.span.start, chunk.span.end],
            n_tokens: chunk.n_tokens,
            n_header_tokens: tokenizer.count(&header),
            hidden: chunk.hidden,
            header,
            text: document.text[chunk.span.clone()].to_owned(),
        }
    };
    Inspection {
        id: document.id.clone(),
        title: document.title.clone(),
        metadata: document.metadata.clone(),
        n_bytes: document.text.len(),
        warnings: document.warnings.clone(),
        sections: document
            .sections
            .iter()
            .map(|section| InspectedSection {
                level: section.level,
                heading: section.heading.clone(),
                span: [section.span.start, section.span.end],
            })
            .collect(),
        chunks: chunks.iter().enumerate().map(inspect_chunk).collect(),
    }
}
