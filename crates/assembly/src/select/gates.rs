//! Gates: what a policy demands of every chunk, whichever strategy offers it, and the sentences about what they keep
//! out.

use super::decision::StepDetails;
use super::redundancy::Gate;
use super::sections::Sections;
use crate::error::{Error, Result};
use crate::figure::{above, count, floor, number};
use crate::value::prior::Relevance;

/// Longest run of chunks that a limit may name; without a limit runs are as long as they are.
pub(crate) const RUN_MAX: usize = 100;

/// The gates of a policy. A strategy says which of them it keeps to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gates<'p> {
    pub(crate) relevance: Relevance,
    pub(crate) min_relevance: Option<f64>,
    pub(crate) max_per_document: Option<usize>,
    pub(crate) max_per_section: Option<usize>,
    pub(crate) gate: Gate,
    pub(crate) delta: f64,
    pub(crate) sections: Sections<'p>,
}

/// A sentence, and the least changes that undo what it tells of.
pub(crate) type Told = (String, Vec<String>);

/// The figures from which two chunks say the same, by the settings that name them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sameness {
    pub(crate) words: (&'static str, f64),
    pub(crate) meaning: Option<(&'static str, f64)>,
    /// The chosen chunks the overlap is taken with.
    pub(crate) with: Gate,
}

impl Gates<'_> {
    pub(crate) fn check_delta(&self) -> Result<()> {
        Error::unless(self.delta > 0.0 && self.delta <= 1.0, "delta", "must be above 0 and at most 1")
    }

    pub(crate) fn check_relevance(&self) -> Result<()> {
        Error::unless(self.min_relevance.is_none_or(f64::is_finite), "min_relevance", "must be a finite number")
    }

    pub(crate) fn check_maxima(&self) -> Result<()> {
        Error::unless(self.max_per_document != Some(0), "max_per_document", "must be at least 1")?;
        Error::unless(self.max_per_section != Some(0), "max_per_section", "must be at least 1")
    }

    /// The overlap of the bubble's gate.
    pub(crate) fn sameness(&self) -> Sameness {
        Sameness { words: ("delta", self.delta), meaning: None, with: Gate::Pairwise }
    }
}

/// The sentence about a relevance below the least one.
pub(crate) fn below(measured: f64, least: f64) -> Told {
    let because = format!("its relevance of {} is below min_relevance, {}", number(measured), number(least));
    (because, vec![format!("a min_relevance of {} instead of {}", floor(measured), number(least))])
}

/// The sentence about a candidate beyond the first so many.
pub(crate) fn beyond(place: usize, limit: Option<usize>, what: &str, key: &str) -> Told {
    let limit = count(limit);
    let because = format!("place {place}: beyond the {limit} {what} candidates, which alone are weighed");
    (because, vec![format!("a {key} of {place} instead of {limit}")])
}

/// The sentence about a document or section that has all the chunks it may have.
pub(crate) fn too_many(of: &str, key: &str, details: &StepDetails) -> Told {
    let (used, limit) = (details.chunks_used, details.chunks_limit);
    let because = format!("its {of} has {} chunks already; {key} allows {}", count(used), count(limit));
    let change = used.map(|used| format!("a {key} of {} instead of {}", used.saturating_add(1), count(limit)));
    (because, change.into_iter().collect())
}

impl Sameness {
    /// The sentence about a chunk that says what is chosen already.
    pub(crate) fn redundant(&self, details: &StepDetails) -> Told {
        let StepDetails { overlap, cosine, partner, .. } = details;
        let union = self.with == Gate::Union;
        let than = match partner {
            Some(partner) if union => format!("all that was chosen before, most of all {partner}"),
            Some(partner) => partner.clone(),
            None => "what was chosen before".to_owned(),
        };
        let (mut figures, mut keys) = (Vec::new(), Vec::new());
        let (key, least) = self.words;
        if let Some(overlap) = overlap.filter(|&overlap| overlap >= least) {
            figures.push(format!("containment {}, not below {key} = {}", number(overlap), number(least)));
            keys.push((key, overlap));
        }
        let meaning = self.meaning.zip(*cosine).filter(|((_, least), cosine)| cosine >= least);
        if let Some(((key, least), cosine)) = meaning {
            figures.push(format!("cosine {}, not below {key} = {}", number(cosine), number(least)));
            keys.push((key, cosine));
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
}
