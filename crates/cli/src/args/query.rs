//! Options of the commands that ask a collection.

use std::path::PathBuf;

use cento_engine::api::{Budget, DEFAULT_RERANK_DEPTH, DEFAULT_RESULTS, DEFAULT_TOKENIZER};
use cento_engine::{DeviceChoice, Format, Marks, Order, Strategy, VectorColumn, Weights};
use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
pub(crate) struct Device {
    /// Where the encoder runs: auto, cpu, gpu (Vulkan or Metal: the first), gpu:N (`cento devices` lists them), cuda:N
    /// or metal
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,
}

/// Which generation of the collection answers.
#[derive(Debug, Clone, Args)]
pub(crate) struct At {
    /// Open an earlier generation, if it is still there [default: the last one]
    #[arg(long, value_name = "N", conflicts_with = "snapshot")]
    pub(crate) generation: Option<u64>,
    /// Open the generation that a snapshot names
    #[arg(long, value_name = "NAME")]
    pub(crate) snapshot: Option<String>,
}

/// Servers that are asked in place of a collection in a folder.
#[derive(Debug, Clone, Args)]
pub(crate) struct Shards {
    /// Ask a collection that lies on servers of Cento, each with a part, in place of one in a folder (repeatable, or
    /// with commas between): http://host:port, with ?collection=NAME behind it where a server has several. Servers that
    /// have the same part stand in one place, with | between: one answers where another does not, or is late. Their key
    /// is taken from CENTO_SHARD_KEY alone
    #[arg(long = "shards", value_name = "URL", value_delimiter = ',', conflicts_with_all = ["generation", "snapshot"], help_heading = SHARDS)]
    pub(crate) urls: Vec<String>,
    /// Do without servers that do not answer when the command begins, and say which; otherwise that is an error
    #[arg(long, requires = "urls", value_parser = clap::builder::BoolishValueParser::new(), help_heading = SHARDS)]
    pub(crate) allow_partial: bool,
}

const SHARDS: &str = "A collection on other servers";

/// How a query finds its candidates.
#[derive(Debug, Clone, Args)]
pub(crate) struct Retrieval {
    /// Which retrievers run
    #[arg(long, value_enum, default_value_t = Mode::Hybrid)]
    pub(crate) mode: Mode,
    /// How two rankings become one: rrf adds reciprocal ranks; convex adds min-max scores, half and half; adaptive adds
    /// min-max scores, weighed for each query by how far the best hits of a retriever stand out
    #[arg(long, value_enum, default_value_t = Fusion::Adaptive)]
    pub(crate) fusion: Fusion,
    /// The weight of words beside vectors in --fusion adaptive, before their contrasts: at 0 vectors alone rank
    #[arg(long, value_name = "W", default_value_t = cento_engine::LEXICAL_WEIGHT, allow_negative_numbers = true)]
    pub(crate) lexical_weight: f64,
    /// The slowness with which a repeated word saturates in BM25, from 0 (at once)
    #[arg(long, value_name = "K1", default_value_t = Weights::default().k1, allow_negative_numbers = true)]
    pub(crate) k1: f64,
    /// The discount of longer texts in BM25: 0 not at all, 1 in full
    #[arg(long, value_name = "B", default_value_t = Weights::default().b, allow_negative_numbers = true)]
    pub(crate) b: f64,
    /// The meaning of "a quoted phrase": required (what answers has it word by word), words, or auto (required among
    /// key words, words in a sentence: where a stop word stands beside it, or a question mark behind)
    #[arg(long, value_enum, default_value_t = Phrases::Auto)]
    pub(crate) phrases: Phrases,
    /// Links that lift documents where both retrievers run: named (a document whose title stands in the text of one of
    /// the best three climbs towards it, or that its code imports), authored (one that a link of those three leads to:
    /// Markdown, HTML, wiki, import …), all (both), or none
    #[arg(long, value_enum, default_value_t = Links::Named)]
    pub(crate) links: Links,
    /// How many candidates each retriever contributes; a constant, so that results never depend on -k
    #[arg(long, value_name = "N", default_value_t = cento_engine::CANDIDATE_DEPTH)]
    pub(crate) candidates: usize,
    /// Scan every vector, even where there is a graph
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), conflicts_with = "ann")]
    pub(crate) exact: bool,
    /// Use the graph where there is one
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) ann: bool,
    /// Which vectors find documents: plain or late [default: the collection's; plain where it has both]
    #[arg(long, value_name = "KIND")]
    pub(crate) find_vectors: Option<VectorColumn>,
    /// Which vectors score chunks inside a document: plain or late [default: the collection's; late where it has both]
    #[arg(long, value_name = "KIND")]
    pub(crate) score_vectors: Option<VectorColumn>,
    /// Answer from these documents only (ids, repeatable); applied before anything is ranked
    #[arg(long, value_name = "DOC")]
    pub(crate) within: Vec<String>,
    /// Answer from documents of which this holds, or their chunks: 'type = "pdf" and year >= 2020 and page <= 12';
    /// applied before anything is ranked. `cento fields` lists the fields, `cento list --help` says how filters are
    /// written
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Load the collection's encoder from another place: a card, a folder, or openai:NAME@URL
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) device: Device,
    #[command(flatten)]
    pub(crate) at: At,
    /// Print on stderr where the time went
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) timings: bool,
}

