//! Traces: one is made, looked into, and followed again; the collection that answers is the service's, whatever folder
//! a trace names.

use std::sync::Arc;

use super::{OF_MODEL, Service, Which};
use crate::api::{self, ReplayOn, Request as _};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::explain::differences::TraceComparison;
use crate::explain::trace::ContextTrace;
use crate::retrieve::request::Mode;
use crate::retrieve::searcher::{Searcher, SearcherOptions};
use cento_collection::Error as CollectionError;
use cento_collection::keep::snapshots::At;

impl Service {
    /// The trace of the context that answers a question.
    ///
    /// # Errors
    /// Those of [`Service::context`].
    pub fn trace<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::ContextRequest,
        cancel: &Cancel,
    ) -> Result<ContextTrace> {
        self.ask(which, request, None, cancel, |asked| asked.trace(&asked.context(asked.settle()?.budget_tokens)?))
    }

    /// Why a chunk is in a context or not, with changes that were tried on the trace's generation.
    ///
    /// # Errors
    /// Those of [`api::WhyAnswer::untried`]; what keeps changes from being tried is said in the answer.
    pub fn why<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::WhyRequest,
        cancel: &Cancel,
    ) -> Result<api::WhyAnswer> {
        request.check()?;
        let (id, trace) = (&request.id, &request.trace);
        let which = which.into();
        let followed = || {
            trace.search()?; // one that cannot be followed says so, whatever the collection is by now
            self.following(which, trace, &ReplayOn::Traced, cancel)
        };
        let tried = followed().and_then(|searcher| {
            let tokenizer = self.tokenizer(counted_by(trace), &searcher)?;
            api::WhyAnswer::tried(trace, id, &searcher, tokenizer.get())
        });
        cancel.check()?;
        tried.or_else(|error| api::WhyAnswer::untried(trace, id, untried(&error)))
    }

    /// The context of a trace once more, and whether it is the same.
    ///
    /// # Errors
    /// Those of opening the generation and of [`ContextTrace::replay`], [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn replay<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::ReplayRequest,
        cancel: &Cancel,
    ) -> Result<api::ReplayAnswer> {
        request.check()?;
        request.trace.search()?; // one that cannot be followed says so, whatever the collection is by now
        let searcher = self.following(which.into(), &request.trace, &request.on, cancel)?;
        let tokenizer = self.tokenizer(counted_by(&request.trace), &searcher)?;
        Ok(api::ReplayAnswer::new(&request.trace.replay(&searcher, tokenizer.get(), cancel)?))
    }

    /// Two traces compared; no collection is asked.
    #[must_use]
    pub fn diff(request: &api::DiffRequest) -> TraceComparison {
        request.before.compare(&request.after)
    }

    /// The collection at the generation that follows a trace.
    fn following(
        &self,
        which: Which<'_>,
        trace: &ContextTrace,
        on: &ReplayOn,
        cancel: &Cancel,
    ) -> Result<Arc<Searcher>> {
        let newest = self.searcher(which, cancel)?;
        let is_newest = |generation: u64| newest.manifest().generation == generation;
        let at = match on {
            ReplayOn::Traced => At::Generation(trace.collection.generation),
            ReplayOn::Generation(generation) => At::Generation(*generation),
            ReplayOn::Snapshot(name) => At::Snapshot(name.clone()),
            ReplayOn::Latest => At::Current,
        };
        let searcher = match at {
            At::Current => newest,
            At::Generation(generation) if is_newest(generation) => newest,
            At::Generation(_) | At::Snapshot(_) => {
                let (device, threads) = (self.options.device, self.options.threads);
                let (model, access) = (self.options.model.clone(), self.options.access.clone());
                Arc::new(Searcher::open(
                    &self.folder(which)?,
                    SearcherOptions { model, access, device, threads, at, names: self.options.names },
                )?)
            }
        };
        self.lend(&searcher, if trace.search.mode == Mode::Lexical { Mode::Lexical } else { Mode::Dense })?;
        Ok(searcher)
    }
}

/// Why nothing was tried, in words that name no file of this machine.
fn untried(error: &Error) -> String {
    match error {
        Error::Collection(CollectionError::UnknownGeneration { .. })
        | Error::Setting { .. }
        | Error::Filter(_)
        | Error::Assembly(_)
        | Error::UnknownDocument { .. }
        | Error::PartTraced { .. }
        | Error::OutOfRange { .. } => cento_collection::describe(error),
        other => format!("the collection could not be asked ({})", other.code()),
    }
}

/// The name of the tokenizer that counted a trace's budget, as requests write it.
fn counted_by(trace: &ContextTrace) -> &str {
    match trace.assembly.config.tokenizer.as_str() {
        name if name.split_once(':').is_some_and(|(kind, _)| kind == OF_MODEL) => OF_MODEL,
        name => name,
    }
}
