//! The whole way from candidates to a context: check, score, select, pack, count, and say what was done.

mod request;
mod prepare;
mod records;
pub mod curve;

pub use request::{Further, Request};

use crate::budget::Ledger;
use crate::cite::Citation;
use crate::error::{Error, Result};
use crate::pack::{self, Excerpt, Format};
use crate::record::trace::{Manifest, Support, Trace};
use crate::select::chooser::{Selection, Verdict};
use crate::select::decision::{Reason, Stage, StepDetails};
use crate::select::select;
use crate::stop::check;
use crate::value::prior::Scored;
use prepare::Prepared;
use records::{manifest, needs, trace};
use schemars::JsonSchema;
use serde::Serialize;

/// An assembled context: what to deliver, what it cites, and why it is so.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Context {
    /// Exactly what is delivered; in the JSON format an object whose field `context` is what the budget counts.
    pub text: String,
    /// Tokens of what the budget counts, at most `budget_tokens`.
    pub n_tokens: usize,
    /// The budget.
    pub budget_tokens: usize,
    /// Name of the tokenizer that counted.
    pub tokenizer: String,
    /// One for each piece, in order.
    pub citations: Vec<Citation>,
    /// The decisions about every candidate.
    pub trace: Trace,
    /// The text that the budget counts, where it is not `text`.
    #[serde(skip)]
    counted: Option<String>,
}

impl Context {
    /// The text that the budget counts: `text`, but in the JSON format the value of its field `context`.
    pub fn counted(&self) -> &str {
        self.counted.as_deref().unwrap_or(&self.text)
    }
}