/// A model that reads the best candidates again.
#[derive(Debug, Args)]
pub(crate) struct Rerank {
    /// Have the best candidates read again, each together with the question, and ordered by what this model says: a
    /// reranker that was pulled, a folder with a cross-encoder, or rerank:NAME@URL for the model NAME of a server with
    /// /v1/rerank (rerank:bge@http://localhost:8181/v1). A key is taken from CENTO_RERANK_KEY alone
    #[arg(long, value_name = "MODEL", help_heading = RERANKING)]
    pub(crate) rerank: Option<String>,
    /// The number of best candidates that are read; they stand before all others
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RERANK_DEPTH, help_heading = RERANKING)]
    pub(crate) rerank_depth: usize,
}

/// The time that a model may read.
#[derive(Debug, Args)]
pub(crate) struct RerankTime {
    /// Stop reading after so many seconds; what was not read stands behind what was, and a warning says how much that
    /// is [default: all is read]
    #[arg(long, value_name = "SECONDS", requires = "rerank", allow_negative_numbers = true, help_heading = RERANKING)]
    pub(crate) rerank_seconds: Option<f64>,
}

const RERANKING: &str = "Reranking";

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The question, in plain words; - reads it from stdin
    #[arg(required_unless_present = "vector")]
    pub(crate) query: Option<String>,
    /// Search for these vectors in place of the question's, or with no question: a JSON list, .npy, .fvecs, or bare
    /// 32-bit floats, little-endian; - reads stdin. Of several, each is answered: with --json or --format jsonl an
    /// answer a line
    #[arg(long, value_name = "FILE")]
    pub(crate) vector: Option<PathBuf>,
    /// How many results you want
    #[arg(short, long = "k", value_name = "K", default_value_t = DEFAULT_RESULTS)]
    pub(crate) k: usize,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
    #[command(flatten)]
    pub(crate) shards: Shards,
    /// How wide the beam is that walks a graph: wider is better and slower; at least --candidates, which is the default
    #[arg(long, value_name = "N", conflicts_with = "exact")]
    pub(crate) ef: Option<usize>,
    /// Leave out results of a lower likelihood, 0 to 1: how likely a passage answers, on one scale for all questions,
    /// which the score is not; .5 is where contexts take a collection to have no answer. Needs --mode hybrid or dense
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) min_score: Option<f64>,
    #[command(flatten)]
    pub(crate) rerank: Rerank,
    #[command(flatten)]
    pub(crate) rerank_time: RerankTime,
    /// Show what every retriever and every term contributed
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) explain: bool,
    /// How results are written: table, json (one object) or jsonl (one hit a line)
    #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Context {
    /// The question, in plain words; - reads it from stdin
    pub(crate) query: String,
    /// A further question of the same context (repeatable), for --strategy rse: each chooses segments by its own
    /// ranking, in turn
    #[arg(long = "query", value_name = "TEXT")]
    pub(crate) queries: Vec<String>,
    /// Tokens the context may have, everything in it counted; auto, or auto:N, for as many as pay, of 4000 or N at
    /// most: up to the knee of --budget-curve [default: the policy file's, or 2000]
    #[arg(long, value_name = "N|auto")]
    pub(crate) budget: Option<Budget>,
    /// Instead of a context, what contexts of every budget up to this one are worth
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) budget_curve: bool,
    /// How chunks are chosen: cento (the segments worth most within the budget, with a bound), flat (best first), mmr,
    /// adaptive, bubble (priors, section budgets, no redundancy), rse, rse-kadane, rse-exact (relevant segments),
    /// window, parent, automerge (small to big), seal (repaired at a fixed size) [default: cento]
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<Strategy>,
    /// Policy file: priors, boosts, gates, section budgets, settings of the strategies (TOML); or the configuration of
    /// a small-to-big pipeline (.yaml, .yml), which names the strategy and the budget too
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Which tokenizer counts: model (the encoder's), o200k, cl100k, or a tokenizer.json
    #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT_TOKENIZER)]
    pub(crate) tokenizer: String,
    /// How the context is written: md, xml or json
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    pub(crate) format: Format,
    /// How the pieces are ordered: document (documents by their best chunk, pieces as they stand there), score (best
    /// first) or edges (the best at the beginning and the end)
    #[arg(long, value_name = "ORDER", default_value_t)]
    pub(crate) order: Order,
    /// Marks around the texts: lean (a number, title and heading for each source, … for what is left out) or
    /// full (a line with document, headings and bytes for each piece)
    #[arg(long, value_name = "MARKS", default_value_t)]
    pub(crate) marks: Marks,
    /// Deliver this chunk (DOCUMENT#NUMBER), or all of a document, whatever else is delivered (repeatable)
    #[arg(long, value_name = "ID")]
    pub(crate) include: Vec<String>,
    /// Do not deliver this chunk, or anything of a document (repeatable)
    #[arg(long, value_name = "ID")]
    pub(crate) exclude: Vec<String>,
    /// Write the decision on every candidate as JSON, with all that `cento replay` needs to do the same again
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Say on stderr why each passage is in the context and what kept out the next best; of seal every loop: what was
    /// known, what was missing, what was asked, who replaced whom on which scores
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) endpoint: Endpoint,
    #[command(flatten)]
    pub(crate) rerank: Rerank,
    #[command(flatten)]
    pub(crate) rerank_time: RerankTime,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
    #[command(flatten)]
    pub(crate) shards: Shards,
    /// How wide the beam is that walks a graph: wider is better and slower; at least --candidates, which is the default
    #[arg(long, value_name = "N", conflicts_with = "exact")]
    pub(crate) ef: Option<usize>,
}

