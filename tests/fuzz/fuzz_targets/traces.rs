//! Traces: a real one of which values were changed, or any bytes, is an error, or can be explained, compared and replayed.
#![no_main]

mod place;

use std::sync::LazyLock;

use arbitrary::Arbitrary;
use cento_engine::{
    BudgetTokenizer, ContextSettings, ContextTrace, Mode, Policy, ChunkSearch, Searcher, SearcherOptions, Strategy,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

use place::Place;

#[derive(Debug, Arbitrary)]
enum Input<'a> {
    Raw(&'a [u8]),
    Changed { strategy: u8, changes: Vec<(u16, New<'a>)> },
}

#[derive(Debug, Arbitrary)]
enum New<'a> {
    Gone,
    Null,
    Number(u64),
    Signed(i64),
    Real(f64),
    Flag(bool),
    Text(&'a str),
    /// What stands elsewhere in the trace.
    Of(u16),
}

struct Asked {
    place: Place,
    searcher: Searcher,
    tokenizer: BudgetTokenizer<'static>,
    /// Of each strategy.
    traces: Vec<Value>,
}

static ASKED: LazyLock<Asked> = LazyLock::new(|| {
    let place = Place::new();
    let searcher = Searcher::open(place.collection(), SearcherOptions::default()).unwrap();
    let (tokenizer, policy) = (BudgetTokenizer::named("o200k").unwrap(), Policy::default());
    let search = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("what does Ada Quist say of the moon") };
    let trace = |strategy: &Strategy| {
        let request = ContextSettings { strategy: *strategy, ..ContextSettings::new(60, &tokenizer, &policy) };
        let context = searcher.context(&search, &request).unwrap();
        serde_json::from_slice(&ContextTrace::new(&searcher, &search, &request, &context).unwrap().json()).unwrap()
    };
    let traces = Strategy::ALL.iter().map(trace).collect();
    Asked { place, searcher, tokenizer, traces }
});

/// The pointer of every value.
fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), all)),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, value)| pointers(value, &format!("{at}/{n}"), all)),
        _ => {}
    }
}

fn changed(trace: &Value, changes: &[(u16, New<'_>)]) -> Value {
    let (mut trace, mut all) = (trace.clone(), Vec::new());
    pointers(&trace, "", &mut all);
    for (at, new) in changes {
        let pointer = &all[usize::from(*at) % all.len()];
        let new = match new {
            New::Gone => {
                let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
                if let Some(Value::Object(map)) = trace.pointer_mut(parent) {
                    map.remove(key);
                }
                continue;
            }
            New::Null => Value::Null,
            New::Number(number) => (*number).into(),
            New::Signed(number) => (*number).into(),
            New::Real(number) => (*number).into(),
            New::Flag(flag) => (*flag).into(),
            New::Text(text) => (*text).into(),
            New::Of(other) => trace.pointer(&all[usize::from(*other) % all.len()]).cloned().unwrap_or_default(),
        };
        if let Some(value) = trace.pointer_mut(pointer) {
            *value = new;
        }
    }
    trace
}

fn replay(asked: &Asked, trace: &ContextTrace) {
    let (Ok(search), Ok(policy)) = (trace.search(), trace.policy()) else { return };
    let config = &trace.assembly.config;
    let endpoint = trace.endpoint();
    let request = ContextSettings {
        budget_tokens: config.budget_tokens,
        tokenizer: &asked.tokenizer,
        strategy: config.strategy,
        policy: &policy,
        format: config.format,
        order: config.order,
        marks: config.marks,
        include: &config.include,
        exclude: &config.exclude,
        endpoint: endpoint.as_ref(),
    };
    let Ok(context) = asked.searcher.context(&search, &request) else { return };
    let now = ContextTrace::new(&asked.searcher, &search, &request, &context).unwrap();
    let differs = !trace.differences(&now).is_empty();
    assert!(differs || trace.holds(&now), "a difference that is not said");
}

fuzz_target!(|input: Input<'_>| {
    let asked = &*ASKED;
    let path = asked.place.folder.path().join("trace.json");
    let whole = match &input {
        Input::Raw(bytes) => {
            std::fs::write(&path, bytes).unwrap();
            &asked.traces[0]
        }
        Input::Changed { strategy, changes } => {
            let whole = &asked.traces[usize::from(*strategy) % asked.traces.len()];
            std::fs::write(&path, changed(whole, changes).to_string()).unwrap();
            whole
        }
    };
    let Ok(trace) = ContextTrace::read(&path) else { return };
    for id in trace.assembly.records.iter().map(|record| record.chunk_id.as_str()).chain(["notes/0.md", ""]) {
        let _ = trace.why(id);
    }
    let whole: ContextTrace = serde_json::from_value(whole.clone()).unwrap();
    let _ = (trace.compare(&whole), whole.compare(&trace), trace.differences(&whole));
    replay(asked, &trace);
});
