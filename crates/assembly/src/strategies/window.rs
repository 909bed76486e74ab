//! Windows: what is found is small and precise, what is delivered are the chunks on either side of it as well.
//!
//! Sources: "Small-to-Big RAG" (Codcompass); LlamaIndex's `SentenceWindow`. Windows never cross the edge of a document,
//! and are narrowed where the budget ends.
//! Where a chunk is one sentence, a window is the sources' sentence window: `radius` sentences on either side.
//! A radius by type of document and by kind of question is the first source's, which gives no figures; where both
//! name one for a chunk, the wider holds.
//! Differs from LlamaIndex: a window has `radius` chunks on both sides (its slice ends one early). Nothing is stored
//! twice, and the budget is in tokens delivered.
//! Cost: one step for each chunk delivered.

use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::lever::{Lever, Number};
use crate::line::Lines;
use crate::neighborhood::{Near, Neighborhood, Side};
use crate::question::QueryKind;
use crate::select::block::{Block, Plan};
use crate::select::chooser::{Choice, Chooser, TOGETHER, Walk};
use crate::select::decision::{BoundaryStop, Radii};
use crate::select::gates::{FAR, RUN_MAX, Told};
use crate::value::prior::Scored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

pub use crate::select::decision::Boundary;

/// Settings of [`Strategy::Window`](crate::Strategy::Window).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Window {
    /// Chunks on either side.
    pub radius: usize,
    /// Chunks on either side of what is found in a document of a type: the ending of its file, or a name of the format
    /// it was read as.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub radius_by_type: BTreeMap<String, usize>,
    /// Chunks on either side for a kind of question.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub radius_by_query: BTreeMap<QueryKind, usize>,
    /// Most encoder tokens of a window; it is narrowed from both sides, but never below the chunk found.
    pub max_tokens: usize,
    /// Where it stops.
    pub boundary: Boundary,
    /// Makes the trace name the windows that stop there.
    pub log_boundaries: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            radius: 3,
            radius_by_type: BTreeMap::new(),
            radius_by_query: BTreeMap::new(),
            max_tokens: 1500,
            boundary: Boundary::default(),
            log_boundaries: false,
        }
    }
}

impl Window {
    pub(crate) fn check(&self) -> Result<()> {
        Error::unless(self.max_tokens > 0, "window.max_tokens", "must be at least 1")?;
        Error::unless(self.radius <= RUN_MAX, "window.radius", RADIUS)?;
        for (name, radius) in &self.radius_by_type {
            let is_one = !name.is_empty() && !name.starts_with('.') && *name == name.trim().to_lowercase();
            Error::unless(is_one, "window.radius_by_type", "must name types in lower case and without a dot: md")?;
            Error::unless(*radius <= RUN_MAX, "window.radius_by_type", RADIUS)?;
        }
        self.radius_by_query
            .values()
            .try_for_each(|radius| Error::unless(*radius <= RUN_MAX, "window.radius_by_query", RADIUS))
    }

    /// Its windows for a question.
    pub(crate) fn asked(&self, question: &str) -> Windows<'_> {
        // The question is read only where something goes by it.
        let goes_by_it = !(self.radius_by_query.is_empty() && self.radius_by_type.is_empty());
        Windows { settings: self, kind: goes_by_it.then(|| QueryKind::of(question)) }
    }
}

const RADIUS: &str = "must be at most 100";

/// The windows of one question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows<'p> {
    pub(super) settings: &'p Window,
    /// The kind of the question; none where every window has the one radius.
    kind: Option<QueryKind>,
}

impl Windows<'_> {
    /// The radius for the kind of the question, where there is one.
    fn by_query(&self) -> Option<usize> {
        self.settings.radius_by_query.get(&self.kind?).copied()
    }

    /// The radius for the most particular type of a document that has one.
    fn by_type(&self, types: &[String]) -> Option<(&str, usize)> {
        types.iter().find_map(|name| {
            let (name, radius) = self.settings.radius_by_type.get_key_value(name)?;
            Some((name.as_str(), *radius))
        })
    }

    /// Chunks on either side of a chunk found, before tokens are looked at.
    pub(super) fn radius(&self, chunk: &Candidate) -> usize {
        let by_type = self.by_type(&chunk.types).map(|(_, radius)| radius);
        by_type.max(self.by_query()).unwrap_or(self.settings.radius)
    }

    /// The largest radius that a document of any type may have.
    pub(super) fn radius_max(&self) -> usize {
        let by_type = self.settings.radius_by_type.values().copied().max();
        let plain = self.by_query().unwrap_or(self.settings.radius);
        plain.max(by_type.unwrap_or(plain))
    }

    /// The widest window, beside the chunk found.
    pub(super) fn side(&self) -> Side {
        let radius = self.radius_max();
        Side { before: radius, behind: radius, tokens_max: self.settings.max_tokens }
    }

    /// The radii that held among these chunks.
    pub(super) fn radii_of(&self, candidates: &[&Candidate]) -> Option<Radii> {
        let found = candidates.iter().filter(|chunk| !chunk.is_neighbor);
        let named = found.filter_map(|chunk| Some((self.by_type(&chunk.types)?.0.to_owned(), self.radius(chunk))));
        let radius = self.by_query().unwrap_or(self.settings.radius);
        Some(Radii { kind: self.kind?, radius, by_type: named.collect() })
    }

    /// The radii in words: one number, or all there are.
    pub(super) fn in_words(&self) -> String {
        let plain = self.by_query().unwrap_or(self.settings.radius);
        let by_type = self.settings.radius_by_type.iter().map(|(name, radius)| {
            format!("{} in documents of type {name}", self.by_query().max(Some(*radius)).unwrap_or(*radius))
        });
        let all: Vec<String> = std::iter::once(plain.to_string()).chain(by_type).collect();
        all.join(", ")
    }
}

