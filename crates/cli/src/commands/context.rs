//! `cento context`: the cited context that answers a question, inside its budget.

use std::time::Instant;

use cento_engine::api::{self, Budget, Settled};
use cento_engine::reasons::number;
use cento_engine::trace::{Certificate, EndpointRecord};
use cento_engine::{Asked, Cancel, Scan, Why, trace};

use crate::args::{Context, Global};
use crate::commands::traces;
use crate::exit_code::Outcome;
use crate::output::Readers;
use crate::settings::Invocation;
use crate::{options, output, policy_file};

/// The request that a command makes, of its flags and its policy file.
pub(crate) fn request(args: &Context, global: &Global) -> anyhow::Result<api::ContextRequest> {
    let searched = options::asked(options::query(&args.query)?, 1, &args.retrieval, Scan::Auto);
    searched.resolve()?; // a filter that is none is said before a file is read
    let ef = options::ef(args.ef, searched.candidates)?;
    let asked = policy_file::read(args.policy.as_deref())?;
    let (strategy, budget) = asked.only(args.strategy, args.budget)?;
    if budget.is_none() && !global.quiet {
        eprintln!("budget: {} tokens (default)", Budget::default());
    }
    Ok(api::ContextRequest {
        query: searched.query,
        queries: args.queries.clone(),
        budget: budget.unwrap_or_default(),
        strategy: strategy.unwrap_or_default(),
        policy: asked.policy,
        tokenizer: args.tokenizer.clone(),
        format: args.format,
        order: args.order,
        marks: args.marks,
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        candidates: searched.candidates,
        mode: searched.mode,
        fusion: searched.fusion,
        weights: searched.weights,
        links: searched.links,
        phrases: searched.phrases,
        scan: searched.scan,
        ef,
        find_vectors: searched.find_vectors,
        score_vectors: searched.score_vectors,
        within: searched.within,
        filter: searched.filter,
        rerank: options::rerank(&args.rerank, args.rerank_time.rerank_seconds),
        allow_partial: args.shards.allow_partial,
    })
}

