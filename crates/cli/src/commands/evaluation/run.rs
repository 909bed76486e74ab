//! `cento run`: rank documents for a batch of topics, write a TREC run, and assemble the topics' contexts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use cento_engine::api::Budget;
use cento_engine::{
    BudgetTokenizer, ChunkSearch, Context, ContextSettings, DocumentRanking, Filtered, Marks, MissingShard, Mode,
    NOT_REQUIRED, Phrases, Policy, Pool, Required, Reranking, RunQuery, RunRequest, Scan, Searcher, Strategy,
};
use cento_eval::context::redundancy::mean_pairwise_cosine;
use cento_eval::topics::Topic;
use cento_eval::{contexts, run, topics};
use rayon::prelude::*;

use crate::args::{Global, Run, Ties};
use crate::exit_code::Outcome;
use crate::output::{self, Bar, Beside};
use crate::settings::Invocation;
use crate::{options, policy_file};

/// Topics whose contexts are held until they are written in order.
const BATCH_TOPICS: usize = 64;

#[derive(serde::Serialize)]
struct Answer {
    version: u32,
    n_topics: usize,
    n_results: usize,
    n_topics_without_results: usize,
    n_contexts: usize,
    tag: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<Filtered>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<MissingShard>,
}

pub(crate) fn execute(args: &Run, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    let search = options::request(String::new(), args.k, &args.retrieval, Scan::Exact)?;
    let search = ChunkSearch { ef: options::ef(args.ef, search.candidates)?.unwrap_or_default(), ..search };
    if args.tag.is_empty() || args.tag.contains(char::is_whitespace) {
        return Err(options::usage(format!(
            "--tag {:?}: is empty or has a blank, which a run file cannot hold",
            args.tag
        )));
    }
    if global.json && args.output == Path::new("-") {
        return Err(options::usage("--json needs the run in a file: -o FILE"));
    }
    let contexts = args.contexts.contexts.as_deref();
    if contexts == Some(&*args.output) || global.json && contexts == Some(Path::new("-")) {
        return Err(options::usage("--contexts: wants a file of its own, beside that of the run and of --json"));
    }
    if contexts.is_some() && args.shards.allow_partial {
        return Err(options::usage("--allow-partial: a file of contexts cannot say what is missing; leave one out"));
    }
    let variants = Variants::new(args)?;
    let topics = topics::read(&args.topics)?;
    let search = ChunkSearch { rerank: reranking(args, invocation)?, ..search };
    let (_, searcher, _) = options::service(invocation, &args.retrieval, &args.shards, None, Vec::new())?;
    options::remark_missing(searcher.missing());
    let (n_results, n_empty) = rank(args, global, &search, &topics, &searcher)?;
    let n_contexts = match &args.contexts.contexts {
        Some(path) => variants.write(path, global, &search, &topics, &searcher)?,
        None => 0,
    };
    options::remark_device(global, &searcher);
    let filter = search.filter.as_ref().map(|filter| searcher.filtered(filter)).transpose()?;
    options::remark_filter(global, filter.as_ref());
    if global.json {
        output::json(&Answer {
            version: output::JSON_VERSION,
            n_topics: topics.len(),
            n_results,
            n_topics_without_results: n_empty,
            n_contexts,
            tag: args.tag.clone(),
            filter,
            missing: searcher.missing().to_vec(),
        })?;
    } else if !global.quiet {
        let counted = |n: usize, what| output::counted(n as u64, what);
        let contexts = if n_contexts > 0 { format!(", {}", counted(n_contexts, "context")) } else { String::new() };
        eprintln!(
            "{}, {}, {} without results{contexts}",
            counted(topics.len(), "topic"),
            counted(n_results, "result"),
            counted(n_empty, "topic")
        );
    }
    Ok(if n_results == 0 { Outcome::Nothing } else { Outcome::Done })
}

/// The model that reads the best documents, and the best candidates of contexts, if one is asked for.
fn reranking(args: &Run, invocation: &Invocation) -> anyhow::Result<Option<Reranking>> {
    let Some(rerank) = options::rerank(&args.rerank, None) else { return Ok(None) };
    rerank.check()?;
    let opened = options::rerankers(&args.rerank, &args.retrieval, invocation)?;
    Ok(opened.into_iter().next().map(|reranker| Reranking::new(reranker, rerank.depth, None)))
}

