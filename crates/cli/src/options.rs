//! Validated options: from the flags of a command to what the engine takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cento_engine::{
    At, BudgetTokenizer, CacheOptions, Cancel, ChunkSearch, ContextWriter, DeviceChoice, Endpoint, EndpointOptions,
    Filter, Filtered, Fusion, GivenOptions, Guard, IndexOptions, Lengths, LexicalScore, Links, Losses, Missing,
    MissingShard, Mode, Needed, Passwords, Phrases, Reach, ReadOptions, Removals, RepairOptions, Reranker,
    RerankerOptions, Root, RunRequest, SHARD_KEY, SHARD_TIMEOUT, Scalar, Scan, Searcher, SearcherOptions, Service,
    ServiceOptions, ShardOptions, ShardPlaces, Weights, Which, api,
};

use crate::args;
use crate::settings::{Author, FILE, Invocation};
pub(crate) use crate::usage::usage;

/// A query as it stands, or from stdin for `-`.
pub(crate) fn query(argument: &str) -> anyhow::Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let bytes = cento_engine::take_bounded(std::io::stdin(), api::QUERY_BYTES_MAX as u64)
        .map_err(|error| usage(format!("stdin: the query: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        usage(format!("stdin: the query is not UTF-8 from byte {} on", error.utf8_error().valid_up_to()))
    })?;
    Ok(text.trim().to_owned())
}

/// The vectors to search for in a file, or on stdin for `-`.
pub(crate) fn vectors(path: &Path, searcher: &Searcher) -> anyhow::Result<Vec<Vec<f32>>> {
    let is_stdin = path == Path::new("-");
    if !is_stdin && let Some(vectors) = cento_engine::open_vectors(path, QUERIES_BYTES_MAX)? {
        return Ok(vectors);
    }
    let read = if is_stdin {
        cento_engine::take_bounded(std::io::stdin(), QUERIES_BYTES_MAX)
    } else {
        cento_engine::read_bounded(path, QUERIES_BYTES_MAX)
    };
    let named = if is_stdin { Path::new("stdin") } else { path };
    let bytes = read.with_context(|| named.display().to_string())?;
    Ok(cento_engine::read_vectors(named, bytes, searcher.manifest().config.query_dimensions())?)
}

/// Bytes of vectors to search for, at most.
const QUERIES_BYTES_MAX: u64 = 4 << 30;

pub(crate) fn index(args: &args::Index, roots: &[Root], invocation: &Invocation) -> anyhow::Result<IndexOptions> {
    let global = &invocation.cli.global;
    let header = match args.header {
        Some(args::Header::Style(style)) => Some(style),
        Some(args::Header::Written) | None => None,
    };
    Ok(IndexOptions {
        model: args.model.clone(),
        prompt: args.prompt.clone(),
        endpoint: args.elsewhere.settings(),
        access: args.elsewhere.both.access(&global.access),
        header,
        contexts: context_writer(args, invocation)?,
        chunk_tokens: args.chunk_tokens,
        language: args.language,
        vectors: args.vectors.map(scalar),
        pooling: args.pooling,
        late_window: args.late_window,
        part: args.part,
        read: ReadOptions {
            format: args.format,
            lossy: args.lossy,
            max_file_bytes: args.max_file_bytes,
            passwords: passwords(args.password_file.as_deref())?,
            commands: invocation.settings.commands(roots)?,
        },
        guard: Some(guard()?),
        device: args.device.device,
        precision: args.precision,
        threads: global.threads,
        graph_rows_min: args.graph_rows_min,
        memory_bytes: args.memory.memory_bytes.map(|memory| memory.0),
        segment_rows_max: cento_engine::config::SEGMENT_ROWS_MAX,
        cache: if args.no_cache { None } else { Some(cache(&args.cache)?) },
        removals: if args.allow_empty { Removals::All } else { Removals::Guarded },
        compact: !args.compaction.no_compact,
        cancel: Cancel::default(), // Ctrl-C ends the process
    })
}

/// The passwords in a file, if one is named.
pub(crate) fn passwords(path: Option<&Path>) -> anyhow::Result<Passwords> {
    let Some(path) = path else { return Ok(Passwords::default()) };
    let bytes = cento_engine::read_bounded(path, cento_engine::corpus::PASSWORD_FILE_BYTES_MAX)
        .with_context(|| format!("--password-file {}", path.display()))?;
    Passwords::parse(&bytes).map_err(|reason| usage(format!("--password-file {}: {reason}", path.display())))
}

/// The way `cento` reads files in children: itself, as `cento read`.
pub(crate) fn guard() -> anyhow::Result<Guard> {
    let own = std::env::current_exe().context("the path of this executable, which reads files in children")?;
    Ok(Guard::new(vec![own.into(), args::READ.into()]))
}

