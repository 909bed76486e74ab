//! Selection: which candidates are delivered, and for every other one why not.
//!
//! A strategy walks the candidates best first and admits each that its gates and the budget let pass; one that is too long is
//! passed over, and shorter ones behind it are still tried. If the best candidate is longer than the whole budget, and nothing
//! near it in score fits, it is cut: a context is not filled with scraps because only scraps are short enough.

pub mod adaptive;
mod block;
mod bubble;
pub mod cento;
mod flat;
pub mod mmr;
pub mod rse;
pub mod small_to_big;

pub(crate) use bubble::section_limit;

use crate::budget::{Ledger, Quote};
use crate::coverage::Covered;
use crate::cut::{Reader, cut};
use crate::error::{Error, Result};
use crate::line::Lines;
use crate::pack::Excerpt;
use crate::policy::Policy;
use crate::prior::Scored;
use crate::redundancy::Similarity;
use crate::trace::{BoundaryStop, Certificate, Reallocated, Reason, Stage, StepDetails};
use block::Plan;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// A chosen chunk stands near a candidate that is too long if its score before the length penalty is at least this share of
/// the candidate's.
const NEAR: f64 = 0.9;

/// How candidates are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The segments that hold most relevant text within the budget, proven or with a bound.
    #[default]
    Cento,
    /// By descending relevance, gated by the budget alone.
    Flat,
    /// Maximal marginal relevance.
    Mmr,
    /// As many as stand before the largest gap of the scores.
    Adaptive,
    /// The context bubble: scored, then gated by budget, section and redundancy.
    Bubble,
    /// Relevant segments, chosen greedily as dsRAG does.
    Rse,
    /// One segment a document, by the capped running sum of the tutorial.
    RseKadane,
    /// The best set of segments by dsRAG's values.
    RseExact,
    /// The chunks around each chunk found.
    Window,
    /// The section of each chunk found.
    Parent,
    /// Sections of which enough is found, else chunks.
    Automerge,
    /// What a repair of fixed size keeps, see [`crate::seal`].
    Seal,
}

/// Names of the strategies, for messages and help.
const NAMES: &str = "cento, flat, mmr, adaptive, bubble, rse, rse-kadane, rse-exact, window, parent, automerge or seal";

impl Strategy {
    /// Every strategy: the default, then from the simplest.
    pub const ALL: [Self; 12] = [
        Self::Cento,
        Self::Flat,
        Self::Mmr,
        Self::Adaptive,
        Self::Bubble,
        Self::Rse,
        Self::RseKadane,
        Self::RseExact,
        Self::Window,
        Self::Parent,
        Self::Automerge,
        Self::Seal,
    ];

    /// The name, as commands and traces write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cento => "cento",
            Self::Flat => "flat",
            Self::Mmr => "mmr",
            Self::Adaptive => "adaptive",
            Self::Bubble => "bubble",
            Self::Rse => "rse",
            Self::RseKadane => "rse-kadane",
            Self::RseExact => "rse-exact",
            Self::Window => "window",
            Self::Parent => "parent",
            Self::Automerge => "automerge",
            Self::Seal => "seal",
        }
    }
}

impl FromStr for Strategy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let named = Self::ALL.into_iter().find(|strategy| strategy.name() == name);
        named.ok_or_else(|| Error::Name { what: "strategy", name: name.into(), expected: NAMES })
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was decided about the candidates of the pool; what was admitted is in the ledger.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// In the order of the pool.
    pub(crate) verdicts: Vec<Verdict>,
    /// Tokens left after the first pass, where a section's share kept something out.
    pub(crate) slack_tokens: usize,
    pub(crate) reallocated: Vec<Reallocated>,
    pub(crate) warnings: Vec<String>,
    /// Windows that end at an edge, of chunks that may have been admitted.
    pub(crate) boundaries: Vec<BoundaryStop>,
    /// How near the choice is to the best, where that is known.
    pub(crate) certificate: Option<Certificate>,
    /// What meeting each need of the question is worth, where the strategy looks at needs.
    pub(crate) needs: Vec<f64>,
}

/// The decision about one candidate.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) stage: Stage,
    /// Of the first walk.
    pub(crate) first: Reason,
    /// In the end.
    pub(crate) last: Reason,
    pub(crate) details: StepDetails,
}

