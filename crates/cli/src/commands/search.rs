//! `cento search`: the best chunks for a query.

use std::path::Path;

use cento_engine::api::Request as _;
use cento_engine::{Cancel, NO_LIKELIHOODS, Scan, Searcher, Service, Timings, Which, api};

use crate::args::{Global, ResultFormat, Search};
use crate::exit_code::Outcome;
use crate::settings::Invocation;
use crate::{options, output};

pub(crate) fn execute(args: &Search, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    if args.vector.as_deref() == Some(Path::new("-")) && args.query.as_deref() == Some("-") {
        return Err(options::usage("--vector -: stdin has the question already"));
    }
    let query = args.query.as_deref().map(options::query).transpose()?.unwrap_or_default();
    let asked = options::asked(query, args.k, &args.retrieval, Scan::Auto);
    let ef = options::ef(args.ef, asked.candidates)?;
    let rerank = options::rerank(&args.rerank, args.rerank_time.rerank_seconds);
    let request = api::SearchRequest { ef, min_score: args.min_score, rerank, explain: args.explain, ..asked };
    request.resolve()?; // a filter that is none is said before the collection is opened
    request.check()?; // and a time that is none, before a model is loaded
    let rerankers = options::rerankers(&args.rerank, &args.retrieval, invocation)?;
    let (service, searcher, place) = options::service(invocation, &args.retrieval, &args.shards, None, rerankers)?;
    let request = api::SearchRequest { allow_partial: args.shards.allow_partial, ..request };
    let asked = (&service, &*searcher, place.which());
    let Some(path) = &args.vector else { return answer(args, global, asked, &request, true) };
    let vectors = options::vectors(path, &searcher)?;
    let is_alone = vectors.len() == 1;
    let mut outcome = Outcome::Nothing;
    for (row, vector) in vectors.into_iter().enumerate() {
        if !is_alone && args.format == ResultFormat::Table && !global.json {
            println!("vector {row}");
        }
        let request = api::SearchRequest { vector: Some(vector), ..request.clone() };
        if answer(args, global, asked, &request, is_alone)? == Outcome::Done {
            outcome = Outcome::Done;
        }
    }
    Ok(outcome)
}

/// Answers one request. Of several, the hits of one are not told from those of another unless an answer is a line.
fn answer(
    args: &Search,
    global: &Global,
    (service, searcher, which): (&Service, &Searcher, Which<'_>),
    request: &api::SearchRequest,
    is_alone: bool,
) -> anyhow::Result<Outcome> {
    let (response, timings) = service.search_timed(which, request, &Cancel::default())?;
    options::remark_missing(&response.missing);
    options::remark_device(global, searcher);
    options::remark_filter(global, response.filter.as_ref());
    // Those of the collection were said when it was opened; that a small one has no likelihoods, to who asks why.
    let own = response.warnings.iter().skip(searcher.warnings().len() + response.missing.len());
    let told = own.filter(|warning| !global.quiet && (args.explain || !warning.starts_with(NO_LIKELIHOODS)));
    told.for_each(|warning| eprintln!("warning: {warning}"));
    if args.retrieval.timings {
        print_timings(&timings);
    }
    match if global.json { ResultFormat::Json } else { args.format } {
        ResultFormat::Json => output::json(&response)?,
        ResultFormat::Jsonl if !is_alone => output::json(&response)?,
        ResultFormat::Jsonl => response.hits.iter().try_for_each(output::json)?,
        ResultFormat::Table => {
            for hit in &response.hits {
                print!("{}", output::hit(hit, output::width()));
                print!("{}", output::parts(hit, response.hits[0].score));
                if args.explain {
                    print!("{}", output::explanation(hit));
                }
            }
        }
    }
    if response.hits.is_empty() {
        if !global.quiet {
            let admits_none = response.filter.is_some_and(|filtered| filtered.n_admitted == 0);
            eprintln!("nothing found{}", if admits_none { ": the filter admits no document" } else { "" });
        }
        return Ok(Outcome::Nothing);
    }
    Ok(Outcome::Done)
}

pub(crate) fn print_timings(timings: &Timings) {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    eprintln!(
        "embed {:.2} ms, dense {:.2} ms, lexical {:.2} ms, fuse {:.2} ms, {}texts {:.2} ms",
        ms(timings.embed),
        ms(timings.dense),
        ms(timings.lexical),
        ms(timings.fuse),
        if timings.rerank.is_zero() { String::new() } else { format!("rerank {:.2} ms, ", ms(timings.rerank)) },
        ms(timings.texts)
    );
}
