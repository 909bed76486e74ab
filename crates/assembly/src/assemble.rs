//! The whole way from candidates to a context: check, score, select, pack, count, and say what was done.

use crate::bridge::Bridge;
use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::cite::Citation;
use crate::coverage::Covered;
use crate::cut::Reader;
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::pack::{self, Excerpt, Format, Order};
use crate::policy::Policy;
use crate::prepare::Prepared;
use crate::prior::Scored;
use crate::reading::Reading;
use crate::select::small_to_big::Boundary;
use crate::select::{Selection, Strategy, Verdict, section_limit, select};
use crate::trace::{
    BoundaryStop, BridgeRecord, Config, Decision, Manifest, NeedRecord, Outcome, Reason, Record, SectionTokens,
    SlackRecord, Stage, StepDetails, Support, TRACE_VERSION, Trace,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What to assemble.
#[derive(Clone)]
pub struct Request<'a> {
    /// The question.
    pub query: &'a str,
    /// What retrieval found, in any order: the result does not depend on it.
    pub candidates: &'a [Candidate],
    /// Ids of what a repair kept, in its order; the strategy `seal` delivers these, no other looks at them.
    pub kept: &'a [&'a str],
    /// Ids of candidates that are delivered whatever the strategy makes of them.
    pub include: &'a [&'a str],
    /// Ids of candidates, or of documents, that are not delivered; one that is no candidate is none to leave out.
    pub exclude: &'a [&'a str],
    /// What the collection has for the question as a whole, where that is known; `cento` looks at it.
    pub evidence: Option<Evidence>,
    /// Most tokens of the context, headers and marks included.
    pub budget_tokens: usize,
    /// What the bubble looks at.
    pub policy: &'a Policy,
    /// How chunks are chosen.
    pub strategy: Strategy,
    /// How they are written.
    pub format: Format,
    /// In which order.
    pub order: Order,
    /// Tokens of a text. Must give the same number for the same text; need not be additive.
    pub count: &'a dyn Fn(&str) -> usize,
    /// Name of the tokenizer that counts.
    pub tokenizer: &'a str,
    /// How texts are read: for what the query needs, for `relevance = "tf"`, and to find the part of a chunk to keep.
    pub reading: Reading<'a>,
    /// The cosine of two candidates' vectors by their ids, where there are vectors: what says the same in other words.
    pub cosine: Option<&'a dyn Fn(&str, &str) -> f64>,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("query", &self.query)
            .field("candidates", &self.candidates.len())
            .field("budget_tokens", &self.budget_tokens)
            .field("tokenizer", &self.tokenizer)
            .field("strategy", &self.strategy)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// An assembled context: what to deliver, what it cites, and why it is so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Context {
    /// Exactly what is delivered; in the JSON format an object whose field `context` is what the budget counts.
    pub text: String,
    /// Tokens of what the budget counts, at most `budget_tokens`.
    pub n_tokens: usize,
    /// The budget.
    pub budget_tokens: usize,
    /// Name of the tokenizer that counted.
    pub tokenizer: String,
    /// One for each mark `[n]`, in order.
    pub citations: Vec<Citation>,
    /// What was decided about every candidate.
    pub trace: Trace,
    /// What the budget counts, where it is not `text`.
    #[serde(skip)]
    counted: Option<String>,
}

impl Context {
    /// What the budget counts: `text`, but in the JSON format the value of its field `context`.
    pub fn counted(&self) -> &str {
        self.counted.as_deref().unwrap_or(&self.text)
    }
}

