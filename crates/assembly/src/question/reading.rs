//! Reading: how texts become terms and sentences, and what a term is worth. Functions of the caller's, who has the
//! index.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// The caller's functions that read texts; all of them must give the same for the same text.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The terms of a text, analysed as the index is.
    pub terms: &'a dyn Fn(&str) -> Vec<String>,
    /// The worth of a term: its inverse document frequency, finite and not negative.
    pub idf: &'a dyn Fn(&str) -> f64,
    /// Byte ranges of the sentences of a text, in order.
    pub sentences: &'a dyn Fn(&str) -> Vec<Range<usize>>,
}

impl fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}

impl Reading<'_> {
    /// The worth of terms together.
    pub(crate) fn mass<'t>(&self, terms: impl IntoIterator<Item = &'t String>) -> f64 {
        terms.into_iter().map(|term| (self.idf)(term)).sum()
    }
}

/// Terms that are told apart in one [`Sought`].
pub(crate) const TERMS_MAX: usize = 64;

/// Terms that are looked for in texts, one bit each.
pub(crate) struct Sought<'a> {
    reading: Reading<'a>,
    bits: HashMap<String, u32>,
    /// The lengths and first letters of these, see [`mark`]: what has another is none of them.
    marks: u64,
}

impl<'a> Sought<'a> {
    /// The first [`TERMS_MAX`] different ones of `terms`.
    pub(crate) fn new(terms: impl IntoIterator<Item = String>, reading: Reading<'a>) -> Self {
        let mut bits: HashMap<String, u32> = HashMap::new();
        for term in terms {
            let next = bits.len() as u32;
            if bits.len() < TERMS_MAX {
                bits.entry(term).or_insert(next);
            }
        }
        let marks = bits.keys().fold(0, |marks, term| marks | mark(term));
        Self { reading, bits, marks }
    }

    /// The bits of `terms`; none if one of them is not looked for.
    pub(crate) fn bits(&self, terms: &[String]) -> Option<u64> {
        terms.iter().try_fold(0, |bits, term| Some(bits | 1 << self.bits.get(term)?))
    }

    /// Those that a text says.
    pub(crate) fn said(&self, text: &str) -> u64 {
        let terms = (self.reading.terms)(text);
        let may_be = terms.iter().filter(|term| self.marks & mark(term) != 0);
        may_be.filter_map(|term| self.bits.get(term)).fold(0, |said, bit| said | 1 << bit)
    }
}

/// One of 64 bits, by length and first letter of a term.
fn mark(term: &str) -> u64 {
    1 << ((8 * term.len() + usize::from(term.bytes().next().unwrap_or(0))) % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::words;

    #[test]
    fn a_term_is_found_by_its_mark_or_is_none() {
        let reading = Reading { terms: &words, idf: &|_| 1.0, sentences: &|_| Vec::new() };
        let terms = ["tide", "moon", "é", "harbour"].map(str::to_owned);
        let sought = Sought::new(terms.clone(), reading);
        for text in ["", "Tide and moon", "tidy moot", "é", "the harbour of moons", "harbour, tide; é. moon"] {
            let slow = terms.iter().enumerate().filter(|(_, term)| words(text).contains(term));
            assert_eq!(sought.said(text), slow.fold(0, |said, (bit, _)| said | 1 << bit), "{text}");
        }
    }
}
