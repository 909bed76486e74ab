//! `cento index`: bring a collection up to date with files and folders.

use cento_engine::{ContextCounts, Estimate, IndexReport, Issue, OsFs, Root, Suspicion};

use crate::args::{Index, Price};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside, Readers};
use crate::settings::Invocation;

/// Remarks of one kind shown before the rest is only counted.
const SHOWN_ISSUES: usize = 10;

#[derive(serde::Serialize)]
struct Answer<'a> {
    version: u32,
    dry_run: bool,
    #[serde(skip)]
    is_given: bool,
    /// The price of the calls for contexts, where prices are given: of a dry run by estimated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    contexts_price: Option<f64>,
    #[serde(flatten)]
    report: &'a IndexReport,
    /// Of a dry run, for an encoder at an endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
}

pub(crate) fn execute(args: &Index, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    let roots = args
        .paths
        .iter()
        .map(|path| Root::parse(path).map_err(cento_engine::Error::from))
        .collect::<Result<Vec<_>, _>>()?;
    let options = options::index(args, invocation)?;
    crate::interrupt::end_on_interrupt(
        "the collection is as it was, and what was embedded is kept: run the same command again to go on",
    )?;
    if options.contexts.is_some() && !args.dry_run && !global.quiet {
        let planned = cento_engine::dry_run(&global.collection, &roots, &options, &mut |_| {})?;
        planned.contexts.iter().for_each(|counts| eprintln!("{}", to_write(counts, args.writer.endpoint_price)));
    }
    let mut bar = Bar::new(global, Beside::Text);
    let mut progress = |progress: &_| bar.ingest(progress);
    let report = if let Some(given) = options::given(args) {
        cento_engine::index_vectors(&global.collection, &given, &OsFs, &mut progress)
    } else if args.dry_run {
        cento_engine::dry_run(&global.collection, &roots, &options, &mut progress)
    } else {
        cento_engine::index(&global.collection, &roots, &options, &OsFs, &mut progress)
    };
    bar.finish();
    let report = report?;
    let is_given = args.given.from_vectors.is_some();
    let price = |per_million: f64| Some(report.estimate.as_ref()?.n_tokens as f64 / 1e6 * per_million);
    let price = args.elsewhere.price_per_million_tokens.and_then(price);
    let contexts_price = report.contexts.as_ref().zip(args.writer.endpoint_price).map(priced);
    let answer = Answer {
        version: output::JSON_VERSION,
        dry_run: args.dry_run,
        is_given,
        contexts_price,
        report: &report,
        price,
    };
    if let Some(path) = &args.report {
        let json = serde_json::to_vec_pretty(&answer)?;
        output::whole_file(path, &json, Readers::Usual)?;
    }
    if !global.quiet {
        issues("could not be read", &report.unread);
        kept(&report.kept);
        issues("left out", &report.skipped);
        issues("failed", &report.failed);
        lossy_remark(&report.failed);
        issues("noticed", &report.warnings);
        issues("suspicious", &suspicious(&report));
        if let Some(confinement) = report.confinement.filter(|held| !held.is_full()) {
            eprintln!("files were read in children that are confined as far as this system can: {confinement}");
        }
        report.notes.iter().for_each(|note| eprintln!("{note}"));
    }
    if global.json {
        output::json(&answer)?;
    } else {
        summary(&answer);
        report.contexts.iter().for_each(|counts| contexts(&answer, counts, args.writer.endpoint_price));
    }
    let is_whole = report.unread.is_empty() && report.failed.is_empty() && report.kept.is_empty();
    Ok(if is_whole { Outcome::Done } else { Outcome::Partial })
}

/// Files whose text is not what stands in them, each with its first reason.
fn suspicious(report: &IndexReport) -> Vec<Issue> {
    let files = report.files.iter().filter(|file| file.suspicion == Suspicion::Suspicious);
    files.map(|file| Issue { path: file.origin.clone(), reason: file.remarks.join("; ") }).collect()
}

/// Names documents whose files are there and could not be read.
fn kept(ids: &[String]) {
    if ids.is_empty() {
        return;
    }
    let (first, rest) = ids.split_at(SHOWN_ISSUES.min(ids.len()));
    let n_more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    eprintln!("kept as they were: could not be read: {}{n_more}", first.join(", "));
}

pub(crate) fn issues(what: &str, issues: &[Issue]) {
    for issue in issues.iter().take(SHOWN_ISSUES) {
        eprintln!("{what}: {}: {}", issue.path, issue.reason);
    }
    if let Some(n_more) = issues.len().checked_sub(SHOWN_ISSUES).filter(|n_more| *n_more > 0) {
        eprintln!("{what}: {n_more} more; --report FILE lists all of them");
    }
}

