//! Neighborhoods: the chunks beside those found that a strategy looks at, as its settings say.
//!
//! A strategy names what it looks at ([`Near`]), and whoever has the documents offers that and no more. What is named
//! is worked out from the chunks found alone, so it is the same however a corpus is stored.
//! Invariant: what a strategy chooses from the chunks found and its neighborhood, it chooses from whole documents too
//! (`tests::twins`). `cento` has no such source: it looks as far as runs of evidence are assumed to reach.
//! Cost: linear in the ranges named; in the chunks of these only where they may be too many.

use crate::candidate::Candidate;
use crate::rank::best_first;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;

/// The chunks that a strategy looks at beside those found; by [`Policy::neighborhood`](crate::Policy::neighborhood).
#[derive(Debug, Clone, PartialEq)]
pub struct Neighborhood(pub(crate) Vec<Near>);

/// Chunks near those found. Ranks count what may be delivered, best first, from the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Near {
    /// On either side of the first `ranks`.
    Beside { ranks: usize, side: Side },
    /// In the innermost section of the first `ranks`, or the document if it has none, within `radius` on either side.
    Section { ranks: usize, radius: usize },
    /// The section at a `level` (0: the innermost) of so many ranks that `sections` disjoint ones are met; beside a
    /// chunk that lies in one, and beside one that lies in none.
    Parents { level: usize, sections: usize, inside: Side, outside: Side },
    /// The sections of which more than `share` is found by the first `ranks`, what lies between two chunks found and
    /// sections inside included; beside a chunk in no section.
    Merged { ranks: usize, share: f64, outside: Side },
    /// Between two of the first `ranks` of one document that a run of `run_max` chunks can hold; of documents that one
    /// of the first `documents` is in.
    Between { ranks: usize, documents: usize, run_max: usize },
}

/// The reach of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    /// Chunks before.
    pub(crate) before: usize,
    /// Chunks behind.
    pub(crate) behind: usize,
    /// Encoder tokens of a side behind which nothing is wanted: what exceeds them is seen to exceed them.
    pub(crate) tokens_max: usize,
}

impl Side {
    /// Nothing beside.
    pub(crate) const NONE: Self = Self { before: 0, behind: 0, tokens_max: 0 };

    /// So many chunks on both sides, however long.
    pub(crate) const fn both(radius: usize) -> Self {
        Self { before: radius, behind: radius, tokens_max: usize::MAX }
    }

    /// So many chunks before, however long.
    pub(crate) const fn before(chunks: usize) -> Self {
        Self { before: chunks, behind: 0, tokens_max: usize::MAX }
    }
}

/// Chunks of the document of one that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The place of the chunk found among the candidates.
    pub candidate: usize,
    /// Numbers of chunks in its document, its own among them.
    pub numbers: Range<u32>,
    /// Encoder tokens behind which nothing is wanted on either side; the chunk that exceeds them is.
    pub tokens_max: usize,
}

/// A neighborhood that is not offered whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Chunks found whose neighborhood is whole, the best.
    pub ranks: usize,
    /// Chunks found.
    pub found: usize,
    /// Most chunks that are offered beside those found.
    pub chunks_max: usize,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, found, chunks_max } = self;
        write!(
            f,
            "the strategy looks at more than {chunks_max} chunks beside those found: those beside the first {ranks} \
             of {found} are offered, so what the others are in may be cut short"
        )
    }
}

impl Neighborhood {
    /// Nothing beside what was found.
    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    /// Says if it is nothing beside what was found.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The same for each of several questions: documents may be considered for another one's sake.
    #[must_use]
    pub fn of_several(self) -> Self {
        let widened = |near| match near {
            Near::Between { ranks, run_max, .. } => Near::Between { ranks, documents: usize::MAX, run_max },
            Near::Beside { .. } | Near::Section { .. } | Near::Parents { .. } | Near::Merged { .. } => near,
        };
        Self(self.0.into_iter().map(widened).collect())
    }

