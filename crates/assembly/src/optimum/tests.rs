//! The optimiser against every subset of small problems, and against greedy on larger ones.

use super::problem::EPSILON;
use super::relaxation::Relaxation;
use super::*;
use crate::Candidate;
use crate::line::Lines;
use crate::stop::{NEVER, Stop};
use crate::tests::candidate;
use proptest::prelude::*;

/// A problem in plain numbers: chunks of documents, as `(document, number, value, tokens)`.
#[derive(Debug, Clone)]
struct Small {
    chunks: Vec<(u8, u32, f64, i64)>,
    /// By chunk, over and over.
    opening: Vec<i64>,
    reopening: Vec<i64>,
    budget: i64,
    run_max: Option<usize>,
    caps: Vec<(Vec<usize>, Option<i64>, Option<usize>)>,
    needs: Vec<(f64, Vec<usize>)>,
    conflicts: Vec<(usize, usize)>,
    must: Vec<usize>,
    must_not: Vec<usize>,
}

impl Small {
    fn with<T>(&self, then: impl FnOnce(&Problem<'_>) -> T) -> T {
        self.unless(NEVER, then)
    }

    fn unless<T>(&self, stop: Stop<'_>, then: impl FnOnce(&Problem<'_>) -> T) -> T {
        let candidates: Vec<Candidate> =
            self.chunks.iter().map(|chunk| candidate(&format!("d{:03}", chunk.0), chunk.1, "text", 0.0)).collect();
        let candidates: Vec<&Candidate> = candidates.iter().collect();
        let lines = Lines::new(&candidates);
        let place = |at: usize| lines.place(at);
        let places = |of: &[usize]| {
            let mut places: Vec<usize> = of.iter().map(|&at| place(at)).collect();
            places.sort_unstable();
            places.dedup();
            places
        };
        let by_place = |f: &dyn Fn(usize) -> f64| lines.candidates.iter().map(|&at| f(at)).collect::<Vec<f64>>();
        let conflict = |a: usize, b: usize| {
            let (a, b) = (lines.candidates[a], lines.candidates[b]);
            self.conflicts.iter().any(|&(x, y)| (x, y) == (a, b) || (y, x) == (a, b))
        };
        let problem = Problem {
            lines: &lines,
            values: by_place(&|at| self.chunks[at].2),
            tokens: lines.candidates.iter().map(|&at| self.chunks[at].3).collect(),
            opening: lines.candidates.iter().map(|&at| self.opening[at % self.opening.len()]).collect(),
            reopening: lines.candidates.iter().map(|&at| self.reopening[at % self.reopening.len()]).collect(),
            budget: self.budget,
            run_max: self.run_max,
            caps: self
                .caps
                .iter()
                .map(|(of, tokens_max, chunks_max)| Cap {
                    places: places(of),
                    tokens_max: *tokens_max,
                    chunks_max: *chunks_max,
                })
                .collect(),
            needs: self.needs.iter().map(|(weight, of)| Need { weight: *weight, places: places(of) }).collect(),
            conflict: &conflict,
            must: places(&self.must),
            must_not: places(&self.must_not),
            stop,
        };
        then(&problem)
    }
}

/// The best of every subset; none if no subset keeps to the constraints.
fn brute_force(problem: &Problem<'_>) -> Option<f64> {
    let subsets = 0_u32..1 << problem.len();
    let chosen = |subset: u32| (0..problem.len()).filter(|place| subset >> place & 1 == 1).collect::<Vec<_>>();
    subsets.map(chosen).filter(|set| problem.is_feasible(set)).map(|set| problem.value(&set)).max_by(f64::total_cmp)
}

fn small() -> impl Strategy<Value = Small> {
    let chunk = (0..3_u8, 0..9_u32, -4..12_i32, 1..9_i64);
    let around = || prop::collection::vec(0..5_i64, 1..10);
    (prop::collection::vec(chunk, 1..10), around(), around(), 0..40_i64).prop_flat_map(
        |(mut chunks, opening, reopening, budget)| {
            chunks.sort_unstable_by_key(|chunk| (chunk.0, chunk.1));
            chunks.dedup_by_key(|chunk| (chunk.0, chunk.1));
            let n = chunks.len();
            let some = prop::collection::vec(0..n, 1..=n);
            let cap = (some.clone(), prop::option::of(0..20_i64), prop::option::of(1..4_usize));
            (
                prop::option::of(1..4_usize),
                prop::collection::vec(cap, 0..3),
                prop::collection::vec((1..6_i32, some), 0..4),
                prop::collection::vec((0..n, 0..n), 0..4),
                prop::collection::vec(0..n, 0..2),
                prop::collection::vec(0..n, 0..2),
            )
                .prop_map(move |(run_max, caps, needs, conflicts, must, must_not)| Small {
                    chunks: chunks.iter().map(|&(d, i, v, t)| (d, i, f64::from(v) / 4.0, t)).collect(),
                    opening: opening.clone(),
                    reopening: reopening.clone(),
                    budget,
                    run_max,
                    caps,
                    needs: needs.into_iter().map(|(weight, of)| (f64::from(weight) / 4.0, of)).collect(),
                    conflicts,
                    must,
                    must_not,
                })
        },
    )
}

