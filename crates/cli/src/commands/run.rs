//! `cento run`: rank documents for a batch of topics and write a TREC run.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use cento_engine::{RunRequest, Scan};

use crate::args::{Global, Run};
use crate::exit_code::Outcome;
use crate::output::{self, Bar};
use crate::{options, trec};

#[derive(serde::Serialize)]
struct Answer {
    version: u32,
    n_topics: usize,
    n_results: usize,
    n_topics_without_results: usize,
    tag: String,
}

pub(crate) fn execute(args: &Run, global: &Global) -> anyhow::Result<Outcome> {
    let search = options::request(String::new(), args.k, &args.retrieval, Scan::Exact);
    if args.tag.is_empty() || args.tag.contains(char::is_whitespace) {
        return Err(options::usage(format!(
            "--tag {:?}: is empty or has a blank, which a run file cannot hold",
            args.tag
        )));
    }
    if global.json && args.output == Path::new("-") {
        return Err(options::usage("--json needs the run in a file: -o FILE"));
    }
    let topics = trec::topics(&args.topics)?;
    let searcher = options::searcher(global, &args.retrieval)?;
    let request = RunRequest {
        k: args.k,
        candidates: search.candidates,
        mode: search.mode,
        fusion: search.fusion,
        scan: search.scan,
    };
    let queries: Vec<String> = topics.iter().map(|topic| topic.text.clone()).collect();
    let bar = Bar::new(global.quiet);
    let rankings = searcher.run(&queries, &request, &mut |n_done| bar.count(n_done, queries.len(), "topics"));
    bar.finish();
    let rankings = rankings?;
    let mut out: Box<dyn Write> = match args.output == Path::new("-") {
        true => Box::new(io::BufWriter::new(io::stdout().lock())),
        false => Box::new(io::BufWriter::new(
            std::fs::File::create(&args.output).with_context(|| args.output.display().to_string())?,
        )),
    };
    for (topic, ranking) in topics.iter().zip(&rankings) {
        trec::write(&mut out, &topic.id, ranking, &args.tag, args.ties)?;
    }
    out.flush()?;
    drop(out);
    let n_empty = rankings.iter().filter(|ranking| ranking.is_empty()).count();
    let n_results = rankings.iter().map(Vec::len).sum();
    if global.json {
        output::json(&Answer {
            version: output::JSON_VERSION,
            n_topics: topics.len(),
            n_results,
            n_topics_without_results: n_empty,
            tag: args.tag.clone(),
        })?;
    } else if !global.quiet {
        eprintln!(
            "{} topics, {} results, {n_empty} topics without results",
            topics.len(),
            output::count(n_results as u64)
        );
    }
    Ok(if n_results == 0 { Outcome::Nothing } else { Outcome::Done })
}
