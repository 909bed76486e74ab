//! The command line as users write it. Values are checked here one by one, and against each other in `options`.

mod collection;
mod finite;
mod header;
mod groups;
mod query;
mod trace;
mod embed;
mod encoder;
mod assemble;
mod cache;
mod evaluation;
mod settings;
mod serve;

use std::path::PathBuf;

use clap::builder::styling::AnsiColor;
use clap::builder::{RangedU64ValueParser, Styles};
use clap::{Args, CommandFactory as _, Parser, Subcommand};

pub(crate) use self::assemble::Assemble;
pub(crate) use self::cache::{ByteCount, Cache, CachePlace, CacheVerb};
pub(crate) use self::collection::{
    Adopt, Compact, Completions, Delete, Get, Index, Inspect, List, Model, Repair, Snapshot, Status, Vectors, Which,
};
pub(crate) use self::embed::{BenchDevice, BenchEmbed, BenchScan, Embed, TextKind, TooLong};
pub(crate) use self::evaluation::{
    Bench, BenchContexts, BenchTarget, Compare, Eval, EvalAnswers, EvalContext, Fuse, FuseMethod, Judging, Normalize,
    Priors, Tune,
};
pub(crate) use self::header::{Header, Price, Writer};
pub(crate) use self::query::{
    At, Context, Endpoint, Fusion, LexicalScore, Links, Mode, OF_CONTEXTS, Phrases, Rerank, ResultFormat, Retrieval,
    Run, Search, Shards, Ties,
};
pub(crate) use self::serve::{Mcp, Serve, Serving};
pub(crate) use self::settings::{Config, Trust};
pub(crate) use self::trace::{Diff, Replay, Schema, Why, WhyNot};

/// The command that a child is started with.
pub(crate) const READ: &str = "read";

/// What stands below the first page of help.
const BELOW: &str = "\
Results go to stdout, everything else to stderr. `cento help COMMAND` says all of a command.

Every option can also be set by an environment variable (CENTO_CHUNK_TOKENS for --chunk-tokens) or in a settings \
file. The command line wins over the environment, the environment over your own file (cento/cento.toml in \
$XDG_CONFIG_HOME or ~/.config), and your own file over cento.toml in the current folder. That one may set what is \
harmless, and all once you trust it (`cento help trust`).

Exit codes: 0 done, 1 nothing found or a check failed, 2 usage, 3 data or index, 4 model or device, 5 done, but some \
files or documents could not be read (they are named, and stay as they were), 130 interrupted.";

/// Turns a corpus into citable context: index it, search it, and assemble the spans that answer a question.
#[derive(Debug, Parser)]
#[command(name = "cento", version, max_term_width = 110, styles = STYLES, after_help = BELOW)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line as it is before settings are built in.
pub(crate) fn command() -> clap::Command {
    groups::grouped(Cli::command())
}