/// The curve on stdout: a line for each budget that was solved.
fn show(answer: &api::CurveAnswer, global: &Global) -> anyhow::Result<Outcome> {
    let api::CurveAnswer { budget_tokens, tokenizer, curve, .. } = answer;
    if global.json {
        output::json(answer)?;
    } else {
        let rows = curve.solved.iter().map(|solved| {
            let Certificate { value, gap, .. } = solved.certificate;
            let bound = curve.bound(solved.tokens);
            let bar = "#".repeat(Budget::share(curve, solved.tokens).map_or(0, |share| (share / 4.0).round() as usize));
            let knee = if curve.knee == Some(solved.tokens) { "knee" } else { "" };
            vec![
                solved.tokens.to_string(),
                number(value),
                number(bound),
                format!("{:.2}", gap * 100.0),
                format!("{bar:25} {knee}"),
            ]
        });
        println!("{}", output::table(&["tokens", "value", "at most", "gap %", "share of the value"], rows));
    }
    if !global.quiet {
        match curve.knee {
            Some(knee) => eprintln!(
                "{} budgets bring more than one token less; `at most` leaves aside that chunks may say the same; knee at {knee} tokens ({})",
                curve.points.len(),
                tokenizer
            ),
            None => eprintln!("no chunk fits into {budget_tokens} tokens, or none is worth anything"),
        }
    }
    Ok(if curve.points.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

/// Knowledge about the choice: how near it is to the best, or why it is none.
fn judged(context: &cento_engine::Context) -> String {
    let left = context.trace.config.budget_tokens.saturating_sub(context.n_tokens);
    let stopped = context.trace.records.iter().any(|record| record.final_reason == trace::Reason::Unlikely);
    match stopped && !context.citations.is_empty() {
        true => format!("{}; {left} tokens are left, as nothing else is likely", bounded(context)),
        false => bounded(context),
    }
}

fn bounded(context: &cento_engine::Context) -> String {
    let manifest = &context.trace.manifest;
    let unsupported = context.trace.records.iter().find_map(|record| record.step_details.min_support);
    match (&manifest.certificate, &manifest.support, unsupported) {
        (_, Some(support), Some(least)) => {
            format!(": the collection has no answer (support {}, below {})", number(support.support), number(least))
        }
        _ if manifest.outcome == trace::Outcome::NothingFits => String::new(),
        (Some(certificate), ..) if manifest.outcome != trace::Outcome::NothingRelevant => match certificate.gap {
            0.0 => "; no choice is worth more".to_owned(),
            gap => format!("; at most {:.2} % below the best choice", gap * 100.0),
        },
        _ if manifest.outcome == trace::Outcome::NothingRelevant => nothing(&context.trace),
        _ => String::new(),
    }
}

/// The reason that kept out the best candidate.
fn nothing(trace: &trace::Trace) -> String {
    match trace.records.first() {
        Some(best) => format!("; the best candidate, {}: {}", best.chunk_id, Why::of(trace, best).because),
        None => "; nothing was found".to_owned(),
    }
}

pub(crate) fn execute(args: &Context, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    let request = request(args, global)?;
    let endpoint = options::endpoint(&args.endpoint, invocation.endpoint_author)?;
    let rerankers = options::rerankers(&args.rerank, &args.retrieval, invocation)?;
    let (service, _, place) =
        options::service(invocation, &args.retrieval, &args.shards, Some(&request.tokenizer), rerankers)?;
    service.ask(place.which(), &request, endpoint.as_ref(), &Cancel::default(), |asked| answer(args, global, asked))
}

fn answer(args: &Context, global: &Global, asked: &Asked<'_>) -> anyhow::Result<Outcome> {
    let searched = asked.timings()?;
    options::remark_missing(asked.searcher().missing());
    options::remark_device(global, asked.searcher());
    let start = Instant::now();
    if args.budget_curve {
        return show(&asked.curve(api::CURVE_SOLVED)?, global);
    }
    let Settled { budget_tokens, share } = asked.settle()?;
    if let Some(share) = share.filter(|_| !global.quiet) {
        eprintln!("{budget_tokens} of {} tokens hold {share:.0} % of the value", asked.most_tokens());
    }
    let context = asked.context(budget_tokens)?;
    let assembled = start.elapsed();
    options::remark_filter(global, asked.filtered()?.as_ref());
    if args.retrieval.timings {
        super::search::print_timings(&searched);
        eprintln!("assemble {:.2} ms", assembled.as_secs_f64() * 1e3);
    }
    if let Some(path) = &args.trace {
        output::whole_file(path, &asked.trace(&context)?.json(), Readers::Owner)?;
    }
    if args.explain {
        explain(&context.trace);
    }
    if global.json {
        output::json(&asked.answer(&context)?)?;
    } else {
        output::text(&format!("{}\n", context.text));
    }
    if !global.quiet {
        if !global.json {
            output::remark_with_links(&output::sources(asked.searcher(), &context.citations)?);
        }
        remark(&context);
    }
    Ok(if context.citations.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

/// Candidates that are not delivered and yet explained, the first in the walk; the trace has all.
const LOST_SHOWN: usize = 10;

/// Writes to stderr why the delivered chunks are delivered and the next ones are not, and the repair behind them.
pub(crate) fn explain(trace: &trace::Trace) {
    if let Some(repair) = &trace.manifest.repair {
        eprintln!("{}", traces::repair::told(repair, trace).trim_end());
    }
    let whys = trace.records.iter().map(|record| Why::of(trace, record));
    let (delivered, lost): (Vec<Why>, Vec<Why>) = whys.partition(Why::is_delivered);
    let titles = traces::repair::titles(trace);
    for why in delivered.iter().chain(lost.iter().take(LOST_SHOWN)) {
        let decided = if why.is_delivered() { "delivered    " } else { "not delivered" };
        let id = why.record.chunk_id.as_str();
        let title = titles.get(id).map_or_else(String::new, |title| format!(" ({title})"));
        eprintln!("{decided} {id}{title}: {}", why.because);
    }
    if lost.len() > LOST_SHOWN {
        eprintln!("and {} more that are not delivered", lost.len() - LOST_SHOWN);
    }
}

/// Writes the remarks on a context to stderr.
pub(crate) fn remark(context: &cento_engine::Context) {
    context.trace.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    eprintln!(
        "{} of {} tokens ({}), {}{}",
        context.n_tokens,
        context.budget_tokens,
        context.tokenizer,
        output::counted(context.citations.len() as u64, "citation"),
        judged(context)
    );
    if let Some(least) = context.trace.manifest.least_budget {
        eprintln!("nothing of use fits: the least budget that delivers something is {least} tokens");
    }
    if let Some(EndpointRecord { host, model, n_calls, n_found, n_dropped, .. }) = &context.trace.manifest.endpoint {
        let calls = output::counted(*n_calls as u64, "call");
        eprintln!("endpoint {host} ({model}): {calls}, {n_dropped} of {n_found} findings dropped");
    }
}
