//! Windows, sections and merged sections by hand.

use crate::candidate::Candidate;
use crate::line::Lines;
use crate::select::block::Plan;
use crate::select::decision::BoundaryStop;
use crate::strategies::automerge::{Automerge, automerge};
use crate::strategies::parent::{Fallback, Parent, parent};
use crate::strategies::window::{Boundary, Window, window};
use crate::tests::candidate;
use crate::value::prior::{self, Scored};
use std::ops::Range;

/// Chunks of document `a` with their scores, sections as `parents` says; the pool is in the order of the scores. Score
/// 0: not found; below 0: not offered.
fn check(
    scores: &[f64],
    parents: &[Range<u32>],
    plan: impl Fn(&[&Candidate], &[Scored], &Lines) -> Plan,
    expected: &[&[u32]],
) {
    let chunks: Vec<Candidate> = scores
        .iter()
        .enumerate()
        .filter(|(_, score)| **score >= 0.0)
        .map(|(index, &score)| Candidate {
            n_tokens: 10,
            is_neighbor: score == 0.0,
            parents: parents.iter().filter(|range| range.contains(&(index as u32))).cloned().collect(),
            ..candidate("a", index as u32, &format!("text {index}"), score)
        })
        .collect();
    let candidates: Vec<&Candidate> = chunks.iter().collect();
    let pool = prior::by_relevance(&candidates).pool;
    let found = plan(&candidates, &pool, &Lines::new(&candidates));
    let blocks: Vec<Vec<u32>> =
        found.blocks.iter().map(|block| block.candidates.iter().map(|&at| candidates[at].index).collect()).collect();
    assert_eq!(blocks, expected);
}

#[test]
fn a_window_has_as_many_chunks_on_either_side() {
    let window = |radius, max_tokens| {
        move |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
            window(candidates, pool, lines, &Window { radius, max_tokens, ..Window::default() }.asked(""))
        }
    };
    // "hello. foo bar. cat dog. mouse" around "foo bar.", which LlamaIndex cuts short by one.
    check(&[0.0, 0.9, 0.0, 0.0], &[], window(1, 1500), &[&[0, 1, 2]]);
    check(&[0.9, 0.0, 0.0, 0.0], &[], window(2, 1500), &[&[0, 1, 2]]);
    check(&[0.0, 0.0, 0.0, 0.9], &[], window(2, 1500), &[&[1, 2, 3]]);
    check(&[0.0, 0.0, 0.9, 0.0, 0.0], &[], window(2, 30), &[&[1, 2, 3]]);
    check(&[0.0, 0.9, 0.0], &[], window(2, 5), &[&[1]]);
}

#[test]
fn a_window_stays_in_its_section_if_told_and_the_edges_it_meets_are_kept() {
    let settings = Window { radius: 3, boundary: Boundary::Section, log_boundaries: true, ..Window::default() };
    let scores = [0.0, 0.9, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0];
    let section = |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
        let plan = window(candidates, pool, lines, &settings.asked(""));
        let stop = |chunk_id: &str, before, after| BoundaryStop {
            chunk_id: chunk_id.into(),
            boundary: Boundary::Section,
            before,
            after,
        };
        assert_eq!(plan.boundaries, [stop("a#1", 2, 1), stop("a#5", 1, 0)], "a#5 lies in 3..9");
        plan
    };
    check(&scores, &[0..4, 3..9], section, &[&[0, 1, 2, 3], &[3, 4, 5, 6, 7, 8]]);
    let document = |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
        let plan =
            window(candidates, pool, lines, &Window { boundary: Boundary::Document, ..settings.clone() }.asked(""));
        let stops: Vec<_> =
            plan.boundaries.iter().map(|stop| (stop.chunk_id.as_str(), stop.before, stop.after)).collect();
        assert_eq!(stops, [("a#1", 2, 0)]);
        plan
    };
    check(&scores, &[0..4], document, &[&[0, 1, 2, 3, 4], &[2, 3, 4, 5, 6, 7, 8]]);
}