/// Assembles a context within the budget. The same request gives the same bytes, whatever the order of its candidates.
///
/// # Errors
/// [`Error::BudgetTooSmall`] if the budget cannot hold the line "nothing relevant", or something is relevant and it can
/// hold neither a part of it that is of use nor the line that says from which budget on it can; [`Error::Candidate`]
/// for candidates that contradict each other; [`Error::Include`] and [`Error::IncludeTooLong`] for what cannot be
/// included; a policy out of its ranges; [`Error::Cancelled`].
///
/// ```
/// use cento_assembly::{Anchor, Candidate, Format, Marks, NEVER, Order, Policy, Reading, Request, Strategy, assemble};
/// let text = "Parents may take twelve months of leave.\n";
/// let candidate = Candidate {
///     id: "handbook/leave.md#0".into(),
///     document: "handbook/leave.md".into(),
///     types: vec!["md".into()],
///     title: "Leave".into(),
///     index: 0,
///     n_chunks: 1,
///     section: "handbook/leave.md > Parents".into(),
///     label: "parents".into(),
///     path: vec!["Leave".into(), "Parents".into()],
///     span: 120..120 + text.len() as u64,
///     source: "source",
///     anchor: Anchor::default(),
///     text: text.into(),
///     n_tokens: 9,
///     relevance: 0.8,
///     arms: Vec::new(),
///     is_neighbor: false,
///     parents: Vec::new(),
/// };
/// let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
/// let context = assemble(&Request {
///     query: "how long is parental leave?",
///     further: &[],
///     candidates: &[candidate],
///     kept: &[],
///     include: &[],
///     exclude: &[],
///     evidence: None,
///     budget_tokens: 200,
///     policy: &Policy::default(),
///     strategy: Strategy::Cento,
///     format: Format::Markdown,
///     order: Order::Document,
///     marks: Marks::Lean,
///     count: &|text| text.split_whitespace().count(),
///     tokenizer: "words",
///     reading: Reading { terms: &words, idf: &|_| 1.0, sentences: &|text| vec![0..text.len()] },
///     cosine: None,
///     stop: NEVER,
/// })?;
/// assert_eq!(context.text, format!("[1] Leave > Parents\n{text}"));
/// assert_eq!((context.citations[0].n, context.citations[0].span.clone()), (1, 120..161));
/// assert!(context.n_tokens <= 200);
/// # Ok::<(), cento_assembly::Error>(())
/// ```
pub fn assemble(request: &Request<'_>) -> Result<Context> {
    let policy = request.policy.checked()?;
    let chooser = policy.chooser(request.strategy, request.query);
    let prepared = Prepared::new(request, chooser.as_ref())?;
    let Prepared { candidates, include, .. } = &prepared;
    let mut ledger = prepared.ledger(request);
    let similarity = prepared.similarity(request);
    let choice = prepared.choice(request, &similarity);
    let support = request.evidence.map(|evidence| Support { evidence, support: evidence.support() });
    let unsupported = support.as_ref().zip(chooser.min_support()).filter(|(support, least)| support.support < *least);
    let mut selection = match unsupported.filter(|_| include.is_empty()) {
        Some((support, least)) => not_supported(&prepared.valued.scores.pool, support.support, least),
        None => {
            check_fit(include, request, &mut ledger)?;
            select(chooser.as_ref(), &choice, &mut ledger)?
        }
    };
    selection.warnings.extend(chooser.sections().and_then(|sections| sections.warning()));
    check(request.stop)?;

    let admitted = ledger.admitted().to_vec();
    let pieces = ledger.pieces(&admitted);
    let counted = match selection.least_budget {
        _ if !pieces.is_empty() => pack::render(request.format, candidates, &pieces),
        Some(least) => pack::nothing_fits(request.layout(), least),
        None => pack::nothing_relevant(request.layout()).to_owned(),
    };
    let n_tokens = (request.count)(&counted);
    if let Some(needed) = selection.least_budget.filter(|_| n_tokens > request.budget_tokens) {
        return Err(Error::BudgetTooSmall { budget: request.budget_tokens, needed });
    }
    assert!(
        n_tokens <= request.budget_tokens,
        "{n_tokens} tokens for a budget of {}: the tokenizer counts one text twice differently",
        request.budget_tokens
    );
    let citations = pack::citations(candidates, &pieces);
    let limits = chooser.sections();
    let manifest = manifest(&mut ledger, &policy, limits, &selection, &citations, n_tokens);
    let needs = needs(&prepared, &selection.needs, &manifest.selected);
    let manifest = Manifest { support, needs, windows: chooser.radii(candidates), ..manifest };
    let trace = trace(request, &prepared, &policy, selection, manifest);
    let (text, counted) = match request.format {
        Format::Json => (pack::json::object(&counted, &citations), Some(counted)),
        Format::Markdown | Format::Xml => (counted, None),
    };
    let tokenizer = request.tokenizer.to_owned();
    Ok(Context { text, n_tokens, budget_tokens: request.budget_tokens, tokenizer, citations, trace, counted })
}

/// Checks that the included chunks fit the budget by themselves. If not, the budget named is one whose headers are all
/// full.
fn check_fit(include: &[usize], request: &Request<'_>, ledger: &mut Ledger<'_>) -> Result<()> {
    let whole: Vec<Excerpt> = include.iter().map(|&candidate| Excerpt { candidate, part: None }).collect();
    if whole.is_empty() || ledger.whole_tokens(&whole) <= ledger.budget() as i64 {
        return Ok(());
    }
    let candidates = ledger.candidates();
    let mut roomy = Ledger::new(candidates, vec![0.0; candidates.len()], request.layout(), usize::MAX, request.count);
    let needed = roomy.whole_tokens(&whole) as usize;
    Err(Error::IncludeTooLong { ids: request.include.join(", "), needed, budget: request.budget_tokens })
}

/// Nothing is delivered, as the collection has nothing to say to the question.
fn not_supported(pool: &[Scored], support: f64, least: f64) -> Selection {
    let details = StepDetails { support: Some(support), min_support: Some(least), ..StepDetails::default() };
    let verdict = Verdict::new(Stage::Pool, Reason::NotSupported, details);
    Selection { verdicts: vec![verdict; pool.len()], ..Selection::default() }
}
