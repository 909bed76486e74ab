//! What can go wrong in evaluation: files that cannot be read, and figures that would mean nothing.

use std::io;
use std::path::PathBuf;

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors that arise when judgements, runs, topics and contexts are read and compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written; the message names it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is not what the format wants. Lines and columns count from 1, columns in characters.
    #[error("{path}, line {line}, column {column}: expected {expected}, found {found}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// Where in the line, in characters from 1.
        column: usize,
        /// The form that the format wants there.
        expected: String,
        /// The text that is there.
        found: String,
    },
    /// Something that may be there once is there twice.
    #[error("{path}, line {line}: {what} is there twice")]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The line that repeats an earlier one.
        line: u64,
        /// The thing that is repeated.
        what: String,
    },
    /// A file without a single record.
    #[error("{path}: no {what}")]
    Empty {
        /// The file or folder.
        path: PathBuf,
        /// The content expected.
        what: &'static str,
    },
    /// One was wanted and several are there.
    #[error("{path}: holds several {what}: {found}; {way_out}")]
    Several {
        /// The file or folder.
        path: PathBuf,
        /// The thing of which there should be one.
        what: &'static str,
        /// Those that are there.
        found: String,
        /// The way out.
        way_out: &'static str,
    },
    /// The results of a query do not stand together, so a run cannot be read query by query.
    #[error(
        "{path}, line {line}: query {query:?} comes again after other queries; group the file: sort -s -k1,1 {path}"
    )]
    Scattered {
        /// The run file.
        path: PathBuf,
        /// Where the query comes again.
        line: u64,
        /// Id of the query.
        query: String,
    },
    /// A run without a single result, or an evaluation without a single query to average over.
    #[error("no {what} to evaluate")]
    Nothing {
        /// The thing that is missing.
        what: &'static str,
    },
    /// A run holds two rankings of one query.
    #[error("query {query:?} is ranked twice")]
    RankedTwice {
        /// Id of the query.
        query: String,
    },
    /// Two sides that belong together have no id in common; one of each is named.
    #[error("no {what} in common: one side has {left:?}, the other {right:?}; {check}")]
    NoOverlap {
        /// The kind of thing that has the ids.
        what: &'static str,
        /// An id of what is evaluated.
        left: String,
        /// An id of what it is evaluated against.
        right: String,
        /// The thing to look at.
        check: &'static str,
    },
    /// A measure of a name nobody knows.
    #[error("no measure is called {name:?}; {nearest}the measures are {known}")]
    UnknownMeasure {
        /// The name.
        name: String,
        /// A question that offers the nearest measure, or nothing.
        nearest: String,
        /// Every measure, by example.
        known: String,
    },
    /// A measure with a parameter it does not have or a value it cannot take.
    #[error("measure {measure:?}: {reason}")]
    Measure {
        /// The measure as it was given.
        measure: String,
        /// The fault in it.
        reason: String,
    },
    /// Figures that cannot be compared pair by pair, or settings a test cannot run with.
    #[error("cannot compare: {reason}")]
    Unpaired {
        /// The fault in the figures or the setting.
        reason: String,
    },
    /// A folder that holds no questions with their answers.
    #[error(
        "{path}: not a set of questions: neither `questions.jsonl` beside `docs/` nor `queries.jsonl` beside `qrels/` is there"
    )]
    NotQuestions {
        /// The folder.
        path: PathBuf,
    },
    /// A question names a document by a name that no file has, or that two have.
    #[error("{path}, line {line}: question {question} names document {name:?}, {reason}")]
    Document {
        /// The file of questions.
        path: PathBuf,
        /// The question's line, from 1.
        line: u64,
        /// Its id.
        question: String,
        /// The name it gives.
        name: String,
        /// The fault in it, and names near it.
        reason: String,
    },
    /// A question's evidence is not where its offsets say.
    #[error("{path}, line {line}: question {question}, document {document:?}: {reason}")]
    Reference {
        /// The file of questions or rationales.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Id of the question.
        question: String,
        /// Id of the document.
        document: String,
        /// The value found instead.
        reason: String,
    },
    /// The text that a context cites is not what the document of the questions has there.
    #[error(
        "query {query}: citation {n} is not what {document:?} has at bytes {start}..{end}; the collection was indexed from other \
         files than the questions were asked of"
    )]
    Cited {
        /// Id of the context's query.
        query: String,
        /// Number of the citation in the context.
        n: u64,
        /// Id of the document.
        document: String,
        /// First byte of the cited span.
        start: u64,
        /// The byte after its last one.
        end: u64,
    },
    /// Contexts that would be averaged were counted by different tokenizers.
    #[error(
        "query {query}: tokens of {found:?}, other contexts of strategy {strategy} and {budget} have tokens of {expected:?}; \
         give each tokenizer a strategy label of its own"
    )]
    Tokenizers {
        /// Id of the context's query.
        query: String,
        /// The strategy both have.
        strategy: String,
        /// The budget both have.
        budget: crate::contexts::Budget,
        /// The tokenizer of the contexts before it.
        expected: String,
        /// Its tokenizer.
        found: String,
    },
    /// A document cannot be cut into the tokens of a context.
    #[error("document {document:?} in tokens of {tokenizer:?}: {reason}")]
    Tokens {
        /// Id of the document.
        document: String,
        /// Name of the tokenizer.
        tokenizer: String,
        /// The tokenizer's message, or the fault in its token ends.
        reason: String,
    },
    /// A record was made with another setting.
    #[error(
        "{path}: the record has {setting} {recorded:?}, this evaluation {asked:?}; answers of both do not mix: name another file"
    )]
    RecordOf {
        /// The record.
        path: PathBuf,
        /// The setting that differs.
        setting: &'static str,
        /// Its value in the record.
        recorded: String,
        /// Its value now.
        asked: String,
    },
    /// Another run writes the record.
    #[error("{path}: another evaluation writes this record; wait for it, or name another file")]
    RecordHeld {
        /// The record.
        path: PathBuf,
    },
    /// Nobody is to be asked, and the record lacks an answer.
    #[error(
        "{path}: the record has no answer to the task {task:?} of query {query}, and nobody is asked without an endpoint"
    )]
    NotRecorded {
        /// The record.
        path: PathBuf,
        /// Id of the query.
        query: String,
        /// The task.
        task: crate::answers::Task,
    },
    /// Calls failed one after the other.
    #[error("query {query}: {n_failed} calls in a row failed, the last one so: {reason}")]
    Asking {
        /// Id of the last call's query.
        query: String,
        /// Number of failed calls.
        n_failed: usize,
        /// The fault of the last one.
        reason: String,
    },
}
