//! `cento diff`: what two traces differ in.

use std::fmt::Write as _;

use cento_engine::{ContextTrace, Decided, Difference, TraceComparison};

use crate::args::{Diff, Global};
use crate::exit_code::Outcome;
use crate::output;

/// Undelivered chunks that are named; the others are counted. `--json` has all.
const SHOWN: usize = 10;

pub(crate) fn execute(args: &Diff, global: &Global) -> anyhow::Result<Outcome> {
    let (before, after) = (ContextTrace::read(&args.before)?, ContextTrace::read(&args.after)?);
    let comparison = before.compare(&after);
    if global.json {
        output::json(&comparison)?;
    } else {
        print!("{}", told(&comparison));
    }
    Ok(if comparison.same { Outcome::Done } else { Outcome::Nothing })
}

fn told(comparison: &TraceComparison) -> String {
    let TraceComparison { settings, totals, only_before, only_after, delivered_before, delivered_after, .. } =
        comparison;
    let mut text = String::new();
    changes(&mut text, "settings", settings);
    changes(&mut text, "totals", totals);
    list(&mut text, "delivered by the first alone", delivered_before, usize::MAX);
    list(&mut text, "delivered by the second alone", delivered_after, usize::MAX);
    list(&mut text, "candidates of the first alone", only_before, SHOWN);
    list(&mut text, "candidates of the second alone", only_after, SHOWN);
    let is_shown = |decided: &&Decided| decided.before.is_delivered() != decided.after.is_delivered();
    let (shown, others): (Vec<&Decided>, Vec<&Decided>) = comparison.decisions.iter().partition(is_shown);
    if !comparison.decisions.is_empty() {
        let _ = writeln!(text, "decisions ({})", comparison.decisions.len());
    }
    for Decided { chunk_id, before, after } in shown.into_iter().chain(others.iter().take(SHOWN).copied()) {
        let _ = writeln!(text, "  {chunk_id}\n    first    {}\n    second   {}", before.because, after.because);
    }
    if others.len() > SHOWN {
        let _ = writeln!(text, "  and {} that neither delivers", others.len() - SHOWN);
    }
    let _ = writeln!(text, "the contexts are {}", if comparison.same { "the same" } else { "not the same" });
    text
}

fn changes(text: &mut String, what: &str, differences: &[Difference]) {
    if !differences.is_empty() {
        let _ = writeln!(text, "{what}");
    }
    for Difference { what, before, after } in differences {
        let _ = writeln!(text, "  {what}: {before} -> {after}");
    }
}

fn list(text: &mut String, what: &str, ids: &[String], shown: usize) {
    if ids.is_empty() {
        return;
    }
    let _ = writeln!(text, "{what} ({})", ids.len());
    for id in ids.iter().take(shown) {
        let _ = writeln!(text, "  {id}");
    }
    if ids.len() > shown {
        let _ = writeln!(text, "  and {} more", ids.len() - shown);
    }
}
