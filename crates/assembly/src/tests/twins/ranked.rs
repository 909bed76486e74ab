//! Twins of the strategies that take chunks one by one: flat, maximal marginal relevance, adaptive-k.

use super::*;
use crate::strategies::adaptive::{Adaptive, Buffer, Rule, Share};
use crate::strategies::mmr::Mmr;
use std::collections::BTreeSet;

/// Relevance may be below 0.
const ANY_SIGN: Size = Size { relevance_min: -6, ..SIZE };

#[test]
fn flat() {
    check(
        Strategy::Flat,
        ANY_SIGN,
        |_| Policy::default(),
        |case, _| {
            let single = |at: usize| Wanted { value: None, forms: vec![vec![at]] };
            walk(case, &ranking(case).into_iter().map(single).collect::<Vec<_>>())
        },
    );
}

#[test]
fn mmr() {
    let settings = |random: &mut Random| {
        let lambda = random.of(&[0.0, 0.25, 0.5, 0.7, 1.0]);
        Policy { mmr: Mmr { lambda, candidates: random.of(&[1, 2, 5, 200]) }, ..Policy::default() }
    };
    check(Strategy::Mmr, ANY_SIGN, settings, |case, policy| {
        let Mmr { lambda, candidates } = policy.mmr;
        let ranking = ranking(case);
        let share = shares(case, &ranking);
        let (mut open, rest): (Vec<usize>, Vec<usize>) = (0..ranking.len()).partition(|&rank| rank < candidates);
        let (mut chosen, mut wanted): (Vec<usize>, Vec<Wanted>) = (Vec::new(), Vec::new());
        while !open.is_empty() {
            let mut best: Option<(f64, usize)> = None;
            for &rank in &open {
                let alike = chosen.iter().map(|&other| similarity(case, ranking[rank], ranking[other]));
                let most = alike.reduce(f64::max).unwrap_or(0.0);
                let score = lambda * share[rank] - (1.0 - lambda) * most;
                if best.is_none_or(|(highest, _)| score > highest) {
                    best = Some((score, rank));
                }
            }
            let (score, rank) = best.unwrap();
            open.retain(|&other| other != rank);
            chosen.push(rank);
            wanted.push(Wanted::one(vec![ranking[rank]], score));
        }
        wanted.extend(rest.into_iter().map(|rank| Wanted::one(vec![ranking[rank]], lambda * share[rank])));
        walk(case, &wanted)
    });
}

/// The cosine of the vectors, else the share of the shorter one's content words that the other has: all but `the`,
/// `of`, `and`.
fn similarity(case: &Case, a: usize, b: usize) -> f64 {
    if case.vectors {
        return cosine(&case.pool[a].id, &case.pool[b].id);
    }
    let content =
        |at: usize| case.pool[at].text.split_whitespace().filter(|word| word.starts_with('x')).collect::<BTreeSet<_>>();
    let (a, b) = (content(a), content(b));
    a.intersection(&b).count() as f64 / a.len().min(b.len()) as f64
}

#[test]
fn adaptive() {
    let settings = |random: &mut Random| {
        let adaptive = Adaptive {
            rule: random.of(&[Rule::LargestGap, Rule::MovingAverage, Rule::Spike]),
            window: random.of(&[1, 2, 3, 5]),
            buffer: random.of(&[Buffer::More(0), Buffer::More(2), Buffer::Times(1.0), Buffer::Times(1.5)]),
            ignore_head: random.of(&[Share::Ranks(0), Share::Ranks(1), Share::Ranks(9), Share::Of(0.3)]),
            ignore_tail: random.of(&[Share::Ranks(0), Share::Ranks(1), Share::Of(0.25), Share::Of(0.5)]),
        };
        Policy { adaptive, ..Policy::default() }
    };
    check(Strategy::Adaptive, ANY_SIGN, settings, |case, policy| {
        let ranking = ranking(case);
        let scores: Vec<f64> = ranking.iter().map(|&at| case.pool[at].relevance).collect();
        let kept = ranking.iter().zip(&scores).take(n_kept(&scores, &policy.adaptive));
        walk(case, &kept.map(|(&at, &score)| Wanted::one(vec![at], score)).collect::<Vec<_>>())
    });
}

/// The three rules on differences of neighbours, which are negative where scores fall: a cut at `i` keeps the scores 0
/// to `i`.
fn n_kept(scores: &[f64], settings: &Adaptive) -> usize {
    let n = scores.len();
    if n < 2 {
        return n;
    }
    let ignored = |share: Share| match share {
        Share::Ranks(ranks) => ranks,
        Share::Of(share) => ((n - 1) as f64 * share) as usize,
    };
    let (head, tail) = (ignored(settings.ignore_head), ignored(settings.ignore_tail));
    let differences = |of: &[f64]| of.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<f64>>();
    let first_lowest = |gaps: &[f64]| {
        let mut within: Vec<usize> = (head..gaps.len().saturating_sub(tail)).collect();
        if within.is_empty() {
            within.push(head.min(gaps.len() - 1)); // one is always left
        }
        within.into_iter().reduce(|lowest, at| if gaps[at] < gaps[lowest] { at } else { lowest }).unwrap()
    };
    let largest_gap = || first_lowest(&differences(scores));
    let cut = match settings.rule {
        Rule::LargestGap => largest_gap(),
        Rule::MovingAverage if n <= settings.window => largest_gap(),
        Rule::MovingAverage => {
            let sums: Vec<f64> = scores.windows(settings.window).map(|window| window.iter().sum()).collect();
            first_lowest(&differences(&sums))
        }
        Rule::Spike => {
            let within = if head + tail < n { &scores[head..n - tail] } else { &[] };
            let second = differences(&differences(within));
            let turns = (1..second.len()).find(|&at| second[at] > 0.0 && second[..at].iter().any(|&other| other < 0.0));
            turns.map_or_else(largest_gap, |at| at + 1 + head)
        }
    };
    match settings.buffer {
        Buffer::More(more) => cut + more + 1,
        Buffer::Times(times) => (cut as f64 * times) as usize + 1,
    }
}
