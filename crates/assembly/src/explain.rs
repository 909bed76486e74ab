//! Explain: what decided about a candidate, in a sentence with its numbers, and the least that would let it past what kept it out.
//!
//! Works on a [`Trace`] alone. A change undoes the one constraint that decided; what a context is made of then, only assembling it
//! again can tell. Tokens are as they were counted at the decision: the whole may come out a few apart from its parts.

use crate::Strategy;
use crate::evidence::Evidence;
use crate::policy::{Gate, OTHER_SECTIONS, Policy, Relevance, Slack};
use crate::trace::{Decision, Reason, Record, StepDetails, Trace};
use serde::Serialize;

/// Why a candidate is in the context or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// All that the trace knows of it.
    pub record: Record,
    /// What decided, in a sentence with its numbers.
    pub because: String,
    /// The least changes that undo what decided, each by itself; where the trace does not tell how far, which setting to move.
    pub changes: Vec<String>,
}

impl Why {
    /// Explains one record of a trace.
    pub fn of(trace: &Trace, record: &Record) -> Self {
        let case = Case { trace, policy: &trace.config.policy, record, details: &record.step_details };
        let (because, changes) = case.explain();
        Self { record: record.clone(), because, changes }
    }

    /// Whether it is in the context, whole or in part.
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
    policy: &'t Policy,
    record: &'t Record,
    details: &'t StepDetails,
}

