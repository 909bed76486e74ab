//! Context: the cited context that answers a question, inside its budget.

use std::ops::Range;

use cento_assembly::trace::{Certificate, Outcome, Support};
use cento_assembly::{Citation, Context, Curve, Error as AssemblyError, Format, Marks, Order, Policy, Strategy};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::budget::Budget;
use super::parse::Request;
use super::rerank::Rerank;
use super::search::{SearchRequest, is_auto};
use super::version::VERSION;
use crate::context::endpoint::Endpoint;
use crate::context::pool::Pool;
use crate::context::request::ContextSettings;
use crate::context::tokens::BudgetTokenizer;
use crate::error::Result;
use crate::limits::{self, BUDGET_TOKENS_MAX};
use crate::retrieve::missing::{MissingShard, Needed};
use crate::retrieve::quoted::Phrases;
use crate::retrieve::request::{ChunkSearch, Fusion, Links, Mode, Weights};
use crate::retrieve::rerank::reading::RerankedBy;
use crate::retrieve::scope::Filtered;
use crate::retrieve::searcher::Searcher;
use crate::source::seam::Scan;
use cento_collection::format::config::{CANDIDATE_DEPTH, VectorColumn};

/// Whose tokens a budget counts, unless asked otherwise.
pub const DEFAULT_TOKENIZER: &str = "o200k";

/// Budgets at which a curve solves the whole problem, evenly spread, beside the knee.
pub const CURVE_SOLVED: usize = 10;

/// A question that a context answers. Every field but the query may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["query"]))]
pub struct ContextRequest {
    /// The question, in plain words.
    pub query: String,
    /// Further questions of the same context, for the strategy `rse`: each chooses segments by its own ranking, in
    /// turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<String>,
    /// Tokens that the context may have, everything in it counted.
    pub budget: Budget,
    /// The way chunks are chosen.
    pub strategy: Strategy,
    /// Priors, boosts, gates, section budgets, settings of the strategies: the keys of a policy file.
    #[serde(deserialize_with = "inline")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub policy: Policy,
    /// Whose tokens: `model` (the encoder's), `o200k`, `cl100k`, or another that the service knows by name.
    pub tokenizer: String,
    /// The format of the context.
    pub format: Format,
    /// The order of its pieces.
    pub order: Order,
    /// The marks around its pieces.
    pub marks: Marks,
    /// Ids of chunks, or of documents, that are delivered whatever else is.
    pub include: Vec<String>,
    /// Ids of chunks, or of documents, that are not delivered.
    pub exclude: Vec<String>,
    /// Candidates that each retriever contributes.
    pub candidates: usize,
    /// The retrievers that run.
    pub mode: Mode,
    /// The way their rankings are fused.
    pub fusion: Fusion,
    /// The constants of BM25, and its weight beside vectors.
    #[serde(skip_serializing_if = "Weights::is_default")]
    pub weights: Weights,
    /// The links of the best documents that lift others, where both retrievers run.
    pub links: Links,
    /// The weight of phrases in quotation marks.
    #[serde(skip_serializing_if = "is_auto")]
    pub phrases: Phrases,
    /// The way vectors are scanned.
    pub scan: Scan,
    /// Width of the beam that walks a graph, at least `candidates`, which is the default.
    pub ef: Option<usize>,
    /// Vectors that find documents, of a collection with both kinds.
    pub find_vectors: Option<VectorColumn>,
    /// Vectors that score chunks inside a document, of a collection with both kinds.
    pub score_vectors: Option<VectorColumn>,
    /// Ids of the documents that may answer; all, if there is none.
    pub within: Vec<String>,
    /// A filter that documents, or their chunks, must pass, as `type = "pdf" and year >= 2020 and page <= 12`.
    pub filter: Option<String>,
    /// The model that reads the best candidates again; none: the ranking stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<Rerank>,
    /// Of a collection on several servers, leave out those that do not answer when the request begins, and say in
    /// `missing` which; otherwise that is an error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_partial: bool,
}

/// Reads a policy as its file is read, ranges and all.
pub(super) fn inline<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Policy, D::Error> {
    let table = toml::Table::deserialize(deserializer)?;
    let text = toml::to_string(&table).map_err(serde::de::Error::custom)?;
    Policy::parse(&text).map_err(|error| match error {
        AssemblyError::AtLine { error, .. } => serde::de::Error::custom(error), // of a text that nobody wrote
        error => serde::de::Error::custom(error),
    })
}

impl Default for ContextRequest {
    fn default() -> Self {
        Self {
            query: String::new(),
            queries: Vec::new(),
            budget: Budget::default(),
            strategy: Strategy::default(),
            policy: Policy::default(),
            tokenizer: DEFAULT_TOKENIZER.to_owned(),
            format: Format::default(),
            order: Order::default(),
            marks: Marks::default(),
            include: Vec::new(),
            exclude: Vec::new(),
            candidates: CANDIDATE_DEPTH,
            mode: Mode::default(),
            fusion: Fusion::default(),
            weights: Weights::default(),
            links: Links::default(),
            phrases: Phrases::default(),
            scan: Scan::default(),
            ef: None,
            find_vectors: None,
            score_vectors: None,
            within: Vec::new(),
            filter: None,
            rerank: None,
            allow_partial: false,
        }
    }
}

