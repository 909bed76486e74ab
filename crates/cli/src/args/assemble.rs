//! Options of the command that assembles what another engine found.

use std::path::PathBuf;

use cento_engine::api::Budget;
use cento_engine::{Format, Language, Marks, Order, Strategy};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Assemble {
    /// The candidates, JSON or JSONL; - reads stdin
    pub(crate) file: PathBuf,
    /// The question, in plain words [default: the file's]
    #[arg(long, value_name = "TEXT")]
    pub(crate) query: Option<String>,
    /// Tokens the context may have, everything in it counted; auto, or auto:N, for as many as pay, of 4000 or N at most
    /// [default: the file's, or 2000]
    #[arg(long, value_name = "N|auto")]
    pub(crate) budget: Option<Budget>,
    /// The way candidates are chosen: cento, flat, mmr, adaptive, bubble, rse, rse-kadane, rse-exact, window, parent,
    /// automerge; those from rse on look at places in the document [default: the file's, or cento]
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<Strategy>,
    /// Policy file, as of `cento context`
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// The tokenizer that counts: o200k, cl100k, or a tokenizer.json [default: the file's, or o200k]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) tokenizer: Option<String>,
    /// The format of the context: md, xml or json [default: the file's, or md]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// The order of the pieces: document, score or edges [default: the file's, or document]
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<Order>,
    /// Marks around the texts: lean or full [default: the file's, or lean]
    #[arg(long, value_name = "MARKS")]
    pub(crate) marks: Option<Marks>,
    /// Deliver this chunk (DOCUMENT#NUMBER, as the trace has it), or all of a document, whatever else is delivered
    /// (repeatable) [default: the file's]
    #[arg(long, value_name = "ID")]
    pub(crate) include: Vec<String>,
    /// Do not deliver this chunk, or anything of a document (repeatable) [default: the file's]
    #[arg(long, value_name = "ID")]
    pub(crate) exclude: Vec<String>,
    /// The language of stemming and stop words, or none [default: the file's, or english]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) language: Option<Language>,
    /// Write the request and the decision on every candidate as JSON, which `cento replay` and `cento why` take
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Say on stderr why each passage is in the context and what kept out the next best
    #[arg(long, value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) explain: bool,
}
