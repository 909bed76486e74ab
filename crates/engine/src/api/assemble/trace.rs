//! Traces of candidates that were given: read, looked into, and followed again.

use std::path::Path;

use cento_assembly::{Context, Trace};
use cento_collection::fs::read_bounded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AssembleRequest;
use crate::api::explain::{WhyAnswer, check_version};
use crate::api::parse::Request;
use crate::api::version::VERSION;
use crate::context::given::GivenChunk;
use crate::error::{AtPath as _, Error, Result};
use crate::explain::trace::{Delivered, TRACE_BYTES_MAX, TRACE_FILE_VERSION};

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
    pub fn why(&self, id: &str) -> Result<WhyAnswer> {
        WhyAnswer::given(&self.assembly, id, "the candidates were given: there is no collection to try it on".into())
    }
}

/// A trace of given candidates whose context is to be assembled again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReassembleRequest {
    /// The trace.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub trace: AssembledTrace,
}

impl Request for ReassembleRequest {
    fn check(&self) -> Result<()> {
        check_version(self.trace.version)?;
        self.trace.request.check()
    }
}

/// A context of given candidates that was assembled again.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReassembleAnswer {
    /// Format of this answer.
    pub version: u32,
    /// The same bytes were delivered.
    pub same: bool,
    /// The text that the budget counts.
    pub context: String,
    /// Its tokens.
    pub n_tokens: usize,
}

impl ReassembleAnswer {
    /// The answer that a context is, the same as the trace's or not.
    pub(crate) fn new(same: bool, context: &Context) -> Self {
        Self { version: VERSION, same, context: context.counted().to_owned(), n_tokens: context.n_tokens }
    }
}