/// The model that writes contexts, where they are asked for. An endpoint of the user's settings is there for whoever
/// wants one.
fn context_writer(args: &args::Index, invocation: &Invocation) -> anyhow::Result<Option<Arc<dyn ContextWriter>>> {
    if args.header != Some(args::Header::Written) {
        return match invocation.names_endpoint {
            true => Err(usage("--endpoint: is for --header llm")),
            false => Ok(None),
        };
    }
    let args::Writer { endpoint: url, endpoint_model, endpoint_timeout, endpoint_price: _ } = &args.writer;
    let asked = args::Endpoint {
        endpoint: url.clone(),
        endpoint_model: endpoint_model.clone(),
        endpoint_timeout: *endpoint_timeout,
        endpoint_fallback: false,
    };
    match endpoint(&asked, invocation.endpoint_author)? {
        Some(endpoint) => Ok(Some(Arc::new(endpoint))),
        None => Err(usage("--header llm: who writes the contexts? say it with --endpoint URL --endpoint-model NAME")),
    }
}

/// The vectors that `cento index` is given, if it is.
pub(crate) fn given(args: &args::Index) -> Option<GivenOptions> {
    let given = &args.given;
    Some(GivenOptions {
        ids: given.ids.clone(),
        texts: given.texts.clone(),
        column: given.vector_column.clone(),
        distance: given.distance,
        lengths: if given.normalize { Lengths::Normalized } else { Lengths::Kept },
        norm_max: given.norm_max,
        language: args.language,
        scalar: args.vectors.map(scalar),
        graph_rows_min: args.graph_rows_min,
        memory_bytes: args.memory.memory_bytes.map(|memory| memory.0),
        compact: !args.compaction.no_compact,
        ..GivenOptions::new(given.from_vectors.clone()?)
    })
}

pub(crate) fn repair(args: &args::Repair, global: &args::Global) -> anyhow::Result<RepairOptions> {
    let index = IndexOptions {
        model: args.model.clone(),
        access: global.access.clone(),
        device: args.device.device,
        threads: global.threads,
        graph_rows_min: args.graph_rows_min,
        cache: if args.no_cache { None } else { Some(cache(&args.cache)?) },
        ..IndexOptions::default()
    };
    Ok(RepairOptions {
        index,
        vectors: if args.no_embed { Missing::Refused } else { Missing::Made },
        losses: if args.accept_losses { Losses::Accepted } else { Losses::Remembered },
    })
}

/// The embedding cache: where the command line says, or where the user's caches are.
pub(crate) fn cache(place: &args::CachePlace) -> anyhow::Result<CacheOptions> {
    let max_bytes = place.max_bytes.0;
    Ok(match &place.folder {
        Some(folder) => CacheOptions { folder: folder.clone(), max_bytes },
        None => CacheOptions { max_bytes, ..CacheOptions::of_user()? },
    })
}

/// The number type of stored vectors.
pub(crate) fn scalar(vectors: args::Vectors) -> Scalar {
    match vectors {
        args::Vectors::F32 => Scalar::F32,
        args::Vectors::F16 => Scalar::F16,
    }
}

/// Opens the collection as a query command asks for it.
pub(crate) fn searcher(global: &args::Global, retrieval: &args::Retrieval) -> anyhow::Result<Searcher> {
    let options = SearcherOptions {
        model: retrieval.model.clone(),
        access: global.access.clone(),
        device: retrieval.device.device,
        threads: global.threads,
        at: at(&retrieval.at),
        ..SearcherOptions::default()
    };
    let searcher = Searcher::open(&global.collection, options)?;
    searcher.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    Ok(searcher)
}

/// A model that reads the best candidates again, as an option names it; its key comes from the environment alone, and
/// is meant for an address that the user names.
pub(crate) fn reranker(model: &str, device: DeviceChoice, threads: usize, author: Author) -> anyhow::Result<Reranker> {
    let key = key(RERANK_KEY)?;
    let reach = match author {
        Author::User => Reach::Any,
        Author::Folder => Reach::Public,
    };
    let key = key.as_deref().filter(|_| author == Author::User);
    Ok(Reranker::open(model, &RerankerOptions { device, threads, key, reach })?)
}

/// The reranker of a query command, if it wants one.
pub(crate) fn rerankers(
    args: &args::Rerank,
    retrieval: &args::Retrieval,
    invocation: &Invocation,
) -> anyhow::Result<Vec<Arc<Reranker>>> {
    let (device, threads) = (retrieval.device.device, invocation.cli.global.threads);
    let open = |model: &String| reranker(model, device, threads, invocation.rerank_author).map(Arc::new);
    args.rerank.iter().map(open).collect()
}

