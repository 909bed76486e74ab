//! `cento context`: the cited context that answers a question, inside its budget.

use anyhow::Context as _;
use cento_engine::trace::EndpointRecord;
use cento_engine::{Citation, ContextRequest, ContextTrace, Filtered, Scan, SearchRequest};

use crate::args::{Context, Global};
use crate::exit_code::Outcome;
use crate::{options, output};

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
    citations: &'a [Citation],
    warnings: &'a [String],
}

/// The search that finds the candidates.
pub(super) fn search(args: &Context, query: String) -> anyhow::Result<SearchRequest> {
    let request = options::request(query, 1, &args.retrieval, Scan::Auto)?;
    Ok(SearchRequest { ef: options::ef(args.ef, request.candidates)?, ..request })
}

pub(crate) fn execute(args: &Context, global: &Global) -> anyhow::Result<Outcome> {
    let query = options::query(&args.query)?;
    let request = search(args, query.clone())?;
    let policy = options::policy(args.policy.as_deref())?;
    let endpoint = options::endpoint(&args.endpoint)?;
    let searcher = options::searcher(global, &args.retrieval)?;
    let tokenizer = options::tokenizer(&args.tokenizer, &searcher)?;
    let asked = ContextRequest {
        budget_tokens: args.budget,
        tokenizer: &tokenizer,
        strategy: args.strategy,
        policy: &policy,
        format: args.format,
        endpoint: endpoint.as_ref(),
    };
    let (context, timings) = searcher.context_timed(&request, &asked)?;
    options::remark_device(global, &searcher);
    let filter = request.filter.as_ref().map(|filter| searcher.filtered(filter)).transpose()?;
    options::remark_filter(global, filter.as_ref());
    if args.retrieval.timings {
        super::search::print_timings(&timings.search);
        eprintln!("assemble {:.2} ms", timings.assemble.as_secs_f64() * 1e3);
    }
    if let Some(path) = &args.trace {
        let trace = ContextTrace::new(&searcher, &request, &asked, &context)?;
        std::fs::write(path, trace.json()).with_context(|| path.display().to_string())?;
    }
    if global.json {
        let manifest = searcher.manifest();
        output::json(&Answer {
            version: output::JSON_VERSION,
            query: &query,
            context: context.counted(),
            n_tokens: context.n_tokens,
            budget_tokens: context.budget_tokens,
            tokenizer: &context.tokenizer,
            filter,
            generation: manifest.generation,
            model_fingerprint: &manifest.config.model_fingerprint,
            citations: &context.citations,
            warnings: &context.trace.warnings,
        })?;
    } else {
        println!("{}", context.text);
    }
    if !global.quiet {
        context.trace.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        eprintln!(
            "{} of {} tokens ({}), {} citations",
            context.n_tokens,
            context.budget_tokens,
            context.tokenizer,
            context.citations.len()
        );
        if let Some(EndpointRecord { host, model, n_calls, n_found, n_dropped, .. }) = &context.trace.manifest.endpoint
        {
            let calls = if *n_calls == 1 { "call" } else { "calls" };
            eprintln!("endpoint {host} ({model}): {n_calls} {calls}, {n_dropped} of {n_found} findings dropped");
        }
    }
    Ok(if context.citations.is_empty() { Outcome::Nothing } else { Outcome::Done })
}