    /// The chunks to offer beside those of `found` that are not excluded, of documents or chunks by id; at most
    /// `chunks_max` of them, those beside the best first.
    pub fn beside(&self, found: &[Candidate], exclude: &[String], chunks_max: usize) -> (Vec<Beside>, Option<Cut>) {
        let is_excluded = |chunk: &Candidate| exclude.iter().any(|id| *id == chunk.id || *id == chunk.document);
        let mut ranked: Vec<usize> =
            (0..found.len()).filter(|&at| !found[at].is_neighbor && !is_excluded(&found[at])).collect();
        ranked.sort_by(|&a, &b| {
            best_first((found[a].relevance + 0.0, &found[a].id), (found[b].relevance + 0.0, &found[b].id))
        });
        let ranking = Ranking { found, ranked };
        let mut beside: Vec<(usize, Beside)> = self.0.iter().flat_map(|near| ranking.near(near)).collect();
        beside.retain(|(_, beside)| beside.numbers.len() > 1);
        beside.sort_by_key(|(rank, _)| *rank); // those of a rank as they were named
        let cut = ranking.cut(&mut beside, chunks_max);
        (beside.into_iter().map(|(_, beside)| beside).collect(), cut)
    }
}

/// Chunks found, and which of them are which rank.
struct Ranking<'a> {
    found: &'a [Candidate],
    ranked: Vec<usize>,
}

