//! The embedding log of a collection: every vector ever made for it, so that no text is embedded twice.
//!
//! Append-only, synced after each batch. A run that is cut short leaves at most a torn frame at the end, which the next
//! writer cuts away. Only the writer opens it; it is not part of what a manifest names.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use cento_embedder::Embedding;
use cento_embedder::cache::{self, Frame, Key};

use crate::config::CollectionConfig;
use crate::error::{AtPath, Result};
use crate::fs::{File, Fs};

const NAME: &str = "vectors.log";

/// A vector out of the log.
pub(crate) struct Logged {
    pub(crate) vector: Vec<f32>,
    pub(crate) n_tokens: u32,
}

/// Opened for looking up and appending.
pub(crate) struct EmbeddingLog {
    path: PathBuf,
    writer: Box<dyn File>,
    reader: std::fs::File,
    frames: HashMap<Key, Frame>,
    n_bytes: usize,
    dimensions: usize,
}

impl EmbeddingLog {
    /// Reads the frames' keys (the whole log once, in memory) and cuts away what an interrupted run left unfinished.
    pub(crate) fn open(fs: &dyn Fs, folder: &Path, config: &CollectionConfig) -> Result<Self> {
        let path = folder.join(NAME);
        let bytes = match fs.read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.at(&path)?,
        };
        let (frames, mut n_bytes) = cache::scan(&bytes, config.dimensions)?;
        let mut writer = fs.append(&path).at(&path)?;
        if n_bytes < bytes.len() {
            writer.set_len(n_bytes as u64).at(&path)?;
            writer.seek(SeekFrom::Start(n_bytes as u64)).at(&path)?;
        }
        if n_bytes == 0 {
            writer.write_all(&cache::header(config.dimensions)).at(&path)?;
            writer.sync().at(&path)?;
            fs.sync_dir(folder).at(folder)?;
            n_bytes = cache::HEADER_BYTES;
        }
        let reader = std::fs::File::open(&path).at(&path)?;
        let frames = frames.into_iter().map(|frame| (frame.key, frame)).collect();
        Ok(Self { path, writer, reader, frames, n_bytes, dimensions: config.dimensions })
    }

    pub(crate) fn find(&mut self, key: &Key) -> Result<Option<Logged>> {
        let Some(frame) = self.frames.get(key) else { return Ok(None) };
        let mut bytes = vec![0; 4 * frame.dimensions];
        self.reader.seek(SeekFrom::Start(frame.vector_offset as u64)).at(&self.path)?;
        self.reader.read_exact(&mut bytes).at(&self.path)?;
        let vector = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Ok(Some(Logged { vector, n_tokens: frame.n_tokens }))
    }

    /// Adds a batch and waits until it is on the disk.
    pub(crate) fn append(&mut self, keys: &[Key], embeddings: &[Embedding]) -> Result<()> {
        let mut bytes = Vec::with_capacity(keys.len() * cache::frame_bytes(self.dimensions));
        for (key, embedding) in keys.iter().zip(embeddings) {
            bytes.extend(cache::encode_frame(key, embedding.n_tokens, &embedding.vector));
        }
        self.writer.write_all(&bytes).at(&self.path)?;
        self.writer.sync().at(&self.path)?;
        let vector_at = cache::frame_bytes(self.dimensions) - 4 * self.dimensions - 8; // the vector stands before the 8-byte checksum
        for (n, (key, embedding)) in keys.iter().zip(embeddings).enumerate() {
            let vector_offset = self.n_bytes + n * cache::frame_bytes(self.dimensions) + vector_at;
            self.frames.insert(
                *key,
                Frame { key: *key, n_tokens: embedding.n_tokens, vector_offset, dimensions: self.dimensions },
            );
        }
        self.n_bytes += bytes.len();
        Ok(())
    }
}
