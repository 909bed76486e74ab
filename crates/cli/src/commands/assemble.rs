//! `cento assemble`: the cited context of candidates that another engine found.

use std::path::Path;

use cento_engine::api::{self, Budget};
use cento_engine::{Assembled, AssembledTrace, Cancel, Service, ServiceOptions, read_bounded, take_bounded};

use crate::args::{Assemble, Global};
use crate::commands::context::{explain, remark};
use crate::exit_code::Outcome;
use crate::options::usage;
use crate::output::{self, Readers, printable};
use crate::policy_file;

pub(crate) fn execute(args: &Assemble, global: &Global) -> anyhow::Result<Outcome> {
    let request = request(args, global)?;
    let service = service(&request)?;
    let made = service.assembled(&request, &Cancel::default())?;
    if let Some(share) = made.settled.share.filter(|_| !global.quiet) {
        let (budget, most) = (made.settled.budget_tokens, request.budget.most());
        eprintln!("{budget} of {most} tokens hold {share:.0} % of the value");
    }
    if let Some(path) = &args.trace {
        output::whole_file(path, &made.trace().json(), Readers::Owner)?;
    }
    if args.explain {
        explain(&made.context.trace);
    }
    if global.json {
        output::json(&made.answer())?;
    } else {
        output::text(&format!("{}\n", made.context.text));
    }
    if !global.quiet {
        if !global.json {
            sources(&made);
        }
        remark(&made.context);
    }
    Ok(if made.context.citations.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

/// Follows the trace of an assembly again.
pub(crate) fn replay(trace: AssembledTrace, global: &Global) -> anyhow::Result<Outcome> {
    let service = service(&trace.request)?;
    let (context, answer) = service.reassemble(&api::ReassembleRequest { trace }, &Cancel::default())?;
    let same = answer.same;
    if global.json {
        output::json(&answer)?;
    } else if same {
        println!("{}", context.text);
    }
    if !same || !global.quiet {
        eprintln!("{}the same bytes as in the trace", if same { "" } else { "not " });
    }
    Ok(if same { Outcome::Done } else { Outcome::Nothing })
}

/// The request: the file's, with what the command line says in its place.
fn request(args: &Assemble, global: &Global) -> anyhow::Result<api::AssembleRequest> {
    let asked = policy_file::read(args.policy.as_deref())?;
    let (strategy, budget) = asked.only(args.strategy, args.budget)?;
    let mut request = read(&args.file)?;
    if let Some(query) = &args.query {
        request.query.clone_from(query);
    }
    if request.query.trim().is_empty() {
        return Err(usage("what is the question? the file has none; give it with --query TEXT"));
    }
    if args.policy.is_some() {
        request.policy = asked.policy;
    }
    if budget.is_none() && request.budget == Budget::default() && !global.quiet {
        eprintln!("budget: {} tokens (default)", Budget::default());
    }
    request.budget = budget.unwrap_or(request.budget);
    request.strategy = strategy.unwrap_or(request.strategy);
    request.format = args.format.unwrap_or(request.format);
    request.order = args.order.unwrap_or(request.order);
    request.marks = args.marks.unwrap_or(request.marks);
    request.language = args.language.map(|language| language.to_string()).or(request.language);
    for (ids, of_file) in [(&args.include, &mut request.include), (&args.exclude, &mut request.exclude)] {
        if !ids.is_empty() {
            of_file.clone_from(ids);
        }
    }
    if let Some(tokenizer) = &args.tokenizer {
        request.tokenizer.clone_from(tokenizer);
    }
    Ok(request)
}

fn read(file: &Path) -> anyhow::Result<api::AssembleRequest> {
    let is_stdin = file.as_os_str() == "-";
    let name = if is_stdin { "stdin".to_owned() } else { file.display().to_string() };
    let bytes = match is_stdin {
        true => take_bounded(std::io::stdin(), api::READ_BYTES_MAX),
        false => read_bounded(file, api::READ_BYTES_MAX),
    };
    let bytes = bytes.map_err(|error| anyhow::Error::from(error).context(name.clone()))?;
    api::candidates(&bytes).map_err(|error| usage(format!("{name}: {}", cento_engine::describe(&error))))
}

/// Names the candidates of each citation on stderr.
fn sources(made: &Assembled<'_>) {
    for citation in made.answer().citations {
        let numbers: Vec<String> = citation.passages.iter().map(|passage| passage.candidate.to_string()).collect();
        let headings = citation.headings.join(" > ");
        let (n, document) = (citation.n, printable(&citation.document));
        eprintln!("[{n}] {document}  {}  candidates {}", printable(&headings), numbers.join(", "));
    }
}

/// A service without collections; a tokenizer that is not built in is a file.
fn service(request: &api::AssembleRequest) -> anyhow::Result<Service> {
    let name = request.tokenizer.as_str();
    let file = (!Service::has_tokenizer(name)).then(|| (name.to_owned(), name.into()));
    Ok(Service::new(ServiceOptions { tokenizers: file.into_iter().collect(), ..ServiceOptions::default() })?)
}