/// The same as a request says it.
pub(crate) fn rerank(args: &args::Rerank, seconds: Option<f64>) -> Option<api::Rerank> {
    let model = args.rerank.clone()?;
    Some(api::Rerank { model, depth: args.rerank_depth, seconds })
}

/// A key in the environment, if it is there.
pub(crate) fn key(name: &'static str) -> anyhow::Result<Option<String>> {
    let key = std::env::var_os(name).map(std::ffi::OsString::into_string).transpose();
    key.map_err(|_| usage(format!("{name}: is not UTF-8")))
}

/// Names the key of a reranker, which is no option: command lines are seen by others.
const RERANK_KEY: &str = "CENTO_RERANK_KEY";

/// The name of a collection on other servers, for a service that has no other.
const SHARDS: &str = "shards";

/// The collection that a query command asks.
#[derive(Debug)]
pub(crate) enum Place {
    Folder(PathBuf),
    Shards,
}

impl Place {
    pub(crate) fn which(&self) -> Which<'_> {
        match self {
            Self::Folder(folder) => Which::Folder(folder),
            Self::Shards => Which::Name(SHARDS),
        }
    }
}

/// A service for one collection as a query command asks for it, the collection, and which it is; what is said of it
/// goes to stderr. A tokenizer that is not built in is a file.
pub(crate) fn service(
    invocation: &Invocation,
    retrieval: &args::Retrieval,
    shards: &args::Shards,
    tokenizer: Option<&str>,
    rerankers: Vec<Arc<Reranker>>,
) -> anyhow::Result<(Service, Arc<Searcher>, Place)> {
    let global = &invocation.cli.global;
    let (place, sharded) = match shards.urls.as_slice() {
        [] => (Place::Folder(global.collection.clone()), None),
        _ if invocation.names_collection => {
            return Err(usage("--collection: is a folder, and --shards asks servers; give one of them"));
        }
        urls => {
            let (places, key, timeout) = (ShardPlaces::Listed(urls.to_vec()), key(SHARD_KEY)?, SHARD_TIMEOUT);
            (Place::Shards, Some((SHARDS.to_owned(), ShardOptions { places, key, timeout })))
        }
    };
    let needed = if shards.allow_partial { Needed::Any } else { Needed::All };
    let file = tokenizer.filter(|name| !Service::has_tokenizer(name)).map(|name| (name.to_owned(), name.into()));
    let service = Service::new(ServiceOptions {
        tokenizers: file.into_iter().collect(),
        device: retrieval.device.device,
        threads: global.threads,
        model: retrieval.model.clone(),
        access: global.access.clone(),
        at: at(&retrieval.at),
        shards: sharded.into_iter().collect(),
        rerankers,
        ..ServiceOptions::default()
    })?;
    let searcher = service.searcher_of(place.which(), needed, &Cancel::default())?;
    searcher.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    Ok((service, searcher, place))
}

/// Says which part of the collection has no part in an answer, whatever else is not to be said.
pub(crate) fn remark_missing(missing: &[MissingShard]) {
    missing.iter().for_each(|missing| eprintln!("warning: {}", missing.warning()));
}

/// The generation a command asks for.
pub(crate) fn at(args: &args::At) -> At {
    match (&args.snapshot, args.generation) {
        (Some(name), _) => At::Snapshot(name.clone()),
        (_, Some(generation)) => At::Generation(generation),
        _ => At::Current,
    }
}

/// Says once where queries were embedded, if there was a choice.
pub(crate) fn remark_device(global: &args::Global, searcher: &Searcher) {
    if let Some(remark) = searcher.device_remark().filter(|_| !global.quiet) {
        eprintln!("{remark}");
    }
}

/// The search that a query command asks for; `scan` is what it does unless told.
pub(crate) fn asked(query: String, k: usize, retrieval: &args::Retrieval, scan: Scan) -> api::SearchRequest {
    api::SearchRequest {
        query,
        k,
        candidates: retrieval.candidates,
        mode: match retrieval.mode {
            args::Mode::Hybrid => Mode::Hybrid,
            args::Mode::Dense => Mode::Dense,
            args::Mode::Lexical => Mode::Lexical,
        },
        fusion: match retrieval.fusion {
            args::Fusion::Rrf => Fusion::Rrf,
            args::Fusion::Convex => Fusion::Convex,
            args::Fusion::Adaptive => Fusion::Adaptive,
        },
        weights: Weights { lexical: retrieval.lexical_weight, k1: retrieval.k1, b: retrieval.b },
        phrases: match retrieval.phrases {
            args::Phrases::Auto => Phrases::Auto,
            args::Phrases::Required => Phrases::Required,
            args::Phrases::Words => Phrases::Words,
        },
        links: match retrieval.links {
            args::Links::Named => Links::Named,
            args::Links::Authored => Links::Authored,
            args::Links::All => Links::All,
            args::Links::None => Links::None,
        },
        scan: match (retrieval.exact, retrieval.ann) {
            (true, _) => Scan::Exact,
            (_, true) => Scan::Auto,
            _ => scan,
        },
        find_vectors: retrieval.find_vectors,
        score_vectors: retrieval.score_vectors,
        within: retrieval.within.clone(),
        filter: retrieval.filter.clone(),
        ..api::SearchRequest::default()
    }
}

