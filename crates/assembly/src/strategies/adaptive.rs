//! Adaptive-k: as many of the most relevant as stand before the largest gap of the scores.
//!
//! Source: Taguchi, Maekawa and Bhutani 2025 (EMNLP, "Efficient Context Selection for Long-Context QA"), its three
//! rules, its buffer and its cuts at the head and the tail of the ranking.
//! Differs: one score keeps one candidate, and one gap is left to cut at whatever is ignored, where the original
//! raises; a spike that is not there is looked for once, where the original leaves out head and tail twice; scores that
//! are all equal keep the first.
//! Cost: one pass over the sorted scores.

use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::figure::count;
use crate::lever::{Lever, Number};
use crate::neighborhood::Neighborhood;
use crate::select::block::{Block, Plan};
use crate::select::chooser::{ALONE, Choice, Chooser, Walk};
use crate::select::decision::{Reason, StepDetails};
use crate::select::gates::{FAR, Told};
use crate::value::prior::Scored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of [`Strategy::Adaptive`](crate::Strategy::Adaptive).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Adaptive {
    /// Where the ranking is cut.
    pub rule: Rule,
    /// Scores that [`Rule::MovingAverage`] takes the mean of.
    pub window: usize,
    /// Candidates kept beyond the cut: a number, or with a point a multiple of those before it.
    pub buffer: Buffer,
    /// First ranks after which there is no cut: a number, or a share of the ranking.
    pub ignore_head: Share,
    /// Last ranks before which there is no cut: a number, or a share of the ranking.
    pub ignore_tail: Share,
}

/// Candidates kept beyond the cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number of candidates (5) or a factor (1.5)")]
pub enum Buffer {
    /// So many more.
    More(usize),
    /// The cut this many times as far down, rounded down; as in the original, where a cut behind the first is at 0 and
    /// stays there.
    Times(f64),
}

/// A number of ranks, or a share of all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number of ranks (5) or a share of them (0.05)")]
pub enum Share {
    /// So many.
    Ranks(usize),
    /// Of the gaps, which are one less than the ranks; rounded down.
    Of(f64),
}

impl Share {
    /// Ranks of a ranking with so many gaps.
    fn of(self, n_gaps: usize) -> usize {
        match self {
            Self::Ranks(ranks) => ranks,
            Self::Of(share) => (share * n_gaps as f64) as usize,
        }
    }
}

/// Where a ranking is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// At the largest difference of neighbouring scores.
    #[default]
    LargestGap,
    /// At the largest drop of the mean of as many scores as the window has: behind the first score of that window. Of
    /// fewer scores, at the largest difference.
    MovingAverage,
    /// Where the second difference of the scores has turned from - to +, one score behind the difference that is larger
    /// than the next; where it never does, at the largest difference.
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

impl Adaptive {
    pub(crate) fn check(&self) -> Result<()> {
        Error::unless(self.window > 0, "adaptive.window", "must be at least 1")?;
        if let Buffer::Times(times) = self.buffer {
            let holds = times >= 1.0 && times.is_finite();
            Error::unless(holds, "adaptive.buffer", "must be at least 1 as a factor")?;
        }
        let ignored = [(self.ignore_head, "adaptive.ignore_head"), (self.ignore_tail, "adaptive.ignore_tail")];
        for (ignored, key) in ignored {
            if let Share::Of(of) = ignored {
                Error::unless((0.0..1.0).contains(&of), key, "must be a share of at least 0 and below 1")?;
            }
        }
        Ok(())
    }
}

impl Chooser for Adaptive {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        Ok(plan(ledger.candidates(), choice.pool, self).offered(choice))
    }

    fn neighborhood(&self) -> Neighborhood {
        Neighborhood::none()
    }

    fn it_needs(&self) -> &'static str {
        ALONE
    }

    fn beyond(&self, place: usize, details: &StepDetails) -> Option<Told> {
        let raised = details.chunks_limit.map(|limit| {
            let buffer = match self.buffer {
                Buffer::More(more) => more,
                Buffer::Times(_) => 0, // a number of candidates in its place
            };
            let guess = buffer.saturating_add(place.saturating_sub(limit));
            Lever::Number(Number::limit("adaptive.buffer", buffer, guess, guess.saturating_mul(FAR)))
        });
        let limit = count(details.chunks_limit);
        let because = format!("place {place}: the ranking ends at place {limit}, its buffer included");
        Some((because, raised.into_iter().collect()))
    }
}

