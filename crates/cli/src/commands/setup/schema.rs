//! `cento schema`: the JSON Schemas of requests, answers and traces.

use cento_engine::{TRACE_SCHEMA, api};

use crate::args::Schema;
use crate::exit_code::Outcome;
use crate::options;

/// The schema of what `cento context --trace` writes, which is kept as a file.
const TRACE: &str = "trace";

pub(crate) fn execute(args: &Schema) -> anyhow::Result<Outcome> {
    let names = || api::SCHEMAS.iter().map(|(name, _)| *name).chain([TRACE]);
    let Some(name) = args.name.as_deref() else {
        names().for_each(|name| println!("{name}"));
        return Ok(Outcome::Done);
    };
    if name == TRACE {
        print!("{TRACE_SCHEMA}");
        return Ok(Outcome::Done);
    }
    let Some(schema) = api::schema(name) else {
        let known: Vec<&str> = names().collect();
        return Err(options::usage(format!("{name}: no such schema; there are {}", known.join(", "))));
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(Outcome::Done)
}