/// Assembles a context within the budget. The same request gives the same bytes, whatever the order of its candidates.
///
/// # Errors
/// [`Error::BudgetTooSmall`] if the budget cannot hold the line "nothing relevant", or something is relevant and not even the
/// shortest cut of it fits; [`Error::Candidate`] for candidates that contradict each other; [`Error::Include`] and
/// [`Error::IncludeTooLong`] for what cannot be included; a policy out of its ranges.
///
/// ```
/// use cento_assembly::{Anchor, Candidate, Format, Order, Policy, Reading, Request, Strategy, assemble};
/// let text = "Parents may take twelve months of leave.\n";
/// let candidate = Candidate {
///     id: "handbook/leave.md#0".into(), document: "handbook/leave.md".into(), title: "Leave".into(), index: 0, n_chunks: 1,
///     section: "handbook/leave.md > Parents".into(), label: "parents".into(), path: vec!["Leave".into(), "Parents".into()],
///     span: 120..120 + text.len() as u64, source: "source", anchor: Anchor::default(), text: text.into(), n_tokens: 9, relevance: 0.8,
///     arms: Vec::new(), is_neighbor: false, parents: Vec::new(),
/// };
/// let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
/// let context = assemble(&Request {
///     query: "how long is parental leave?", candidates: &[candidate], kept: &[], include: &[], exclude: &[], evidence: None, budget_tokens: 200, policy: &Policy::default(),
///     strategy: Strategy::Cento, format: Format::Markdown, order: Order::Document,
///     count: &|text| text.split_whitespace().count(), tokenizer: "words",
///     reading: Reading { terms: &words, idf: &|_| 1.0, sentences: &|text| vec![0..text.len()] }, cosine: None,
/// })?;
/// assert_eq!(context.text, "=== [1] handbook/leave.md > Leave > Parents (bytes 120-161)\nParents may take twelve months of leave.\n");
/// assert!(context.n_tokens <= 200);
/// # Ok::<(), cento_assembly::Error>(())
/// ```
pub fn assemble(request: &Request<'_>) -> Result<Context> {
    let prepared = Prepared::new(request)?;
    let Prepared { candidates, include, scores, bridges, policy, .. } = &prepared;
    let mut ledger = prepared.ledger(request);
    let reader = Reader { query: request.query, reading: request.reading };
    let similarity = prepared.similarity(request);
    let choice = prepared.choice(request, &similarity);
    let support = request.evidence.map(|evidence| Support { evidence, support: evidence.support() });
    let unsupported = support.as_ref().filter(|support| {
        request.strategy == Strategy::Cento && include.is_empty() && support.support < policy.cento.min_support
    });
    let selection = match unsupported {
        Some(support) => not_supported(&scores.pool, support, policy),
        None => {
            check_fit(include, request, &mut ledger)?;
            select(&choice, &mut ledger, &reader)?
        }
    };

    let admitted = ledger.admitted().to_vec();
    let pieces = ledger.pieces(&admitted);
    let counted = match pieces.is_empty() {
        true => pack::nothing_relevant(request.format).to_owned(),
        false => pack::render(request.format, candidates, &pieces),
    };
    let n_tokens = (request.count)(&counted);
    assert!(
        n_tokens <= request.budget_tokens,
        "{n_tokens} tokens for a budget of {}: the tokenizer counts one text twice differently",
        request.budget_tokens
    );
    let citations = pack::citations(candidates, &pieces);
    let manifest =
        Manifest { support, ..manifest(&mut ledger, policy, request.strategy, &selection, &citations, n_tokens) };
    let manifest = Manifest { needs: needs(&prepared, &selection.needs, &manifest.selected), ..manifest };
    let mut trace = trace(request, &prepared, selection, manifest);
    for (record, scored) in trace.records.iter_mut().zip(&scores.pool) {
        record.bridge = bridges.get(scored.candidate).copied().flatten().map(|bridge: Bridge| BridgeRecord {
            from: bridge.from.map(|from| candidates[from].id.clone()),
            before: bridge.before,
        });
        let met = prepared.needs.iter().filter(|covered| covered.by.contains(&scored.candidate));
        record.meets = met.map(|covered| covered.need.text.clone()).collect();
    }
    let (text, counted) = match request.format {
        Format::Json => (pack::json::object(&counted, &citations), Some(counted)),
        Format::Markdown | Format::Xml => (counted, None),
    };
    let tokenizer = request.tokenizer.to_owned();
    Ok(Context { text, n_tokens, budget_tokens: request.budget_tokens, tokenizer, citations, trace, counted })
}

