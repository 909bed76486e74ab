//! The command line as users write it. Values are checked here one by one, and against each other in `options`.

mod collection;
mod query;
mod trace;
mod embed;
mod cache;
mod evaluation;
mod settings;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use self::cache::{Cache, CachePlace, CacheVerb};
pub(crate) use self::collection::{
    Compact, Completions, Delete, Get, Index, Inspect, List, Model, Repair, Snapshot, Status, Vectors, Which,
};
pub(crate) use self::embed::{BenchEmbed, BenchScan, Embed, TextKind, TooLong};
pub(crate) use self::evaluation::{
    Bench, BenchTarget, Compare, Eval, EvalContext, Fuse, FuseMethod, Judging, Normalize, Priors,
};
pub(crate) use self::query::{At, Budget, Context, Endpoint, Fusion, Mode, ResultFormat, Retrieval, Run, Search, Ties};
pub(crate) use self::settings::{Config, Trust};
pub(crate) use self::trace::{Diff, Replay, Why, WhyNot};

/// Turns a corpus into citable context: index it, search it, and assemble, inside a hard token budget, the exact spans
/// that answer a question.
///
/// Results go to stdout, everything else to stderr. Every option can also be set by an environment variable (`--chunk-tokens` is
/// CENTO_CHUNK_TOKENS) or in a settings file. The command line wins over the environment, that over your own file
/// (cento/cento.toml in $XDG_CONFIG_HOME or ~/.config), that over `cento.toml` in the current folder, which may set what is harmless
/// unless you trust it (`cento trust --help`).
///
/// Exit codes: 0 ok, 1 nothing found or a check failed, 2 usage, 3 data or index, 4 model or device, 5 done but for
/// files that could not be read, 130 interrupted.
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
    /// Settings file that is read instead of your own and of cento.toml in the current folder
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Index files and folders; run again to bring the collection up to date.
    ///
    /// Documents whose files are gone are removed. What the system does not let be read stays as it was and is
    /// reported, with exit code 5. A PATH that is gone or empty, and a run that would remove more than half of the
    /// documents that PATHs had, are refused (exit code 3) unless --allow-empty is given.
    Index(Index),
    /// Rank chunks for a query
    Search(Search),
    /// Assemble the cited context that answers a question, inside a token budget
    Context(Context),
    /// Assemble a context again from its trace, and get the same bytes, or hear what differs.
    ///
    /// TRACE is a file that `cento context --trace` wrote. It is asked of the collection and the generation it names, with every
    /// setting it holds. If the context comes out the same, byte for byte, it is printed, and the exit code is 0. If not, nothing
    /// is printed on stdout, what differs is said in the order in which one thing follows from another (version of cento,
    /// generation, collection, model, chunking, settings, the first candidate found otherwise, the first one decided otherwise, the bytes),
    /// and the exit code is 1. A generation is kept by `cento snapshot create`; one that is gone is never replaced silently.
    Replay(Replay),
    /// Say why a chunk is in a context or not, from its trace alone.
    ///
    /// Where it was found and what each arm gave to it, what it was held to be worth, what it needs, what decided, and the least
    /// change that would undo that. The change lifts this one constraint; what a context holds then, only another run can tell.
    /// Of a document, every chunk of it that was a candidate. No collection is needed.
    Why(Why),
    /// Follow a document through search and assembly, and say which stage lost it.
    ///
    /// DOC is the id of a document or of a chunk (`DOC#number`). Both arms are ranked to their ends, vectors exactly, so that the
    /// document has a place in each however far down; then its place in the fused ranking, then the decision of the assembly.
    /// Every option of `cento context` holds here too: give those of the context in question.
    WhyNot(WhyNot),
    /// Say what two traces differ in: settings, candidates, decisions, what was delivered.
    ///
    /// The exit code is 0 if both contexts are the same, byte for byte, and 1 if not.
    Diff(Diff),
    /// Rank documents for a batch of topics, as a TREC run, and assemble their contexts
    Run(Run),
    /// Judge runs: nDCG, recall, precision, average precision, reciprocal rank
    Eval(Eval),
    /// Judge contexts: what the tokens delivered are worth
    EvalContext(EvalContext),
    /// Compare two or more evaluations query by query: differences, intervals, significance
    Compare(Compare),
    /// Learn what the headings of the collection are worth, as the `[priors]` of a policy.
    ///
    /// A heading is worth more where answers stand under it more often than a search looks for them there; headings of one or two documents
    /// have no prior. The answer is a policy to read, to edit, and to give to `cento context --policy`. Nothing uses it unasked.
    ///
    /// Judged questions say what is asked for. Learned on one half of the questions, measured on the other: where headings name parts of a
    /// text (918 abstracts of SciFact under Background, Methods, Results, …) contexts of `cento` hold .77 of the evidence at 400 tokens
    /// instead of .64, and .91 instead of .89 at 800; where they are titles that many documents have (climate_fever_sent), .01 more at
    /// most, or as much. Sentences only say which headings a search overrates: there contexts held as much as without or less (.62 of
    /// .64), so prefer judged questions.
    Priors(Priors),
    /// Fuse runs into one
    Fuse(Fuse),
    /// Embed the texts of a JSONL file into a NumPy matrix, with ids and a manifest.
    ///
    /// IN has one JSON object a line: an id (`_id`, `id`, `docid` or `doc_id`; else the line's number) and a text (`title` and `text`, joined by
    /// a blank; `contents` and `body` stand for `text`). An empty text is embedded as any other. A line that is none of this is
    /// reported and left out; an id that occurs twice is an error.
    ///
    /// Three files are written: OUT.npy (a row a text, for numpy.load), OUT.ids.jsonl (a line a row: id, tokens, whether its end was
    /// left out) and, last, OUT.json (model, types, counts, hash of the input). int8 and uint8 have a fourth, OUT.ranges.npy: least
    /// and greatest value of each dimension, as sentence-transformers' quantize_embeddings takes them.
    ///
    /// A run that was cut short leaves OUT.part; the same command goes on there, and ends with the same bytes as if it had not been
    /// cut short. The embedding cache is left alone unless --use-cache is given: a large corpus would push everything else out of it.
    Embed(Embed),
    /// Say what the embedding cache holds, or make it smaller
    Cache(Cache),
    /// Measure latency, throughput and recall on this machine
    #[command(subcommand)]
    Bench(Bench),
    /// Print a document, or the part of it that a citation names
    Get(Get),
    /// List documents, all or those that a filter admits.
    ///
    /// A filter joins conditions on fields by `and`, `or`, `not` and parentheses:
    ///
    ///   type = "md" and year >= 2020                 also !=  <  <=  >
    ///   lang in ("de", "en") and tags not in ("x")
    ///   path starts with "drafts/"
    ///   date < 2020-05-17 or draft = true
    ///   author exists and not (editor is missing)
    ///
    /// Strings stand in "…" or '…', with \\ \" \' \n \t in them; numbers are written 3,
    /// -1.5, 1e6, dates 2020-05-17 or 2020-05-17T10:30:00Z. A date covers its day, a
    /// time its minute, second or microsecond. Strings compare byte by byte, with
    /// their case; keywords are read in any case.
    ///
    /// Every document has the fields id, root (the label), path (inside its root),
    /// type (markdown, text, html, jsonl or csv; the file's extension will do) and
    /// title. Others come from front matter, JSONL and HTML: `cento fields` lists
    /// them. A map inside a map is outer.inner. What bears one of the five names is
    /// meta.NAME. Names of more than letters, digits, _ . and - stand in backticks.
    ///
    /// A list is compared value by value: tags = "x" holds if one of them is x.
    /// Where a field is missing every comparison is false, != and not in too; `not`
    /// is the complement: not (year = 2020) holds where there is no year.
    #[command(verbatim_doc_comment)]
    List(List),
    /// List the fields that filters can speak of, with their types
    Fields,
    /// Remove documents from the collection, by id, by path or by filter.
    ///
    /// The files stay where they are: the next `cento index` of their folder brings the documents back, unless the files are gone
    /// or ignored (.centoignore). Nothing matched is an answer of its own, with exit code 1.
    Delete(Delete),
    /// Show the sections, chunks and token counts the indexer would make of a file
    Inspect(Inspect),
    /// Merge segments and clear away what was deleted; nothing is embedded, no answer changes, and searches go on meanwhile
    Compact(Compact),
    /// Keep a generation under a name
    #[command(subcommand)]
    Snapshot(Snapshot),
    /// Say what the collection holds
    Status(Status),
    /// Verify every checksum and every invariant of the collection, and say what of it a repair keeps
    Doctor,
    /// Set damaged segments aside, and write anew what can be read of them.
    ///
    /// Texts that can be read are kept with their vectors; vectors that cannot be read come from the embedding cache or, if they
    /// are not there, from the encoder. Documents that are lost are named; every answer warns of them until `cento index`
    /// brings them back.
    Repair(Repair),
    /// Get and check encoders
    #[command(subcommand)]
    Model(Model),
    /// Show or check the settings
    #[command(subcommand)]
    Config(Config),
    /// Trust the settings file of a folder, or list the folders that you trust.
    ///
    /// A `cento.toml` that Cento finds in the current folder may have come with a repository that somebody else made. It may set what
    /// is harmless: how documents are cut, found, ranked and shown. Everything else is refused: addresses, files to read and to write,
    /// models by path, devices, caches. `cento trust FOLDER` shows what the file of a folder would set, asks, and lets it set that.
    ///
    /// Trust is in the content: a file that changes is refused again. It does not extend to other files that the settings name. The key
    /// of an endpoint (CENTO_ENDPOINT_KEY) is sent to an endpoint that you name, never to one that only the file of a folder names.
    Trust(Trust),
    /// Print the completion script of a shell
    Completions(Completions),
}
