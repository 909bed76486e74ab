//! Records: what is said afterwards of every candidate, of every need, and of what was delivered.

use super::prepare::Prepared;
use super::request::Request;
use crate::budget::Ledger;
use crate::candidate::Candidate;
use crate::cite::Citation;
use crate::policy::Policy;
use crate::record::trace::{
    BridgeRecord, Config, Decision, Manifest, NeedRecord, Outcome, Record, SectionTokens, SlackRecord, TRACE_VERSION,
    Trace,
};
use crate::select::chooser::{Selection, Valued};
use crate::select::decision::{Boundary, BoundaryStop, Reason, Stage, StepDetails};
use crate::select::sections::Sections;
use crate::value::bridge::Bridge;
use crate::value::coverage::Covered;
use crate::value::prior::Scored;
use std::collections::BTreeMap;

/// The needs of the question, their worth, and the delivered chunks that meet them.
pub(super) fn needs(prepared: &Prepared<'_>, weights: &[f64], delivered: &[String]) -> Vec<NeedRecord> {
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
    prepared.valued.needs.iter().enumerate().map(record).collect()
}

/// The manifest of a delivery; `limits` are those of sections, where the strategy keeps to them.
pub(super) fn manifest(
    ledger: &mut Ledger<'_>,
    policy: &Policy,
    limits: Option<Sections<'_>>,
    selection: &Selection,
    citations: &[Citation],
    tokens: usize,
) -> Manifest {
    let candidates = ledger.candidates();
    let mut sections: BTreeMap<&str, SectionTokens> = BTreeMap::new();
    let mut text_tokens = 0;
    for (candidate, chunk) in candidates.iter().enumerate() {
        let excerpt = ledger.admitted().iter().find(|excerpt| excerpt.candidate == candidate).cloned();
        let limit = limits.and_then(|limits| limits.limit(ledger, candidate));
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
    let mut selected = selection.verdicts.iter().filter(|verdict| verdict.is_selected());
    let outcome = match selected.clone().next() {
        None if selection.least_budget.is_some() => Outcome::NothingFits,
        None => Outcome::NothingRelevant,
        Some(_) if selected.any(|verdict| verdict.last == Reason::CutToFit && !verdict.fills()) => Outcome::Cut,
        Some(_) => Outcome::Whole,
    };
    Manifest {
        selected: citations.iter().flat_map(|citation| citation.chunks.clone()).collect(),
        outcome,
        least_budget: selection.least_budget,
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
        rerank: None,
        windows: None,
        second_search: None,
        repair: None,
    }
}

/// The trace of a selection: a record for every candidate, those that are left out by request last.
pub(super) fn trace(
    request: &Request<'_>,
    prepared: &Prepared<'_>,
    policy: &Policy,
    selection: Selection,
    manifest: Manifest,
) -> Trace {
    let Prepared { candidates, excluded, .. } = prepared;
    let Valued { scores, .. } = &prepared.valued;
    let walked = scores.pool.iter().zip(selection.verdicts).enumerate().map(|(at, (scored, verdict))| {
        let decision = if verdict.is_selected() { Decision::Selected } else { Decision::Rejected };
        let record = record(at + 1, candidates[scored.candidate], scored);
        let (bridge, meets) = (lifted(prepared, scored.candidate), met(prepared, scored.candidate));
        Record {
            stage: verdict.stage,
            step_decision: verdict.first,
            final_decision: decision,
            final_reason: verdict.last,
            step_details: verdict.details,
            bridge,
            meets,
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
        marks: request.marks,
        queries: request.further.iter().map(|further| further.query.clone()).collect(),
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

/// The bridge that lifted a candidate.
fn lifted(prepared: &Prepared<'_>, candidate: usize) -> Option<BridgeRecord> {
    let Bridge { from, before } = prepared.valued.bridges.get(candidate).copied().flatten()?;
    Some(BridgeRecord { from: from.map(|from| prepared.candidates[from].id.clone()), before })
}

/// The needs of the question that a candidate meets.
fn met(prepared: &Prepared<'_>, candidate: usize) -> Vec<String> {
    let met = prepared.valued.needs.iter().filter(|covered| covered.by.contains(&candidate));
    met.map(|covered| covered.need.text.clone()).collect()
}

/// Names the windows that end at an edge, in a line.
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
