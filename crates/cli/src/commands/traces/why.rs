//! `cento why`: what a trace knows of a chunk, in words.

use std::fmt::Write as _;

use cento_engine::ContextTrace;
use cento_engine::api::WhyAnswer;
use cento_engine::reasons::{Why, number};
use cento_engine::trace::{Decision, Record, StepDetails};

use crate::args;
use crate::exit_code::Outcome;
use crate::output::{self, name};

pub(crate) fn execute(args: &args::Why, global: &args::Global) -> anyhow::Result<Outcome> {
    let trace = ContextTrace::read(&args.trace)?;
    let answer = WhyAnswer::new(&trace, &args.chunk)?;
    if global.json {
        output::json(&answer)?;
        return Ok(Outcome::Done);
    }
    for (n, why) in answer.chunks.iter().enumerate() {
        print!("{}{}", if n > 0 { "\n" } else { "" }, explained(why));
    }
    if let Some(repair) = &answer.repair {
        print!("\n{}", super::repair::told(repair, &trace.assembly));
    }
    Ok(Outcome::Done)
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
    let _ = writeln!(text, "  score      {}", score(record));
    if let Some(bridge) = &record.bridge {
        let from = bridge.from.as_deref().unwrap_or("the question");
        let _ = writeln!(text, "  bridge     {} before {from} named its document", number(bridge.before));
    }
    if !record.meets.is_empty() {
        let _ = writeln!(text, "  meets      {}", record.meets.join(", "));
    }
    let _ = writeln!(text, "  place      {}, decided at the stage {}", record.rank, name(&record.stage));
    for line in gates(&record.step_details) {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "  because    {}", why.because);
    for (n, change) in why.changes.iter().enumerate() {
        let _ = writeln!(text, "  {}  {change}", if n == 0 { "undo it by" } else { "or        " });
    }
    text
}

fn score(record: &Record) -> String {
    let mut sum = number(record.relevance);
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
    format!("{} = {sum}{tf}", number(record.score_final))
}

/// A line for each gate that had numbers.
fn gates(details: &StepDetails) -> Vec<String> {
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
        let needed = details.value_needed.map_or_else(String::new, |needed| format!(", {} needed", number(needed)));
        lines.push(format!("value      {}{needed}", number(value)));
    }
    lines
}
