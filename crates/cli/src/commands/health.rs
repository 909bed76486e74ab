//! `cento status` and `cento doctor`: what a collection holds, and whether it is intact.

use crate::args::Global;
use crate::exit_code::Outcome;
use crate::output;

pub(crate) fn status(global: &Global) -> anyhow::Result<Outcome> {
    let status = cento_engine::status(&global.collection)?;
    if global.json {
        output::json(&status)?;
        return Ok(Outcome::Done);
    }
    let config = &status.config;
    println!("{}: generation {}", global.collection.display(), status.generation);
    println!(
        "{} documents, {} chunks; {} dead documents not yet cleared away",
        output::count(status.n_documents),
        output::count(status.n_chunks),
        output::count(status.n_dead_documents)
    );
    println!(
        "model {} (fingerprint {}), {} dimensions, vectors {}",
        config.model, config.model_fingerprint, config.dimensions, config.vectors
    );
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
            segment.scan.to_owned(),
        ]
    });
    println!("\n{}", output::table(&["segment", "documents", "rows", "scan"], rows));
    let sizes = status.n_bytes.iter().map(|(name, n_bytes)| vec![name.clone(), output::bytes(*n_bytes)]);
    println!("\n{}", output::table(&["file", "size"], sizes));
    Ok(Outcome::Done)
}

pub(crate) fn doctor(global: &Global) -> anyhow::Result<Outcome> {
    let diagnosis = cento_engine::doctor(&global.collection)?;
    match global.json {
        true => output::json(&diagnosis)?,
        false => {
            for check in &diagnosis.checks {
                match &check.problem {
                    None => println!("ok       {}", check.name),
                    Some(problem) => println!("damaged  {}: {problem}", check.name),
                }
            }
        }
    }
    Ok(if diagnosis.is_healthy() { Outcome::Done } else { Outcome::Nothing })
}
