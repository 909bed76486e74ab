//! The requests to an encoder elsewhere: texts in bounded batches, several in the air at once, and their vectors.
//!
//! Each request is made again where that may help ([`Patience`]); a batch that the server declines is halved. The order
//! of answers decides nothing.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use cento_embedder::{Embedding, Stop};
use parking_lot::Mutex;

use super::address::EncoderKey;
use super::batches;
use super::wire::{self, Form, Question, Vectors};
use crate::error::{Error, Result};
use crate::line::patience::{GaveUp, Patience};
use crate::line::{Answer, Line, StatusCode, excerpt};
use crate::plural::counted;

/// A way to ask an encoder for vectors.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) line: Line,
    /// Name of the model there.
    pub(super) model: String,
    /// A key goes with every request.
    pub(super) has_key: bool,
    pub(super) patience: Patience,
    pub(super) n_at_once: usize,
    /// Values of each vector, where the server is asked to shorten them.
    pub(super) shortened: Option<usize>,
    pub(super) form: Form,
    /// Values of each vector, once one came.
    pub(super) dimensions: Option<usize>,
    /// Texts of one request at most, as far as the server was found to take them.
    texts_max: AtomicUsize,
    tally: Tally,
}

/// A count of what was asked so far.
#[derive(Debug, Default)]
struct Tally {
    n_requests: AtomicU64,
    n_again: AtomicU64,
    n_texts: AtomicU64,
    n_normalised: AtomicU64,
    /// Tokens that the server counted.
    n_tokens: AtomicU64,
}

/// Why texts have no vectors.
pub(super) enum Failed {
    Stopped,
    /// The server takes no such request: fewer texts may do.
    Declined(String),
    Other(String),
}

/// A text as it is sent.
pub(super) struct Input {
    pub(super) text: String,
    pub(super) n_tokens: u32,
    pub(super) truncated: bool,
}

impl Asker {
    /// Gets ready; nothing is sent.
    pub(super) fn new(
        line: Line,
        model: String,
        has_key: bool,
        patience: Patience,
        n_at_once: usize,
        shortened: Option<usize>,
    ) -> Self {
        Self {
            line,
            model,
            has_key,
            patience,
            n_at_once,
            shortened,
            form: Form::Base64,
            dimensions: None,
            texts_max: AtomicUsize::new(batches::TEXTS_MAX),
            tally: Tally::default(),
        }
    }

    /// The vector of each text, in order; `keep` is told of those of each request as they come, with the numbers of
    /// their texts. `counted` says of an error what the texts were counted with.
    pub(super) fn embed(
        &self,
        inputs: &[Input],
        counted: &str,
        stop: Stop<'_>,
        keep: &mut dyn FnMut(Range<usize>, &[Embedding]) -> Result<()>,
    ) -> Result<Vec<Embedding>> {
        let n_tokens: Vec<u32> = inputs.iter().map(|input| input.n_tokens).collect();
        let queue = Mutex::new(VecDeque::from(batches::pack(&n_tokens)));
        let n_threads = self.n_at_once.min(queue.lock().len());
        let mut found: Vec<Option<Embedding>> = vec![None; inputs.len()];
        let mut ended = Ok(());
        let has_failed = AtomicBool::new(false);
        thread::scope(|scope| {
            let (send, answers) = mpsc::channel();
            for _ in 0..n_threads {
                let (send, queue, has_failed) = (send.clone(), &queue, &has_failed);
                scope.spawn(move || self.work(inputs, counted, queue, has_failed, stop, &send));
            }
            drop(send);
            for answer in answers {
                let kept = answer.and_then(|(range, embeddings)| {
                    keep(range.clone(), &embeddings)?;
                    found[range].iter_mut().zip(embeddings).for_each(|(found, made)| *found = Some(made));
                    Ok(())
                });
                if kept.is_err() {
                    has_failed.store(true, Ordering::Relaxed);
                    if ended.is_ok() {
                        ended = kept; // the first one is told
                    }
                }
            }
        });
        ended?;
        Ok(found.into_iter().map(|found| found.expect("every request was answered")).collect())
    }

