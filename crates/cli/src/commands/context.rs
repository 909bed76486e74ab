//! `cento context`: the cited context that answers a question, inside its budget.

use anyhow::Context as _;
use cento_engine::{ContextRequest, Format, Scan};

use crate::args::{Context, Global};
use crate::exit_code::Outcome;
use crate::{options, output};

pub(crate) fn execute(args: &Context, global: &Global) -> anyhow::Result<Outcome> {
    let request = options::request(options::query(&args.query)?, 1, &args.retrieval, Scan::Auto);
    let policy = options::policy(args.policy.as_deref())?;
    let searcher = options::searcher(global, &args.retrieval)?;
    let tokenizer = options::tokenizer(&args.tokenizer, &searcher)?;
    let (context, timings) = searcher.context_timed(&ContextRequest {
        search: request,
        budget_tokens: args.budget,
        tokenizer: &tokenizer,
        strategy: args.strategy,
        policy: &policy,
        format: args.format,
    })?;
    if args.retrieval.timings {
        super::search::print_timings(&timings.search);
        eprintln!("assemble {:.2} ms", timings.assemble.as_secs_f64() * 1e3);
    }
    if let Some(path) = &args.trace {
        let json = serde_json::to_vec_pretty(&context.trace)?;
        std::fs::write(path, json).with_context(|| path.display().to_string())?;
    }
    if global.json && args.format != Format::Json {
        output::json(&context)?;
    } else {
        println!("{}", context.text);
    }
    if !global.quiet {
        eprintln!("{} of {} tokens ({}), {} citations", context.n_tokens, context.budget_tokens, context.tokenizer, context.citations.len());
    }
    Ok(if context.citations.is_empty() { Outcome::Nothing } else { Outcome::Done })
}
