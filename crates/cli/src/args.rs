//! The command line as users write it. Values are checked here one by one, and against each other in `options`.

use std::path::PathBuf;

use cento_engine::{ChunkTokens, DeviceChoice, Format, HeaderStyle, Language, Strategy, corpus};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Turns a corpus into citable context: index it, search it, and assemble, inside a hard token budget, the exact spans
/// that answer a question.
///
/// Results go to stdout, everything else to stderr. Every option can also be set by an environment variable (`--chunk-tokens` is
/// CENTO_CHUNK_TOKENS) or in a file `cento.toml`; the command line wins over the environment, that over the file.
///
/// Exit codes: 0 ok, 1 nothing found or a check failed, 2 usage, 3 data or index, 4 model or device, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "cento", version, max_term_width = 110, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Folder of the collection
    #[arg(long, global = true, value_name = "DIR", default_value = ".cento", help_heading = "Global options")]
    pub(crate) collection: PathBuf,
    /// Threads to use; 0 = one per core. Results do not depend on it
    #[arg(long, global = true, value_name = "N", default_value_t = 0, help_heading = "Global options")]
    pub(crate) threads: usize,
    /// Answer with one JSON object that carries a `version`
    #[arg(long, global = true, value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Global options")]
    pub(crate) json: bool,
    /// No progress, no remarks; results and errors only
    #[arg(long, short, global = true, value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Settings file; by default cento.toml in the current folder, if there is one
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Index files and folders; run again to bring the collection up to date
    Index(Index),
    /// Rank chunks for a query
    Search(Search),
    /// Assemble the cited context that answers a question, inside a token budget
    Context(Context),
    /// Rank documents for a batch of topics, as a TREC run
    Run(Run),
    /// Print a document, or the part of it that a citation names
    Get(Get),
    /// Remove documents from the collection
    Delete(Delete),
    /// Show the sections, chunks and token counts the indexer would make of a file
    Inspect(Inspect),
    /// Say what the collection holds
    Status,
    /// Verify every checksum and every invariant of the collection
    Doctor,
    /// Get and check encoders
    #[command(subcommand)]
    Model(Model),
    /// Show or check the settings
    #[command(subcommand)]
    Config(Config),
    /// Print the completion script of a shell
    Completions(Completions),
}

#[derive(Debug, Args)]
pub(crate) struct Index {
    /// Files and folders to index, or LABEL=PATH; the label, by default the folder's name, starts its documents' ids
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// auto, md, text, html, jsonl, csv or beir
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: corpus::Format,
    /// Encoder: the name of a model card or a sentence-transformers folder [default: the collection's, or all-minilm-l6-v2]
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    /// Header embedded with each chunk: structured, flat or none [default: the collection's, or structured]
    #[arg(long, value_name = "STYLE")]
    pub(crate) header: Option<HeaderStyle>,
    /// Tokens a chunk aims at, or `document` for one chunk a document [default: the collection's, or 128]
    #[arg(long, value_name = "N")]
    pub(crate) chunk_tokens: Option<ChunkTokens>,
    /// Language of stemming and stop words, or none [default: the collection's, or english]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) language: Option<Language>,
    /// Stored vectors: f32 or f16 [default: the collection's, or f32]
    #[arg(long, value_name = "TYPE")]
    pub(crate) vectors: Option<Vectors>,
    /// Segments of at least this many rows get an HNSW graph
    #[arg(long, value_name = "N", default_value_t = cento_engine::config::GRAPH_ROWS_MIN)]
    pub(crate) graph_rows_min: usize,
    /// Decode files that are not UTF-8 as well as possible instead of leaving them out
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) lossy: bool,
    /// Files larger than this are left out and reported
    #[arg(long, value_name = "BYTES", default_value_t = corpus::MAX_FILE_BYTES)]
    pub(crate) max_file_bytes: u64,
    #[command(flatten)]
    pub(crate) device: Device,
    /// Read and chunk, but embed and write nothing
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) dry_run: bool,
    /// Write the full report, file by file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Device {
    /// Where the encoder runs: auto, cpu, cuda:N or metal
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,
}

