//! Twins of the strategies that find small and deliver big: windows, sections, merged sections.

use super::*;
use crate::question::QueryKind;
use crate::strategies::automerge::Automerge;
use crate::strategies::parent::{Fallback, Parent};
use crate::strategies::window::{Boundary, Window};
use std::collections::BTreeMap;

fn windows(random: &mut Random) -> Window {
    Window {
        radius: random.of(&[0, 1, 2, 3, 20]),
        radius_by_type: random.some(&[0, 1, 4]).map(|radius| ("d1".to_owned(), radius)).into_iter().collect(),
        radius_by_query: random.some(&[0, 2, 5]).map(|radius| (QueryKind::of(QUERY), radius)).into_iter().collect(),
        max_tokens: random.of(&[1, 30, 80, 1500]),
        boundary: random.of(&[Boundary::Document, Boundary::Section]),
        ..Window::default()
    }
}

/// Chunks up to `radius` before and behind one, as far as they are offered without a gap and inside the boundary.
fn around(case: &Case, at: usize, radius: i64, boundary: Boundary) -> Vec<usize> {
    let chunk = &case.pool[at];
    let is_inside = |index: u32| match chunk.parents.first() {
        Some(section) if boundary == Boundary::Section => section.contains(&index),
        _ => true,
    };
    let beside = |step: i64| -> Vec<usize> {
        let indexes = (1..=radius).map(|n| u32::try_from(i64::from(chunk.index) + step * n).ok());
        indexes.map_while(|index| chunk_at(case, &chunk.document, index.filter(|&index| is_inside(index))?)).collect()
    };
    let mut before = beside(-1);
    before.reverse();
    [before, vec![at], beside(1)].concat()
}

/// A chunk's windows from the widest within the encoder's tokens to the chunk alone.
fn windows_around(case: &Case, at: usize, settings: &Window) -> Vec<Vec<usize>> {
    let by_type = settings.radius_by_type.get(&case.pool[at].document);
    let by_query = settings.radius_by_query.values().next();
    let radius = match (by_type, by_query) {
        (Some(one), Some(other)) => *one.max(other),
        (Some(only), None) | (None, Some(only)) => *only,
        (None, None) => settings.radius,
    };
    let within = |form: &Vec<usize>| length(case, form) <= settings.max_tokens || form.len() == 1;
    let radii = (0..=radius as i64).rev();
    radii.map(|radius| around(case, at, radius, settings.boundary)).filter(within).collect()
}

fn length(case: &Case, form: &[usize]) -> usize {
    form.iter().map(|&at| case.pool[at].n_tokens as usize).sum()
}

#[test]
fn window() {
    let settings = |random: &mut Random| Policy { window: windows(random), ..Policy::default() };
    check(Strategy::Window, SIZE, settings, |case, policy| {
        let wanted = |at: usize| Wanted {
            value: Some(case.pool[at].relevance),
            forms: windows_around(case, at, &policy.window),
        };
        walk(case, &ranking(case).into_iter().map(wanted).collect::<Vec<_>>())
    });
}

#[test]
fn parent() {
    let settings = |random: &mut Random| Policy {
        parent: Parent {
            hierarchy_depth: random.of(&[2, 3, 9]),
            max_tokens: random.of(&[1, 40, 100, 1500]),
            max_context_blocks: random.of(&[1, 2, 4]),
            fallback: random.of(&[Fallback::Window, Fallback::Linear, Fallback::None]),
        },
        window: windows(random),
        ..Policy::default()
    };
    check(Strategy::Parent, SIZE, settings, |case, policy| {
        let mut wanted: Vec<Wanted> = Vec::new();
        for at in ranking(case) {
            let chunk = &case.pool[at];
            let level = (policy.parent.hierarchy_depth - 2).min(chunk.parents.len().saturating_sub(1));
            let windows = windows_around(case, at, &policy.window);
            let forms = match (chunk.parents.get(level), policy.parent.fallback) {
                (None, Fallback::None) => continue,
                (None, _) => windows,
                (Some(section), fallback) => {
                    let mut forms = vec![part_around(case, at, section, policy.parent.max_tokens)];
                    forms.extend(windows.into_iter().filter(|_| fallback == Fallback::Window));
                    forms
                }
            };
            let is_new = !wanted.iter().any(|other: &Wanted| other.forms[0] == forms[0]);
            if wanted.len() < policy.parent.max_context_blocks && is_new {
                wanted.push(Wanted { value: Some(chunk.relevance), forms });
            }
        }
        walk(case, &wanted)
    });
}

