//! Explain: what decided about a candidate, in a sentence with its numbers, and the levers that may undo it.
//!
//! Works on a [`Trace`] alone. A lever bears on the one constraint that decided; what a context is made of once it is
//! moved, only assembling it again can tell. Tokens are as they were counted at the decision: the whole may come out a
//! few apart from its parts.

use super::trace::{Decision, Record, Trace};
use crate::figure::count;
use crate::lever::Lever;
use crate::policy::Policy;
use crate::select::chooser::Chooser;
use crate::select::decision::{Reason, StepDetails};
use crate::select::gates::{Told, below, beyond, too_many};
use crate::strategies::{bubble, cento, seal};
use crate::value::prior::Relevance;
use schemars::JsonSchema;
use serde::Serialize;

pub use crate::figure::number;

/// Why a candidate is in the context or not.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Why {
    /// All that the trace knows of it.
    pub record: Record,
    /// The reason, in a sentence with its numbers.
    pub because: String,
    /// The settings that what decided hangs on.
    #[serde(skip)]
    pub levers: Vec<Lever>,
}

impl Why {
    /// Explains one record of a trace.
    pub fn of(trace: &Trace, record: &Record) -> Self {
        let policy = trace.policy();
        let chooser = policy.chooser(trace.config.strategy, &trace.query);
        let case = Case { trace, policy: &policy, chooser, record, details: &record.step_details };
        let (because, levers) = case.explain();
        Self { record: record.clone(), because, levers }
    }

    /// Says if it is in the context, whole or in part.
    pub fn is_delivered(&self) -> bool {
        self.record.final_decision == Decision::Selected
    }
}

/// Explains a chunk of a trace; nothing if it was no candidate.
pub fn why(trace: &Trace, chunk: &str) -> Option<Why> {
    trace.records.iter().find(|record| record.chunk_id == chunk).map(|record| Why::of(trace, record))
}

struct Case<'t> {
    trace: &'t Trace,
    /// The one that was chosen by.
    policy: &'t Policy,
    chooser: Box<dyn Chooser + 't>,
    record: &'t Record,
    details: &'t StepDetails,
}

