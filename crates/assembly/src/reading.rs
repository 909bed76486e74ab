//! Reading: how texts become terms and sentences, and what a term is worth. Functions of the caller's, who has the index.

use std::fmt;
use std::ops::Range;

/// How texts are read: functions of the caller's, all of which must give the same for the same text.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The terms of a text, analysed as the index is.
    pub terms: &'a dyn Fn(&str) -> Vec<String>,
    /// What a term is worth: its inverse document frequency, finite and not negative.
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
    /// What the terms are worth together.
    pub(crate) fn mass<'t>(&self, terms: impl IntoIterator<Item = &'t String>) -> f64 {
        terms.into_iter().map(|term| (self.idf)(term)).sum()
    }
}
