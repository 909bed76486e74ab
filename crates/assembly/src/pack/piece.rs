//! Pieces: chosen chunks of one document that touch, with what their header says and what they cite.

use crate::candidate::Candidate;
use crate::cite::{Anchor, Citation, Extent};
use crate::rank::best_first;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A chosen chunk, or the part of it that is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) candidate: usize,
    /// Bytes of the chunk's text; none: all of it.
    pub(crate) part: Option<Range<usize>>,
}

/// Excerpts of one document that touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) candidates: Vec<usize>,
    /// Bytes of the only chunk's text, where it is cut.
    pub(crate) part: Option<Range<usize>>,
    /// Chunks left out since the piece before, of the same document.
    pub(crate) omitted: u32,
    pub(crate) head: Head,
}

/// The lines or tags above the text of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Head {
    /// Of full marks: a header of its own.
    Header(Form),
    /// Of lean marks, above the first of a source's pieces: its mark, with this name.
    Source(String),
    /// Of lean marks, above a piece that goes on in the source of the one before: an omission.
    Same,
}

/// The fullness of a header. The fullest that keeps to its share of the budget is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Mark, document, heading path, place in the file, span.
    Full,
    /// Mark, document, place in the file, span.
    Document,
    /// The mark alone.
    Mark,
}

pub(crate) const FORMS: [Form; 3] = [Form::Full, Form::Document, Form::Mark];

/// The header above the text of a piece.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    pub(crate) n: usize,
    pub(crate) document: &'a str,
    pub(crate) path: Vec<&'a str>,
    pub(crate) anchor: Anchor,
    pub(crate) span: Range<u64>,
    pub(crate) source: &'a str,
    pub(crate) cut: bool,
}

/// Pieces of the excerpts of one document, which must be in the order of their chunks.
pub(crate) fn pieces_of_document(candidates: &[&Candidate], excerpts: &[Excerpt]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for excerpt in excerpts {
        let chunk = candidates[excerpt.candidate];
        let before = pieces.last().map(|piece| piece.last(candidates));
        match (pieces.last_mut(), before) {
            (Some(piece), Some(before)) if touch(before, chunk) && piece.part.is_none() && excerpt.part.is_none() => {
                piece.candidates.push(excerpt.candidate);
            }
            (_, before) => {
                let omitted = before.map_or(0, |before| chunk.index - before.index - 1);
                pieces.push(Piece {
                    candidates: vec![excerpt.candidate],
                    part: excerpt.part.clone(),
                    omitted,
                    head: Head::Header(Form::Full),
                });
            }
        }
    }
    pieces
}

fn touch(before: &Candidate, after: &Candidate) -> bool {
    before.index + 1 == after.index && before.span.end == after.span.start
}

/// Excerpts by document, documents by their best score before the length penalty (which says what a chunk costs, not
/// what it is worth to the reader), then id descending; within a document in its order.
pub(crate) fn in_document_order(candidates: &[&Candidate], scores: &[f64], excerpts: &[Excerpt]) -> Vec<Vec<Excerpt>> {
    let mut documents: BTreeMap<&str, (f64, Vec<Excerpt>)> = BTreeMap::new();
    for excerpt in excerpts {
        let entry = documents.entry(&candidates[excerpt.candidate].document).or_insert((f64::NEG_INFINITY, Vec::new()));
        entry.0 = entry.0.max(scores[excerpt.candidate]);
        entry.1.push(excerpt.clone());
    }
    let mut ordered: Vec<_> = documents.into_iter().collect();
    ordered.sort_by(|a, b| best_first((a.1.0, a.0), (b.1.0, b.0)));
    ordered
        .into_iter()
        .map(|(_, (_, mut excerpts))| {
            excerpts.sort_by_key(|excerpt| candidates[excerpt.candidate].index);
            excerpts
        })
        .collect()
}

