//! Replay: a context's trace with all that is needed to assemble it again, and what differs when that is done.
//!
//! A trace is one JSON file (`docs/trace.schema.json`). It holds settings and decisions, never a text of the
//! collection, but the names and statements that a repair of `seal` read, and what an endpoint or a reranker answered:
//! a replay takes the latter from the trace and asks nobody. Numbers are compared
//! as JSON gives them back: reading a figure may be off by a unit in the last place, but always by the same. The policy
//! is kept as TOML too, from which every number comes back exactly.

use std::path::Path;

use cento_assembly::trace::{Decision, Reason};
use cento_assembly::{Citation, Context, Policy, Trace};
use serde::{Deserialize, Serialize};

use crate::context::endpoint::Endpoint;
use crate::context::request::ContextSettings;
use crate::context::tokens::BudgetTokenizer;
use crate::error::{AtPath, Error, Result};
use crate::retrieve::missing::MissingShard;
use crate::retrieve::quoted::{Phrases, Quoted};
use crate::retrieve::request::{ChunkSearch, Explain, Fusion, Links, Mode, Weights};
use crate::retrieve::rerank::reading::Reranking;
use crate::retrieve::searcher::Searcher;
use crate::source::filter::Filter;
use crate::source::seam::Scan;
use cento_collection::format::config::{CollectionConfig, VectorColumn};
use cento_collection::fs::read_bounded;

/// Version of the trace file; 1 and 2 were traces of the assembly alone.
pub const TRACE_FILE_VERSION: u32 = 3;

/// The version of an excerpt, which no reader of traces takes.
pub const EXCERPT_VERSION: u32 = 0;

/// The JSON schema of the trace file, draft 2020-12.
pub const TRACE_SCHEMA: &str = include_str!("../../../../docs/trace.schema.json");

/// The largest trace that is read: a hundred thousand candidates have a tenth of it.
pub(crate) const TRACE_BYTES_MAX: u64 = 1 << 29;

/// Ids that are offered for one that is not in a trace.
const NEAREST: usize = 3;

/// The request, the collection, the decisions, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextTrace {
    /// [`TRACE_FILE_VERSION`].
    pub version: u32,
    /// Version of Cento.
    pub cento: String,
    /// The answering collection.
    pub collection: TracedCollection,
    /// Settings of the search. The query is in `assembly`.
    pub search: TracedSearch,
    /// The policy as TOML.
    pub policy: String,
    /// The delivery.
    pub delivered: Delivered,
    /// Every decision.
    pub assembly: Trace,
}

/// The collection behind a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TracedCollection {
    /// Its folder, as it was given.
    pub folder: String,
    /// Its generation.
    pub generation: u64,
    /// Checksum of the generation's manifest: another collection has another one.
    pub checksum: String,
    /// Settings of every row.
    pub config: CollectionConfig,
    /// Shards that did not answer: the context is of the others alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingShard>,
}

/// The settings of a search, see [`ChunkSearch`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TracedSearch {
    /// Candidates each arm contributes.
    pub candidates: usize,
    /// The retrievers that run.
    pub mode: Mode,
    /// The way the arms are fused.
    pub fusion: Fusion,
    /// The links that lift documents; none in traces of before.
    #[serde(default = "Links::none")]
    pub links: Links,
    /// The constants of BM25, and its weight beside vectors; the default ones where it is absent.
    #[serde(default, skip_serializing_if = "Weights::is_default")]
    pub weights: Weights,
    /// The weight of phrases in quotation marks; absent where a question quotes nothing, and in traces of before, which
    /// took all quotations for words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrases: Option<Phrases>,
    /// The way vectors are scanned.
    pub scan: Scan,
    /// Width of the beam that walks a graph.
    pub ef: usize,
    /// Vectors that find documents, if asked for.
    pub find: Option<VectorColumn>,
    /// Vectors that score chunks inside a document, if asked for.
    pub score: Option<VectorColumn>,
    /// Ids of the documents that may answer; none for all.
    pub scope: Option<Vec<String>>,
    /// The filter as it was written, if there was one.
    pub filter: Option<String>,
}

