//! Neighbours: what a strategy looks at beside a candidate, and whether it was given.

use cento_assembly::Strategy;

use super::candidate::GivenCandidate;
use crate::error::{Error, Result};

/// The parts of a document that a strategy needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing beside a candidate.
    Nothing,
    /// The place of a candidate.
    Places,
    /// The chunks beside it.
    Beside,
    /// The section around it.
    Sections,
}

/// Warnings of what a strategy would look at and does not have.
///
/// # Errors
/// [`Error::Setting`] where it would have nothing of that, and so choose as another strategy does.
pub(super) fn check(given: &[GivenCandidate], strategy: Strategy) -> Result<Vec<String>> {
    let refused = |reason: &str| {
        Err(Error::Setting { setting: "strategy", value: strategy.name().to_owned(), reason: reason.to_owned() })
    };
    let needs = match strategy {
        Strategy::Cento | Strategy::Flat | Strategy::Mmr | Strategy::Adaptive | Strategy::Bubble => Needs::Nothing,
        Strategy::Rse | Strategy::RseKadane | Strategy::RseExact => Needs::Places,
        Strategy::Window => Needs::Beside,
        Strategy::Parent | Strategy::Automerge => Needs::Sections,
        Strategy::Seal => {
            return refused("searches again for what is missing, which needs a collection; choose another, as cento");
        }
    };
    let mut warnings = Vec::new();
    if needs == Needs::Nothing {
        return Ok(warnings);
    }
    let n_placeless = given.iter().filter(|candidate| !candidate.has_place()).count();
    if n_placeless == given.len() {
        return refused("looks at where candidates stand, and none has a place; give number, span or characters");
    }
    if n_placeless > 0 {
        warnings
            .push(format!("{n_placeless} of {} candidates have no place: {strategy} takes each alone", given.len()));
    }
    let n_bare = given.iter().filter(|candidate| candidate.headings.is_empty()).count();
    if needs == Needs::Sections && n_bare == given.len() {
        return refused("looks at sections, and no candidate has headings; give them, or choose another strategy");
    }
    if needs == Needs::Sections && n_bare > 0 {
        warnings.push(format!("{n_bare} of {} candidates have no headings, and so no section", given.len()));
    }
    if matches!(needs, Needs::Beside | Needs::Sections) && given.iter().all(|candidate| candidate.score.is_some()) {
        warnings.push(format!("{strategy} sees only what was found; give what stands beside it too, without scores"));
    }
    Ok(warnings)
}