/// The number of `scores`, best first, to keep, the buffer included.
pub(crate) fn k(scores: &[f64], settings: &Adaptive) -> usize {
    let n = scores.len();
    if n < 2 {
        return n;
    }
    let (head, tail) = (settings.ignore_head.of(n - 1), settings.ignore_tail.of(n - 1));
    let within = |n_gaps: usize| {
        let start = head.min(n_gaps - 1);
        start..n_gaps.saturating_sub(tail).clamp(start + 1, n_gaps)
    };
    let drop = |at: usize| scores[at] - scores[at + 1];
    // Of the differences between scores that are so many ranks apart, the first that is largest.
    let largest = |apart: usize| {
        let (gaps, drop) = (within(n - apart), |at: usize| scores[at] - scores[at + apart]);
        gaps.clone().fold(gaps.start, |best, at| if drop(at) > drop(best) { at } else { best })
    };
    let cut = match settings.rule {
        // What one mean loses to the next is what its first score has more than the one behind its last, shared by all.
        Rule::MovingAverage if settings.window < n => largest(settings.window),
        Rule::LargestGap | Rule::MovingAverage => largest(1),
        Rule::Spike => {
            let mut rose = false;
            let turn = within(n - 1).skip(1).find(|&at| {
                let change = drop(at) - drop(at - 1);
                let falls = rose && change < 0.0;
                rose |= change > 0.0;
                falls
            });
            turn.unwrap_or_else(|| largest(1))
        }
    };
    let with_buffer = match settings.buffer {
        Buffer::More(more) => cut.saturating_add(more),
        Buffer::Times(times) => (cut as f64 * times) as usize,
    };
    with_buffer.saturating_add(1).min(n)
}

fn plan(candidates: &[&Candidate], pool: &[Scored], settings: &Adaptive) -> Plan {
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
        assert_eq!(kept(&scores, Adaptive { buffer: Buffer::Times(1.5), ..BARE }), 2, "1.5 times rank 1 is rank 1");
        assert_eq!(kept(&scores, Adaptive { buffer: Buffer::Times(2.0), ..BARE }), 3);
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
        assert_eq!(kept(&scores, Adaptive { ignore_head: Share::Of(0.5), ..BARE }), 3);
        assert_eq!(kept(&scores, Adaptive { ignore_head: Share::Of(0.8), ..BARE }), 5);
        assert_eq!(kept(&[0.9, 0.8, 0.1], Adaptive { ignore_tail: Share::Ranks(1), ..BARE }), 1, "not at the last gap");
        assert_eq!(kept(&[0.9, 0.8, 0.1], Adaptive { ignore_tail: Share::Of(0.5), ..BARE }), 1);
    }

    #[test]
    fn the_other_rules() {
        let scores = [0.9, 0.8, 0.78, 0.6, 0.59, 0.2];
        assert_eq!(
            kept(&scores, Adaptive { rule: Rule::Spike, ..BARE }),
            4,
            "one behind the peak of the third difference"
        );
        assert_eq!(kept(&[0.9, 0.8, 0.6, 0.3], Adaptive { rule: Rule::Spike, ..BARE }), 3, "no peak: the largest gap");
        let mean = |window| Adaptive { rule: Rule::MovingAverage, window, ..BARE };
        assert_eq!(kept(&scores, mean(1)), 5);
        assert_eq!(kept(&scores, mean(2)), 4, "from .6 and .59 to .59 and .2");
        assert_eq!(kept(&scores, mean(6)), 5, "no second window: the largest gap");
    }
}
