//! Gaps: what the kept passages do not say, and the micro-queries that ask for it.
//!
//! Source: G_t = N(q) \ U_t of arXiv 2512.10787, section 3.4, typed missing entity, relation or qualifier; the rules
//! for micro-queries (4 to 12 keywords, stuck at a Jaccard similarity of .7 to an earlier one) are those of the
//! authors' code.
//! Differs: queries are composed, not written by a language model: a missing entity or a bridge, with the terms that
//! are missing, the heaviest first. The shorter the name, the fewer they are, or all queries would be alike.

use super::score::Evidence;
use crate::question::names::words;
use crate::question::{Need, NeedKind, Needs, Reading};
use crate::rank::heaviest_first;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Fewest words of a micro-query, if the question has as many.
pub const KEYWORDS_MIN: usize = 4;
/// Most words of a micro-query.
pub const KEYWORDS_MAX: usize = 12;
/// From this Jaccard similarity of their terms two micro-queries are the same.
pub const STUCK: f64 = 0.7;

/// The kind of thing that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Nothing is about it.
    Entity,
    /// Nothing says it.
    Relation,
    /// A date, a number or one side of a comparison.
    Qualifier,
}

impl Missing {
    /// The kind of thing that is missing where a need is not covered.
    fn of(need: NeedKind) -> Self {
        match need {
            NeedKind::Entity => Self::Entity,
            NeedKind::Relation => Self::Relation,
            NeedKind::Number | NeedKind::Date | NeedKind::Comparison => Self::Qualifier,
        }
    }
}

/// Something the kept passages do not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Its kind.
    pub missing: Missing,
    /// As the question writes it, or the passage that named it.
    pub text: String,
    /// Its key.
    pub key: String,
    /// The missing part of its weight.
    pub weight: f64,
    /// Number of the clause of the question; none for a bridge, which a kept passage named.
    pub clause: Option<usize>,
}

/// A query for one gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MicroQuery {
    /// The words to search for.
    pub text: String,
    /// The kind of thing it is after.
    pub missing: Missing,
    /// Key of the entity it starts from.
    pub target: String,
}

/// The gaps, heaviest first. A comparison is missing while one of its entities is, and what another reader
/// misses is missing whatever covers it.
pub(crate) fn gaps(needs: &Needs, evidence: &Evidence<'_>) -> Vec<Gap> {
    let about = |need: &Need, cover: f64| need.kind != NeedKind::Entity || cover == 1.0;
    let compared = needs.needs.iter().zip(&evidence.covered).all(|(need, cover)| about(need, *cover));
    let missed = &evidence.worth.missed.needs;
    let covers = evidence.covered.iter().enumerate().map(|(at, cover)| if missed.contains(&at) { 0.0 } else { *cover });
    let is_missing = |need: &Need, cover: f64| if need.kind == NeedKind::Comparison { !compared } else { cover < 1.0 };
    let of_question = needs.needs.iter().zip(covers).filter(|(need, cover)| is_missing(need, *cover));
    let mut gaps: Vec<Gap> = of_question
        .map(|(need, cover)| Gap {
            missing: Missing::of(need.kind),
            text: need.text.clone(),
            key: need.key.clone(),
            weight: need.weight * (1.0 - cover),
            clause: Some(need.clause),
        })
        .collect();
    gaps.extend(evidence.bridges.iter().map(|bridge| Gap {
        missing: Missing::Entity,
        text: bridge.written.to_owned(),
        key: bridge.key.to_owned(),
        weight: bridge.weight,
        clause: None,
    }));
    gaps.sort_by(|a, b| heaviest_first((a.weight, &a.key), (b.weight, &b.key)));
    gaps
}

/// Queries and terms that are not asked, or not again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocklist {
    /// Terms of the queries that were asked.
    pub(crate) asked: Vec<BTreeSet<String>>,
    /// Keys of entities whose queries found nothing new.
    pub(crate) stuck: BTreeSet<String>,
    /// Terms that no query may have.
    pub(crate) terms: BTreeSet<String>,
}