impl Case<'_> {
    fn explain(&self) -> Told {
        match self.record.final_reason {
            Reason::PassedAllGates => (self.delivered(), Vec::new()),
            Reason::CutToFit => (self.cut(), Vec::new()),
            Reason::BeyondCandidates => self.beyond(),
            Reason::LowRelevance => self.low_relevance(),
            Reason::DocumentChunksExceeded => too_many("document", "max_per_document", self.details),
            Reason::SectionChunksExceeded => too_many("section", "max_per_section", self.details),
            Reason::BudgetExceeded => self.over_budget(),
            Reason::SectionBudgetExceeded => self.over_share(),
            Reason::TooRedundant => self.redundant(),
            Reason::DroppedInRepair => self.dropped(),
            Reason::NotFound => self.not_found(),
            Reason::NotProposed => self.not_proposed(),
            Reason::RunTooLong => cento::run_too_long(self.details),
            Reason::Included => ("delivered because the request includes it".to_owned(), Vec::new()),
            Reason::Excluded => {
                let because = "the request leaves it out".to_owned();
                let (chunk, document) = (self.record.chunk_id.clone(), self.record.document.clone());
                (because, vec![Lever::Admit { chunk, document }])
            }
            Reason::Unlikely => cento::unlikely(self.details, self.trace.config.policy.cento.least_share),
            Reason::NotSupported => {
                let support = self.trace.manifest.support.as_ref();
                cento::not_supported(self.details, support.map(|support| &support.evidence))
            }
        }
    }

    fn budget(&self) -> usize {
        self.trace.config.budget_tokens
    }

    fn delivered(&self) -> String {
        let slack = if self.record.step_decision == Reason::SectionBudgetExceeded {
            "delivered whole, from the tokens that other sections left"
        } else {
            "delivered whole"
        };
        let delivered = match (self.details.tokens_needed, self.details.tokens_used) {
            (Some(needed), Some(used)) => {
                format!("{slack}: {needed} tokens beside {used} used, within the budget of {}", self.budget())
            }
            _ => slack.to_owned(),
        };
        let repair = self.trace.manifest.repair.as_ref();
        match repair.and_then(|repair| seal::told::came(repair, &self.policy.seal, &self.record.chunk_id)) {
            Some(came) => format!("{delivered}; {came}"),
            None => delivered,
        }
    }

    fn found(&self, id: &str) -> Option<&Record> {
        self.trace.records.iter().find(|record| record.chunk_id == id)
    }

    /// Why a repair did not keep it, where there was one.
    fn lost(&self) -> Option<String> {
        let relevance = |id: &str| self.found(id).map(|record| record.retrieval_score);
        let (repair, settings) = (self.trace.manifest.repair.as_ref()?, &self.policy.seal);
        seal::told::lost(repair, settings, &self.record.chunk_id, &relevance)
    }

    fn cut(&self) -> String {
        let kept = self.details.kept.as_ref().map_or_else(String::new, |kept| {
            format!(
                ": bytes {}-{} of the document, {} in all",
                kept.start,
                kept.end,
                kept.end.saturating_sub(kept.start)
            )
        });
        format!("delivered in part, as it is longer than what the budget of {} has for it{kept}", self.budget())
    }

    fn beyond(&self) -> Told {
        let Record { rank, retrieval_score, is_neighbor, .. } = *self.record;
        let in_pool = rank <= self.trace.config.n_pool;
        let policy = self.policy;
        match policy.min_relevance.filter(|&least| in_pool && !is_neighbor && retrieval_score < least) {
            Some(least) => below(retrieval_score, least),
            None => self.chooser.beyond(rank, self.details).filter(|_| in_pool).unwrap_or_else(|| {
                let limit = self.details.chunks_limit;
                beyond(rank, limit, "most relevant", "candidates")
            }),
        }
    }

    fn low_relevance(&self) -> Told {
        let Record { relevance, retrieval_score, prior, boost, tf, .. } = *self.record;
        let policy = self.policy;
        let measured = if policy.relevance == Relevance::Tf { relevance } else { retrieval_score };
        match self.details.min_relevance {
            Some(least) if policy.min_relevance == Some(least) && measured < least => below(measured, least),
            Some(_) if tf == Some(0) => bubble::no_term(&self.record.bucket, prior, boost),
            _ => cento::worth_nothing(relevance),
        }
    }

    fn over_budget(&self) -> Told {
        let StepDetails { tokens_needed, tokens_used, estimated, .. } = self.details;
        let it = self.chooser.it_needs();
        let least = if *estimated { " at least" } else { "" };
        let because = format!(
            "does not fit the budget of {}: {it}{least} {} tokens beside {} used",
            self.budget(),
            count(*tokens_needed),
            count(*tokens_used)
        );
        let sum = tokens_used.zip(*tokens_needed).map(|(used, needed)| used.saturating_add(needed));
        (because, self.details.budget_needed.or(sum).map(Lever::Budget).into_iter().collect())
    }

    fn over_share(&self) -> Told {
        let sections = self.policy.gates().sections;
        let (because, mut levers) = sections.over_share(&self.record.bucket, self.details, self.budget());
        levers.extend(self.chooser.beside_share(self.details));
        (because, levers)
    }

    fn redundant(&self) -> Told {
        let sameness = self.chooser.sameness().unwrap_or_else(|| self.policy.gates().sameness());
        let partner = self.details.partner.as_deref().and_then(|id| self.found(id));
        sameness.redundant(self.details, partner.is_some_and(|partner| partner.document != self.record.document))
    }

    fn dropped(&self) -> Told {
        let because = format!(
            "chosen, and dropped again: counted as a whole the context had {} tokens, {} above the budget of {}",
            count(self.details.tokens_used),
            count(self.details.tokens_needed),
            self.budget()
        );
        (because, self.details.tokens_used.map(Lever::Budget).into_iter().collect())
    }

    fn not_found(&self) -> Told {
        let because = format!(
            "retrieval did not find it: it stands beside what was found, and the strategy {} looks at nothing else",
            self.trace.config.strategy
        );
        (because, vec![Lever::Candidates, Lever::Strategy("cento"), Lever::Strategy("window")])
    }

    fn not_proposed(&self) -> Told {
        if let Some(lost) = self.lost() {
            return (lost, Vec::new());
        }
        let found = if self.record.is_neighbor { "not found by itself, and " } else { "" };
        let (what, levers) = self.chooser.not_proposed().unwrap_or_else(|| {
            let strategy = self.trace.config.strategy;
            (format!("not proposed by the strategy {strategy}"), Vec::new())
        });
        (format!("{found}{what}"), levers)
    }
}