impl Verdict {
    pub(crate) fn new(stage: Stage, reason: Reason, details: StepDetails) -> Self {
        Self { stage, first: reason, last: reason, details }
    }

    fn over_budget(stage: Stage, ledger: &Ledger<'_>, quote: Quote) -> Self {
        Self::new(stage, Reason::BudgetExceeded, quoted(ledger, quote))
    }

    pub(crate) fn is_selected(&self) -> bool {
        matches!(self.last, Reason::PassedAllGates | Reason::CutToFit | Reason::Included)
    }
}

/// What a choice is made from.
pub(crate) struct Choice<'a> {
    pub(crate) pool: &'a [Scored],
    pub(crate) lines: &'a Lines,
    pub(crate) strategy: Strategy,
    pub(crate) kept: &'a [&'a str],
    /// Candidates that are delivered whatever the strategy makes of them.
    pub(crate) include: &'a [usize],
    pub(crate) policy: &'a Policy,
    pub(crate) similarity: &'a Similarity<'a>,
    /// What the question needs, of strategies that look at it.
    pub(crate) needs: &'a [Covered],
}

impl Choice<'_> {
    /// What the strategy wants together, where it says so before anything is counted.
    fn plan(&self, ledger: &mut Ledger<'_>) -> Result<Option<Plan>> {
        let Self { pool, lines, policy, .. } = *self;
        let candidates = ledger.candidates();
        Ok(Some(match self.strategy {
            Strategy::Cento | Strategy::Bubble | Strategy::Flat => return Ok(None),
            Strategy::Mmr => mmr::plan(candidates, pool, &policy.mmr, self.similarity)?,
            Strategy::Adaptive => adaptive::plan(candidates, pool, &policy.adaptive),
            Strategy::Rse => rse::plan_greedy(candidates, pool, lines, &policy.rse)?,
            Strategy::RseKadane => rse::plan_kadane(candidates, pool, lines, &policy.kadane)?,
            Strategy::RseExact => rse::plan_exact(ledger, pool, lines, &policy.rse)?,
            Strategy::Window => small_to_big::window(candidates, pool, lines, &policy.window),
            Strategy::Parent => small_to_big::parent(candidates, pool, lines, &policy.parent, &policy.window),
            Strategy::Seal => block::given(candidates, self.kept),
            Strategy::Automerge => small_to_big::automerge(candidates, pool, lines, &policy.automerge),
        }))
    }
}

/// What is admitted before the walk.
#[derive(Debug, Clone)]
pub(crate) struct First {
    pub(crate) excerpt: Excerpt,
    /// By request; otherwise it is the best candidate, which is cut or goes before what scores higher.
    pub(crate) included: bool,
}

/// Chooses from the pool, best first, into the empty ledger.
///
/// # Errors
/// `BudgetTooSmall` if something is relevant and not even one letter of it fits.
pub(crate) fn select(choice: &Choice<'_>, ledger: &mut Ledger<'_>, reader: &Reader<'_>) -> Result<Selection> {
    let &Choice { pool, strategy, policy, .. } = choice;
    let plan = choice.plan(ledger)?;
    let included: Vec<First> = choice
        .include
        .iter()
        .map(|&candidate| First { excerpt: Excerpt { candidate, part: None }, included: true })
        .collect();
    let walk = |ledger: &mut Ledger<'_>, first: Option<Excerpt>| {
        let best = first.map(|excerpt| First { excerpt, included: false });
        let firsts: Vec<First> = included.iter().cloned().chain(best).collect();
        let mut selection = match (strategy, &plan) {
            (_, Some(plan)) => block::walk(pool, ledger, plan, &firsts),
            (Strategy::Bubble, _) => bubble::walk(pool, ledger, policy, &firsts),
            (Strategy::Flat, _) => flat::walk(pool, ledger, &firsts),
            _ => cento::walk(choice, ledger, &firsts),
        };
        repair(pool, ledger, &mut selection);
        selection
    };
    let selection = walk(ledger, None);
    if !included.is_empty() {
        return Ok(selection); // what was asked for is there, so the rest need not be
    }
    let Some(best) = unrivalled(pool, &selection.verdicts) else { return Ok(selection) };
    let text_max = match strategy {
        Strategy::Bubble | Strategy::Cento => bubble::text_max(ledger, policy, best),
        _ => None,
    };
    let (whole, nothing) = (Excerpt { candidate: best, part: None }, ledger.admitted().is_empty());
    if ledger.whole_tokens(std::slice::from_ref(&whole)) <= ledger.budget() as i64 {
        // It fits but for what scores higher; or its parts alone seemed not to fit.
        let share_fits = text_max.is_none_or(|max| ledger.text_tokens(&whole) <= max);
        return Ok(if nothing && share_fits { walk(ledger, Some(whole)) } else { selection });
    }
    ledger.clear();
    match cut(ledger, best, reader, text_max) {
        Ok(excerpt) => Ok(walk(ledger, Some(excerpt))),
        Err(needed) if nothing && needed > ledger.budget() as i64 => {
            Err(Error::BudgetTooSmall { budget: ledger.budget(), needed: needed as usize })
        }
        Err(_) => Ok(walk(ledger, None)), // something shorter is there, or the share of its section is too small for it
    }
}

