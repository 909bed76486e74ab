//! `cento context`: the cited context that answers a question, inside its budget.

use std::ops::Range;
use std::time::Instant;

use anyhow::Context as _;
use cento_engine::reasons::number;
use cento_engine::trace::{Certificate, EndpointRecord};
use cento_engine::{
    Citation, ContextRequest, ContextTrace, Curve, Filtered, Pool, Scan, SearchRequest, Searcher, Why, trace,
};

use crate::args::{Budget, Context, Global};
use crate::exit_code::Outcome;
use crate::settings::Invocation;
use crate::{options, output, policy_file};

/// Budgets at which `--budget-curve` solves the whole problem, evenly spread, beside the knee.
const N_SOLVED: usize = 10;

/// The context as an answer; the trace has a file of its own (`--trace`).
#[derive(serde::Serialize)]
struct Answer<'a> {
    version: u32,
    query: &'a str,
    context: &'a str,
    n_tokens: usize,
    budget_tokens: usize,
    tokenizer: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<Filtered>,
    generation: u64,
    model_fingerprint: &'a str,
    citations: Vec<Cited<'a>>,
    /// What the context says of itself: `whole`, `cut` or `nothing_relevant`.
    outcome: trace::Outcome,
    /// How near the choice is to the best; none where the strategy knows no bound.
    certificate: Option<&'a trace::Certificate>,
    /// How far the collection supports an answer; none where that cannot be told.
    support: Option<&'a trace::Support>,
    warnings: &'a [String],
}

/// The search that finds the candidates.
pub(super) fn search(args: &Context, query: String) -> anyhow::Result<SearchRequest> {
    let request = options::request(query, 1, &args.retrieval, Scan::Auto)?;
    Ok(SearchRequest { ef: options::ef(args.ef, request.candidates)?, ..request })
}

/// A citation, for readers who count bytes and for those who count characters.
#[derive(serde::Serialize)]
struct Cited<'a> {
    #[serde(flatten)]
    citation: &'a Citation,
    characters: Range<u64>,
}

fn cited<'a>(pool: &Pool<'_>, citation: &'a Citation) -> anyhow::Result<Cited<'a>> {
    Ok(Cited { citation, characters: pool.characters(citation)? })
}

/// The curve as an answer.
#[derive(serde::Serialize)]
struct CurveAnswer<'a> {
    version: u32,
    budget_tokens: usize,
    tokenizer: &'a str,
    #[serde(flatten)]
    curve: &'a Curve,
}