impl Case<'_> {
    fn explain(&self) -> (String, Vec<String>) {
        match self.record.final_reason {
            Reason::PassedAllGates => (self.delivered(), Vec::new()),
            Reason::CutToFit => (self.cut(), Vec::new()),
            Reason::BeyondCandidates => self.beyond(),
            Reason::LowRelevance => self.low_relevance(),
            Reason::DocumentChunksExceeded => self.too_many("document", "max_per_document"),
            Reason::SectionChunksExceeded => self.too_many("section", "max_per_section"),
            Reason::BudgetExceeded => self.over_budget(),
            Reason::SectionBudgetExceeded => self.over_share(),
            Reason::TooRedundant => self.redundant(),
            Reason::DroppedInRepair => self.dropped(),
            Reason::NotFound => self.not_found(),
            Reason::NotProposed => self.not_proposed(),
            Reason::RunTooLong => self.run_too_long(),
            Reason::Included => ("delivered because the request includes it".to_owned(), Vec::new()),
            Reason::Excluded => {
                let because = "the request leaves it out".to_owned();
                (because, vec!["not excluding it or its document".to_owned()])
            }
            Reason::NotSupported => self.not_supported(),
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
        match (self.details.tokens_needed, self.details.tokens_used) {
            (Some(needed), Some(used)) => {
                format!("{slack}: {needed} tokens beside {used} used, within the budget of {}", self.budget())
            }
            _ => slack.to_owned(),
        }
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

    fn beyond(&self) -> (String, Vec<String>) {
        let Record { rank, retrieval_score, is_neighbor, .. } = self.record;
        let strategy = self.trace.config.strategy;
        let in_pool = *rank <= self.trace.config.n_pool;
        if let Some(least) =
            self.policy.min_relevance.filter(|&least| in_pool && !is_neighbor && *retrieval_score < least)
        {
            return self.below(*retrieval_score, least);
        }
        let limit = count(self.details.chunks_limit);
        let (what, key) = match strategy {
            Strategy::Adaptive if in_pool => {
                let because = format!("place {rank}: the ranking ends at place {limit}, its buffer included");
                return (because, vec![format!("an adaptive.buffer that reaches place {rank}")]);
            }
            Strategy::Cento if in_pool => ("likeliest", "cento.candidates"),
            _ => ("most relevant", "candidates"),
        };
        let because = format!("place {rank}: beyond the {limit} {what} candidates, which alone are weighed");
        (because, vec![format!("a {key} of {rank} instead of {limit}")])
    }

    fn below(&self, measured: f64, least: f64) -> (String, Vec<String>) {
        let because = format!("its relevance of {} is below min_relevance, {}", number(measured), number(least));
        (because, vec![format!("a min_relevance of {} instead of {}", floor(measured), number(least))])
    }

    fn low_relevance(&self) -> (String, Vec<String>) {
        let Record { relevance, retrieval_score, prior, boost, bucket, tf, .. } = self.record;
        let measured = if self.policy.relevance == Relevance::Tf { *relevance } else { *retrieval_score };
        match self.details.min_relevance {
            Some(least) if self.policy.min_relevance == Some(least) && measured < least => self.below(measured, least),
            Some(_) if *tf == Some(0) => {
                let because = format!(
                    "has no term of the query, and its prior and boosts come to {}, which is not above 0",
                    number(prior + boost)
                );
                let above = number(-boost);
                (because, vec![format!("a prior above {above} for {bucket:?}"), "relevance = \"fused\"".to_owned()])
            }
            _ => {
                let because = format!("worth nothing: a likelihood of {}", number(*relevance));
                (because, Vec::new())
            }
        }
    }

    fn too_many(&self, of: &str, key: &str) -> (String, Vec<String>) {
        let (used, limit) = (self.details.chunks_used, self.details.chunks_limit);
        let because = format!("its {of} has {} chunks already; {key} allows {}", count(used), count(limit));
        let change = used.map(|used| format!("a {key} of {} instead of {}", used + 1, count(limit)));
        (because, change.into_iter().collect())
    }

    fn over_budget(&self) -> (String, Vec<String>) {
        let StepDetails { tokens_needed, tokens_used, estimated, .. } = self.details;
        let it = match self.trace.config.strategy {
            Strategy::Cento | Strategy::Flat | Strategy::Mmr | Strategy::Adaptive | Strategy::Bubble => "it needs",
            _ => "it needs, with the chunks it is to be delivered with,",
        };
        let least = if *estimated { " at least" } else { "" };
        let because = format!(
            "does not fit the budget of {}: {it}{least} {} tokens beside {} used",
            self.budget(),
            count(*tokens_needed),
            count(*tokens_used)
        );
        let sum = tokens_used.zip(*tokens_needed).map(|(used, needed)| used + needed);
        let budget = self.details.budget_needed.or(sum);
        let mut changes: Vec<String> = budget
            .map(|budget| format!("a budget of{least} {budget} instead of {}", self.budget()))
            .into_iter()
            .collect();
        if let (Some(value), Some(needed)) = (self.details.value, self.details.value_needed)
            && value < needed
        {
            changes.push(format!(
                "a value above {} instead of {}: what so many tokens were worth elsewhere",
                number(needed),
                number(value)
            ));
        }
        (because, changes)
    }

    fn over_share(&self) -> (String, Vec<String>) {
        let StepDetails { section_used, section_needed, section_limit, .. } = *self.details;
        let key = if self.policy.rho.contains_key(&self.record.bucket) { &self.record.bucket } else { OTHER_SECTIONS };
        let share = self.policy.rho.get(key).copied();
        let because = format!(
            "its section may have {} tokens (rho {:?} = {} of {}): it needs {} beside {} used",
            count(section_limit),
            key,
            share.map_or_else(|| "?".to_owned(), number),
            self.budget(),
            count(section_needed),
            count(section_used)
        );
        let mut changes = Vec::new();
        if let (Some(used), Some(needed), Some(share)) = (section_used, section_needed, share) {
            let (whole, budget) = (used + needed, self.budget() as f64);
            let mut rho = (whole as f64 / budget * 1000.0).ceil() / 1000.0;
            if ((rho * budget) as usize) < whole {
                rho += 0.001; // a share is rounded down to tokens
            }
            changes.push(match rho <= 1.0 {
                true => format!("a rho of {} for {:?} instead of {}", number(rho), self.record.bucket, number(share)),
                false => {
                    format!("a budget of {} instead of {}", (whole as f64 / share.max(1e-9)).ceil(), self.budget())
                }
            });
        }
        let fits =
            self.details.tokens_needed.zip(self.details.tokens_left).is_some_and(|(needed, left)| needed <= left);
        if self.trace.config.strategy == Strategy::Bubble && self.policy.slack == Slack::None && fits {
            changes.push("slack = \"global\": the budget has room for it".to_owned());
        }
        (because, changes)
    }

    fn redundant(&self) -> (String, Vec<String>) {
        let StepDetails { overlap, cosine, partner, .. } = self.details;
        let union = self.policy.gate == Gate::Union && self.trace.config.strategy == Strategy::Bubble;
        let than = match partner {
            Some(partner) if union => format!("all that was chosen before, most of all {partner}"),
            Some(partner) => partner.clone(),
            None => "what was chosen before".to_owned(),
        };
        let is_cento = self.trace.config.strategy == Strategy::Cento;
        let words =
            if is_cento { ("cento.same_words", self.policy.cento.same_words) } else { ("delta", self.policy.delta) };
        let mut figures = Vec::new();
        let mut keys = Vec::new();
        if let Some(overlap) = overlap.filter(|&overlap| overlap >= words.1) {
            figures.push(format!("containment {}, not below {} = {}", number(overlap), words.0, number(words.1)));
            keys.push((words.0, overlap));
        }
        let meaning = self.policy.cento.same_meaning;
        if let Some(cosine) = cosine.filter(|&cosine| is_cento && cosine >= meaning) {
            figures.push(format!("cosine {}, not below cento.same_meaning = {}", number(cosine), number(meaning)));
            keys.push(("cento.same_meaning", cosine));
        }
        let because = format!("says the same as {than}: {}", figures.join("; "));
        let mut changes: Vec<String> = Vec::new();
        if keys.iter().all(|(_, figure)| above(*figure) <= 1.0) {
            let raised = keys.iter().map(|(key, figure)| format!("{key} = {}", number(above(*figure))));
            changes.push(raised.collect::<Vec<_>>().join(" with "));
        } else {
            changes.push("gate = \"none\"".to_owned());
        }
        changes.extend(partner.iter().filter(|_| !union).map(|partner| format!("leaving out {partner}")));
        (because, changes)
    }

    fn not_supported(&self) -> (String, Vec<String>) {
        let StepDetails { support, min_support, .. } = self.details;
        let measured = support.unwrap_or(f64::NAN);
        let evidence = self.trace.manifest.support.as_ref().map_or_else(String::new, |support| {
            let Evidence { cosine, cosine_typical, words, .. } = support.evidence;
            format!(
                "; the nearest chunk has a cosine of {} where {} is typical, the best one {} of what the question's words could give",
                number(cosine),
                number(cosine_typical),
                number(words)
            )
        });
        let least = min_support.map_or_else(|| "?".to_owned(), number);
        let because = format!("the collection has no answer: support {}, below {least}{evidence}", number(measured));
        (because, vec![format!("a cento.min_support of {} instead of {least}", floor(measured))])
    }

    fn dropped(&self) -> (String, Vec<String>) {
        let because = format!(
            "chosen, and dropped again: counted as a whole the context had {} tokens, {} above the budget of {}",
            count(self.details.tokens_used),
            count(self.details.tokens_needed),
            self.budget()
        );
        let change = self.details.tokens_used.map(|whole| format!("a budget of {whole} instead of {}", self.budget()));
        (because, change.into_iter().collect())
    }

    fn not_found(&self) -> (String, Vec<String>) {
        let because = format!(
            "retrieval did not find it: it stands beside what was found, and the strategy {} looks at nothing else",
            self.trace.config.strategy
        );
        (
            because,
            vec![
                "more candidates an arm".to_owned(),
                "the strategy cento, or window, which look at neighbours".to_owned(),
            ],
        )
    }

    fn not_proposed(&self) -> (String, Vec<String>) {
        let Policy { rse, kadane, window, parent, automerge, .. } = self.policy;
        let found = if self.record.is_neighbor { "not found by itself, and " } else { "" };
        let (what, changes) = match self.trace.config.strategy {
            Strategy::Cento => {
                let least = self.policy.min_relevance.map_or_else(|| "?".to_owned(), number);
                ("beside nothing that min_relevance lets in".to_owned(), vec![format!("a min_relevance below {least}")])
            }
            Strategy::Rse | Strategy::RseExact => (
                format!(
                    "in no segment worth {} or more, of at most {} chunks, {} in all, in the documents of the first {} hits",
                    number(rse.minimum_value),
                    rse.max_length,
                    rse.overall_max_length,
                    rse.top_k_for_document_selection
                ),
                vec![
                    format!("an rse.minimum_value below {}", number(rse.minimum_value)),
                    format!("an rse.irrelevant_chunk_penalty below {}", number(rse.irrelevant_chunk_penalty)),
                ],
            ),
            Strategy::RseKadane => (
                format!(
                    "in no segment of at most {} chunks; only the first {} hits are worth more than -{}",
                    kadane.max_segment_length,
                    kadane.k,
                    number(kadane.relevance_threshold)
                ),
                vec![
                    format!("a kadane.k above {}", kadane.k),
                    format!("a kadane.relevance_threshold below {}", number(kadane.relevance_threshold)),
                ],
            ),
            Strategy::Window => (
                format!("in no window of {} chunks on either side and {} tokens", window.radius, window.max_tokens),
                vec![
                    format!("a window.radius above {}", window.radius),
                    format!("a window.max_tokens above {}", window.max_tokens),
                ],
            ),
            Strategy::Parent => (
                format!(
                    "in none of the first {} sections, of at most {} tokens",
                    parent.max_context_blocks, parent.max_tokens
                ),
                vec![
                    format!("a parent.max_context_blocks above {}", parent.max_context_blocks),
                    format!("a parent.max_tokens above {}", parent.max_tokens),
                ],
            ),
            Strategy::Automerge => (
                format!(
                    "neither among the first {} chunks found nor in a section of which more than {} is found",
                    automerge.k,
                    number(automerge.ratio)
                ),
                vec![
                    format!("an automerge.k above {}", automerge.k),
                    format!("an automerge.ratio below {}", number(automerge.ratio)),
                ],
            ),
            strategy => (format!("not proposed by the strategy {strategy}"), Vec::new()),
        };
        (format!("{found}{what}"), changes)
    }

    fn run_too_long(&self) -> (String, Vec<String>) {
        let limit = count(self.details.chunks_limit);
        let because = format!("would make a run of more than {limit} chunks, the most cento.run_max allows");
        (because, vec![format!("a cento.run_max above {limit}")])
    }
}

/// A figure as people read it: three digits behind the point, fewer where they are zeros or it is large; `2.1e-5` if it is small.
pub fn number(value: f64) -> String {
    if value.abs() >= 100.0 {
        return format!("{value:.1}");
    }
    if value != 0.0 && value.abs() < 0.001 {
        return format!("{value:.1e}");
    }
    let text = format!("{value:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// The least figure of three digits that is above a value.
fn above(value: f64) -> f64 {
    ((value * 1000.0).floor() + 1.0) / 1000.0
}

/// The greatest figure of three digits that is not above a value.
fn floor(value: f64) -> String {
    number((value * 1000.0).floor() / 1000.0)
}

fn count(n: Option<usize>) -> String {
    n.map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_the_side_that_is_enough() {
        assert_eq!(
            (number(0.8600001), number(14.2), number(523.04), number(-0.0)),
            ("0.86".into(), "14.2".into(), "523.0".into(), "0".into())
        );
        assert!(above(0.86) > 0.86 && above(0.8634) <= 0.864 && above(1.0) > 1.0);
        assert_eq!(floor(0.0129), "0.012");
    }
}