/// Of a section in parts of at most so many encoder tokens, the part that has a chunk.
fn part_around(case: &Case, at: usize, section: &Range<u32>, max_tokens: usize) -> Vec<usize> {
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    for index in section.clone() {
        let Some(chunk) = chunk_at(case, &case.pool[at].document, index) else { continue };
        let part = parts.last_mut().unwrap();
        part.push(chunk);
        if part.len() > 1 && length(case, part) > max_tokens {
            part.pop();
            parts.push(vec![chunk]);
        }
    }
    parts.into_iter().find(|part| part.contains(&at)).unwrap()
}

#[test]
fn automerge() {
    let settings = |random: &mut Random| Policy {
        automerge: Automerge { k: random.of(&[1, 3, 6, 12]), ratio: random.of(&[0.0, 0.25, 0.5, 0.75]) },
        ..Policy::default()
    };
    check(Strategy::Automerge, SIZE, settings, |case, policy| {
        let Automerge { k, ratio } = policy.automerge;
        let found: Vec<usize> = ranking(case).into_iter().take(k).collect();
        type Form = (f64, Vec<usize>);
        let mut blocks: Vec<(f64, Vec<usize>, Vec<Form>)> = Vec::new();
        for document in documents(case) {
            // First and last chunk of each node with its score: chunks found, and those between two of them.
            let mut nodes: BTreeMap<(u32, u32), f64> = BTreeMap::new();
            let score = |index: u32| {
                let at = chunk_at(case, document, index)?;
                found.contains(&at).then_some(case.pool[at].relevance)
            };
            for chunk in case.pool.iter().filter(|chunk| chunk.document == document) {
                let at = chunk.index;
                let between = || Some((score(at.checked_sub(1)?)? + score(at + 1)?) / 2.0);
                if let Some(score) = score(at).or_else(between) {
                    nodes.insert((at, at), score);
                }
            }
            let single = nodes.clone();
            for section in sections(case, document) {
                let within: Vec<(u32, u32)> =
                    nodes.keys().copied().filter(|(a, b)| section.contains(a) && section.contains(b)).collect();
                let covered: u32 = within.iter().map(|(a, b)| b - a + 1).sum();
                if section.len() > 1 && f64::from(covered) > ratio * section.len() as f64 {
                    let sum: f64 = within.iter().map(|node| nodes.remove(node).unwrap()).sum();
                    nodes.insert((section.start, section.end - 1), sum / within.len() as f64);
                }
            }
            for ((first, last), score) in nodes {
                let form = (first..=last).filter_map(|index| chunk_at(case, document, index)).collect();
                // What does not fit leaves its place to the nodes it was merged from, best first.
                let mut within: Vec<(f64, u32)> = single
                    .iter()
                    .filter(|((index, _), _)| first < last && (first..=last).contains(index))
                    .map(|((index, _), &score)| (score, *index))
                    .collect();
                within.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap());
                let of_one = |&(score, index): &(f64, u32)| (score, vec![chunk_at(case, document, index).unwrap()]);
                blocks.push((score, form, within.iter().map(of_one).collect()));
            }
        }
        blocks.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap()); // equal ones as they stand: by document and place
        let mut wanted: Vec<Wanted> = Vec::new();
        for (score, form, within) in blocks {
            wanted.push(Wanted::one(form, score));
            wanted.extend(within.into_iter().map(|(score, form)| Wanted::one(form, score)));
        }
        walk(case, &wanted)
    });
}

/// The sections of a document, smallest first; without headings runs of 4 and of 16 chunks.
fn sections(case: &Case, document: &str) -> Vec<Range<u32>> {
    let chunks = || case.pool.iter().filter(|chunk| chunk.document == document);
    let mut sections: Vec<Range<u32>> = chunks().flat_map(|chunk| chunk.parents.clone()).collect();
    if sections.is_empty() {
        let end = chunks().map(|chunk| chunk.index + 1).max().unwrap();
        let run = |start: u32, width: u32| start..(start + width).min(end);
        sections.extend((0..end).step_by(4).map(|start| run(start, 4)));
        sections.extend((0..end).step_by(16).map(|start| run(start, 16)));
    }
    sections.sort_by_key(|section| (section.len(), section.start));
    sections.dedup();
    sections
}
