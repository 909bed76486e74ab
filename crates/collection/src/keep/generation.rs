//! A generation open for reading: its segments, whatever a writer does beside it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use cento_lexical::Analyzer;
use roaring::RoaringBitmap;

use super::pins::Pin;
use super::snapshots::At;
use crate::error::{AtPath, Error, Result};
use crate::format::calibration::{Calibration, Key};
use crate::format::deletes;
use crate::format::manifest::Manifest;
use crate::format::metadata::{Comparison, Stored};
use crate::format::segment::{self, Segment};
use crate::fs::Folder;

/// The open segments of one generation.
#[derive(Debug)]
pub struct Generation {
    /// Its manifest.
    pub manifest: Manifest,
    /// Its segments, in the order of the manifest.
    pub segments: Vec<Segment>,
    /// Keeps writers from removing its files; see [`super::pins`].
    pub pin: Option<Pin>,
}

/// The outcome of work with open generations. An error may have been made of the zeros in the place of lost bytes, and
/// lead astray: where there are any, that is the error.
///
/// # Errors
/// As [`Generation::check_whole`] where there is an error, else that error.
pub fn explained<'g, T, E: From<Error>>(
    read: impl IntoIterator<Item = &'g Generation>,
    outcome: Result<T, E>,
) -> Result<T, E> {
    if outcome.is_err() {
        read.into_iter().try_for_each(Generation::check_whole)?;
    }
    outcome
}

impl Generation {
    /// Opens every segment a manifest names.
    pub fn open(folder: &Path, manifest: Manifest) -> Result<Self> {
        let analyzer = Analyzer::new(manifest.config.language()?);
        let folder = &Folder::open(folder).at(folder)?;
        let mut segments = Vec::with_capacity(manifest.segments.len());
        for entry in &manifest.segments {
            let deleted = deletes::of_entry(folder, entry)?;
            let opened = segment::folder(folder, &entry.name)?;
            let segment = Segment::open(&opened, &entry.name, &analyzer, manifest.config.pooling, deleted)?;
            segment.check_counts(entry)?;
            segments.push(segment);
        }
        let opened = Self { manifest, segments, pin: None };
        opened.check_whole()?; // which rows live was read of them
        Ok(opened)
    }

    /// Opens a generation for reading and holds it. What cannot be held may be removed by a writer while it is being
    /// opened: then there is a newer one, which is opened instead.
    pub fn open_at(folder: &Path, at: &At) -> Result<Self> {
        loop {
            let manifest = at.manifest(folder)?;
            let generation = manifest.generation;
            let pin = Pin::take(folder, generation);
            match Self::open(folder, manifest) {
                Err(error) if at.manifest(folder)?.generation == generation => return Err(error),
                Err(_) => {}
                Ok(snapshot) => return Ok(Self { pin, ..snapshot }),
            }
        }
    }

    /// Opens the current generation for reading.
    pub fn open_current(folder: &Path) -> Result<Self> {
        Self::open_at(folder, &At::Current)
    }

    /// Looks, before a query, whether its files are [whole](Self::check_whole); parts that were verified an hour ago
    /// are verified anew when they are read.
    ///
    /// # Errors
    /// As [`check_whole`](Self::check_whole).
    pub fn renew(&self) -> Result<()> {
        let now = Instant::now();
        self.segments.iter().try_for_each(|segment| segment.renew(now))
    }

    /// Looks, after what was read of its files is used and before anything that was made of it is given out or written,
    /// whether the bytes were there all the time. A generation that has lost some stays so; opened anew it may be
    /// whole.
    ///
    /// # Errors
    /// [`Error::Unreadable`] for a file that was cut short, or that has a page that could not be read since it was
    /// opened.
    pub fn check_whole(&self) -> Result<()> {
        self.segments.iter().try_for_each(Segment::check_whole)
    }

    /// Documents that answer.
    pub fn n_documents(&self) -> u64 {
        self.segments.iter().map(|segment| segment.documents.len() as u64 - segment.deleted.len()).sum()
    }

    /// Rows that answer.
    pub fn n_rows(&self) -> u64 {
        self.segments.iter().map(|segment| segment.n_live_rows() as u64).sum()
    }

    /// The calibration without documents that die, by segment.
    pub fn calibration_without(&self, dying: &BTreeMap<usize, RoaringBitmap>) -> Result<Option<Calibration>> {
        let sample = match &self.manifest.calibration {
            Some(Calibration::Sample(sample)) => sample,
            figures => return Ok(figures.clone()),
        };
        let mut dead = Vec::new();
        for (&segment, documents) in dying {
            let segment = &self.segments[segment];
            for document in documents {
                let (id, record) = (segment.document_id(document)?, segment.document(document)?);
                dead.extend((0..record.n_chunks).map(|chunk| Key::new(id, chunk)));
            }
        }
        Ok(Some(Calibration::Sample(sample.clone().without(dead))))
    }

    /// Where a live document is: segment and number there.
    pub fn find(&self, id: &str) -> Result<Option<(usize, u32)>> {
        let position = |stored: Stored<'_>| match stored {
            Stored::String(known) => Some(known.cmp(id)),
            Stored::Boolean(_) | Stored::Integer(_) | Stored::Float(_) | Stored::Date(_) => None::<Ordering>,
        };
        for (at, segment) in self.segments.iter().enumerate() {
            let found = segment.metadata.matching("id", Comparison::Equal, position)?;
            if let Some(document) = (found - &segment.deleted).min() {
                return Ok(Some((at, document)));
            }
        }
        Ok(None)
    }
}
