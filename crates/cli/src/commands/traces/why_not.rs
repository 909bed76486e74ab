//! `cento why-not`: a document's way from the query to the context, and where it was lost.

use std::fmt::Write as _;

use cento_engine::reasons::number;
use cento_engine::{Cancel, Mode, Standing, WhereLost, WhyNot};

use crate::args;
use crate::exit_code::Outcome;
use crate::output::Readers;
use crate::settings::Invocation;
use crate::{options, output};

/// Candidates of a document that are explained; `--json` has all.
const SHOWN: usize = 3;

pub(crate) fn execute(args: &args::WhyNot, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    let context = &args.context;
    let request = crate::commands::context::request(context, global)?;
    let rerankers = options::rerankers(&context.rerank, &context.retrieval, invocation)?;
    let (service, searcher, place) =
        options::service(invocation, &context.retrieval, &context.shards, Some(&request.tokenizer), rerankers)?;
    let endpoint = options::endpoint(&context.endpoint, invocation.endpoint_author)?;
    service.ask(place.which(), &request, endpoint.as_ref(), &Cancel::default(), |asked| {
        let answer = asked.why_not(&args.doc)?;
        options::remark_missing(&answer.missing);
        options::remark_device(global, &searcher);
        if context.trace.is_some() || context.explain {
            let made = asked.context(asked.most_tokens())?;
            if let Some(path) = &context.trace {
                output::whole_file(path, &asked.trace(&made)?.json(), Readers::Owner)?;
            }
            if context.explain {
                crate::commands::context::explain(&made.trace);
            }
        }
        if global.json {
            output::json(&answer)?;
        } else {
            print!("{}", followed(&answer, request.mode));
        }
        Ok(Outcome::Done)
    })
}

/// A line or more for each stage, then where it was lost.
fn followed(answer: &WhyNot, mode: Mode) -> String {
    let WhyNot { id, n_chunks, candidates, lexical, dense, fused, assembly, lost, .. } = answer;
    let mut text = format!("{id}: {}\n", output::counted(*n_chunks as u64, "chunk"));
    if lost.as_ref().is_none_or(|lost| !["scope", "filter", "phrases"].contains(&lost.stage)) {
        let _ = match (mode, lexical) {
            (Mode::Dense, _) => writeln!(text, "lexical      not asked"),
            (_, Some(at)) => writeln!(text, "lexical      {}", place(at, "BM25", *candidates)),
            (_, None) => writeln!(text, "lexical      no chunk has a term of the query"),
        };
        if let Some(explanation) = &answer.terms {
            let of = |matched: bool| {
                let terms = explanation.terms.iter().filter(|term| (term.tf > 0.0) == matched);
                terms.map(|term| format!("{} (idf {})", term.term, number(term.idf))).collect::<Vec<_>>()
            };
            for (what, terms) in [("matched", of(true)), ("missing", of(false))] {
                if !terms.is_empty() {
                    let _ = writeln!(text, "             {what}: {}", terms.join(", "));
                }
            }
        }
        let _ = match (mode, dense) {
            (Mode::Lexical, _) => writeln!(text, "dense        not asked"),
            (_, Some(at)) => writeln!(text, "dense        {}", place(at, "cosine", *candidates)),
            (_, None) => writeln!(text, "dense        no vector of it was compared"),
        };
        let _ = match fused {
            Some(at) => writeln!(text, "fusion       {}", place(at, "score", at.n_ranked)),
            None => writeln!(text, "fusion       no arm brought it"),
        };
        let _ = match assembly.as_slice() {
            [] => writeln!(text, "assembly     none of its chunks was a candidate"),
            [_] => writeln!(text, "assembly     a candidate"),
            chunks => writeln!(text, "assembly     {} candidates, of which first in the walk", chunks.len()),
        };
        for why in assembly.iter().take(SHOWN) {
            let told = super::why::explained(why);
            told.lines().for_each(|line| text += &format!("             {line}\n"));
        }
    }
    text += &match lost {
        None => "delivered\n".to_owned(),
        Some(WhereLost { stage, because, undone }) => {
            format!("lost at {stage}: {because}\n{}", super::why::changes(undone))
        }
    };
    text
}

fn place(at: &Standing, figure: &str, depth: usize) -> String {
    let Standing { chunk_id, rank, n_ranked, score, score_needed } = at;
    let is_in = if *rank <= depth {
        String::new()
    } else {
        format!(", not among the first {depth}, which end at {}", number(*score_needed))
    };
    format!("place {rank} of {n_ranked}: {chunk_id}, {figure} {}{is_in}", number(*score))
}
