//! Labels: those that a policy names and no section, or document, of the collection has.

use std::collections::BTreeSet;

use cento_assembly::policy::{OTHER_SECTIONS, normalize_label};
use cento_assembly::{Candidate, Strategy};

use crate::context::request::ContextSettings;
use crate::error::Result;
use crate::retrieve::searcher::Searcher;
use crate::source::filter::Filter;

/// A warning for each label of the policy that is the heading of nothing, with the nearest there is. The collection is
/// read only for a label that no candidate has.
pub(super) fn unmatched(
    searcher: &Searcher,
    request: &ContextSettings<'_>,
    candidates: &[Candidate],
) -> Result<Vec<String>> {
    if matches!(request.strategy, Strategy::Window | Strategy::Parent) {
        return untyped(searcher, request, candidates);
    }
    let (priors, rho) = (&request.policy.priors, &request.policy.rho);
    if !matches!(request.strategy, Strategy::Cento | Strategy::Bubble) || (priors.is_empty() && rho.is_empty()) {
        return Ok(Vec::new());
    }
    let named = priors.keys().map(|label| ("priors", label)).chain(rho.keys().map(|label| ("rho", label)));
    let found: BTreeSet<String> = candidates.iter().map(|candidate| normalize_label(&candidate.label)).collect();
    let mut warnings = Vec::new();
    for (table, label) in named.filter(|(_, label)| *label != OTHER_SECTIONS) {
        let asked = normalize_label(label);
        if found.contains(&asked) || searcher.labels()?.contains(&asked) {
            continue;
        }
        let distance = |known: &&String| strsim::damerau_levenshtein(&asked, known);
        let nearest = searcher.labels()?.iter().min_by_key(distance);
        let nearest = nearest.map_or_else(String::new, |nearest| format!("; the nearest is {nearest:?}"));
        warnings.push(format!("no section is headed {label:?}, which [{table}] names{nearest}"));
    }
    Ok(warnings)
}

/// A warning for each type that a policy gives a radius and no document has.
fn untyped(searcher: &Searcher, request: &ContextSettings<'_>, candidates: &[Candidate]) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for asked in request.policy.window.radius_by_type.keys() {
        if candidates.iter().any(|candidate| candidate.types.contains(asked)) {
            continue;
        }
        let of_type = Filter::parse(&format!("type = {asked:?}"))?;
        if searcher.filtered(&of_type)?.n_admitted == 0 {
            warnings.push(format!("no document is of the type {asked:?}, which window.radius_by_type names"));
        }
    }
    Ok(warnings)
}
