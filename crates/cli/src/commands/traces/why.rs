//! `cento why`: what a trace knows of a chunk, in words.

use std::fmt::Write as _;

use cento_engine::api::WhyAnswer;
use cento_engine::reasons::{Why, number};
use cento_engine::trace::{Decision, Record, StepDetails, Trace};
use cento_engine::{AssembledTrace, At, Change, ContextTrace, Moved, Sought, Undone};

use crate::args::{self, Global};
use crate::exit_code::Outcome;
use crate::output::{self, counted, name};
use crate::settings::Invocation;

pub(crate) fn execute(args: &args::Why, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    if let Some(trace) = AssembledTrace::read(&args.trace)? {
        return show(&trace.why(&args.chunk)?, &trace.assembly, global);
    }
    let trace = ContextTrace::read(&args.trace)?;
    let answer = match tried(args, invocation, &trace) {
        Ok(answer) => answer,
        // What the trace knows needs no collection; only what a change would do does.
        Err(error) => WhyAnswer::untried(&trace, &args.chunk, format!("{error:#}"))?,
    };
    show(&answer, &trace.assembly, global)
}

fn show(answer: &WhyAnswer, assembly: &Trace, global: &Global) -> anyhow::Result<Outcome> {
    if let Some(reason) = answer.untried.as_ref().filter(|_| !global.quiet) {
        eprintln!("no change was tried: {reason}");
    }
    if global.json {
        output::json(answer)?;
        return Ok(Outcome::Done);
    }
    for (n, why) in answer.chunks.iter().enumerate() {
        print!("{}{}", if n > 0 { "\n" } else { "" }, explained(&why.why));
        if let Some(undone) = &why.undone {
            print!("{}", changes(undone));
        }
    }
    if let Some(repair) = &answer.repair {
        print!("\n{}", super::repair::told(repair, assembly));
    }
    Ok(Outcome::Done)
}

/// The answer with changes that were tried on the trace's collection.
fn tried(args: &args::Why, invocation: &Invocation, trace: &ContextTrace) -> anyhow::Result<WhyAnswer> {
    let (model, device) = (args.model.clone(), args.device.device);
    let at = At::Generation(trace.collection.generation);
    let searcher = super::replay::searcher(invocation, &args.trace, trace, model, device, at)?;
    let tokenizer = super::replay::tokenizer(trace, &searcher)?;
    Ok(WhyAnswer::tried(trace, &args.chunk, &searcher, &tokenizer)?)
}

/// A line for each change that undoes a decision, and one for what does not.
pub(crate) fn changes(undone: &Undone) -> String {
    let mut text = String::new();
    for (n, Change { settings }) in undone.changes.iter().enumerate() {
        let told: Vec<String> = settings.iter().map(moved).collect();
        let _ = writeln!(text, "  {}  {}", if n == 0 { "undo it by" } else { "or        " }, told.join(" with "));
    }
    if !undone.not_found.is_empty() {
        let told = undone.not_found.iter().map(|Sought { setting, up_to }| match up_to {
            Some(up_to) => format!("{} up to {up_to}", flag(setting)),
            None => flag(setting),
        });
        let _ = writeln!(text, "  not by     {}", told.collect::<Vec<_>>().join("; "));
    }
    if undone.n_runs > 0 {
        let were = if undone.n_runs == 1 { "was" } else { "were" };
        let _ =
            writeln!(text, "  tried      {} {were} assembled to find this", counted(undone.n_runs as u64, "context"));
    }
    text
}

/// A setting that was moved, as the command line takes it.
fn moved(Moved { setting, value, instead }: &Moved) -> String {
    let instead = instead.as_ref().map_or_else(String::new, |instead| format!(" instead of {instead}"));
    match (setting.strip_prefix("policy."), setting.as_str(), value.is_empty()) {
        (Some(key), ..) => format!("{key} = {value} in the policy{instead}"),
        (None, "scan", _) => "--exact".to_owned(),
        (None, name, true) => format!("no --{name}{instead}"),
        (None, name, false) => format!("--{name} {value}{instead}"),
    }
}

fn flag(setting: &str) -> String {
    match setting.strip_prefix("policy.") {
        Some(key) => key.to_owned(),
        None => format!("--{setting}"),
    }
}

