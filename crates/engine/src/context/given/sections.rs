//! Sections: the runs of a document's chunks that stand under the same headings.
//!
//! Cost: linear in the headings.

use std::ops::Range;

/// The numbers of the chunks of each section that a chunk lies in, innermost first, for each of a document's chunks:
/// their numbers, and the headings that they stand under.
pub(super) fn sections<'h>(chunks: impl Iterator<Item = (u32, &'h [String])>) -> Vec<Vec<Range<u32>>> {
    let mut sections: Vec<Range<u32>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut within: Vec<Vec<usize>> = Vec::new();
    let mut before: &[String] = &[];
    for (index, headings) in chunks {
        let shared = before.iter().zip(headings).take_while(|(a, b)| a == b).count();
        open.truncate(shared);
        for _ in shared..headings.len() {
            open.push(sections.len());
            sections.push(index..index);
        }
        open.iter().for_each(|&section| sections[section].end = index + 1);
        within.push(open.iter().rev().copied().collect());
        before = headings;
    }
    let ranges = |within: Vec<usize>| within.into_iter().map(|section| sections[section].clone()).collect();
    within.into_iter().map(ranges).collect()
}
