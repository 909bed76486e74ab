//! Cento's engine: a folder of files becomes a collection; a collection answers with rankings and with contexts.
//!
//! [`index`] makes a collection; a [`Service`] opens it by its name and answers the requests of [`api`], from any
//! number of threads.
//!
//! ```
//! use cento_engine::{Cancel, IndexOptions, OsFs, Root, Service, ServiceOptions, Strategy, api};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let work = tempfile::tempdir()?;
//! # let corpus = work.path().join("notes");
//! # std::fs::create_dir(&corpus)?;
//! # let tides = "# Tides\n\nThe tide rises twice a day.\n\n## Causes\n\nThe moon pulls the sea.\n";
//! # std::fs::write(corpus.join("tides.md"), tides)?;
//! # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny");
//! # let collection = work.path().join("collection");
//! let options = IndexOptions { model: Some(model.to_owned()), ..IndexOptions::default() };
//! let roots = [Root::parse(corpus.to_str().unwrap())?];
//! let report = cento_engine::index(&collection, &roots, &options, &OsFs, &mut |_| {})?;
//! assert_eq!(report.n_added, 1);
//!
//! let collections = [("notes".to_owned(), collection)].into();
//! let service = Service::new(ServiceOptions { collections, ..ServiceOptions::default() })?;
//! let request: api::SearchRequest = api::parse(br#"{"query": "what moves the sea", "k": 3}"#)?;
//! let answer = service.search("notes", &request, &Cancel::default())?;
//! assert_eq!(answer.hits[0].document, "notes/tides.md");
//!
//! let context = service.context("notes", &api::ContextRequest {
//!     budget: api::Budget::Tokens(200),
//!     strategy: Strategy::Bubble,
//!     ..api::ContextRequest::new("what moves the sea")
//! }, &Cancel::default())?;
//! assert!(context.n_tokens <= 200 && context.context.contains("moon"));
//! # Ok(())
//! # }
//! ```
//!
//! Below the service stands [`Searcher`], one open collection, for programs that measure or that need another
//! generation.

mod cancel;
mod error;

mod bpe;
mod encoder;
mod limits;
mod line;
mod plural;
mod remembered;

mod source;

mod ingest;
mod embed;

mod retrieve;
mod context;
mod explain;

pub mod api;
mod service;

#[cfg(test)]
mod tests;

pub use cento_assembly::fuse;
pub use cento_assembly::learned;
pub use cento_assembly::pipeline::Stated;
pub use cento_assembly::seal::{self, Budget as SealBudget, Outcome as SealOutcome, SealConfig};
pub use cento_assembly::{
    Anchor, Citation, Context, Curve, Evidence, Extent, Format, Marks, Order, Pipeline, Policy, RERANK, Strategy, Why,
    explain as reasons, trace,
};
pub use cento_corpus as corpus;
pub use cento_corpus::guard::{Confinement, Guard};
pub use cento_corpus::{Commands, Gives, HeaderStyle, Passwords, ReadCommand, ReadOptions, Root};
pub use cento_embedder as embedder;
pub use cento_embedder::{Adapter, DeviceChoice, Devices, Precision, THREADS_MAX, devices};
pub use cento_lexical::{Explanation, Language};
pub use cento_models as model;
pub use cento_models::DEFAULT_MODEL;
pub use cento_vector::Scalar;