/// How a query finds its candidates.
#[derive(Debug, Clone, Args)]
pub(crate) struct Retrieval {
    /// Which arms answer
    #[arg(long, value_enum, default_value_t = Mode::Hybrid)]
    pub(crate) mode: Mode,
    /// How two rankings become one: reciprocal ranks, or scores normalised by minimum and maximum
    #[arg(long, value_enum, default_value_t = Fusion::Convex)]
    pub(crate) fusion: Fusion,
    /// Candidates an arm contributes; a constant, so that results never depend on -k
    #[arg(long, value_name = "N", default_value_t = cento_engine::CANDIDATE_DEPTH)]
    pub(crate) candidates: usize,
    /// Scan every vector, even where there is a graph
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), conflicts_with = "ann")]
    pub(crate) exact: bool,
    /// Use the graph where there is one
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) ann: bool,
    /// Another place of the collection's encoder
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) device: Device,
    /// Print to stderr where the time went
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) timings: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The question, in plain words; - reads it from stdin
    pub(crate) query: String,
    /// Results wanted
    #[arg(short, long = "k", value_name = "K", default_value_t = 10)]
    pub(crate) k: usize,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
    /// Leave out results with a lower score
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) min_score: Option<f64>,
    /// Show what every arm and every term contributed
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) explain: bool,
    /// table, json (one object) or jsonl (one hit a line)
    #[arg(long, value_enum, default_value_t = ResultFormat::Table)]
    pub(crate) format: ResultFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Context {
    /// The question, in plain words; - reads it from stdin
    pub(crate) query: String,
    /// Tokens the context may have, everything in it counted
    #[arg(long, value_name = "N")]
    pub(crate) budget: usize,
    /// How chunks are chosen: bubble (priors, section budgets, no redundancy) or flat (best first)
    #[arg(long, value_name = "NAME", default_value = "bubble")]
    pub(crate) strategy: Strategy,
    /// Policy file (TOML): priors, boosts, gates, section budgets
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Whose tokens: model (the encoder's), o200k, cl100k, or a tokenizer.json
    #[arg(long, value_name = "NAME|FILE", default_value = "o200k")]
    pub(crate) tokenizer: String,
    /// md, xml or json
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    pub(crate) format: Format,
    /// Write the decision on every candidate as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Topics: a JSONL file, a BEIR folder, or - for JSONL on stdin
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) topics: PathBuf,
    /// Documents wanted per topic
    #[arg(short, long = "k", value_name = "K", default_value_t = cento_engine::CANDIDATE_DEPTH)]
    pub(crate) k: usize,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
    /// The run file; - is stdout
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Last column of the run
    #[arg(long, value_name = "NAME", default_value = "cento")]
    pub(crate) tag: String,
    /// break: equal scores are set one float apart, so that trec_eval reads the order given; keep: they stay equal
    #[arg(long, value_enum, default_value_t = Ties::Break)]
    pub(crate) ties: Ties,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// DOC, DOC#chunk or DOC:from-to (bytes)
    pub(crate) citation: String,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Ids of documents
    #[arg(required = true, value_name = "DOC")]
    pub(crate) documents: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The file
    pub(crate) file: String,
    /// auto, md, text, html, jsonl, csv or beir
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: corpus::Format,
    /// Encoder whose tokens count
    #[arg(long, value_name = "NAME|DIR", default_value = cento_engine::DEFAULT_MODEL)]
    pub(crate) model: String,
    /// Header style: structured, flat or none
    #[arg(long, value_name = "STYLE", default_value = "structured")]
    pub(crate) header: HeaderStyle,
    /// Tokens a chunk aims at, or `document`
    #[arg(long, value_name = "N", default_value = "128")]
    pub(crate) chunk_tokens: ChunkTokens,
    /// Decode a file that is not UTF-8 as well as possible
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) lossy: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// Download an encoder (once; then it works offline)
    Pull {
        /// Name of a model card
        #[arg(default_value = cento_engine::DEFAULT_MODEL)]
        name: String,
    },
    /// List the model cards
    List,
    /// Check every file of a pulled encoder against its card
    Verify {
        /// Name of a model card
        #[arg(default_value = cento_engine::DEFAULT_MODEL)]
        name: String,
    },
    /// Show a model card
    Show {
        /// Name of a model card
        #[arg(default_value = cento_engine::DEFAULT_MODEL)]
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Every setting, its value, and where the value comes from
    Show,
    /// Check the settings file
    Check,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// bash, elvish, fish, powershell or zsh
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Mode {
    Hybrid,
    Dense,
    Lexical,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Fusion {
    Rrf,
    Convex,
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

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Vectors {
    F32,
    F16,
}