    /// Makes requests until none is left, or one has failed.
    fn work(
        &self,
        inputs: &[Input],
        counted: &str,
        queue: &Mutex<VecDeque<Range<usize>>>,
        has_failed: &AtomicBool,
        stop: Stop<'_>,
        send: &mpsc::Sender<Result<(Range<usize>, Vec<Embedding>)>>,
    ) {
        let next = || if has_failed.load(Ordering::Relaxed) { None } else { queue.lock().pop_front() };
        while let Some(mut range) = next() {
            let texts_max = self.texts_max.load(Ordering::Relaxed);
            if range.len() > texts_max {
                let first = range.start..range.start + texts_max;
                queue.lock().push_front(first.end..range.end);
                range = first;
            }
            let batch = &inputs[range.clone()];
            let texts: Vec<&str> = batch.iter().map(|input| input.text.as_str()).collect();
            let answer = match self.ask(&texts, stop) {
                Ok(vectors) => {
                    let of = |(input, vector): (&Input, Vec<f32>)| {
                        let Input { n_tokens, truncated, .. } = *input;
                        Embedding { vector, n_tokens, truncated }
                    };
                    Ok((range, batch.iter().zip(vectors).map(of).collect()))
                }
                Err(Failed::Declined(_)) if range.len() > 1 => {
                    // Too many, or one of them cannot be: half as many tell.
                    self.texts_max.fetch_min(range.len() / 2, Ordering::Relaxed);
                    queue.lock().push_front(range);
                    continue;
                }
                Err(failed) => Err(self.error(match failed {
                    Failed::Declined(reason) => Failed::Other(format!(
                        "{reason}; the text begins {} and has {} tokens of {counted}",
                        excerpt(texts[0]),
                        batch[0].n_tokens,
                    )),
                    failed => failed,
                })),
            };
            has_failed.fetch_or(answer.is_err(), Ordering::Relaxed);
            if send.send(answer).is_err() {
                return;
            }
        }
    }

    /// One request, made again where that may help; its vectors.
    pub(super) fn ask(&self, texts: &[&str], stop: Stop<'_>) -> Result<Vec<Vec<f32>>, Failed> {
        let question =
            Question { model: &self.model, texts: texts.to_vec(), dimensions: self.shortened, form: self.form };
        let (body, bytes_max) = (question.body(), wire::bytes_max(texts.len(), self.dimensions));
        let patience = if self.dimensions.is_some() { self.patience } else { self.patience.with_stranger() };
        let asked = |n_tries: u32| {
            self.tally.n_requests.fetch_add(1, Ordering::Relaxed);
            self.tally.n_again.fetch_add(u64::from(n_tries > 1), Ordering::Relaxed);
        };
        match self.line.insist(&body, bytes_max, patience, stop, &asked) {
            Ok(answer) if answer.status.is_success() => self.take(&answer, texts.len()),
            Ok(answer) => Err(self.declined(&answer)),
            Err(GaveUp::Stopped) => Err(Failed::Stopped),
            Err(GaveUp::Unanswered(reason)) => Err(Failed::Other(reason)),
        }
    }

    fn declined(&self, answer: &Answer) -> Failed {
        let reason = answer.declined();
        match answer.status {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Failed::Declined(reason)
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let name = EncoderKey::NAME;
                Failed::Other(match self.has_key {
                    true => format!("{reason}; the key of {name} was sent"),
                    false => format!("{reason}; {name} has no key for it that was sent"),
                })
            }
            _ => Failed::Other(reason),
        }
    }

    fn take(&self, answer: &Answer, n_texts: usize) -> Result<Vec<Vec<f32>>, Failed> {
        let Vectors { vectors, n_normalised, n_tokens } =
            wire::read(&answer.body, n_texts, self.dimensions).map_err(Failed::Other)?;
        // A server may count what it likes; it is always added.
        let add = |tally: &AtomicU64, n: u64| {
            let _ = tally.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| Some(sum.saturating_add(n)));
        };
        add(&self.tally.n_texts, n_texts as u64);
        add(&self.tally.n_normalised, n_normalised as u64);
        add(&self.tally.n_tokens, n_tokens.unwrap_or_default());
        Ok(vectors)
    }

    pub(super) fn error(&self, failed: Failed) -> Error {
        match failed {
            Failed::Stopped => Error::Cancelled,
            Failed::Declined(reason) | Failed::Other(reason) => Error::Encoder { host: self.line.host(), reason },
        }
    }

    /// The tally in words.
    pub(super) fn remark(&self) -> String {
        let read = |tally: &AtomicU64| tally.load(Ordering::Relaxed);
        let (n_again, n_normalised, n_tokens) =
            (read(&self.tally.n_again), read(&self.tally.n_normalised), read(&self.tally.n_tokens));
        let mut said = format!(
            "{} embedded {} in {}, probes counted",
            self.line.host(),
            counted(read(&self.tally.n_texts), "text"),
            counted(read(&self.tally.n_requests), "request")
        );
        if n_again > 0 {
            said += &format!("; {n_again} of them were made again");
        }
        if n_tokens > 0 {
            said += &format!("; it counted {}", counted(n_tokens, "token"));
        }
        if n_normalised > 0 {
            said += &format!("; divided by a length that was not 1: {}", counted(n_normalised, "vector"));
        }
        said
    }
}
