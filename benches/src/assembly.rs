//! Assembling a context: how long the choice takes from candidates whose tokens are counted already, and how good it is
//! at least.
//!
//! Shapes: N candidates of some hundred words in documents of a dozen chunks, a few of them relevant in runs.
//! What the tokenizer takes is timed apart: texts are looked up, headers and the whole context are counted by words.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use cento_assembly::{Anchor, Candidate, Format, Policy, Reading, Request, Strategy, assemble};
use serde::Serialize;

/// What one size and strategy took.
#[derive(Debug, Serialize)]
pub struct Assembly {
    /// Name of the strategy.
    pub strategy: &'static str,
    /// Candidates offered.
    pub n_candidates: usize,
    /// The budget.
    pub budget_tokens: usize,
    /// Half of the contexts took at most so long, without counting, in milliseconds.
    pub p50_ms: f64,
    /// All but one in a hundred took at most so long, without counting, in milliseconds.
    pub p99_ms: f64,
    /// Mean time in the tokenizer, headers and recounts of the whole included, in milliseconds.
    pub counting_ms: f64,
    /// Share of the contexts that are proven best; none where a strategy knows no bound.
    pub proven: Option<f64>,
    /// Mean gap to the bound.
    pub gap: Option<f64>,
}

/// Assembles `n_rounds` contexts, each from another pool.
pub fn assembly(strategy: Strategy, n_candidates: usize, budget_tokens: usize, n_rounds: usize) -> Result<Assembly> {
    let policy = Policy::default();
    let (mut times, mut counting, mut gaps) = (Vec::new(), Duration::ZERO, Vec::new());
    for round in 0..n_rounds {
        let candidates = pool(round as u64 + 1, n_candidates);
        let known: HashMap<&str, usize> =
            candidates.iter().map(|candidate| (candidate.text.as_str(), words(&candidate.text))).collect();
        let spent = Cell::new(Duration::ZERO);
        let count = |text: &str| {
            let start = Instant::now();
            let n = known.get(text).copied().unwrap_or_else(|| words(text));
            spent.set(spent.get() + start.elapsed());
            n
        };
        let start = Instant::now();
        let context = assemble(&Request {
            query: "how does Title 3 compare with b1, and what does h7 say of l11?",
            candidates: &candidates,
            kept: &[],
            further: &[],
            include: &[],
            exclude: &[],
            evidence: None,
            order: cento_assembly::Order::Document,
            marks: cento_assembly::Marks::Lean,
            budget_tokens,
            policy: &policy,
            strategy,
            format: Format::Markdown,
            count: &count,
            tokenizer: "words",
            reading: Reading {
                terms: &|text| text.split(' ').map(str::to_owned).collect(),
                idf: &|_| 1.0,
                sentences: &|text| vec![0..text.len()],
            },
            cosine: None,
            stop: cento_assembly::NEVER,
        })?;
        times.push(start.elapsed().saturating_sub(spent.get()));
        counting += spent.get();
        gaps.extend(context.trace.manifest.certificate.map(|certificate| certificate.gap));
    }
    times.sort_unstable();
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let mean = |of: &dyn Fn(f64) -> f64| {
        (!gaps.is_empty()).then(|| gaps.iter().map(|&gap| of(gap)).sum::<f64>() / gaps.len() as f64)
    };
    Ok(Assembly {
        strategy: strategy.name(),
        n_candidates,
        budget_tokens,
        p50_ms: ms(times[times.len() / 2]),
        p99_ms: ms(times[times.len() * 99 / 100]),
        counting_ms: ms(counting) / n_rounds as f64,
        proven: mean(&|gap| f64::from(gap == 0.0)),
        gap: mean(&|gap| gap),
    })
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
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

/// Candidates as a search finds them.
fn pool(seed: u64, n: usize) -> Vec<Candidate> {
    let mut next = sequence(seed);
    let mut candidates = Vec::with_capacity(n);
    let (mut document, mut index, mut start, mut level) = (0, 0, 0, 0.1);
    while candidates.len() < n {
        if next(12) == 0 {
            (document, index, start) = (document + 1, 0, 0);
            level = [0.02, 0.05, 0.1, 0.6][next(4) as usize];
        }
        let n_words = 50 + next(90);
        // Words of all ranks up to one that is drawn: common ones come more often.
        let word = |_| {
            let most = 1 + next(20_000);
            let number = next(most);
            format!("{}{number} ", char::from(b'a' + (number % 12) as u8)) // words start with many letters, as real ones do
        };
        let text: String = (0..n_words).map(word).collect();
        let end = start + text.len() as u64;
        candidates.push(Candidate {
            id: format!("{document:05}#{index}"),
            document: format!("{document:05}"),
            title: format!("Title {document}"),
            index,
            n_chunks: u32::MAX,
            section: format!("{document:05} > Part {}", index / 5),
            label: format!("part {}", index / 5),
            path: vec![format!("Title {document}"), format!("Part {}", index / 5)],
            span: start..end,
            source: "source",
            anchor: Anchor::default(),
            n_tokens: n_words as u32,
            text,
            relevance: level * (0.2 + next(1000) as f64 / 1000.0),
            arms: Vec::new(),
            is_neighbor: false,
            types: Vec::new(),
            parents: Vec::new(),
        });
        (index, start) = (index + 1, end);
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_assembled_and_bounded() {
        for (strategy, bounded) in [(Strategy::Cento, true), (Strategy::RseExact, true), (Strategy::Flat, false)] {
            let figures = assembly(strategy, 60, 400, 3).unwrap();
            assert!(figures.p50_ms > 0.0 && figures.p50_ms <= figures.p99_ms, "{figures:?}");
            assert_eq!(figures.gap.is_some(), bounded, "{figures:?}");
            assert!(figures.gap.is_none_or(|gap| gap < 0.05), "{figures:?}");
        }
    }
}
