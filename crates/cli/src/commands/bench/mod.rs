//! `cento bench`: latency, throughput, recall and contexts of a collection on this machine.
//!
//! A time is worth little alone: every answer carries the machine, and a speed stands beside its recall where one was
//! traded.

mod contexts;
mod device;
mod embed;
mod percentiles;
mod queries;
mod scan;

use std::time::{Duration, Instant};

use cento_engine::{Nearest, Scan, Searcher, Timings, embedder::Kind};
use cento_eval::Machine;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use self::percentiles::Percentiles;
use self::queries::{queries, remark};
use crate::args::{Bench, BenchTarget, Global};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside};

/// Chunks that the encoder's throughput is measured over, at most.
const N_TEXTS: usize = 2000;

pub(crate) fn execute(bench: &Bench, global: &Global) -> anyhow::Result<Outcome> {
    match bench {
        Bench::Latency(target) => latency(target, global),
        Bench::Throughput(target) => throughput(target, global),
        Bench::Embed(args) => embed::execute(args, global),
        Bench::Device(args) => device::execute(args, global),
        Bench::Scan(args) => scan::execute(args, global),
        Bench::Contexts(args) => contexts::execute(args, global),
        Bench::Recall { target, ef } => recall(target, ef, global),
    }
}

fn latency(target: &BenchTarget, global: &Global) -> anyhow::Result<Outcome> {
    let searcher = options::searcher(global, &target.retrieval)?;
    let queries = queries(target, &searcher)?;
    let request = |query: &str| options::request(query.to_owned(), target.k, &target.retrieval, Scan::Auto);
    searcher.search(&request(&queries[0])?)?; // loads the encoder and touches the files
    let bar = Bar::new(global, Beside::AnyAnswer);
    let mut times: Vec<(Duration, Timings)> = Vec::with_capacity(queries.len());
    for query in &queries {
        let start = Instant::now();
        let (_, timings) = searcher.search_timed(&request(query)?)?;
        times.push((start.elapsed(), timings));
        bar.count(times.len(), queries.len(), "queries");
    }
    bar.finish();
    type Stage = (&'static str, fn(&(Duration, Timings)) -> Duration);
    let stages: [Stage; 6] = [
        ("total", |time| time.0),
        ("embed", |time| time.1.embed),
        ("dense", |time| time.1.dense),
        ("lexical", |time| time.1.lexical),
        ("fuse", |time| time.1.fuse),
        ("texts", |time| time.1.texts),
    ];
    let of_stage = |(name, time): &Stage| (*name, Percentiles::of(times.iter().map(time)));
    let stages: Vec<(&str, Percentiles)> = stages.iter().map(of_stage).collect();
    let seconds: f64 = times.iter().map(|time| time.0.as_secs_f64()).sum();
    let qps = queries.len() as f64 / seconds;
    if global.json {
        let stages: Map<String, Value> =
            stages.iter().map(|(name, times)| ((*name).to_owned(), times.json())).collect();
        output::json(&json!({
            "version": output::JSON_VERSION, "bench": "latency", "machine": Machine::here(), "n_queries": queries.len(),
            "n_rows": searcher.graph_rows().1, "k": target.k, "qps": qps, "stages_ms": stages,
        }))?;
    } else {
        let row = |(name, times): &(&str, Percentiles)| {
            let values = [times.p50, times.p95, times.p99].map(|ms| format!("{ms:.2}"));
            [(*name).to_owned()].into_iter().chain(values).collect()
        };
        println!("{}", output::table(&["ms", "p50", "p95", "p99"], stages.iter().map(row)));
        println!("{qps:.1} queries a second, one after another");
    }
    remark(global, queries.len(), &searcher);
    Ok(Outcome::Done)
}

fn throughput(target: &BenchTarget, global: &Global) -> anyhow::Result<Outcome> {
    let searcher = options::searcher(global, &target.retrieval)?;
    let encoder = searcher.encoder()?;
    let texts = searcher.sample_texts(N_TEXTS)?;
    let n_tokens: usize = texts.iter().map(|text| encoder.tokenizer().count(text)).sum();
    encoder.embed(&texts[..1.min(texts.len())], Kind::Document)?;
    let start = Instant::now();
    let embedded = encoder.embed(&texts, Kind::Document)?;
    let embed_seconds = start.elapsed().as_secs_f64();
    let queries = queries(target, &searcher)?;
    let start = Instant::now();
    let request = |query: &String| options::request(query.clone(), target.k, &target.retrieval, Scan::Auto);
    queries
        .par_iter()
        .try_for_each(|query| searcher.search(&request(query)?).map(drop).map_err(anyhow::Error::from))?;
    let qps = queries.len() as f64 / start.elapsed().as_secs_f64();
    let (tokens_per_second, texts_per_second) =
        (n_tokens as f64 / embed_seconds, embedded.len() as f64 / embed_seconds);
    if global.json {
        output::json(&json!({
            "version": output::JSON_VERSION, "bench": "throughput", "machine": Machine::here(), "n_texts": texts.len(),
            "n_tokens": n_tokens, "tokens_per_second": tokens_per_second, "texts_per_second": texts_per_second,
            "n_queries": queries.len(), "n_threads": rayon::current_num_threads(), "qps": qps,
        }))?;
    } else {
        println!(
            "{tokens_per_second:.0} tokens a second, {texts_per_second:.1} texts ({} of {n_tokens} tokens)",
            texts.len()
        );
        println!("{qps:.1} queries a second on {} threads", rayon::current_num_threads());
    }
    remark(global, queries.len(), &searcher);
    Ok(Outcome::Done)
}

fn recall(target: &BenchTarget, ef: &[usize], global: &Global) -> anyhow::Result<Outcome> {
    if target.k == 0 || ef.contains(&0) {
        return Err(options::usage("-k and --ef: 0 asks for nothing; give at least 1"));
    }
    let searcher = options::searcher(global, &target.retrieval)?;
    let (n_graph, n_rows) = searcher.graph_rows();
    if n_graph == 0 {
        return Err(options::usage(
            "no segment of this collection has a graph: make one with `cento index … --graph-rows-min 1` in a new collection",
        ));
    }
    let queries = queries(target, &searcher)?;
    let embedded = searcher.encoder()?.embed(&queries, Kind::Query)?;
    let vectors: Vec<Vec<f32>> = embedded.into_iter().map(|one| one.vector).collect();
    let (truth, exact_qps) = nearest(&searcher, &vectors, target.k, Nearest::Exact)?;
    let mut lines = Vec::new();
    for &ef in ef {
        let (found, qps) = nearest(&searcher, &vectors, target.k, Nearest::Graph { ef })?;
        let hits =
            found.iter().zip(&truth).map(|(found, truth)| found.iter().filter(|row| truth.contains(row)).count());
        let wanted: usize = truth.iter().map(Vec::len).sum();
        lines.push((ef, hits.sum::<usize>() as f64 / wanted.max(1) as f64, qps));
    }
    let name = format!("recall@{}", target.k);
    if global.json {
        let line = |(ef, recall, qps): &(usize, f64, f64)| json!({"ef": ef, name.clone(): recall, "qps": qps, "speedup": qps / exact_qps});
        output::json(&json!({
            "version": output::JSON_VERSION, "bench": "recall", "machine": Machine::here(), "n_queries": vectors.len(),
            "n_rows": n_rows, "n_rows_in_graphs": n_graph, "k": target.k, "exact_qps": exact_qps,
            "widths": lines.iter().map(line).collect::<Vec<_>>(),
        }))?;
    } else {
        let row = |(ef, recall, qps): &(usize, f64, f64)| {
            vec![ef.to_string(), format!("{recall:.4}"), format!("{qps:.0}"), format!("{:.2}", qps / exact_qps)]
        };
        println!("{}", output::table(&["ef", &name, "queries/s", "times exact"], lines.iter().map(row)));
        println!("exact scan: {exact_qps:.0} queries a second, one after another");
    }
    remark(global, vectors.len(), &searcher);
    Ok(Outcome::Done)
}

/// The rows nearest to each vector, and how many vectors a second were answered, one after another.
fn nearest(
    searcher: &Searcher,
    vectors: &[Vec<f32>],
    k: usize,
    how: Nearest,
) -> anyhow::Result<(Vec<Vec<cento_engine::RowId>>, f64)> {
    searcher.nearest(&vectors[0], k, how)?; // touches the files
    let start = Instant::now();
    let found = vectors.iter().map(|vector| searcher.nearest(vector, k, how)).collect::<Result<Vec<_>, _>>()?;
    Ok((found, vectors.len() as f64 / start.elapsed().as_secs_f64()))
}
