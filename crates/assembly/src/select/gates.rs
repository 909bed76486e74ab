//! Gates: what a policy demands of every chunk, whichever strategy offers it, and the sentences about what they keep
//! out.

use super::decision::StepDetails;
use super::redundancy::Gate;
use super::sections::Sections;
use crate::error::{Error, Result};
use crate::figure::{count, number};
use crate::lever::{Lever, Number};
use crate::value::prior::Relevance;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A limit is raised to so many times what seems enough, before it is given up.
pub(crate) const FAR: usize = 8;

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
    pub(crate) same_meaning: Option<f64>,
    pub(crate) sections: Sections<'p>,
}

/// The way on where nothing passes the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecondSearch {
    /// Nothing: the context says that there is nothing relevant.
    #[default]
    Never,
    /// The question is searched and chosen for once more, wider and without the gates.
    Relaxed,
}

impl SecondSearch {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A setting of a second search that is not the first one's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Relaxed {
    /// Name of the setting; of a policy's the key.
    pub setting: String,
    /// Its value in the first search.
    pub from: String,
    /// Its value in the second.
    pub to: String,
}

/// A sentence, and the levers that may undo what it tells of.
pub(crate) type Told = (String, Vec<Lever>);

/// The figures from which two chunks say the same, by the settings that name them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sameness {
    pub(crate) words: (&'static str, f64),
    /// Half of the words are enough between two documents.
    pub(crate) halved: bool,
    pub(crate) meaning: Option<(&'static str, f64)>,
    /// The chosen chunks the overlap is taken with.
    pub(crate) with: Gate,
}

impl Gates<'_> {
    pub(crate) fn check_delta(&self) -> Result<()> {
        let is_share = |share: f64| share > 0.0 && share <= 1.0;
        Error::unless(is_share(self.delta), "delta", "must be above 0 and at most 1")?;
        Error::unless(self.same_meaning.is_none_or(is_share), "same_meaning", "must be above 0 and at most 1")
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
        let meaning = self.same_meaning.map(|least| ("same_meaning", least));
        Sameness { words: ("delta", self.delta), halved: false, meaning, with: Gate::Pairwise }
    }
}

/// The sentence about a relevance below the least one.
pub(crate) fn below(measured: f64, least: f64) -> Told {
    let because = format!("its relevance of {} is below min_relevance, {}", number(measured), number(least));
    let end = measured.min(0.0) - 1.0; // below all that was found: its neighbours are let in too
    (because, vec![Lever::Number(Number::down_to("min_relevance", least, measured, end))])
}

/// The sentence about a candidate beyond the first so many.
pub(crate) fn beyond(place: usize, limit: Option<usize>, what: &str, key: &'static str) -> Told {
    let raised = limit.map(|limit| Lever::Number(Number::limit(key, limit, place, place.saturating_mul(FAR))));
    let limit = count(limit);
    let because = format!("place {place}: beyond the {limit} {what} candidates, which alone are weighed");
    (because, raised.into_iter().collect())
}

/// The sentence about a document or section that has all the chunks it may have.
pub(crate) fn too_many(of: &str, key: &'static str, details: &StepDetails) -> Told {
    let (used, limit) = (details.chunks_used, details.chunks_limit);
    let because = format!("its {of} has {} chunks already; {key} allows {}", count(used), count(limit));
    let raised = used.zip(limit).map(|(used, limit)| {
        let guess = used.saturating_add(1);
        Lever::Number(Number::limit(key, limit, guess, guess.saturating_mul(FAR)))
    });
    (because, raised.into_iter().collect())
}

impl Sameness {
    /// The sentence about a chunk that says what is chosen already, in a document that may be another one.
    pub(crate) fn redundant(&self, details: &StepDetails, is_of_another: bool) -> Told {
        let StepDetails { overlap, cosine, partner, .. } = details;
        let union = self.with == Gate::Union;
        let than = match partner {
            Some(partner) if union => format!("all that was chosen before, most of all {partner}"),
            Some(partner) => partner.clone(),
            None => "what was chosen before".to_owned(),
        };
        let (mut figures, mut levers) = (Vec::new(), Vec::new());
        let mut passed = |key, least, figure| {
            let raised = Number::above(key, least, figure);
            levers.extend((raised.guess <= raised.end).then_some(Lever::Number(raised)));
        };
        let (key, least) = self.words;
        let (part, of) = match is_of_another && self.halved {
            true => (0.5, "half of "),
            false => (1.0, ""),
        };
        if let Some(overlap) = overlap.filter(|&overlap| overlap >= least * part) {
            figures.push(format!("containment {}, not below {of}{key} = {}", number(overlap), number(least)));
            passed(key, least, overlap / part);
        }
        let meaning = self.meaning.zip(*cosine).filter(|((_, least), cosine)| cosine >= least);
        if let Some(((key, least), cosine)) = meaning {
            figures.push(format!("cosine {}, not below {key} = {}", number(cosine), number(least)));
            passed(key, least, cosine);
        }
        let because = format!("says the same as {than}: {}", figures.join("; "));
        levers.push(Lever::Choice("gate".into(), "none"));
        levers.extend(partner.iter().filter(|_| !union).map(|partner| Lever::Exclude(partner.clone())));
        (because, levers)
    }
}
