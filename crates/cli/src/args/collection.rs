//! Options of the commands that make a collection and look after it.

use std::path::PathBuf;

use cento_engine::{ChunkTokens, Distance, FilePart, HeaderStyle, Language, Pooling, Precision, corpus};
use clap::{Args, Subcommand, ValueEnum};

use super::cache::{ByteCount, CachePlace};
use super::encoder::ElsewhereIndexed;
use super::header::{Header, Writer};
use super::query::{At, Device};

#[derive(Debug, Args)]
pub(crate) struct Index {
    /// Files and folders to index, or LABEL=PATH; the label, by default the folder's name, starts its documents' ids
    #[arg(required_unless_present = "from_vectors", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    #[command(flatten)]
    pub(crate) given: Given,
    /// How files are read: auto, beir, or as one format: md, text, html, jsonl, csv, pdf, docx, doc, odt, rtf, pptx,
    /// ppt, odp, epub, xlsx, xlsb, xls, ods, ipynb, eml or zip
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: corpus::ReadAs,
    /// The encoder: the name of a model card, a sentence-transformers folder, or openai:NAME@URL, an OpenAI-compatible
    /// endpoint whose key is taken from CENTO_ENCODER_KEY alone [default: the collection's, or all-minilm-l6-v2]
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    /// Put this prompt before queries, by its name in the model's folder: instruction models have one a task [default:
    /// the collection's, or query]
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,
    /// The header embedded with each chunk: structured, flat, last (flat with the innermost heading alone) or none; llm
    /// for structured with a context behind it, which the model of --endpoint writes [default: the collection's, or
    /// structured]
    #[arg(long, value_name = "STYLE")]
    pub(crate) header: Option<Header>,
    #[command(flatten)]
    pub(crate) writer: Writer,
    /// How many tokens a chunk aims at, or `sentence` or `document` for a chunk each [default: the collection's, or
    /// 128]
    #[arg(long, value_name = "N")]
    pub(crate) chunk_tokens: Option<ChunkTokens>,
    /// The language of stemming and stop words, or none [default: the collection's, or english]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) language: Option<Language>,
    /// How vectors are stored: f32 or f16 [default: the collection's, or f32]
    #[arg(long, value_name = "TYPE")]
    pub(crate) vectors: Option<Vectors>,
    /// What a chunk's vector is made of: plain, the chunk behind its header; late, its tokens in the document read as a
    /// whole; both, a vector of either kind [default: the collection's, or plain]
    #[arg(long, value_name = "KIND")]
    pub(crate) pooling: Option<Pooling>,
    /// How many tokens are read together for late vectors [default: the collection's, or the encoder's window]
    #[arg(long, value_name = "N")]
    pub(crate) late_window: Option<usize>,
    /// Give segments of at least this many rows an HNSW graph
    #[arg(long, value_name = "N", default_value_t = cento_engine::config::GRAPH_ROWS_MIN)]
    pub(crate) graph_rows_min: usize,
    #[command(flatten)]
    pub(crate) memory: Memory,
    /// Index part I of N alone, 1/N to N/N: the files in the order of their ids, cut into parts of about as many bytes.
    /// Documents of other parts stay as they are. `cento adopt` joins parts that were indexed on several machines
    #[arg(long, value_name = "I/N")]
    pub(crate) part: Option<FilePart>,
    /// Decode files that are not UTF-8 as well as possible instead of leaving them out
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) lossy: bool,
    /// Leave out files that are larger than this, and report them
    #[arg(long, value_name = "BYTES", default_value_t = corpus::MAX_FILE_BYTES)]
    pub(crate) max_file_bytes: u64,
    /// Try the passwords in this file, one a line, on files that are encrypted: PDF, Word, PowerPoint and Excel since
    /// 2007, OpenDocument, and ZIP archives. UTF-8; spaces belong to a password, the line's end does not; 32 at most,
    /// of 255 bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device: Device,
    /// Number type the encoder computes in: f32, the reference; bf16 (f16 on a GPU) or, on the CPU, int8, which are
    /// faster and close to it [default: the collection's, or f32]
    #[arg(long, value_name = "TYPE")]
    pub(crate) precision: Option<Precision>,
    #[command(flatten)]
    pub(crate) cache: CachePlace,
    /// Do without the embedding cache; an interrupted run begins anew
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Embedding cache")]
    pub(crate) no_cache: bool,
    #[command(flatten)]
    pub(crate) elsewhere: ElsewhereIndexed,
    #[command(flatten)]
    pub(crate) compaction: NoCompact,
    /// Remove documents whose files are gone even if a whole folder of PATH is, or if they are more than half (and ten
    /// or more); without this such a run is refused, for a disk may not be there
    #[arg(long)]
    pub(crate) allow_empty: bool,
    /// Read and chunk, but embed and write nothing
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) dry_run: bool,
    /// Write the full report, file by file, as JSON; `cento status --files` shows what was got out of them
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

