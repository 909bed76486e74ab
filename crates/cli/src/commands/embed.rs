//! `cento embed`: texts become a matrix of vectors.

use std::path::{Path, PathBuf};
use std::time::Instant;

use cento_engine::embedder::Kind;
use cento_engine::{EmbedInput, EmbedOptions, EmbedReport};

use super::index::issues;
use crate::args::{self, Embed, Global, TextKind};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside};

#[derive(serde::Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    report: &'a EmbedReport,
    seconds: f64,
}

pub(crate) fn execute(args: &Embed, global: &Global) -> anyhow::Result<Outcome> {
    let options = EmbedOptions {
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
    };
    crate::interrupt::end_on_interrupt("what was embedded is kept: run the same command again to go on")?;
    let started = Instant::now();
    let bar = Bar::new(global, Beside::Text);
    let report =
        cento_engine::embed(&input(&args.input, args.kind), &args.output, &options, &mut |state| bar.embed(state));
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

/// Of a BEIR folder the file that holds texts of that kind.
fn input(path: &Path, kind: TextKind) -> EmbedInput {
    let in_folder = || match kind {
        TextKind::Document => path.join("corpus.jsonl"),
        TextKind::Query => path.join("queries.jsonl"),
    };
    match path {
        path if path == Path::new("-") => EmbedInput::Stdin,
        path if path.is_dir() => EmbedInput::File(in_folder()),
        path => EmbedInput::File(PathBuf::from(path)),
    }
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