/// A chunk's way, stage by stage.
pub(crate) fn explained(why: &Why) -> String {
    let record = &why.record;
    let decision = if record.final_decision == Decision::Selected { "delivered" } else { "not delivered" };
    let mut text = format!("{}: {decision} ({})\n", record.chunk_id, name(&record.final_reason));
    let _ = writeln!(
        text,
        "  section    {}, {} encoder tokens",
        record.section.replace('\u{1f}', " > "),
        record.token_count
    );
    let _ = writeln!(
        text,
        "  found      {}",
        if record.is_neighbor {
            "no: it stands beside what was found, or a name led to it".to_owned()
        } else {
            number(record.retrieval_score)
        }
    );
    text += &output::contributions(&record.arms, 13);
    let _ = writeln!(text, "  {}", score(record));
    if let Some(bridge) = &record.bridge {
        let from = bridge.from.as_deref().unwrap_or("the question");
        let _ = writeln!(text, "  bridge     {} before {from} named its document", number(bridge.before));
    }
    if !record.meets.is_empty() {
        let _ = writeln!(text, "  meets      {}", record.meets.join(", "));
    }
    let _ = writeln!(text, "  place      {}, decided at the stage {}", record.rank, name(&record.stage));
    for line in gates(record) {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "  because    {}", why.because);
    text
}

/// The score with its parts; of a value in tokens, the likelihood that it is made of.
fn score(record: &Record) -> String {
    let name = if record.step_details.value_tokens.is_some() { "likelihood" } else { "score     " };
    let mut sum = number(record.relevance);
    let is_alone = record.prior == 0.0 && record.boost == 0.0 && record.len_penalty >= 1.0;
    for (what, part) in [("prior", record.prior), ("boosts", record.boost)] {
        if part != 0.0 {
            let _ = write!(sum, " {} {what} {}", if part < 0.0 { "-" } else { "+" }, number(part.abs()));
        }
    }
    if record.len_penalty < 1.0 {
        let by = if record.score_raw < 0.0 { "/" } else { "*" };
        sum = format!("({sum}) {by} length penalty {}", number(record.len_penalty));
    }
    let tf = record.tf.map_or_else(String::new, |tf| format!(", tf {tf}"));
    match is_alone {
        true => format!("{name} {sum}{tf}"),
        false => format!("{name} {} = {sum}{tf}", number(record.score_final)),
    }
}

/// A line for each gate that had numbers.
fn gates(record: &Record) -> Vec<String> {
    let details: &StepDetails = &record.step_details;
    let mut lines = Vec::new();
    if let Some(needed) = details.tokens_needed {
        let least = if details.estimated { "at least " } else { "" };
        let (used, left) = (details.tokens_used.unwrap_or(0), details.tokens_left.unwrap_or(0));
        lines.push(format!("tokens     {least}{needed}, beside {used} used and {left} left"));
    }
    if let (Some(used), Some(needed), Some(limit)) =
        (details.section_used, details.section_needed, details.section_limit)
    {
        lines.push(format!("section    {needed} tokens, beside {used} of its {limit}"));
    }
    if let Some(overlap) = details.overlap {
        let cosine = details.cosine.map_or_else(String::new, |cosine| format!(", cosine {}", number(cosine)));
        let partner = details.partner.as_ref().map_or_else(String::new, |partner| format!(", with {partner}"));
        lines.push(format!("overlap    {}{cosine}{partner}", number(overlap)));
    }
    if let Some(value) = details.value {
        let needed = details.value_needed.map_or_else(String::new, |needed| format!("; {} needed", number(needed)));
        lines.push(format!("value      {}{}{needed}", number(value), worth(record, value)));
    }
    lines
}

/// The parts of a value in tokens: the likelihood of each token that the chunk costs alone, and the needs of the
/// question that it alone meets.
fn worth(record: &Record, value: f64) -> String {
    let Some(tokens) = record.step_details.value_tokens else { return String::new() };
    let likely = record.score_final * tokens as f64;
    let needs = value - likely;
    let needs = if needs.abs() < 1e-6 { String::new() } else { format!(" + {} for needs it meets", number(needs)) };
    format!(" = likelihood {} * {tokens} tokens{needs}", number(record.score_final))
}
