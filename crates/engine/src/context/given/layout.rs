//! Layout: from candidates with places of any form to chunks along a document, no text twice.
//!
//! By spans, bytes or characters, passages touch where one ends at the byte at which the next begins, or where no more
//! than a blank line was dropped between them, as splitters do. By numbers, passages touch whose numbers follow each
//! other. Without places none touch. Between two that touch stands a line break where neither has white space there.

use std::cmp::Ordering;
use std::ops::Range;

use super::candidate::{GivenCandidate, by_document, wrong};
use super::claims::{Claim, Text, settle};
use super::sections::sections;
use crate::cancel::Cancel;
use crate::error::Result;

/// The most that may be missing between two passages that touch: a blank line, in bytes or characters.
const BLANK_MAX: u64 = 2;

/// The unit of the places of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    Bytes,
    Characters,
    Numbers,
    Nothing,
}

/// A candidate's text, or a part of it, at its place.
#[derive(Debug)]
pub(super) struct Laid {
    /// The number of the candidate.
    pub(super) given: usize,
    /// Bytes of its text.
    pub(super) part: Range<usize>,
    /// White space behind it, of nobody's text.
    pub(super) joint: String,
    /// Number of the chunk: touching ones follow each other, others do not.
    pub(super) index: u32,
    pub(super) n_chunks: u32,
    /// The byte at which it begins: of the document where places are bytes, else of the texts one behind the other.
    pub(super) start: u64,
    pub(super) unit: Unit,
    /// Numbers of the chunks of each section around it, innermost first.
    pub(super) parents: Vec<Range<u32>>,
}

/// A part of a candidate, before it has its number.
struct Piece {
    given: usize,
    part: Range<usize>,
    place: Option<Range<u64>>,
}

/// The chunks that candidates become, by document and place.
///
/// # Errors
/// [`Error::Setting`](crate::Error::Setting) where candidates contradict each other.
pub(super) fn lay_out(given: &[GivenCandidate], cancel: &Cancel) -> Result<Vec<Laid>> {
    let mut laid = Vec::with_capacity(given.len());
    for numbers in by_document(given).values() {
        cancel.check()?;
        let unit = unit(given, numbers)?;
        let mut document = placed(given, pieces(given, numbers, unit)?, unit);
        let headings = document.iter().map(|laid| (laid.index, given[laid.given].headings.as_slice()));
        let parents = sections(headings);
        document.iter_mut().zip(parents).for_each(|(laid, parents)| laid.parents = parents);
        laid.append(&mut document);
    }
    Ok(laid)
}

fn unit(given: &[GivenCandidate], numbers: &[usize]) -> Result<Unit> {
    let of = |at: usize| match &given[at] {
        GivenCandidate { span: Some(_), .. } => Unit::Bytes,
        GivenCandidate { characters: Some(_), .. } => Unit::Characters,
        GivenCandidate { number: Some(_), .. } => Unit::Numbers,
        _ => Unit::Nothing,
    };
    let unit = of(numbers[0]);
    match numbers.iter().find(|&&at| of(at) != unit) {
        None => Ok(unit),
        Some(&other) => {
            let reason = format!(
                "has its place in another form than candidate [{}] of the same document; give all of a document \
                 theirs in one form, or none",
                numbers[0]
            );
            Err(wrong(other, reason))
        }
    }
}

