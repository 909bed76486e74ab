//! A request: what is asked, of which candidates, within which budget.

use crate::candidate::Candidate;
use crate::pack::{Format, Layout, Marks, Order};
use crate::policy::Policy;
use crate::question::Reading;
use crate::stop::Stop;
use crate::strategies::Strategy;
use crate::value::evidence::Evidence;
use std::fmt;

/// A further question and its ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Further {
    /// The question.
    pub query: String,
    /// Ids of candidates with the scores that the question gave them, on any scale, in any order; ids that are no
    /// candidates are passed over.
    pub ranking: Vec<(String, f64)>,
}

/// A question, its candidates and the form of the context.
#[derive(Clone)]
pub struct Request<'a> {
    /// The question.
    pub query: &'a str,
    /// Further questions of the same context, with what each found: the strategy `rse` chooses for all of them, no
    /// other looks at them.
    pub further: &'a [Further],
    /// The candidates of retrieval, in any order: the result does not depend on it.
    pub candidates: &'a [Candidate],
    /// Ids of what a repair kept, in its order; the strategy `seal` delivers these, no other looks at them.
    pub kept: &'a [&'a str],
    /// Ids of candidates that are delivered whatever the strategy makes of them.
    pub include: &'a [&'a str],
    /// Ids of candidates, or of documents, that are not delivered; one that is no candidate is none to leave out.
    pub exclude: &'a [&'a str],
    /// The evidence of the collection as a whole, where it is known; `cento` looks at it.
    pub evidence: Option<Evidence>,
    /// Most tokens of the context, headers and marks included.
    pub budget_tokens: usize,
    /// The settings of all strategies.
    pub policy: &'a Policy,
    /// The strategy that chooses.
    pub strategy: Strategy,
    /// The form in which they are written.
    pub format: Format,
    /// In which order.
    pub order: Order,
    /// The marks around them.
    pub marks: Marks,
    /// Tokens of a text. Must give the same number for the same text; need not be additive.
    pub count: &'a dyn Fn(&str) -> usize,
    /// Name of the tokenizer that counts.
    pub tokenizer: &'a str,
    /// The reading of texts: for the needs of the query, for `relevance = "tf"`, and to find the part of a chunk to
    /// keep.
    pub reading: Reading<'a>,
    /// The cosine of two candidates' vectors by their ids, where there are vectors: what says the same in other words.
    pub cosine: Option<&'a dyn Fn(&str, &str) -> f64>,
    /// Looked at while candidates are valued and chosen.
    pub stop: Stop<'a>,
}

impl Request<'_> {
    pub(crate) fn layout(&self) -> Layout {
        Layout { format: self.format, order: self.order, marks: self.marks }
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("query", &self.query)
            .field("candidates", &self.candidates.len())
            .field("budget_tokens", &self.budget_tokens)
            .field("tokenizer", &self.tokenizer)
            .field("strategy", &self.strategy)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}
