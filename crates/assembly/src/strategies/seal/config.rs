//! The settings of a repair. The paper discloses none of the weights; what stands here is chosen by us, and not fitted
//! to any set.

use crate::error::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The size of a context, the same before, during and after a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Budget {
    /// Passages: the paper's fixed `k`.
    Items(usize),
    /// Tokens of the passages.
    Tokens(usize),
    /// The tokens of the context that is asked for. Whoever drives a repair puts a number in its place.
    Request,
}

/// The way in which what a loop finds is taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Update {
    /// The better passage takes the place of the worse one, as in the paper.
    #[default]
    Replace,
    /// Each loop adds as much as the budget allows at once, and nothing goes: the opposite, which the paper measures
    /// itself against.
    Expand,
}

impl Update {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The settings of a repair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SealConfig {
    /// The most that is kept: `"request"`, the tokens asked for, `{ items = 3 }` or `{ tokens = 800 }`. The paper
    /// reports 1, 3 and 5 items.
    pub budget: Budget,
    /// The way in which a loop takes in what it finds.
    #[serde(skip_serializing_if = "Update::is_default")]
    pub update: Update,
    /// Most passages of one document among those kept. None: no limit.
    pub max_per_document: Option<usize>,
    /// L: how often missing things are asked for. 0 keeps what the question itself found; the paper's gain is nearly
    /// all at 1.
    pub loops: usize,
    /// M: best passages of each ranking that are looked at; the paper's 20.
    pub candidates: usize,
    /// Micro-queries of one loop. Ours: the paper speaks of "micro-queries", its code asks one.
    pub queries: usize,
    /// Weight of the gaps a passage closes. Undisclosed; ours.
    pub lambda_gap: f64,
    /// Weight of what a passage confirms. Undisclosed; ours.
    pub lambda_corr: f64,
    /// Weight of the new names a passage brings. Undisclosed; ours.
    pub lambda_nov: f64,
    /// Weight of what a passage repeats. Undisclosed; ours.
    pub lambda_red: f64,
    /// Weight of relevance to the question itself, which is 0 for what only a micro-query found. Not in the paper.
    pub lambda_rel: f64,
    /// By how much a passage must be better than the one it replaces. Undisclosed; ours.
    pub epsilon: f64,
    /// Loops after the one that brought it in which a passage cannot be replaced; the paper's one.
    pub dwell: usize,
    /// Share of the question's needs, by idf, from which the gate calls it covered. Ours.
    pub coverage_min: f64,
    /// Most calls of a language model for one answer, where there is one beside the patterns: a passage each, and a
    /// judgement each loop.
    pub calls: usize,
    /// Titles of documents that are not admitted.
    pub blocked_titles: Vec<String>,
    /// Keywords that no micro-query may contain.
    pub blocked_keywords: Vec<String>,
}

impl Default for SealConfig {
    fn default() -> Self {
        Self {
            budget: Budget::Request,
            update: Update::default(),
            max_per_document: None,
            loops: 1,
            candidates: 20,
            queries: 4,
            lambda_gap: 1.0,
            lambda_corr: 0.25,
            lambda_nov: 0.25,
            lambda_red: 0.5,
            lambda_rel: 0.5,
            epsilon: 0.02,
            dwell: 1,
            coverage_min: 0.95,
            calls: 16,
            blocked_titles: Vec::new(),
            blocked_keywords: Vec::new(),
        }
    }
}

impl SealConfig {
    /// The settings, if all are in their ranges.
    ///
    /// # Errors
    /// [`Error::Range`] naming the first that is not.
    pub fn checked(&self) -> Result<&Self> {
        let (what, size) = match self.budget {
            Budget::Items(k) => ("`budget.items`", k),
            Budget::Tokens(tokens) => ("`budget.tokens`", tokens),
            Budget::Request => ("`budget`", 1),
        };
        let counts = [
            (what, size),
            ("`max_per_document`", self.max_per_document.unwrap_or(1)),
            ("`candidates`", self.candidates),
            ("`queries`", self.queries),
            ("`calls`", self.calls),
        ];
        for (what, value) in counts {
            if value == 0 {
                return Err(Error::Range { what: what.into(), value: 0.0, expected: "at least 1" });
            }
        }
        if self.loops > LOOPS_MAX {
            return Err(Error::Range { what: "`loops`".into(), value: self.loops as f64, expected: "at most 16" });
        }
        let weights = [
            ("`lambda_gap`", self.lambda_gap),
            ("`lambda_corr`", self.lambda_corr),
            ("`lambda_nov`", self.lambda_nov),
            ("`lambda_red`", self.lambda_red),
            ("`lambda_rel`", self.lambda_rel),
            ("`epsilon`", self.epsilon),
        ];
        for (what, value) in weights {
            if !(0.0..=WEIGHT_MAX).contains(&value) {
                return Err(Error::Range { what: what.into(), value, expected: "between 0 and 100" });
            }
        }
        if !(0.0..=1.0).contains(&self.coverage_min) {
            let (what, value) = ("`coverage_min`".into(), self.coverage_min);
            return Err(Error::Range { what, value, expected: "between 0 and 1" });
        }
        Ok(self)
    }
}

impl SealConfig {
    /// The budget that holds in a loop.
    pub(crate) fn budget_in(&self, number: usize) -> Budget {
        let times = |most: usize| match self.update {
            Update::Replace => most,
            Update::Expand => most.saturating_mul(number + 1),
        };
        match self.budget {
            Budget::Items(k) => Budget::Items(times(k)),
            Budget::Tokens(most) => Budget::Tokens(times(most)),
            Budget::Request => Budget::Request,
        }
    }
}

/// More loops than that only ask what was asked.
const LOOPS_MAX: usize = 16;
/// All terms of a score are in [0, 1].
const WEIGHT_MAX: f64 = 100.0;
