//! The service behind every door: open collections, encoders and tokenizers that are shared, and one method a verb.
//!
//! It is asked by many threads at once. A collection is opened at its first request and again when a writer has
//! committed; requests in progress end on the generation they began with. Of each encoder there is one, whatever
//! collections use it.
//!
//! A verb is a request and an answer in `api`, their names in `api/schema.rs`, a method here, and a command of a door.

mod asked;
pub(crate) mod assembled;
mod changes;
mod collections;
pub(crate) mod encoding;
mod reranking;
mod stamp;
pub(crate) mod shards;
pub(crate) mod roots;
mod traced;
mod writing;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cento_embedder::{Accelerator, DeviceChoice};

use crate::api::{self, Request as _};
use crate::cancel::Cancel;
use crate::context::endpoint::Endpoint;
use crate::context::tokens::BudgetTokenizer;
use crate::encoder::EncoderAccess;
use crate::error::{Error, Result};
use crate::explain::why_not::WhyNot;
use crate::ingest::cache::CacheOptions;
use crate::limits;
use crate::retrieve::links::DocumentLinks;
use crate::retrieve::missing::Needed;
use crate::retrieve::queue::encoder::SharedEncoder;
use crate::retrieve::request::Mode;
use crate::retrieve::rerank::reranker::Reranker;
use crate::retrieve::run::{DocumentRanking, RunQuery, RunRequest};
use crate::retrieve::search::{SearchResponse, Timings};
use crate::retrieve::searcher::{Names, Searcher, SearcherOptions};
use crate::source::documents::Excerpt;
use crate::source::remote::served;
pub use asked::Asked;
use cento_collection::care::status::{ShardStatus, Status, status};
use cento_collection::format::layout::CURRENT;
use cento_collection::format::manifest::Manifest;
use cento_collection::keep::reports::{FileReports, file_reports};
use cento_collection::keep::snapshots::{At, snapshots, unread_snapshots};
use changes::Changes;
use collections::Collections;
use roots::Writing;
use shards::{ShardOptions, Sharded};
use stamp::Stamp;

/// The tokenizers that need no file.
const BUILT_IN: [&str; 2] = ["o200k", "cl100k"];

/// The name of the encoder's own tokenizer.
const OF_MODEL: &str = "model";

/// The names a service knows, and where it computes.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// Folders of collections, by the names that requests use.
    pub collections: BTreeMap<String, PathBuf>,
    /// Collections that lie on other servers, by the names that requests use.
    pub shards: BTreeMap<String, ShardOptions>,
    /// Files of tokenizers (`tokenizer.json`), by the names that requests use.
    pub tokenizers: BTreeMap<String, PathBuf>,
    /// Where encoders run.
    pub device: DeviceChoice,
    /// Threads for embedding; 0 = one per core.
    pub threads: usize,
    /// Another place of the collections' encoder: a card's name or a folder. It must be the same model.
    pub model: Option<String>,
    /// The way encoders at endpoints are asked.
    pub access: EncoderAccess,
    /// The generation of collections that answers; the current one is opened again when there is a newer one.
    pub at: At,
    /// The rerankers that requests may name, beside those that were pulled; the first of them serves who names none.
    pub rerankers: Vec<Arc<Reranker>>,
    /// The names that documents are found by.
    pub names: Names,
    /// The embedding cache of those that write, which [`Service::cache`] shows; without one every text is embedded.
    pub cache: Option<CacheOptions>,
    /// The way collections may be changed; not at all by default.
    pub writing: Option<Writing>,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            collections: BTreeMap::new(),
            shards: BTreeMap::new(),
            tokenizers: BTreeMap::new(),
            device: DeviceChoice::Auto,
            threads: 0,
            model: None,
            access: EncoderAccess::default(),
            at: At::Current,
            rerankers: Vec::new(),
            names: Names::default(),
            cache: None,
            writing: None,
        }
    }
}

/// A collection that is asked: by its name in [`ServiceOptions::collections`], which a door may take from anybody, or
/// by its folder, which it may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    /// By its name.
    Name(&'a str),
    /// By its folder.
    Folder(&'a Path),
}

impl<'a> From<&'a str> for Which<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a Path> for Which<'a> {
    fn from(folder: &'a Path) -> Self {
        Self::Folder(folder)
    }
}

/// Everything that two collections must have alike to share an encoder.
type Likeness = (String, String, Option<String>, Option<String>);

