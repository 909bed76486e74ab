//! Options of the commands that answer others: serve and mcp.

use std::net::SocketAddr;
use std::path::PathBuf;

use cento_server::{
    DEFAULT_BODY_BYTES, DEFAULT_CONNECTIONS, DEFAULT_DEADLINE, DEFAULT_PORT, DEFAULT_QUEUE, DEFAULT_TOOL_TOKENS,
};
use clap::Args;

use super::cache::CachePlace;
use super::query::Device;

/// Settings of every server.
#[derive(Debug, Args)]
pub(crate) struct Serving {
    /// Serve every collection in this folder, by the names of their folders, instead of --collection
    #[arg(long, value_name = "DIR")]
    pub(crate) collections: Option<PathBuf>,
    /// A tokenizer.json that budgets may be counted with, by a name (repeatable)
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) tokenizers: Vec<String>,
    /// A reranker that requests may name, as `cento search --rerank` takes it (repeatable), loaded at the start. The
    /// first one reads for every tool of MCP, and answers /v1/rerank
    #[arg(long, value_name = "MODEL")]
    pub(crate) rerank: Vec<String>,
    /// Load the collections' encoder from another place: a card, a folder, or openai:NAME@URL
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) device: Device,
    /// The most tokens of an answer to a language model, whatever it asks for
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TOOL_TOKENS)]
    pub(crate) tool_tokens: usize,
    /// Seconds that a request may take, its time in the queue included
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_DEADLINE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) deadline: u64,
    /// Threads that answer, two at least; 0 = four for each core: what they ask of the encoder is embedded together
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(..=1024))]
    pub(crate) workers: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen; port 0 takes a free one. Another address than one of this machine alone needs --api-keys
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)))]
    pub(crate) listen: SocketAddr,
    /// Ask every client for a key: a file with a line `read sha256:HEX NAME` for each, the hash that of the key
    #[arg(long, value_name = "FILE")]
    pub(crate) api_keys: Option<PathBuf>,
    /// A name that clients call this machine by, besides localhost and its addresses (repeatable)
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// A web page that may ask, as https://app.example.com (repeatable)
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Requests that wait for a thread, of queries and of bulk embedding each; more are told to come again
    #[arg(long, value_name = "N", default_value_t = DEFAULT_QUEUE)]
    pub(crate) queue: usize,
    /// Connections that are open at once; others wait
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CONNECTIONS)]
    pub(crate) connections: usize,
    /// Bytes that the body of a request may have
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_BODY_BYTES)]
    pub(crate) max_body: usize,
    /// Embed the beginning of a text that is longer than the encoder reads, unless a request says otherwise [default:
    /// an error]
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) auto_truncate: bool,
    /// Write the words of failures of the server itself to the log, with the files they name [default: their codes]
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) log_causes: bool,
    /// Let clients change the collections: add documents and files, index what is under --root, delete, compact; with
    /// --collections, make new ones. Where keys are asked for, only those of scope `write` may
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) writable: bool,
    /// A file or folder that clients may have indexed, called by its label (repeatable); nothing outside is read
    #[arg(long = "root", value_name = "[LABEL=]DIR", requires = "writable")]
    pub(crate) roots: Vec<String>,
    /// Try the passwords in this file, as `cento index` does, on files under --root and on those that clients hand over
    #[arg(long, value_name = "FILE", requires = "writable")]
    pub(crate) password_file: Option<PathBuf>,
    /// Show clients the folders of this machine, and let them name documents by paths [default: folders by their own
    /// names alone]
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) show_folders: bool,
    /// End when stdin does, so that no program leaves behind a server that it started and holds the other end of
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) until_stdin_ends: bool,
    /// Answer for a collection that lies on other servers of Cento, each with a part (repeatable, or with commas
    /// between): http://host:port, with ?collection=NAME behind it where a server has several. Servers that have the
    /// same part stand in one place, with | between: one answers where another does not, or is late. Their key is taken
    /// from CENTO_SHARD_KEY alone
    #[arg(long, value_name = "URL", value_delimiter = ',', conflicts_with_all = ["collections", "writable"])]
    pub(crate) shards: Vec<String>,
    /// The same from a file, a part a line, which is read again when another is put in its place
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shards", "collections", "writable"])]
    pub(crate) shards_from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CachePlace,
    #[command(flatten)]
    pub(crate) serving: Serving,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(flatten)]
    pub(crate) serving: Serving,
}
