//! Options of the commands that judge runs and contexts, and measure this machine.

use std::path::PathBuf;

use cento_engine::Strategy;
use cento_engine::api::DEFAULT_TOKENIZER;
use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::embed::{BenchDevice, BenchEmbed, BenchScan};
use super::finite::finite;
use super::query::{LexicalScore, Retrieval};

/// Measures that `eval` and `compare` show unless told.
const MEASURES: [&str; 5] = ["nDCG@10", "R@100", "AP", "RR@10", "Judged@10"];

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Judgements: TREC qrels, BEIR tsv, or a BEIR folder
    pub(crate) qrels: PathBuf,
    /// Runs: TREC, MS MARCO or mteb predictions; - is stdin
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) judging: Judging,
    /// Show every query
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) per_query: bool,
    /// Fail (exit code 1) where a run is below this, as nDCG@10=.66; repeatable
    #[arg(long, value_name = "MEASURE=X")]
    pub(crate) min: Vec<String>,
    /// Show the difference from an earlier answer of `cento eval --json`
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Fail (exit code 1) where a run is below the baseline by more than the tolerance
    #[arg(long, requires = "baseline", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) fail_on_regression: bool,
    /// How far below the baseline --fail-on-regression lets a run be
    #[arg(long, value_name = "X", default_value_t = 0.0005, value_parser = finite)]
    pub(crate) tolerance: f64,
}

/// How runs are judged.
#[derive(Debug, Args)]
pub(crate) struct Judging {
    /// Measures by the names of ir_measures: nDCG@10, R@100, P@5, P(rel=2)@10, AP, RR@10, Success@5, Judged@10;
    /// repeatable, or separated by commas
    #[arg(short, long = "measure", value_name = "MEASURE", value_delimiter = ',', default_values = MEASURES)]
    pub(crate) measure: Vec<String>,
    /// Judged queries without results count as 0, as in trec_eval -c; this is the default
    #[arg(long, overrides_with = "retrieved_only", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) complete: bool,
    /// Average over the queries with results only, as pytrec_eval and BEIR do
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) retrieved_only: bool,
    /// Drop a document whose id is the query's before judging (ArguAna, Quora)
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) remove_query: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalContext {
    /// Questions: a folder with questions.jsonl and docs, or a BEIR folder (qrels, facts.jsonl or rationales.jsonl)
    pub(crate) questions: PathBuf,
    /// Contexts, as `cento run --contexts` writes them; - is stdin
    #[arg(required = true, value_name = "CONTEXTS")]
    pub(crate) contexts: Vec<PathBuf>,
    /// Show these figures only, separated by commas; a figure is shown where the questions have what it needs
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) figures: Vec<String>,
    /// The k of title_precision@k and the like, separated by commas
    #[arg(long, value_name = "K,…", value_delimiter = ',', default_values_t = cento_eval::context::DOCUMENT_CUTOFFS)]
    pub(crate) cutoffs: Vec<usize>,
    /// With --json: the figures of every question too
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) per_query: bool,
    /// Average over the questions with a context only
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) retrieved_only: bool,
    /// Encoder whose tokenizer counted, where the contexts say `model:…` and its name is no card or folder here
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EvalAnswers {
    /// Questions with answers: JSONL (id, question, answer or answers), or a folder as `cento eval-context` takes it
    pub(crate) questions: PathBuf,
    /// Contexts, as `cento run --contexts` writes them; - is stdin
    #[arg(required = true, value_name = "CONTEXTS")]
    pub(crate) contexts: Vec<PathBuf>,
    /// Show these figures only, separated by commas; a figure is shown where the questions have what it needs
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) figures: Vec<String>,
    /// With --json: the figures of every question too, for `cento compare`
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) per_query: bool,
    /// Average over the questions with a context only
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) retrieved_only: bool,
    /// Encoder whose tokenizer counted, where the contexts say `model:…` and its name is no card or folder here
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    /// Where every call is written (prompt, answer, verdict, time, tokens), readable by you alone. What it has is not
    /// asked again; without --endpoint all answers are taken from it, and nobody is asked
    #[arg(long, value_name = "FILE", help_heading = JUDGE)]
    pub(crate) record: Option<PathBuf>,
    /// OpenAI-compatible address of the model that answers and judges: http://localhost:8000/v1. Questions, contexts
    /// and gold answers are sent there. A key is taken from CENTO_ENDPOINT_KEY alone
    #[arg(long, value_name = "URL", help_heading = JUDGE)]
    pub(crate) endpoint: Option<String>,
    /// The name of the model that answers
    #[arg(long, value_name = "NAME", help_heading = JUDGE)]
    pub(crate) endpoint_model: Option<String>,
    /// The name of the model that judges [default: the model that answers]
    #[arg(long, value_name = "NAME", help_heading = JUDGE)]
    pub(crate) judge_model: Option<String>,
    /// The time that one call may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = JUDGE)]
    pub(crate) endpoint_timeout: u64,
    /// The seed of the model; a second and third attempt at an answer that cannot be read have the next ones
    #[arg(long, value_name = "N", default_value_t = cento_engine::ENDPOINT_SEED, help_heading = JUDGE)]
    pub(crate) seed: u32,
    /// The number of calls under way at a time; figures do not depend on it
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = RangedU64ValueParser::<usize>::new().range(1..=64), help_heading = JUDGE)]
    pub(crate) at_once: usize,
}