/// Colors of help and errors; clap leaves them out where no terminal reads, and where NO_COLOR is set.
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// More threads than any machine has cores make a run slower, and at last impossible.
fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=cento_engine::THREADS_MAX as u64)
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The folder of the collection
    #[arg(long, global = true, value_name = "DIR", default_value = ".cento", help_heading = "Global options")]
    pub(crate) collection: PathBuf,
    /// The same as the command line names it, where it does: it may be a link.
    #[arg(skip)]
    pub(crate) named: Option<PathBuf>,
    /// How many threads work; 0 takes one per core. Results do not depend on it
    #[arg(long, global = true, value_name = "N", default_value_t = 0, value_parser = threads(), help_heading = "Global options")]
    pub(crate) threads: usize,
    /// Print the answer as one JSON object that carries a `version`
    #[arg(long, global = true, value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Global options")]
    pub(crate) json: bool,
    /// Print results and errors only, no progress and no remarks
    #[arg(long, short, global = true, value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Read this settings file instead of your own and of cento.toml in the current folder
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// The way encoders at endpoints are asked: no option, for a key is none.
    #[arg(skip)]
    pub(crate) access: cento_engine::EncoderAccess,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Index files and folders; run again to bring the collection up to date.
    ///
    /// Cento removes documents whose files are gone. A file that the system does not let Cento read keeps its
    /// documents; Cento names it and ends with exit code 5. Cento refuses a PATH that is gone or empty, and a run that
    /// would remove more than half of the documents of the PATHs (exit code 3), unless you give --allow-empty.
    Index(Index),
    /// Rank passages for a question
    Search(Search),
    /// Assemble the cited context that answers a question, inside a token budget
    Context(Context),
    /// Assemble the cited context from candidates that another engine found.
    ///
    /// FILE is JSON or JSONL: a request of `POST /v1/assemble`, a list of candidates, or one candidate a line. Each has
    /// `text` and `document`, and where they are known `score` (any scale, larger is better), `title`, a place in the
    /// document (`number`, `span` in bytes or `characters`), `headings` and `vector`; one without a score stands beside
    /// those that were found. `cento schema assemble-request` has all of it. No collection is opened and no encoder is
    /// loaded. What the command line says goes before what the file says.
    Assemble(Assemble),
    /// Assemble a context again from its trace, byte for byte, or say what differs.
    ///
    /// TRACE is a file that `cento context --trace` wrote. Cento asks the collection and the generation that the trace
    /// names, with the settings that it holds. If the context is the same, byte for byte, Cento prints it and ends with
    /// exit code 0. If not, it prints nothing on stdout, says what differs, causes first (version of cento, generation,
    /// collection, model, chunking, settings, the first candidate found otherwise, the first one decided otherwise, the
    /// bytes), and ends with exit code 1. `cento snapshot create` keeps a generation; Cento never takes another one
    /// silently. It is not the same either if a trace was changed after it was made: citations, spans, scores, counts.
    Replay(Replay),
    /// Say why a passage is in a context or not.
    ///
    /// The trace tells which retrievers found the passage and with which scores, what the passage is worth, and what
    /// decided. Then Cento asks the trace's collection once, as `cento replay` does, and assembles the context with
    /// moved settings until the passage is delivered: a change that is printed was made, and delivers it; of a number,
    /// the step before does not. Where the collection is gone or gives another context, no change is printed. If you
    /// name a document, Cento explains each of its candidates, and tries changes for the first five.
    Why(Why),
    /// Follow a document through search and assembly, and say which stage lost it.
    ///
    /// DOC is the id of a document or of a chunk (`DOC#number`). Both retrievers rank everything, vectors exactly, so
    /// that the document has a place in each, however far down. Then Cento names its place in the fused ranking and the
    /// decision of the assembly, and the changes that deliver the document, each of which was made. Give the same
    /// options of `cento context` that made the context in question.
    WhyNot(WhyNot),
    /// Say how two contexts differ: settings, candidates, decisions, text.
    ///
    /// The exit code is 0 if both contexts are the same, byte for byte, and 1 if not.
    Diff(Diff),
    /// Rank documents for many questions, as a TREC run, and assemble their contexts
    Run(Run),
    /// Judge rankings: nDCG, recall, precision, average precision, reciprocal rank
    Eval(Eval),
    /// Judge contexts: how much evidence their tokens hold
    EvalContext(EvalContext),
    /// Judge the answers that a model gives from contexts, and what they cite.
    ///
    /// Without --endpoint and --record no model is asked, and figures of the contexts stand in: answer_in_context (a
    /// right answer stands in the cited text), title_precision and title_recall (cited documents that are gold, gold
    /// ones that are cited), evidence_precision, evidence_recall and fact_recall (of gold spans and sentences).
    ///
    /// With --endpoint, a model answers each question from its context alone and cites sources as [n]. exact_match and
    /// answer_f1 compare its answer with the right ones word by word, as SQuAD does; answer_in_reply says whether a
    /// right answer stands in the reply. A judge then says whether the answer is correct, and which statements the
    /// sources that they cite support, as ALCE does (arXiv 2305.14627): citation_recall is the share of statements that
    /// are supported by all they cite, citation_precision the share of citations that their statement needs.
    /// cited_gold_precision and cited_gold_recall count the cited documents that are gold, by no judge. abstained is
    /// the share of replies that found no answer, which counts as not correct.
    ///
    /// A judge that answers nonsense is asked three times in all; then the question is unjudged, which is shown and is
    /// no figure. Calls that fail leave a question unanswered or unjudged (exit code 5), and three in a row end the
    /// run (exit code 4); the same command goes on with what --record has.
    EvalAnswers(EvalAnswers),
    /// Compare evaluations query by query: differences, intervals, significance
    Compare(Compare),
    /// Learn which headings hold answers, as priors of a policy (experimental).
    ///
    /// A heading is worth more where answers stand under it more often than a search looks for them there. Headings of
    /// one or two documents have no prior. The answer is a policy that you read, edit, and give to `cento context
    /// --policy`. Nothing uses it unasked.
    ///
    /// Judged questions say what is asked for. Learned on one half of the questions, measured on the other: where
    /// headings name parts of a text (918 abstracts of SciFact under Background, Methods, Results, …) contexts of
    /// `cento` hold .77 of the evidence at 400 tokens instead of .64, and .91 instead of .89 at 800; where they are
    /// titles that many documents have (climate_fever_sent), .01 more at most, or as much. Sentences only say which
    /// headings a search overrates: there contexts held as much as without or less (.62 of .64), so prefer judged
    /// questions.
    Priors(Priors),
    /// Choose settings of the ranking from judged questions.
    ///
    /// Cento searches each question once and ranks what it found with some hundred settings: the weight of words
    /// beside vectors, k1 and b of BM25, --lexical-score, --title-weight, --links. It moves one setting at a time from
    /// those in force while that gains more than its standard error. What that gains is measured by cross-validation,
    /// each part of the questions with what the other parts chose, and has an interval (95 %).
    ///
    /// The answer is a settings file that you read, edit, and give to `cento --config`, or put into your cento.toml.
    /// Nothing uses it unasked. Where the interval holds zero the settings stand behind #, the advice is to leave them,
    /// and the exit code is 1. A small gain needs more questions to show.
    Tune(Tune),
    /// Fuse several runs into one
    Fuse(Fuse),
    /// Embed the texts of a JSONL file into a NumPy matrix, with ids and a manifest.
    ///
    /// IN has one JSON object a line: an id (`_id`, `id`, `docid` or `doc_id`; else the line's number) and a text
    /// (`title` and `text`, joined by a blank; `contents` and `body` stand for `text`). Cento embeds an empty text as
    /// any other. It reports a line that is none of this and leaves it out; an id that occurs twice is an error.
    ///
    /// Three files are written: OUT.npy (a row a text, for numpy.load), OUT.ids.jsonl (a line a row: id, tokens,
    /// whether its end was left out) and, last, OUT.json (model, types, counts, hash of the input). int8 and uint8 have
    /// a fourth, OUT.ranges.npy: least and greatest value of each dimension, as sentence-transformers'
    /// quantize_embeddings takes them.
    ///
    /// A run that was cut short leaves OUT.part; the same command goes on there, and ends with the same bytes as if it
    /// had not been cut short. The embedding cache is left alone unless --use-cache is given: a large corpus would push
    /// everything else out of it.
    Embed(Embed),
    /// Show what the embedding cache holds, or make it smaller
    Cache(Cache),
    /// Measure latency, throughput and recall on this machine
    #[command(subcommand)]
    Bench(Bench),
    /// List the devices that an encoder can run on, and say which one is chosen and why.
    ///
    /// The adapters of Vulkan and Metal are numbered, as in --device gpu:0, with driver, kind, memory limits and
    /// features. A software adapter is the CPU, playing a GPU: it is slower than the CPU itself, and nothing runs on it
    /// unless its number is named.
    Devices,
    /// Print a document, or the part that a citation names
    Get(Get),
    /// List the documents, all or those that a filter admits.
    ///
    /// A filter joins conditions on fields by `and`, `or`, `not` and parentheses:
    ///
    ///   type = "md" and year >= 2020                 also !=  <  <=  >
    ///   lang in ("de", "en") and tags not in ("x")
    ///   path starts with "docs/drafts/"
    ///   date < 2020-05-17 or draft = true
    ///   author exists and not (editor is missing)
    ///
    /// Strings stand in "…" or '…', with \\ \" \' \n \t in them; numbers are written 3,
    /// -1.5, 1e6, dates 2020-05-17 or 2020-05-17T10:30:00Z. A date covers its day, a
    /// time its minute, second or microsecond. Strings compare byte by byte, with
    /// their case; keywords are read in any case.
    ///
    /// Every document has the fields id (as answers show it: docs/a.md), root (the
    /// label: docs), path (as ids show it, docs/a.md, or inside its root, a.md), type
    /// (markdown, text, html, jsonl or csv; the file's extension will do) and title.
    /// Others come from front matter, JSONL and HTML: `cento fields` lists them. A map
    /// inside a map is outer.inner. What bears one of the five names is meta.NAME.
    /// Names of more than letters, digits, _ . and - stand in backticks.
    ///
    /// A list is compared value by value: tags = "x" holds if one of them is x.
    /// Where a field is missing every comparison is false, != and not in too; `not`
    /// is the complement: not (year = 2020) holds where there is no year.
    ///
    /// Where answers are asked for, chunks can be named by where they stand in their
    /// file: page (or slide), sheet, row, line: type = "xlsx" and sheet = "Scope".
    /// The filter then holds chunk by chunk, and a context delivers no other chunk.
    /// A field of a document with such a name counts in its place: chunk.page means
    /// the page alone, meta.page the field alone. Lists and deletes take documents
    /// whole, and no filter that asks where chunks stand.
    #[command(verbatim_doc_comment)]
    List(List),
    /// List the fields that filters can speak of, with their types
    Fields,
    /// Remove documents from the collection, by id, by path or by filter.
    ///
    /// The files stay where they are: the next `cento index` of their folder brings the documents back, unless the
    /// files are gone or ignored (.centoignore). Nothing matched is an answer of its own, with exit code 1.
    Delete(Delete),
    /// Show the sections and chunks that `cento index` would make of a file
    Inspect(Inspect),
    /// Merge segments and clear away what was deleted.
    ///
    /// Cento embeds nothing, no answer changes, and searches go on meanwhile.
    Compact(Compact),
    /// Take the segments of collections that were indexed elsewhere into this one.
    ///
    /// Each DIR is the folder of a collection with the same settings (model, chunks, header, language, vectors), as
    /// `cento index PATH --part I/N --collection DIR` makes it, on any machine; it stays as it is. Cento checks every
    /// byte, copies the segments and names them by one commit: nothing is embedded again, and answers are those of one
    /// `cento index` over everything. A DIR whose documents are there already, two with a document of the same id,
    /// other settings and damage are errors (exit code 3), and then nothing is taken. The collection is made if there
    /// is none. `cento compact` merges segments afterwards.
    Adopt(Adopt),
    /// Keep a state of the collection under a name
    #[command(subcommand)]
    Snapshot(Snapshot),
    /// Show what the collection holds
    Status(Status),
    /// Read one file from stdin, as a child of Cento that can do nothing else.
    ///
    /// Cento starts this itself, for files whose parsers might do harm. Stdin is one line of JSON (format, name, size,
    /// limits) and then the bytes of the file; stdout is a line of JSON for each document, and one at the end. Before
    /// it takes a byte of the file the process gives up every path, the network, other processes, new descriptors, and
    /// memory and processor time beyond its limits: by limits of the system, and on Linux by Landlock and a list of
    /// system calls. It reads no settings.
    #[command(hide = true)]
    Read,
    /// Check the collection for damage, and say what a repair keeps
    Doctor,
    /// Set damaged segments aside, and keep what can be read of them.
    ///
    /// Cento keeps texts that can be read, with their vectors. It takes vectors that cannot be read from the embedding
    /// cache or, if they are not there, from the encoder. It names the documents that are lost, and every answer warns
    /// of them until `cento index` brings them back.
    Repair(Repair),
    /// Download, check and list encoders
    #[command(subcommand)]
    Model(Model),
    /// Show the settings and where they come from, or check them
    #[command(subcommand)]
    Config(Config),
    /// Trust the settings file of a folder, or list the folders you trust.
    ///
    /// A `cento.toml` that Cento finds in the current folder may have come with a repository that somebody else made.
    /// It may set what is harmless: how documents are cut, found, ranked and shown. Cento refuses everything else:
    /// addresses, files to read and to write, models by path, devices, caches. `cento trust FOLDER` shows what the file
    /// would set, asks you, and then lets it.
    ///
    /// Trust is in the content: Cento refuses a file that has changed since. Trust does not extend to other files that
    /// the settings name. Cento sends the key of an endpoint (CENTO_ENDPOINT_KEY) to an endpoint that you name, never
    /// to one that only the file of a folder names.
    Trust(Trust),
    /// Answer over HTTP: searches, contexts, vectors, for any client.
    ///
    /// The encoder stays loaded, and a collection is opened again when it was indexed anew. A browser that opens the
    /// address shows contexts, scores, budgets and documents. GET /openapi.json describes every route. A log on stderr
    /// has a line for each request, without the address, the question or the key. Clients of other machines are
    /// answered only with --api-keys: a line of that file is `read sha256:HEX NAME`, and `printf %s KEY | sha256sum`
    /// gives HEX. Ctrl-C ends the server once its answers are given, after 5 seconds at most.
    Serve(Serve),
    /// Answer one agent over stdin and stdout, in the Model Context Protocol.
    ///
    /// The tools are context, search, fetch and status. It ends with stdin. `cento serve` has the same at /mcp.
    Mcp(Mcp),
    /// Print the JSON Schema of a request, of an answer or of traces, or list their names.
    ///
    /// An answer is what --json prints. A request says the same as the options of a command.
    Schema(Schema),
    /// Print the completion script of a shell
    Completions(Completions),
}