/// Answers the requests of [`api`], from any number of threads.
#[derive(Debug)]
pub struct Service {
    /// The collections aside, of which there may be more by now.
    options: ServiceOptions,
    collections: Collections,
    /// By what stands for their folder: their addresses.
    sharded: BTreeMap<PathBuf, Sharded>,
    /// By name; those of files.
    tokenizers: BTreeMap<String, BudgetTokenizer<'static>>,
    /// By folder.
    open: Mutex<HashMap<PathBuf, Arc<Mutex<Option<Open>>>>>,
    /// By fingerprint, number type, address, if it has one, and the prompt before queries, if it was chosen.
    encoders: Mutex<HashMap<Likeness, Arc<SharedEncoder>>>,
    /// Those that were pulled and asked for, by the name that they were asked for.
    rerankers: Mutex<HashMap<String, Arc<Reranker>>>,
    /// By folder.
    changes: Mutex<HashMap<PathBuf, Arc<Mutex<Changes>>>>,
    /// The device that was named, once it was wanted beside encoders.
    accelerator: Mutex<Option<Accelerator>>,
}

/// A collection as it was when its manifest had this stamp.
#[derive(Debug)]
struct Open {
    stamp: Stamp,
    searcher: Arc<Searcher>,
}

impl Service {
    /// A service; collections and encoders are opened when they are asked for, tokenizers now.
    ///
    /// # Errors
    /// Those of [`BudgetTokenizer::named`]; [`Error::Setting`] for addresses of shards that are none.
    pub fn new(mut options: ServiceOptions) -> Result<Self> {
        let (mut folders, mut sharded) = (std::mem::take(&mut options.collections), BTreeMap::new());
        for (name, shards) in &options.shards {
            let place = shards.places.name();
            sharded.insert(place.clone(), Sharded::new(shards)?);
            folders.insert(name.clone(), place);
        }
        let collections = Collections::new(folders);
        let mut tokenizers = BTreeMap::new();
        for (name, path) in &options.tokenizers {
            tokenizers.insert(name.clone(), BudgetTokenizer::named(&path.to_string_lossy())?);
        }
        let (open, encoders, rerankers, changes, accelerator) =
            (Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self { options, collections, sharded, tokenizers, open, encoders, rerankers, changes, accelerator })
    }

    /// Says if a tokenizer needs no file: those that are built in, and the encoder's own.
    #[must_use]
    pub fn has_tokenizer(name: &str) -> bool {
        name == OF_MODEL || BUILT_IN.contains(&name)
    }

    /// The collections in a folder, by the names of their own folders.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NoCollections`] where there is none.
    pub fn collections_in(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
        collections::found_in(folder)
    }

    /// The name of a collection in a folder: the folder's own, without a dot before it.
    ///
    /// # Errors
    /// [`Error::Setting`] if it has none, or one that is not UTF-8.
    pub fn name_of(folder: &Path) -> Result<String> {
        collections::name_of(folder)
    }

    /// The collections by name, each with its folder, as they are now.
    pub fn collections(&self) -> Arc<BTreeMap<String, PathBuf>> {
        self.collections.all()
    }

