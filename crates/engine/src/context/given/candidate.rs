//! A candidate as another engine gives it, and what must hold of it.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{self, CANDIDATES_MAX, TEXT_BYTES_MAX};

/// A passage that another engine found, or one that stands beside such a passage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenCandidate {
    /// The text, as it is to be delivered.
    pub text: String,
    /// The id of its document.
    pub document: String,
    /// The title of its document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The score, larger is better, on any scale: one for all candidates. A candidate without stands beside those that
    /// were found, for strategies that look there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The number in its document: 3 and 4 touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Bytes of its document, as many as the text has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Range<u64>>,
    /// Characters (Unicode scalar values) of its document, as many as the text has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<Range<u64>>,
    /// The headings that it stands under, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headings: Vec<String>,
    /// The vector, of any length but zero, of one space for all candidates; without vectors words alone say how alike
    /// two candidates are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vec<f32>>,
}

impl GivenCandidate {
    /// True where something says where it stands.
    pub(super) fn has_place(&self) -> bool {
        self.number.is_some() || self.span.is_some() || self.characters.is_some()
    }
}

/// The fault of a candidate.
pub(super) fn wrong(number: usize, reason: impl Into<String>) -> Error {
    Error::Setting { setting: "candidates", value: format!("[{number}]"), reason: reason.into() }
}

/// Holds each candidate for itself against what must be.
pub(super) fn check(given: &[GivenCandidate]) -> Result<()> {
    limits::within("candidates", given.len(), 1, CANDIDATES_MAX)?;
    for (number, candidate) in given.iter().enumerate() {
        let wrong = |reason: &str| Err(wrong(number, reason));
        let texts =
            [&candidate.text, &candidate.document].into_iter().chain(&candidate.title).chain(&candidate.headings);
        if let Some(long) = texts.map(String::len).find(|&n_bytes| n_bytes > TEXT_BYTES_MAX) {
            return wrong(&format!(
                "has a text of {long} bytes; {TEXT_BYTES_MAX} are read at most: cut it into passages"
            ));
        }
        if candidate.text.trim().is_empty() {
            return wrong("has no text");
        }
        if candidate.document.is_empty() {
            return wrong("names no document");
        }
        if candidate.score.is_some_and(|score| !score.is_finite()) {
            return wrong("has a score that is no finite number");
        }
        if candidate.score.is_none() && !candidate.has_place() {
            return wrong("has no score, and no place beside another either; give a score, where larger is better");
        }
        if candidate.number == Some(u32::MAX) {
            return wrong("has a number that is too large");
        }
        let places = [candidate.number.is_some(), candidate.span.is_some(), candidate.characters.is_some()];
        if places.iter().filter(|place| **place).count() > 1 {
            return wrong("has its place in more than one form; give one of number, span and characters");
        }
        let (n_bytes, n_characters) = (candidate.text.len() as u64, || candidate.text.chars().count() as u64);
        let length = |place: &Range<u64>| place.end.checked_sub(place.start);
        match (&candidate.span, &candidate.characters) {
            (Some(span), _) if length(span) != Some(n_bytes) => {
                let counted = length(span) == Some(n_characters());
                let hint = if counted { "; it counts characters: name it so" } else { "" };
                return wrong(&format!("has a span of another length than its text, {n_bytes} bytes{hint}"));
            }
            (_, Some(place)) if length(place) != Some(n_characters()) => {
                let counted = length(place) == Some(n_bytes);
                let hint = if counted { "; they are its bytes: name them span" } else { "" };
                return wrong(&format!("has another number of characters than its text, {}{hint}", n_characters()));
            }
            _ => {}
        }
    }
    if given.iter().all(|candidate| candidate.score.is_none()) {
        return Err(wrong(
            0,
            "has no score, nor has any other; give those that were found one, where larger is better",
        ));
    }
    Ok(())
}

/// The vectors at unit length; none where none were given.
pub(super) fn vectors(given: &[GivenCandidate]) -> Result<Vec<Vec<f32>>> {
    let Some(dimensions) = given.iter().find_map(|candidate| candidate.vector.as_ref()).map(Vec::len) else {
        return Ok(Vec::new());
    };
    let unit = |(number, candidate): (usize, &GivenCandidate)| {
        let Some(vector) = &candidate.vector else {
            return Err(wrong(number, "has no vector, and others have; give one to all or to none"));
        };
        if vector.len() != dimensions {
            let reason = format!("has a vector of {} dimensions, another has {dimensions}", vector.len());
            return Err(wrong(number, reason));
        }
        let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        if !norm.is_normal() {
            return Err(wrong(number, "has a vector of no direction: it is zero, or holds what is no finite number"));
        }
        Ok(vector.iter().map(|value| (f64::from(*value) / norm) as f32).collect())
    };
    given.iter().enumerate().map(unit).collect()
}

/// Given candidates by document, in the order of the ids.
pub(super) fn by_document(given: &[GivenCandidate]) -> BTreeMap<&str, Vec<usize>> {
    let mut documents: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    given.iter().enumerate().for_each(|(at, given)| documents.entry(&given.document).or_default().push(at));
    documents
}
