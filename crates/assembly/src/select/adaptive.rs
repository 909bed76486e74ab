//! Adaptive-k: as many of the most relevant as stand before the largest gap of the scores.
//!
//! Source: Taguchi, Maekawa and Bhutani 2025 (EMNLP, "Efficient Context Selection for Long-Context QA"), its three rules, its
//! buffer and its cuts at the head and the tail of the ranking.
//! Differs: one score keeps one candidate, where the original raises; scores that are all equal keep the first.
//! Cost: one pass over the sorted scores.

use super::block::{Block, Plan};
use crate::candidate::Candidate;
use crate::prior::Scored;
use crate::trace::{Reason, StepDetails};
use serde::{Deserialize, Serialize};

/// Settings of [`Strategy::Adaptive`](crate::Strategy::Adaptive).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Adaptive {
    /// Where the ranking is cut.
    pub rule: Rule,
    /// Gaps that [`Rule::MovingAverage`] takes the mean of.
    pub window: usize,
    /// Candidates kept beyond the cut: a number, or with a point a multiple of those before it.
    pub buffer: Buffer,
    /// First ranks after which there is no cut: a number, or a share of the ranking.
    pub ignore_head: Share,
    /// Last ranks before which there is no cut: a number, or a share of the ranking.
    pub ignore_tail: Share,
}

/// How many beyond the cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of candidates (5) or a factor (1.5)")]
pub enum Buffer {
    /// So many more.
    More(usize),
    /// So many times as many, rounded down.
    Times(f64),
}

/// A number of ranks, or a share of all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of ranks (5) or a share of them (0.05)")]
pub enum Share {
    /// So many.
    Ranks(usize),
    /// Of all, rounded down.
    Of(f64),
}

impl Share {
    fn of(self, n: usize) -> usize {
        match self {
            Self::Ranks(ranks) => ranks,
            Self::Of(share) => (share * n as f64) as usize,
        }
    }
}

/// Where a ranking is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// At the largest difference of neighbouring scores.
    #[default]
    LargestGap,
    /// At the largest mean of as many differences as the window has.
    MovingAverage,
    /// At the first difference that is larger than the one before it and the one behind it (where the second difference of the
    /// scores turns from - to +); where there is none, at the largest difference.
    Spike,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            window: 3,
            buffer: Buffer::More(5),
            ignore_head: Share::Ranks(0),
            ignore_tail: Share::Of(0.5),
        }
    }
}

/// How many of `scores`, best first, to keep, the buffer included.
pub(crate) fn k(scores: &[f64], settings: &Adaptive) -> usize {
    let n = scores.len();
    if n < 2 {
        return n;
    }
    let drops: Vec<f64> = scores.windows(2).map(|pair| pair[0] - pair[1]).collect();
    let head = settings.ignore_head.of(n).min(drops.len() - 1);
    let tail = n.saturating_sub(settings.ignore_tail.of(n)).clamp(head + 1, drops.len());
    let within = head..tail;
    let largest = |height: &dyn Fn(usize) -> f64| {
        within.clone().fold(within.start, |best, at| if height(at) > height(best) { at } else { best })
    };
    let largest_gap = || largest(&|at| drops[at]);
    let cut = match settings.rule {
        Rule::LargestGap => largest_gap(),
        Rule::MovingAverage => {
            let window = settings.window.max(1);
            largest(&|at| {
                let from = (at + 1).saturating_sub(window);
                drops[from..=at].iter().sum::<f64>() / (at + 1 - from) as f64
            })
        }
        Rule::Spike => {
            let mut rose = false;
            let peak = within.clone().skip(1).find(|&at| {
                let change = drops[at] - drops[at - 1];
                let falls = rose && change < 0.0;
                rose |= change > 0.0;
                falls
            });
            peak.map_or_else(largest_gap, |behind| behind - 1)
        }
    };
    let kept = cut + 1;
    let with_buffer = match settings.buffer {
        Buffer::More(more) => kept + more,
        Buffer::Times(times) => (kept as f64 * times) as usize,
    };
    with_buffer.clamp(1, n)
}

pub(super) fn plan(candidates: &[&Candidate], pool: &[Scored], settings: &Adaptive) -> Plan {
    let found: Vec<&Scored> = pool.iter().filter(|scored| !candidates[scored.candidate].is_neighbor).collect();
    let scores: Vec<f64> = found.iter().map(|scored| scored.score).collect();
    let k = k(&scores, settings);
    let mut plan = Plan::default();
    for (at, scored) in found.iter().enumerate() {
        if at < k {
            plan.blocks.push(Block::new(vec![scored.candidate], scored.score));
        } else {
            let details = StepDetails { chunks_limit: Some(k), ..StepDetails::default() };
            plan.reasons.insert(scored.candidate, (Reason::BeyondCandidates, details));
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(scores: &[f64], settings: Adaptive) -> usize {
        k(scores, &settings)
    }

    const BARE: Adaptive = Adaptive {
        rule: Rule::LargestGap,
        window: 3,
        buffer: Buffer::More(0),
        ignore_head: Share::Ranks(0),
        ignore_tail: Share::Ranks(0),
    };

    #[test]
    fn the_largest_gap_ends_the_list_and_the_buffer_follows() {
        let scores = [0.9, 0.88, 0.5, 0.49];
        assert_eq!(kept(&scores, BARE), 2);
        assert_eq!(kept(&scores, Adaptive { buffer: Buffer::More(1), ..BARE }), 3);
        assert_eq!(kept(&scores, Adaptive { buffer: Buffer::Times(1.5), ..BARE }), 3);
        assert_eq!(kept(&scores, Adaptive { buffer: Buffer::More(9), ..BARE }), 4);
    }

    #[test]
    fn degenerate_lists_keep_something() {
        assert_eq!(kept(&[0.3; 5], BARE), 1, "all equal: the first");
        assert_eq!(kept(&[0.3], BARE), 1);
        assert_eq!(kept(&[], BARE), 0);
        assert_eq!(kept(&[0.9, 0.1], Adaptive { ignore_head: Share::Ranks(7), ..BARE }), 1);
    }

    #[test]
    fn head_and_tail_can_be_left_alone() {
        let scores = [0.9, 0.3, 0.29, 0.1, 0.09, 0.0];
        assert_eq!(kept(&scores, BARE), 1);
        assert_eq!(kept(&scores, Adaptive { ignore_head: Share::Ranks(1), ..BARE }), 3);
        assert_eq!(kept(&scores, Adaptive { ignore_head: Share::Of(0.5), ..BARE }), 5);
        assert_eq!(kept(&scores, Adaptive { ignore_head: Share::Of(0.5), ignore_tail: Share::Of(0.34), ..BARE }), 4);
    }

    #[test]
    fn the_other_rules() {
        let scores = [0.9, 0.8, 0.78, 0.6, 0.59, 0.2];
        assert_eq!(kept(&scores, Adaptive { rule: Rule::Spike, ..BARE }), 3, "the third difference is a peak");
        assert_eq!(kept(&[0.9, 0.8, 0.6, 0.3], Adaptive { rule: Rule::Spike, ..BARE }), 3, "no peak: the largest gap");
        assert_eq!(kept(&scores, Adaptive { rule: Rule::MovingAverage, window: 2, ..BARE }), 5);
        assert_eq!(kept(&scores, Adaptive { rule: Rule::MovingAverage, window: 1, ..BARE }), 5);
    }
}
