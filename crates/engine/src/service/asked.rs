//! A question to a collection, with everything that answers it: contexts of any budget, their curve, what was lost.

use std::cell::OnceCell;
use std::time::Duration;

use cento_assembly::Context;

use crate::api::{self, Settled};
use crate::context::pool::Pool;
use crate::context::request::ContextSettings;
use crate::error::Result;
use crate::explain::trace::ContextTrace;
use crate::explain::why_not::WhyNot;
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::scope::Filtered;
use crate::retrieve::search::Timings;
use crate::retrieve::searcher::Searcher;

/// A question whose collection, encoder and tokenizer are at hand. Its candidates are looked for once, when something
/// needs them.
#[derive(Debug)]
pub struct Asked<'a> {
    pub(super) request: &'a api::ContextRequest,
    pub(super) searcher: &'a Searcher,
    pub(super) search: ChunkSearch,
    /// Of as many tokens as the budget allows.
    pub(super) wanted: ContextSettings<'a>,
    /// The time that the encoder took to load.
    pub(super) loading: Duration,
    pub(super) found: OnceCell<(Pool<'a>, Timings)>,
}

impl<'a> Asked<'a> {
    /// The open collection.
    #[must_use]
    pub fn searcher(&self) -> &'a Searcher {
        self.searcher
    }

    /// The most tokens that the budget allows.
    #[must_use]
    pub fn most_tokens(&self) -> usize {
        self.wanted.budget_tokens
    }

    /// The filter of the question, and how many documents pass it.
    ///
    /// # Errors
    /// Those of [`Searcher::filtered`].
    pub fn filtered(&self) -> Result<Option<Filtered>> {
        self.search.filter.as_ref().map(|filter| self.searcher.filtered(filter)).transpose()
    }

    /// Where the time of finding the candidates went.
    ///
    /// # Errors
    /// Those of [`Searcher::pool`].
    pub fn timings(&self) -> Result<Timings> {
        self.found().map(|(_, timings)| *timings)
    }

    /// The tokens that the budget comes to.
    ///
    /// # Errors
    /// Those of [`api::Budget::settle`].
    pub fn settle(&self) -> Result<Settled> {
        self.request.budget.settle(self.pool()?, &self.wanted)
    }

    /// The context of so many tokens.
    ///
    /// # Errors
    /// Those of [`Pool::context`].
    pub fn context(&self, budget_tokens: usize) -> Result<Context> {
        self.pool()?.context(&ContextSettings { budget_tokens, ..self.wanted })
    }

    /// A context of this question as doors answer it.
    ///
    /// # Errors
    /// Those of [`api::ContextAnswer::new`].
    pub fn answer(&self, context: &Context) -> Result<api::ContextAnswer> {
        api::ContextAnswer::new(self.searcher, &self.search, self.pool()?, context)
    }

    /// The trace of a context of this question.
    ///
    /// # Errors
    /// Those of [`ContextTrace::new`].
    pub fn trace(&self, context: &Context) -> Result<ContextTrace> {
        let wanted = ContextSettings { budget_tokens: context.budget_tokens, ..self.wanted };
        ContextTrace::new(self.searcher, &self.search, &wanted, context)
    }

    /// The worth of contexts of every budget that is allowed, solved at `n_solved` of them and at the knee.
    ///
    /// # Errors
    /// Those of [`Pool::budget_curve`].
    pub fn curve(&self, n_solved: usize) -> Result<api::CurveAnswer> {
        Ok(api::CurveAnswer {
            version: api::VERSION,
            budget_tokens: self.wanted.budget_tokens,
            tokenizer: self.wanted.tokenizer.name().to_owned(),
            missing: self.searcher.missing().to_vec(),
            curve: self.pool()?.budget_curve(&self.wanted, n_solved)?,
        })
    }

    /// Where a document was lost between this question and its context.
    ///
    /// # Errors
    /// Those of [`Searcher::why_not`].
    pub fn why_not(&self, id: &str) -> Result<WhyNot> {
        self.searcher.why_not(&self.search, &self.wanted, id)
    }

    fn pool(&self) -> Result<&Pool<'a>> {
        self.found().map(|(pool, _)| pool)
    }

    fn found(&self) -> Result<&(Pool<'a>, Timings)> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let (pool, mut timings) = self.searcher.pool_timed(&self.search)?;
        timings.embed += self.loading;
        timings.texts += pool.prepare(&self.wanted)?;
        Ok(self.found.get_or_init(|| (pool, timings)))
    }
}
