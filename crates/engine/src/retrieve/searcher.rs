//! A collection open for searching: one generation, whatever a writer does beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cento_assembly::policy::normalize_label;
use cento_embedder::{DeviceChoice, Embedding, LoadOptions};
use cento_lexical::Analyzer;

use crate::cancel::Cancel;
use crate::encoder::{Address, Encoder, EncoderAccess, EndpointSettings, Named, Opening};
use crate::error::{Error, Result};
use crate::ingest::{other_model, precision_of};
use crate::line::patience::Patience;
use crate::retrieve::missing::MissingShard;
use crate::retrieve::queue::encoder::SharedEncoder;
use crate::retrieve::resolved::ResolvedContexts;
use crate::retrieve::rules::known::KnownLinks;
use crate::source::local::Local;
use crate::source::seam::{Description, Labelled, Source};
use crate::source::shards::Shards;
use cento_collection::format::losses::{Loss, Stale};
use cento_collection::format::manifest::Manifest;
use cento_collection::keep::snapshots::At;
use cento_models::Models;

/// Files with stale documents that every answer names; of the others it says how many there are.
const STALE_NAMED_MAX: usize = 5;

/// The way a collection is opened for searching.
#[derive(Debug, Clone)]
pub struct SearcherOptions {
    /// Another place of the collection's encoder: a card's name or a folder. It must be the same model.
    pub model: Option<String>,
    /// The way an encoder at an endpoint is asked.
    pub access: EncoderAccess,
    /// Where the encoder runs.
    pub device: DeviceChoice,
    /// Threads for embedding queries; 0 = one per core.
    pub threads: usize,
    /// The generation that answers.
    pub at: At,
    /// The names that a document is found by.
    pub names: Names,
}

/// The names that a document is found by, besides its id and the end of its file's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Names {
    /// Paths of this machine that lie in an indexed root, links followed: for whoever sits at it.
    #[default]
    AndPaths,
    /// No others: nobody learns where a root lies, or what else is there.
    Alone,
}

impl Default for SearcherOptions {
    fn default() -> Self {
        Self {
            model: None,
            access: EncoderAccess::default(),
            device: DeviceChoice::Auto,
            threads: 0,
            at: At::Current,
            names: Names::default(),
        }
    }
}

/// A collection open for searching.
///
/// It shows the generation it was opened at for as long as it lives; any number of searchers may be open while one
/// writer commits. The encoder is loaded at the first query that needs it.
#[derive(Debug)]
pub struct Searcher {
    folder: PathBuf,
    pub(super) options: SearcherOptions,
    pub(crate) source: Arc<dyn Source>,
    /// Shards that have no part in its answers.
    missing: Vec<MissingShard>,
    pub(crate) analyzer: Arc<Analyzer>,
    pub(crate) resolved: Arc<ResolvedContexts>,
    pub(crate) links: Arc<KnownLinks>,
    encoder: Arc<OnceLock<Arc<SharedEncoder>>>,
    /// The labels of all sections, when a policy first names one that the candidates do not have.
    labels: Arc<OnceLock<BTreeSet<String>>>,
}

impl Searcher {
    /// Opens the collection at `folder`, at its current generation unless asked otherwise.
    pub fn open(folder: impl AsRef<Path>, options: SearcherOptions) -> Result<Self> {
        let folder = folder.as_ref().to_owned();
        let source = Arc::new(Local::open(&folder, &options.at)?);
        Self::of(folder, options, source)
    }

    /// Opens several collections that answer as one, as if all their documents were in one collection. They must be
    /// indexed with the same settings and have no document in common.
    pub fn open_shards(folders: &[impl AsRef<Path>], options: SearcherOptions) -> Result<Self> {
        let folders: Vec<PathBuf> = folders.iter().map(|folder| folder.as_ref().to_owned()).collect();
        let source = Arc::new(Shards::open(&folders, &options.at)?);
        let named = std::env::join_paths(&folders).map_or_else(|_| folders[0].clone(), PathBuf::from);
        Self::of(named, options, source)
    }

    /// Opens shards of other machines, each with the name that errors have for it, as one collection.
    pub(crate) fn of_shards(
        shards: Vec<Arc<dyn Source>>,
        names: Vec<PathBuf>,
        options: SearcherOptions,
    ) -> Result<Self> {
        let named = names.iter().map(|name| name.display().to_string()).collect::<Vec<_>>().join(",");
        Self::of(named.into(), options, Arc::new(Shards::of(shards, names)?))
    }

    fn of(folder: PathBuf, options: SearcherOptions, source: Arc<dyn Source>) -> Result<Self> {
        let analyzer = Arc::new(Analyzer::new(source.describe().manifest.config.language()?));
        let (resolved, links, encoder, labels) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
        Ok(Self { folder, options, source, missing: Vec::new(), analyzer, resolved, links, encoder, labels })
    }

    /// The same for one request, which ends what it waits for, without shards that it does without. What it learns, the
    /// others learn.
    pub(crate) fn until(&self, cancel: &Cancel, missing: Vec<MissingShard>) -> Self {
        Self {
            folder: self.folder.clone(),
            options: self.options.clone(),
            source: self.source.until(cancel).unwrap_or_else(|| Arc::clone(&self.source)),
            missing,
            analyzer: Arc::clone(&self.analyzer),
            resolved: Arc::clone(&self.resolved),
            links: Arc::clone(&self.links),
            encoder: Arc::clone(&self.encoder),
            labels: Arc::clone(&self.labels),
        }
    }