pub use api::AssembledTrace;
pub use cancel::Cancel;
pub use cento_collection::care::doctor::{Check, Diagnosis, SegmentDiagnosis, doctor};
pub use cento_collection::care::repair::{Losses, RepairReport, RepairedSegment};
pub use cento_collection::care::status::{ReplicaStatus, SegmentStatus, ShardStatus, Status, status};
pub use cento_collection::format::config::{
    self, CANDIDATE_DEPTH, ChunkTokens, CollectionConfig, Distance, GivenVectors, LateReading, Pooling, VectorColumn,
};
pub use cento_collection::format::files::{FileReport, Suspicion};
pub use cento_collection::format::graph_health::GraphHealth;
pub use cento_collection::format::losses::{Loss, LostDocument, Stale};
pub use cento_collection::format::manifest::{FORMAT, Manifest, SegmentEntry};
pub use cento_collection::format::metadata::FieldType;
pub use cento_collection::fs::{File, Fs, OsFs, Replacement, read_bounded, take_bounded};
pub use cento_collection::keep::reports::{FileReports, file_reports};
pub use cento_collection::keep::snapshots::{At, NamedGeneration, RemovedSnapshot, UnreadSnapshot};
pub use cento_collection::keep::snapshots::{create_snapshot, remove_snapshot, snapshots, unread_snapshots};
pub use cento_collection::write::adopt::{AdoptReport, adopt};
pub use cento_collection::write::compact::{CompactOptions, CompactReport, Copied, Merge};
pub use cento_collection::write::memory::MEMORY_BYTES_MIN;
pub use cento_collection::{Error as CollectionError, describe};
pub use context::endpoint::{Completion, Endpoint, EndpointOptions, Form, Prompt, SEED as ENDPOINT_SEED};
pub use context::given::{Given, GivenChunk};
pub use context::pool::{ContextTimings, Pool};
pub use context::priors::{Gold, JudgedQuestion, LearnedLabel, LearnedPriors, PriorQuestions};
pub use context::request::ContextSettings;
pub use context::seal::{Retrieval, Sealed};
pub use context::tokens::{BudgetTokenizer, decode_tokens};
pub use embed::{ArrowReport, EmbedInput, EmbedOptions, EmbedProgress, EmbedReport, FileLines};
pub use embed::{Manifest as EmbedManifest, ManifestInput, OutputType, TooLong, embed, embed_arrow};
pub use encoder::{ENCODER_TOKENIZER, ENCODER_WINDOW, Encoder, EncoderAccess, EncoderKey, EndpointSettings};
pub use encoder::{Estimate, Tokens, is_at_endpoint, look};
pub use error::{Error, Result};
pub use explain::differences::{Decided, Difference, TraceComparison};
pub use explain::replay::Replayed;
pub use explain::trace::{
    ContextTrace, Delivered, EXCERPT_VERSION, Rejected, TRACE_FILE_VERSION, TRACE_SCHEMA, TraceExcerpt,
    TracedCollection, TracedSearch,
};
pub use explain::undo::{Change, Moved, RUNS_MAX, Sought, Undone};
pub use explain::why::WhyChunk;
pub use explain::why_not::{Standing, WhereLost, WhyNot};
pub use ingest::cache::{CACHE_BYTES_MAX, CacheOptions, CachePrune, CachePruned, CacheStatus, CachedModel};
pub use ingest::cache::{prune as prune_cache, status as cache_status};
pub use ingest::contexts::{Answered, ContextCounts, ContextWriter};
pub use ingest::delete::{Deleted, delete, delete_selected};
pub use ingest::given::{GivenOptions, Lengths, bare_vectors, index_vectors, open_vectors, read_vectors};
pub use ingest::inspect::{InspectedChunk, InspectedSection, Inspection};
pub use ingest::repair::{Missing, RepairOptions, repair};
pub use ingest::writer::add::{HANDED_OVER, add, add_file};
pub use ingest::writer::create::create;
pub use ingest::{FilePart, IndexOptions, IndexReport, Issue, Progress, Removals, Stage, compact, compact_unless};
pub use ingest::{dry_run, index, inspect};
pub use line::Reach;
pub use plural::{counted, plural};
pub use retrieve::dense::{NeighborSearch, VectorNeighbors, VectorsUsed};
pub use retrieve::documents::CitedPlace;
pub use retrieve::likelihood::NO_LIKELIHOODS;
pub use retrieve::links::{DocumentLinks, IncomingLink, LinkedSection, OutgoingLink};
pub use retrieve::missing::{MissingShard, Needed};
pub use retrieve::probe::{Nearest, RowId};
pub use retrieve::quoted::Phrases;
pub use retrieve::request::{ChunkSearch, Explain, Fusion, LEXICAL_WEIGHT, Links, Mode, Weights};
pub use retrieve::rerank::reading::{RerankedBy, Reranking};
pub use retrieve::rerank::reranker::{Reranker, RerankerOptions};
pub use retrieve::rules::known::NamedBy;
pub use retrieve::rules::titles::TITLE_WEIGHT_DEFAULT;
pub use retrieve::run::{DocumentRanking, RankSettings, RunQuery, RunRequest};
pub use retrieve::scope::{Filtered, NOT_REQUIRED, Required};
pub use retrieve::search::{Hit, SearchResponse, Timings};
pub use retrieve::searcher::{Names, Searcher, SearcherOptions};
pub use retrieve::selection::{FieldOf, FieldSummary};
pub use service::assembled::Assembled;
pub use service::encoding::Embeddings;
pub use service::roots::Writing;
pub use service::shards::{SHARD_KEY, SHARD_ROUTE, SHARD_TIMEOUT, ShardOptions, ShardPlaces};
pub use service::{Asked, Service, ServiceOptions, Which};
pub use source::device_scan::bench::{ScanBench, ScanBenchRequest, bench_scan};
pub use source::documents::{DocumentSection, Excerpt, ListedDocument};
pub use source::filter::{
    FIELDS_NAMED_MAX, FILTER_BYTES_MAX, FILTER_DEPTH_MAX, FILTER_PLACES_MAX, Filter, FilterError, Place,
};
pub use source::seam::{LexicalScore, Scan};
pub use source::selected::Selection;
