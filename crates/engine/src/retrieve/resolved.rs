//! Resolved contexts: what an open searcher has assembled, kept for whoever asks the same again.
//!
//! Off, unless the policy asks for it (`[cache]`, or `cache_resolved_context` of a pipeline). It changes no answer: the
//! key is all that a context depends on, and a searcher shows one generation for as long as it lives. So the time to
//! live is no matter of truth here; it says how long a program holds memory for questions that are not asked again.
//!
//! Who gains: a program that keeps a [`Searcher`](crate::Searcher) open, where the same question comes again; it spares
//! the search too. `cento run --contexts` gains where topics have the same text and scope, and there only the choice
//! and the counting. `cento context` is one question, and gains nothing.
//! Cost: a hash of the request, and a copy of the context each time it is kept or served.

use std::mem::size_of;
use std::time::{Duration, Instant};

use cento_assembly::fuse::Contribution;
use cento_assembly::trace::Record;
use cento_assembly::{Citation, Context};

pub(crate) use crate::remembered::Key;
use crate::remembered::{Limits, Remembered};

/// Contexts that are kept at most, and their bytes; most of a context is its trace.
const KEPT_MAX: Limits = Limits { n_values: 1_024, n_bytes: 64 << 20 };

/// The contexts of one searcher.
#[derive(Debug)]
pub(crate) struct ResolvedContexts(Remembered<Context>);

impl Default for ResolvedContexts {
    fn default() -> Self {
        Self(Remembered::new(KEPT_MAX))
    }
}

impl ResolvedContexts {
    /// The context of a key, if its time has not run out at `now`.
    pub(crate) fn find(&self, key: &Key, now: Instant) -> Option<Context> {
        self.0.find(key, now).map(|context| Context::clone(&context))
    }

    /// Keeps a context that was made at `now`, for as long as `ttl`.
    pub(crate) fn keep(&self, key: Key, context: &Context, ttl: Duration, now: Instant) {
        self.0.keep(key, context.clone(), bytes(context), ttl, now);
    }
}

/// Bytes of a context in memory, about.
fn bytes(context: &Context) -> usize {
    let citation = |citation: &Citation| size_of::<Citation>() + citation.chunks.iter().map(String::len).sum::<usize>();
    let record = |record: &Record| {
        let names = [&record.chunk_id, &record.document, &record.section, &record.bucket].map(String::len);
        size_of::<Record>() + names.iter().sum::<usize>() + record.arms.len() * size_of::<Contribution>()
    };
    let citations: usize = context.citations.iter().map(citation).sum();
    let records: usize = context.trace.records.iter().map(record).sum();
    context.text.len() + citations + records
}
