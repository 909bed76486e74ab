//! `cento status` and `cento doctor`: what a collection holds, and whether it is intact.

use cento_engine::{Diagnosis, FileReport, GraphHealth, SegmentDiagnosis};

use crate::args::{Global, Status};
use crate::exit_code::Outcome;
use crate::{options, output};

pub(crate) fn status(args: &Status, global: &Global) -> anyhow::Result<Outcome> {
    if args.files {
        return files(args, global);
    }
    let status = cento_engine::status(&global.collection, &options::at(&args.at))?;
    if global.json {
        output::json(&status)?;
        return Ok(Outcome::Done);
    }
    let config = &status.config;
    println!("{}: generation {}", global.collection.display(), status.generation);
    println!(
        "{}, {}; {} not yet cleared away",
        output::counted(status.n_documents, "document"),
        output::counted(status.n_chunks, "chunk"),
        output::counted(status.n_dead_documents, "dead document")
    );
    match &config.given {
        Some(given) => println!(
            "no encoder: vectors that were given, {} dimensions, {}, kept as {}, {}",
            given.dimensions,
            given.distance,
            config.vectors,
            if given.texts { "with texts" } else { "without texts" }
        ),
        None => println!(
            "model {} (fingerprint {}), {} dimensions, vectors {}",
            config.model, config.model_fingerprint, config.dimensions, config.vectors
        ),
    }
    if let Some(late) = &config.late {
        println!(
            "pooling {}: documents read in windows of {} tokens that overlap by {}",
            config.pooling, late.window_tokens, late.overlap_tokens
        );
    }
    println!("chunks of {} tokens, {} headers, language {}", config.chunk_tokens, config.header, config.language);
    for (label, path) in &status.roots {
        println!("root {label} = {path}");
    }
    let rows = status.segments.iter().map(|segment| {
        vec![
            segment.name.clone(),
            output::count(segment.n_documents),
            output::count(segment.n_rows),
            output::count(segment.n_dead_rows),
            segment.scan.to_owned(),
        ]
    });
    println!("\n{}", output::table(&["segment", "documents", "rows", "dead rows", "scan"], rows));
    let graphs =
        status.segments.iter().flat_map(|segment| segment.graphs.iter().map(|graph| row(&segment.name, graph)));
    let graphs: Vec<_> = graphs.collect();
    if !graphs.is_empty() {
        let header = ["graph", "vectors", "unreachable", "least in-degree", "finds itself", "recall@10"];
        println!("\n{}", output::table(&header, graphs));
    }
    status.losses.iter().for_each(|loss| println!("\nwarning: {}", loss.warning()));
    status.stale.iter().for_each(|stale| println!("\nwarning: {}", stale.warning()));
    if status.n_quarantined_bytes > 0 {
        println!("\n{} in quarantine/, which nothing reads", output::bytes(status.n_quarantined_bytes));
    }
    let sizes = status.n_bytes.iter().map(|(name, n_bytes)| vec![name.clone(), output::bytes(*n_bytes)]);
    println!("\n{}", output::table(&["file", "size"], sizes));
    Ok(Outcome::Done)
}

/// Shows what readers got out of files.
fn files(args: &Status, global: &Global) -> anyhow::Result<Outcome> {
    let reports = cento_engine::file_reports(&global.collection, &options::at(&args.at))?;
    if global.json {
        output::json(&reports)?;
        return Ok(Outcome::Done);
    }
    match &reports.files {
        Some(files) => file_table(files),
        None => println!(
            "no report on files: they were text as it stands, or were indexed by a version that kept no report; the \
             next `cento index` makes it"
        ),
    }
    Ok(Outcome::Done)
}

/// Shows the reports on files, and below them the reasons for which some are suspicious.
fn file_table(files: &[FileReport]) {
    let or = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let row = |file: &FileReport| {
        let got = file.extraction.as_ref();
        let count = |of: fn(&cento_engine::corpus::Extraction) -> u64| or(got.map(|got| output::count(of(got))));
        vec![
            output::name(&file.suspicion),
            file.origin.clone(),
            file.format.clone(),
            or(got.and_then(|got| got.n_pages).map(|n| output::count(n.into()))),
            count(|got| got.n_characters),
            count(|got| got.pages_without_text.len() as u64),
            count(|got| got.n_tables.into()),
            count(|got| got.n_images.into()),
            or(got.and_then(|got| got.completeness).map(|share| format!("{share:.3}"))),
        ]
    };
    let header =
        ["state", "file", "format", "pages", "characters", "pages without text", "tables", "images", "completeness"];
    println!("{}", output::table(&header, files.iter().map(row)));
    for file in files {
        let said = file.failures.iter().map(|reason| format!("failed: {reason}")).chain(file.remarks.iter().cloned());
        said.for_each(|said| println!("{}: {said}", file.origin));
        if let Some(n_more @ 1..) = file.n_failures.checked_sub(file.failures.len() as u64) {
            println!("{}: failed: {} more", file.origin, output::count(n_more));
        }
    }
}

/// Shows the remains, segment by segment.
fn verdict(diagnosis: &Diagnosis) {
    let row = |segment: &SegmentDiagnosis| {
        vec![
            segment.name.clone(),
            if segment.is_damaged { "damaged".to_owned() } else { "intact".to_owned() },
            output::count(segment.n_documents),
            format!("{:.1} %", segment.share * 100.0),
            output::count(segment.n_documents_readable),
            output::count(segment.n_documents_without_vectors),
        ]
    };
    let header = ["segment", "state", "documents", "of all", "readable", "without vectors"];
    println!("\n{}", output::table(&header, diagnosis.segments.iter().map(row)));
    let sum = |count: fn(&SegmentDiagnosis) -> u64| output::count(diagnosis.segments.iter().map(count).sum());
    println!(
        "{} of {} documents can be read; `cento repair` keeps them and sets the damage aside",
        sum(|segment| segment.n_documents_readable),
        sum(|segment| segment.n_documents)
    );
}

fn row(segment: &str, graph: &GraphHealth) -> Vec<String> {
    vec![
        segment.to_owned(),
        graph.vectors.to_string(),
        output::count(graph.n_unreachable as u64),
        graph.in_degree_min.to_string(),
        format!("{:.4}", graph.self_retrieval),
        format!("{:.4} at ef {}", graph.recall_at_10, graph.ef),
    ]
}

pub(crate) fn doctor(global: &Global) -> anyhow::Result<Outcome> {
    let diagnosis = cento_engine::doctor(&global.collection)?;
    if global.json {
        output::json(&diagnosis)?;
    } else {
        for check in &diagnosis.checks {
            match &check.problem {
                None => println!("ok       {}", check.name),
                Some(problem) => println!("damaged  {}: {problem}", check.name),
            }
        }
        diagnosis.remarks.iter().for_each(|remark| println!("note     {remark}"));
        diagnosis.losses.iter().for_each(|loss| println!("warning  {}", loss.warning()));
        if !diagnosis.is_healthy() {
            verdict(&diagnosis);
        }
    }
    Ok(if diagnosis.is_healthy() { Outcome::Done } else { Outcome::Nothing })
}