/// A language model that reads beside the patterns of the strategy seal.
#[derive(Debug, Args)]
pub(crate) struct Endpoint {
    /// OpenAI-compatible address whose model reads passages and judges whether they are enough, beside the patterns of
    /// the strategy seal: http://localhost:8000/v1. What its passages do not say is dropped. A key is taken from
    /// CENTO_ENDPOINT_KEY alone
    #[arg(long, value_name = "URL", help_heading = ENDPOINT)]
    pub(crate) endpoint: Option<String>,
    /// The name of the model there
    #[arg(long, value_name = "NAME", help_heading = ENDPOINT)]
    pub(crate) endpoint_model: Option<String>,
    /// How long one call may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = ENDPOINT)]
    pub(crate) endpoint_timeout: u64,
    /// Where a call fails, finish this answer with the patterns alone, and say so in the trace [default: an error]
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), help_heading = ENDPOINT)]
    pub(crate) endpoint_fallback: bool,
}

const ENDPOINT: &str = "Endpoint of the strategy seal";

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The questions: JSONL or `id <tab> text`, a BEIR folder, a folder of questions with excerpts, or - for stdin
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) topics: PathBuf,
    /// The vectors that are searched for, a row for each topic, in place of those of their texts: .npy, .fvecs, a JSON
    /// list, or bare 32-bit floats
    #[arg(long, value_name = "FILE", conflicts_with = "contexts")]
    pub(crate) topic_vectors: Option<PathBuf>,
    /// How many documents each topic gets
    #[arg(short, long = "k", value_name = "K", default_value_t = cento_engine::CANDIDATE_DEPTH)]
    pub(crate) k: usize,
    #[command(flatten)]
    pub(crate) rerank: Rerank,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
    #[command(flatten)]
    pub(crate) shards: Shards,
    /// How wide the beam is that walks a graph: wider is better and slower; at least --candidates, which is the default
    #[arg(long, value_name = "N", conflicts_with = "exact")]
    pub(crate) ef: Option<usize>,
    /// The score of a document by words: BM25 of all its text (document), or the mean of that and of BM25 of its best
    /// chunk (mean)
    #[arg(long, value_enum, default_value_t = LexicalScore::Document)]
    pub(crate) lexical_score: LexicalScore,
    /// The most that a title which the topic names adds to a document's score by words; .3 helps where titles are names
    #[arg(long, value_name = "W", default_value_t = cento_engine::TITLE_WEIGHT_DEFAULT, allow_negative_numbers = true)]
    pub(crate) title_weight: f64,
    /// Leave out a document whose id is the topic's (ArguAna, Quora)
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) remove_query: bool,
    /// Write the run to this file; - is stdout
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// What the last column of the run says
    #[arg(long, value_name = "NAME", default_value = "cento")]
    pub(crate) tag: String,
    /// What becomes of equal scores: break sets them one float apart, so that trec_eval reads the order given; keep
    /// leaves them equal
    #[arg(long, value_enum, default_value_t = Ties::Break)]
    pub(crate) ties: Ties,
    #[command(flatten)]
    pub(crate) contexts: Contexts,
}

