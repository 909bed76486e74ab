//! Explanation: why a chunk is in a context, and where a document was lost on its way there.

use cento_assembly::Trace;
use cento_assembly::seal::Outcome as SealOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::context::ContextRequest;
use super::parse::Request;
use super::version::VERSION;
use crate::context::tokens::BudgetTokenizer;
use crate::error::{Error, Result};
use crate::explain::differences::Difference;
use crate::explain::replay::Replayed;
use crate::explain::trace::{ContextTrace, TRACE_FILE_VERSION, decisions};
use crate::explain::why::WhyChunk;
use crate::limits::{self, BUDGET_TOKENS_MAX, TEXT_BYTES_MAX};
use crate::retrieve::searcher::Searcher;

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

/// A trace of a context, and a chunk or document that it may have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyRequest {
    /// A document (`DOC`) or one of its chunks (`DOC#chunk`).
    pub id: String,
    /// The trace.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub trace: ContextTrace,
}

impl Request for WhyRequest {
    fn check(&self) -> Result<()> {
        limits::text("id", &self.id, TEXT_BYTES_MAX)?;
        check_trace(&self.trace)
    }
}

/// Holds a trace that is to be followed against the limits of a request: anybody can write one. Its search is held
/// against them when it is read.
fn check_trace(trace: &ContextTrace) -> Result<()> {
    check_version(trace.version)?;
    let config = &trace.assembly.config;
    limits::within("budget", config.budget_tokens, 0, BUDGET_TOKENS_MAX)?;
    limits::queries("queries", &config.queries)?;
    limits::ids("include", &config.include)?;
    limits::ids("exclude", &config.exclude)?;
    trace.search.scope.as_deref().map_or(Ok(()), |within| limits::ids("within", within))
}

/// An error for a trace of another version of the format, whose fields may mean something else.
pub(super) fn check_version(version: u32) -> Result<()> {
    if version == TRACE_FILE_VERSION {
        return Ok(());
    }
    let reason = format!("is of another version of the format; this cento follows {TRACE_FILE_VERSION}");
    Err(Error::Setting { setting: "trace", value: format!("version {version}"), reason })
}

/// A trace whose context is to be assembled again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// The trace.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub trace: ContextTrace,
    /// The generation that answers.
    #[serde(default)]
    pub on: ReplayOn,
}

/// The generation that a replay asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReplayOn {
    /// The trace's.
    #[default]
    Traced,
    /// The last one.
    Latest,
    /// The one of this number.
    Generation(u64),
    /// The one that a snapshot of this name keeps.
    Snapshot(String),
}

impl Request for ReplayRequest {
    fn check(&self) -> Result<()> {
        if let ReplayOn::Snapshot(name) = &self.on {
            limits::text("on", name, TEXT_BYTES_MAX)?;
        }
        check_trace(&self.trace)
    }
}

/// Two traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffRequest {
    /// The first.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub before: ContextTrace,
    /// The second.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub after: ContextTrace,
}

impl Request for DiffRequest {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A context that was assembled again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReplayAnswer {
    /// Format of this answer.
    pub version: u32,
    /// The same bytes were delivered, and the trace is of this context, word for word where all that decides is the
    /// same.
    pub same: bool,
    /// Differences, in the order in which one thing follows from another; something may differ even so: what decides,
    /// and what follows from that.
    pub differences: Vec<Difference>,
    /// Generation of the collection.
    pub generation: u64,
    /// The text that the budget counts.
    pub context: String,
    /// Its tokens.
    pub n_tokens: usize,
}

impl ReplayAnswer {
    /// The answer that a replay is.
    #[must_use]
    pub fn new(replayed: &Replayed) -> Self {
        Self {
            version: VERSION,
            same: replayed.same,
            differences: replayed.differences.clone(),
            generation: replayed.trace.collection.generation,
            context: replayed.context.counted().to_owned(),
            n_tokens: replayed.context.n_tokens,
        }
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
    pub chunks: Vec<WhyChunk>,
    /// Why no change was tried; none if changes were, or there was nothing to undo.
    pub untried: Option<String>,
    /// The repair that chose, where the strategy is `seal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<SealOutcome>,
}

impl WhyAnswer {
    /// Looks an id up in a trace, and tries nothing, for the reason given.
    ///
    /// # Errors
    /// Those of [`ContextTrace::why`].
    pub fn untried(trace: &ContextTrace, id: &str, reason: String) -> Result<Self> {
        let chunks = trace.why(id)?.into_iter().map(|why| WhyChunk { why, undone: None }).collect();
        Ok(Self::of(&trace.assembly, id, chunks, Some(reason)))
    }

    /// Looks an id up in a trace, and tries on its collection which changes deliver what it does not.
    ///
    /// # Errors
    /// Those of [`ContextTrace::why`], of searching and of assembling.
    pub fn tried(trace: &ContextTrace, id: &str, searcher: &Searcher, tokenizer: &BudgetTokenizer<'_>) -> Result<Self> {
        let decisions = trace.why(id)?;
        match trace.undone(searcher, tokenizer, &decisions)? {
            Err(reason) => Self::untried(trace, id, reason),
            Ok(undone) => {
                let chunks = decisions.into_iter().zip(undone).map(|(why, undone)| WhyChunk { why, undone }).collect();
                Ok(Self::of(&trace.assembly, id, chunks, None))
            }
        }
    }

    /// Looks an id up in the decisions on candidates that were given.
    ///
    /// # Errors
    /// [`Error::NotTraced`](crate::Error::NotTraced) for an id that is not there, with the nearest.
    pub(crate) fn given(assembly: &Trace, id: &str, untried: String) -> Result<Self> {
        let chunks = decisions(assembly, id)?.into_iter().map(|why| WhyChunk { why, undone: None }).collect();
        Ok(Self::of(assembly, id, chunks, Some(untried)))
    }

    fn of(assembly: &Trace, id: &str, chunks: Vec<WhyChunk>, untried: Option<String>) -> Self {
        let (query, repair) = (assembly.query.clone(), assembly.manifest.repair.clone());
        Self { version: VERSION, id: id.to_owned(), query, chunks, untried, repair }
    }
}
