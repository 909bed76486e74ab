//! Candidates that another engine found: their context, its trace, and the trace followed again; no collection is
//! asked.

use std::path::Path;

use cento_assembly::{Context, Trace};
use cento_collection::fs::read_bounded;
use serde::{Deserialize, Serialize};

use super::Service;
use crate::api::{self, AssembleRequest, Request as _, Settled};
use crate::cancel::Cancel;
use crate::context::given::{Given, GivenChunk};
use crate::error::{AtPath as _, Error, Result};
use crate::explain::trace::{Delivered, TRACE_BYTES_MAX, TRACE_FILE_VERSION};

/// A context of given candidates, with all that doors tell of it.
#[derive(Debug)]
pub struct Assembled<'r> {
    request: &'r AssembleRequest,
    given: Given<'r>,
    /// The context.
    pub context: Context,
    /// The tokens that its budget came to.
    pub settled: Settled,
}

/// The request, the decisions, and what came of it: a file that needs nothing else to be followed again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssembledTrace {
    /// [`TRACE_FILE_VERSION`].
    pub version: u32,
    /// Version of Cento.
    pub cento: String,
    /// The request, candidates and all.
    pub request: AssembleRequest,
    /// The chunks of the decisions, and whose texts they are.
    pub chunks: Vec<GivenChunk>,
    /// The delivery.
    pub delivered: Delivered,
    /// Every decision.
    pub assembly: Trace,
}

/// A context that was assembled again from its trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Reassembled {
    /// The context.
    pub context: Context,
    /// The same bytes were delivered.
    pub same: bool,
}

impl Assembled<'_> {
    /// The context as doors answer it.
    #[must_use]
    pub fn answer(&self) -> api::AssembleAnswer {
        api::AssembleAnswer::new(self.request, &self.given, &self.context)
    }

    /// Its trace.
    #[must_use]
    pub fn trace(&self) -> AssembledTrace {
        let context = &self.context;
        AssembledTrace {
            version: TRACE_FILE_VERSION,
            cento: env!("CARGO_PKG_VERSION").to_owned(),
            request: self.request.clone(),
            chunks: self.given.chunks(),
            delivered: Delivered {
                n_tokens: context.n_tokens,
                n_bytes: context.text.len(),
                blake3: hash(context),
                citations: context.citations.clone(),
            },
            assembly: context.trace.clone(),
        }
    }
}

impl AssembledTrace {
    /// Reads a trace; none where the file is a trace of a collection's context, or no trace at all.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Trace`] for one that is damaged, [`Error::TraceVersion`] for one of a newer version.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let bytes = read_bounded(path, TRACE_BYTES_MAX).at(path)?;
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return Ok(None) };
        if value.get("collection").is_some() || value.get("request").is_none() {
            return Ok(None);
        }
        let own = u64::from(TRACE_FILE_VERSION);
        if let Some(found) = value["version"].as_u64().filter(|&found| found > own) {
            return Err(Error::TraceVersion { path: path.to_owned(), found, supported: own });
        }
        let damaged = |error: serde_json::Error| Error::Trace { path: path.to_owned(), reason: error.to_string() };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// The trace as its file holds it.
    #[must_use]
    pub fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self).expect("a trace is always JSON");
        json.push(b'\n');
        json
    }

    /// The decisions on a chunk, or on the chunks of a document.
    ///
    /// # Errors
    /// [`Error::NotTraced`] for an id that is neither, with the nearest.
    pub fn why(&self, id: &str) -> Result<api::WhyAnswer> {
        api::WhyAnswer::given(
            &self.assembly,
            id,
            "the candidates were given: there is no collection to try it on".into(),
        )
    }
}

impl Service {
    /// The cited context of candidates that another engine found.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of its range, and for candidates that are not as they must be or contradict
    /// each other; [`Error::Assembly`] for a budget that holds nothing; [`Error::Cancelled`].
    pub fn assemble(&self, request: &AssembleRequest, cancel: &Cancel) -> Result<api::AssembleAnswer> {
        Ok(self.assembled(request, cancel)?.answer())
    }

    /// The same, with its trace at hand.
    ///
    /// # Errors
    /// Those of [`Service::assemble`].
    pub fn assembled<'r>(&self, request: &'r AssembleRequest, cancel: &Cancel) -> Result<Assembled<'r>> {
        request.check()?;
        let tokenizer = self.named_tokenizer(&request.tokenizer, &[])?;
        let given = Given::new(&request.query, &request.candidates, request.language()?, cancel)?;
        let wanted = request.resolve(tokenizer.get());
        let of = |budget_tokens| crate::ContextSettings { budget_tokens, ..wanted };
        let settled = request.budget.settle_by(|most| given.budget_curve(&of(most), 0))?;
        let context = given.context(&of(settled.budget_tokens))?;
        cancel.check()?;
        Ok(Assembled { request, given, context, settled })
    }

    /// The context of a trace of given candidates once more.
    ///
    /// # Errors
    /// Those of [`Service::assemble`].
    pub fn reassemble(&self, trace: &AssembledTrace, cancel: &Cancel) -> Result<Reassembled> {
        let context = self.assembled(&trace.request, cancel)?.context;
        let same = hash(&context) == trace.delivered.blake3;
        Ok(Reassembled { context, same })
    }
}

fn hash(context: &Context) -> String {
    blake3::hash(context.text.as_bytes()).to_hex().to_string()
}
