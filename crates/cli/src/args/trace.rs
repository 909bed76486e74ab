//! Options of the commands that look into a context: replay, why, why-not, diff; and of the schemas of what they print.

use std::path::PathBuf;

use clap::Args;

use super::query::{Context, Device};

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The trace; it names its collection, as seen from the current folder, unless you give --collection
    #[arg(required_unless_present = "schema")]
    pub(crate) trace: Option<PathBuf>,
    /// Ask the last generation instead of the trace's
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), conflicts_with_all = ["generation", "snapshot"])]
    pub(crate) latest: bool,
    /// Ask this generation instead of the trace's
    #[arg(long, value_name = "N", conflicts_with = "snapshot")]
    pub(crate) generation: Option<u64>,
    /// Ask the generation that a snapshot names instead of the trace's
    #[arg(long, value_name = "NAME")]
    pub(crate) snapshot: Option<String>,
    /// Load the collection's encoder from another place
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) device: Device,
    /// Print the JSON schema of traces instead
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new(), conflicts_with = "trace")]
    pub(crate) schema: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// A file that `cento context --trace` wrote
    pub(crate) trace: PathBuf,
    /// The id of a chunk (`DOC#number`) or of a document
    pub(crate) chunk: String,
    /// Load the collection's encoder from another place
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) device: Device,
}

#[derive(Debug, Args)]
pub(crate) struct WhyNot {
    #[command(flatten)]
    pub(crate) context: Context,
    /// The id of a document, or of a chunk (`DOC#number`)
    pub(crate) doc: String,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A file that `cento context --trace` wrote
    pub(crate) before: PathBuf,
    /// Another one
    pub(crate) after: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Name of the schema; without it, the names are listed
    pub(crate) name: Option<String>,
}