/// Whether what must be delivered fits the budget by itself. If not, the budget named is one whose headers are all full.
fn check_fit(include: &[usize], request: &Request<'_>, ledger: &mut Ledger<'_>) -> Result<()> {
    let whole: Vec<Excerpt> = include.iter().map(|&candidate| Excerpt { candidate, part: None }).collect();
    if whole.is_empty() || ledger.whole_tokens(&whole) <= ledger.budget() as i64 {
        return Ok(());
    }
    let (candidates, form) = (ledger.candidates(), (request.format, request.order));
    let mut roomy = Ledger::new(candidates, vec![0.0; candidates.len()], form, usize::MAX, request.count);
    let needed = roomy.whole_tokens(&whole) as usize;
    Err(Error::IncludeTooLong { ids: request.include.join(", "), needed, budget: request.budget_tokens })
}

/// Nothing is delivered, as the collection has nothing to say to the question.
fn not_supported(pool: &[Scored], support: &Support, policy: &Policy) -> Selection {
    let details = StepDetails {
        support: Some(support.support),
        min_support: Some(policy.cento.min_support),
        ..StepDetails::default()
    };
    let verdict = Verdict::new(Stage::Pool, Reason::NotSupported, details);
    Selection { verdicts: vec![verdict; pool.len()], ..Selection::default() }
}

/// What the question needs, what that is worth, and which of the delivered chunks meet it.
fn needs(prepared: &Prepared<'_>, weights: &[f64], delivered: &[String]) -> Vec<NeedRecord> {
    let record = |(number, covered): (usize, &Covered)| {
        let by = covered.by.iter().map(|&candidate| &prepared.candidates[candidate].id);
        NeedRecord {
            text: covered.need.text.clone(),
            kind: covered.need.kind,
            clause: covered.need.clause,
            share: covered.share,
            weight: weights.get(number).copied().unwrap_or(0.0), // none where nothing was weighed
            met_by: by.filter(|id| delivered.contains(id)).cloned().collect(),
        }
    };
    prepared.needs.iter().enumerate().map(record).collect()
}

fn manifest(
    ledger: &mut Ledger<'_>,
    policy: &Policy,
    strategy: Strategy,
    selection: &Selection,
    citations: &[Citation],
    tokens: usize,
) -> Manifest {
    let candidates = ledger.candidates();
    let mut sections: BTreeMap<&str, SectionTokens> = BTreeMap::new();
    let mut text_tokens = 0;
    let limit = |ledger: &Ledger<'_>, candidate| {
        if matches!(strategy, Strategy::Bubble | Strategy::Cento) {
            section_limit(ledger, policy, candidate)
        } else {
            None
        }
    };
    for (candidate, chunk) in candidates.iter().enumerate() {
        let excerpt = ledger.admitted().iter().find(|excerpt| excerpt.candidate == candidate).cloned();
        let limit = limit(ledger, candidate);
        if excerpt.is_none() && limit.is_none() {
            continue;
        }
        let section = sections.entry(&chunk.section).or_insert_with(|| SectionTokens {
            section: chunk.section.clone(),
            label: chunk.label.clone(),
            chunks: 0,
            tokens: 0,
            limit,
        });
        if let Some(excerpt) = excerpt {
            let n = ledger.text_tokens(&excerpt) as usize;
            (section.chunks, section.tokens, text_tokens) = (section.chunks + 1, section.tokens + n, text_tokens + n);
        }
    }
    let outcome = match selection.verdicts.iter().find(|verdict| verdict.is_selected()) {
        None => Outcome::NothingRelevant,
        Some(_) if citations.iter().any(|citation| citation.cut) => Outcome::Cut,
        Some(_) => Outcome::Whole,
    };
    Manifest {
        selected: citations.iter().flat_map(|citation| citation.chunks.clone()).collect(),
        outcome,
        tokens,
        text_tokens,
        sections: sections.into_values().collect(),
        slack: SlackRecord {
            policy: policy.slack,
            pool_tokens: selection.slack_tokens,
            reallocated: selection.reallocated.clone(),
        },
        certificate: selection.certificate.clone(),
        needs: Vec::new(),
        searched_for: Vec::new(),
        support: None,
        endpoint: None,
    }
}

