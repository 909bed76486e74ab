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

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cento_assembly::fuse::Contribution;
use cento_assembly::trace::Record;
use cento_assembly::{Citation, Context};

/// Contexts that are kept at most.
const CONTEXTS_MAX: usize = 1_024;

/// Bytes that they may have together, about; most of a context is its trace.
const BYTES_MAX: usize = 64 << 20;

/// All that a context of one generation depends on, hashed.
pub(crate) type Key = blake3::Hash;

/// The contexts of one searcher, those used longest ago dropped first.
#[derive(Debug, Default)]
pub(crate) struct ResolvedContexts(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    contexts: HashMap<Key, Resolved>,
    n_bytes: usize,
    /// Uses so far.
    clock: u64,
}

#[derive(Debug)]
struct Resolved {
    context: Arc<Context>,
    n_bytes: usize,
    made: Instant,
    used: u64,
}

impl ResolvedContexts {
    /// The context of a key, if it was made less than `ttl` before `now`.
    pub(crate) fn find(&self, key: &Key, ttl: Duration, now: Instant) -> Option<Context> {
        let mut kept = self.lock();
        if now.saturating_duration_since(kept.contexts.get(key)?.made) >= ttl {
            kept.remove(key);
            return None;
        }
        kept.clock += 1;
        let clock = kept.clock;
        let resolved = kept.contexts.get_mut(key)?;
        resolved.used = clock;
        let context = Arc::clone(&resolved.context);
        drop(kept);
        Some(Context::clone(&context))
    }

    /// Keeps a context that was made at `now`.
    pub(crate) fn keep(&self, key: Key, context: &Context, now: Instant) {
        let n_bytes = bytes(context);
        if n_bytes > BYTES_MAX {
            return;
        }
        let context = Arc::new(context.clone());
        let mut kept = self.lock();
        kept.remove(&key);
        kept.clock += 1;
        let used = kept.clock;
        kept.contexts.insert(key, Resolved { context, n_bytes, made: now, used });
        kept.n_bytes += n_bytes;
        while kept.contexts.len() > CONTEXTS_MAX || kept.n_bytes > BYTES_MAX {
            let oldest = kept.contexts.iter().min_by_key(|(_, resolved)| resolved.used).map(|(key, _)| *key);
            kept.remove(&oldest.expect("what is over a limit is not empty"));
        }
    }

    /// A panic elsewhere leaves whole entries.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) {
        if let Some(resolved) = self.contexts.remove(key) {
            self.n_bytes -= resolved.n_bytes;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use cento_assembly::{Format, Policy, Reading, Request, Strategy, assemble};

    fn context(query: &str) -> Context {
        let request = Request {
            query,
            candidates: &[],
            kept: &[],
            include: &[],
            exclude: &[],
            evidence: None,
            order: cento_assembly::Order::Document,
            budget_tokens: 100,
            policy: &Policy::default(),
            strategy: Strategy::Cento,
            format: Format::Markdown,
            count: &str::len,
            tokenizer: "bytes",
            reading: Reading { terms: &|_| Vec::new(), idf: &|_| 0.0, sentences: &|_| Vec::new() },
            cosine: None,
        };
        assemble(&request).unwrap()
    }

    const TTL: Duration = Duration::from_secs(300);

    #[test]
    fn what_is_kept_is_served_until_it_expires() {
        let (kept, made, key) = (ResolvedContexts::default(), Instant::now(), blake3::hash(b"a"));
        kept.keep(key, &context("a"), made);
        let at = |seconds| made + Duration::from_secs(seconds);
        assert_eq!(kept.find(&key, TTL, at(299)), Some(context("a")));
        assert_eq!(kept.find(&blake3::hash(b"b"), TTL, made), None);
        assert_eq!(kept.find(&key, TTL, at(300)), None, "a use does not make it younger");
        assert_eq!((kept.find(&key, TTL, made), kept.lock().n_bytes), (None, 0), "and it is gone");
        kept.keep(key, &context("a"), at(400));
        assert_eq!(kept.find(&key, TTL, at(500)), Some(context("a")));
    }

    #[test]
    fn the_limits_hold_and_what_was_used_longest_ago_goes_first() {
        let (kept, now) = (ResolvedContexts::default(), Instant::now());
        let key = |number: usize| blake3::hash(&number.to_le_bytes());
        let has = |number: usize| kept.find(&key(number), TTL, now).is_some();
        (0..CONTEXTS_MAX).for_each(|number| kept.keep(key(number), &context("a"), now));
        assert!(has(0));
        kept.keep(key(CONTEXTS_MAX), &context("a"), now);
        assert!(has(0) && !has(1) && has(2) && kept.lock().contexts.len() == CONTEXTS_MAX);
        let large = |n_bytes| {
            let mut large = context("a");
            large.text = "x".repeat(n_bytes);
            large
        };
        kept.keep(key(5_000), &large(BYTES_MAX / 2 - 10_000), now);
        kept.keep(key(5_001), &large(BYTES_MAX / 2 - 10_000), now);
        assert!(has(5_000) && has(5_001) && kept.lock().n_bytes <= BYTES_MAX);
        kept.keep(key(5_002), &large(BYTES_MAX / 2), now);
        assert!(!has(5_000) && has(5_002) && kept.lock().n_bytes <= BYTES_MAX);
        kept.keep(key(5_003), &large(BYTES_MAX + 1), now);
        assert!(!has(5_003) && has(5_002), "what is too large is not kept, and drives nothing out");
    }
}
