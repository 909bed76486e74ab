//! Explanation: why a chunk is in a context, and where a document was lost on its way there.

use cento_assembly::Why;
use cento_assembly::seal::Outcome as SealOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::context::ContextRequest;
use super::parse::Request;
use super::version::VERSION;
use crate::error::Result;
use crate::explain::trace::ContextTrace;
use crate::limits::{self, TEXT_BYTES_MAX};

/// A document that a context may lack, and the question of that context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyNotRequest {
    /// A document (`DOC`) or one of its chunks (`DOC#chunk`).
    pub id: String,
    /// The question.
    pub context: ContextRequest,
}

impl Request for WhyNotRequest {
    fn check(&self) -> Result<()> {
        limits::text("id", &self.id, TEXT_BYTES_MAX)?;
        self.context.check()
    }
}

/// A trace's record of a chunk, or of the chunks of a document.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WhyAnswer {
    /// Format of this answer.
    pub version: u32,
    /// The chunk or document that was asked for.
    pub id: String,
    /// The question of the trace.
    pub query: String,
    /// Its chunks that were candidates, in the order of the trace.
    pub chunks: Vec<Why>,
    /// The repair that chose, where the strategy is `seal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<SealOutcome>,
}

impl WhyAnswer {
    /// Looks an id up in a trace.
    ///
    /// # Errors
    /// Those of [`ContextTrace::why`].
    pub fn new(trace: &ContextTrace, id: &str) -> Result<Self> {
        let (chunks, query) = (trace.why(id)?, trace.assembly.query.clone());
        Ok(Self { version: VERSION, id: id.to_owned(), query, chunks, repair: trace.assembly.manifest.repair.clone() })
    }
}
