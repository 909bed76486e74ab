//! `cento serve` and `cento mcp`: the same answers for programs, over a network and over pipes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cento_engine::{
    CacheOptions, Names, Reranker, Root, SHARD_KEY, Service, ServiceOptions, ShardOptions, ShardPlaces, Writing,
};
use cento_server::{Folders, Life, Log, LongTexts, ServerOptions};

use crate::args::{Mcp, Serve, Serving};
use crate::exit_code::Outcome;
use crate::options;
use crate::settings::Invocation;

/// The ways in which a server may change collections, and the cache of what was embedded.
#[derive(Default)]
struct Changes {
    writing: Option<Writing>,
    cache: Option<CacheOptions>,
}

pub(crate) fn serve(args: &Serve, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
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
        folders: if args.show_folders { Folders::Shown } else { Folders::Named },
        life: if args.until_stdin_ends { Life::Stdin } else { Life::Signals },
        ..of_both(&args.serving)
    };
    let names = if args.show_folders { Names::AndPaths } else { Names::Alone };
    let changes = Changes { writing: writing(args, invocation)?, cache: cache(args)? };
    let places = match &args.shards_from {
        Some(file) => Some(ShardPlaces::File(file.clone())),
        None => Some(args.shards.clone()).filter(|shards| !shards.is_empty()).map(ShardPlaces::Listed),
    };
    let service = service(&args.serving, places, invocation, names, changes)?;
    let names: Vec<String> = service.collections().keys().cloned().collect();
    cento_server::serve(service, options, |address| {
        if !global.quiet {
            let names = if names.is_empty() { "no collection yet".to_owned() } else { names.join(", ") };
            eprintln!("http://{address} answers for {names}; GET /openapi.json says how");
        }
    })?;
    Ok(Outcome::Done)
}

pub(crate) fn mcp(args: &Mcp, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let service = service(&args.serving, None, invocation, Names::AndPaths, Changes::default())?;
    cento_server::serve_pipes(service, of_both(&args.serving))?;
    Ok(Outcome::Done)
}

/// The roots and limits of clients that write, if they may.
fn writing(args: &Serve, invocation: &Invocation) -> anyhow::Result<Option<Writing>> {
    if !args.writable {
        return Ok(None);
    }
    let mut roots: Vec<Root> = Vec::new();
    for named in &args.roots {
        let root = Root::parse(named).map_err(cento_engine::Error::from)?;
        if !root.path.exists() {
            return Err(options::usage(format!("--root {named}: there is no such file or folder")));
        }
        let within = |a: &Root, b: &Root| format!("{}/", a.label).starts_with(&format!("{}/", b.label));
        if roots.iter().any(|other| within(&root, other) || within(other, &root)) {
            return Err(options::usage(format!(
                "--root {named}: {} is the label of another root, or one lies within the other; write LABEL=DIR",
                root.label
            )));
        }
        roots.push(root);
    }
    let new_collections = args.serving.collections.clone();
    let commands = invocation.settings.commands(&roots)?;
    let passwords = options::passwords(args.password_file.as_deref())?;
    Ok(Some(Writing { roots, guard: Some(options::guard()?), new_collections, passwords, commands }))
}

/// The embedding cache. A server that only reads does without one where the environment names no folder for it.
fn cache(args: &Serve) -> anyhow::Result<Option<CacheOptions>> {
    match options::cache(&args.cache) {
        Err(_) if !args.writable => Ok(None),
        found => found.map(Some),
    }
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
fn service(
    serving: &Serving,
    places: Option<ShardPlaces>,
    invocation: &Invocation,
    names: Names,
    Changes { writing, cache }: Changes,
) -> anyhow::Result<Service> {
    let global = &invocation.cli.global;
    let name = || Service::name_of(global.named.as_ref().unwrap_or(&global.collection));
    let collections = match &serving.collections {
        Some(folder) => match Service::collections_in(folder) {
            Err(cento_engine::Error::NoCollections { .. }) if writing.is_some() => BTreeMap::new(), // the first is made
            found => found?,
        },
        None if places.is_none() => [(name()?, global.collection.clone())].into(),
        None => BTreeMap::new(),
    };
    let timeout = Duration::from_secs(serving.deadline);
    let mut sharded = BTreeMap::new();
    if let Some(places) = places {
        sharded.insert(name()?, ShardOptions { places, key: options::key(SHARD_KEY)?, timeout });
    }
    let service = Service::new(ServiceOptions {
        collections,
        shards: sharded,
        tokenizers: serving
            .tokenizers
            .iter()
            .map(|named| tokenizer(named))
            .collect::<anyhow::Result<BTreeMap<_, _>>>()?,
        device: serving.device.device,
        threads: global.threads,
        model: serving.model.clone(),
        rerankers: rerankers(serving, invocation)?,
        access: global.access.clone(),
        names,
        cache,
        writing,
        ..ServiceOptions::default()
    })?;
    for name in service.collections().keys() {
        let searcher = service.searcher(name.as_str().into(), &cento_engine::Cancel::default())?;
        searcher.warnings().iter().for_each(|warning| eprintln!("warning: {name}: {warning}"));
    }
    Ok(service)
}

/// The rerankers that requests may name.
fn rerankers(serving: &Serving, invocation: &Invocation) -> anyhow::Result<Vec<Arc<Reranker>>> {
    let (device, threads) = (serving.device.device, invocation.cli.global.threads);
    let open = |model: &String| options::reranker(model, device, threads, invocation.rerank_author).map(Arc::new);
    serving.rerank.iter().map(open).collect()
}

fn tokenizer(named: &str) -> anyhow::Result<(String, PathBuf)> {
    let (name, file) =
        named.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty()).ok_or_else(|| {
            options::usage(format!("--tokenizers {named}: expected NAME=FILE, the file a tokenizer.json"))
        })?;
    Ok((name.to_owned(), file.into()))
}