impl ContextRequest {
    /// The context of a question, by every default.
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }

    /// The search that finds the candidates.
    #[must_use]
    pub fn search(&self) -> SearchRequest {
        SearchRequest {
            query: self.query.clone(),
            vector: None,
            k: 1, // a context takes all candidates
            candidates: self.candidates,
            mode: self.mode,
            fusion: self.fusion,
            weights: self.weights,
            links: self.links,
            phrases: self.phrases,
            scan: self.scan,
            ef: self.ef,
            find_vectors: self.find_vectors,
            score_vectors: self.score_vectors,
            within: self.within.clone(),
            filter: self.filter.clone(),
            min_score: None,
            rerank: self.rerank.clone(),
            explain: false,
            allow_partial: self.allow_partial,
        }
    }

    /// The shards that it cannot do without.
    #[must_use]
    pub fn needed(&self) -> Needed {
        if self.allow_partial { Needed::Any } else { Needed::All }
    }

    /// The requirements that a context must meet, with the most tokens that the budget allows.
    #[must_use]
    pub fn resolve<'a>(
        &'a self,
        tokenizer: &'a BudgetTokenizer<'a>,
        endpoint: Option<&'a Endpoint>,
    ) -> ContextSettings<'a> {
        ContextSettings {
            budget_tokens: self.budget.most(),
            tokenizer,
            strategy: self.strategy,
            policy: &self.policy,
            format: self.format,
            order: self.order,
            marks: self.marks,
            queries: &self.queries,
            include: &self.include,
            exclude: &self.exclude,
            endpoint,
        }
    }
}

impl Request for ContextRequest {
    fn check(&self) -> Result<()> {
        self.search().check()?;
        limits::within("budget", self.budget.most(), 0, BUDGET_TOKENS_MAX)?;
        limits::queries("queries", &self.queries)?;
        limits::ids("include", &self.include)?;
        limits::ids("exclude", &self.exclude)
    }
}

/// A context and what it cites.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ContextAnswer {
    /// Format of this answer.
    pub version: u32,
    /// The question as given.
    pub query: String,
    /// The text that the budget counts.
    pub context: String,
    /// Its tokens.
    pub n_tokens: usize,
    /// The tokens it may have.
    pub budget_tokens: usize,
    /// Whose tokens.
    pub tokenizer: String,
    /// The filter, and how many documents passed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filtered>,
    /// Generation of the collection.
    pub generation: u64,
    /// Fingerprint of the encoder.
    pub model_fingerprint: String,
    /// The model that read the best candidates again, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankedBy>,
    /// Shards that did not answer, where the request allowed it: all else is of a part of the collection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingShard>,
    /// One for each piece, in order.
    pub citations: Vec<Cited>,
    /// The outcome that the context states: `whole`, `cut`, `nothing_relevant` or `nothing_fits`.
    pub outcome: Outcome,
    /// The nearness of the choice to the best; none where the strategy knows no bound.
    pub certificate: Option<Certificate>,
    /// The support that the collection gives an answer; none where that cannot be told.
    pub support: Option<Support>,
    /// Warnings to whoever asks.
    pub warnings: Vec<String>,
}

/// A citation, for readers who count bytes and for those who count characters.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cited {
    /// The citation, in bytes.
    #[serde(flatten)]
    pub citation: Citation,
    /// The same in Unicode characters of the document's text.
    pub characters: Range<u64>,
}

impl ContextAnswer {
    /// The answer that a context of a pool is.
    ///
    /// # Errors
    /// Those of reading the cited documents.
    pub fn new(searcher: &Searcher, search: &ChunkSearch, pool: &Pool<'_>, context: &Context) -> Result<Self> {
        let (manifest, made) = (searcher.manifest(), &context.trace.manifest);
        let characters = pool.characters_of(&context.citations)?;
        let cited = |(citation, characters): (&Citation, Range<u64>)| Cited { citation: citation.clone(), characters };
        Ok(Self {
            version: VERSION,
            query: search.query.clone(),
            context: context.counted().to_owned(),
            n_tokens: context.n_tokens,
            budget_tokens: context.budget_tokens,
            tokenizer: context.tokenizer.clone(),
            filter: search.filter.as_ref().map(|filter| searcher.filtered(filter)).transpose()?,
            generation: manifest.generation,
            model_fingerprint: manifest.config.model_fingerprint.clone(),
            rerank: made.rerank.as_ref().map(RerankedBy::of),
            missing: searcher.missing().to_vec(),
            citations: context.citations.iter().zip(characters).map(cited).collect(),
            outcome: made.outcome,
            certificate: made.certificate.clone(),
            support: made.support.clone(),
            warnings: [searcher.warnings(), searcher.warnings_of_missing(), context.trace.warnings.clone()].concat(),
        })
    }
}

/// The worth of contexts of every budget.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CurveAnswer {
    /// Format of this answer.
    pub version: u32,
    /// The largest budget.
    pub budget_tokens: usize,
    /// Whose tokens.
    pub tokenizer: String,
    /// Shards that did not answer, where the request allowed it: the values are those of a part of the collection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingShard>,
    /// Value against tokens.
    #[serde(flatten)]
    pub curve: Curve,
}
