//! The replacement: the worst passage makes room for the best candidate, if that is better by epsilon.
//!
//! Source: arXiv 2512.10787, section 3.5: fixed `|E| = k`, swap iff `S(c*) > S(v) + epsilon`, new passages protected
//! for one iteration.
//! Differs: the budget may be tokens; then the victim is the worst passage whose place some candidate fits. What was
//! evicted does not come back. Room that is left is filled by the best candidate that fits, if its score is above
//! epsilon.
//! Order: that of every ranking (score, then id descending): the victim is the last, the candidate the first.
//! Ends: every swap evicts a passage for good and every filling takes one, so there are at most as many steps as
//! passages.

use super::config::{Budget, SealConfig, Update};
use super::score::{Evidence, Profile, Score, Worth};
use crate::rank::best_first;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One replacement, or one filling of room that was left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Swap {
    /// Loop in which it happened, from 1.
    pub number: usize,
    /// Id of the passage that went; none where there was room.
    pub out: Option<String>,
    /// Its score, beside all other kept passages.
    pub out_score: Option<Score>,
    /// Id of the passage that came.
    pub r#in: String,
    /// Its score, beside the same passages.
    pub in_score: Score,
    /// Tokens kept before.
    pub tokens_before: usize,
    /// Tokens kept after.
    pub tokens_after: usize,
}

/// The way in which a passage lost its place, or got none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It was kept, and a better one took its place.
    Replaced,
    /// Another was better for the place that was open.
    Outbid,
    /// It was not better, by epsilon, than the kept passage whose place was in question.
    NotBetter,
    /// There was room, and its score was not above epsilon.
    WorthNothing,
    /// It fitted neither beside what is kept nor in a place that was open.
    NoRoom,
    /// The question's own ranking was kept up to a more relevant passage, and nothing has been compared since.
    LessRelevant,
    /// Its title is blocked.
    Blocked,
}

/// The last comparison of a passage that is not kept: who beat it, on which scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Its id.
    pub id: String,
    /// Loop, from 1; 0: before the first.
    pub number: usize,
    /// The way in which it lost.
    pub how: How,
    /// Its score.
    pub score: Option<Score>,
    /// Id of the passage that beat it.
    pub by: Option<String>,
    /// Score of that, beside the same passages.
    pub by_score: Option<Score>,
}

/// The same, with the passages as numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Beaten {
    pub(crate) number: usize,
    pub(crate) how: How,
    pub(crate) score: Option<Score>,
    pub(crate) by: Option<(usize, Option<Score>)>,
}

/// Passages that may be taken in, each with its score.
type Scored = Vec<(usize, Score)>;

/// The passages kept and evicted, as numbers in one list of profiles.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// In the order of their places: who replaces another takes its place.
    pub(crate) kept: Vec<usize>,
    /// Loop that brought each kept passage; 0 for those of the question itself.
    pub(crate) since: Vec<usize>,
    pub(crate) evicted: BTreeSet<usize>,
    /// The last comparison of each passage that is not kept.
    pub(crate) beaten: BTreeMap<usize, Beaten>,
}

impl State {
    /// The places filled in order by what fits.
    pub(crate) fn first(kept: Vec<usize>) -> Self {
        let since = vec![0; kept.len()];
        Self { kept, since, ..Self::default() }
    }

    pub(crate) fn n_tokens(&self, profiles: &[Profile]) -> usize {
        self.kept.iter().map(|&kept| profiles[kept].n_tokens).sum()
    }

    /// Says if a passage may be kept in the place of another, or beside all.
    fn fits(
        &self,
        passage: usize,
        place: Option<usize>,
        profiles: &[Profile],
        (config, budget): (&SealConfig, Budget),
    ) -> bool {
        let size = |passage: usize| (profiles[passage].document.as_str(), profiles[passage].n_tokens);
        let others = self.kept.iter().enumerate().filter(|(at, _)| Some(*at) != place).map(|(_, &kept)| size(kept));
        fits(config, budget, others, size(passage))
    }

    /// Fills what room there is, then replaces until nothing is better by epsilon.
    pub(crate) fn repair(
        &mut self,
        number: usize,
        pool: &[usize],
        profiles: &[Profile],
        worth: &Worth,
        config: &SealConfig,
    ) -> Vec<Swap> {
        let mut swaps = Vec::new();
        while let Some(swap) = self
            .fill(number, pool, profiles, worth, config)
            .or_else(|| self.swap(number, pool, profiles, worth, config))
        {
            swaps.push(swap);
        }
        swaps
    }

