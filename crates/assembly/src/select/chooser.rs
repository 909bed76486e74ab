//! What a strategy is: how it values candidates, how it chooses among them, and how it tells why one was left out.

use super::decision::{BoundaryStop, Certificate, Radii, Reallocated, Reason, Stage, StepDetails};
use super::gates::{Sameness, Told};
use super::sections::Sections;
use super::similarity::Similarity;
use crate::budget::cut::Reader;
use crate::budget::{Ledger, Quote};
use crate::candidate::Candidate;
use crate::error::Result;
use crate::lever::Lever;
use crate::line::Lines;
use crate::neighborhood::Neighborhood;
use crate::pack::Excerpt;
use crate::question::Reading;
use crate::stop::Stop;
use crate::value::bridge::Bridge;
use crate::value::coverage::Covered;
use crate::value::prior::{self, Scored, Scores};
use std::collections::HashMap;
use std::ops::Range;

/// A strategy with the settings that a policy gives it. Each has a file of its own in [`crate::strategies`].
pub(crate) trait Chooser {
    /// Scores the candidates; the pool is in the order in which they are looked at.
    fn value(&self, asked: &Asked<'_>) -> Result<Valued> {
        Ok(Valued::plain(prior::by_relevance(asked.candidates)))
    }

    /// Says once what is wanted. The walk that comes of it may be taken several times, each from an empty ledger.
    fn plan<'w>(&'w self, choice: &'w Choice<'w>, ledger: &mut Ledger<'_>) -> Result<Walk<'w>>;

    /// The chunks beside those found that it looks at, as its settings say.
    fn neighborhood(&self) -> Neighborhood;

    /// The shares of sections, where the strategy keeps to them.
    fn sections(&self) -> Option<Sections<'_>> {
        None
    }

    /// Support below which nothing is delivered, where the strategy looks at it.
    fn min_support(&self) -> Option<f64> {
        None
    }

    /// A nat of a learned prior in the units of the strategy's policies; none where it has no priors.
    fn nat(&self) -> Option<f64> {
        None
    }

    /// The radii of its windows among these chunks, where they go by the question or by documents.
    fn radii(&self, _candidates: &[&Candidate]) -> Option<Radii> {
        None
    }

    /// Names what has to fit the budget at once.
    fn it_needs(&self) -> &'static str;

    /// Tells of a candidate of the pool that lies beyond those that are weighed, where the strategy has a limit of its
    /// own.
    fn beyond(&self, _place: usize, _details: &StepDetails) -> Option<Told> {
        None
    }

    /// Tells of a chunk that the strategy did not want, where it can say why.
    fn not_proposed(&self) -> Option<Told> {
        None
    }

    /// The figures from which two chunks say the same, where the strategy compares chunks.
    fn sameness(&self) -> Option<Sameness> {
        None
    }

    /// A lever that lets in a chunk over its section's share, beside a larger share.
    fn beside_share(&self, _details: &StepDetails) -> Option<Lever> {
        None
    }
}

/// Names the unit that has to fit, of strategies that decide on one chunk after the other.
pub(crate) const ALONE: &str = "it needs";
/// The same, of strategies that want chunks together.
pub(crate) const TOGETHER: &str = "it needs, with the chunks it is to be delivered with,";

/// Admits into the ledger, after what goes first, what a plan wants, and decides about every candidate of the pool.
pub(crate) type Walk<'w> = Box<dyn Fn(&mut Ledger<'_>, &[First]) -> Result<Selection> + 'w>;

/// Candidates that a question found with their scores, best first.
pub(crate) type Ranking = Vec<(usize, f64)>;

/// A question and its candidates, before anything is valued.
pub(crate) struct Asked<'a> {
    pub(crate) query: &'a str,
    /// By id.
    pub(crate) candidates: &'a [&'a Candidate],
    pub(crate) lines: &'a Lines,
    pub(crate) reading: Reading<'a>,
    pub(crate) stop: Stop<'a>,
}

