//! Repair: what the collection's own repair needs of an encoder. Vectors that cannot be read come from the embedding
//! cache or, if they are not there, from the encoder, which is loaded when the first of them is missing.

use std::cell::OnceCell;
use std::path::Path;

use cento_collection::care::repair::{self, Losses, LostVectors, RepairReport, VectorSources};
use cento_collection::format::manifest::Manifest;
use cento_collection::format::segment::{NewDocument, SegmentWriter};
use cento_collection::fs::Fs;

use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::ingest::{IndexOptions, Progress, RowVectors, load_encoder, settle};

/// Treatment of vectors that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missing {
    /// They are looked up in the embedding cache, or embedded.
    #[default]
    Made,
    /// Needing one is an error.
    Refused,
}

/// Repair options.
#[derive(Debug, Clone, Default)]
pub struct RepairOptions {
    /// Where lost vectors are looked for and how they are embedded: model, device, precision, threads, cache, graph
    /// threshold.
    pub index: IndexOptions,
    /// Treatment of vectors that cannot be read.
    pub vectors: Missing,
    /// Treatment of documents that earlier repairs could not keep.
    pub losses: Losses,
}

/// Repairs the collection at `folder`; nothing is written where nothing is damaged.
///
/// # Errors
/// Those of the folder; those of the encoder, if vectors must be embedded.
pub fn repair(
    folder: &Path,
    options: &RepairOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<RepairReport> {
    let (manifest, _) = Manifest::read_or_newest(folder)?;
    let encoder = OnceCell::new();
    let lost = Embedded { options, manifest: &manifest, encoder: &encoder, rows: None };
    let own = repair::RepairOptions { graph_rows_min: options.index.graph_rows_min, losses: options.losses };
    repair::repair(folder, &own, fs, lost, &mut |copied| progress(&Progress::of_copying(copied)))
}

/// Vectors from the cache or the encoder.
struct Embedded<'a> {
    options: &'a RepairOptions,
    manifest: &'a Manifest,
    encoder: &'a OnceCell<Encoder>,
    rows: Option<RowVectors<'a>>,
}

impl<'a> Embedded<'a> {
    /// The encoder and the cache, held against the collection's.
    fn rows(&mut self) -> Result<&mut RowVectors<'a>> {
        if self.rows.is_none() {
            if self.options.vectors == Missing::Refused {
                return Err(Error::VectorsLost);
            }
            let (options, config) = (&self.options.index, &self.manifest.config);
            let loaded = load_encoder(Some(self.manifest), options)?;
            settle(Some(config), options, &loaded)?;
            let encoder = self.encoder.get_or_init(|| loaded.encoder);
            self.rows = Some(RowVectors::new(config, encoder, options.cache.as_ref())?);
        }
        Ok(self.rows.as_mut().expect("made above"))
    }
}

impl LostVectors for Embedded<'_> {
    type Error = Error;

    fn add(&mut self, writer: &mut SegmentWriter<'_>, document: &NewDocument<'_>, first_row: u32) -> Result<()> {
        let rows = self.rows()?;
        rows.add(writer, document, first_row)?;
        rows.embed_batches(writer, &mut |_| {})
    }

    fn finish_segment(&mut self, writer: &mut SegmentWriter<'_>) -> Result<VectorSources> {
        let Some(rows) = &mut self.rows else { return Ok(VectorSources::default()) };
        rows.embed_rest(writer, &mut |_| {})?;
        let counts = std::mem::take(&mut rows.counts);
        Ok(VectorSources { n_from_cache: counts.n_from_log, n_tokens_embedded: counts.n_tokens_embedded })
    }

    fn finish(self) -> Vec<String> {
        self.rows.map(RowVectors::finish).unwrap_or_default()
    }
}
