//! `cento embed`: texts become a matrix of vectors.

use std::path::{Path, PathBuf};
use std::time::Instant;

use cento_engine::embedder::Kind;
use cento_engine::{EmbedInput, EmbedOptions, EmbedReport, FileLines, FilePart};

use super::index::issues;
use crate::args::{self, Embed, Global, TextKind};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside};
use crate::usage::usage;

#[derive(serde::Serialize)]
struct Answer<'a, R: serde::Serialize> {
    #[serde(flatten)]
    report: &'a R,
    seconds: f64,
}

pub(crate) fn execute(args: &Embed, global: &Global) -> anyhow::Result<Outcome> {
    let options = options(args, global)?;
    match &args.output {
        Some(output) => matrix(args, output, &options, global),
        None => stream(args, &options, global),
    }
}

fn options(args: &Embed, global: &Global) -> anyhow::Result<EmbedOptions> {
    Ok(EmbedOptions {
        model: Some(args.model.clone()),
        prompt: args.prompt.clone(),
        endpoint: args.elsewhere.settings(),
        access: args.elsewhere.access(&global.access),
        kind: kind(args.kind),
        device: args.device.device,
        precision: args.precision,
        threads: global.threads,
        dimensions: args.dimensions,
        max_tokens: args.max_tokens,
        too_long: match args.too_long {
            args::TooLong::Truncate => cento_engine::TooLong::Truncate,
            args::TooLong::Error => cento_engine::TooLong::Error,
        },
        output_type: args.output_type,
        ranges: args.ranges.clone(),
        cache: (args.use_cache || cento_engine::is_at_endpoint(&args.model))
            .then(|| options::cache(&args.cache))
            .transpose()?,
        restart: args.restart,
    })
}

/// Texts become a file.
fn matrix(args: &Embed, output: &Path, options: &EmbedOptions, global: &Global) -> anyhow::Result<Outcome> {
    let input = input(&args.input, args.kind, args.part)?;
    crate::interrupt::end_on_interrupt("what was embedded is kept: run the same command again to go on")?;
    let started = Instant::now();
    let bar = Bar::new(global, Beside::Text);
    let report = cento_engine::embed(&input, output, options, &mut |state| bar.embed(state));
    bar.finish();
    let report = report?;
    let seconds = started.elapsed().as_secs_f64();
    if !global.quiet {
        issues("failed", &report.failed);
        report.notes.iter().for_each(|note| eprintln!("{note}"));
    }
    if global.json {
        output::json(&Answer { report: &report, seconds })?;
    } else {
        summary(&report, seconds);
    }
    Ok(Outcome::Done)
}

/// Texts of a stream go on with their vectors. Stdout is the stream's, the report goes to stderr.
fn stream(args: &Embed, options: &EmbedOptions, global: &Global) -> anyhow::Result<Outcome> {
    let input = match &args.input {
        path if path == Path::new("-") => EmbedInput::Stdin,
        path => EmbedInput::File(path.clone()),
    };
    let started = Instant::now();
    let bar = Bar::new(global, Beside::Text);
    let column = args.text_column.as_deref();
    let report =
        cento_engine::embed_arrow(&input, std::io::stdout().lock(), column, options, &mut |state| bar.embed(state));
    bar.finish();
    let (report, seconds) = (report?, started.elapsed().as_secs_f64());
    if global.json {
        eprintln!("{}", serde_json::to_string(&Answer { report: &report, seconds })?);
    } else if !global.quiet {
        let count = output::count;
        eprintln!(
            "{} rows of {} dimensions; {} from the cache, {} without a text, {} longer than the window; {} tokens, {seconds:.1} s",
            count(report.n_rows),
            report.dimensions,
            count(report.n_from_cache),
            count(report.n_null),
            count(report.n_truncated),
            count(report.n_tokens),
        );
    }
    Ok(Outcome::Done)
}

/// Of a BEIR folder the file that holds texts of that kind.
fn input(path: &Path, kind: TextKind, part: Option<FilePart>) -> anyhow::Result<EmbedInput> {
    let in_folder = || match kind {
        TextKind::Document => path.join("corpus.jsonl"),
        TextKind::Query => path.join("queries.jsonl"),
    };
    let file = match path {
        path if path == Path::new("-") && part.is_some() => {
            return Err(usage(format!("--part {}: stdin has no parts; name a file", part.expect("is there"))));
        }
        path if path == Path::new("-") => return Ok(EmbedInput::Stdin),
        path if path.is_dir() => in_folder(),
        path => PathBuf::from(path),
    };
    Ok(match part {
        Some(part) => EmbedInput::Part(FileLines::find(&file, part)?),
        None => EmbedInput::File(file),
    })
}

fn kind(kind: TextKind) -> Kind {
    match kind {
        TextKind::Document => Kind::Document,
        TextKind::Query => Kind::Query,
    }
}

fn summary(report: &EmbedReport, seconds: f64) {
    let (manifest, counted) = (&report.manifest, output::counted);
    let name = report.output.display();
    println!(
        "{name}: {} of {} dimensions, {}",
        counted(manifest.n_rows, "row"),
        manifest.dimensions,
        manifest.output_type
    );
    println!(
        "{} of an earlier run, {} from the cache; {} in all, {seconds:.1} s; {} left out",
        counted(report.n_resumed, "row"),
        output::count(report.n_from_cache),
        counted(manifest.n_tokens, "token"),
        counted(manifest.n_failed, "line"),
    );
    if manifest.n_truncated > 0 {
        println!(
            "{} of more than {} tokens embedded by the beginning; {} says which",
            counted(manifest.n_truncated, "text"),
            manifest.max_tokens,
            manifest.ids
        );
    }
}