const JUDGE: &str = "Reader and judge";

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// What the others are compared with: a run (with --qrels), or what `eval`, `eval-context` or `eval-answers` wrote
    /// with --per-query --json
    pub(crate) a: PathBuf,
    /// The evaluations to compare with it
    #[arg(required = true, value_name = "B")]
    pub(crate) b: Vec<PathBuf>,
    /// The judgements of the runs
    #[arg(long, value_name = "QRELS")]
    pub(crate) qrels: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) judging: Judging,
    /// Of evaluations with several strategies those to take, A's first, then B's: cento compare X.json X.json
    /// --strategy flat,cento
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "qrels")]
    pub(crate) strategy: Vec<String>,
    /// How many resamples the bootstrap draws
    #[arg(long, value_name = "N", default_value_t = cento_eval::compare::Bootstrap::default().n_resamples)]
    pub(crate) resamples: usize,
    /// The seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = cento_eval::compare::Bootstrap::default().seed)]
    pub(crate) seed: u64,
    /// Show every query, those that changed most first
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) per_query: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("questions").required(true).args(["topics", "sentences"])))]
pub(crate) struct Priors {
    /// Judged questions: a folder of questions with excerpts, or a BEIR folder; with --qrels topics as `cento run`
    /// takes them
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) topics: Option<PathBuf>,
    /// Judgements of the topics, of documents or of chunks (DOCUMENT#NUMBER): TREC qrels, BEIR tsv, or a BEIR folder
    #[arg(long, value_name = "FILE|DIR", requires = "topics")]
    pub(crate) qrels: Option<PathBuf>,
    /// Without judged questions: so many sentences of the collection, evenly spread, are looked for in other documents
    #[arg(long, value_name = "N", conflicts_with = "qrels")]
    pub(crate) sentences: Option<usize>,
    /// Whose policy it is: cento, which multiplies by e^prior, or bubble, which adds a share of the best candidate's
    /// relevance
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) strategy: Strategy,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
}

#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// Judged questions: a BEIR folder; with --qrels topics as `cento run` takes them
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) topics: PathBuf,
    /// Judgements of the topics: TREC qrels, BEIR tsv, or a BEIR folder
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) qrels: Option<PathBuf>,
    /// The measure that chooses, by the names of ir_measures
    #[arg(short, long, value_name = "MEASURE", default_value = "nDCG@10")]
    pub(crate) measure: String,
    /// The number of parts that the questions are dealt into; each is ranked with what the others choose
    #[arg(long, value_name = "N", default_value_t = cento_eval::tune::FOLDS)]
    pub(crate) folds: usize,
    /// The seed of the parts and of the bootstrap
    #[arg(long, value_name = "N", default_value_t = cento_eval::compare::SEED)]
    pub(crate) seed: u64,
    /// Write the settings to this file; - is stdout
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// The score of a document by words that is in force, document or mean, as in `cento run --help`
    #[arg(long, value_enum, default_value_t = LexicalScore::Document)]
    pub(crate) lexical_score: LexicalScore,
    /// The weight of titles that is in force, as in `cento run --help`
    #[arg(long, value_name = "W", default_value_t = cento_engine::TITLE_WEIGHT_DEFAULT, allow_negative_numbers = true)]
    pub(crate) title_weight: f64,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
}