use proptest::strategy::Strategy;

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn small_problems_are_solved_as_trying_every_subset_solves_them(small in small()) {
        small.with(|problem| {
            let found = solve(problem, 100_000).unwrap();
            let hasty = solve(problem, 2).unwrap();
            match brute_force(problem) {
                None => prop_assert_eq!(found.value, f64::NEG_INFINITY),
                Some(best) => {
                    prop_assert!(problem.is_feasible(&found.chosen), "{:?}", found);
                    prop_assert!((problem.value(&found.chosen) - found.value).abs() < 1e-9, "{:?}", found);
                    prop_assert!(found.bound >= best - 1e-9, "bound {} below {}", found.bound, best);
                    prop_assert!(found.gap() == 0.0 && (found.value - best).abs() < 1e-9, "{:?}, best {}", found, best);
                    prop_assert!(problem.is_feasible(&hasty.chosen) && hasty.bound >= best - 1e-9, "{:?}, best {}", hasty, best);
                }
            }
            Ok(())
        })?;
    }
}

proptest! {
    #[test]
    fn a_document_that_is_passed_over_could_add_nothing(small in small(), lambda in prop_oneof![Just(0.0), 0.0..3.0_f64]) {
        small.with(|problem| {
            let relaxation = Relaxation::new(problem, &problem.fixed(), &problem.need_weights());
            let Some(relaxation) = relaxation else { return Ok(()) };
            for stages in relaxation.documents().filter(|stages| !relaxation.may_gain(stages, lambda)) {
                let mut best = Vec::new();
                relaxation.forward(stages, lambda, &mut best, |_, _| {});
                let last = &best[stages.len() * relaxation.states(stages)..];
                prop_assert!(last[0] == 0.0 && last.iter().all(|value| *value <= 0.0), "{:?}", last);
            }
            Ok(())
        })?;
    }
}

/// Numbers that look random and are the same everywhere.
fn sequence(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    }
}

/// Chunks of a pool as a search finds them: many documents, a few of them relevant in runs.
fn pool(seed: u64, n: usize, budget: i64) -> Small {
    let mut next = sequence(seed);
    let mut chunks = Vec::new();
    let (mut document, mut index, mut level) = (0_u8, 0, 0.1);
    while chunks.len() < n {
        if next(12) == 0 {
            (document, index) = (document.wrapping_add(1), 0);
            level = [0.02, 0.05, 0.1, 0.6][next(4) as usize];
        }
        index += 1 + u32::from(next(5) == 0);
        let tokens = 40 + next(160) as i64;
        let value = level * (0.2 + next(1000) as f64 / 1000.0) * tokens as f64;
        if !chunks.iter().any(|chunk: &(u8, u32, f64, i64)| (chunk.0, chunk.1) == (document, index)) {
            chunks.push((document, index, value, tokens));
        }
    }
    let conflicts = (0..n / 20).map(|_| (next(n as u64) as usize, next(n as u64) as usize)).collect();
    let needs = (0..8).map(|_| (5.0, (0..n / 10).map(|_| next(n as u64) as usize).collect())).collect();
    Small {
        chunks,
        opening: vec![20],
        reopening: vec![28],
        budget,
        run_max: None,
        caps: Vec::new(),
        needs,
        conflicts,
        must: Vec::new(),
        must_not: Vec::new(),
    }
}

