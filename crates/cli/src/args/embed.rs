//! Options of `cento embed` and `cento bench embed`.

use std::path::PathBuf;
use std::str::FromStr;

use cento_engine::{FilePart, OutputType, Precision};
use clap::{Args, ValueEnum};

use super::cache::CachePlace;
use super::collection::Vectors;
use super::encoder::Elsewhere;
use super::finite::finite;
use super::query::Device;

/// What `cento embed` takes.
#[derive(Debug, Args)]
pub(crate) struct Embed {
    /// JSONL file, a BEIR folder (its corpus, or with --kind query its queries), or - for stdin
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// Write the matrix to this file, which ends in .npy
    #[arg(long, short, value_name = "OUT.npy", required_unless_present = "arrow")]
    pub(crate) output: Option<PathBuf>,
    /// IN is an Arrow IPC stream of texts (- for stdin), and stdout gets it back with the columns vector, n_tokens and
    /// truncated: for Python, Ray and Spark
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), conflicts_with_all = ["output", "part", "restart"])]
    pub(crate) arrow: bool,
    /// The column of an Arrow stream that holds the texts [default: text, contents or body, behind title]
    #[arg(long, value_name = "NAME", requires = "arrow")]
    pub(crate) text_column: Option<String>,
    /// Embed part I of N alone, 1/N to N/N, of a file's lines: parts of about as many bytes, which are the file one
    /// behind the other. For arrays of jobs: each writes a matrix of its own
    #[arg(long, value_name = "I/N", visible_alias = "shard")]
    pub(crate) part: Option<FilePart>,
    /// What the texts are, which decides the model's prompt
    #[arg(long, value_enum, default_value_t = TextKind::Document)]
    pub(crate) kind: TextKind,
    /// The encoder: the name of a model card, a sentence-transformers folder, or openai:NAME@URL, an OpenAI-compatible
    /// endpoint whose key is taken from CENTO_ENCODER_KEY alone
    #[arg(long, value_name = "NAME|DIR", default_value = cento_engine::DEFAULT_MODEL)]
    pub(crate) model: String,
    /// Put this prompt before the queries instead, by its name in the model's folder: instruction models have one a
    /// task; with --kind query [default: query]
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) elsewhere: Elsewhere,
    #[command(flatten)]
    pub(crate) device: Device,
    /// Number type the encoder computes in: f32, the reference; bf16 (f16 on a GPU) or, on the CPU, int8, which are
    /// faster and close to it
    #[arg(long, value_name = "TYPE", default_value_t = Precision::F32)]
    pub(crate) precision: Precision,
    /// Keep the first N dimensions, made unit length again; for models trained so (Matryoshka) [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) dimensions: Option<usize>,
    /// The number type of the matrix: f32, f16, int8, uint8, binary or ubinary; the last four as sentence-transformers
    /// quantises
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) output_type: OutputType,
    /// The ranges of int8 and uint8: the OUT.ranges.npy of another run, or any float32 array of 2 x dimensions
    /// [default: those of the texts themselves, in a second pass]
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) ranges: Option<PathBuf>,
    /// How many tokens of a text are read, prompt and special tokens counted [default: the model's window]
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
    /// What to do with a longer text: truncate, and say so in its line of ids; or end with an error that names it
    #[arg(long, value_enum, default_value_t = TooLong::Truncate)]
    pub(crate) too_long: TooLong,
    /// Forget what an interrupted run left, and make a result anew that is there already
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) restart: bool,
    /// Take vectors from the embedding cache where it has them, and keep new ones there; always so with an encoder at
    /// an endpoint
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Embedding cache")]
    pub(crate) use_cache: bool,
    #[command(flatten)]
    pub(crate) cache: CachePlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextKind {
    Document,
    Query,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TooLong {
    Truncate,
    Error,
}

/// Speed of an encoder alone.
#[derive(Debug, Args)]
pub(crate) struct BenchEmbed {
    /// Texts to embed instead of the built-in ones: a JSONL file as `cento embed` takes it
    #[arg(long, value_name = "IN.jsonl")]
    pub(crate) texts: Option<PathBuf>,
    /// Embed at most this many texts
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) n_texts: usize,
    /// Times each set is embedded after a first time that does not count; the best one is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) repeat: usize,
    /// Times the query is embedded
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) n_queries: usize,
    /// The encoder: the name of a model card or a sentence-transformers folder
    #[arg(long, value_name = "NAME|DIR", default_value = cento_engine::DEFAULT_MODEL)]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) device: Device,
    /// Number type the encoder computes in: f32, the reference; bf16 (f16 on a GPU) or, on the CPU, int8, which are
    /// faster and close to it
    #[arg(long, value_name = "TYPE", default_value_t = Precision::F32)]
    pub(crate) precision: Precision,
}

/// A device held to the CPU, and its speed.
#[derive(Debug, Args)]
pub(crate) struct BenchDevice {
    /// The encoder: the name of a model card or a sentence-transformers folder
    #[arg(long, value_name = "NAME|DIR", default_value = cento_engine::DEFAULT_MODEL)]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) device: Device,
    /// Tokens of each timed set of texts
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    pub(crate) n_tokens: usize,
    /// Random rows that are scanned
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) n_rows: usize,
    /// Times each set is timed after a first time that does not count; the best one is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) repeat: usize,
    /// The device's published peak in a precision, in TFLOP/s (f32=82.6): the share of it is shown; may be repeated
    #[arg(long, value_name = "PRECISION=TFLOPS")]
    pub(crate) peak: Vec<Peak>,
    /// Write everything that was found to this file, as JSON
    #[arg(long, short, value_name = "FILE.json")]
    pub(crate) output: Option<PathBuf>,
}

/// A published peak.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peak {
    pub(crate) precision: Precision,
    pub(crate) tflops: f64,
}

impl FromStr for Peak {
    type Err = String;

    fn from_str(peak: &str) -> Result<Self, String> {
        let (precision, tflops) = peak.split_once('=').ok_or("expected PRECISION=TFLOPS, as in f32=82.6")?;
        let precision = precision.parse().map_err(|error: cento_engine::embedder::Error| error.to_string())?;
        let tflops = finite(tflops)?;
        if tflops > 0.0 { Ok(Self { precision, tflops }) } else { Err("expected more than 0 TFLOP/s".to_owned()) }
    }
}

/// Speed of the exact scan alone.
#[derive(Debug, Args)]
pub(crate) struct BenchScan {
    /// Random unit vectors to scan, in a file of the temporary folder while it runs
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) n_rows: usize,
    /// How many values each vector has
    #[arg(long, value_name = "N", default_value_t = 384)]
    pub(crate) dimensions: usize,
    /// How many queries are scanned together
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) n_queries: usize,
    /// How many rows each query gets
    #[arg(short, long, value_name = "N", default_value_t = cento_engine::CANDIDATE_DEPTH)]
    pub(crate) k: usize,
    /// Number type of the rows
    #[arg(long, value_enum, default_value_t = Vectors::F16)]
    pub(crate) vectors: Vectors,
    /// Times it is done after a first time that does not count; the best one is shown
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) repeat: usize,
    #[command(flatten)]
    pub(crate) device: Device,
}
