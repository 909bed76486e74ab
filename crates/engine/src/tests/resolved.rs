//! Contexts that are kept: the same as fresh ones, and served to nobody who asks for something else.

use std::time::{Duration, Instant};

use super::Place;
use crate::context::request::key;
use crate::{
    BudgetTokenizer, ChunkSearch, ContextSettings, Format, Fusion, Marks, Mode, Order, Pipeline, Policy, Strategy,
};

fn tides() -> Place {
    let place = Place::new();
    place.write("tides.md", "# Tides\n\nThe tide rises twice a day.\n\n## Causes\n\nThe moon pulls the sea.\n");
    place.write("moon.txt", "The moon is far away. It pulls the sea, and the tide rises.\n");
    place.index();
    place
}

const CACHED: &str = "[cache]\nttl_seconds = 300";

#[test]
fn a_kept_context_is_the_fresh_one() {
    let (place, tokenizer) = (tides(), BudgetTokenizer::named("o200k").unwrap());
    let policy = Policy::parse(CACHED).unwrap();
    let search = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("what moves the tide") };
    let (searcher, other) = (place.searcher(), place.searcher());
    for strategy in Strategy::ALL {
        let request = ContextSettings { strategy, ..ContextSettings::new(120, &tokenizer, &policy) };
        let first = searcher.context(&search, &request).unwrap();
        assert_eq!(searcher.context(&search, &request).unwrap(), first);
        let pool = searcher.pool(&search).unwrap();
        assert_eq!(pool.context(&request).unwrap(), first);
        first.citations.iter().for_each(|citation| drop(pool.text(citation).unwrap()));
        assert_eq!(other.context(&search, &request).unwrap(), first, "{strategy}");
    }
}

#[test]
fn nothing_is_served_to_another_request() {
    let (place, tokenizer) = (tides(), BudgetTokenizer::named("o200k").unwrap());
    let searcher = place.searcher();
    let policy = Policy::parse(CACHED).unwrap();
    let search = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("what moves the tide") };
    let request = ContextSettings { strategy: Strategy::Flat, ..ContextSettings::new(120, &tokenizer, &policy) };
    let context = searcher.context(&search, &request).unwrap();
    // A mark in what is kept shows where it is served.
    let mut marked = context.clone();
    marked.text = "kept".into();
    searcher.resolved.keep(key(&search, &[], &request), &marked, Duration::from_secs(300), Instant::now());
    let is_kept =
        |search: &ChunkSearch, request: &ContextSettings<'_>| searcher.context(search, request).unwrap().text == "kept";
    assert!(is_kept(&search, &request));
    assert!(searcher.pool(&search).unwrap().context(&request).unwrap().text == "kept");

    for other in [
        ChunkSearch { query: "what moves the sea".into(), ..search.clone() },
        ChunkSearch { candidates: 7, ..search.clone() },
        ChunkSearch { mode: Mode::Hybrid, ..search.clone() },
        ChunkSearch { fusion: Fusion::Rrf, ..search.clone() },
        ChunkSearch { scope: Some(vec!["notes/moon.txt".into()]), ..search.clone() },
    ] {
        assert!(!is_kept(&other, &request), "{other:?}");
    }
    let (cl100k, delta) = (BudgetTokenizer::named("cl100k").unwrap(), Policy { delta: 0.5, ..policy.clone() });
    let ids = ["notes/moon.txt".to_owned()];
    for other in [
        ContextSettings { budget_tokens: 121, ..request },
        ContextSettings { tokenizer: &cl100k, ..request },
        ContextSettings { strategy: Strategy::Bubble, ..request },
        ContextSettings { policy: &delta, ..request },
        ContextSettings { policy: &Policy::default(), ..request },
        ContextSettings { format: Format::Xml, ..request },
        ContextSettings { order: Order::Edges, ..request },
        ContextSettings { marks: Marks::Full, ..request },
        ContextSettings { include: &ids, ..request },
        ContextSettings { exclude: &ids, ..request },
    ] {
        assert!(!is_kept(&search, &other), "{other:?}");
    }
    let mut pool = searcher.pool(&search).unwrap();
    pool.remove_document("notes/moon.txt");
    assert!(pool.context(&request).unwrap().text != "kept");
    assert!(is_kept(&search, &request), "the others have not driven it out");
    assert_eq!(place.searcher().context(&search, &request).unwrap(), context, "each searcher keeps its own");
}

#[test]
fn without_the_policy_nothing_is_kept() {
    let (place, tokenizer) = (tides(), BudgetTokenizer::named("o200k").unwrap());
    let search = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("what moves the tide") };
    let pipeline =
        Pipeline::parse("retrieval:\n  strategy: hybrid\npipeline:\n  cache_resolved_context: true\n").unwrap();
    for (policy, is_kept) in [(Policy::default(), false), (pipeline.policy, true)] {
        let searcher = place.searcher();
        let request = ContextSettings { strategy: Strategy::Parent, ..ContextSettings::new(120, &tokenizer, &policy) };
        searcher.context(&search, &request).unwrap();
        assert_eq!(searcher.resolved.find(&key(&search, &[], &request), Instant::now()).is_some(), is_kept);
    }
}
