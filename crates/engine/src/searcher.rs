//! A snapshot of a collection, open for reading: one generation, whatever a writer does beside it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cento_embedder::{DeviceChoice, Embedder, LoadOptions};
use cento_lexical::Analyzer;

use crate::deletes;
use crate::error::{Error, Result};
use crate::losses::Loss;
use crate::manifest::Manifest;
use crate::model::Models;
use crate::pins::Pin;
use crate::resolved::ResolvedContexts;
use crate::segment::Segment;
use crate::snapshots::At;

/// The open segments of one generation.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) manifest: Manifest,
    pub(crate) segments: Vec<Segment>,
    /// Keeps writers from removing its files; see [`crate::pins`].
    pub(crate) pin: Option<Pin>,
}

impl Snapshot {
    /// Opens every segment a manifest names.
    pub(crate) fn open(folder: &Path, manifest: Manifest) -> Result<Self> {
        let analyzer = Analyzer::new(manifest.config.language()?);
        let mut segments = Vec::with_capacity(manifest.segments.len());
        for entry in &manifest.segments {
            let deleted = deletes::of_entry(folder, entry)?;
            let path = folder.join("segments").join(&entry.name);
            let segment = Segment::open(&path, &entry.name, &analyzer, manifest.config.pooling, deleted)?;
            segment.check_counts(entry)?;
            segments.push(segment);
        }
        Ok(Self { manifest, segments, pin: None })
    }

    /// Opens a generation for reading and holds it. What cannot be held may be removed by a writer while it is being opened:
    /// then there is a newer one, which is opened instead.
    pub(crate) fn open_at(folder: &Path, at: &At) -> Result<Self> {
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
    pub(crate) fn open_current(folder: &Path) -> Result<Self> {
        Self::open_at(folder, &At::Current)
    }

    /// Documents that answer.
    pub(crate) fn n_documents(&self) -> u64 {
        self.segments.iter().map(|segment| segment.documents.len() as u64 - segment.deleted.len()).sum()
    }

    /// Rows that answer.
    pub(crate) fn n_rows(&self) -> u64 {
        self.segments.iter().map(|segment| segment.n_live_rows() as u64).sum()
    }
}

/// How a collection is opened for searching.
#[derive(Debug, Clone)]
pub struct SearcherOptions {
    /// Another place of the collection's encoder: a card's name or a folder. It must be the same model.
    pub model: Option<String>,
    /// Where the encoder runs.
    pub device: DeviceChoice,
    /// Threads for embedding queries; 0 = one per core.
    pub threads: usize,
    /// Which generation answers.
    pub at: At,
}

impl Default for SearcherOptions {
    fn default() -> Self {
        Self { model: None, device: DeviceChoice::Auto, threads: 0, at: At::Current }
    }
}

/// A collection open for searching.
///
/// It shows the generation it was opened at for as long as it lives; any number of searchers may be open while one writer
/// commits. The encoder is loaded at the first query that needs it.
#[derive(Debug)]
pub struct Searcher {
    folder: PathBuf,
    options: SearcherOptions,
    pub(crate) snapshot: Snapshot,
    pub(crate) analyzer: Analyzer,
    pub(crate) resolved: ResolvedContexts,
    encoder: OnceLock<Embedder>,
}

impl Searcher {
    /// Opens the collection at `folder`, at its current generation unless asked otherwise.
    pub fn open(folder: impl AsRef<Path>, options: SearcherOptions) -> Result<Self> {
        let folder = folder.as_ref().to_owned();
        let snapshot = Snapshot::open_at(&folder, &options.at)?;
        let analyzer = Analyzer::new(snapshot.manifest.config.language()?);
        Ok(Self {
            folder,
            options,
            snapshot,
            analyzer,
            resolved: ResolvedContexts::default(),
            encoder: OnceLock::new(),
        })
    }

    /// The folder of the collection.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The generation this searcher shows.
    pub fn manifest(&self) -> &Manifest {
        &self.snapshot.manifest
    }

    /// What whoever asks should know: documents that were damaged and are not there any more.
    pub fn warnings(&self) -> Vec<String> {
        self.snapshot.manifest.losses.iter().map(Loss::warning).collect()
    }

    /// Whether writers are kept from removing its files. Without that it answers as long as its files stay mapped, but they
    /// may be gone for whoever opens the same generation after it.
    pub fn is_pinned(&self) -> bool {
        self.snapshot.pin.is_some()
    }

    /// What there is to say about the device that queries were embedded on, if any were; see [`Embedder::device_remark`].
    pub fn device_remark(&self) -> Option<String> {
        self.encoder.get()?.device_remark()
    }

    /// The collection's encoder, loaded at the first call; an error if it is not there or not the one the vectors are from.
    pub fn encoder(&self) -> Result<&Embedder> {
        if self.encoder.get().is_none() {
            let config = &self.snapshot.manifest.config;
            let models = Models::from_env()?;
            let located = models.resolve(self.options.model.as_ref().unwrap_or(&config.model))?;
            let load = LoadOptions {
                device: self.options.device,
                precision: config.precision,
                threads: self.options.threads,
                ..LoadOptions::default()
            };
            let encoder = Embedder::load(&located.folder, &load)?;
            if encoder.fingerprint() != config.model_fingerprint {
                return Err(Error::Mismatch {
                    setting: "model",
                    collection: format!("{} (fingerprint {})", config.model, short(&config.model_fingerprint)),
                    requested: format!("{} (fingerprint {})", located.name, short(encoder.fingerprint())),
                });
            }
            let _ = self.encoder.set(encoder); // another thread loaded the same
        }
        Ok(self.encoder.get().expect("set above"))
    }
}

fn short(fingerprint: &str) -> &str {
    fingerprint.get(..12).unwrap_or(fingerprint)
}
