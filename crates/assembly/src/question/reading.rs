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
        Self { reading, bits }
    }

    /// The bits of `terms`; none if one of them is not looked for.
    pub(crate) fn bits(&self, terms: &[String]) -> Option<u64> {
        terms.iter().try_fold(0, |bits, term| Some(bits | 1 << self.bits.get(term)?))
    }

    /// Those that a text says.
    pub(crate) fn said(&self, text: &str) -> u64 {
        let terms = (self.reading.terms)(text);
        terms.iter().filter_map(|term| self.bits.get(term)).fold(0, |said, bit| said | 1 << bit)
    }
}
