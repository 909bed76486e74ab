//! Ingest: folders of files → one new segment → one new generation.
//!
//! Documents are read in the order of their origins, whatever order the folders were given in. Unchanged ones (same id, same content hash)
//! keep their rows; changed ones get new rows and their old ones a tombstone; those that vanished from the given roots get
//! a tombstone. Embeddings are logged as they are made, so that a run that is cut short loses the batch in flight.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use cento_corpus::{
    self as corpus, Chunk, ChunkConfig, ChunkSize, Document, FoundFile, HeaderStyle, ReadOptions, Root, Tokens,
};
use cento_embedder::{DeviceChoice, Embedder, Kind, LoadOptions};
use cento_lexical::{Analyzer, Language};
use cento_vector::Scalar;
use rayon::prelude::*;
use serde::Serialize;

use crate::commit::{Commit, NewSegment};
use crate::config::{CHUNKER_VERSION, ChunkTokens, CollectionConfig, GRAPH_ROWS_MIN};
use crate::documents::{self, Inspection};
use crate::embeddings::EmbeddingLog;
use crate::error::{AtPath, Error, Result};
use crate::fs::Fs;
use crate::ledger::Ledger;
use crate::lock::WriterLock;
use crate::manifest::{self, Manifest};
use crate::model::{DEFAULT_MODEL, Models};
use crate::searcher::Snapshot;
use crate::segment::{NewChunk, NewDocument, SegmentWriter};

/// Texts embedded between two writes of the log; what an interruption loses at most.
const EMBED_TEXTS: usize = 512;
/// Documents chunked together, over all threads.
const CHUNK_DOCUMENTS: usize = 128;

/// How to index; `None` means what the collection has, or the default for a new one.
#[derive(Debug, Clone)]
pub struct IndexOptions {
    /// Card name or folder of the encoder.
    pub model: Option<String>,
    /// Header style.
    pub header: Option<HeaderStyle>,
    /// Chunk size.
    pub chunk_tokens: Option<ChunkTokens>,
    /// Language of the lexical analysis.
    pub language: Option<Language>,
    /// Scalar type of stored vectors.
    pub vectors: Option<Scalar>,
    /// How files are found and read.
    pub read: ReadOptions,
    /// Where the encoder runs.
    pub device: DeviceChoice,
    /// Threads for embedding; 0 = one per core.
    pub threads: usize,
    /// Rows from which the segment gets a graph.
    pub graph_rows_min: usize,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            model: None,
            header: None,
            chunk_tokens: None,
            language: None,
            vectors: None,
            read: ReadOptions::default(),
            device: DeviceChoice::Auto,
            threads: 0,
            graph_rows_min: GRAPH_ROWS_MIN,
        }
    }
}

/// How far an ingest has come.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Documents read so far.
    pub n_documents: u64,
    /// Bytes of the files read so far.
    pub n_bytes: u64,
    /// Bytes of all files found.
    pub n_bytes_total: u64,
    /// Tokens embedded so far, those found in the log not counted.
    pub n_tokens: u64,
    /// Rows linked into the graph.
    pub n_graph_rows: u64,
}

/// The stages of an ingest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// Reading, chunking and embedding.
    #[default]
    Embedding,
    /// Writing the segment and, for large ones, its graph.
    Writing,
}

/// What an ingest did, file by file where something did not go as a user would expect.
#[derive(Debug, Clone, Default, Serialize)]
pub struct IndexReport {
    /// Generation that answers now.
    pub generation: u64,
    /// Documents that are new.
    pub n_added: u64,
    /// Documents whose content changed.
    pub n_changed: u64,
    /// Documents that were there already.
    pub n_unchanged: u64,
    /// Documents that vanished from the given roots.
    pub n_removed: u64,
    /// New rows.
    pub n_chunks: u64,
    /// Tokens of the new rows' embedded text, special tokens counted.
    pub n_tokens: u64,
    /// Tokens that went through the encoder in this run.
    pub n_tokens_embedded: u64,
    /// Rows whose vector came from the embedding log.
    pub n_from_log: u64,
    /// Rows longer than the encoder's window, embedded by their beginning (only with `--chunk-tokens document`).
    pub n_truncated: u64,
    /// Files left out, and why.
    pub skipped: Vec<Issue>,
    /// Files or documents that could not be read; what the collection had of them stays.
    pub failed: Vec<Issue>,
    /// What readers noticed.
    pub warnings: Vec<Issue>,
    /// Which keys were taken for what, in files with keys.
    pub notes: Vec<String>,
}

