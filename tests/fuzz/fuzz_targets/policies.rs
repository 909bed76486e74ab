//! Policies and pipelines: any text is an error with its place, or a policy that every strategy can follow.
#![no_main]

mod place;

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use cento_engine::{
    BudgetTokenizer, ContextSettings, Mode, Pipeline, Policy, ChunkSearch, Searcher, SearcherOptions, Strategy,
};
use libfuzzer_sys::fuzz_target;

use place::Place;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    strategy: u8,
    budget: u16,
    is_yaml: bool,
    text: &'a str,
}

static PLACE: LazyLock<(Place, Searcher, BudgetTokenizer<'static>)> = LazyLock::new(|| {
    let place = Place::new();
    let searcher = Searcher::open(place.collection(), SearcherOptions::default()).unwrap();
    (place, searcher, BudgetTokenizer::named("o200k").unwrap())
});

fuzz_target!(|input: Input<'_>| {
    let policy = if input.is_yaml {
        let Ok(Pipeline { policy, .. }) = Pipeline::parse(input.text) else { return };
        policy
    } else {
        let Ok(policy) = Policy::parse(input.text) else { return };
        policy
    };
    let (_, searcher, tokenizer) = &*PLACE;
    let strategy = Strategy::ALL[usize::from(input.strategy) % Strategy::ALL.len()];
    let request = ContextSettings { strategy, ..ContextSettings::new(usize::from(input.budget), tokenizer, &policy) };
    let search = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("what does Ada Quist say of the moon") };
    if let Ok(context) = searcher.context(&search, &request) {
        assert!(context.n_tokens <= usize::from(input.budget));
        assert_eq!(tokenizer.count(context.counted()), context.n_tokens);
    }
});