    /// The best chunks for a query.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of its range, those of [`Searcher::search`], [`Error::Cancelled`].
    pub fn search<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::SearchRequest,
        cancel: &Cancel,
    ) -> Result<SearchResponse> {
        self.search_timed(which, request, cancel).map(|(response, _)| response)
    }

    /// The best chunks for a query, and where the time went.
    ///
    /// # Errors
    /// Those of [`Service::search`].
    pub fn search_timed<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::SearchRequest,
        cancel: &Cancel,
    ) -> Result<(SearchResponse, Timings)> {
        request.check()?;
        let rerank = self.reranking(request.rerank.as_ref())?;
        let search = crate::ChunkSearch { cancel: cancel.clone(), rerank, ..request.resolve()? };
        let searcher = self.searcher_of(which.into(), request.needed(), cancel)?;
        let is_embedded = search.vector.is_none();
        let loading = if is_embedded { self.lend(&searcher, request.mode)? } else { Duration::ZERO };
        let (response, mut timings) = searcher.search_timed(&search)?;
        timings.embed += loading;
        Ok((response, timings))
    }

    /// The best documents for each of several questions, as benchmarks want them; `request` says how they are found.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of its range, those of [`Searcher::run`], [`Error::Cancelled`].
    pub fn rank<'w>(
        &self,
        which: impl Into<Which<'w>>,
        queries: &[&str],
        request: &api::SearchRequest,
        cancel: &Cancel,
    ) -> Result<Vec<DocumentRanking>> {
        request.check()?;
        if request.allow_partial {
            let reason = "is for searches and contexts: a ranking of documents cannot say what is missing".to_owned();
            return Err(Error::Setting { setting: "allow-partial", value: "true".to_owned(), reason });
        }
        let search = request.resolve()?;
        let rerank = self.reranking_of_documents(request.rerank.as_ref())?;
        let searcher = self.searcher(which.into(), cancel)?;
        self.lend(&searcher, request.mode)?;
        let of = |query: &&str| RunQuery { text: (*query).to_owned(), scope: search.scope.clone() };
        let queries: Vec<RunQuery> = queries.iter().map(of).collect();
        let crate::ChunkSearch { k, candidates, mode, fusion, links, scan, ef, find, ref filter, .. } = search;
        let (filter, cancel) = (filter.clone(), cancel.clone());
        let run = RunRequest { k, candidates, mode, fusion, links, scan, ef, find, filter, ..RunRequest::default() };
        let run = RunRequest { rerank, cancel, ..run };
        searcher.run(&queries, &run, &mut |_| {})
    }

    /// The nearest neighbours of each of several vectors.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of its range, those of [`Searcher::neighbors`], [`Error::Cancelled`].
    pub fn neighbors<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::NeighborsRequest,
        cancel: &Cancel,
    ) -> Result<api::NeighborsAnswer> {
        request.check()?;
        let mut search = request.resolve(cancel)?;
        let searcher = self.searcher(which.into(), cancel)?;
        if request.vectors.len() > 1 && searcher.reads_all(search.scan) {
            search.accelerator = self.accelerator()?; // of one vector the way there is longer
        }
        let (found, scanned) = searcher.neighbors(&request.vectors, &search)?;
        limits::answer(found.iter().flat_map(|found| found.ids.iter().map(String::len)))?;
        Ok(api::NeighborsAnswer::new(searcher.manifest(), scanned, found))
    }

    /// The device that was named for encoders, opened at the first call: it compares given vectors too. One that was
    /// not named does not, since nobody has measured where it is faster than the CPU.
    fn accelerator(&self) -> Result<Option<Accelerator>> {
        if matches!(self.options.device, DeviceChoice::Auto | DeviceChoice::Cpu) {
            return Ok(None);
        }
        let mut opened = self.accelerator.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() {
            *opened = Some(Accelerator::open(self.options.device)?);
        }
        Ok(opened.clone())
    }

    /// Length of the vectors that a collection can be asked for.
    ///
    /// # Errors
    /// Those of [`Service::searcher`].
    pub fn query_dimensions<'w>(&self, which: impl Into<Which<'w>>, cancel: &Cancel) -> Result<usize> {
        Ok(self.searcher(which.into(), cancel)?.manifest().config.query_dimensions())
    }

    /// The cited context that answers a question.
    ///
    /// # Errors
    /// Those of [`Service::ask`] and of [`Asked`].
    pub fn context<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::ContextRequest,
        cancel: &Cancel,
    ) -> Result<api::ContextAnswer> {
        self.context_timed(which, request, cancel).map(|(answer, ..)| answer)
    }

    /// The same, the time that finding its candidates took, and that of choosing among them.
    ///
    /// # Errors
    /// Those of [`Service::context`].
    pub fn context_timed<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::ContextRequest,
        cancel: &Cancel,
    ) -> Result<(api::ContextAnswer, Timings, Duration)> {
        self.ask(which, request, None, cancel, |asked| {
            let timings = asked.timings()?;
            let start = Instant::now();
            let context = asked.context(asked.settle()?.budget_tokens)?;
            cancel.check()?;
            Ok((asked.answer(&context)?, timings, start.elapsed()))
        })
    }

    /// The worth of contexts of every budget up to that of the request, see [`Asked::curve`].
    ///
    /// # Errors
    /// Those of [`Service::ask`] and of [`Asked::curve`].
    pub fn curve<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::ContextRequest,
        cancel: &Cancel,
    ) -> Result<api::CurveAnswer> {
        self.ask(which, request, None, cancel, |asked| asked.curve(api::CURVE_SOLVED))
    }

    /// Where a document was lost between a question and its context.
    ///
    /// # Errors
    /// Those of [`Service::ask`] and of [`Asked::why_not`].
    pub fn why_not<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::WhyNotRequest,
        cancel: &Cancel,
    ) -> Result<WhyNot> {
        request.check()?;
        self.ask(which, &request.context, None, cancel, |asked| asked.why_not(&request.id))
    }

    /// Hands a question to `then`, which may want more of it than one answer: the context and its trace, contexts of
    /// several budgets. `endpoint` is a language model that the strategy `seal` asks.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of its range, those of [`Searcher::open`] and of [`BudgetTokenizer::named`],
    /// [`Error::Cancelled`]; those of `then`.
    pub fn ask<'w, T, E: From<Error>>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::ContextRequest,
        endpoint: Option<&Endpoint>,
        cancel: &Cancel,
        then: impl FnOnce(&Asked<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        request.check()?;
        let rerank = self.reranking(request.rerank.as_ref())?;
        let search = crate::ChunkSearch { cancel: cancel.clone(), rerank, ..request.search().resolve()? };
        let searcher = self.searcher_of(which.into(), request.needed(), cancel)?;
        let tokenizer = self.tokenizer(&request.tokenizer, &searcher)?;
        let loading = self.lend(&searcher, request.mode)?;
        let wanted = request.resolve(tokenizer.get(), endpoint);
        then(&Asked { request, searcher: &searcher, search, wanted, loading, found: OnceCell::new() })
    }

    /// A document, or the part of it that a citation names.
    ///
    /// # Errors
    /// Those of [`Searcher::get`], [`Error::Cancelled`].
    pub fn get<'w>(&self, which: impl Into<Which<'w>>, request: &api::GetRequest, cancel: &Cancel) -> Result<Excerpt> {
        request.check()?;
        let excerpt = self.searcher(which.into(), cancel)?.get(&request.citation)?;
        limits::answer([excerpt.text.len()].into_iter())?;
        Ok(excerpt)
    }

    /// The links of a document, and those of others to it.
    ///
    /// # Errors
    /// Those of [`Searcher::links`], [`Error::Cancelled`].
    pub fn links<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::LinksRequest,
        cancel: &Cancel,
    ) -> Result<DocumentLinks> {
        request.check()?;
        let links = self.searcher(which.into(), cancel)?.links(&request.citation)?;
        let outgoing = links.outgoing.iter().map(|link| link.target.len());
        limits::answer(outgoing.chain(links.incoming.iter().map(|link| link.target.len() + link.document.len())))?;
        Ok(links)
    }

    /// The documents there are.
    ///
    /// # Errors
    /// Those of [`api::DocumentList::new`], [`Error::Cancelled`].
    pub fn list<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::ListRequest,
        cancel: &Cancel,
    ) -> Result<api::DocumentList> {
        request.check()?;
        let list = api::DocumentList::new(&*self.searcher(which.into(), cancel)?, request)?;
        limits::answer(list.documents.iter().map(|document| document.id.len() + document.title.len()))?;
        Ok(list)
    }

    /// The fields that filters can speak of.
    ///
    /// # Errors
    /// Those of [`Searcher::fields`], [`Error::Cancelled`].
    pub fn fields<'w>(&self, which: impl Into<Which<'w>>, cancel: &Cancel) -> Result<api::FieldList> {
        api::FieldList::new(&*self.searcher(which.into(), cancel)?)
    }

    /// The sections of a document.
    ///
    /// # Errors
    /// Those of [`Searcher::sections`], [`Error::Cancelled`].
    pub fn sections<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::SectionsRequest,
        cancel: &Cancel,
    ) -> Result<api::SectionList> {
        request.check()?;
        api::SectionList::new(&*self.searcher(which.into(), cancel)?, request)
    }

    /// The snapshots of a collection.
    ///
    /// # Errors
    /// [`Error::Collection`], [`Error::Cancelled`].
    pub fn snapshots<'w>(&self, which: impl Into<Which<'w>>, cancel: &Cancel) -> Result<api::SnapshotList> {
        cancel.check()?;
        let folder = self.folder(which.into())?;
        Ok(api::SnapshotList::new(snapshots(&folder)?, unread_snapshots(&folder)?))
    }

    /// The contents of a collection; of one on other servers the sums alone, since segments and bytes are theirs.
    ///
    /// # Errors
    /// Those of opening it, [`Error::Cancelled`].
    pub fn status<'w>(&self, which: impl Into<Which<'w>>, cancel: &Cancel) -> Result<Status> {
        cancel.check()?;
        let which = which.into();
        if self.is_sharded(which)? {
            let searcher = self.searcher(which, cancel)?;
            let shards = self.sharded.get(&*self.place(which)?).map(Sharded::status).unwrap_or_default();
            return Ok(shards::status(&searcher, shards));
        }
        Ok(status(&self.folder(which)?, &self.options.at)?)
    }

    /// The servers of collections that lie on others, by the names of the collections; none of them is asked.
    pub fn shards(&self) -> BTreeMap<String, Vec<ShardStatus>> {
        let named = self.collections();
        let of = |(name, place): (&String, &PathBuf)| Some((name.clone(), self.sharded.get(place)?.status()));
        named.iter().filter_map(of).collect()
    }

    /// The reports on the files of a collection.
    ///
    /// # Errors
    /// Those of [`file_reports`], [`Error::Cancelled`].
    pub fn file_reports<'w>(&self, which: impl Into<Which<'w>>, cancel: &Cancel) -> Result<FileReports> {
        cancel.check()?;
        Ok(file_reports(&self.folder(which.into())?, &self.options.at)?)
    }

    /// The number of files of a collection that changed after its last commit, or are gone; 0 for one on other servers,
    /// whose files are not looked at.
    ///
    /// # Errors
    /// Those of opening the collection, [`Error::Cancelled`].
    pub fn changed<'w>(&self, which: impl Into<Which<'w>>, cancel: &Cancel) -> Result<usize> {
        let which = which.into();
        if self.is_sharded(which)? {
            return Ok(0);
        }
        let (searcher, folder) = (self.searcher(which, cancel)?, self.folder(which)?);
        let committed = Stamp::of(&folder.join(CURRENT))?.modified;
        let changes = Arc::clone(lock(&self.changes).entry(folder.into_owned()).or_default());
        let n_changed = lock(&changes).count(&searcher, committed, cancel)?;
        Ok(n_changed)
    }

    /// The collection at its newest generation.
    ///
    /// # Errors
    /// Those of [`Searcher::open`], [`Error::UnknownCollection`], [`Error::Cancelled`].
    pub fn searcher(&self, which: Which<'_>, cancel: &Cancel) -> Result<Arc<Searcher>> {
        self.searcher_of(which, Needed::All, cancel)
    }

    /// The same; of a collection on other servers that of those which answer, where not all are needed.
    ///
    /// # Errors
    /// Those of [`Service::searcher`].
    pub fn searcher_of(&self, which: Which<'_>, needed: Needed, cancel: &Cancel) -> Result<Arc<Searcher>> {
        cancel.check()?;
        let folder = self.place(which)?;
        if let Some(sharded) = self.sharded.get(&*folder) {
            return sharded.searcher(|| self.searcher_options(), needed, cancel);
        }
        let place = Arc::clone(lock(&self.open).entry(folder.to_path_buf()).or_default());
        let mut place = lock(&place);
        // Taken before the manifest is read: a commit in between is seen by the next request.
        let stamp = Stamp::of(&folder.join(CURRENT));
        if let (Some(open), Ok(stamp)) = (&mut *place, &stamp) {
            let is_whole = open.searcher.source.check_whole().is_ok();
            if is_whole && (open.stamp == *stamp || self.options.at != At::Current) {
                return Ok(Arc::clone(&open.searcher));
            }
            if is_whole && Manifest::read(&folder)?.checksum() == open.searcher.manifest().checksum() {
                open.stamp = *stamp;
                return Ok(Arc::clone(&open.searcher));
            }
        }
        // Says what is wrong with a folder that has no manifest, or a file that was cut.
        let searcher = Arc::new(Searcher::open(&folder, self.searcher_options())?);
        *place = Some(Open { stamp: stamp?, searcher: Arc::clone(&searcher) });
        Ok(searcher)
    }

    fn searcher_options(&self) -> SearcherOptions {
        let ServiceOptions { device, threads, names, ref model, ref access, ref at, .. } = self.options;
        let (model, access) = (model.clone(), access.clone());
        SearcherOptions { model, access, device, threads, names, at: at.clone() }
    }

    /// The answer of a collection to a call of a server that it is a shard of: words that those of one version of Cento
    /// have for each other.
    ///
    /// # Errors
    /// [`Error::Request`] for what is no such call, [`Error::OtherGeneration`] where it is of another generation than
    /// there is, [`Error::Elsewhere`] where the collection lies on other servers itself, those of the collection,
    /// [`Error::Cancelled`].
    pub fn shard<'w>(&self, which: impl Into<Which<'w>>, call: &[u8], cancel: &Cancel) -> Result<Vec<u8>> {
        let which = which.into();
        if self.is_sharded(which)? {
            return Err(Error::Elsewhere { what: "parts" });
        }
        let searcher = self.searcher(which, cancel)?;
        served::answer(&*searcher.source, searcher.shown(), call, cancel)
    }

    fn is_sharded(&self, which: Which<'_>) -> Result<bool> {
        Ok(self.sharded.contains_key(&*self.place(which)?))
    }

    /// The folder of a collection that lies here.
    fn folder<'a>(&self, which: Which<'a>) -> Result<Cow<'a, Path>> {
        let place = self.place(which)?;
        match self.sharded.contains_key(&*place) {
            true => Err(Error::Elsewhere { what: "its files and its earlier generations" }),
            false => Ok(place),
        }
    }

    /// The folder of a collection, or what stands for it.
    fn place<'a>(&self, which: Which<'a>) -> Result<Cow<'a, Path>> {
        match which {
            Which::Folder(folder) => Ok(Cow::Borrowed(folder)),
            Which::Name(name) => self.collections.folder(name).map(Cow::Owned),
        }
    }

    /// Gives a searcher the encoder that other collections of the same fingerprint use, and says how long it took to
    /// load; BM25 alone needs none.
    fn lend(&self, searcher: &Searcher, mode: Mode) -> Result<Duration> {
        let start = Instant::now();
        if mode == Mode::Lexical {
            return Ok(Duration::ZERO);
        }
        let config = &searcher.manifest().config;
        if config.given.is_some() {
            return Ok(Duration::ZERO); // there is none, which whoever needs it says
        }
        let mut encoders = lock(&self.encoders); // held while one is loaded, so that it is loaded once
        let address = config.endpoint.as_ref().map(|_| config.model.clone());
        let key = (config.model_fingerprint.clone(), config.precision.clone(), address, config.prompt.clone());
        match encoders.get(&key) {
            Some(encoder) => searcher.lend(Arc::clone(encoder)),
            None => {
                encoders.insert(key, Arc::clone(searcher.shared_encoder()?));
            }
        }
        Ok(start.elapsed())
    }

    fn tokenizer<'s>(&'s self, name: &str, searcher: &'s Searcher) -> Result<Tokens<'s>> {
        if name == OF_MODEL {
            self.lend(searcher, Mode::Dense)?;
            let (config, encoder) = (&searcher.manifest().config, searcher.encoder()?);
            return Ok(Tokens::Made(BudgetTokenizer::of_model(&config.model, encoder.tokenizer())));
        }
        self.named_tokenizer(name, &[OF_MODEL])
    }

    /// A tokenizer that needs no collection; `others` are named too where there is none of that name.
    fn named_tokenizer(&self, name: &str, others: &[&str]) -> Result<Tokens<'_>> {
        if let Some(tokenizer) = self.tokenizers.get(name) {
            return Ok(Tokens::Kept(tokenizer));
        }
        if BUILT_IN.contains(&name) {
            return BudgetTokenizer::named(name).map(Tokens::Made);
        }
        let of_files = self.tokenizers.keys().map(String::as_str);
        let known: Vec<&str> = others.iter().copied().chain(BUILT_IN).chain(of_files).collect();
        Err(Error::Setting {
            setting: "tokenizer",
            value: name.to_owned(),
            reason: format!("is none of {}", known.join(", ")),
        })
    }
}

/// A tokenizer of the service, or one made for a request.
enum Tokens<'s> {
    Kept(&'s BudgetTokenizer<'static>),
    Made(BudgetTokenizer<'s>),
}

impl<'s> Tokens<'s> {
    fn get(&self) -> &BudgetTokenizer<'s> {
        match self {
            Self::Kept(tokenizer) => tokenizer,
            Self::Made(tokenizer) => tokenizer,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