/// Parts of the candidates of a document in its order, none of them twice.
fn pieces(given: &[GivenCandidate], numbers: &[usize], unit: Unit) -> Result<Vec<Piece>> {
    let mut best: Vec<usize> = numbers.to_vec();
    best.sort_by(|&a, &b| better(&given[a], &given[b]));
    let whole = |at: usize| Piece { given: at, part: 0..given[at].text.len(), place: None };
    match unit {
        Unit::Nothing => {
            let mut seen = std::collections::HashSet::new();
            Ok(best.into_iter().filter(|&at| seen.insert(&given[at].text)).map(whole).collect())
        }
        Unit::Numbers => {
            best.sort_by_key(|&at| given[at].number); // stable: the best of each number comes first
            let twice = |pair: &&[usize]| {
                given[pair[0]].number == given[pair[1]].number && given[pair[0]].text != given[pair[1]].text
            };
            if let Some(pair) = best.windows(2).find(twice) {
                let (first, second) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
                let reason = format!("has the number of candidate [{first}] of the same document, and another text");
                return Err(wrong(second, reason));
            }
            best.dedup_by_key(|&mut at| given[at].number);
            Ok(best.into_iter().map(whole).collect())
        }
        Unit::Bytes | Unit::Characters => {
            let claim = |at: usize| {
                let GivenCandidate { text, span, characters, .. } = &given[at];
                let (place, text) = match unit {
                    Unit::Bytes => (span, Text::bytes(text)),
                    _ => (characters, Text::characters(text)),
                };
                Claim { given: at, place: place.clone().unwrap_or_default(), text }
            };
            let claims: Vec<Claim<'_>> = best.into_iter().map(claim).collect();
            let pieces = settle(&claims)?.into_iter().map(|(place, at)| {
                let claim = &claims[at];
                Piece { given: claim.given, part: claim.part(&place), place: Some(place) }
            });
            let is_blank = |piece: &Piece| given[piece.given].text[piece.part.clone()].trim().is_empty();
            Ok(pieces.filter(|piece| !is_blank(piece)).collect())
        }
    }
}

/// Numbers and bytes of the pieces of a document.
fn placed(given: &[GivenCandidate], pieces: Vec<Piece>, unit: Unit) -> Vec<Laid> {
    let mut laid: Vec<Laid> = Vec::with_capacity(pieces.len());
    let mut until = 0; // where the piece before ends in the document
    for Piece { given: at, part, place } in pieces {
        let missing = place.as_ref().map_or(u64::MAX, |place| place.start - until);
        let (mut index, mut start) = (0, 0);
        if let Some(before) = laid.last_mut() {
            let touches = match unit {
                Unit::Bytes | Unit::Characters => missing <= BLANK_MAX,
                Unit::Numbers => given[at].number == Some(before.index + 1),
                Unit::Nothing => false,
            };
            let ends = |text: &str| text.ends_with(char::is_whitespace);
            let blank = ends(&given[before.given].text[before.part.clone()])
                || given[at].text[part.clone()].starts_with(char::is_whitespace);
            before.joint = match (touches, unit) {
                (false, _) => String::new(),
                (true, Unit::Bytes) => "\n".repeat(missing as usize),
                (true, Unit::Characters) if missing == 0 => String::new(),
                (true, _) if blank => String::new(),
                (true, _) => "\n".to_owned(),
            };
            let end = before.start + (before.part.len() + before.joint.len()) as u64;
            (index, start) = (before.index + if touches { 1 } else { 2 }, end + u64::from(!touches));
        }
        index = given[at].number.unwrap_or(index);
        if let (Unit::Bytes, Some(place)) = (unit, &place) {
            start = place.start;
        }
        until = place.map_or(until, |place| place.end);
        let (joint, parents) = (String::new(), Vec::new());
        laid.push(Laid { given: at, part, joint, index, n_chunks: 0, start, unit, parents });
    }
    let n_chunks = laid.last().map_or(0, |last| last.index + 1);
    laid.iter_mut().for_each(|laid| laid.n_chunks = n_chunks);
    laid
}

/// The better candidate first; of equal ones the first by place, text and all else, never by its number.
fn better(a: &GivenCandidate, b: &GivenCandidate) -> Ordering {
    let score = |given: &GivenCandidate| given.score.map_or(f64::NEG_INFINITY, |score| score + 0.0);
    let place = |given: &GivenCandidate| {
        let place = given.span.as_ref().or(given.characters.as_ref());
        place.map(|place| (place.start, place.end))
    };
    let bits =
        |given: &GivenCandidate| given.vector.as_ref().map(|of| of.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    let order = score(b).total_cmp(&score(a)).then_with(|| place(a).cmp(&place(b)));
    let order = order.then_with(|| (&a.text, &a.headings, &a.title).cmp(&(&b.text, &b.headings, &b.title)));
    order.then_with(|| bits(a).cmp(&bits(b)))
}
