//! Sections: the share of the budget that one section may fill, and what becomes of what it leaves.
//!
//! Source: arXiv 2601.10681, eq. 11. The paper asks for a policy on unspent shares: by default they are offered to all.

use super::decision::StepDetails;
use crate::budget::Ledger;
use crate::candidate::{Candidate, normalize_label};
use crate::error::{Error, Result};
use crate::figure::{count, number};
use crate::lever::{Key, Lever, Number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of `[rho]` for every section without a share of its own.
pub const OTHER_SECTIONS: &str = "*";

/// Shares written as decimals add up to 1 within this.
const SUM_MAX: f64 = 1.0 + 1e-9;

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

/// The chunks that share the part of the budget that `[rho]` gives to a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RhoOf {
    /// Those of one section of one document: every document's section of that heading has the share for itself.
    #[default]
    Section,
    /// Those under the heading in all documents together, as in the paper; shares that are named add up to 1 at most.
    Heading,
}

impl RhoOf {
    /// True for what policies mean that do not say it.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The shares of a policy, by normalised label, and what becomes of what is left of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sections<'p> {
    pub(crate) rho: &'p BTreeMap<String, f64>,
    pub(crate) rho_of: RhoOf,
    pub(crate) slack: Slack,
}

impl Sections<'_> {
    /// The name of what shares a part of the budget with a candidate.
    pub(crate) fn sharing<'c>(&self, candidate: &'c Candidate) -> &'c str {
        match self.rho_of {
            RhoOf::Section => &candidate.section,
            RhoOf::Heading => &candidate.label,
        }
    }

    /// Shares by name that add up to more than the budget.
    fn sum(&self) -> f64 {
        self.rho.iter().filter(|(label, _)| *label != OTHER_SECTIONS).map(|(_, rho)| rho).sum()
    }

    /// A warning about shares of sections that cannot all be filled.
    pub(crate) fn warning(&self) -> Option<String> {
        let sum = self.sum();
        (sum > SUM_MAX).then(|| {
            format!(
                "the shares of [rho] add up to {}: sections that go first leave less than their share to others",
                number(sum)
            )
        })
    }

    /// The share of the budget that one section of this label may fill.
    pub(crate) fn rho(&self, label: &str) -> Option<f64> {
        self.rho.get(label).or_else(|| self.rho.get(OTHER_SECTIONS)).copied()
    }

    /// The share of the budget that a candidate's section may fill, in tokens.
    pub(crate) fn limit(&self, ledger: &Ledger<'_>, candidate: usize) -> Option<usize> {
        if self.rho.is_empty() {
            return None;
        }
        let label = normalize_label(&ledger.candidates()[candidate].label);
        self.rho(&label).map(|rho| share_of(rho, ledger.budget()))
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
        let fits = self.rho_of == RhoOf::Section || self.sum() <= SUM_MAX;
        Error::unless(fits, "rho", "must add up to 1 at most where `rho_of` is \"heading\"")
    }

    /// The sentence about a chunk of the label that its section's share keeps out, and what would let it in.
    pub(crate) fn over_share(&self, label: &str, details: &StepDetails, budget: usize) -> (String, Vec<Lever>) {
        let StepDetails { section_used, section_needed, section_limit, .. } = *details;
        let key = if self.rho.contains_key(label) { label } else { OTHER_SECTIONS };
        let share = self.rho.get(key).copied();
        let because = format!(
            "its {} may have {} tokens (rho {key:?} = {} of {budget}): it needs {} beside {} used",
            match self.rho_of {
                RhoOf::Section => "section",
                RhoOf::Heading => "heading, in all documents together,",
            },
            count(section_limit),
            share.map_or_else(|| "?".to_owned(), number),
            count(section_needed),
            count(section_used)
        );
        let mut levers = Vec::new();
        if let (Some(used), Some(needed), Some(share)) = (section_used, section_needed, share) {
            let whole = used.saturating_add(needed);
            if whole <= budget {
                let below = (whole as f64 - 1.0).max(0.0) / budget.max(1) as f64;
                levers.push(Lever::Number(Number::above(Key::of("rho", label), share, below)));
            }
            levers.push(Lever::Budget((whole as f64 / share.max(1e-9)).ceil() as usize));
        }
        (because, levers)
    }
}

/// A share of so many tokens, rounded down as the share is written: .29 of 100 are 29, although the number that is
/// nearest to .29 lies below it.
pub(crate) fn share_of(share: f64, n_tokens: usize) -> usize {
    const DIGITS: usize = 18; // ten to this power, times any budget, is within 128 bits
    let written = share.to_string();
    let (whole, part) = written.split_once('.').unwrap_or((&written, ""));
    let part = &part[..part.len().min(DIGITS)];
    let digits: u128 = format!("{whole}{part}").parse().unwrap_or(0); // shares are checked: none is negative
    (digits * n_tokens as u128 / 10_u128.pow(part.len() as u32)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_what_is_written() {
        assert_eq!((0.29 * 100.0) as usize, 28, "what the nearest numbers multiply to");
        for (share, n_tokens, tokens) in
            [(0.29, 100, 29), (0.57, 100, 57), (0.285, 100, 28), (1.0, 7, 7), (0.0, 7, 0), (1e-30, 1_000_000, 0)]
        {
            assert_eq!(share_of(share, n_tokens), tokens, "{share} of {n_tokens}");
        }
        for percent in 0..=100_usize {
            for n_tokens in [10, 100, 800, 1_600, 4_096] {
                assert_eq!(share_of(percent as f64 / 100.0, n_tokens), percent * n_tokens / 100);
            }
        }
    }
}
