//! A source on another machine: each call is one exchange with a server of Cento, which answers from its collection.
//!
//! What comes back is checked as a stranger's, against what was asked: as many answers as items, chunks that are there,
//! rankings in order and within their scope, finite scores, unit vectors, texts as long as their spans. The generation
//! stands still while it is open: a shard whose collection has changed refuses, and is opened anew by the next request.
//!
//! Cost: an exchange a call, and one more for each 16 MiB of an answer. A search is two rounds, a context as many as
//! its strategy reads.

mod wire;
pub(crate) mod carrier;
mod description;
mod rankings;
mod asked;
pub(crate) mod served;

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use self::carrier::{ANSWER_BYTES_MAX, Carrier, Uncarried, Within};
use self::wire::{Answer, CENTO, Call, Fault, Question, Version, WIRE};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::line::excerpt;
use crate::source::seam::Description;

/// Bytes of an answer that is a generation and no more.
const GENERATION_BYTES_MAX: usize = 4 << 10;

/// Letters of a generation: it is a checksum in hex.
const GENERATION_CHARS_MAX: usize = 128;

/// Items of one call, at most; of more, several calls are made.
const ITEMS_MAX: usize = 100_000;

/// Queries of one call, at most: a shard holds the scores of all its rows for each.
const QUERIES_MAX: usize = 32;

/// A collection that a server answers for, at one generation.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    carrier: Arc<dyn Carrier>,
    description: Arc<Description>,
    /// The checksum of the manifest that the server has.
    generation: String,
    /// Rows of each segment.
    segments: Arc<[u32]>,
    /// The end of the request that it answers.
    cancel: Cancel,
    /// The end of one call, which another server has answered.
    overtaken: Cancel,
}

/// The generation that a shard has now, the checksum of its manifest, said within a time.
pub(crate) fn generation(
    carrier: &dyn Carrier,
    within: Option<Duration>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<String> {
    let within = within.map(|time| Within { carrier, time });
    let asked = within.as_ref().map_or(carrier, |within| within as &dyn Carrier);
    Ok(exchange::<()>(asked, None, Call::Generation, GENERATION_BYTES_MAX, stop)?.generation)
}

fn exchange<T: DeserializeOwned>(
    carrier: &dyn Carrier,
    generation: Option<&str>,
    call: Call,
    bytes_max: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Answer<T>> {
    let failed = |reason: String| Error::Shard { shard: carrier.name().to_owned(), reason };
    let unread =
        |error: serde_json::Error| failed(format!("its answer cannot be read: {}", excerpt(&error.to_string())));
    let question = Question { wire: WIRE, cento: CENTO.to_owned(), generation: generation.map(str::to_owned), call };
    let body = serde_json::to_vec(&question).map_err(|error| failed(error.to_string()))?;
    let carried = carrier.carry(&body, bytes_max, stop);
    let answer = carried.map_err(|error| match error {
        Uncarried::Stopped => Error::Cancelled,
        Uncarried::Changed => Error::ShardChanged { shard: carrier.name().to_owned() },
        Uncarried::Failed(reason) => failed(reason),
    })?;
    let answer: Answer<T> = match serde_json::from_slice(&answer) {
        Ok(answer) => answer,
        // Of another version it may well have another shape.
        Err(error) => match serde_json::from_slice::<Version>(&answer).map(|version| version.check()) {
            Ok(Err(other)) => return Err(failed(other)),
            Ok(Ok(())) | Err(_) => return Err(unread(error)),
        },
    };
    Version::of(&answer).check().map_err(failed)?;
    if answer.generation.len() > GENERATION_CHARS_MAX {
        return Err(failed("its answer has a generation that is none".to_owned()));
    }
    match generation {
        Some(generation) if generation != answer.generation => {
            Err(Error::ShardChanged { shard: carrier.name().to_owned() })
        }
        Some(_) | None => Ok(answer),
    }
}

impl Remote {
    /// Opens the generation that the server has now, said within a time.
    pub(crate) fn open(
        carrier: Arc<dyn Carrier>,
        within: Option<Duration>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self> {
        let within = within.map(|time| Within { carrier: &*carrier, time });
        let asked = within.as_ref().map_or(&*carrier, |within| within as &dyn Carrier);
        let answer: Answer<wire::DescriptionWords> = exchange(asked, None, Call::Describe, ANSWER_BYTES_MAX, stop)?;
        let wire::DescriptionWords { manifest, n_documents, n_rows, n_graph_rows, is_pinned } = answer.answer;
        let description = Description { manifest, n_documents, n_rows, n_graph_rows, is_pinned };
        let segments = description::segments(&description).map_err(|reason| {
            let reason = format!("its collection cannot be: {reason}");
            Error::Shard { shard: carrier.name().to_owned(), reason }
        })?;
        let (description, generation) = (Arc::new(description), answer.generation);
        let (cancel, overtaken) = (Cancel::default(), Cancel::default());
        Ok(Self { carrier, description, generation, segments: segments.into(), cancel, overtaken })
    }

    /// The same for one request.
    pub(crate) fn within(&self, cancel: &Cancel) -> Self {
        Self { cancel: cancel.clone(), ..self.clone() }
    }

    /// The same generation on another server, for one call.
    pub(crate) fn by(&self, carrier: Arc<dyn Carrier>, overtaken: &Cancel) -> Self {
        Self { carrier, overtaken: overtaken.clone(), ..self.clone() }
    }

    pub(crate) fn generation(&self) -> &str {
        &self.generation
    }

    fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T> {
        self.ask_unless(call, &self.cancel)
    }

    fn ask_unless<T: DeserializeOwned>(&self, call: Call, cancel: &Cancel) -> Result<T> {
        let stop = || cancel.is_cancelled() || self.cancel.is_cancelled() || self.overtaken.is_cancelled();
        Ok(exchange(&*self.carrier, Some(&self.generation), call, ANSWER_BYTES_MAX, &stop)?.answer)
    }

    /// The value of an answer that was checked.
    fn checked<T>(&self, answer: Result<T, Fault>) -> Result<T> {
        let reason = |fault| format!("its answer cannot be: {fault}");
        answer.map_err(|fault| Error::Shard { shard: self.carrier.name().to_owned(), reason: reason(fault) })
    }

    /// An error with these words unless something holds.
    fn held(&self, holds: bool, fault: impl FnOnce() -> Fault) -> Result<()> {
        self.checked(if holds { Ok(()) } else { Err(fault()) })
    }

    /// The answers to items, asked for until all are there: a shard answers the first that fit into one answer.
    fn all<I, W: DeserializeOwned, T>(
        &self,
        items: &[I],
        cancel: &Cancel,
        call: impl Fn(&[I]) -> Call,
        of: impl Fn(&I, W) -> Result<T, Fault>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(items.len());
        while all.len() < items.len() {
            let rest = &items[all.len()..];
            let some = &rest[..rest.len().min(ITEMS_MAX)];
            let words: Vec<W> = self.ask_unless(call(some), cancel)?;
            let n = words.len();
            self.held((1..=some.len()).contains(&n), || format!("{n} answers for {}", some.len()))?;
            for (item, words) in some.iter().zip(words) {
                all.push(self.checked(of(item, words))?);
            }
        }
        Ok(all)
    }
}
