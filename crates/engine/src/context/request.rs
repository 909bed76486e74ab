//! The settings of a context, and the key under which its answer is kept.

use cento_assembly::{Format, Marks, Order, Policy, Strategy};

use crate::context::endpoint::Endpoint;
use crate::context::tokens::BudgetTokenizer;
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::resolved::Key;

/// The settings of a context: its limits, and how it is chosen and written.
/// [`api::ContextRequest`](crate::api::ContextRequest) is what a door takes.
#[derive(Debug, Clone, Copy)]
pub struct ContextSettings<'a> {
    /// Tokens the delivered context may have, everything in it counted.
    pub budget_tokens: usize,
    /// Whose tokens.
    pub tokenizer: &'a BudgetTokenizer<'a>,
    /// The way candidates are chosen.
    pub strategy: Strategy,
    /// Priors, gates and limits.
    pub policy: &'a Policy,
    /// Format of the context.
    pub format: Format,
    /// In which order its pieces stand.
    pub order: Order,
    /// The marks around them.
    pub marks: Marks,
    /// Further questions of the same context, for [`Strategy::Rse`] alone.
    pub queries: &'a [String],
    /// Ids of chunks, or of documents, that are delivered whatever else is; they need not be found.
    pub include: &'a [String],
    /// Ids of chunks, or of documents, that are not delivered.
    pub exclude: &'a [String],
    /// A language model that reads and judges beside the patterns of [`Strategy::Seal`], which alone asks one.
    pub endpoint: Option<&'a Endpoint>,
}

impl<'a> ContextSettings<'a> {
    /// A context of the default strategy, as Markdown, in the order of documents.
    #[must_use]
    pub fn new(budget_tokens: usize, tokenizer: &'a BudgetTokenizer<'a>, policy: &'a Policy) -> Self {
        Self {
            budget_tokens,
            tokenizer,
            strategy: Strategy::default(),
            policy,
            format: Format::default(),
            order: Order::default(),
            marks: Marks::default(),
            queries: &[],
            include: &[],
            exclude: &[],
            endpoint: None,
        }
    }
}

/// The key of a context; `removed` are documents that were taken from the candidates. What an endpoint had a part in is
/// not kept; every other field of the requests is in it, by its `Debug` form, which gives numbers in full.
pub(crate) fn key(search: &ChunkSearch, removed: &[String], request: &ContextSettings<'_>) -> Key {
    let ContextSettings { budget_tokens, tokenizer, strategy, policy, format, order, marks, .. } = request;
    let ContextSettings { queries, include, exclude, endpoint: _, .. } = request;
    let (tokenizer, searched) = (tokenizer.identity(), (search, removed));
    let asked = (budget_tokens, tokenizer, strategy, policy, format, order, marks, (queries, include, exclude));
    let all = format!("{:?}", (searched, asked));
    blake3::hash(all.as_bytes())
}
