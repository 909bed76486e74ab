//! The embeddings of one model in the cache, for one run: found by key, added as they are made.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::SystemTime;

use cento_embedder::cache::{self, Entry, Key};

use super::model::ModelFile;
use super::segment::{self, SEGMENT_BYTES_MAX, Segment, SegmentWriter};
use super::{CacheOptions, prune};
use crate::error::{AtPath, Result};

/// The first half of a key finds its place; the other is compared when the vector is read.
type HalfKey = [u64; 2];

/// Where a vector lies.
#[derive(Debug, Clone, Copy)]
struct Place {
    segment: u32,
    row: u32,
}

/// Cached embeddings of one model. About 40 bytes of memory a text, whatever the dimensions.
#[derive(Debug)]
pub(crate) struct CachedEmbeddings {
    options: CacheOptions,
    model: ModelFile,
    folder: PathBuf,
    segments: Vec<Segment>,
    /// Of each segment, whether something was found in it.
    used: Vec<bool>,
    places: HashMap<HalfKey, Place>,
    /// Of this run; the last one is written to, all are held.
    own: Vec<SegmentWriter>,
    pub(crate) n_damaged: u64,
    /// Segments that cannot be read, and why.
    pub(crate) refused: Vec<String>,
}

impl CachedEmbeddings {
    /// Reads the keys, 48 bytes a text. A folder that is not there yet is an empty cache.
    pub(crate) fn open(options: &CacheOptions, model: ModelFile) -> Result<Self> {
        let dimensions = model.dimensions;
        let folder = model.folder(&options.folder);
        let mut opened = Self {
            options: options.clone(),
            model,
            segments: Vec::new(),
            used: Vec::new(),
            places: HashMap::new(),
            own: Vec::new(),
            n_damaged: 0,
            refused: Vec::new(),
            folder,
        };
        for path in segment::list(&opened.folder)? {
            match Segment::open(&path, dimensions) {
                Ok(Some(segment)) => opened.add_segment(segment)?,
                Ok(None) => {}
                Err(error) => opened.refused.push(format!("{}: {}", path.display(), crate::describe(&error))),
            }
        }
        Ok(opened)
    }

    fn add_segment(&mut self, mut segment: Segment) -> Result<()> {
        let number = self.segments.len() as u32;
        let places = &mut self.places;
        segment.keys(|row, key| {
            places.insert(half(key), Place { segment: number, row });
        })?;
        self.segments.push(segment);
        self.used.push(false);
        Ok(())
    }

    /// The vector of a key and the tokens the encoder saw. What is damaged, or cannot be read, is not there.
    pub(crate) fn find(&mut self, key: &Key) -> Option<(Vec<f32>, u32)> {
        let place = *self.places.get(&half(key))?;
        match self.segments[place.segment as usize].read(place.row) {
            Ok(Some((entry, vector))) if entry.key == *key => {
                self.used[place.segment as usize] = true;
                Some((cache::decode_vector(&vector), entry.n_tokens))
            }
            _ => {
                self.n_damaged += 1;
                self.places.remove(&half(key));
                None
            }
        }
    }

    /// Keeps vectors and waits until they are on the disk.
    pub(crate) fn append<'v>(&mut self, new: impl Iterator<Item = (&'v Key, u32, &'v [f32])>) -> Result<()> {
        let (mut entries, mut vectors, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (key, n_tokens, vector) in new {
            let vector = cache::encode_vector(vector);
            entries.extend_from_slice(&Entry::new(*key, n_tokens, &vector).encode());
            vectors.extend_from_slice(&vector);
            keys.push(half(key));
        }
        if keys.is_empty() {
            return Ok(());
        }
        self.writer()?.append(&entries, &vectors)?;
        let writer = self.own.last().expect("just written to");
        writer.sync()?;
        let first_row = writer.n_rows - keys.len() as u32;
        let segment = self.segments.len() as u32 - 1;
        for (row, key) in (first_row..).zip(keys) {
            self.places.insert(key, Place { segment, row });
        }
        Ok(())
    }

    /// The segment being written; one is made at first, and where the last one is full. Its reader is the last of
    /// `segments`.
    fn writer(&mut self) -> Result<&mut SegmentWriter> {
        let dimensions = self.model.dimensions;
        let is_full = |writer: &SegmentWriter| {
            u64::from(writer.n_rows) * cache::text_bytes(dimensions) as u64 >= SEGMENT_BYTES_MAX
        };
        if self.own.last().is_none_or(is_full) {
            self.model.write(&self.folder)?;
            let writer = SegmentWriter::create(&self.folder, dimensions)?;
            self.segments.extend(Segment::open(&writer.path, dimensions)?);
            self.used.push(false);
            self.own.push(writer);
        }
        Ok(self.own.last_mut().expect("just made"))
    }

    /// Ends the run and removes what it wrote, which may be of two models.
    pub(crate) fn forget(self) -> Result<()> {
        self.own.iter().try_for_each(|writer| std::fs::remove_dir_all(&writer.path).at(&writer.path))
    }

    /// Ends the run: notes what was used, and, if anything was written, brings the cache within its limit.
    pub(crate) fn finish(self) -> Result<()> {
        let now = SystemTime::now();
        for (segment, _) in self.segments.iter().zip(&self.used).filter(|(_, used)| **used) {
            segment.set_last_use(now)?;
        }
        let wrote = !self.own.is_empty();
        drop(self.own); // and with them their locks
        if wrote { prune::keep_within(&self.options) } else { Ok(()) }
    }
}

fn half(key: &Key) -> HalfKey {
    let (halves, _) = key.as_chunks::<8>();
    [u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1])]
}