/// Writes the run; the number of results, and of topics without any.
fn rank(
    args: &Run,
    global: &Global,
    search: &ChunkSearch,
    topics: &[Topic],
    searcher: &Searcher,
) -> anyhow::Result<(usize, usize)> {
    // One more than wanted, as the topic itself may be among them.
    let k = (args.k + usize::from(args.remove_query)).min(search.candidates.max(args.k));
    let request = RunRequest {
        k,
        lexical: options::lexical_score(args.lexical_score),
        title_weight: args.title_weight,
        ..options::run_request(search)
    };
    let query = |topic: &Topic| RunQuery { text: topic.text.clone(), scope: scope(topic, search) };
    let queries: Vec<RunQuery> = topics.iter().map(query).collect();
    let vectors = args.topic_vectors.as_deref().map(|path| options::vectors(path, searcher)).transpose()?;
    let is_embedded = vectors.is_none() && search.mode != Mode::Lexical;
    let request = RunRequest { vectors, ..request };
    let bar = Bar::new(global, Beside::AnyAnswer);
    let rankings = searcher.run(&queries, &request, &mut |n_done| bar.count(n_done, queries.len(), "topics"));
    bar.finish();
    let mut rankings = rankings?;
    if is_embedded {
        warn_of_cut(&queries, searcher)?;
    }
    warn_of_phrases(&queries, &rankings, search.phrases, searcher, global);
    let mut out = output::file(&args.output)?;
    for (topic, ranking) in topics.iter().zip(&mut rankings) {
        if args.remove_query {
            ranking.retain(|(document, _)| *document != topic.id);
        }
        ranking.truncate(args.k);
        let ties = if args.ties == Ties::Break { run::Ties::Break } else { run::Ties::Keep };
        run::write(&mut out, &topic.id, ranking.iter().map(|(document, score)| (document, *score)), &args.tag, ties)?;
    }
    out.finish()?;
    let n_empty = rankings.iter().filter(|ranking| ranking.is_empty()).count();
    Ok((rankings.iter().map(Vec::len).sum(), n_empty))
}

/// Says of how many topics the quotations are not required word by word, and which ask for a phrase that is nowhere.
fn warn_of_phrases(
    queries: &[RunQuery],
    rankings: &[DocumentRanking],
    phrases: Phrases,
    searcher: &Searcher,
    global: &Global,
) {
    let (mut n_words, mut absent) = (0, Vec::new());
    for (query, ranking) in queries.iter().zip(rankings) {
        let Required { phrases, warnings } = searcher.quoted(&query.text, phrases);
        n_words += usize::from(!warnings.is_empty());
        absent.extend((!phrases.is_empty() && ranking.is_empty()).then_some(&query.text));
    }
    if n_words > 0 && !global.quiet {
        let topics = output::counted(n_words as u64, "topic");
        eprintln!("{NOT_REQUIRED} of {topics} with a quotation in a sentence (--phrases required asks for them)");
    }
    if let Some(first) = absent.first() {
        let topics = output::counted(absent.len() as u64, "topic");
        eprintln!("warning: no document has the phrases of {topics}, such as {first:?}");
    }
}

/// Says how many topics the encoder reads the beginning of alone.
fn warn_of_cut(queries: &[RunQuery], searcher: &Searcher) -> anyhow::Result<()> {
    let (n_cut, max_tokens) = (searcher.n_cut(queries)?, searcher.encoder()?.max_tokens());
    if n_cut > 0 {
        let n_topics = queries.len();
        eprintln!(
            "warning: {n_cut} of {n_topics} topics have more than the {max_tokens} tokens that the encoder reads: \
             vectors are of their beginning"
        );
    }
    Ok(())
}

