//! Sections: the share of the budget that one section may fill, and what becomes of what it leaves.
//!
//! Source: arXiv 2601.10681, eq. 11. The paper asks for a policy on unspent shares: by default they are offered to all.

use super::decision::StepDetails;
use crate::budget::Ledger;
use crate::candidate::normalize_label;
use crate::error::{Error, Result};
use crate::figure::{count, number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of `[rho]` for every section without a share of its own.
pub const OTHER_SECTIONS: &str = "*";

/// The use of the tokens that sections leave of their share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Slack {
    /// A second pass offers what is left to the candidates that only their section's share kept out, best first.
    #[default]
    Global,
    /// They stay unspent.
    None,
}

/// The shares of a policy, by normalised label, and what becomes of what is left of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sections<'p> {
    pub(crate) rho: &'p BTreeMap<String, f64>,
    pub(crate) slack: Slack,
}

impl Sections<'_> {
    /// The share of the budget that one section of this label may fill.
    pub(crate) fn rho(&self, label: &str) -> Option<f64> {
        self.rho.get(label).or_else(|| self.rho.get(OTHER_SECTIONS)).copied()
    }

    /// The share of the budget that a candidate's section may fill, in tokens.
    pub(crate) fn limit(&self, ledger: &Ledger<'_>, candidate: usize) -> Option<usize> {
        let label = normalize_label(&ledger.candidates()[candidate].label);
        self.rho(&label).map(|rho| (rho * ledger.budget() as f64) as usize)
    }

    /// Most tokens a cut text may have: its section's share, unless the slack is everyone's.
    pub(crate) fn text_max(&self, ledger: &Ledger<'_>, candidate: usize) -> Option<i64> {
        let limit = self.limit(ledger, candidate).map(|limit| limit as i64);
        limit.filter(|_| self.slack == Slack::None)
    }

    pub(crate) fn check(&self) -> Result<()> {
        for (label, rho) in self.rho {
            let is_share = (0.0..=1.0).contains(rho);
            Error::unless(is_share, &format!("rho.{label}"), "must be a share between 0 and 1")?;
        }
        Ok(())
    }

    /// The sentence about a chunk of the label that its section's share keeps out, and what would let it in.
    pub(crate) fn over_share(&self, label: &str, details: &StepDetails, budget: usize) -> (String, Vec<String>) {
        let StepDetails { section_used, section_needed, section_limit, .. } = *details;
        let key = if self.rho.contains_key(label) { label } else { OTHER_SECTIONS };
        let share = self.rho.get(key).copied();
        let because = format!(
            "its section may have {} tokens (rho {key:?} = {} of {budget}): it needs {} beside {} used",
            count(section_limit),
            share.map_or_else(|| "?".to_owned(), number),
            count(section_needed),
            count(section_used)
        );
        let mut changes = Vec::new();
        if let (Some(used), Some(needed), Some(share)) = (section_used, section_needed, share) {
            let whole = used.saturating_add(needed);
            let mut rho = (whole as f64 / budget as f64 * 1000.0).ceil() / 1000.0;
            if ((rho * budget as f64) as usize) < whole {
                rho += 0.001; // a share is rounded down to tokens
            }
            changes.push(if rho <= 1.0 {
                format!("a rho of {} for {label:?} instead of {}", number(rho), number(share))
            } else {
                format!("a budget of {} instead of {budget}", (whole as f64 / share.max(1e-9)).ceil())
            });
        }
        (because, changes)
    }
}
