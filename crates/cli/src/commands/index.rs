//! `cento index`: bring a collection up to date with files and folders.

use std::collections::BTreeMap;
use std::path::Path;

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
    let options = options::index(args, &roots, invocation)?;
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
        left_out(&report.skipped).iter().for_each(|line| eprintln!("left out: {line}"));
        issues("failed", &report.failed);
        lossy_remark(&report.failed);
        password_remark(&report);
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

/// Extensions that are counted in one line.
const SHOWN_EXTENSIONS: usize = 5;

/// A line for each reason for which files were left out: the file and all of the reason where it is one, else the first
/// and how many there are of each extension.
fn left_out(skipped: &[Issue]) -> Vec<String> {
    let reason = |issue: &Issue| issue.reason.split([':', ',']).next().unwrap_or_default().to_owned();
    let mut groups: Vec<(String, Vec<&Issue>)> = Vec::new(); // none of them empty
    for issue in skipped {
        let reason = reason(issue);
        match groups.iter_mut().find(|group| group.0 == reason) {
            Some((_, issues)) => issues.push(issue),
            None => groups.push((reason, vec![issue])),
        }
    }
    let n_more: usize = groups.iter().skip(SHOWN_ISSUES).map(|(_, issues)| issues.len()).sum();
    let line = |(reason, issues): &(String, Vec<&Issue>)| match issues.len() - 1 {
        0 => format!("{}: {}", issues[0].path, issues[0].reason),
        n_more => format!("{} and {n_more} more: {reason} ({})", issues[0].path, extensions(issues)),
    };
    let mut lines: Vec<String> = groups.iter().take(SHOWN_ISSUES).map(line).collect();
    if n_more > 0 {
        lines.push(format!("{n_more} more; --report FILE lists all of them"));
    }
    lines
}

/// The extensions of files, the most frequent first.
fn extensions(issues: &[&Issue]) -> String {
    let mut n_files: BTreeMap<String, usize> = BTreeMap::new();
    for issue in issues {
        let extension = Path::new(&issue.path).extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let extension = extension.map_or_else(|| "without extension".to_owned(), |extension| format!(".{extension}"));
        *n_files.entry(extension).or_default() += 1;
    }
    let mut counted: Vec<(String, usize)> = n_files.into_iter().collect();
    counted.sort_by_key(|(_, n)| std::cmp::Reverse(*n)); // equal ones by name
    let n_others: usize = counted.iter().skip(SHOWN_EXTENSIONS).map(|(_, n)| n).sum();
    let shown = counted.iter().take(SHOWN_EXTENSIONS).map(|(extension, n)| format!("{n} {extension}"));
    let others = (n_others > 0).then(|| format!("{n_others} others"));
    shown.chain(others).collect::<Vec<_>>().join(", ")
}

/// The flag that reads files that were refused for their bytes.
fn lossy_remark(failed: &[Issue]) {
    if failed.iter().any(|issue| issue.reason.contains("invalid UTF-8")) {
        eprintln!("--lossy reads files that are not UTF-8, with U+FFFD for what cannot be read");
    }
}

/// The flag that opens files, and entries of archives, that were refused for want of a password.
fn password_remark(report: &IndexReport) {
    if report.failed.iter().chain(&report.warnings).any(|issue| issue.reason.contains("file of passwords")) {
        eprintln!("--password-file FILE tries the passwords in FILE, one a line, on files that are encrypted");
    }
}

