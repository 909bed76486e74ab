//! Cento's engine: a folder of files becomes a collection; a collection answers with rankings and with contexts.
//!
//! Two verbs make a collection ([`index`], [`delete`]), one opens it ([`Searcher::open`]), two ask it
//! ([`Searcher::search`], [`Searcher::context`]).
//!
//! ```
//! use cento_engine::{IndexOptions, OsFs, Policy, Root, SearchRequest, Searcher, SearcherOptions};
//! use cento_engine::{BudgetTokenizer, ContextRequest, Strategy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let work = tempfile::tempdir()?;
//! # let corpus = work.path().join("notes");
//! # std::fs::create_dir(&corpus)?;
//! # std::fs::write(corpus.join("tides.md"), "# Tides\n\nThe tide rises twice a day.\n\n## Causes\n\nThe moon pulls the sea.\n")?;
//! # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny");
//! # let collection = work.path().join("collection");
//! let options = IndexOptions { model: Some(model.to_owned()), ..IndexOptions::default() };
//! let report = cento_engine::index(&collection, &[Root::parse(corpus.to_str().unwrap())?], &options, &OsFs, &mut |_| {})?;
//! assert_eq!(report.n_added, 1);
//!
//! let searcher = Searcher::open(&collection, SearcherOptions::default())?;
//! let response = searcher.search(&SearchRequest::new("what moves the sea"))?;
//! assert_eq!(response.hits[0].document, "notes/tides.md");
//!
//! let (tokenizer, policy) = (BudgetTokenizer::named("o200k")?, Policy::default());
//! let context = searcher.context(&SearchRequest::new("what moves the sea"), &ContextRequest {
//!     strategy: Strategy::Bubble,
//!     ..ContextRequest::new(200, &tokenizer, &policy)
//! })?;
//! assert!(context.n_tokens <= 200 && context.text.contains("moon"));
//! # Ok(())
//! # }
//! ```

mod error;

pub mod config;
mod fs;
mod lock;
mod health;
mod calibration;
mod losses;
mod manifest;

mod table;
mod text;
mod segment;
mod deletes;
mod cache;
mod embeddings;

mod ingest;
mod commit;
mod pins;
mod snapshots;
mod garbage;
mod compact;
mod repair;

mod embed;

mod scan;
mod searcher;
mod filter;
mod scope;
mod target;
mod retrieve;
mod dense;
mod run;
mod candidates;
mod gaps;
mod context;
mod resolved;
mod seal;
mod endpoint;
mod tokens;
mod replay;
mod differences;
mod why_not;
mod priors;

mod probe;
mod collection;
mod selection;
mod doctor;
mod documents;

pub mod model;

#[cfg(test)]
mod tests;

pub use cento_assembly::fuse;
pub use cento_assembly::learned;
pub use cento_assembly::pipeline::Stated;
pub use cento_assembly::seal::{Budget as SealBudget, Outcome as SealOutcome, SealConfig};
pub use cento_assembly::{
    Anchor, Citation, Context, Curve, Evidence, Extent, Format, Order, Pipeline, Policy, Strategy, Why, explain, trace,
};
pub use cento_corpus as corpus;
pub use cento_corpus::{HeaderStyle, ReadOptions, Root};
pub use cento_embedder as embedder;
pub use cento_embedder::{DeviceChoice, Precision};
pub use cento_lexical::{Explanation, Language};
pub use cento_vector::Scalar;

pub use cache::{CACHE_BYTES_MAX, CacheOptions, CachePrune, CachePruned, CacheStatus, CachedModel};
pub use cache::{prune as prune_cache, status as cache_status};
pub use collection::{SegmentStatus, Status, status};
pub use compact::{CompactOptions, CompactReport, Merge, compact};
pub use config::{CANDIDATE_DEPTH, ChunkTokens, CollectionConfig, LateReading, Pooling, VectorColumn};
pub use context::{ContextRequest, ContextTimings, Pool};
pub use dense::VectorsUsed;
pub use differences::{Decided, Difference, TraceComparison};
pub use doctor::{Check, Diagnosis, SegmentDiagnosis, doctor};
pub use documents::{Deleted, Excerpt, InspectedChunk, InspectedSection, Inspection, delete, delete_selected};
pub use embed::{EmbedInput, EmbedOptions, EmbedProgress, EmbedReport, Manifest as EmbedManifest};
pub use embed::{ManifestInput, OutputType, TooLong, embed};
pub use endpoint::{Endpoint, EndpointOptions};
pub use error::{Error, Result};
pub use filter::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, Filter, FilterError, Place};
pub use fs::{File, Fs, OsFs};
pub use health::GraphHealth;
pub use ingest::{IndexOptions, IndexReport, Issue, Progress, Stage, dry_run, index, inspect};
pub use losses::{Loss, LostDocument};
pub use manifest::{FORMAT, Manifest, SegmentEntry};
pub use model::DEFAULT_MODEL;
pub use priors::{Gold, JudgedQuestion, LearnedLabel, LearnedPriors, PriorQuestions};
pub use probe::{Nearest, RowId};
pub use repair::{RepairOptions, RepairReport, RepairedSegment, repair};
pub use replay::{ContextTrace, Delivered, TRACE_FILE_VERSION, TRACE_SCHEMA, TracedCollection, TracedSearch};
pub use retrieve::{Explain, Fusion, Hit, LEXICAL_WEIGHT, Mode, Scan, SearchRequest, SearchResponse, Timings};
pub use run::{DocumentRanking, RunQuery, RunRequest};
pub use scan::{ScanBench, ScanBenchRequest, bench_scan};
pub use scope::Filtered;
pub use seal::{Retrieval, Sealed};
pub use searcher::{Searcher, SearcherOptions};
pub use segment::FieldType;
pub use selection::{FieldSummary, ListedDocument, Selection};
pub use snapshots::{At, NamedGeneration, create_snapshot, remove_snapshot, snapshots};
pub use tokens::BudgetTokenizer;
pub use why_not::{Standing, WhereLost, WhyNot};

/// An error with its causes on one line, as users see it.
pub fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