/// The flag that reads files that were refused for their bytes.
fn lossy_remark(failed: &[Issue]) {
    if failed.iter().any(|issue| issue.reason.contains("invalid UTF-8")) {
        eprintln!("--lossy reads files that are not UTF-8, with U+FFFD for what cannot be read");
    }
}

fn summary(answer: &Answer<'_>) {
    let report = answer.report;
    let count = output::count;
    let verb = if answer.dry_run { "would index" } else { "indexed" };
    println!(
        "{verb} {} new, {} changed; {} unchanged, {} removed, {} left out, {} failed",
        count(report.n_added),
        count(report.n_changed),
        count(report.n_unchanged),
        count(report.n_removed),
        count(report.skipped.len() as u64),
        count(report.failed.len() as u64),
    );
    if !(report.unread.is_empty() && report.kept.is_empty()) {
        println!(
            "{} files or folders could not be read; {} documents kept as they were",
            count(report.unread.len() as u64),
            count(report.kept.len() as u64),
        );
    }
    if answer.is_given {
        println!("{} vectors", count(report.n_chunks));
    } else {
        embedded(report);
    }
    if let Some(estimate) = &report.estimate {
        println!("{}", estimated(estimate, answer.price));
    }
    if report.n_truncated > 0 {
        println!(
            "{} chunks are longer than the encoder's window and were embedded by their beginning",
            count(report.n_truncated)
        );
    }
    if let Some(compaction) = &report.compaction {
        super::collection::compact::summary(compaction);
    } else if !answer.dry_run {
        println!("generation {}", report.generation);
    }
}

fn estimated(estimate: &Estimate, price: Option<f64>) -> String {
    let Estimate { n_texts, n_tokens, n_requests, seconds, tokenizer } = estimate;
    let count = output::count;
    let mut said = format!(
        "would ask for {} texts of {} tokens ({tokenizer}) in about {} requests: {seconds:.1} s at the pace of the first",
        count(*n_texts),
        count(*n_tokens),
        count(*n_requests),
    );
    if let Some(price) = price {
        said += &format!("; price {price:.6}");
    }
    said
}

/// The calls that are about to be made.
fn to_write(counts: &ContextCounts, price: Option<Price>) -> String {
    let count = output::count;
    let price = price.map_or_else(String::new, |price| format!("; price {:.6}", priced((counts, price))));
    format!(
        "contexts: {} calls for chunks of {} documents, about {} tokens asked, {} of them a document's again, and {} \
         answered{price}; {} are known",
        count(counts.n_calls),
        count(counts.n_documents),
        count(counts.n_tokens_asked),
        count(counts.n_tokens_repeated),
        count(counts.n_tokens_answered),
        count(counts.n_known),
    )
}

fn contexts(answer: &Answer<'_>, counts: &ContextCounts, price: Option<Price>) {
    let count = output::count;
    if answer.dry_run {
        println!("{}", to_write(counts, price));
    } else {
        let (n_calls, n_known) = (count(counts.n_calls), count(counts.n_known));
        let (n_asked, n_answered) = (count(counts.n_tokens_asked), count(counts.n_tokens_answered));
        let price = answer.contexts_price.map_or_else(String::new, |price| format!("; price {price:.6}"));
        println!(
            "contexts: {n_calls} calls of {n_asked} tokens, and {n_answered} answered{price}; {n_known} were known, {} \
             were cut",
            count(counts.n_cut)
        );
    }
    if counts.n_documents_cut > 0 {
        println!("contexts: of {} long documents the model reads the beginning", count(counts.n_documents_cut));
    }
}

/// The price of calls; what a server has kept of a document is at the price of that, if there is one.
fn priced((counts, price): (&ContextCounts, Price)) -> f64 {
    let n_repeated = counts.n_tokens_repeated.min(counts.n_tokens_asked) as f64;
    let n_asked = counts.n_tokens_asked as f64 - n_repeated;
    (n_asked * price.asked + n_repeated * price.repeated + counts.n_tokens_answered as f64 * price.answered) / 1e6
}

fn embedded(report: &IndexReport) {
    let count = output::count;
    println!(
        "{} chunks, {} tokens ({} embedded now, {} chunks found in the embedding cache)",
        count(report.n_chunks),
        count(report.n_tokens),
        count(report.n_tokens_embedded),
        count(report.n_from_log),
    );
}
