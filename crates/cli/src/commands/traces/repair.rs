//! A repair of `seal` as people read it: every loop with what was known, what was missing, what was asked, who replaced
//! whom on which scores; and how it ended.

use std::collections::HashMap;
use std::fmt::Write as _;

use cento_engine::reasons::number;
use cento_engine::seal::{Gap, Ledger, LoopRecord, Needs, Relation, Score, Stopped, Swap, Verdict};
use cento_engine::trace::Trace;
use cento_engine::{SealConfig, SealOutcome};

use crate::output::{counted, name};

/// Things of one kind that are named in a line or a list; the others are counted. The trace has all.
const SHOWN: usize = 8;

/// The whole story, from the trace of its context.
pub(crate) fn told(repair: &SealOutcome, trace: &Trace) -> String {
    let story = Story { settings: &trace.config.policy.seal, titles: titles(trace) };
    let SealOutcome { kept, needs, loops, verdict, gaps, ledger, stopped, lost, .. } = repair;
    let mut text = format!(
        "repair       {} of at most {}, {} kept, {} looked at and not kept; {}\n",
        counted(loops.len() as u64, "loop"),
        story.settings.loops,
        counted(kept.len() as u64, "passage"),
        lost.len(),
        match stopped {
            Stopped::Loops => "ended with the last loop",
            Stopped::Sufficient => "ended as what is kept is sufficient",
            Stopped::Stuck => "ended as there was nothing left to ask",
        }
    );
    let _ = writeln!(text, "  asked for  {}", asked_for(needs));
    let mut before: &[String] = &[];
    for of in loops {
        let _ = writeln!(text, "loop {}", of.number);
        story.kept(&mut text, &of.kept, before, &of.ledger);
        story.judged(&mut text, &of.verdict, &of.gaps);
        searched(&mut text, of);
        for swap in &of.swaps {
            story.swapped(&mut text, swap);
        }
        if of.swaps.is_empty() {
            let epsilon = number(story.settings.epsilon);
            let _ = writeln!(text, "  swaps      none: nothing was better by more than epsilon {epsilon}");
        }
        before = &of.kept;
    }
    let _ = writeln!(text, "end");
    story.kept(&mut text, kept, before, ledger);
    story.judged(&mut text, verdict, gaps);
    text
}

/// The titles of chunks by their ids: the top heading of each, where it is not the name of its document.
pub(crate) fn titles(trace: &Trace) -> HashMap<&str, &str> {
    let titled = trace.records.iter().filter_map(|record| {
        let (document, title) = record.section.split_once('\u{1f}')?;
        (document != title && !title.is_empty()).then_some((record.chunk_id.as_str(), title))
    });
    titled.collect()
}

struct Story<'t> {
    settings: &'t SealConfig,
    titles: HashMap<&'t str, &'t str>,
}

