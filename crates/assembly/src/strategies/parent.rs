//! Sections: the section that a chunk found lies in, once.
//!
//! Sources: "Small-to-Big RAG" (Codcompass); LangChain's `ParentDocumentRetriever`. A section that is too long is
//! delivered by parts; a chunk without a section, or whose section does not fit, by its window, unless the policy wants
//! none.
//! Cost: one step for each chunk delivered.

use super::window::{Windows, boundary_stop, found, window_around, windows};
use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::lever::{Lever, Number};
use crate::line::Lines;
use crate::neighborhood::{Near, Neighborhood, Side};
use crate::select::block::{Block, Plan};
use crate::select::chooser::{Choice, Chooser, TOGETHER, Walk};
use crate::select::decision::Radii;
use crate::select::gates::{FAR, Told};
use crate::value::prior::Scored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Settings of [`Strategy::Parent`](crate::Strategy::Parent).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parent {
    /// Levels of the hierarchy, the chunk itself included: 2 is the section it lies in, 3 the one around that.
    pub hierarchy_depth: usize,
    /// Most encoder tokens of a section that is delivered whole; a longer one is cut into parts of at most so many.
    pub max_tokens: usize,
    /// Most sections delivered.
    pub max_context_blocks: usize,
    /// The substitute where there is no section, or the section does not fit.
    pub fallback: Fallback,
}

impl Default for Parent {
    fn default() -> Self {
        Self { hierarchy_depth: 2, max_tokens: 1500, max_context_blocks: 4, fallback: Fallback::default() }
    }
}

/// When a window stands in for a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// Where a chunk lies in no section, and where the section does not fit.
    #[default]
    Window,
    /// Where a chunk lies in no section; a section that does not fit is left out.
    Linear,
    /// Never: a chunk in no section is left out too.
    None,
}

impl Parent {
    pub(crate) fn check(&self) -> Result<()> {
        let holds = self.hierarchy_depth >= 2;
        Error::unless(holds, "parent.hierarchy_depth", "must be at least 2: the chunk and its section")?;
        Error::unless(self.max_tokens > 0, "parent.max_tokens", "must be at least 1")?;
        Error::unless(self.max_context_blocks > 0, "parent.max_context_blocks", "must be at least 1")
    }

    /// Sections between a chunk and the one that is delivered.
    fn level(&self) -> usize {
        self.hierarchy_depth.saturating_sub(2)
    }
}

/// The strategy `parent`, with the windows it falls back to.
pub(crate) struct Sections<'p> {
    pub(crate) parent: Parent,
    pub(crate) window: Windows<'p>,
}

impl Chooser for Sections<'_> {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        let plan = parent(ledger.candidates(), choice.pool, choice.lines, &self.parent, &self.window);
        Ok(plan.offered(choice))
    }

    fn radii(&self, candidates: &[&Candidate]) -> Option<Radii> {
        match self.parent.fallback {
            Fallback::Window | Fallback::Linear => self.window.radii_of(candidates),
            Fallback::None => None,
        }
    }

    fn neighborhood(&self) -> Neighborhood {
        let (inside, outside) = match self.parent.fallback {
            Fallback::Window => (self.window.side(), self.window.side()),
            Fallback::Linear => (Side::NONE, self.window.side()),
            Fallback::None => (Side::NONE, Side::NONE),
        };
        let sections = self.parent.max_context_blocks;
        Neighborhood(vec![Near::Parents { level: self.parent.level(), sections, inside, outside }])
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }

    fn not_proposed(&self) -> Option<Told> {
        let Parent { max_context_blocks, max_tokens, .. } = self.parent;
        let because = format!("in none of the first {max_context_blocks} sections, of at most {max_tokens} tokens");
        let raised = [("parent.max_context_blocks", max_context_blocks), ("parent.max_tokens", max_tokens)];
        Some((
            because,
            raised
                .map(|(key, from)| {
                    Lever::Number(Number::limit(key, from, from.saturating_add(1), from.saturating_mul(FAR)))
                })
                .into(),
        ))
    }
}

pub(super) fn parent(
    candidates: &[&Candidate],
    pool: &[Scored],
    lines: &Lines,
    settings: &Parent,
    window: &Windows<'_>,
) -> Plan {
    let mut plan = Plan::default();
    let mut seen: Vec<Range<usize>> = Vec::new();
    let mut n_without = 0;
    for scored in found(candidates, pool) {
        if plan.blocks.len() == settings.max_context_blocks {
            break;
        }
        let chunk = candidates[scored.candidate];
        let section = chunk.parents.get(settings.level()).or(chunk.parents.last());
        n_without += usize::from(section.is_none());
        let (places, falls_back) = match (section, settings.fallback) {
            (None, Fallback::None) => continue,
            (None, _) => (window_around(candidates, lines, scored.candidate, window), true),
            (Some(section), fallback) => {
                let part = part_of(candidates, lines, lines.place(scored.candidate), section, settings.max_tokens);
                (part, fallback == Fallback::Window)
            }
        };
        if !seen.contains(&places) {
            plan.blocks.push(Block {
                narrower: if falls_back { windows(candidates, lines, scored.candidate, window) } else { Vec::new() },
                ..Block::new(lines.candidates[places.clone()].to_vec(), scored.score)
            });
            plan.boundaries.extend(boundary_stop(chunk, window).filter(|_| section.is_none()));
            seen.push(places);
        }
    }
    if n_without > 0 {
        let chunks = if n_without == 1 { "a chunk lies" } else { "chunks lie" };
        let delivered = match settings.fallback {
            Fallback::None => "left out, as `parent.fallback` is none".to_owned(),
            Fallback::Window | Fallback::Linear => format!("delivered with the {} chunks around", window.in_words()),
        };
        plan.warnings.push(format!("{n_without} {chunks} in no section: {delivered}"));
    }
    plan
}

/// The places of a section, or the part of it that holds `place`: parts are cut from the section's start, each as long
/// as fits.
fn part_of(
    candidates: &[&Candidate],
    lines: &Lines,
    place: usize,
    section: &Range<u32>,
    max_tokens: usize,
) -> Range<usize> {
    let document = lines.document(place);
    let index = |place: usize| candidates[lines.candidates[place]].index;
    let start = document.clone().find(|&place| index(place) >= section.start).unwrap_or(place);
    let end = document.clone().find(|&place| index(place) >= section.end).unwrap_or(document.end);
    let (mut first, mut sum) = (start, 0);
    for at in start..end {
        let n = candidates[lines.candidates[at]].n_tokens as usize;
        if at > first && sum + n > max_tokens {
            if first <= place && place < at {
                return first..at;
            }
            (first, sum) = (at, 0);
        }
        sum += n;
    }
    first..end.max(place + 1)
}