/// Options that say nothing without `--contexts`.
pub(crate) const OF_CONTEXTS: [&str; 5] = ["budget", "strategy", "label", "policy", "tokenizer"];

/// The contexts of a batch of topics.
#[derive(Debug, Args)]
pub(crate) struct Contexts {
    /// Assemble contexts too, one JSON object a line: for each topic one of every strategy and budget
    #[arg(long, value_name = "FILE", help_heading = "Contexts")]
    pub(crate) contexts: Option<PathBuf>,
    /// The budgets, separated by commas: tokens; auto, or auto:N, for as many as pay for each topic, as in
    /// `cento context --help`; contexts need one unless the policy file says it
    #[arg(long, value_name = "N|auto,…", value_delimiter = ',', help_heading = "Contexts")]
    pub(crate) budget: Vec<Budget>,
    /// The strategies, separated by commas [default: cento]; `cento context --help` says what each does
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Contexts")]
    pub(crate) strategy: Vec<Strategy>,
    /// Beside every context, what `flat` makes of as many tokens as it has, labelled `flat=STRATEGY`: the comparison
    /// that is fair to a strategy that leaves some of the budget
    #[arg(long, requires = "contexts", value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Contexts")]
    pub(crate) matched: bool,
    /// Label the contexts with this instead of their strategy; takes one strategy
    #[arg(long, value_name = "LABEL", help_heading = "Contexts")]
    pub(crate) label: Option<String>,
    /// Policy file (TOML), or the configuration of a small-to-big pipeline (.yaml, .yml)
    #[arg(long, value_name = "FILE", help_heading = "Contexts")]
    pub(crate) policy: Option<PathBuf>,
    /// Which tokenizer counts: model (the encoder's), o200k, cl100k, or a tokenizer.json
    #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT_TOKENIZER, help_heading = "Contexts")]
    pub(crate) tokenizer: String,
    /// Marks around the texts: lean or full, as in `cento context --help`
    #[arg(long, value_name = "MARKS", default_value_t, help_heading = "Contexts")]
    pub(crate) marks: Marks,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    Hybrid,
    Dense,
    Lexical,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Phrases {
    Auto,
    Required,
    Words,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LexicalScore {
    Document,
    Mean,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Links {
    Named,
    Authored,
    All,
    None,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Fusion {
    Rrf,
    Convex,
    Adaptive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultFormat {
    Table,
    Json,
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ties {
    Break,
    Keep,
}