impl Blocklist {
    /// Admits a query once.
    fn admits(&mut self, query: &str, reading: &Reading<'_>) -> bool {
        let terms: BTreeSet<String> = (reading.terms)(query).into_iter().collect();
        let again = self.asked.iter().any(|asked| jaccard(asked, &terms) >= STUCK);
        if terms.is_empty() || again || !self.terms.is_disjoint(&terms) {
            return false;
        }
        self.asked.push(terms);
        true
    }
}

/// The queries for the heaviest gaps, at most `n`.
pub(crate) fn micro_queries(
    needs: &Needs,
    gaps: &[Gap],
    n: usize,
    blocklist: &mut Blocklist,
    reading: &Reading<'_>,
) -> Vec<MicroQuery> {
    let wide = |gap: &&Gap| gap.missing == Missing::Entity && !blocklist.stuck.contains(&gap.key);
    let mut starts: Vec<&Gap> = gaps.iter().filter(wide).collect();
    // Where every entity is found, what is missing of them is asked for.
    let found: Vec<Gap> = needs
        .needs
        .iter()
        .filter(|need| need.kind == NeedKind::Entity && !gaps.iter().any(|gap| gap.key == need.key))
        .filter(|need| !blocklist.stuck.contains(&need.key))
        .filter_map(|need| {
            let missing = gaps.iter().find(|gap| gap.clause == Some(need.clause))?.missing;
            let (text, key) = (need.text.clone(), need.key.clone());
            Some(Gap { missing, text, key, weight: need.weight, clause: Some(need.clause) })
        })
        .collect();
    starts.extend(&found);
    let mut queries = Vec::new();
    for start in starts {
        if queries.len() == n {
            break;
        }
        let text = compose(start, needs, gaps);
        if blocklist.admits(&text, reading) {
            let missing = if start.clause.is_none() { asked_of_bridge(gaps) } else { start.missing };
            queries.push(MicroQuery { text, missing, target: start.key.clone() });
        }
    }
    queries
}

/// A bridge is asked for the heaviest thing that the question still misses.
fn asked_of_bridge(gaps: &[Gap]) -> Missing {
    gaps.iter().find(|gap| gap.clause.is_some()).map_or(Missing::Entity, |gap| gap.missing)
}

/// A name and what is missing of it: gaps first (of its own clause, where it has one), then, up to [`KEYWORDS_MIN`],
/// what the question says of it.
fn compose(start: &Gap, needs: &Needs, gaps: &[Gap]) -> String {
    let count = |text: &str| words(text, 0..text.len()).len();
    let name = words(&start.text, 0..start.text.len());
    let name = name.get(KEYWORDS_MAX - 1).map_or(start.text.as_str(), |last| &start.text[..last.end]);
    let (mut said, mut n) = (vec![name], count(name));
    let aim = (3 * n + 1).clamp(KEYWORDS_MIN, KEYWORDS_MAX);
    let missing = gaps.iter().filter(|gap| gap.clause.is_some() && gap.weight > 0.0);
    let (own, other): (Vec<&Gap>, Vec<&Gap>) =
        missing.partition(|gap| start.clause.is_none() || gap.clause == start.clause);
    let mut rest: Vec<&Need> = needs.needs.iter().filter(|need| need.weight > 0.0).collect();
    rest.sort_by(|a, b| {
        (b.kind == NeedKind::Relation).cmp(&(a.kind == NeedKind::Relation)).then(b.weight.total_cmp(&a.weight))
    });
    let rest = rest.into_iter().map(|need| (need.text.as_str(), KEYWORDS_MIN));
    let wanted = own.into_iter().map(|gap| (gap.text.as_str(), aim));
    let wanted = wanted.chain(other.into_iter().map(|gap| (gap.text.as_str(), KEYWORDS_MIN))).chain(rest);
    for (text, until) in wanted {
        let repeated = said.iter().any(|said| said.to_lowercase().contains(&text.to_lowercase()));
        if !repeated && n < until && n + count(text) <= KEYWORDS_MAX {
            said.push(text);
            n += count(text);
        }
    }
    said.join(" ")
}

fn jaccard(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let shared = one.intersection(other).count();
    let all = one.len() + other.len() - shared;
    if all == 0 { 1.0 } else { shared as f64 / all as f64 }
}