impl Ranking<'_> {
    /// Ranks and their chunks, the first `ranks`.
    fn first(&self, ranks: usize) -> impl Iterator<Item = (usize, &Candidate)> {
        self.ranked.iter().map(|&at| &self.found[at]).enumerate().take(ranks)
    }

    fn near(&self, near: &Near) -> Vec<(usize, Beside)> {
        match *near {
            Near::Beside { ranks, side } => {
                self.first(ranks).map(|(rank, chunk)| self.side(rank, chunk, side)).collect()
            }
            Near::Section { ranks, radius } => {
                let section = |(rank, chunk): (usize, &Candidate)| {
                    let section = chunk.parents.first().cloned().unwrap_or(0..chunk.n_chunks);
                    let near = around(chunk, Side::both(radius));
                    self.run(rank, section.start.max(near.start)..section.end.min(near.end))
                };
                self.first(ranks).map(section).collect()
            }
            Near::Parents { level, sections, inside, outside } => self.parents(level, sections, inside, outside),
            Near::Merged { ranks, share, outside } => self.merged(ranks, share, outside),
            Near::Between { ranks, documents, run_max } => self.between(ranks, documents, run_max),
        }
    }

    fn run(&self, rank: usize, numbers: Range<u32>) -> (usize, Beside) {
        (rank, Beside { candidate: self.ranked[rank], numbers, tokens_max: usize::MAX })
    }

    fn side(&self, rank: usize, chunk: &Candidate, side: Side) -> (usize, Beside) {
        let numbers = around(chunk, side);
        (rank, Beside { candidate: self.ranked[rank], numbers, tokens_max: side.tokens_max })
    }

    fn parents(&self, level: usize, sections: usize, inside: Side, outside: Side) -> Vec<(usize, Beside)> {
        let mut met: Vec<(&str, Range<u32>)> = Vec::new();
        let mut beside = Vec::new();
        for (rank, chunk) in self.first(usize::MAX) {
            if met.len() >= sections {
                break;
            }
            let Some(section) = chunk.parents.get(level).or(chunk.parents.last()) else {
                beside.push(self.side(rank, chunk, outside));
                continue;
            };
            beside.extend([self.run(rank, section.clone()), self.side(rank, chunk, inside)]);
            // Sections that overlap may be one part of either.
            let overlaps = |(document, other): &(&str, Range<u32>)| {
                *document == chunk.document && other.start < section.end && section.start < other.end
            };
            if !met.iter().any(overlaps) {
                met.push((&chunk.document, section.clone()));
            }
        }
        beside
    }

    fn merged(&self, ranks: usize, share: f64, outside: Side) -> Vec<(usize, Beside)> {
        let mut documents: BTreeMap<&str, Vec<(usize, &Candidate)>> = BTreeMap::new();
        self.first(ranks).for_each(|(rank, chunk)| documents.entry(&chunk.document).or_default().push((rank, chunk)));
        let mut beside = Vec::new();
        for found in documents.into_values() {
            let mut covered: BTreeSet<u32> = found.iter().map(|(_, chunk)| chunk.index).collect();
            let is_filled = |at: u32| at.checked_add(2).is_some_and(|next| covered.contains(&next));
            let filled: Vec<_> = found.iter().filter(|(_, chunk)| is_filled(chunk.index)).collect();
            beside.extend(filled.iter().map(|(rank, chunk)| self.run(*rank, chunk.index..chunk.index + 2)));
            let alone = found.iter().filter(|(_, chunk)| chunk.parents.is_empty());
            beside.extend(alone.map(|(rank, chunk)| self.side(*rank, chunk, outside)));
            covered.extend(filled.iter().map(|(_, chunk)| chunk.index + 1).collect::<Vec<_>>());
            let mut sections: Vec<&Range<u32>> = found.iter().flat_map(|(_, chunk)| &chunk.parents).collect();
            sections.sort_unstable_by_key(|section| (section.len(), section.start));
            sections.dedup();
            for section in sections {
                if covered.range(section.clone()).count() as f64 > share * section.len() as f64 {
                    // The best that lies in it brings it.
                    let inside = found.iter().find(|(_, chunk)| section.contains(&chunk.index));
                    beside.extend(inside.map(|(rank, _)| self.run(*rank, section.clone())));
                    covered.extend(section.clone());
                }
            }
        }
        beside
    }

    fn between(&self, ranks: usize, documents: usize, run_max: usize) -> Vec<(usize, Beside)> {
        let considered: HashSet<&str> = self.first(documents).map(|(_, chunk)| chunk.document.as_str()).collect();
        let mut found: Vec<(usize, &Candidate)> =
            self.first(ranks).filter(|(_, chunk)| considered.contains(chunk.document.as_str())).collect();
        found.sort_by_key(|(_, chunk)| (&chunk.document, chunk.index));
        let pairs = found.windows(2).filter(|pair| {
            let (before, behind) = (pair[0].1, pair[1].1);
            before.document == behind.document && (2..run_max).contains(&((behind.index - before.index) as usize))
        });
        // The worse of the two is there where the better one is.
        pairs
            .map(|pair| {
                let (rank, numbers) = (pair[0].0.max(pair[1].0), pair[0].1.index..pair[1].1.index.saturating_add(1));
                self.run(rank, numbers)
            })
            .collect()
    }

    /// Takes off what goes beyond `chunks_max`, from the last rank on.
    fn cut(&self, beside: &mut Vec<(usize, Beside)>, chunks_max: usize) -> Option<Cut> {
        let named: usize = beside.iter().map(|(_, beside)| beside.numbers.len() - 1).sum();
        if named <= chunks_max {
            return None; // the same chunk may be named several times: there are no more than that
        }
        let mut offered: HashSet<(&str, u32)> = HashSet::new();
        for (at, (rank, run)) in beside.iter_mut().enumerate() {
            let chunk = &self.found[run.candidate];
            let mut numbers = chunk.index..chunk.index + 1;
            while numbers != run.numbers {
                let next = nearest(&numbers, &run.numbers, chunk.index);
                if !offered.contains(&(chunk.document.as_str(), next)) && offered.len() == chunks_max {
                    let cut = Cut { ranks: *rank, found: self.ranked.len(), chunks_max };
                    run.numbers = numbers;
                    beside.truncate(at + 1);
                    return Some(cut);
                }
                offered.insert((&chunk.document, next));
                numbers = numbers.start.min(next)..numbers.end.max(next + 1);
            }
        }
        None
    }
}

/// The number beside `inner` and in `outer` that is nearest to `index`; the one before it of two.
fn nearest(inner: &Range<u32>, outer: &Range<u32>, index: u32) -> u32 {
    let is_before = inner.start > outer.start && (inner.end >= outer.end || index - inner.start < inner.end - index);
    if is_before { inner.start - 1 } else { inner.end }
}