/// The topic's scope, narrowed to what the command line allows.
fn scope(topic: &Topic, search: &ChunkSearch) -> Option<Vec<String>> {
    match (&topic.scope, &search.scope) {
        (Some(of_topic), Some(within)) => Some(of_topic.iter().filter(|id| within.contains(id)).cloned().collect()),
        (one, other) => one.as_ref().or(other.as_ref()).cloned(),
    }
}

/// The contexts wanted for each topic.
struct Variants {
    strategies: Vec<(Strategy, String)>,
    budgets: Vec<Budget>,
    tokenizer: String,
    policy: Policy,
    marks: Marks,
    /// True if `flat` is asked besides for as many tokens as each context has.
    matched: bool,
    /// True if a document whose id is the topic's is no candidate.
    removes_query: bool,
}

/// Prefix of the label of a strategy in that of the flat context of its length.
const MATCHED: &str = "flat=";

impl Variants {
    fn new(run: &Run) -> anyhow::Result<Self> {
        let args = &run.contexts;
        let strategies: BTreeSet<String> = args.strategy.iter().map(ToString::to_string).collect();
        let budgets: BTreeSet<String> = args.budget.iter().map(ToString::to_string).collect();
        if strategies.len() != args.strategy.len() || budgets.len() != args.budget.len() {
            return Err(options::usage("--budget and --strategy: one value is there twice"));
        }
        let asked = policy_file::read(args.policy.as_deref())?;
        let strategies = match (&args.label, &asked.strategies(&args.strategy)?[..]) {
            (None, strategies) => strategies.iter().map(|strategy| (*strategy, strategy.to_string())).collect(),
            (Some(label), _) if label.trim().is_empty() => return Err(options::usage("--label: is empty")),
            (Some(label), [only]) => vec![(*only, label.clone())],
            (Some(label), many) => {
                return Err(options::usage(format!("--label {label}: names one strategy, there are {}", many.len())));
            }
        };
        let budgets = if args.contexts.is_some() { asked.budgets(&args.budget)? } else { Vec::new() };
        for budget in &budgets {
            strategies.iter().try_for_each(|(strategy, _)| budget.check(*strategy))?; // before the run is written
        }
        let (policy, tokenizer) = (asked.policy, args.tokenizer.clone());
        let (matched, marks, removes_query) = (args.matched, args.marks, run.remove_query);
        Ok(Self { strategies, budgets, tokenizer, policy, marks, matched, removes_query })
    }

    /// Assembles and writes the contexts, topic by topic; how many there are.
    fn write(
        &self,
        path: &Path,
        global: &Global,
        search: &ChunkSearch,
        topics: &[Topic],
        searcher: &Searcher,
    ) -> anyhow::Result<usize> {
        let tokenizer = options::tokenizer(&self.tokenizer, searcher)?;
        let mut out = output::file(path)?;
        let bar = Bar::new(global, Beside::AnyAnswer);
        let mut n_contexts = 0;
        for (n_batch, batch) in topics.chunks(BATCH_TOPICS).enumerate() {
            let lines = |topic: &Topic| {
                let (query, scope) = (topic.text.clone(), scope(topic, search));
                let rerank = search.rerank.as_ref().map(Reranking::renewed);
                let mut pool = searcher.pool(&ChunkSearch { query, scope, rerank, ..search.clone() })?;
                if self.removes_query {
                    pool.remove_document(&topic.id);
                }
                let contexts = self.contexts(topic, &pool, &tokenizer)?;
                let lines = contexts.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
                anyhow::Ok(lines)
            };
            for line in batch.par_iter().map(lines).collect::<anyhow::Result<Vec<_>>>()?.concat() {
                writeln!(out, "{line}")?;
                n_contexts += 1;
            }
            bar.count((n_batch * BATCH_TOPICS + batch.len()).min(topics.len()), topics.len(), "topics in context");
        }
        bar.finish();
        out.finish()?;
        Ok(n_contexts)
    }