    /// Shards that have no part in its answers: those are of a part of the collection.
    #[must_use]
    pub fn missing(&self) -> &[MissingShard] {
        &self.missing
    }

    /// Warnings of them.
    pub(crate) fn warnings_of_missing(&self) -> Vec<String> {
        self.missing.iter().map(MissingShard::warning).collect()
    }

    /// The label of every section, as policies name them.
    pub(crate) fn labels(&self) -> Result<&BTreeSet<String>> {
        if let Some(known) = self.labels.get() {
            return Ok(known);
        }
        let labels = self.source.labels()?;
        let labels = labels.into_iter().map(|Labelled { heading, .. }| normalize_label(&heading)).collect();
        Ok(self.labels.get_or_init(|| labels))
    }

    /// The folder of the collection; of several, all of them in one path list.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The generation this searcher shows.
    pub fn manifest(&self) -> &Manifest {
        &self.source.describe().manifest
    }

    /// The facts of the collection that another server may be told: where its files lie on this machine it learns only
    /// where paths are names.
    pub(crate) fn shown(&self) -> Description {
        let mut shown = self.source.describe().clone();
        if self.options.names == Names::Alone {
            shown.manifest.roots.iter_mut().for_each(|(label, path)| *path = PathBuf::from(label));
            let model = &mut shown.manifest.config.model;
            *model = model.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(model).to_owned();
        }
        shown
    }

    /// Warnings to whoever asks: documents that were damaged and are not there any more, and documents that are older
    /// than their files.
    pub fn warnings(&self) -> Vec<String> {
        let manifest = self.manifest();
        let (named, others) = manifest.stale.split_at(manifest.stale.len().min(STALE_NAMED_MAX));
        let rest = (!others.is_empty()).then(|| {
            let n_documents: u64 = others.iter().map(|stale| stale.n_documents).sum();
            format!("{n_documents} documents of {} other files answer with the text they had before", others.len())
        });
        let warnings = manifest.losses.iter().map(Loss::warning).chain(named.iter().map(Stale::warning));
        warnings.chain(rest).collect()
    }

    /// True if writers are kept from removing its files. Without that it answers as long as its files stay mapped, but
    /// they may be gone for whoever opens the same generation after it.
    pub fn is_pinned(&self) -> bool {
        self.source.describe().is_pinned
    }

    /// A remark on the device that queries were embedded on, or the endpoint that embedded them, if any were.
    pub fn device_remark(&self) -> Option<String> {
        self.encoder.get()?.encoder().remark()
    }

    /// The collection's encoder, loaded at the first call; an error if it is not there or not the one the vectors are
    /// from.
    pub fn encoder(&self) -> Result<&Encoder> {
        self.shared_encoder().map(|encoder| encoder.encoder())
    }

    /// The embedding of a query, made together with those of others that ask at the same time.
    pub(crate) fn embed_query(&self, query: &str, cancel: &Cancel) -> Result<Embedding> {
        self.shared_encoder()?.embed_query(query, cancel)
    }

    /// A warning to whoever asks, if the encoder read the beginning of a query alone.
    pub(crate) fn cut(&self, query: &Embedding) -> Result<Option<String>> {
        let max_tokens = self.encoder()?.max_tokens();
        let warning = || {
            format!(
                "the query has more than the {max_tokens} tokens that the encoder reads: vectors are of its beginning"
            )
        };
        Ok(query.truncated.then(warning))
    }

    /// Takes an encoder of the collection's fingerprint that another searcher loaded.
    pub(crate) fn lend(&self, encoder: Arc<SharedEncoder>) {
        let _ = self.encoder.set(encoder); // one that is there is the same
    }

    /// The collection's encoder with the queue before it, loaded at the first call.
    pub(crate) fn shared_encoder(&self) -> Result<&Arc<SharedEncoder>> {
        if self.encoder.get().is_none() {
            let config = &self.manifest().config;
            if config.given.is_some() {
                return Err(Error::NoEncoder);
            }
            let spec = self.options.model.as_ref().unwrap_or(&config.model);
            let encoder = match Address::parse(spec)? {
                Some(address) => self.open_encoder(address)?,
                None => self.load_encoder(spec)?,
            };
            let _ = self.encoder.set(Arc::new(SharedEncoder::new(encoder))); // another thread loaded the same
        }
        Ok(self.encoder.get().expect("set above"))
    }

    fn load_encoder(&self, spec: &str) -> Result<Encoder> {
        let config = &self.manifest().config;
        let models = Models::from_env()?;
        let located = models.resolve(spec)?;
        let load = LoadOptions {
            device: self.options.device,
            precision: precision_of(config)?,
            threads: self.options.threads,
            ..LoadOptions::default()
        };
        let mut encoder = Encoder::load(&models, &located.folder, &load)?;
        if encoder.fingerprint() != config.model_fingerprint {
            return Err(other_model(config, &located.name, &encoder));
        }
        config.prompt.as_ref().map_or(Ok(()), |prompt| encoder.choose_query_prompt(prompt))?;
        Ok(encoder)
    }

    fn open_encoder(&self, address: Address) -> Result<Encoder> {
        let config = &self.manifest().config;
        let opening = Opening {
            address,
            named: if self.options.model.is_some() { Named::Request } else { Named::Collection },
            access: &self.options.access,
            settings: EndpointSettings::default().settle(config.endpoint.as_ref())?,
            patience: Patience::SHORT,
        };
        Encoder::open_as(config, opening)
    }
}