impl Chooser for Windows<'_> {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        Ok(window(ledger.candidates(), choice.pool, choice.lines, self).offered(choice))
    }

    fn radii(&self, candidates: &[&Candidate]) -> Option<Radii> {
        self.radii_of(candidates)
    }

    fn neighborhood(&self) -> Neighborhood {
        Neighborhood(vec![Near::Beside { ranks: usize::MAX, side: self.side() }])
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }

    fn not_proposed(&self) -> Option<Told> {
        let Window { radius, max_tokens, .. } = self.settings;
        let because = format!("in no window of {} chunks on either side and {max_tokens} tokens", self.in_words());
        let raised = [("window.radius", *radius), ("window.max_tokens", *max_tokens)];
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

pub(super) fn window(candidates: &[&Candidate], pool: &[Scored], lines: &Lines, asked: &Windows<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut n_narrower = 0;
    for scored in found(candidates, pool) {
        let mut windows = windows(candidates, lines, scored.candidate, asked).into_iter();
        let block = Block::new(windows.next().unwrap_or_default(), scored.score);
        plan.blocks.push(Block { narrower: windows.collect(), ..block });
        plan.boundaries.extend(boundary_stop(candidates[scored.candidate], asked));
        let radius = asked.radius(candidates[scored.candidate]);
        let widest = around(candidates, lines, scored.candidate, radius, asked.settings.boundary);
        n_narrower += usize::from(tokens(candidates, lines, widest) > asked.settings.max_tokens);
    }
    if n_narrower > 0 {
        let (radius, max_tokens) = (asked.in_words(), asked.settings.max_tokens);
        let of = found(candidates, pool).count();
        plan.warnings.push(format!(
            "{n_narrower} of {of} windows are narrower than `window.radius`, {radius}: more than \
             `window.max_tokens`, {max_tokens}, would be in them"
        ));
    }
    plan
}

/// Windows around a chunk from the widest within the tokens to the chunk alone: neighbours only take what is left of a
/// budget.
pub(super) fn windows(
    candidates: &[&Candidate],
    lines: &Lines,
    candidate: usize,
    asked: &Windows<'_>,
) -> Vec<Vec<usize>> {
    let widest = window_around(candidates, lines, candidate, asked);
    let mut windows: Vec<Range<usize>> = (0..=asked.radius(candidates[candidate]))
        .rev()
        .map(|radius| around(candidates, lines, candidate, radius, asked.settings.boundary))
        .skip_while(|window| window.len() > widest.len())
        .collect();
    windows.dedup();
    windows.into_iter().map(|window| lines.candidates[window].to_vec()).collect()
}

pub(super) fn found<'p>(candidates: &'p [&Candidate], pool: &'p [Scored]) -> impl Iterator<Item = &'p Scored> {
    pool.iter().filter(|scored| !candidates[scored.candidate].is_neighbor)
}

/// The widest window within the tokens.
pub(super) fn window_around(
    candidates: &[&Candidate],
    lines: &Lines,
    candidate: usize,
    asked: &Windows<'_>,
) -> Range<usize> {
    let within = |radius: usize| around(candidates, lines, candidate, radius, asked.settings.boundary);
    let fits = |radius: &usize| tokens(candidates, lines, within(*radius)) <= asked.settings.max_tokens;
    within((0..=asked.radius(candidates[candidate])).rev().find(fits).unwrap_or(0))
}

/// The window of this radius, whatever its tokens.
fn around(
    candidates: &[&Candidate],
    lines: &Lines,
    candidate: usize,
    radius: usize,
    boundary: Boundary,
) -> Range<usize> {
    let (place, chunk) = (lines.place(candidate), candidates[candidate]);
    let (window, bounds) = (lines.around(place, radius), within(boundary, chunk));
    let before = (chunk.index - bounds.start) as usize;
    let behind = (bounds.end - chunk.index) as usize;
    window.start.max(place.saturating_sub(before))..window.end.min(place.saturating_add(behind))
}

/// The edge at which the window of a chunk stops, if it does and the policy wants to know.
pub(super) fn boundary_stop(chunk: &Candidate, asked: &Windows<'_>) -> Option<BoundaryStop> {
    let (settings, radius) = (asked.settings, asked.radius(chunk));
    let bounds = within(settings.boundary, chunk);
    let before = radius.saturating_sub((chunk.index - bounds.start) as usize);
    let after = radius.saturating_sub((bounds.end - 1 - chunk.index) as usize);
    let stops = settings.log_boundaries && before + after > 0;
    stops.then(|| BoundaryStop { chunk_id: chunk.id.clone(), boundary: settings.boundary, before, after })
}

fn tokens(candidates: &[&Candidate], lines: &Lines, places: Range<usize>) -> usize {
    lines.candidates[places].iter().map(|&at| candidates[at].n_tokens as usize).sum()
}

/// Numbers of the chunks that a window around `chunk` may have.
fn within(boundary: Boundary, chunk: &Candidate) -> Range<u32> {
    let section = chunk.parents.first().filter(|section| section.contains(&chunk.index));
    match (boundary, section) {
        (Boundary::Section, Some(section)) => section.clone(),
        (Boundary::Section, None) | (Boundary::Document, _) => 0..chunk.n_chunks.max(chunk.index.saturating_add(1)),
    }
}
