//! Where an index run looks for vectors before it embeds, and keeps those it made: the user's embedding cache, and the log that
//! collections once had of their own.
//!
//! A cache that cannot be read or written never stops a run; the run goes on without it and says what that costs.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use cento_embedder::Embedding;
use cento_embedder::cache::{self, HEADER_BYTES, Key, log};

use crate::cache::{CacheOptions, CachedEmbeddings};
use crate::config::CollectionConfig;
use crate::error::{AtPath, Error, Result};

/// The log of a collection, in its folder `embeddings`.
const OLD_LOG: &str = "vectors.log";

/// A vector that was embedded before.
pub(crate) struct Logged {
    pub(crate) vector: Vec<f32>,
    pub(crate) n_tokens: u32,
}

/// Opened for looking up and appending.
pub(crate) struct EmbeddingLog {
    cache: Option<CachedEmbeddings>,
    old: Option<OldLog>,
    notes: Vec<String>,
}

impl EmbeddingLog {
    /// Reads the keys of the cache, and of the log in the collection's folder `embeddings` if there is one.
    pub(crate) fn open(folder: &Path, cache: Option<&CacheOptions>, config: &CollectionConfig) -> Self {
        let mut notes = Vec::new();
        let old = OldLog::open(&folder.join(OLD_LOG), config.dimensions).unwrap_or_else(|error| {
            notes.push(format!("{}; its vectors are embedded again", crate::describe(&error)));
            None
        });
        let cache = cache.and_then(|options| {
            let opened = CachedEmbeddings::open(options, &config.model, &config.model_fingerprint, config.dimensions);
            opened.map_err(|error| notes.push(without(&options.folder, &error))).ok()
        });
        notes.extend(
            cache.iter().flat_map(|cache| &cache.refused).map(|what| format!("embedding cache: {what}; passed over")),
        );
        Self { cache, old, notes }
    }

    /// The vector of a key, if it was embedded before and is as it was then.
    pub(crate) fn find(&mut self, key: &Key) -> Result<Option<Logged>> {
        if let Some((vector, n_tokens)) = self.cache.as_mut().and_then(|cache| cache.find(key)) {
            return Ok(Some(Logged { vector, n_tokens }));
        }
        self.old.as_mut().map_or(Ok(None), |old| old.find(key))
    }

    /// Keeps a batch and waits until it is on the disk. A cache that fails is used no more.
    pub(crate) fn append(&mut self, keys: &[Key], embeddings: &[Embedding]) -> Result<()> {
        let new = keys.iter().zip(embeddings).map(|(key, embedding)| (key, embedding.n_tokens, &embedding.vector[..]));
        if let Some(cache) = &mut self.cache
            && let Err(error) = cache.append(new)
        {
            self.notes.push(format!("embedding cache: {}; nothing more was kept", crate::describe(&error)));
            self.cache = None;
        }
        Ok(())
    }

    /// Ends the run; what was noticed.
    pub(crate) fn finish(self) -> Vec<String> {
        let mut notes = self.notes;
        if let Some(cache) = self.cache {
            if cache.n_damaged > 0 {
                notes.push(format!(
                    "embedding cache: {} damaged vectors were embedded again; `cento cache prune` removes them",
                    cache.n_damaged
                ));
            }
            if let Err(error) = cache.finish() {
                notes.push(format!("embedding cache: {}", crate::describe(&error)));
            }
        }
        notes
    }
}

fn without(folder: &Path, error: &Error) -> String {
    let folder = folder.display();
    format!("embedding cache {folder}: {}; going on without it, an interrupted run begins anew", crate::describe(error))
}

/// A log of version 1, read only.
struct OldLog {
    path: PathBuf,
    file: File,
    dimensions: usize,
    /// Offset of the vector, and tokens.
    frames: HashMap<Key, (u64, u32)>,
}

impl OldLog {
    /// Reads every frame once, in a bounded buffer. Frames that are not as they were written are passed over, wherever they are.
    fn open(path: &Path, dimensions: usize) -> Result<Option<Self>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.at(path)?,
        };
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let mut header = [0; HEADER_BYTES];
        if !is_whole(reader.read_exact(&mut header)).at(path)? {
            return Ok(None);
        }
        log::check_header(&header, dimensions)?;
        let mut frames = HashMap::new();
        let mut frame = vec![0; log::frame_bytes(dimensions)];
        let mut start = HEADER_BYTES as u64;
        while is_whole(reader.read_exact(&mut frame)).at(path)? {
            if let Some((key, n_tokens)) = log::decode_frame(&frame) {
                frames.insert(key, (start + log::VECTOR_OFFSET as u64, n_tokens));
            }
            start += frame.len() as u64;
        }
        Ok(Some(Self { path: path.to_owned(), file, dimensions, frames }))
    }

    fn find(&mut self, key: &Key) -> Result<Option<Logged>> {
        let Some(&(offset, n_tokens)) = self.frames.get(key) else { return Ok(None) };
        let mut bytes = vec![0; cache::vector_bytes(self.dimensions)];
        self.file.seek(SeekFrom::Start(offset)).at(&self.path)?;
        self.file.read_exact(&mut bytes).at(&self.path)?;
        Ok(Some(Logged { vector: cache::decode_vector(&bytes), n_tokens }))
    }
}

/// False at the end of the file.
fn is_whole(read: std::io::Result<()>) -> std::io::Result<bool> {
    match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

#[cfg(test)]
mod tests;