#[test]
fn pools_of_a_search_are_solved_to_a_small_gap_and_greedy_is_bounded_too() {
    let (mut proven, mut gaps, mut greedy_gaps) = (0, Vec::new(), Vec::new());
    let (n_pools, mut nodes) = (60, 0);
    let start = std::time::Instant::now();
    for seed in 0..n_pools {
        let budget = [200, 400, 800, 1600][seed as usize % 4];
        pool(seed, 200, budget).with(|problem| {
            let found = solve(problem, NODES_MAX).unwrap();
            assert!(problem.is_feasible(&found.chosen));
            let mut greedy = heuristics::greedy(problem, &heuristics::by_density(problem));
            greedy.swap(&heuristics::by_density(problem));
            assert!(greedy.value() <= found.value + EPSILON && found.value <= found.bound + EPSILON);
            nodes += found.n_nodes;
            proven += usize::from(found.gap() == 0.0);
            gaps.push(found.gap());
            greedy_gaps.push(gap(greedy.value(), found.bound));
        });
    }
    let mean = |gaps: &[f64]| gaps.iter().sum::<f64>() / gaps.len() as f64;
    println!(
        "{nodes} nodes, {:?} a pool; {proven} of {n_pools} proven, mean gap {:.5}; greedy with swaps {:.5}",
        start.elapsed() / n_pools as u32,
        mean(&gaps),
        mean(&greedy_gaps)
    );
    assert!(mean(&gaps) < 0.005 && mean(&greedy_gaps) < 0.03);
}

#[test]
fn the_worked_examples() {
    // Values of a line of chunks, runs of five at most: the best five in a row, where capped Kadane has .5.
    let line = |values: &[f64], run_max: Option<usize>| Small {
        chunks: values.iter().enumerate().map(|(at, &value)| (0, at as u32, value, 1)).collect(),
        opening: vec![0],
        reopening: vec![1],
        budget: 5,
        run_max,
        caps: Vec::new(),
        needs: Vec::new(),
        conflicts: Vec::new(),
        must: Vec::new(),
        must_not: Vec::new(),
    };
    let values: Vec<f64> = [0.1; 10].into_iter().chain([0.9; 3]).collect();
    let found = line(&values, Some(5)).with(solve_owned);
    assert_eq!((found.chosen.as_slice(), found.gap()), (&[8, 9, 10, 11, 12][..], 0.0));
    assert!((found.value - 2.9).abs() < 1e-12);
    // A knapsack: 500 tokens of 150, 200, 180 and 120, worth their length.
    let knapsack = Small {
        chunks: [150, 200, 180, 120].iter().enumerate().map(|(at, &t)| (at as u8, 0, t as f64, t)).collect(),
        opening: vec![0],
        budget: 500,
        ..line(&[], None)
    };
    let found = knapsack.with(solve_owned);
    assert_eq!((found.chosen.as_slice(), found.value, found.gap()), (&[1, 2, 3][..], 500.0, 0.0));
}

#[test]
fn a_longest_run_that_no_document_reaches_is_no_limit() {
    for seed in 0..5 {
        let free = pool(seed, 20, 800);
        let far = Small { run_max: Some(70_000), ..free.clone() };
        let (free, far) = (free.with(solve_owned), far.with(solve_owned));
        assert_eq!((free.chosen, free.value), (far.chosen, far.value));
    }
}

fn solve_owned(problem: &Problem<'_>) -> Optimum {
    solve(problem, NODES_MAX).unwrap()
}

#[test]
fn a_hard_pool_is_left_at_the_signal() {
    let needs = |n: usize| (0..30).map(|need| (9.0, (0..n).filter(|at| at % 31 == need).collect())).collect();
    let hard = Small { needs: needs(600), run_max: Some(7), ..pool(3, 600, 1_600) };
    let solved = |signal: usize| {
        let n_looks = std::cell::Cell::new(0);
        let stop = || n_looks.replace(n_looks.get() + 1) >= signal;
        let found = hard.unless(&stop, |problem| (solve(problem, NODES_MAX), by_tokens(problem)));
        (found, n_looks.get())
    };
    let ((all, curve), n_looks) = solved(usize::MAX);
    assert!(all.unwrap().n_nodes > 1 && curve.unwrap().is_some());
    assert!(n_looks > 1_000, "it looks {n_looks} times");
    for signal in (0..n_looks).step_by(1 + n_looks / 50) {
        let ((found, curve), n_looks) = solved(signal);
        assert!(matches!(curve, Err(crate::Error::Cancelled)));
        if let Ok(found) = found {
            assert!(signal > found.n_nodes, "it was solved before the signal");
        } else {
            assert!(n_looks - signal <= 16, "{} looks behind the signal at {signal}", n_looks - signal);
        }
    }
}
