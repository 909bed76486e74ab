//! One file a verb; each takes its validated options, calls the engine, and writes the answer.

use std::process;

use crate::args::Command;
use crate::exit_code::{INTERRUPTED, Outcome};
use crate::settings::Invocation;

mod index;
mod search;
mod context;
mod replay;
mod why;
mod why_not;
mod diff;
mod run;
mod eval;
mod eval_context;
mod compare;
mod priors;
mod fuse;
mod embed;
mod cache;
mod bench;
mod bench_embed;
mod bench_scan;
mod documents;
mod compact;
mod snapshot;
mod repair;
mod inspect;
mod health;
mod model;
mod config;
mod trust;
mod schema;

/// Runs the command.
pub(crate) fn execute(invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    rayon::ThreadPoolBuilder::new().num_threads(global.threads).build_global()?;
    match &invocation.cli.command {
        Command::Index(args) => index::execute(args, global),
        Command::Search(args) => search::execute(args, global),
        Command::Context(args) => context::execute(args, invocation),
        Command::Replay(args) => replay::execute(args, invocation),
        Command::Why(args) => why::execute(args, global),
        Command::WhyNot(args) => why_not::execute(args, invocation),
        Command::Diff(args) => diff::execute(args, global),
        Command::Run(args) => run::execute(args, global),
        Command::Eval(args) => eval::execute(args, global),
        Command::EvalContext(args) => eval_context::execute(args, global),
        Command::Compare(args) => compare::execute(args, global),
        Command::Priors(args) => priors::execute(args, global),
        Command::Fuse(args) => fuse::execute(args, global),
        Command::Embed(args) => embed::execute(args, global),
        Command::Cache(args) => cache::execute(args, global),
        Command::Bench(args) => bench::execute(args, global),
        Command::Get(args) => documents::get(args, global),
        Command::List(args) => documents::list(args, global),
        Command::Fields => documents::fields(global),
        Command::Delete(args) => documents::delete(args, global),
        Command::Inspect(args) => inspect::execute(args, global),
        Command::Compact(args) => compact::execute(args, global),
        Command::Snapshot(args) => snapshot::execute(args, global),
        Command::Status(args) => health::status(args, global),
        Command::Doctor => health::doctor(global),
        Command::Repair(args) => repair::execute(args, global),
        Command::Model(args) => model::execute(args, global),
        Command::Config(args) => config::execute(args, invocation),
        Command::Trust(args) => trust::execute(args, global),
        Command::Schema(args) => schema::execute(args),
        Command::Completions(args) => config::completions(args),
    }
}

/// Ctrl-C ends the process at once: what was committed stays, and a rerun goes on from there.
fn end_on_interrupt(what_stays: &'static str) -> anyhow::Result<()> {
    ctrlc::set_handler(move || {
        eprintln!("\ninterrupted; {what_stays}");
        process::exit(i32::from(INTERRUPTED));
    })?;
    Ok(())
}
