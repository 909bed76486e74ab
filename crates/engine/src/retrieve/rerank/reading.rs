//! The part of a reranker in one request: how deep it reads, for how long, and what it gave so far.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cento_assembly::trace::{PairScore, RerankRecord};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use super::allowed::Allowed;
use super::reranker::Reranker;
use crate::cancel::Cancel;
use crate::error::{Error, Result};

/// The reranker that answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RerankedBy {
    /// Its name.
    pub model: String,
    /// Its fingerprint; of an endpoint, that of its name and host.
    pub fingerprint: String,
    /// Candidates that it was to read.
    pub depth: usize,
    /// Passages that it read.
    pub n_scored: usize,
}

impl RerankedBy {
    /// The reranker behind a context.
    pub(crate) fn of(record: &RerankRecord) -> Self {
        let RerankRecord { model, fingerprint, depth, scores } = record;
        let (model, fingerprint) = (model.clone(), fingerprint.clone());
        Self { model, fingerprint, depth: *depth, n_scored: scores.len() }
    }
}

/// A reranker as one request uses it. Clones share what was read: no pair is read twice for one request.
#[derive(Clone)]
pub struct Reranking {
    reranker: Arc<Reranker>,
    depth: usize,
    time: Option<Duration>,
    read: Arc<Mutex<Read>>,
}

#[derive(Debug, Default)]
struct Read {
    /// By pair.
    logits: BTreeMap<String, f32>,
    /// The time ended before all was read.
    is_partial: bool,
}

/// Requests are compared by their `Debug` form: it has all that decides.
impl fmt::Debug for Reranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reranker, depth, time, .. } = self;
        f.debug_struct("Reranking").field("reranker", reranker).field("depth", depth).field("time", time).finish()
    }
}

impl Reranking {
    /// The first `depth` of a ranking are read, as many of them as the time allows.
    #[must_use]
    pub fn new(reranker: Arc<Reranker>, depth: usize, time: Option<Duration>) -> Self {
        Self { reranker, depth, time, read: Arc::default() }
    }

    /// The reranking of an earlier context, from its record: no model is asked.
    pub(crate) fn recorded(record: &RerankRecord) -> Self {
        Self::new(Arc::new(Reranker::recorded(record)), record.depth, None)
    }

    /// The same for another question: nothing is read yet.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self { read: Arc::default(), ..self.clone() }
    }

    /// The same for another ranking of the same question: what was read is known, and nothing was missed yet.
    pub(crate) fn resumed(&self) -> Self {
        let logits = self.read.lock().logits.clone();
        Self { read: Arc::new(Mutex::new(Read { logits, is_partial: false })), ..self.clone() }
    }

    /// True if a trace does not have all that was to be read.
    pub(crate) fn is_unknown(&self) -> bool {
        self.reranker.is_traced() && self.is_partial()
    }

    /// Candidates that are read at most.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn reranker(&self) -> &Reranker {
        &self.reranker
    }

    /// True if something that was to be read was not.
    pub(crate) fn is_partial(&self) -> bool {
        self.read.lock().is_partial
    }

    /// The record of all that was read so far.
    pub(crate) fn record(&self) -> RerankRecord {
        let logits = &self.read.lock().logits;
        RerankRecord {
            model: self.reranker.name().to_owned(),
            fingerprint: self.reranker.fingerprint().to_owned(),
            depth: self.depth,
            scores: logits.iter().map(|(pair, &logit)| PairScore { pair: pair.clone(), logit }).collect(),
        }
    }

    pub(super) fn answered(&self, n_scored: usize) -> RerankedBy {
        let (model, fingerprint) = (self.reranker.name().to_owned(), self.reranker.fingerprint().to_owned());
        RerankedBy { model, fingerprint, depth: self.depth, n_scored }
    }

    /// The logit of each passage, the first passages first; none for those that the time did not suffice for, or that a
    /// trace does not have.
    pub(super) fn logits(&self, query: &str, passages: &[String], cancel: &Cancel) -> Result<Vec<Option<f32>>> {
        let pairs: Vec<String> = passages.iter().map(|passage| pair(query, passage)).collect();
        let known = |pair: &String| {
            let read = self.read.lock().logits.get(pair).copied();
            read.or_else(|| self.reranker.traced(pair))
        };
        let mut logits: Vec<Option<f32>> = pairs.iter().map(known).collect();
        self.fill(&mut logits, query, passages, &Allowed::new(self.time, cancel), cancel)?;
        let mut read = self.read.lock();
        read.is_partial |= logits.iter().any(Option::is_none);
        let found = pairs.into_iter().zip(&logits).filter_map(|(pair, logit)| Some((pair, (*logit)?)));
        read.logits.extend(found);
        Ok(logits)
    }

    /// The logit of each of any number of passages, however long it takes; none is kept.
    pub(super) fn all_logits(&self, query: &str, passages: &[String], cancel: &Cancel) -> Result<Vec<f32>> {
        let mut logits = vec![None; passages.len()];
        self.fill(&mut logits, query, passages, &Allowed::all(), cancel)?;
        logits.into_iter().collect::<Option<_>>().ok_or(Error::Cancelled)
    }

    fn fill(
        &self,
        logits: &mut [Option<f32>],
        query: &str,
        passages: &[String],
        time: &Allowed,
        cancel: &Cancel,
    ) -> Result<()> {
        let unread: Vec<usize> = (0..logits.len()).filter(|&at| logits[at].is_none()).collect();
        for batch in unread.chunks(self.reranker.n_together()) {
            let texts: Vec<String> = batch.iter().map(|&at| passages[at].clone()).collect();
            let Some(read) = self.reranker.logits(query, &texts, time, cancel)? else { break };
            batch.iter().zip(read).for_each(|(&at, logit)| logits[at] = Some(logit));
        }
        Ok(())
    }
}

/// The name of a question and a passage: no other two have it.
fn pair(query: &str, passage: &str) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(&(query.len() as u64).to_le_bytes()).update(query.as_bytes()).update(passage.as_bytes());
    hash.finalize().to_hex().to_string()
}
