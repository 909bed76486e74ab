//! Each strategy against a naive twin: written from its source in the plainest way, compared on a thousand random
//! inputs.
//!
//! A twin shares nothing with what it is compared with but candidates and settings. Only words that begin with `x` are
//! tokens, so headers and marks cost nothing and a budget can be added up by hand. Inputs come from a fixed seed:
//! documents with sections and without, chunks that are not offered, neighbours, equal scores, tight and wide budgets.
//! A best chunk that is longer than the whole budget is cut, which no source knows: such inputs are left out.
//!
//! - `ranked`: flat, mmr, adaptive
//! - `bubble`: the context bubble
//! - `segments`: rse, rse-kadane, rse-exact
//! - `small_to_big`: window, parent, automerge
//!
//! `seal` has its twin in `seal::tests::laws`; what `cento` and `rse-exact` solve is held against every subset in
//! `optimum::tests` too.

mod bubble;
mod ranked;
mod segments;
mod small_to_big;

use super::words;
use crate::fuse::Contribution;
use crate::trace::{Decision, Outcome};
use crate::*;
use std::ops::Range;

/// Inputs of each comparison.
const CASES: usize = 1_000;

/// Numbers that look random and are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    fn some<T: Copy>(&mut self, values: &[T]) -> Option<T> {
        (!self.one_in(3)).then(|| self.of(values))
    }
}

/// A question to a strategy.
#[derive(Debug)]
struct Case {
    pool: Vec<Candidate>,
    budget: usize,
    /// True if chunks have vectors.
    vectors: bool,
}

/// A delivered chunk, and what the strategy held its block to be worth.
type Chosen = (usize, Option<f64>);

/// The size and the strangeness of an input.
#[derive(Clone, Copy)]
struct Size {
    documents: u64,
    chunks: u64,
    /// Least relevance of what was found, in sixteenths.
    relevance_min: i64,
}

const SIZE: Size = Size { documents: 3, chunks: 10, relevance_min: 0 };

/// Checks that the delivery, in the order of choice, and its tokens are the twin's, for policies that `settings` draws.
#[track_caller]
fn check(
    strategy: Strategy,
    size: Size,
    settings: impl Fn(&mut Random) -> Policy,
    twin: impl Fn(&Case, &Policy) -> Vec<Chosen>,
) {
    let mut random = Random(7);
    let (mut n, mut n_many, mut n_short) = (0, 0, 0);
    for round in 0.. {
        if n == CASES {
            break;
        }
        assert!(round < 3 * CASES, "only {n} of {round} inputs can be compared");
        let case = Case {
            pool: pool(&mut random, size),
            budget: 1 + if random.one_in(4) { random.below(600) } else { random.below(90) } as usize,
            vectors: random.one_in(2),
        };
        let policy = settings(&mut random);
        let context = match assembled(&offered(&case, strategy, &policy), strategy, &policy) {
            Err(Error::BudgetTooSmall { .. }) => continue,
            Ok(context) if context.trace.manifest.outcome == Outcome::Cut => continue,
            context => context.unwrap(),
        };
        let (found, expected) = (delivered(&case, &context), twin(&case, &policy));
        let ids = |chosen: &[Chosen]| chosen.iter().map(|&(at, _)| case.pool[at].id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&found), ids(&expected), "round {round}: {policy:?} {case:#?}");
        for ((at, value), (_, expected)) in found.iter().zip(&expected) {
            let same = match (value, expected) {
                (Some(value), Some(expected)) => (value - expected).abs() < 1e-12,
                (value, expected) => value == expected,
            };
            assert!(same, "round {round}: {at} is worth {value:?}, not {expected:?}: {policy:?} {case:#?}");
        }
        let n_tokens: usize = expected.iter().map(|&(at, _)| tokens(&case.pool[at].text)).sum();
        assert_eq!(context.n_tokens, n_tokens, "round {round}");
        assert!(n_tokens <= case.budget);
        n += 1;
        n_many += usize::from(expected.len() > 2);
        let n_all: usize = case.pool.iter().map(|chunk| tokens(&chunk.text)).sum();
        n_short += usize::from(n_all > case.budget && !expected.is_empty());
    }
    assert!(n_many > CASES / 8 && n_short > CASES / 5, "{n_many} deliver several chunks, {n_short} not all of them");
}