    /// The contexts of a topic as lines of the file.
    fn contexts(
        &self,
        topic: &Topic,
        pool: &Pool<'_>,
        tokenizer: &BudgetTokenizer<'_>,
    ) -> anyhow::Result<Vec<contexts::Context>> {
        let mut records = Vec::new();
        for (strategy, label) in &self.strategies {
            for budget in &self.budgets {
                let settings = ContextSettings::new(budget.most(), tokenizer, &self.policy);
                let request = ContextSettings { strategy: *strategy, marks: self.marks, ..settings };
                let budget_tokens = budget.settle(pool, &request)?.budget_tokens;
                let request = ContextSettings { budget_tokens, ..request };
                let asked = matches!(budget, Budget::Auto(_)).then(|| budget.to_string());
                let record = |label: &str, context: &Context| {
                    let (budget_tokens, budget) = (budget_tokens as u64, asked.clone());
                    anyhow::Ok(contexts::Context { budget_tokens, budget, ..record(topic, label, pool, context)? })
                };
                let context = pool.context(&request)?;
                records.push(record(label, &context)?);
                if self.matched && *strategy != Strategy::Flat {
                    let same_tokens =
                        ContextSettings { strategy: Strategy::Flat, budget_tokens: context.n_tokens, ..request };
                    // Nothing is as much as nothing.
                    let flat = if context.citations.is_empty() { context } else { pool.context(&same_tokens)? };
                    records.push(record(&format!("{MATCHED}{label}"), &flat)?);
                }
            }
        }
        Ok(records)
    }
}

/// A context as a line of the file, with what `eval-context` needs to judge it.
fn record(topic: &Topic, label: &str, pool: &Pool<'_>, context: &Context) -> anyhow::Result<contexts::Context> {
    let manifest = &context.trace.manifest;
    let mut citations = Vec::with_capacity(context.citations.len());
    for (citation, text) in context.citations.iter().zip(pool.texts(&context.citations)?) {
        citations.push(contexts::Citation {
            n: citation.n as u64,
            document: citation.document.clone(),
            path: citation.path.clone(),
            span: citation.span.clone(),
            source: citation.source.clone(),
            anchor: citation.anchor.to_string(),
            chunks: citation.chunks.clone(),
            cut: citation.cut,
            text,
        });
    }
    let delivered = manifest.sections.iter().filter(|section| section.chunks > 0);
    let section = |section: &cento_engine::trace::SectionTokens| contexts::Section {
        section: section.section.replace('\u{1f}', " > "),
        label: section.label.clone(),
        chunks: section.chunks as u64,
        tokens: section.tokens as u64,
    };
    let vectors = pool.vectors(&manifest.selected)?;
    let vectors: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
    Ok(contexts::Context {
        version: contexts::VERSION,
        query_id: topic.id.clone(),
        query: topic.text.clone(),
        strategy: label.to_owned(),
        budget_tokens: context.budget_tokens as u64,
        budget: None,
        n_tokens: context.n_tokens as u64,
        n_text_tokens: manifest.text_tokens as u64,
        tokenizer: context.tokenizer.clone(),
        context: context.counted().to_owned(),
        documents: documents_by_relevance(context),
        sections: delivered.map(section).collect(),
        redundancy_cosine: mean_pairwise_cosine(&vectors),
        decisions: decisions(context)?,
        citations,
    })
}

/// Number of candidates decided for each reason of the trace.
fn decisions(context: &Context) -> anyhow::Result<BTreeMap<String, u64>> {
    let mut decisions = BTreeMap::new();
    for record in &context.trace.records {
        let reason = serde_json::to_value(record.final_reason)?;
        *decisions.entry(reason.as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    Ok(decisions)
}

/// Delivered documents, that of the most relevant delivered chunk first.
fn documents_by_relevance(context: &Context) -> Vec<String> {
    let selected: BTreeSet<&str> = context.trace.manifest.selected.iter().map(String::as_str).collect();
    let records = context.trace.records.iter().filter(|record| selected.contains(record.chunk_id.as_str()));
    let mut records: Vec<_> = records.collect();
    records.sort_by(|a, b| b.retrieval_score.total_cmp(&a.retrieval_score).then_with(|| b.chunk_id.cmp(&a.chunk_id)));
    let mut documents: Vec<String> = Vec::new();
    for record in records {
        if !documents.contains(&record.document) {
            documents.push(record.document.clone());
        }
    }
    documents
}