/// Candidates with their scores.
#[derive(Debug)]
pub(crate) struct Valued {
    pub(crate) scores: Scores,
    /// By candidate: what lifted it, where the strategy knows bridges.
    pub(crate) bridges: Vec<Option<Bridge>>,
    /// The needs of the question, where the strategy looks at them.
    pub(crate) needs: Vec<Covered>,
}

impl Valued {
    pub(crate) fn plain(scores: Scores) -> Self {
        Self { scores, bridges: Vec::new(), needs: Vec::new() }
    }
}

/// The pool and all that a choice looks at.
pub(crate) struct Choice<'a> {
    pub(crate) pool: &'a [Scored],
    /// The rankings of further questions, in their order.
    pub(crate) further: &'a [Ranking],
    pub(crate) lines: &'a Lines,
    /// Ids of what a repair kept.
    pub(crate) kept: &'a [&'a str],
    /// Candidates that are delivered whatever the strategy makes of them.
    pub(crate) include: &'a [usize],
    pub(crate) similarity: &'a Similarity<'a>,
    /// The needs of the question, of strategies that look at them.
    pub(crate) needs: &'a [Covered],
    pub(crate) reader: Reader<'a>,
    pub(crate) stop: Stop<'a>,
}

/// An excerpt that is admitted before the walk.
#[derive(Debug, Clone)]
pub(crate) struct First {
    pub(crate) excerpt: Excerpt,
    /// By request; otherwise it is the best candidate, which is cut or goes before what scores higher.
    pub(crate) included: bool,
}

/// The verdicts on the candidates of the pool; the admitted ones are in the ledger.
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
    /// The distance of the choice to the best, where that is known.
    pub(crate) certificate: Option<Certificate>,
    /// The worth of meeting each need of the question, where the strategy looks at needs.
    pub(crate) needs: Vec<f64>,
    /// The least budget that delivers something, where this one does not.
    pub(crate) least_budget: Option<usize>,
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

    pub(crate) fn over_budget(stage: Stage, ledger: &Ledger<'_>, quote: Quote) -> Self {
        Self::new(stage, Reason::BudgetExceeded, quoted(ledger, quote))
    }

    pub(crate) fn is_selected(&self) -> bool {
        matches!(self.last, Reason::PassedAllGates | Reason::CutToFit | Reason::Included)
    }

    /// A part of it fills what whole chunks left.
    pub(crate) fn fills(&self) -> bool {
        self.last == Reason::CutToFit && self.stage == Stage::Walk
    }
}

/// Admits what goes before the walk, by candidate.
pub(crate) fn admit_firsts(ledger: &mut Ledger<'_>, firsts: &[First]) -> HashMap<usize, Verdict> {
    firsts.iter().map(|first| (first.excerpt.candidate, admit_first(ledger, first))).collect()
}

/// Bytes of the document that a part of a chunk delivers.
pub(crate) fn kept(ledger: &Ledger<'_>, excerpt: &Excerpt) -> Option<Range<u64>> {
    let start = ledger.candidates()[excerpt.candidate].span.start;
    excerpt.part.as_ref().map(|part| start + part.start as u64..start + part.end as u64)
}

/// Admits a candidate that goes before the walk, whole or cut to fit.
pub(crate) fn admit_first(ledger: &mut Ledger<'_>, First { excerpt, included }: &First) -> Verdict {
    let kept = kept(ledger, excerpt);
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

/// The numbers of a quote. A correction may put what is used outside the budget; the total they add up to is the true
/// one.
pub(crate) fn quoted(ledger: &Ledger<'_>, quote: Quote) -> StepDetails {
    let (budget, total) = (ledger.budget() as i64, quote.used + quote.needed);
    let used = quote.used.clamp(0, budget);
    let details = StepDetails::budget(used as usize, (budget - used) as usize, (total - used).max(0) as usize);
    StepDetails { estimated: quote.estimated, ..details }
}