/// The score of a document by words.
pub(crate) fn lexical_score(score: args::LexicalScore) -> LexicalScore {
    match score {
        args::LexicalScore::Document => LexicalScore::Document,
        args::LexicalScore::Mean => LexicalScore::Mean,
    }
}

/// The same as a searcher takes it.
pub(crate) fn request(query: String, k: usize, retrieval: &args::Retrieval, scan: Scan) -> anyhow::Result<ChunkSearch> {
    Ok(asked(query, k, retrieval, scan).resolve()?)
}

/// The same for a batch of topics.
pub(crate) fn run_request(search: &ChunkSearch) -> RunRequest {
    let ChunkSearch { candidates, mode, fusion, weights, links, phrases, scan, ef, find, .. } = *search;
    let (filter, rerank) = (search.filter.clone(), search.rerank.clone());
    let found = RunRequest { candidates, mode, fusion, weights, links, phrases, ..RunRequest::default() };
    RunRequest { scan, ef, find, filter, rerank, ..found }
}

/// The width of the beam that a command asks for, if it asks for one.
pub(crate) fn ef(ef: Option<usize>, candidates: usize) -> anyhow::Result<Option<usize>> {
    match ef {
        Some(ef) if ef < candidates => Err(usage(format!(
            "--ef {ef}: a beam holds at least the {candidates} of --candidates; widen it, or ask for fewer"
        ))),
        asked => Ok(asked),
    }
}

/// The filter of a command, if it has one.
pub(crate) fn filter(expression: Option<&str>) -> anyhow::Result<Option<Filter>> {
    Ok(expression.map(Filter::parse).transpose().map_err(cento_engine::Error::from)?)
}

/// Says how many documents a filter let through.
pub(crate) fn remark_filter(global: &args::Global, filtered: Option<&Filtered>) {
    if let Some(Filtered { n_admitted, n_documents, n_chunks, .. }) = filtered.filter(|_| !global.quiet) {
        let chunks = n_chunks.map_or_else(String::new, |n| format!("{} in ", crate::output::counted(n, "chunk")));
        eprintln!("filter: {chunks}{n_admitted} of {n_documents} documents");
    }
}

/// The language model that a command wants asked, if it wants one; its key comes from the environment alone, and
/// is meant for an endpoint that the user names.
pub(crate) fn endpoint(args: &args::Endpoint, author: Author) -> anyhow::Result<Option<Endpoint>> {
    let (url, model) = match (&args.endpoint, &args.endpoint_model) {
        (None, None) => return Ok(None),
        (Some(url), Some(model)) => (url.clone(), model.clone()),
        (Some(_), None) => {
            return Err(usage("--endpoint: which model is to be asked there? name it with --endpoint-model NAME"));
        }
        (None, Some(model)) => {
            return Err(usage(format!("--endpoint-model {model}: nobody to ask; say where it is with --endpoint URL")));
        }
    };
    let (timeout, fallback) = (Duration::from_secs(args.endpoint_timeout), args.endpoint_fallback);
    let key = key(ENDPOINT_KEY)?;
    let reach = match author {
        Author::User => Reach::Any,
        Author::Folder => Reach::Public,
    };
    let options = EndpointOptions { url, model, timeout, fallback, reach };
    let endpoint = Endpoint::open(&options, key.as_deref().filter(|_| author == Author::User))?;
    if author == Author::Folder && key.is_some() {
        let host = endpoint.host();
        eprintln!(
            "warning: {ENDPOINT_KEY} is not sent to {host}, which {FILE} names; \
             if it is meant for it, name the endpoint with --endpoint"
        );
    }
    Ok(Some(endpoint))
}

/// Names the key of an endpoint, which is no option: command lines are seen by others.
const ENDPOINT_KEY: &str = "CENTO_ENDPOINT_KEY";

/// The tokenizer a budget is counted with.
pub(crate) fn tokenizer<'s>(name: &str, searcher: &'s Searcher) -> anyhow::Result<BudgetTokenizer<'s>> {
    match name {
        "model" => Ok(BudgetTokenizer::of_model(&searcher.manifest().config.model, searcher.encoder()?.tokenizer())),
        other => Ok(BudgetTokenizer::named(other)?),
    }
}