/// The curve on stdout: a line for each budget that was solved.
fn show(curve: &Curve, asked: &ContextRequest<'_>, global: &Global) -> anyhow::Result<Outcome> {
    if global.json {
        let (version, budget_tokens, tokenizer) = (output::JSON_VERSION, asked.budget_tokens, asked.tokenizer.name());
        output::json(&CurveAnswer { version, budget_tokens, tokenizer, curve })?;
    } else {
        let rows = curve.solved.iter().map(|solved| {
            let Certificate { value, gap, .. } = solved.certificate;
            let bound = curve.bound(solved.tokens);
            let bar = "#".repeat(share(curve, solved.tokens).map_or(0, |share| (share / 4.0).round() as usize));
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
                asked.tokenizer.name()
            ),
            None => eprintln!("no chunk fits into {} tokens, or none is worth anything", asked.budget_tokens),
        }
    }
    Ok(if curve.points.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

/// The share of what the curve reaches at most that a budget holds, in percent.
fn share(curve: &Curve, tokens: usize) -> Option<f64> {
    curve.points.last().map(|last| curve.bound(tokens) / last.value * 100.0)
}

/// What is known of the choice: how near it is to the best, or why it is none.
fn judged(context: &cento_engine::Context) -> String {
    let manifest = &context.trace.manifest;
    let unsupported = context.trace.records.iter().find_map(|record| record.step_details.min_support);
    match (&manifest.certificate, &manifest.support, unsupported) {
        (_, Some(support), Some(least)) => {
            format!(": the collection has no answer (support {}, below {})", number(support.support), number(least))
        }
        (Some(certificate), ..) if manifest.outcome != trace::Outcome::NothingRelevant => match certificate.gap {
            0.0 => "; no choice is worth more".to_owned(),
            gap => format!("; at most {:.2} % below the best choice", gap * 100.0),
        },
        _ if manifest.outcome == trace::Outcome::NothingRelevant => nothing(&context.trace),
        _ => String::new(),
    }
}

/// What kept out the best candidate.
fn nothing(trace: &trace::Trace) -> String {
    match trace.records.first() {
        Some(best) => format!("; the best candidate, {}: {}", best.chunk_id, Why::of(trace, best).because),
        None => "; nothing was found".to_owned(),
    }
}

pub(crate) fn execute(args: &Context, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    let query = options::query(&args.query)?;
    let request = search(args, query.clone())?;
    let asked = policy_file::read(args.policy.as_deref())?;
    let (strategy, budget) = asked.only(args)?;
    let endpoint = options::endpoint(&args.endpoint, invocation.endpoint_author)?;
    let searcher = options::searcher(global, &args.retrieval)?;
    let tokenizer = options::tokenizer(&args.tokenizer, &searcher)?;
    let most = ContextRequest {
        budget_tokens: budget.most(),
        tokenizer: &tokenizer,
        strategy,
        policy: &asked.policy,
        format: args.format,
        order: args.order,
        include: &args.include,
        exclude: &args.exclude,
        endpoint: endpoint.as_ref(),
    };
    let (pool, searched) = searcher.pool_timed(&request)?;
    options::remark_device(global, &searcher);
    let start = Instant::now();
    if args.budget_curve {
        return show(&pool.budget_curve(&most, N_SOLVED)?, &most, global);
    }
    let wanted = within(&pool, most, budget, global)?;
    let context = pool.context(&wanted)?;
    let assembled = start.elapsed();
    let filter = request.filter.as_ref().map(|filter| searcher.filtered(filter)).transpose()?;
    options::remark_filter(global, filter.as_ref());
    if args.retrieval.timings {
        super::search::print_timings(&searched);
        eprintln!("assemble {:.2} ms", assembled.as_secs_f64() * 1e3);
    }
    if let Some(path) = &args.trace {
        let trace = ContextTrace::new(&searcher, &request, &wanted, &context)?;
        std::fs::write(path, trace.json()).with_context(|| path.display().to_string())?;
    }
    if global.json {
        output::json(&answer(&query, &context, &pool, &searcher, filter)?)?;
    } else {
        println!("{}", context.text);
    }
    if !global.quiet {
        if !global.json {
            eprint!("{}", output::sources(&searcher, &context.citations)?);
        }
        remark(&context);
    }
    Ok(if context.citations.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

/// The request with the budget asked for, or with that of the curve's knee.
fn within<'r>(
    pool: &Pool<'_>,
    most: ContextRequest<'r>,
    budget: Budget,
    global: &Global,
) -> anyhow::Result<ContextRequest<'r>> {
    let Budget::Auto(most_tokens) = budget else { return Ok(most) };
    let curve = pool.budget_curve(&most, 0)?; // the knee needs no solution
    let budget_tokens = curve.knee.unwrap_or(most_tokens);
    if let Some(share) = share(&curve, budget_tokens).filter(|_| !global.quiet) {
        eprintln!("{budget_tokens} of {most_tokens} tokens hold {share:.0} % of the value");
    }
    Ok(ContextRequest { budget_tokens, ..most })
}

fn answer<'a>(
    query: &'a str,
    context: &'a cento_engine::Context,
    pool: &Pool<'_>,
    searcher: &'a Searcher,
    filter: Option<Filtered>,
) -> anyhow::Result<Answer<'a>> {
    let (manifest, made) = (searcher.manifest(), &context.trace.manifest);
    let citations = context.citations.iter().map(|citation| cited(pool, citation));
    Ok(Answer {
        version: output::JSON_VERSION,
        query,
        context: context.counted(),
        n_tokens: context.n_tokens,
        budget_tokens: context.budget_tokens,
        tokenizer: &context.tokenizer,
        filter,
        generation: manifest.generation,
        model_fingerprint: &manifest.config.model_fingerprint,
        citations: citations.collect::<anyhow::Result<_>>()?,
        outcome: made.outcome,
        certificate: made.certificate.as_ref(),
        support: made.support.as_ref(),
        warnings: &context.trace.warnings,
    })
}

/// Warnings, sizes and what an endpoint did, on stderr.
fn remark(context: &cento_engine::Context) {
    context.trace.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    eprintln!(
        "{} of {} tokens ({}), {} citations{}",
        context.n_tokens,
        context.budget_tokens,
        context.tokenizer,
        context.citations.len(),
        judged(context)
    );
    if let Some(EndpointRecord { host, model, n_calls, n_found, n_dropped, .. }) = &context.trace.manifest.endpoint {
        let calls = if *n_calls == 1 { "call" } else { "calls" };
        eprintln!("endpoint {host} ({model}): {n_calls} {calls}, {n_dropped} of {n_found} findings dropped");
    }
}