/// Numbers of the chunks of its document on either side of a chunk, and its own.
fn around(chunk: &Candidate, side: Side) -> Range<u32> {
    let chunks = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let end = chunk.n_chunks.max(chunk.index.saturating_add(1));
    let behind = chunk.index.saturating_add(1).saturating_add(chunks(side.behind));
    chunk.index.saturating_sub(chunks(side.before))..behind.min(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;

    /// Chunks found of document `a` with a thousand chunks, the best first, in these sections.
    fn found(indexes: &[u32], parents: &[Range<u32>]) -> Vec<Candidate> {
        let chunk = |(rank, &index): (usize, &u32)| Candidate {
            n_chunks: 1_000,
            parents: parents.iter().filter(|section| section.contains(&index)).cloned().collect(),
            ..candidate("a", index, "text", 1.0 - rank as f64 / 16.0)
        };
        indexes.iter().enumerate().map(chunk).collect()
    }

    #[track_caller]
    fn check(near: Near, found: &[Candidate], expected: &[(usize, Range<u32>)]) {
        let (beside, cut) = Neighborhood(vec![near]).beside(found, &[], usize::MAX);
        let beside: Vec<_> = beside.into_iter().map(|beside| (beside.candidate, beside.numbers)).collect();
        assert_eq!((beside.as_slice(), cut), (expected, None));
    }

    #[test]
    fn sides_end_with_the_document() {
        let found = found(&[2, 998], &[]);
        check(Near::Beside { ranks: 2, side: Side::both(20) }, &found, &[(0, 0..23), (1, 978..1_000)]);
        check(Near::Beside { ranks: 1, side: Side::before(1) }, &found, &[(0, 1..3)]);
        check(Near::Section { ranks: 9, radius: 64 }, &found, &[(0, 0..67), (1, 934..1_000)]);
        check(Near::Beside { ranks: 2, side: Side::both(usize::MAX) }, &found, &[(0, 0..1_000), (1, 0..1_000)]);
    }

    #[test]
    fn sections_are_whole_until_enough_of_them_are_met() {
        let found = found(&[4, 5, 700, 30], &[0..10, 20..40, 600..900, 0..1_000]);
        let parents = |level, sections| Near::Parents { level, sections, inside: Side::NONE, outside: Side::both(1) };
        check(parents(0, 2), &found, &[(0, 0..10), (1, 0..10), (2, 600..900)]);
        check(parents(1, 1), &found, &[(0, 0..1_000)]);
        check(parents(0, 2), &self::found(&[4, 5], &[5..10]), &[(0, 3..6), (1, 5..10)]);
    }

    #[test]
    fn sections_merge_from_the_inside() {
        let merged = Near::Merged { ranks: 9, share: 0.5, outside: Side::both(15) };
        check(merged, &found(&[0, 2], &[0..4, 0..6]), &[(0, 0..2), (0, 0..4), (0, 0..6)]);
        check(merged, &found(&[0, 1], &[0..4, 0..6]), &[]);
    }

    #[test]
    fn what_lies_between_is_offered_where_a_run_can_hold_it() {
        let between = |documents, run_max| Near::Between { ranks: 200, documents, run_max };
        check(between(10, 40), &found(&[50, 11, 90], &[]), &[(1, 11..51)]);
        check(between(10, 41), &found(&[50, 11, 90], &[]), &[(1, 11..51), (2, 50..91)]);
        let mut two = found(&[50, 11, 12], &[]);
        two[1].document = "b".into();
        two[2].document = "b".into();
        check(between(1, 40), &two, &[]);
        check(between(2, 40), &two, &[]);
    }

    #[test]
    fn what_is_too_much_is_cut_behind_the_best_and_told() {
        let beside = Neighborhood(vec![Near::Beside { ranks: 3, side: Side::both(10) }]);
        let found = found(&[500, 505, 100], &[]);
        let (offered, cut) = beside.beside(&found, &[], 28);
        let numbers: Vec<_> = offered.iter().map(|beside| beside.numbers.clone()).collect();
        assert_eq!(numbers, [490..511, 495..516, 99..102]);
        let cut = cut.unwrap();
        assert_eq!((cut.ranks, cut.found), (2, 3));
        assert!(cut.to_string().contains("the first 2 of 3"), "{cut}");
        assert_eq!(beside.beside(&found, &[], 46).1, None);
        assert_eq!(beside.beside(&found, &["a#500".into()], usize::MAX).0.len(), 2, "excluded ones have none");
        assert_eq!(beside.beside(&found, &["a".into()], usize::MAX).0, []);
    }
}