/// A context's delivery, text left aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivered {
    /// Tokens that the budget counts.
    pub n_tokens: usize,
    /// Bytes of the text.
    pub n_bytes: usize,
    /// BLAKE3 of the text, in hex.
    pub blake3: String,
    /// The text's citations.
    pub citations: Vec<Citation>,
}

/// A trace without most of its rejected candidates, to look at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceExcerpt {
    /// The trace, of version [`EXCERPT_VERSION`]: nothing can be followed by it.
    #[serde(flatten)]
    pub trace: ContextTrace,
    /// All rejected candidates, counted.
    pub rejected: Vec<Rejected>,
}

/// The number of candidates that were rejected for a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// The reason.
    pub reason: Reason,
    /// Candidates.
    pub n: usize,
}

impl ContextTrace {
    /// The trace of a context that `searcher` assembled.
    pub fn new(
        searcher: &Searcher,
        search: &ChunkSearch,
        request: &ContextSettings<'_>,
        context: &Context,
    ) -> Result<Self> {
        let manifest = searcher.manifest();
        let quotes = std::iter::once(&search.query)
            .chain(request.queries)
            .any(|question| !Quoted::read(question, &searcher.analyzer).phrases.is_empty());
        let policy = toml::to_string(request.policy).map_err(|error| Error::Setting {
            setting: "policy",
            value: String::new(),
            reason: format!("cannot be written as TOML: {error}"),
        })?;
        Ok(Self {
            version: TRACE_FILE_VERSION,
            cento: env!("CARGO_PKG_VERSION").to_owned(),
            collection: TracedCollection {
                folder: searcher.folder().display().to_string(),
                generation: manifest.generation,
                checksum: manifest.checksum(),
                config: manifest.config.clone(),
                missing: searcher.missing().to_vec(),
            },
            search: TracedSearch {
                candidates: search.candidates,
                mode: search.mode,
                fusion: search.fusion,
                links: search.links,
                weights: search.weights,
                phrases: quotes.then_some(search.phrases),
                scan: search.scan,
                ef: search.ef,
                find: search.find,
                score: search.score,
                scope: search.scope.clone(),
                filter: search.filter.as_ref().map(|filter| filter.as_str().to_owned()),
            },
            policy,
            delivered: Delivered {
                n_tokens: context.n_tokens,
                n_bytes: context.text.len(),
                blake3: blake3::hash(context.text.as_bytes()).to_hex().to_string(),
                citations: context.citations.clone(),
            },
            assembly: context.trace.clone(),
        })
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::TraceVersion`] for one of another version; [`Error::Trace`] for what is none, with line
    /// and column.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_bounded(path, TRACE_BYTES_MAX).at(path)?;
        let none = |error: serde_json::Error| Error::Trace { path: path.to_owned(), reason: error.to_string() };
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(none)?;
        if value.get("collection").is_none() && value.get("request").is_some() {
            let reason = "it is of candidates that were given, and asks no collection".to_owned();
            return Err(Error::Trace { path: path.to_owned(), reason });
        }
        let (own, found) = (u64::from(TRACE_FILE_VERSION), value["version"].as_u64());
        let is_older = |found: u64| found < own && value.get("records").is_some();
        if let Some(found) = found.filter(|&found| found > own || is_older(found)) {
            return Err(Error::TraceVersion { path: path.to_owned(), found, supported: own });
        }
        serde_json::from_slice(&bytes).map_err(none)
    }

    /// The trace with at most so many rejected candidates, the first of the walk, and the number of all.
    #[must_use]
    pub fn excerpt(mut self, rejected_max: usize) -> TraceExcerpt {
        let (mut rejected, mut n) = (Vec::<Rejected>::new(), 0);
        self.assembly.records.retain(|record| {
            if record.final_decision == Decision::Selected {
                return true;
            }
            n += 1;
            match rejected.iter_mut().find(|of| of.reason == record.final_reason) {
                Some(of) => of.n += 1,
                None => rejected.push(Rejected { reason: record.final_reason, n: 1 }),
            }
            n <= rejected_max
        });
        self.version = EXCERPT_VERSION;
        TraceExcerpt { trace: self, rejected }
    }

    /// The trace as its file holds it.
    pub fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self).expect("a trace is always JSON");
        json.push(b'\n');
        json
    }

    /// The settings of the context, without a language model.
    pub(crate) fn context_settings<'a>(
        &'a self,
        tokenizer: &'a BudgetTokenizer<'a>,
        policy: &'a Policy,
    ) -> ContextSettings<'a> {
        let config = &self.assembly.config;
        ContextSettings {
            strategy: config.strategy,
            format: config.format,
            order: config.order,
            marks: config.marks,
            queries: &config.queries,
            include: &config.include,
            exclude: &config.exclude,
            ..ContextSettings::new(config.budget_tokens, tokenizer, policy)
        }
    }

    /// The search that found the candidates.
    ///
    /// # Errors
    /// [`Error::Filter`] for a filter that is none, [`Error::Setting`] and others for what no request may ask for: a
    /// trace is a file that anybody can write. [`Error::PartTraced`] for one of a part of a collection: no other part
    /// is the same.
    pub fn search(&self) -> Result<ChunkSearch> {
        if !self.collection.missing.is_empty() {
            let missing = self.collection.missing.iter().map(|missing| missing.shard.clone()).collect();
            return Err(Error::PartTraced { missing });
        }
        let search = &self.search;
        let request = ChunkSearch {
            candidates: search.candidates,
            mode: search.mode,
            fusion: search.fusion,
            links: search.links,
            weights: search.weights,
            phrases: search.phrases.unwrap_or(Phrases::Words),
            scan: search.scan,
            ef: search.ef,
            find: search.find,
            score: search.score,
            scope: search.scope.clone(),
            filter: search.filter.as_deref().map(Filter::parse).transpose()?,
            rerank: self.assembly.manifest.rerank.as_ref().map(Reranking::recorded),
            explain: Explain::Arms,
            k: 1,
            ..ChunkSearch::new(self.assembly.query.clone())
        };
        request.check()?;
        Ok(request)
    }

    /// The policy that was followed.
    pub fn policy(&self) -> Result<Policy> {
        Ok(Policy::parse(&self.policy)?)
    }

    /// The endpoint that was asked, if one was, answering from the trace.
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.assembly.manifest.endpoint.as_ref().map(Endpoint::recorded)
    }

    /// Why a chunk was delivered or not; of a document, why each of its chunks that was a candidate, in the order of
    /// the trace.
    ///
    /// # Errors
    /// [`Error::NotTraced`] for an id that is neither, with the nearest.
    pub fn why(&self, id: &str) -> Result<Vec<cento_assembly::Why>> {
        decisions(&self.assembly, id)
    }

    /// The same trace as a reader of its file has it.
    pub(crate) fn reread(&self) -> Self {
        serde_json::from_slice(&self.json()).expect("what was written can be read")
    }
}

/// Why a chunk of an assembly was delivered or not; of a document, each of its chunks.
///
/// # Errors
/// [`Error::NotTraced`] for an id that is neither, with the nearest.
pub(crate) fn decisions(assembly: &Trace, id: &str) -> Result<Vec<cento_assembly::Why>> {
    let records = || assembly.records.iter();
    let named: Vec<_> = match records().find(|record| record.chunk_id == id) {
        Some(record) => vec![record],
        None => records().filter(|record| record.document == id).collect(),
    };
    if named.is_empty() {
        let mut known: Vec<&str> = records().map(|record| record.chunk_id.as_str()).collect();
        known.sort_by_cached_key(|known| (strsim::levenshtein(known, id), (*known).to_owned()));
        let nearest = known.into_iter().take(NEAREST).map(str::to_owned).collect();
        return Err(Error::NotTraced { id: id.to_owned(), nearest });
    }
    Ok(named.into_iter().map(|record| cento_assembly::Why::of(assembly, record)).collect())
}
