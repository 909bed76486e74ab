//! Replay: the context of a trace once more, and whether it is the same.

use cento_assembly::Context;

use crate::cancel::Cancel;
use crate::context::request::ContextSettings;
use crate::context::tokens::BudgetTokenizer;
use crate::error::Result;
use crate::explain::differences::Difference;
use crate::explain::trace::ContextTrace;
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::searcher::Searcher;

/// A context that was assembled again from its trace.
#[derive(Debug)]
pub struct Replayed {
    /// The context.
    pub context: Context,
    /// Its trace.
    pub trace: ContextTrace,
    /// The same bytes were delivered, and the first trace is of this context, word for word where all that decides is
    /// the same; see [`ContextTrace::holds`].
    pub same: bool,
    /// Differences, in the order in which one thing follows from another; see [`ContextTrace::differences`].
    pub differences: Vec<Difference>,
}

impl ContextTrace {
    /// Assembles the context of this trace again. `tokenizer` counts as the trace's does; a language model that had a
    /// part in it answers from the trace.
    ///
    /// # Errors
    /// Those of [`ContextTrace::search`], [`ContextTrace::policy`] and [`Searcher::context`].
    pub fn replay(&self, searcher: &Searcher, tokenizer: &BudgetTokenizer<'_>, cancel: &Cancel) -> Result<Replayed> {
        let (search, policy) = (self.search()?, self.policy()?);
        let search = ChunkSearch { cancel: cancel.clone(), ..search };
        let endpoint = self.endpoint();
        let settings = ContextSettings { endpoint: endpoint.as_ref(), ..self.context_settings(tokenizer, &policy) };
        let context = searcher.context(&search, &settings)?;
        let trace = Self::new(searcher, &search, &settings, &context)?;
        let (same, differences) = (self.holds(&trace), self.differences(&trace));
        Ok(Replayed { context, trace, same, differences })
    }
}