fn summary(answer: &Answer<'_>) {
    let report = answer.report;
    let count = output::count;
    let counted = output::counted;
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
            "{} could not be read; {} kept as before",
            counted(report.unread.len() as u64, "path"),
            counted(report.kept.len() as u64, "document"),
        );
    }
    if answer.is_given {
        println!("{}", output::counted(report.n_chunks, "vector"));
    } else {
        embedded(report);
    }
    if let Some(estimate) = &report.estimate {
        println!("{}", estimated(estimate, answer.price));
    }
    if report.n_truncated > 0 {
        println!(
            "{} longer than the encoder's window, embedded by the beginning",
            output::counted(report.n_truncated, "chunk")
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
    let counted = output::counted;
    let mut said = format!(
        "would ask for {} of {} ({tokenizer}) in about {}: {seconds:.1} s at the pace of the first",
        counted(*n_texts, "text"),
        counted(*n_tokens, "token"),
        counted(*n_requests, "request"),
    );
    if let Some(price) = price {
        said += &format!("; price {price:.6}");
    }
    said
}

/// The calls that are about to be made.
fn to_write(counts: &ContextCounts, price: Option<Price>) -> String {
    let (count, counted) = (output::count, output::counted);
    let price = price.map_or_else(String::new, |price| format!("; price {:.6}", priced((counts, price))));
    let damaged = match counts.n_damaged {
        0 => String::new(),
        n => format!("; of the journal {} without a whole context", counted(n, "line")),
    };
    format!(
        "contexts: {} for chunks of {}, about {} asked, {} of them a document's again, and {} answered{price}; {} \
         known{damaged}",
        counted(counts.n_calls, "call"),
        counted(counts.n_documents, "document"),
        counted(counts.n_tokens_asked, "token"),
        count(counts.n_tokens_repeated),
        count(counts.n_tokens_answered),
        count(counts.n_known),
    )
}

fn contexts(answer: &Answer<'_>, counts: &ContextCounts, price: Option<Price>) {
    let (count, counted) = (output::count, output::counted);
    if answer.dry_run {
        println!("{}", to_write(counts, price));
    } else {
        let (calls, asked) = (counted(counts.n_calls, "call"), counted(counts.n_tokens_asked, "token"));
        let (n_known, n_answered) = (count(counts.n_known), count(counts.n_tokens_answered));
        let price = answer.contexts_price.map_or_else(String::new, |price| format!("; price {price:.6}"));
        println!(
            "contexts: {calls} of {asked}, and {n_answered} answered{price}; {n_known} known, {} cut",
            count(counts.n_cut)
        );
    }
    if counts.n_documents_cut > 0 {
        let documents = counted(counts.n_documents_cut, "long document");
        println!("contexts: of {documents} the model reads the beginning");
    }
}

/// The price of calls; what a server has kept of a document is at the price of that, if there is one.
fn priced((counts, price): (&ContextCounts, Price)) -> f64 {
    let n_repeated = counts.n_tokens_repeated.min(counts.n_tokens_asked) as f64;
    let n_asked = counts.n_tokens_asked as f64 - n_repeated;
    (n_asked * price.asked + n_repeated * price.repeated + counts.n_tokens_answered as f64 * price.answered) / 1e6
}

fn embedded(report: &IndexReport) {
    let counted = output::counted;
    println!(
        "{}, {} ({} embedded now, {} found in the embedding cache)",
        counted(report.n_chunks, "chunk"),
        counted(report.n_tokens, "token"),
        output::count(report.n_tokens_embedded),
        counted(report.n_from_log, "chunk"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(skipped: &[(&str, &str)], lines: &[&str]) {
        let issue = |(path, reason): &(&str, &str)| Issue { path: (*path).to_owned(), reason: (*reason).to_owned() };
        assert_eq!(left_out(&skipped.iter().map(issue).collect::<Vec<_>>()), lines);
    }

    #[test]
    fn files_left_out_for_one_reason_are_one_line() {
        check(&[], &[]);
        check(&[("x.png", "unknown type: .png files are not read")], &["x.png: unknown type: .png files are not read"]);
        check(
            &[
                ("a.gif", "unknown type: .gif files are not read"),
                ("b.PNG", "unknown type: .png files are not read"),
                ("c.md", "too large: 9 bytes, the limit is 5"),
                ("d.png", "unknown type: .png files are not read"),
                ("e", "binary: zero byte at byte 1"),
                ("f.md", "too large: 7 bytes, the limit is 5"),
            ],
            &[
                "a.gif and 2 more: unknown type (2 .png, 1 .gif)",
                "c.md and 1 more: too large (2 .md)",
                "e: binary: zero byte at byte 1",
            ],
        );
    }

    #[test]
    fn many_extensions_and_many_reasons_are_cut_and_counted() {
        let paths: Vec<String> = (0..9).map(|n| format!("a.x{n}")).collect();
        let one: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "unknown type: and so on")).collect();
        check(&one, &["a.x0 and 8 more: unknown type (1 .x0, 1 .x1, 1 .x2, 1 .x3, 1 .x4, 4 others)"]);
        let reasons: Vec<String> = (0..13).map(|n| format!("reason {n}")).collect();
        let many: Vec<(&str, &str)> = reasons.iter().map(|reason| ("a.md", reason.as_str())).collect();
        let issue = |(path, reason): &(&str, &str)| Issue { path: (*path).to_owned(), reason: (*reason).to_owned() };
        let lines = left_out(&many.iter().map(issue).collect::<Vec<_>>());
        assert_eq!((lines.len(), lines[10].as_str()), (11, "3 more; --report FILE lists all of them"));
    }
}