#[derive(Debug, Args)]
pub(crate) struct Fuse {
    /// The runs to fuse
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// rrf: reciprocal ranks; convex: normalised scores; adaptive: min-max scores, weighed for each query by how far a
    /// run's best hits stand out
    #[arg(long, value_enum, default_value_t = FuseMethod::Rrf)]
    pub(crate) method: FuseMethod,
    /// The weight of each run, separated by commas [default: equal]
    #[arg(long, value_name = "W,…", value_delimiter = ',', value_parser = finite)]
    pub(crate) weights: Vec<f64>,
    /// The rank constant of rrf
    #[arg(long, value_name = "K", default_value_t = cento_engine::fuse::DEFAULT_RRF_K, value_parser = finite)]
    pub(crate) rrf_k: f64,
    /// How convex brings scores to one scale
    #[arg(long, value_enum, default_value_t = Normalize::MinMax)]
    pub(crate) normalize: Normalize,
    /// Least score of each run's scorer, for --normalize theoretical-min: -1 for a cosine, 0 for BM25
    #[arg(long, value_name = "X,…", value_delimiter = ',', allow_hyphen_values = true, value_parser = finite)]
    pub(crate) minima: Vec<f64>,
    /// How many ranks adaptive compares a run's best hit with
    #[arg(long, value_name = "N", default_value_t = cento_engine::fuse::DEFAULT_CONTRAST_DEPTH)]
    pub(crate) contrast_depth: usize,
    /// How many results of each run count
    #[arg(long, value_name = "N", default_value_t = cento_engine::CANDIDATE_DEPTH)]
    pub(crate) depth: usize,
    /// How many documents each topic gets
    #[arg(short, long = "k", value_name = "K", default_value_t = cento_engine::CANDIDATE_DEPTH)]
    pub(crate) k: usize,
    /// Write the run to this file; - is stdout
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// What the last column of the run says
    #[arg(long, value_name = "NAME", default_value = "cento-fuse")]
    pub(crate) tag: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FuseMethod {
    Rrf,
    Convex,
    Adaptive,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Normalize {
    MinMax,
    ZScore,
    TheoreticalMin,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure one query after another: p50, p95, p99 by stage, queries a second
    Latency(BenchTarget),
    /// Tokens a second of the encoder over the collection's own texts, queries a second of all threads together
    Throughput(BenchTarget),
    /// Tokens and texts a second of an encoder alone, and the time of one short query; wants no collection
    Embed(BenchEmbed),
    /// Hold a device to the CPU in every precision, and measure how fast it is: one file to send on; wants no
    /// collection
    Device(BenchDevice),
    /// Time of the exact scan of random rows on a device, and whether it finds what the CPU finds; wants no collection
    Scan(BenchScan),
    /// Time from what was found to what is delivered, by strategy: finding what stands beside it, and assembling
    Contexts(BenchContexts),
    /// Measure recall and speed of the graph against the exact scan
    Recall {
        #[command(flatten)]
        target: BenchTarget,
        /// Search widths, separated by commas
        #[arg(long, value_name = "EF,…", value_delimiter = ',', default_values_t = [10, 20, 40, 80, 160, 320])]
        ef: Vec<usize>,
    },
}

/// Contexts that are timed.
#[derive(Debug, Args)]
pub(crate) struct BenchContexts {
    #[command(flatten)]
    pub(crate) target: BenchTarget,
    /// The strategies, separated by commas [default: cento]; `cento context --help` says what each does
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) strategy: Vec<Strategy>,
    /// Tokens a context may have
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) budget: usize,
    /// Policy file (TOML), or the configuration of a small-to-big pipeline (.yaml, .yml)
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// The tokenizer that counts: model (the encoder's), o200k, cl100k, or a tokenizer.json
    #[arg(long, value_name = "NAME|FILE", default_value = DEFAULT_TOKENIZER)]
    pub(crate) tokenizer: String,
}

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct BenchTarget {
    /// Queries: topics as `cento run` takes them [default: the beginnings of the collection's own chunks]
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) topics: Option<PathBuf>,
    /// Take at most this many queries
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) n_queries: usize,
    /// How many results each query gets
    #[arg(short, long = "k", value_name = "K", default_value_t = 10)]
    pub(crate) k: usize,
    #[command(flatten)]
    pub(crate) retrieval: Retrieval,
}
