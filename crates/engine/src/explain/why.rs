//! Why: what a trace says of a chunk, and which changes, made on the trace's own candidates, deliver it.

use cento_assembly::Why;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::tokens::BudgetTokenizer;
use crate::error::{Error, Result};
use crate::explain::trace::ContextTrace;
use crate::explain::undo::{Trials, Undone, Wanted};
use crate::retrieve::searcher::Searcher;

/// Chunks of a document for which changes are looked for.
const CHUNKS_MAX: usize = 5;

/// A chunk's decision, and what undoes it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WhyChunk {
    /// The decision.
    #[serde(flatten)]
    pub why: Why,
    /// Changes that deliver it; none where none was tried.
    #[serde(flatten)]
    pub undone: Option<Undone>,
}

/// Why nothing was tried.
pub(crate) type Untried = String;

impl ContextTrace {
    /// Changes for the chunks that the trace does not deliver, the first ones of `decisions`: one for each of them,
    /// none for the others. If the collection no longer gives what the trace says, or a language model had a part in
    /// it, the reason why nothing can be tried.
    ///
    /// # Errors
    /// Those of [`ContextTrace::search`] and [`Searcher::pool`], [`Error::Cancelled`].
    pub(crate) fn undone(
        &self,
        searcher: &Searcher,
        tokenizer: &BudgetTokenizer<'_>,
        decisions: &[Why],
    ) -> Result<Result<Vec<Option<Undone>>, Untried>> {
        if self.assembly.manifest.endpoint.is_some() {
            return Ok(Err("a language model had a part in the context".to_owned()));
        }
        let (search, policy, config) = (self.search()?, self.policy()?, &self.assembly.config);
        if config.tokenizer != tokenizer.name() {
            let (one, other) = (&config.tokenizer, tokenizer.name());
            return Err(Error::Setting {
                setting: "tokenizer",
                value: other.to_owned(),
                reason: format!("is not the trace's, {one}"),
            });
        }
        let settings = self.context_settings(tokenizer, &policy);
        let pool = searcher.pool(&search)?;
        let now = Self::new(searcher, &search, &settings, &pool.context(&settings)?)?;
        if !self.holds(&now) || !self.delivers_as(&now) {
            let first = self.differences(&now).into_iter().next();
            let what = first.map_or_else(|| "something".to_owned(), |difference| difference.what);
            return Ok(Err(format!("the same request gives another context now: {what} differs")));
        }
        let trials = Trials::new(searcher, &search, &settings, Some(&pool))?;
        let mut left = CHUNKS_MAX;
        let mut undone = Vec::with_capacity(decisions.len());
        for why in decisions {
            let is_tried = !why.is_delivered() && left > 0;
            left -= usize::from(is_tried);
            let wanted = Wanted { id: &why.record.chunk_id, document: &why.record.document };
            undone.push(match is_tried {
                true => Some(trials.undo(wanted, std::slice::from_ref(why))?),
                false => None,
            });
        }
        Ok(Ok(undone))
    }
}
