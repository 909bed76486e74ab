//! `cento replay`: the context of a trace once more, the same bytes or what differs.

use std::path::{Path, PathBuf};

use cento_engine::{
    AssembledTrace, At, BudgetTokenizer, Cancel, CollectionError, ContextTrace, DeviceChoice, Difference, Error,
    Replayed, Searcher, SearcherOptions, TRACE_SCHEMA, api,
};

use crate::args::Replay;
use crate::exit_code::Outcome;
use crate::settings::Invocation;
use crate::{options, output};

pub(crate) fn execute(args: &Replay, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    let Some(path) = args.trace.as_deref().filter(|_| !args.schema) else {
        print!("{TRACE_SCHEMA}");
        return Ok(Outcome::Done);
    };
    if let Some(trace) = AssembledTrace::read(path)? {
        return crate::commands::assemble::replay(trace, global);
    }
    let trace = ContextTrace::read(path)?;
    (trace.search()?, trace.policy()?); // what is wrong with it is said before the collection is opened
    let at = match (&args.snapshot, args.generation) {
        (Some(name), _) => At::Snapshot(name.clone()),
        (_, asked) if !args.latest => At::Generation(asked.unwrap_or(trace.collection.generation)),
        _ => At::Current,
    };
    let searcher = searcher(invocation, path, &trace, args.model.clone(), args.device.device, at)?;
    let tokenizer = tokenizer(&trace, &searcher)?;
    let replayed = trace.replay(&searcher, &tokenizer, &Cancel::default())?;
    options::remark_device(global, &searcher);
    let Replayed { context, trace: now, same, differences } = &replayed;
    if global.json {
        output::json(&api::ReplayAnswer::new(&replayed))?;
    } else if *same {
        println!("{}", context.text);
    }
    if !*same || !global.quiet {
        for Difference { what, before, after } in differences {
            eprintln!("differs: {what}: {before} in the trace, {after} now");
        }
        match (same, trace.delivers_as(now)) {
            (true, _) => eprintln!("the same bytes as in the trace"),
            (false, true) => eprintln!("the same bytes, but not the trace of them: it was changed after it was made"),
            (false, false) => eprintln!("not the same bytes as in the trace"),
        }
    }
    Ok(if *same { Outcome::Done } else { Outcome::Nothing })
}

/// The tokenizer that counted the budget of a trace.
pub(super) fn tokenizer<'s>(trace: &ContextTrace, searcher: &'s Searcher) -> anyhow::Result<BudgetTokenizer<'s>> {
    match trace.assembly.config.tokenizer.as_str() {
        name if name.starts_with("model:") => options::tokenizer("model", searcher),
        name => options::tokenizer(name, searcher),
    }
}

/// The collection of the trace at a generation.
pub(super) fn searcher(
    invocation: &Invocation,
    path: &Path,
    trace: &ContextTrace,
    model: Option<String>,
    device: DeviceChoice,
    at: At,
) -> anyhow::Result<Searcher> {
    let global = &invocation.cli.global;
    let folder =
        if invocation.names_collection { global.collection.clone() } else { PathBuf::from(&trace.collection.folder) };
    let generation = trace.collection.generation;
    let is_its_own = matches!(at, At::Generation(asked) if asked == generation);
    let (access, threads) = (global.access.clone(), global.threads);
    let open = SearcherOptions { model, access, device, threads, at, ..SearcherOptions::default() };
    let searcher = Searcher::open(&folder, open).map_err(|error| {
        let way_out = match &error {
            Error::Collection(CollectionError::NotFound { .. }) => format!(
                "{}: its collection is not at {}; say where it is now with --collection DIR",
                path.display(),
                folder.display()
            ),
            Error::Collection(CollectionError::UnknownGeneration { .. }) if is_its_own => format!(
                "{}: generation {generation} of {} is gone; replay it on another one with --latest or --generation N",
                path.display(),
                folder.display()
            ),
            _ => return anyhow::Error::from(error),
        };
        anyhow::Error::from(error).context(way_out)
    })?;
    searcher.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    Ok(searcher)
}
