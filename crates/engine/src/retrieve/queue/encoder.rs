//! An encoder and the queue before it: queries that arrive while it works are embedded together, in one batch.
//!
//! No thread waits for work: whoever finds the encoder idle embeds what is queued, the queries of others with its own.
//! A vector does not depend on the batch it is in, so no answer depends on who asks beside.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cento_embedder::{Embedding, Kind};
use parking_lot::{Condvar, Mutex};

use crate::cancel::Cancel;
use crate::encoder::Encoder;
use crate::error::{Error, Result};

/// Queries of one batch at most: as many as keep an encoder busy without letting the first of them wait long.
const BATCH_QUERIES: usize = 32;

/// Queries that wait at most; one more is refused, as its answer would come too late to be of use.
const WAITING_MAX: usize = 1_024;

/// The interval at which a query that waits looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// An encoder that many searchers share.
#[derive(Debug)]
pub(crate) struct SharedEncoder {
    encoder: Encoder,
    queue: Mutex<Queue>,
    turn: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Waiting>>,
    is_busy: bool,
}

#[derive(Debug)]
struct Waiting {
    query: String,
    cancel: Cancel,
    /// Its embedding; `None` if the batch failed: the query is then embedded alone, for an error of its own.
    embedding: OnceLock<Option<Embedding>>,
}

impl SharedEncoder {
    pub(crate) fn new(encoder: Encoder) -> Self {
        Self { encoder, queue: Mutex::default(), turn: Condvar::new() }
    }

    pub(crate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The embedding of a query.
    pub(crate) fn embed_query(&self, query: &str, cancel: &Cancel) -> Result<Embedding> {
        cancel.check()?;
        let own = self.enqueue(query, cancel)?;
        let mut queue = self.queue.lock();
        while own.embedding.get().is_none() {
            if cancel.is_cancelled() {
                queue.waiting.retain(|waiting| !Arc::ptr_eq(waiting, &own));
                return Err(Error::Cancelled);
            }
            if queue.is_busy {
                self.turn.wait_for(&mut queue, LOOK);
            } else {
                queue.is_busy = true;
                let batch = queue.waiting.len().min(BATCH_QUERIES);
                let batch = queue.waiting.drain(..batch).collect();
                drop(queue);
                self.embed(batch);
                queue = self.queue.lock();
            }
        }
        drop(queue);
        match own.embedding.get().and_then(Option::clone) {
            Some(embedding) => Ok(embedding),
            None => Ok(self.encoder.embed_one_unless(&own.query, Kind::Query, &|| cancel.is_cancelled())?),
        }
    }

    fn enqueue(&self, query: &str, cancel: &Cancel) -> Result<Arc<Waiting>> {
        let own = Arc::new(Waiting { query: query.to_owned(), cancel: cancel.clone(), embedding: OnceLock::new() });
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= WAITING_MAX {
            return Err(Error::Busy { waiting: queue.waiting.len() });
        }
        queue.waiting.push_back(Arc::clone(&own));
        Ok(own)
    }

    /// Embeds a batch and ends the turn, even by a panic.
    fn embed(&self, batch: Vec<Arc<Waiting>>) {
        let turn = Turn { encoder: self, batch };
        let texts: Vec<String> = turn.batch.iter().map(|waiting| waiting.query.clone()).collect();
        // Work goes on as long as anybody wants any of it.
        let stop = || turn.batch.iter().all(|waiting| waiting.cancel.is_cancelled());
        let embedded = self.encoder.embed_unless(&texts, Kind::Query, &stop).unwrap_or_default();
        for (waiting, embedding) in turn.batch.iter().zip(embedded) {
            let _ = waiting.embedding.set(Some(embedding)); // nobody else sets it
        }
    }
}

/// The turn of one thread at the encoder.
struct Turn<'e> {
    encoder: &'e SharedEncoder,
    batch: Vec<Arc<Waiting>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        for waiting in &self.batch {
            let _ = waiting.embedding.set(None);
        }
        self.encoder.queue.lock().is_busy = false;
        self.encoder.turn.notify_all();
    }
}