/// One remark of a report.
#[derive(Debug, Clone, Serialize)]
pub struct Issue {
    /// The file or document.
    pub path: String,
    /// What about it.
    pub reason: String,
}

/// Indexes the roots into the collection at `folder`, which is made if absent.
pub fn index(
    folder: &Path,
    roots: &[Root],
    options: &IndexOptions,
    fs: &dyn Fs,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let known = match Manifest::read(folder) {
        Ok(manifest) => Some(manifest),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    if known.is_none() {
        prepare_folder(fs, folder)?;
    }
    let _lock = WriterLock::acquire(folder)?;
    let mut roots = roots.to_vec();
    roots.sort_by(|a, b| a.label.cmp(&b.label));
    check_labels(known.as_ref(), &roots)?;

    let mut report = IndexReport::default();
    let files = find(&roots, &options.read, &mut report)?;
    let encoder = load_encoder(known.as_ref(), options)?;
    let config = settle(known.as_ref().map(|manifest| &manifest.config), options, &encoder)?;
    let snapshot = known.map(|manifest| Snapshot::open(folder, manifest)).transpose()?;
    let mut run = Run::start(fs, folder, &config, &encoder.embedder, snapshot.as_ref(), report)?;
    run.progress.n_bytes_total = files.iter().map(|file| file.n_bytes).sum();
    run.read(&files, &options.read, progress)?;
    run.finish(&roots, options.graph_rows_min, progress)
}

/// Does what [`index`] would do, except to embed and to write: the report says what would change.
pub fn dry_run(
    folder: &Path,
    roots: &[Root],
    options: &IndexOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<IndexReport> {
    let known = match Manifest::read(folder) {
        Ok(manifest) => Some(manifest),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    check_labels(known.as_ref(), roots)?;
    let mut report = IndexReport::default();
    let files = find(roots, &options.read, &mut report)?;
    let encoder = load_encoder(known.as_ref(), options)?;
    let config = settle(known.as_ref().map(|manifest| &manifest.config), options, &encoder)?;
    let chunking = chunk_config(&config, &encoder.embedder)?;
    let snapshot = known.map(|manifest| Snapshot::open(folder, manifest)).transpose()?;
    let mut ledger = Ledger::new(snapshot.as_ref(), report)?;
    let mut state = Progress { n_bytes_total: files.iter().map(|file| file.n_bytes).sum(), ..Progress::default() };
    for file in &files {
        match corpus::read(file, &options.read) {
            Err(error) => ledger.fail(file, &error),
            Ok(mut documents) => loop {
                let group = ledger.next_group(file, &mut documents, CHUNK_DOCUMENTS);
                if group.is_empty() {
                    ledger.report.notes.extend(documents.notes());
                    break;
                }
                let prepared: Vec<Prepared> = group
                    .into_par_iter()
                    .map(|(document, hash)| prepare(document, hash, &chunking, &encoder.embedder))
                    .collect();
                for prepared in &prepared {
                    count(prepared, &encoder.embedder, &mut ledger.report);
                }
            },
        }
        state.n_bytes += file.n_bytes;
        state.n_documents = ledger.n_documents();
        progress(&state);
    }
    ledger.tombstone_vanished(roots);
    Ok(ledger.report)
}

fn count(prepared: &Prepared, encoder: &Embedder, report: &mut IndexReport) {
    let visible = prepared.chunks.iter().zip(&prepared.headers).filter(|(chunk, _)| !chunk.hidden);
    for (chunk, header) in visible {
        report.n_chunks += 1;
        report.n_tokens += u64::from(chunk.n_tokens) + (encoder.tokenizer().count(header) + encoder.n_special()) as u64;
    }
}

/// An encoder and where it came from.
struct Encoder {
    spec: String,
    embedder: Embedder,
}

fn load_encoder(known: Option<&Manifest>, options: &IndexOptions) -> Result<Encoder> {
    let spec = match (&options.model, known) {
        (Some(spec), _) => spec.clone(),
        (None, Some(manifest)) => manifest.config.model.clone(),
        (None, None) => DEFAULT_MODEL.to_owned(),
    };
    let models = Models::from_env()?;
    let located = models.resolve(&spec)?;
    let load = LoadOptions { device: options.device, threads: options.threads, ..LoadOptions::default() };
    Ok(Encoder { spec: located.name, embedder: Embedder::load(&located.folder, &load)? })
}

/// The configuration the rows will have: the collection's own, or a new one; a request that differs is refused.
fn settle(known: Option<&CollectionConfig>, options: &IndexOptions, encoder: &Encoder) -> Result<CollectionConfig> {
    let asked = CollectionConfig {
        model: encoder.spec.clone(),
        model_fingerprint: encoder.embedder.fingerprint().to_owned(),
        dimensions: encoder.embedder.dimensions(),
        chunk_tokens: options
            .chunk_tokens
            .unwrap_or(ChunkTokens(ChunkSize::Target(corpus::DEFAULT_CHUNK_TOKENS)))
            .to_string(),
        chunker_version: CHUNKER_VERSION,
        header: options.header.unwrap_or(HeaderStyle::Structured).to_string(),
        language: options.language.unwrap_or_default().to_string(),
        vectors: match options.vectors.unwrap_or(Scalar::F32) {
            Scalar::F32 => "f32".to_owned(),
            Scalar::F16 => "f16".to_owned(),
        },
    };
    let Some(known) = known else { return Ok(asked) };
    let differs = |setting, collection: &str, requested: &str| match collection == requested {
        true => Ok(()),
        false => Err(Error::Mismatch { setting, collection: collection.to_owned(), requested: requested.to_owned() }),
    };
    if asked.model_fingerprint != known.model_fingerprint {
        return Err(Error::Mismatch { setting: "model", collection: named(known), requested: named(&asked) });
    }
    differs("chunker", &known.chunker_version.to_string(), &asked.chunker_version.to_string())?;
    if options.chunk_tokens.is_some() {
        differs("chunk-tokens", &known.chunk_tokens, &asked.chunk_tokens)?;
    }
    if options.header.is_some() {
        differs("header", &known.header, &asked.header)?;
    }
    if options.language.is_some() {
        differs("language", &known.language, &asked.language)?;
    }
    if options.vectors.is_some() {
        differs("vectors", &known.vectors, &asked.vectors)?;
    }
    Ok(known.clone())
}

fn named(config: &CollectionConfig) -> String {
    let short = config.model_fingerprint.get(..12).unwrap_or(&config.model_fingerprint);
    format!("{} (fingerprint {short})", config.model)
}

fn prepare_folder(fs: &dyn Fs, folder: &Path) -> Result<()> {
    const OURS: [&str; 7] =
        ["LOCK", manifest::CURRENT, "manifest.json.tmp", manifest::GENERATIONS, "segments", "deletes", "embeddings"];
    if folder.exists() {
        let names = fs.list(folder).at(folder)?;
        if names.iter().any(|name| !OURS.contains(&name.as_str())) {
            return Err(Error::NotACollection { path: folder.to_owned() });
        }
    }
    for name in [manifest::GENERATIONS, "segments", "deletes", "embeddings"] {
        let path = folder.join(name);
        fs.create_dir(&path).at(&path)?;
    }
    Ok(())
}

/// A label stands for one folder: in this call, and over the life of the collection (unless the folder has moved).
fn check_labels(known: Option<&Manifest>, roots: &[Root]) -> Result<()> {
    let mut labels: BTreeMap<&str, PathBuf> = known
        .map(|manifest| manifest.roots.iter().map(|(label, path)| (label.as_str(), path.clone())).collect())
        .unwrap_or_default();
    for root in roots {
        let given = absolute(&root.path);
        match labels.insert(&root.label, given.clone()) {
            Some(known) if known != given && known.exists() => {
                return Err(Error::LabelTaken { label: root.label.clone(), known, given });
            }
            _ => {}
        }
    }
    Ok(())
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn find(roots: &[Root], options: &ReadOptions, report: &mut IndexReport) -> Result<Vec<FoundFile>> {
    let mut files = Vec::new();
    for root in roots {
        let walk = corpus::walk(root, options)?;
        files.extend(walk.files);
        report
            .skipped
            .extend(walk.skipped.into_iter().map(|skipped| Issue { path: skipped.path, reason: skipped.reason }));
    }
    files.sort_by(|a, b| a.origin.cmp(&b.origin));
    Ok(files)
}

/// The chunker's view of the encoder's tokenizer.
pub(crate) struct EncoderTokens<'e>(pub(crate) &'e cento_embedder::Tokenizer);

impl Tokens for EncoderTokens<'_> {
    fn ends(&self, text: &str) -> Vec<usize> {
        self.0.ends(text)
    }
}

/// The chunker's configuration for an encoder: header and chunk share its window with the prompt and the special tokens.
pub(crate) fn chunk_config(config: &CollectionConfig, encoder: &Embedder) -> Result<ChunkConfig> {
    let n_prompt = encoder.tokenizer().count(encoder.prompt(Kind::Document));
    let window_tokens = encoder.max_tokens() - encoder.n_special() - n_prompt;
    Ok(ChunkConfig { size: config.chunk_size()?, window_tokens, header: config.header_style()? })
}

/// What [`index`] would make of one file or folder, document by document; nothing is embedded or written.
pub fn inspect(root: &Root, options: &IndexOptions) -> Result<Vec<Inspection>> {
    let encoder = load_encoder(None, options)?;
    let config = settle(None, options, &encoder)?;
    let chunking = chunk_config(&config, &encoder.embedder)?;
    let mut inspections = Vec::new();
    for file in corpus::walk(root, &options.read)?.files {
        for document in corpus::read(&file, &options.read)? {
            inspections.push(documents::inspect(&document?, &chunking, encoder.embedder.tokenizer()));
        }
    }
    Ok(inspections)
}

/// A document with its chunks and their headers, ready for its rows.
struct Prepared {
    document: Document,
    hash: [u8; 32],
    chunks: Vec<Chunk>,
    headers: Vec<String>,
}

/// A row whose vector is not known yet.
struct Pending {
    row: u32,
    key: cento_embedder::cache::Key,
    text: String,
}

struct Run<'a> {
    fs: &'a dyn Fs,
    folder: &'a Path,
    config: &'a CollectionConfig,
    chunking: ChunkConfig,
    encoder: &'a Embedder,
    snapshot: Option<&'a Snapshot>,
    ledger: Ledger,
    segment: SegmentWriter<'a>,
    segment_name: String,
    log: EmbeddingLog,
    pending: Vec<Pending>,
    progress: Progress,
}

impl<'a> Run<'a> {
    fn start(
        fs: &'a dyn Fs,
        folder: &'a Path,
        config: &'a CollectionConfig,
        encoder: &'a Embedder,
        snapshot: Option<&'a Snapshot>,
        report: IndexReport,
    ) -> Result<Self> {
        let generation = snapshot.map_or(0, |snapshot| snapshot.manifest.generation) + 1;
        let segment_name = format!("{generation}-0");
        let analyzer = Analyzer::new(config.language()?);
        Ok(Self {
            fs,
            folder,
            config,
            chunking: chunk_config(config, encoder)?,
            encoder,
            snapshot,
            ledger: Ledger::new(snapshot, report)?,
            segment: SegmentWriter::create(
                fs,
                &folder.join("segments").join(&segment_name),
                &analyzer,
                config.dimensions,
            )?,
            segment_name,
            log: EmbeddingLog::open(fs, &folder.join("embeddings"), config)?,
            pending: Vec::new(),
            progress: Progress::default(),
        })
    }

    fn read(&mut self, files: &[FoundFile], options: &ReadOptions, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        for file in files {
            let mut documents = match corpus::read(file, options) {
                Ok(documents) => documents,
                Err(error) => {
                    self.ledger.fail(file, &error);
                    continue;
                }
            };
            loop {
                let mut group = self.ledger.next_group(file, &mut documents, CHUNK_DOCUMENTS);
                self.progress.n_documents = self.ledger.n_documents();
                if group.is_empty() {
                    break;
                }
                self.add(&mut group, progress)?;
            }
            self.ledger.report.notes.extend(documents.notes());
            self.progress.n_bytes += file.n_bytes;
            progress(&self.progress);
        }
        self.embed(progress)
    }

    fn add(&mut self, group: &mut Vec<(Document, [u8; 32])>, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let (chunking, encoder) = (&self.chunking, self.encoder);
        let prepared: Vec<Prepared> =
            group.par_drain(..).map(|(document, hash)| prepare(document, hash, chunking, encoder)).collect();
        for prepared in &prepared {
            self.add_document(prepared)?;
            if self.pending.len() >= EMBED_TEXTS {
                self.embed(progress)?;
            }
        }
        progress(&self.progress);
        Ok(())
    }

    fn add_document(&mut self, prepared: &Prepared) -> Result<()> {
        let visible = prepared.chunks.iter().zip(&prepared.headers).enumerate().filter(|(_, (chunk, _))| !chunk.hidden);
        let chunks: Vec<_> =
            visible.map(|(index, (chunk, header))| NewChunk { index: index as u32, chunk, header }).collect();
        let new = NewDocument {
            document: &prepared.document,
            hash: prepared.hash,
            n_chunks: prepared.chunks.len() as u32,
            chunks,
        };
        let first_row = self.segment.push(&new)?;
        let window_tokens = self.chunking.window_tokens;
        for (n, new_chunk) in new.chunks.iter().enumerate() {
            let text = format!("{}{}", new_chunk.header, &prepared.document.text[new_chunk.chunk.span.clone()]);
            let row = first_row + n as u32;
            if matches!(self.chunking.size, ChunkSize::Document)
                && self.encoder.tokenizer().count(&text) > window_tokens
            {
                self.ledger.report.n_truncated += 1;
            }
            let key = cento_embedder::cache::key(
                self.encoder.fingerprint(),
                &self.encoder.bytes_embedded(&text, Kind::Document),
            );
            match self.log.find(&key)? {
                Some(logged) => {
                    self.segment.set_vector(row, &logged.vector);
                    self.ledger.report.n_tokens += u64::from(logged.n_tokens);
                    self.ledger.report.n_from_log += 1;
                }
                None => self.pending.push(Pending { row, key, text }),
            }
        }
        self.ledger.report.n_chunks += new.chunks.len() as u64;
        Ok(())
    }

    /// Embeds what is pending, logs it, and gives each row its vector. Equal texts are embedded once.
    fn embed(&mut self, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        for pending in std::mem::take(&mut self.pending).chunks(EMBED_TEXTS) {
            let mut first_with: HashMap<cento_embedder::cache::Key, usize> = HashMap::new();
            let mut texts = Vec::new();
            let mut keys = Vec::new();
            for one in pending {
                first_with.entry(one.key).or_insert_with(|| {
                    texts.push(one.text.clone());
                    keys.push(one.key);
                    texts.len() - 1
                });
            }
            let embeddings = self.encoder.embed(&texts, Kind::Document)?;
            self.log.append(&keys, &embeddings)?;
            for one in pending {
                let embedding = &embeddings[first_with[&one.key]];
                self.segment.set_vector(one.row, &embedding.vector);
                self.ledger.report.n_tokens += u64::from(embedding.n_tokens);
            }
            let n_tokens: u64 = embeddings.iter().map(|embedding| u64::from(embedding.n_tokens)).sum();
            self.ledger.report.n_tokens_embedded += n_tokens;
            self.progress.n_tokens += n_tokens;
            progress(&self.progress);
        }
        Ok(())
    }

    /// Tombstones what vanished, writes the segment and publishes the generation; does nothing if nothing changed.
    fn finish(
        mut self,
        roots: &[Root],
        graph_rows_min: usize,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<IndexReport> {
        self.ledger.tombstone_vanished(roots);
        let n_new = self.segment.n_documents();
        let segment_folder = self.folder.join("segments").join(&self.segment_name);
        if n_new == 0 && self.ledger.replaced.is_empty() {
            self.fs.remove_dir(&segment_folder).at(&segment_folder)?;
            let Some(snapshot) = self.snapshot else { return Err(self.ledger.nothing()) };
            self.ledger.report.generation = snapshot.manifest.generation;
            return Ok(self.ledger.report);
        }
        self.progress.stage = Stage::Writing;
        progress(&self.progress);
        let n_rows = self.segment.n_rows() as u64;
        let state = &mut self.progress;
        self.segment.finish(self.config.scalar()?, graph_rows_min, |n_done| {
            state.n_graph_rows = n_done as u64;
            progress(state);
        })?;
        let new_segment = NewSegment { name: self.segment_name, n_documents: n_new as u64, n_rows };
        let commit = Commit {
            config: self.config.clone(),
            roots: roots.iter().map(|root| (root.label.clone(), absolute(&root.path))).collect(),
            new_segment: Some(new_segment).filter(|segment| segment.n_documents > 0),
            deleted: self.ledger.replaced,
        };
        self.ledger.report.generation = commit.publish(self.fs, self.folder, self.snapshot)?;
        Ok(self.ledger.report)
    }
}

fn prepare(document: Document, hash: [u8; 32], chunking: &ChunkConfig, encoder: &Embedder) -> Prepared {
    let chunks = corpus::chunk(&document, chunking, &EncoderTokens(encoder.tokenizer()));
    let headers = chunks.iter().map(|chunk| corpus::header(&document, chunk, chunking.header)).collect();
    Prepared { document, hash, chunks, headers }
}