/// The best candidate that only the budget kept out, if nothing near it was admitted. Both leave the length penalty aside,
/// which would lift a scrap over what the query asks for.
fn unrivalled(pool: &[Scored], verdicts: &[Verdict]) -> Option<usize> {
    let kept_out = |verdict: &Verdict| matches!(verdict.last, Reason::BudgetExceeded | Reason::DroppedInRepair);
    let kept_out = pool.iter().zip(verdicts).filter(|(_, verdict)| kept_out(verdict)).map(|(scored, _)| scored);
    let best = kept_out.rev().max_by(|a, b| a.raw.total_cmp(&b.raw))?; // of equal ones the first in the walk
    let near = if best.raw > 0.0 { best.raw * NEAR } else { f64::NEG_INFINITY };
    let rivalled = pool.iter().zip(verdicts).any(|(scored, verdict)| verdict.is_selected() && scored.raw >= near);
    (!rivalled).then_some(best.candidate)
}

/// Drops what the count of the whole context has no room for.
fn repair(pool: &[Scored], ledger: &mut Ledger<'_>, selection: &mut Selection) {
    for (candidate, whole) in ledger.repair() {
        let at = pool.iter().position(|scored| scored.candidate == candidate).expect("what is admitted is in the pool");
        let budget = ledger.budget();
        let verdict = &mut selection.verdicts[at];
        (verdict.stage, verdict.last) = (Stage::Repair, Reason::DroppedInRepair);
        verdict.details = StepDetails {
            tokens_used: Some(whole as usize),
            tokens_left: Some(0),
            tokens_needed: Some(whole as usize - budget),
            ..StepDetails::default()
        };
        let id = &ledger.candidates()[candidate].id;
        selection.reallocated.retain(|chunk| chunk.chunk_id != *id);
    }
}

/// Admits what goes before the walk, by candidate.
fn admit_firsts(ledger: &mut Ledger<'_>, firsts: &[First]) -> HashMap<usize, Verdict> {
    firsts.iter().map(|first| (first.excerpt.candidate, admit_first(ledger, first))).collect()
}

/// Admits a candidate that goes before the walk, whole or cut to fit.
fn admit_first(ledger: &mut Ledger<'_>, First { excerpt, included }: &First) -> Verdict {
    let start = ledger.candidates()[excerpt.candidate].span.start;
    let kept = excerpt.part.as_ref().map(|part| start + part.start as u64..start + part.end as u64);
    match ledger.admit(excerpt) {
        Ok(quote) if *included => Verdict::new(Stage::Pool, Reason::Included, quoted(ledger, quote)),
        Ok(quote) if kept.is_none() => Verdict::new(Stage::Walk, Reason::PassedAllGates, quoted(ledger, quote)),
        Ok(quote) => {
            let details = StepDetails { kept, ..quoted(ledger, quote) };
            Verdict { stage: Stage::Cut, first: Reason::BudgetExceeded, last: Reason::CutToFit, details }
        }
        Err(quote) => Verdict::over_budget(Stage::Cut, ledger, quote),
    }
}

/// The numbers of a quote. A correction may put what is used outside the budget; the total they add up to is the true one.
fn quoted(ledger: &Ledger<'_>, quote: Quote) -> StepDetails {
    let (budget, total) = (ledger.budget() as i64, quote.used + quote.needed);
    let used = quote.used.clamp(0, budget);
    let details = StepDetails::budget(used as usize, (budget - used) as usize, (total - used).max(0) as usize);
    StepDetails { estimated: quote.estimated, ..details }
}
