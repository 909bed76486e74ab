//! One file a verb; each takes its validated options, calls the engine, and writes the answer.

mod index;
mod search;
mod context;
mod assemble;
mod traces;
mod evaluation;
mod embed;
mod cache;
mod bench;
mod devices;
mod collection;
mod model;
mod setup;
mod serve;

use self::collection::{adopt, compact, documents, health, inspect, repair, snapshot};
use self::evaluation::{compare, eval, eval_answers, eval_context, fuse, priors, run, tune};
use self::setup::{config, schema, trust};
use self::traces::{diff, replay, why, why_not};
use crate::args::Command;
use crate::exit_code::Outcome;
use crate::settings::Invocation;

/// Reads one file, as a child. The process is good for nothing else afterwards.
pub(crate) fn read() -> anyhow::Result<Outcome> {
    #[cfg(unix)]
    cento_engine::corpus::guard::serve()?;
    #[cfg(not(unix))]
    anyhow::bail!("this system has no way to confine a process");
    #[cfg(unix)]
    Ok(Outcome::Done)
}

/// Runs the command.
pub(crate) fn execute(invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    if matches!(invocation.cli.command, Command::Read) {
        return read(); // before there is a second thread
    }
    rayon::ThreadPoolBuilder::new().num_threads(global.threads).build_global()?;
    if let Some(name) = &invocation.named_model {
        model::say_chosen(name, global);
    }
    match &invocation.cli.command {
        Command::Index(args) => index::execute(args, invocation),
        Command::Search(args) => search::execute(args, invocation),
        Command::Context(args) => context::execute(args, invocation),
        Command::Assemble(args) => assemble::execute(args, global),
        Command::Replay(args) => replay::execute(args, invocation),
        Command::Why(args) => why::execute(args, invocation),
        Command::WhyNot(args) => why_not::execute(args, invocation),
        Command::Diff(args) => diff::execute(args, global),
        Command::Run(args) => run::execute(args, invocation),
        Command::Eval(args) => eval::execute(args, global),
        Command::EvalContext(args) => eval_context::execute(args, global),
        Command::EvalAnswers(args) => eval_answers::execute(args, invocation),
        Command::Compare(args) => compare::execute(args, global),
        Command::Priors(args) => priors::execute(args, global),
        Command::Tune(args) => tune::execute(args, global),
        Command::Fuse(args) => fuse::execute(args, global),
        Command::Embed(args) => embed::execute(args, global),
        Command::Cache(args) => cache::execute(args, global),
        Command::Bench(args) => bench::execute(args, global),
        Command::Devices => devices::execute(global),
        Command::Get(args) => documents::get(args, global),
        Command::List(args) => documents::list(args, global),
        Command::Fields => documents::fields(global),
        Command::Delete(args) => documents::delete(args, global),
        Command::Inspect(args) => inspect::execute(args, invocation),
        Command::Adopt(args) => adopt::execute(args, global),
        Command::Compact(args) => compact::execute(args, global),
        Command::Snapshot(args) => snapshot::execute(args, global),
        Command::Status(args) => health::status(args, global),
        Command::Read => read(),
        Command::Doctor => health::doctor(global),
        Command::Repair(args) => repair::execute(args, global),
        Command::Model(args) => model::execute(args, global),
        Command::Config(args) => config::execute(args, invocation),
        Command::Trust(args) => trust::execute(args, global),
        Command::Serve(args) => serve::serve(args, invocation),
        Command::Mcp(args) => serve::mcp(args, invocation),
        Command::Schema(args) => schema::execute(args),
        Command::Completions(args) => config::completions(args),
    }
}