/// The case as a strategy is to be shown it: what was found and its neighborhood, where the twin sees whole documents.
fn offered(case: &Case, strategy: Strategy, policy: &Policy) -> Case {
    let (beside, cut) = policy.neighborhood(strategy, QUERY).unwrap().beside(&case.pool, &[], usize::MAX);
    assert_eq!(cut, None);
    let is_beside = |chunk: &Candidate| {
        beside.iter().any(|beside| {
            let found = &case.pool[beside.candidate];
            let nearer = chunk.index.min(found.index) + 1..chunk.index.max(found.index);
            let between =
                case.pool.iter().filter(|other| other.document == chunk.document && nearer.contains(&other.index));
            let n_tokens: usize = between.map(|other| other.n_tokens as usize).sum();
            found.document == chunk.document && beside.numbers.contains(&chunk.index) && n_tokens <= beside.tokens_max
        })
    };
    let pool = case.pool.iter().filter(|chunk| !chunk.is_neighbor || is_beside(chunk)).cloned().collect();
    Case { pool, ..*case }
}

fn assembled(case: &Case, strategy: Strategy, policy: &Policy) -> Result<Context> {
    let cosine = case.vectors.then_some(&cosine as &dyn Fn(&str, &str) -> f64);
    assemble(&Request {
        include: &[],
        exclude: &[],
        evidence: None,
        order: crate::Order::Document,
        query: QUERY,
        candidates: &case.pool,
        kept: &[],
        further: &[],
        budget_tokens: case.budget,
        policy,
        strategy,
        format: Format::Markdown,
        marks: Marks::Full,
        count: &tokens,
        tokenizer: "x",
        reading: Reading { terms: &words, idf: &|_| 1.0, sentences: &super::sentences },
        cosine,
        stop: NEVER,
    })
}

/// In the order of choice, which is that of the tokens used before; what was admitted together, in the order of the
/// document.
fn delivered(case: &Case, context: &Context) -> Vec<Chosen> {
    let records = context.trace.records.iter().filter(|record| record.final_decision == Decision::Selected);
    let mut records: Vec<_> = records.collect();
    records.sort_by_key(|record| (record.step_details.tokens_used, record.row_number));
    let place = |id: &str| case.pool.iter().position(|chunk| chunk.id == id).unwrap();
    records.iter().map(|record| (place(&record.chunk_id), record.step_details.value)).collect()
}

const QUERY: &str = "x10 x11 the x12";

fn tokens(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.starts_with('x')).count()
}

