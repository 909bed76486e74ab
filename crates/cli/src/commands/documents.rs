//! `cento get` and `cento delete`: documents by id.

use std::io::Write;

use cento_engine::{OsFs, Searcher, SearcherOptions};

use crate::args::{Delete, Get, Global};
use crate::exit_code::Outcome;
use crate::output;

#[derive(serde::Serialize)]
struct Deleted<'a> {
    version: u32,
    generation: u64,
    deleted: &'a [String],
}

pub(crate) fn get(args: &Get, global: &Global) -> anyhow::Result<Outcome> {
    let searcher = Searcher::open(&global.collection, SearcherOptions::default())?;
    let excerpt = searcher.get(&args.citation)?;
    match global.json {
        true => output::json(&excerpt)?,
        false => std::io::stdout().write_all(excerpt.text.as_bytes())?, // the bytes that were cited, not one more
    }
    Ok(Outcome::Done)
}

pub(crate) fn delete(args: &Delete, global: &Global) -> anyhow::Result<Outcome> {
    let generation = cento_engine::delete(&global.collection, &args.documents, &OsFs)?;
    match global.json {
        true => output::json(&Deleted { version: output::JSON_VERSION, generation, deleted: &args.documents })?,
        false => println!("{} documents deleted; generation {generation}", args.documents.len()),
    }
    Ok(Outcome::Done)
}