fn trace(request: &Request<'_>, prepared: &Prepared<'_>, selection: Selection, manifest: Manifest) -> Trace {
    let Prepared { candidates, excluded, scores, policy, .. } = prepared;
    let walked = scores.pool.iter().zip(selection.verdicts).enumerate().map(|(at, (scored, verdict))| {
        let decision = if verdict.is_selected() { Decision::Selected } else { Decision::Rejected };
        let record = record(at + 1, candidates[scored.candidate], scored);
        Record {
            stage: verdict.stage,
            step_decision: verdict.first,
            final_decision: decision,
            final_reason: verdict.last,
            step_details: verdict.details,
            ..record
        }
    });
    let beyond = scores.beyond.iter().enumerate().map(|(at, &candidate)| {
        record(scores.pool.len() + at + 1, candidates[candidate], &Scored::unscored(candidate))
    });
    let mut records: Vec<Record> = walked.chain(beyond).collect();
    for (record, &candidate) in records[scores.pool.len()..].iter_mut().zip(&scores.beyond) {
        if candidates[candidate].is_neighbor {
            (record.step_decision, record.final_reason) = (Reason::NotFound, Reason::NotFound);
        } else {
            record.step_details = StepDetails { chunks_limit: policy.candidates, ..StepDetails::default() };
        }
    }
    for chunk in excluded {
        let rank = records.len() + 1;
        let reason = Reason::Excluded;
        records.push(Record {
            step_decision: reason,
            final_reason: reason,
            ..record(rank, chunk, &Scored::unscored(rank))
        });
    }
    let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
    let is_delivered = |stop: &BoundaryStop| manifest.selected.contains(&stop.chunk_id);
    let boundaries: Vec<BoundaryStop> = selection.boundaries.into_iter().filter(is_delivered).collect();
    let warnings = selection.warnings.into_iter().chain(told(&boundaries)).collect();
    let config = Config {
        strategy: request.strategy,
        format: request.format,
        order: request.order,
        include: owned(request.include),
        exclude: owned(request.exclude),
        budget_tokens: request.budget_tokens,
        tokenizer: request.tokenizer.to_owned(),
        policy: policy.clone(),
        theta: scores.theta,
        n_candidates: candidates.len() + excluded.len(),
        n_pool: scores.pool.len(),
    };
    Trace { version: TRACE_VERSION, query: request.query.to_owned(), config, warnings, boundaries, manifest, records }
}

/// Which windows end at an edge, in a line.
fn told(boundaries: &[BoundaryStop]) -> Option<String> {
    const NAMED: usize = 3;
    let edge = if boundaries.first()?.boundary == Boundary::Section { "section" } else { "document" };
    let named: Vec<&str> = boundaries.iter().take(NAMED).map(|stop| stop.chunk_id.as_str()).collect();
    let more = if boundaries.len() > NAMED { ", …" } else { "" };
    let (n, named) = (boundaries.len(), named.join(", "));
    Some(match n {
        1 => format!("a window ends at the edge of its {edge}: {named}"),
        _ => format!("{n} windows end at the edge of their {edge}: {named}{more}"),
    })
}

/// The record of a candidate as it stands before the walk: beyond the pool.
fn record(rank: usize, chunk: &Candidate, scored: &Scored) -> Record {
    Record {
        rank,
        chunk_id: chunk.id.clone(),
        document: chunk.document.clone(),
        section: chunk.section.clone(),
        bucket: chunk.label.clone(),
        row_number: chunk.index,
        span: Some(chunk.span.clone()),
        token_count: chunk.n_tokens,
        retrieval_score: chunk.relevance,
        arms: chunk.arms.clone(),
        is_neighbor: chunk.is_neighbor,
        bridge: None,
        meets: Vec::new(),
        tf: scored.tf,
        relevance: scored.relevance,
        boost: scored.boost,
        prior: scored.prior,
        len_penalty: scored.len_penalty,
        score_raw: scored.raw,
        score_final: scored.score,
        stage: Stage::Pool,
        step_decision: Reason::BeyondCandidates,
        final_decision: Decision::Rejected,
        final_reason: Reason::BeyondCandidates,
        step_details: StepDetails::default(),
    }
}