const GIVEN: &str = "Vectors of your own";

/// Vectors that are given in place of files to embed.
#[derive(Debug, Args)]
pub(crate) struct Given {
    /// Instead of PATH, make a collection without an encoder of these vectors, a row each: .npy, .fvecs, .bvecs, .hdf5
    /// or .parquet (with ids, texts and metadata in columns beside them). A row whose id is there replaces the
    /// document; none is removed
    #[arg(long, value_name = "FILE", help_heading = GIVEN, conflicts_with_all = FOR_PATHS)]
    pub(crate) from_vectors: Option<PathBuf>,
    /// The column of a .parquet file that holds the vectors [default: the only one of lists of floats], or the dataset
    /// of an .hdf5 file [default: train]
    #[arg(long, value_name = "NAME", requires = "from_vectors", help_heading = GIVEN)]
    pub(crate) vector_column: Option<String>,
    /// The ids of the vectors, a line each [default: those of the texts, or the numbers of the rows from 0]
    #[arg(long, value_name = "FILE", requires = "from_vectors", help_heading = GIVEN)]
    pub(crate) ids: Option<PathBuf>,
    /// The texts of the vectors, JSONL, a line each: text, and title, id and metadata if you like. With them words are
    /// searched too, and contexts assembled
    #[arg(long, value_name = "FILE", requires = "from_vectors", help_heading = GIVEN)]
    pub(crate) texts: Option<PathBuf>,
    /// The order of neighbours: cosine, inner-product or euclidean [default: the collection's, or cosine]
    #[arg(long, value_name = "NAME", requires = "from_vectors", help_heading = GIVEN)]
    pub(crate) distance: Option<Distance>,
    /// Divide every vector by its length; the cosine wants vectors of length 1
    #[arg(long, requires = "from_vectors", help_heading = GIVEN, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) normalize: bool,

    /// Leave room for vectors of up to this length, with inner-product and euclidean: what comes later must fit
    /// [default: the power of two that holds the longest]
    #[arg(long, value_name = "LENGTH", requires = "from_vectors", help_heading = GIVEN)]
    pub(crate) norm_max: Option<f64>,
}

/// Options of files and encoders, which mean nothing to vectors that are given.
const FOR_PATHS: [&str; 14] = [
    "paths",
    "part",
    "model",
    "header",
    "chunk_tokens",
    "pooling",
    "late_window",
    "precision",
    "dry_run",
    "encoder_tokenizer",
    "encoder_window",
    "encoder_dimensions",
    "query_prompt",
    "document_prompt",
];

#[derive(Debug, Args)]
pub(crate) struct Adopt {
    /// Folders of collections, each with documents that no other has
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// DOC, DOC#chunk, DOC:from-to (lines), 'DOC bytes from-to', or a mark of a context. DOC is the id of a document,
    /// the path of an indexed file, or a file name that only one file has
    pub(crate) citation: String,
    /// Show where its links lead and what links to it, in place of the text
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) links: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List the documents of which this holds: 'tags = "draft" and not (year < 2020)'
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Say which documents would go, and delete nothing
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) compaction: NoCompact,
}

/// Documents, said in one way.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The ids of documents; if one is unknown, none is deleted
    #[arg(value_name = "DOC")]
    pub(crate) documents: Vec<String>,
    /// The documents of a file or folder, named as ids of files are: docs/drafts. Where there is none, those of the
    /// files that a glob matches: 'docs/**/*.txt'
    #[arg(long, value_name = "PATH|GLOB")]
    pub(crate) path: Option<String>,
    /// The documents of which this holds: 'type = "md" and year < 2020'; `cento list --help` says how filters are
    /// written
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
}

