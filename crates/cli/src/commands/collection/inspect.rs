//! `cento inspect`: what the indexer would make of a file.

use cento_engine::{IndexOptions, InspectedChunk, Inspection, ReadOptions, Root};

use crate::args::Inspect;
use crate::exit_code::Outcome;
use crate::output::counted;
use crate::settings::Invocation;
use crate::{options, output};

#[derive(serde::Serialize)]
struct Answer<'a> {
    version: u32,
    documents: &'a [Inspection],
}

pub(crate) fn execute(args: &Inspect, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    let root = Root::parse(&args.file).map_err(cento_engine::Error::from)?;
    let index = IndexOptions {
        model: Some(args.model.clone()),
        access: global.access.clone(),
        header: Some(args.header),
        chunk_tokens: Some(args.chunk_tokens),
        read: ReadOptions {
            format: args.format,
            lossy: args.lossy,
            passwords: options::passwords(args.password_file.as_deref())?,
            commands: invocation.settings.commands(std::slice::from_ref(&root))?,
            ..ReadOptions::default()
        },
        guard: Some(options::guard()?),
        threads: global.threads,
        ..IndexOptions::default()
    };
    let documents = cento_engine::inspect(&root, &index)?;
    if global.json {
        output::json(&Answer { version: output::JSON_VERSION, documents: &documents })?;
    } else {
        documents.iter().for_each(print_document)
    }
    Ok(if documents.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn print_document(document: &Inspection) {
    let (bytes, chunks) = (counted(document.n_bytes as u64, "byte"), counted(document.chunks.len() as u64, "chunk"));
    println!("{}  {:?}, {bytes}, {chunks}", document.id, document.title);
    for (key, value) in &document.metadata {
        println!("  {key}: {value}");
    }
    for warning in &document.warnings {
        println!("  warning: {warning}");
    }
    for section in &document.sections {
        if !section.heading.is_empty() {
            println!(
                "  {}{} {}  bytes {}-{}",
                "  ".repeat(usize::from(section.level)),
                "#".repeat(usize::from(section.level)),
                section.heading,
                section.span[0],
                section.span[1]
            );
        }
    }
    document.chunks.iter().for_each(print_chunk);
}

fn print_chunk(chunk: &InspectedChunk) {
    let hidden = if chunk.hidden { ", hidden" } else { "" };
    println!(
        "\n{}  bytes {}-{}, {} tokens + {} of header{hidden}",
        chunk.id, chunk.span[0], chunk.span[1], chunk.n_tokens, chunk.n_header_tokens
    );
    for line in chunk.header.lines() {
        println!("  > {line}");
    }
    for line in chunk.text.lines() {
        println!("  | {line}");
    }
}
