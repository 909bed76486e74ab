//! The queries that times are taken of, and what stands beside a time.

use cento_engine::Searcher;
use cento_eval::{Machine, topics};

use crate::args::{BenchTarget, Global};
use crate::options;

/// Words a query has that is the beginning of a chunk.
const QUERY_WORDS: usize = 12;

/// The queries, all of them or evenly spread.
pub(super) fn queries(target: &BenchTarget, searcher: &Searcher) -> anyhow::Result<Vec<String>> {
    if target.n_queries == 0 {
        return Err(options::usage("--n-queries 0: nothing would be measured; give at least one"));
    }
    let all: Vec<String> = match &target.topics {
        Some(path) => topics::read(path)?.into_iter().map(|topic| topic.text).collect(),
        None => {
            let texts = searcher.sample_texts(target.n_queries)?;
            let begin = |text: &String| text.split_whitespace().take(QUERY_WORDS).collect::<Vec<_>>().join(" ");
            texts.iter().map(begin).filter(|query| !query.is_empty()).collect()
        }
    };
    if all.is_empty() {
        return Err(options::usage("the collection has no text to take queries from; give --topics"));
    }
    let n = target.n_queries.min(all.len());
    Ok((0..n).map(|at| all[at * all.len() / n].clone()).collect())
}

/// The number of queries, the rows they were asked of, and the machine.
pub(super) fn remark(global: &Global, n_queries: usize, searcher: &Searcher) {
    if !global.quiet && !global.json {
        let machine = Machine::here();
        let (n_graph, n_rows) = searcher.graph_rows();
        eprintln!(
            "{n_queries} queries over {n_rows} rows, {n_graph} of them in graphs; {}, {} cores, {}",
            machine.cpu, machine.n_cores, machine.instructions
        );
    }
}