#[test]
fn without_a_fallback_a_chunk_in_no_section_is_left_out() {
    let parent = |fallback| {
        move |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
            let window = Window { radius: 1, ..Window::default() };
            let plan = parent(candidates, pool, lines, &Parent { fallback, ..Parent::default() }, &window.asked(""));
            assert_eq!(plan.blocks.iter().any(|block| !block.narrower.is_empty()), fallback != Fallback::None);
            plan
        }
    };
    let scores = [0.0, 0.9, 0.0, 0.0, 0.8, 0.0];
    check(&scores, &[3..6], parent(Fallback::Window), &[&[0, 1, 2], &[3, 4, 5]]);
    check(&scores, &[3..6], parent(Fallback::Linear), &[&[0, 1, 2], &[3, 4, 5]]);
    check(&scores, &[3..6], parent(Fallback::None), &[&[3, 4, 5]]);
}

#[test]
fn a_parent_is_its_section_once_and_a_long_one_by_parts() {
    let parent = |max_tokens, max_context_blocks| {
        move |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
            let settings = Parent { max_tokens, max_context_blocks, ..Parent::default() };
            parent(candidates, pool, lines, &settings, &Window { radius: 1, ..Window::default() }.asked(""))
        }
    };
    let sections = [0..3, 3..8];
    check(&[0.9, 0.8, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0], &sections, parent(1500, 4), &[&[0, 1, 2], &[3, 4, 5, 6, 7]]);
    check(&[0.9, 0.8, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0], &sections, parent(1500, 1), &[&[0, 1, 2]]);
    check(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.9, 0.0, 0.8], &sections, parent(20, 4), &[&[5, 6], &[7]]);
    check(&[0.0, 0.9, 0.0, 0.0], &[], parent(1500, 4), &[&[0, 1, 2]]);
}

#[test]
fn sections_merge_above_the_ratio_and_level_by_level() {
    let merge = |ratio| {
        move |candidates: &[&Candidate], pool: &[Scored], lines: &Lines| {
            automerge(candidates, pool, lines, &Automerge { k: 12, ratio })
        }
    };
    // Two of four is half: not more than half. What a section was merged from is offered behind it.
    check(&[0.9, 0.8, 0.0, 0.0], &[0..4], merge(0.5), &[&[0], &[1]]);
    check(&[0.7, 0.9, 0.8, 0.0], &[0..4], merge(0.5), &[&[0, 1, 2, 3], &[1], &[2], &[0]]);
    // A chunk between two that are found is filled in, once.
    check(&[0.9, 0.0, 0.7, 0.0], &[0..4], merge(0.5), &[&[0, 1, 2, 3], &[0], &[1], &[2]]);
    check(&[0.9, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0], &[0..8], merge(0.5), &[&[0], &[1], &[2]]);
    // A section of one chunk is no merge; the one around it may still be.
    check(&[0.9, 0.0, 0.0, 0.0], &[0..1, 0..4], merge(0.5), &[&[0]]);
    let all: &[u32] = &[0, 1, 2, 3, 4, 5];
    check(&[0.9, 0.8, 0.7, 0.0, 0.6, 0.0], &[0..4, 0..6], merge(0.5), &[all, &[0], &[1], &[2], &[3], &[4]]);
    // A chunk between two that is not offered is not filled in, and a section counts all its chunks.
    check(&[0.9, -1.0, 0.7, 0.0], &[0..4], merge(0.5), &[&[0], &[2]]);
    // The inner section goes first: its mean is .5, and that of .5 and .9 is more than .65; the mean of four chunks
    // would be less.
    let scores = [0.9, 0.0, 0.0, 0.0, 0.4, 0.5, 0.6, 0.0, 0.0, 0.65];
    check(&scores, &[0..8, 4..8], merge(0.4), &[&[0, 1, 2, 3, 4, 5, 6, 7], &[0], &[6], &[5], &[4], &[9]]);
    // Without headings, aligned runs of four, then of sixteen.
    check(&[0.9, 0.8, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0], &[], merge(0.5), &[&[0, 1, 2, 3], &[0], &[1], &[2]]);
}