/// What commands that commit do not do.
#[derive(Debug, Args)]
pub(crate) struct NoCompact {
    /// Leave small segments and dead rows as they are, however many there are; `cento compact` does it later
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) no_compact: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Compact {
    /// Merge everything into one segment (or as few as the memory allows), not only what has grown out of shape
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) all: bool,
    /// Give segments of at least this many rows an HNSW graph
    #[arg(long, value_name = "N", default_value_t = cento_engine::config::GRAPH_ROWS_MIN)]
    pub(crate) graph_rows_min: usize,
    #[command(flatten)]
    pub(crate) memory: Memory,
}

/// The memory of commands that write segments.
#[derive(Debug, Args)]
pub(crate) struct Memory {
    /// Memory that may be taken beside the encoder and the keys of the embedding cache: bytes, or a number with KiB,
    /// MiB, GiB or TiB. Documents that need more are written as several segments [default: a quarter of the
    /// machine's]
    #[arg(long = "memory", value_name = "BYTES")]
    pub(crate) memory_bytes: Option<ByteCount>,
}

#[derive(Debug, Args)]
pub(crate) struct Repair {
    /// Load the collection's encoder from another place: a card, a folder, or openai:NAME@URL
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) device: Device,
    #[command(flatten)]
    pub(crate) cache: CachePlace,
    /// Do not take vectors from the embedding cache
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Embedding cache")]
    pub(crate) no_cache: bool,
    /// End with an error instead of loading the encoder for vectors that cannot be read
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) no_embed: bool,
    /// Give up documents that could not be kept: nothing warns of them any more
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) accept_losses: bool,
    /// Give segments of at least this many rows an HNSW graph
    #[arg(long, value_name = "N", default_value_t = cento_engine::config::GRAPH_ROWS_MIN)]
    pub(crate) graph_rows_min: usize,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Snapshot {
    /// Name the current generation, so that it stays
    Create {
        /// The name: letters, digits, -, _ and .
        name: String,
    },
    /// List the snapshots
    List,
    /// Remove a name, and what only that generation needs
    Remove {
        /// The name of the snapshot
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Show what readers got out of each file that is no plain text, and what not, the suspicious first: pages,
    /// characters, pages without text, what was refused and why
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) files: bool,
    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The file
    pub(crate) file: String,
    /// How files are read: auto, beir, or as one format: md, text, html, jsonl, csv, pdf, docx, doc, odt, rtf, pptx,
    /// ppt, odp, epub, xlsx, xlsb, xls, ods, ipynb, eml or zip
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: corpus::ReadAs,
    /// The encoder whose tokens count
    #[arg(long, value_name = "NAME|DIR", default_value = cento_engine::DEFAULT_MODEL)]
    pub(crate) model: String,
    /// The header of each chunk: structured, flat, last or none
    #[arg(long, value_name = "STYLE", default_value = "structured")]
    pub(crate) header: HeaderStyle,
    /// How many tokens a chunk aims at, or `sentence` or `document`
    #[arg(long, value_name = "N", default_value = "128")]
    pub(crate) chunk_tokens: ChunkTokens,
    /// Decode a file that is not UTF-8 as well as possible
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) lossy: bool,
    /// Try the passwords in this file, as `cento index` does
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// Download a model (once; then it works offline)
    ///
    /// From the Hugging Face hub or a mirror (HF_ENDPOINT), with a token if there is one (HF_TOKEN); what Hugging
    /// Face's own tools have in their cache is taken from there. A model without a card is read before its weights
    /// come, pinned to its commit, and gets a card with the checksums of what came.
    Pull {
        /// A name that `cento model list --all` shows, or ORG/NAME or ORG/NAME@REVISION of the hub
        #[arg(default_value = cento_engine::DEFAULT_MODEL)]
        name: String,
        /// Ask nobody over the network
        #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
        offline: bool,
    },
    /// List the models that were pulled or have a card
    List {
        /// Also well-known models that can be pulled
        #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
        all: bool,
    },
    /// Check every file of a pulled encoder against its card
    Verify {
        /// The name of a model card
        #[arg(default_value = cento_engine::DEFAULT_MODEL)]
        name: String,
    },
    /// Show a model card
    Show {
        /// The name of a model card
        #[arg(default_value = cento_engine::DEFAULT_MODEL)]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell: bash, elvish, fish, powershell or zsh
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Vectors {
    F32,
    F16,
}