impl Story<'_> {
    fn titled(&self, id: &str) -> String {
        self.titles.get(id).map_or_else(|| id.to_owned(), |title| format!("{id} ({title})"))
    }

    /// The kept passages, and what those of them say that were not kept before.
    fn kept(&self, text: &mut String, kept: &[String], before: &[String], ledger: &Ledger) {
        for (at, id) in kept.iter().enumerate() {
            let _ = writeln!(text, "  {}{}", if at == 0 { "kept       " } else { "           " }, self.titled(id));
        }
        let Ledger { entities, relations, qualifiers } = ledger;
        let (names, said, figures) = (entities.len(), relations.len(), qualifiers.len());
        let of = "date or number";
        let figures = if figures == 1 { format!("1 {of}") } else { format!("{figures} dates and numbers") };
        let _ = writeln!(
            text,
            "  ledger     {}, {}, {figures}",
            counted(names as u64, "name"),
            counted(said as u64, "statement")
        );
        let new: Vec<&Relation> = relations.iter().filter(|said| !before.contains(&said.passage)).collect();
        for Relation { head, relation, tail, passage, .. } in new.iter().take(SHOWN) {
            let _ = writeln!(text, "             {} ({passage})", flat(&format!("{head} | {relation} | {tail}")));
        }
        let others = new.len().saturating_sub(SHOWN);
        if others > 0 {
            let _ =
                writeln!(text, "             and {} more, which --trace writes", counted(others as u64, "statement"));
        }
    }

    /// The verdict and the gaps.
    fn judged(&self, text: &mut String, verdict: &Verdict, gaps: &[Gap]) {
        let Verdict { coverage, corroboration, contradictions, answer, sufficient } = verdict;
        let _ = writeln!(
            text,
            "  verdict    {}: covers {} of the question ({} is asked for), {} of that twice; answer {}; {}",
            if *sufficient { "sufficient" } else { "not sufficient" },
            number(*coverage),
            number(self.settings.coverage_min),
            number(*corroboration),
            if *answer > 0.0 { format!("in reach ({})", number(*answer)) } else { "not in reach".to_owned() },
            match contradictions.len() {
                0 => "nothing contradicts".to_owned(),
                n => counted(n as u64, "contradiction"),
            }
        );
        for of in contradictions.iter().take(SHOWN) {
            let (tails, passages) = (of.tails.join(" and "), of.passages.join(", "));
            let _ =
                writeln!(text, "             {} ({passages})", flat(&format!("{} {}: {tails}", of.head, of.relation)));
        }
        let missing: Vec<&Gap> = gaps.iter().filter(|gap| gap.weight > 0.0).collect();
        let told = missing.iter().map(|gap| {
            let from = if gap.clause.is_some() { "" } else { ", named by a kept passage" };
            format!("{} ({}{from}, {})", flat(&gap.text), name(&gap.missing), number(gap.weight))
        });
        let _ = writeln!(text, "  gaps       {}", named(told, missing.len()));
    }

    /// One replacement, with both scores and the terms they are made of.
    fn swapped(&self, text: &mut String, swap: &Swap) {
        let Swap { out, out_score, r#in: came, in_score, tokens_before, tokens_after, .. } = swap;
        let (new, epsilon) = (number(in_score.total), number(self.settings.epsilon));
        let tokens = format!("{tokens_before} -> {tokens_after} tokens");
        let _ = match (out, out_score) {
            (Some(out), Some(old)) => writeln!(
                text,
                "  swap       {} replaces {}: S(c) {new} > S(v) {} + epsilon {epsilon}; {tokens}\n             \
                 S(v) {}",
                self.titled(came),
                self.titled(out),
                number(old.total),
                terms(old),
            ),
            _ => writeln!(
                text,
                "  filled     {} takes room that was left: S(c) {new} > epsilon {epsilon}; {tokens}",
                self.titled(came),
            ),
        };
        let _ = writeln!(text, "             S(c) {}", terms(in_score));
    }
}

/// The micro-queries of a loop and what they found.
fn searched(text: &mut String, of: &LoopRecord) {
    for (query, found) in of.queries.iter().zip(&of.found) {
        let ids = if found.is_empty() {
            "nothing new".to_owned()
        } else {
            format!("{} new: {}", found.len(), named(found.iter().cloned(), found.len()))
        };
        let _ = writeln!(text, "  asked      \"{}\" for the {} -> {ids}", flat(&query.text), name(&query.missing));
    }
}

fn terms(score: &Score) -> String {
    let Score { gap, corr, nov, red, rel, .. } = *score;
    let [gap, corr, nov, red, rel] = [gap, corr, nov, red, rel].map(number);
    format!("gaps closed {gap}, confirmed {corr}, new names {nov}, repeated {red}, relevance {rel}")
}

fn asked_for(needs: &Needs) -> String {
    let told = needs.needs.iter();
    let told = told.map(|need| format!("{} ({}, {})", flat(&need.text), name(&need.kind), number(need.weight)));
    named(told, needs.needs.len())
}

/// The first few of `n`, and how many more there are.
fn named(names: impl Iterator<Item = String>, n: usize) -> String {
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    match n {
        0 => "none".to_owned(),
        n if n > SHOWN => format!("{shown}, and {} more", n - SHOWN),
        _ => shown,
    }
}

/// A part of a text in one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