    fn fill(
        &mut self,
        number: usize,
        pool: &[usize],
        profiles: &[Profile],
        worth: &Worth,
        config: &SealConfig,
    ) -> Option<Swap> {
        let tokens_before = self.n_tokens(profiles);
        let scored = self.contenders(number, None, pool, profiles, worth, config);
        let (best, in_score) = strongest(&scored, profiles)?;
        if in_score.total <= config.epsilon {
            self.beat(number, How::WorthNothing, None, &scored);
            return None;
        }
        self.beat(number, How::Outbid, Some((best, in_score)), &scored);
        self.kept.push(best);
        self.since.push(number);
        let (r#in, tokens_after) = (profiles[best].id.clone(), self.n_tokens(profiles));
        Some(Swap { number, out: None, out_score: None, r#in, in_score, tokens_before, tokens_after })
    }

    fn swap(
        &mut self,
        number: usize,
        pool: &[usize],
        profiles: &[Profile],
        worth: &Worth,
        config: &SealConfig,
    ) -> Option<Swap> {
        match config.update {
            Update::Replace => {}
            Update::Expand => return None,
        }
        let tokens_before = self.n_tokens(profiles);
        let free = (0..self.kept.len()).filter(|&at| self.since[at] == 0 || number > self.since[at] + config.dwell);
        let mut victims: Vec<(usize, Score)> = free
            .map(|at| (at, self.others(Some(at), profiles, worth).score(&profiles[self.kept[at]], config)))
            .collect();
        let id = |at: usize| &profiles[self.kept[at]].id;
        victims.sort_by(|a, b| best_first((b.1.total, id(b.0)), (a.1.total, id(a.0)))); // the last of the ranking first
        let (place, out_score, scored) = victims.into_iter().find_map(|(place, score)| {
            let scored = self.contenders(number, Some(place), pool, profiles, worth, config);
            (!scored.is_empty()).then_some((place, score, scored))
        })?;
        let (best, in_score) = strongest(&scored, profiles)?;
        if in_score.total <= out_score.total + config.epsilon {
            self.beat(number, How::NotBetter, Some((self.kept[place], out_score)), &scored);
            return None;
        }
        self.beat(number, How::Outbid, Some((best, in_score)), &scored);
        let out = std::mem::replace(&mut self.kept[place], best);
        self.since[place] = number;
        self.evicted.insert(out);
        self.beat(number, How::Replaced, Some((best, in_score)), &[(out, out_score)]);
        let (out, r#in) = (Some(profiles[out].id.clone()), profiles[best].id.clone());
        let (out_score, tokens_after) = (Some(out_score), self.n_tokens(profiles));
        Some(Swap { number, out, out_score, r#in, in_score, tokens_before, tokens_after })
    }

    /// Notes what passages lost to; the winner lost to nobody.
    fn beat(&mut self, number: usize, how: How, by: Option<(usize, Score)>, scored: &[(usize, Score)]) {
        for &(passage, score) in scored {
            let by = by.map(|(by, score)| (by, Some(score)));
            self.beaten.insert(passage, Beaten { number, how, score: Some(score), by });
        }
        if let Some((winner, _)) = by {
            self.beaten.remove(&winner);
        }
    }

    /// The candidates for a place, or for the room beside all.
    fn contenders(
        &self,
        number: usize,
        place: Option<usize>,
        pool: &[usize],
        profiles: &[Profile],
        worth: &Worth,
        config: &SealConfig,
    ) -> Scored {
        let room = (config, config.budget_in(number));
        let admitted = pool.iter().copied().filter(|passage| {
            !self.kept.contains(passage)
                && !self.evicted.contains(passage)
                && self.fits(*passage, place, profiles, room)
        });
        let mut admitted = admitted.peekable();
        if admitted.peek().is_none() {
            return Scored::new();
        }
        let beside = self.others(place, profiles, worth);
        admitted.map(|passage| (passage, beside.score(&profiles[passage], config))).collect()
    }

    /// The kept passages without the one in a place.
    pub(crate) fn others<'a>(&self, place: Option<usize>, profiles: &'a [Profile], worth: &'a Worth) -> Evidence<'a> {
        let others = self.kept.iter().enumerate().filter(|(at, _)| Some(*at) != place);
        Evidence::of(others.map(|(_, &kept)| &profiles[kept]).collect(), worth)
    }
}

/// The best of scored passages.
fn strongest(scored: &[(usize, Score)], profiles: &[Profile]) -> Option<(usize, Score)> {
    let key = |(passage, score): &(usize, Score)| (score.total, &profiles[*passage].id);
    scored.iter().copied().min_by(|one, other| best_first(key(one), key(other)))
}

/// Says if there is room for a passage beside others within a budget; of each its document and tokens.
pub(crate) fn fits<'p>(
    config: &SealConfig,
    budget: Budget,
    others: impl Iterator<Item = (&'p str, usize)>,
    (document, n_tokens): (&str, usize),
) -> bool {
    let (mut n, mut of_document, mut tokens) = (1, 1, n_tokens);
    for (other, n_tokens) in others {
        n += 1;
        of_document += usize::from(other == document);
        tokens += n_tokens;
    }
    let fits = match budget {
        Budget::Items(k) => n <= k,
        Budget::Tokens(most) => tokens <= most,
        Budget::Request => false, // nobody said how much
    };
    fits && config.max_per_document.is_none_or(|most| of_document <= most)
}
