//! `cento serve` and `cento mcp`: the same answers for programs, over a network and over pipes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cento_engine::{Service, ServiceOptions};
use cento_server::{Log, LongTexts, ServerOptions};

use crate::args::{Global, Mcp, Serve, Serving};
use crate::exit_code::Outcome;
use crate::options;

pub(crate) fn serve(args: &Serve, global: &Global) -> anyhow::Result<Outcome> {
    let options = ServerOptions {
        address: args.listen,
        keys: args.api_keys.clone(),
        hosts: args.allow_host.clone(),
        origins: args.allow_origin.clone(),
        queue: args.queue,
        connections: args.connections,
        body_bytes: args.max_body,
        long_texts: if args.auto_truncate { LongTexts::Truncated } else { LongTexts::Refused },
        log: if args.log_causes { Log::Words } else { Log::Codes },
        ..of_both(&args.serving)
    };
    let service = service(&args.serving, global)?;
    let names: Vec<String> = service.collections().map(str::to_owned).collect();
    cento_server::serve(service, options, |address| {
        if !global.quiet {
            eprintln!("http://{address} answers for {}; GET /openapi.json says how", names.join(", "));
        }
    })?;
    Ok(Outcome::Done)
}

pub(crate) fn mcp(args: &Mcp, global: &Global) -> anyhow::Result<Outcome> {
    cento_server::serve_pipes(service(&args.serving, global)?, of_both(&args.serving))?;
    Ok(Outcome::Done)
}

fn of_both(serving: &Serving) -> ServerOptions {
    ServerOptions {
        workers: serving.workers,
        deadline: Duration::from_secs(serving.deadline),
        tool_tokens: serving.tool_tokens,
        ..ServerOptions::default()
    }
}

/// The service behind a server; a collection that cannot be opened is said now.
fn service(serving: &Serving, global: &Global) -> anyhow::Result<Service> {
    let collections = match &serving.collections {
        Some(folder) => Service::collections_in(folder)?,
        None => [(Service::name_of(&global.collection)?, global.collection.clone())].into(),
    };
    let service = Service::new(ServiceOptions {
        collections,
        tokenizers: serving
            .tokenizers
            .iter()
            .map(|named| tokenizer(named))
            .collect::<anyhow::Result<BTreeMap<_, _>>>()?,
        device: serving.device.device,
        threads: global.threads,
        model: serving.model.clone(),
        ..ServiceOptions::default()
    })?;
    for name in service.collections() {
        let searcher = service.searcher(name.into(), &cento_engine::Cancel::default())?;
        searcher.warnings().iter().for_each(|warning| eprintln!("warning: {name}: {warning}"));
    }
    Ok(service)
}

fn tokenizer(named: &str) -> anyhow::Result<(String, PathBuf)> {
    let (name, file) =
        named.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty()).ok_or_else(|| {
            options::usage(format!("--tokenizers {named}: expected NAME=FILE, the file a tokenizer.json"))
        })?;
    Ok((name.to_owned(), file.into()))
}
