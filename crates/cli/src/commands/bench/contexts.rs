//! `cento bench contexts`: from what was found to what is delivered, by strategy.

use std::time::Duration;

use cento_engine::{ContextSettings, Scan};
use cento_eval::Machine;
use serde_json::{Map, Value, json};

use super::percentiles::Percentiles;
use super::queries::{queries, remark};
use crate::args::{BenchContexts, Global};
use crate::exit_code::Outcome;
use crate::output::{self, Bar, Beside};
use crate::{options, policy_file};

/// The stages behind the search: their names, in the order of a query's times.
const STAGES: [&str; 2] = ["map", "assemble"];

pub(super) fn execute(args: &BenchContexts, global: &Global) -> anyhow::Result<Outcome> {
    let target = &args.target;
    let asked = policy_file::read(args.policy.as_deref())?;
    let strategies = asked.strategies(&args.strategy)?;
    let searcher = options::searcher(global, &target.retrieval)?;
    let tokenizer = options::tokenizer(&args.tokenizer, &searcher)?;
    let queries = queries(target, &searcher)?;
    let bar = Bar::new(global, Beside::AnyAnswer);
    let mut measured: Vec<(String, [Percentiles; 2])> = Vec::with_capacity(strategies.len());
    for &strategy in &strategies {
        let settings = ContextSettings { strategy, ..ContextSettings::new(args.budget, &tokenizer, &asked.policy) };
        let context = |query: &str| {
            let search = options::request(query.to_owned(), 1, &target.retrieval, Scan::Auto)?;
            anyhow::Ok(searcher.context_timed(&search, &settings)?.1)
        };
        context(&queries[0])?; // loads the encoder and touches the files
        let mut times: Vec<[Duration; 2]> = Vec::with_capacity(queries.len());
        for query in &queries {
            let timings = context(query)?;
            times.push([timings.beside, timings.assemble]);
            bar.count(times.len(), queries.len(), "queries");
        }
        let stages = [0, 1].map(|stage| Percentiles::of(times.iter().map(|time| time[stage])));
        measured.push((strategy.to_string(), stages));
    }
    bar.finish();
    if global.json {
        output::json(&answer(&measured, queries.len(), args.budget))?;
    } else {
        let row = |name: &str, stage: &str, times: &Percentiles| {
            let values = [times.p50, times.p95, times.p99].map(|ms| format!("{ms:.2}"));
            [name.to_owned(), stage.to_owned()].into_iter().chain(values).collect::<Vec<_>>()
        };
        let rows = measured
            .iter()
            .flat_map(|(name, stages)| STAGES.iter().zip(stages).map(move |(stage, times)| row(name, stage, times)));
        println!("{}", output::table(&["strategy", "ms", "p50", "p95", "p99"], rows));
    }
    remark(global, queries.len(), &searcher);
    Ok(Outcome::Done)
}

fn answer(measured: &[(String, [Percentiles; 2])], n_queries: usize, budget_tokens: usize) -> Value {
    let object = |(strategy, stages): &(String, [Percentiles; 2])| {
        let mut object = Map::from_iter([("strategy".to_owned(), json!(strategy))]);
        for (stage, times) in STAGES.iter().zip(stages) {
            let each = [("p50", times.p50), ("p95", times.p95), ("p99", times.p99)];
            object.extend(each.map(|(name, ms)| (format!("{stage}_ms_{name}"), json!(ms))));
        }
        Value::Object(object)
    };
    json!({
        "version": output::JSON_VERSION, "bench": "contexts", "machine": Machine::here(), "n_queries": n_queries,
        "budget_tokens": budget_tokens, "strategies": measured.iter().map(object).collect::<Vec<_>>(),
    })
}
