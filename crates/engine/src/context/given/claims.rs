//! Claims: who of several passages of a document delivers the text that they share.
//!
//! The best passage has all of its text, the next what is left of its own: so nothing is delivered twice, a passage
//! that is chosen before others is whole, and what is left touches what took the rest.
//! Cost: a search in a tree for each piece; a shared byte is compared with its owner's once for each that shares it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::candidate::wrong;
use crate::error::Result;

/// Characters between two marks of [`Text`].
const STRIDE: usize = 256;

/// A text whose places are counted in bytes or in characters.
pub(super) struct Text<'t> {
    text: &'t str,
    /// The byte at which every [`STRIDE`]th character begins; empty where bytes are counted, or are characters.
    marks: Vec<usize>,
}

impl<'t> Text<'t> {
    pub(super) fn bytes(text: &'t str) -> Self {
        Self { text, marks: Vec::new() }
    }

    pub(super) fn characters(text: &'t str) -> Self {
        let marks = match text.is_ascii() {
            true => Vec::new(),
            false => text.char_indices().map(|(byte, _)| byte).step_by(STRIDE).collect(),
        };
        Self { text, marks }
    }

    /// The byte of a place.
    pub(super) fn byte(&self, place: u64) -> usize {
        let place = place as usize;
        let Some(&mark) = self.marks.get(place / STRIDE) else { return place.min(self.text.len()) };
        let rest = &self.text[mark..];
        mark + rest.char_indices().nth(place % STRIDE).map_or(rest.len(), |(byte, _)| byte)
    }
}

/// A passage that claims its text.
pub(super) struct Claim<'t> {
    /// The number of the candidate.
    pub(super) given: usize,
    /// Its place in the document.
    pub(super) place: Range<u64>,
    pub(super) text: Text<'t>,
}

impl Claim<'_> {
    /// Bytes of the text at a place of the document.
    pub(super) fn part(&self, place: &Range<u64>) -> Range<usize> {
        self.text.byte(place.start - self.place.start)..self.text.byte(place.end - self.place.start)
    }

    fn read(&self, place: &Range<u64>) -> &[u8] {
        &self.text.text.as_bytes()[self.part(place)]
    }
}

/// Places of a document in their order, each with the claim that has it; the first claims come first.
///
/// # Errors
/// [`Error::Setting`](crate::Error::Setting) where two claims say that another text stands at one place.
pub(super) fn settle(claims: &[Claim<'_>]) -> Result<Vec<(Range<u64>, usize)>> {
    let mut owned: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, claim) in claims.iter().enumerate() {
        let Range { start, end } = claim.place;
        let before = owned.range(..start).next_back().filter(|(_, (until, _))| *until > start);
        let taken: Vec<(u64, u64, usize)> = before
            .into_iter()
            .chain(owned.range(start..end))
            .map(|(&from, &(until, owner))| (from, until, owner))
            .collect();
        let mut free = start;
        for (from, until, owner) in taken {
            let shared = from.max(start)..until.min(end);
            let other = &claims[owner];
            if claim.read(&shared) != other.read(&shared) {
                let reason = format!(
                    "says that another text stands at {}-{} of {:?} than candidate [{}] says",
                    shared.start,
                    shared.end,
                    claim.text.text.chars().take(20).collect::<String>(),
                    other.given
                );
                return Err(wrong(claim.given, reason));
            }
            if shared.start > free {
                owned.insert(free, (shared.start, at));
            }
            free = shared.end;
        }
        if end > free {
            owned.insert(free, (end, at));
        }
    }
    Ok(owned.into_iter().map(|(from, (until, at))| (from..until, at)).collect())
}
