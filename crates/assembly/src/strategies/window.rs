//! Windows: what is found is small and precise, what is delivered are the chunks on either side of it as well.
//!
//! Sources: "Small-to-Big RAG" (Codcompass); LlamaIndex's `SentenceWindow`. Windows never cross the edge of a document,
//! and are narrowed where the budget ends.
//! Differs from LlamaIndex: a window has `radius` chunks on both sides (its slice ends one early). Nothing is stored
//! twice, and the budget is in tokens delivered.
//! Cost: one step for each chunk delivered.

use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::line::Lines;
use crate::select::block::{Block, Plan};
use crate::select::chooser::{Choice, Chooser, TOGETHER, Walk};
use crate::select::decision::BoundaryStop;
use crate::select::gates::{RUN_MAX, Told};
use crate::value::prior::Scored;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub use crate::select::decision::Boundary;

/// Settings of [`Strategy::Window`](crate::Strategy::Window).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Window {
    /// Chunks on either side.
    pub radius: usize,
    /// Most encoder tokens of a window; it is narrowed from both sides, but never below the chunk found.
    pub max_tokens: usize,
    /// Where it stops.
    pub boundary: Boundary,
    /// Makes the trace name the windows that stop there.
    pub log_boundaries: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self { radius: 3, max_tokens: 1500, boundary: Boundary::default(), log_boundaries: false }
    }
}

impl Window {
    pub(crate) fn check(&self) -> Result<()> {
        Error::unless(self.max_tokens > 0, "window.max_tokens", "must be at least 1")?;
        Error::unless(self.radius <= RUN_MAX, "window.radius", "must be at most 100")
    }
}

impl Chooser for Window {
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>> {
        Ok(window(ledger.candidates(), choice.pool, choice.lines, self).offered(choice))
    }

    fn it_needs(&self) -> &'static str {
        TOGETHER
    }

    fn not_proposed(&self) -> Option<Told> {
        let Self { radius, max_tokens, .. } = self;
        let because = format!("in no window of {radius} chunks on either side and {max_tokens} tokens");
        let changes = [format!("a window.radius above {radius}"), format!("a window.max_tokens above {max_tokens}")];
        Some((because, changes.into()))
    }
}

pub(super) fn window(candidates: &[&Candidate], pool: &[Scored], lines: &Lines, settings: &Window) -> Plan {
    let mut plan = Plan::default();
    for scored in found(candidates, pool) {
        let mut windows = windows(candidates, lines, scored.candidate, settings).into_iter();
        let block =
            Block { candidates: windows.next().unwrap_or_default(), value: scored.score, narrower: windows.collect() };
        plan.blocks.push(block);
        plan.boundaries.extend(boundary_stop(candidates[scored.candidate], settings));
    }
    plan
}

/// Windows around a chunk from the widest within the tokens to the chunk alone: neighbours only take what is left of a
/// budget.
pub(super) fn windows(
    candidates: &[&Candidate],
    lines: &Lines,
    candidate: usize,
    settings: &Window,
) -> Vec<Vec<usize>> {
    let widest = window_around(candidates, lines, candidate, settings);
    let mut windows: Vec<Range<usize>> = (0..=settings.radius)
        .rev()
        .map(|radius| around(candidates, lines, candidate, &Window { radius, ..*settings }))
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
    settings: &Window,
) -> Range<usize> {
    let within = |radius: usize| around(candidates, lines, candidate, &Window { radius, ..*settings });
    let fits = |radius: &usize| tokens(candidates, lines, within(*radius)) <= settings.max_tokens;
    within((0..=settings.radius).rev().find(fits).unwrap_or(0))
}

/// The window of this radius, whatever its tokens.
fn around(candidates: &[&Candidate], lines: &Lines, candidate: usize, settings: &Window) -> Range<usize> {
    let (place, chunk) = (lines.place(candidate), candidates[candidate]);
    let (window, bounds) = (lines.around(place, settings.radius), within(settings.boundary, chunk));
    let before = (chunk.index - bounds.start) as usize;
    let behind = (bounds.end - chunk.index) as usize;
    window.start.max(place.saturating_sub(before))..window.end.min(place.saturating_add(behind))
}

/// The edge at which the window of a chunk stops, if it does and the policy wants to know.
pub(super) fn boundary_stop(chunk: &Candidate, settings: &Window) -> Option<BoundaryStop> {
    let bounds = within(settings.boundary, chunk);
    let before = settings.radius.saturating_sub((chunk.index - bounds.start) as usize);
    let after = settings.radius.saturating_sub((bounds.end - 1 - chunk.index) as usize);
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
