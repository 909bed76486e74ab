//! The twin of the context bubble: eqs. 4 to 13 term by term, with both forms of the overlap and the second pass over
//! unspent shares.

use super::*;
use crate::policy::{Gate, Length, OTHER_SECTIONS, Relevance, Slack, Theta};
use crate::redundancy::MIN_CONTENT_WORDS;
use crate::select::sections::share_of;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn bubble() {
    check(Strategy::Bubble, Size { relevance_min: -3, ..SIZE }, settings, |case, policy| {
        let ranked = scored(case, policy);
        let mut chosen: Vec<usize> = Vec::new();
        let mut later: Vec<usize> = Vec::new();
        for &(at, is_relevant) in &ranked {
            match gates(case, policy, &chosen, at) {
                _ if !is_relevant => {}
                [true, _, _] => {}
                [_, true, _] => later.push(at),
                [_, _, true] => {}
                [false, false, false] => chosen.push(at),
            }
        }
        for at in later.into_iter().filter(|_| policy.slack == Slack::Global) {
            let [over_budget, _, is_redundant] = gates(case, policy, &chosen, at);
            if !over_budget && !is_redundant {
                chosen.push(at);
            }
        }
        chosen.into_iter().map(|at| (at, None)).collect()
    });
}

fn settings(random: &mut Random) -> Policy {
    let amount = |random: &mut Random| random.of(&[-2.0, -0.5, 0.25, 1.0]);
    Policy {
        relevance: random.of(&[Relevance::Fused, Relevance::Tf]),
        candidates: random.some(&[2, 8, 20]),
        min_relevance: random.some(&[-0.125, 0.0, 0.25, 1.0]),
        theta: random.some(&[Theta::Tokens(10.0), Theta::Of(Length::Median)]),
        gate: random.of(&[Gate::Pairwise, Gate::Union, Gate::None]),
        delta: random.of(&[0.25, 0.55, 0.75, 0.9, 1.0]),
        slack: random.of(&[Slack::Global, Slack::None]),
        max_per_document: random.some(&[1, 3, 5]),
        max_per_section: random.some(&[1, 2, 4]),
        priors: [("a", amount(random)), ("b", amount(random))].map(|(label, prior)| (label.into(), prior)).into(),
        boosts: [("x13", amount(random)), ("x14 x15", amount(random))].map(|(word, gamma)| (word.into(), gamma)).into(),
        rho: match random.below(3) {
            0 => BTreeMap::new(),
            1 => [("a".into(), 0.25)].into(),
            _ => [("b".into(), random.of(&[0.0, 0.1])), (OTHER_SECTIONS.into(), 0.5)].into(),
        },
        ..Policy::default()
    }
}

/// The pool by score, best first, each with whether it is relevant at all.
fn scored(case: &Case, policy: &Policy) -> Vec<(usize, bool)> {
    let mut pool = ranking(case);
    pool.truncate(policy.candidates.unwrap_or(usize::MAX));
    let mut lengths: Vec<f64> = pool.iter().map(|&at| f64::from(case.pool[at].n_tokens)).collect();
    lengths.sort_by(f64::total_cmp);
    let theta = policy.theta.map(|theta| match theta {
        Theta::Tokens(tokens) => tokens,
        Theta::Of(Length::Median) if lengths.is_empty() => 1.0,
        Theta::Of(Length::Median) => (lengths[lengths.len() / 2] + lengths[(lengths.len() - 1) / 2]) / 2.0,
    });
    let share = shares(case, &pool);
    let asked: BTreeSet<String> = words(QUERY).into_iter().collect();
    let mut scored: Vec<(f64, usize, bool)> = Vec::new();
    for (&at, &share) in pool.iter().zip(&share) {
        let chunk = &case.pool[at];
        let tf = words(&chunk.text).iter().filter(|word| asked.contains(*word)).count() as f64;
        let (relevance, measured) = match policy.relevance {
            Relevance::Tf => (tf, tf),
            Relevance::Fused => (share, chunk.relevance),
        };
        let prior = policy.priors.get(&chunk.label).copied().unwrap_or(0.0);
        let mut boost = 0.0;
        for (phrase, gamma) in &policy.boosts {
            if format!(" {} ", chunk.text.trim()).contains(&format!(" {phrase} ")) {
                boost += gamma;
            }
        }
        let raw = relevance + prior + boost;
        let penalty = theta.map_or(1.0, |theta| 1.0 / (1.0 + f64::from(chunk.n_tokens) / theta));
        let unmatched = policy.relevance == Relevance::Tf && tf == 0.0 && raw <= 0.0;
        let is_relevant = !unmatched && policy.min_relevance.is_none_or(|least| measured >= least);
        scored.push((if raw < 0.0 { raw / penalty } else { raw * penalty }, at, is_relevant));
    }
    scored.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap().then(case.pool[b.1].id.cmp(&case.pool[a.1].id)));
    scored.into_iter().map(|(_, at, is_relevant)| (at, is_relevant)).collect()
}

/// Says if a chunk is over the budget or a maximum, over the share of its section, redundant.
fn gates(case: &Case, policy: &Policy, chosen: &[usize], at: usize) -> [bool; 3] {
    let chunk = &case.pool[at];
    let sum = |of: &dyn Fn(&Candidate) -> bool| -> (usize, usize) {
        let of: Vec<&Candidate> = chosen.iter().map(|&at| &case.pool[at]).filter(|chunk| of(chunk)).collect();
        (of.len(), of.iter().map(|chunk| tokens(&chunk.text)).sum())
    };
    let (of_document, _) = sum(&|other| other.document == chunk.document);
    let (of_section, section_tokens) = sum(&|other| other.section == chunk.section);
    let (_, used) = sum(&|_| true);
    let needed = tokens(&chunk.text);
    let too_many = policy.max_per_document.is_some_and(|most| of_document >= most)
        || policy.max_per_section.is_some_and(|most| of_section >= most);
    let rho = policy.rho.get(&chunk.label).or(policy.rho.get(OTHER_SECTIONS));
    let limit = rho.map(|rho| share_of(*rho, case.budget));
    [
        too_many || used + needed > case.budget,
        limit.is_some_and(|limit| section_tokens + needed > limit),
        policy.gate != Gate::None && overlap(case, policy.gate, chosen, at) >= policy.delta,
    ]
}

fn overlap(case: &Case, gate: Gate, chosen: &[usize], at: usize) -> f64 {
    let text = |at: usize| case.pool[at].text.as_str();
    if chosen.iter().any(|&other| text(other) == text(at)) {
        return 1.0;
    }
    let is_compared = |word: &&str| gate == Gate::Union || word.starts_with('x');
    let words = |at: usize| text(at).split_whitespace().filter(is_compared).collect::<BTreeSet<_>>();
    let own = words(at);
    let shared = |others: &BTreeSet<&str>| own.intersection(others).count() as f64 / own.len() as f64;
    match gate {
        Gate::Union => shared(&chosen.iter().flat_map(|&other| words(other)).collect()),
        _ if own.len() < MIN_CONTENT_WORDS => 0.0,
        _ => chosen.iter().map(|&other| shared(&words(other))).fold(0.0, f64::max),
    }
}
