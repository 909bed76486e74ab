//! Lines: the candidates as they lie in their documents, which is what segments are cut from.

use crate::candidate::Candidate;
use std::ops::Range;

/// Candidates by document (ascending id) and chunk number; a place is an index into that order.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Candidate at each place.
    pub(crate) candidates: Vec<usize>,
    /// Places of each document.
    pub(crate) documents: Vec<Range<usize>>,
    /// For each place the chunks between it and the place before it in its document, 0 where they touch; none where a
    /// document starts.
    pub(crate) skipped: Vec<Option<u32>>,
    place_of: Vec<usize>,
    /// Number of the document at each place.
    document_of: Vec<usize>,
}

impl Lines {
    pub(crate) fn new(candidates: &[&Candidate]) -> Self {
        let key = |&at: &usize| (candidates[at].document.as_str(), candidates[at].index);
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        // By id, nearly all of them stand document by document.
        for document in order.chunk_by_mut(|&a, &b| candidates[a].document == candidates[b].document) {
            document.sort_unstable_by_key(|&at| candidates[at].index);
        }
        if !order.is_sorted_by(|a, b| key(a) < key(b)) {
            order.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        }
        let mut lines = Self {
            candidates: order,
            documents: Vec::new(),
            skipped: Vec::with_capacity(candidates.len()),
            place_of: vec![0; candidates.len()],
            document_of: Vec::with_capacity(candidates.len()),
        };
        for (place, &at) in lines.candidates.iter().enumerate() {
            lines.place_of[at] = place;
            let before = place.checked_sub(1).map(|before| candidates[lines.candidates[before]]);
            let before = before.filter(|before| before.document == candidates[at].document);
            lines.skipped.push(before.map(|before| candidates[at].index - before.index - 1));
            match (before, lines.documents.last_mut()) {
                (Some(_), Some(document)) => document.end = place + 1,
                _ => lines.documents.push(place..place + 1),
            }
            lines.document_of.push(lines.documents.len() - 1);
        }
        lines
    }

    pub(crate) fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Place of a candidate.
    pub(crate) fn place(&self, candidate: usize) -> usize {
        self.place_of[candidate]
    }

    /// Says if a place touches the one before it.
    pub(crate) fn touches(&self, place: usize) -> bool {
        self.skipped.get(place).is_some_and(|skipped| *skipped == Some(0))
    }

    /// Number of the document that a place is in.
    pub(crate) fn document_number(&self, place: usize) -> usize {
        self.document_of[place]
    }

    /// Places of the document that a place is in.
    pub(crate) fn document(&self, place: usize) -> Range<usize> {
        self.documents[self.document_number(place)].clone()
    }

    /// The places that follow each other without a gap around `place`, at most `radius` on either side.
    pub(crate) fn around(&self, place: usize, radius: usize) -> Range<usize> {
        let (mut first, mut last) = (place, place);
        while place - first < radius && self.touches(first) {
            first -= 1;
        }
        while last - place < radius && self.touches(last + 1) {
            last += 1;
        }
        first..last + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;

    #[test]
    fn documents_lie_side_by_side_however_their_ids_mix() {
        let mut chunks: Vec<Candidate> = [("a", 10), ("a", 2), ("a!", 0), ("a", 0), ("b", 1), ("a!", 3)]
            .map(|(document, index)| candidate(document, index, "text", 0.5))
            .to_vec();
        for sort in [true, false] {
            if sort {
                chunks.sort_by(|a, b| a.id.cmp(&b.id)); // "a!#0" stands before "a#0"
            }
            let candidates: Vec<&Candidate> = chunks.iter().collect();
            let lines = Lines::new(&candidates);
            let order: Vec<&str> = lines.candidates.iter().map(|&at| candidates[at].id.as_str()).collect();
            assert_eq!(order, ["a#0", "a#2", "a#10", "a!#0", "a!#3", "b#1"]);
            assert_eq!(lines.documents, [0..3, 3..5, 5..6]);
            chunks.reverse();
        }
    }
}