/// A symmetric number in [-1/2, 1] that two ids have.
fn cosine(a: &str, b: &str) -> f64 {
    let of = |id: &str| id.bytes().fold(17_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    (((of(a) ^ of(b)) % 25) as f64 - 8.0) / 16.0
}

/// Some chunks of some documents.
fn pool(random: &mut Random, size: Size) -> Vec<Candidate> {
    let mut pool: Vec<Candidate> = Vec::new();
    for number in 0..1 + random.below(size.documents) {
        let (document, n) = (format!("d{number}"), 1 + random.below(size.chunks) as u32);
        let mut sections = Vec::new();
        if !random.one_in(3) {
            // Every second document has chunks before its first heading.
            split(random, u32::from(n > 2 && number % 2 == 1)..n, 3, &mut sections);
        }
        let mut start = 0;
        for index in 0..n {
            let text = match pool.last() {
                Some(before) if random.one_in(8) => before.text.clone(),
                _ => text(random),
            };
            let span = start..start + text.len() as u64;
            start = span.end;
            if random.one_in(5) {
                continue; // not offered
            }
            let is_neighbor = random.below(5) < 2;
            let label = random.of(&["a", "b", "c"]);
            let relevance = size.relevance_min + random.below((17 - size.relevance_min) as u64) as i64;
            let mut parents: Vec<Range<u32>> =
                sections.iter().filter(|range: &&Range<u32>| range.contains(&index)).cloned().collect();
            parents.sort_by_key(|range| range.len());
            let dense = Contribution {
                arm: "dense".into(),
                rank: Some(1),
                raw: Some(random.below(17) as f64 / 16.0),
                normalized: None,
                weight: 1.0,
                contribution: 0.0,
            };
            pool.push(Candidate {
                id: format!("{document}#{index}"),
                section: format!("{document} > {label}"),
                label: label.into(),
                n_chunks: n,
                span,
                n_tokens: 1 + random.below(40) as u32,
                relevance: if is_neighbor { 0.0 } else { relevance as f64 / 16.0 },
                arms: if random.one_in(2) { vec![dense] } else { Vec::new() },
                is_neighbor,
                parents,
                types: vec![document.clone()],
                ..super::candidate(&document, index, &text, 0.0)
            });
        }
    }
    pool
}

/// A section, and the sections in it.
fn split(random: &mut Random, range: Range<u32>, depth: u32, sections: &mut Vec<Range<u32>>) {
    sections.push(range.clone());
    if depth == 0 || range.len() < 2 || random.one_in(4) {
        return;
    }
    let middle = range.start + 1 + random.below(range.len() as u64 - 1) as u32;
    for part in [range.start..middle, middle..range.end] {
        if !random.one_in(3) {
            // Every second document has chunks before its first heading.
            split(random, part, depth - 1, sections);
        }
    }
}

/// Words of which at least half are tokens; one text in twelve is long.
fn text(random: &mut Random) -> String {
    let n = if random.one_in(12) { 150 + random.below(100) } else { 1 + random.below(16) };
    let mut text = String::new();
    for _ in 0..n {
        if random.one_in(4) {
            text += random.of(&["the ", "of ", "and "]);
        }
        text += &format!("x{} ", 10 + random.below(30));
    }
    text.pop();
    text + "\n"
}

/// The candidates found, best first, equal ones by id descending.
fn ranking(case: &Case) -> Vec<usize> {
    let mut found: Vec<usize> = (0..case.pool.len()).filter(|&at| !case.pool[at].is_neighbor).collect();
    found.sort_by(|&a, &b| {
        let (a, b) = (&case.pool[a], &case.pool[b]);
        b.relevance.partial_cmp(&a.relevance).unwrap().then(b.id.cmp(&a.id))
    });
    found
}

/// Relevance as a share of the best one's, counted from 0 or from the least where one is negative.
fn shares(case: &Case, of: &[usize]) -> Vec<f64> {
    let relevance = |at: usize| case.pool[at].relevance;
    let floor = of.iter().fold(0.0, |least: f64, &at| least.min(relevance(at)));
    let most = of.iter().fold(f64::NEG_INFINITY, |most: f64, &at| most.max(relevance(at)));
    of.iter().map(|&at| if most == floor { 0.0 } else { (relevance(at) - floor) / (most - floor) }).collect()
}

/// The chunk of a document with a number, where it is offered.
fn chunk_at(case: &Case, document: &str, index: u32) -> Option<usize> {
    case.pool.iter().position(|chunk| chunk.document == document && chunk.index == index)
}

/// Ids of the documents, ascending.
fn documents(case: &Case) -> Vec<&str> {
    let mut documents: Vec<&str> = case.pool.iter().map(|chunk| chunk.document.as_str()).collect();
    documents.sort_unstable();
    documents.dedup();
    documents
}

/// Chunks wanted together, in the order of their document, and what is wanted in their place if they do not fit.
struct Wanted {
    value: Option<f64>,
    forms: Vec<Vec<usize>>,
}

impl Wanted {
    fn one(form: Vec<usize>, value: f64) -> Self {
        Self { value: Some(value), forms: vec![form] }
    }
}

/// Takes what is wanted while the budget lasts. If nothing fits, the best of what is wanted goes first, where it fits
/// alone.
fn walk(case: &Case, wanted: &[Wanted]) -> Vec<Chosen> {
    let taken = take(case, wanted, Vec::new());
    let is_wanted = |at: &usize| wanted.iter().flat_map(|wanted| &wanted.forms).any(|form| form.contains(at));
    match ranking(case).into_iter().find(is_wanted) {
        Some(best) if taken.is_empty() && tokens(&case.pool[best].text) <= case.budget => {
            take(case, wanted, vec![(best, None)])
        }
        _ => taken,
    }
}

fn take(case: &Case, wanted: &[Wanted], first: Vec<Chosen>) -> Vec<Chosen> {
    let mut taken = first;
    for Wanted { value, forms } in wanted {
        for form in forms {
            let is_taken = |at: &usize| taken.iter().any(|(other, _)| other == at);
            let missing: Vec<usize> = form.iter().copied().filter(|at| !is_taken(at)).collect();
            let used: usize = taken.iter().map(|&(at, _)| tokens(&case.pool[at].text)).sum();
            let needed: usize = missing.iter().map(|&at| tokens(&case.pool[at].text)).sum();
            if used + needed <= case.budget {
                taken.extend(missing.into_iter().map(|at| (at, *value)));
                break;
            }
        }
    }
    taken
}