impl Piece {
    pub(crate) fn first<'a>(&self, candidates: &[&'a Candidate]) -> &'a Candidate {
        candidates[self.candidates[0]]
    }

    pub(crate) fn last_candidate(&self) -> usize {
        *self.candidates.last().expect("no piece is empty")
    }

    fn last<'a>(&self, candidates: &[&'a Candidate]) -> &'a Candidate {
        candidates[self.last_candidate()]
    }

    fn span(&self, candidates: &[&Candidate]) -> Range<u64> {
        let first = self.first(candidates);
        match &self.part {
            Some(part) => first.span.start + part.start as u64..first.span.start + part.end as u64,
            None => first.span.start..self.last(candidates).span.end,
        }
    }

    /// From its first chunk to its last; of a cut chunk that has several lines, those of the part.
    fn anchor(&self, candidates: &[&Candidate]) -> Anchor {
        let first = self.first(candidates);
        let mut anchor = first.anchor.through(&self.last(candidates).anchor);
        if let (Some(part), Some(line)) = (&self.part, anchor.line.filter(|line| line.first < line.last)) {
            anchor.line = Some(Extent::lines(line.first, &first.text, part.clone()));
        }
        anchor
    }

    /// Says if words of the chunk are missing; white space at its ends is no loss.
    pub(crate) fn is_cut(&self, candidates: &[&Candidate]) -> bool {
        let text = &self.first(candidates).text;
        self.part.as_ref().is_some_and(|part| text[part.clone()].trim() != text.trim())
    }

    pub(crate) fn header<'a>(&self, candidates: &[&'a Candidate], n: usize) -> Header<'a> {
        let first = self.first(candidates);
        let title =
            [first.title.as_str()].into_iter().filter(|title| !title.is_empty() && !first.document.contains(title));
        let path =
            if first.path.is_empty() { title.collect() } else { first.path.iter().map(String::as_str).collect() };
        Header {
            n,
            document: &first.document,
            path,
            anchor: self.anchor(candidates),
            span: self.span(candidates),
            source: first.source,
            cut: self.is_cut(candidates),
        }
    }

    pub(super) fn text<'a>(&self, candidates: &[&'a Candidate]) -> Cow<'a, str> {
        let first = self.first(candidates);
        match (&self.part, self.candidates.as_slice()) {
            (Some(part), _) => Cow::Borrowed(&first.text[part.clone()]),
            (None, [_]) => Cow::Borrowed(&first.text),
            (None, many) => Cow::Owned(many.iter().map(|&at| candidates[at].text.as_str()).collect()),
        }
    }

    fn citation(&self, candidates: &[&Candidate], n: usize) -> Citation {
        let first = self.first(candidates);
        Citation {
            n,
            document: first.document.clone(),
            path: first.path.clone(),
            span: self.span(candidates),
            source: first.source.into(),
            anchor: self.anchor(candidates),
            chunks: self.candidates.iter().map(|&at| candidates[at].id.clone()).collect(),
            cut: self.is_cut(candidates),
        }
    }
}

/// One citation a piece, in the order of the context.
pub(crate) fn citations(candidates: &[&Candidate], pieces: &[Piece]) -> Vec<Citation> {
    let numbers = numbers(candidates, pieces);
    pieces.iter().zip(numbers).map(|(piece, n)| piece.citation(candidates, n)).collect()
}

/// The number of each piece: its own in full marks, that of its source in lean ones, where the sources are counted as
/// they first come.
pub(super) fn numbers(candidates: &[&Candidate], pieces: &[Piece]) -> Vec<usize> {
    let mut sources: HashMap<&str, usize> = HashMap::new();
    let mut number = |(at, piece): (usize, &Piece)| match piece.head {
        Head::Header(_) => at + 1,
        Head::Source(_) | Head::Same => {
            let n = sources.len() + 1;
            *sources.entry(&piece.first(candidates).document).or_insert(n)
        }
    };
    pieces.iter().enumerate().map(&mut number).collect()
}
