//! Asking a model: each request once, several at a time, and again where nothing can be read from what it says.
//!
//! Bounds: a request whose answer cannot be read is made [`ATTEMPTS`] times, each time with the next seed; a run ends
//! after [`FAILURES_MAX`] failed calls in a row.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;

use super::prompts::Task;
use super::record::{Line, Record};
use super::reply::{Reply, Sentences, Statement};
use super::verdict::{self, Judged};
use crate::error::{Error, Result};

/// Attempts at an answer that can be read.
pub const ATTEMPTS: u32 = 3;

/// Failed calls in a row after which nobody is asked any more: the endpoint is gone.
const FAILURES_MAX: usize = 3;

/// A language model, one that answers and one that judges, asked from several threads.
pub trait Model: Sync {
    /// Where it is.
    fn host(&self) -> String;

    /// Asks; the reason in words where there is no answer.
    ///
    /// # Errors
    /// The call failed.
    fn ask(&self, task: Task, prompt: &str, seed: u32) -> std::result::Result<Said, String>;
}

/// A model's message, and its cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The message.
    pub message: String,
    /// Tokens of the request, if they were counted.
    pub n_prompt_tokens: Option<u64>,
    /// Tokens of the message, if they were counted.
    pub n_completion_tokens: Option<u64>,
}

/// Calls and their cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Calls that were made now.
    pub n_calls: u64,
    /// Of them those that failed.
    pub n_failed: u64,
    /// The reason of a call that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Answers that the record had.
    pub n_recorded: u64,
    /// Answers from which nothing could be read, now or in the record.
    pub n_unreadable: u64,
    /// Tokens of the requests that were made now, as far as they were counted.
    pub n_prompt_tokens: u64,
    /// Tokens of the answers to them, as far as they were counted.
    pub n_completion_tokens: u64,
}

/// A request.
pub(super) struct Call {
    pub(super) task: Task,
    pub(super) query_id: String,
    pub(super) prompt: String,
    /// The statements that a judge of support is shown.
    pub(super) statements: Vec<Statement>,
}

/// The reading of an answer.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum Verdict {
    Reply(Reply),
    Correct { correct: bool },
    Support { statements: Vec<Judged> },
}

/// The settings of asking, and its counts.
pub(super) struct Asker<'a> {
    record: &'a Record,
    model: Option<&'a dyn Model>,
    sentences: &'a Sentences<'a>,
    pool: rayon::ThreadPool,
    failures: AtomicUsize,
    failure: Mutex<Option<String>>,
    n_calls: AtomicU64,
    n_failed: AtomicU64,
    n_recorded: AtomicU64,
    n_unreadable: AtomicU64,
    n_prompt_tokens: AtomicU64,
    n_completion_tokens: AtomicU64,
}

impl<'a> Asker<'a> {
    pub(super) fn new(
        record: &'a Record,
        model: Option<&'a dyn Model>,
        sentences: &'a Sentences<'a>,
        n_at_once: usize,
    ) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_at_once).build();
        let pool = pool.map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self {
            record,
            model,
            sentences,
            pool,
            failures: AtomicUsize::new(0),
            failure: Mutex::default(),
            n_calls: AtomicU64::new(0),
            n_failed: AtomicU64::new(0),
            n_recorded: AtomicU64::new(0),
            n_unreadable: AtomicU64::new(0),
            n_prompt_tokens: AtomicU64::new(0),
            n_completion_tokens: AtomicU64::new(0),
        })
    }

    pub(super) fn tally(&self) -> Tally {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Tally {
            n_calls: of(&self.n_calls),
            n_failed: of(&self.n_failed),
            failure: self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            n_recorded: of(&self.n_recorded),
            n_unreadable: of(&self.n_unreadable),
            n_prompt_tokens: of(&self.n_prompt_tokens),
            n_completion_tokens: of(&self.n_completion_tokens),
        }
    }

    /// The verdict of each call, none where there is none after all attempts; equal calls are made once.
    pub(super) fn ask(&self, calls: &[Call], progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Vec<Option<Verdict>>> {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut each_once: Vec<&Call> = Vec::new();
        let place = |call| {
            *places.entry(self.key(call, self.seed(0))).or_insert_with(|| {
                each_once.push(call);
                each_once.len() - 1
            })
        };
        let at: Vec<usize> = calls.iter().map(place).collect();
        let n_done = AtomicUsize::new(0);
        let verdict = |call: &&Call| {
            let verdict = self.verdict(call);
            progress(n_done.fetch_add(1, Ordering::Relaxed) + 1, each_once.len());
            verdict
        };
        let verdicts: Result<Vec<Option<Verdict>>> = self.pool.install(|| each_once.par_iter().map(verdict).collect());
        let verdicts = verdicts?;
        Ok(at.into_iter().map(|at| verdicts[at].clone()).collect())
    }

    fn verdict(&self, call: &Call) -> Result<Option<Verdict>> {
        for attempt in 0..ATTEMPTS {
            let asked = self.key(call, self.seed(attempt));
            let read = match self.record.known(&asked) {
                Some(said) => {
                    self.n_recorded.fetch_add(1, Ordering::Relaxed);
                    self.read(call, &said)
                }
                None => match self.call(call, attempt, asked)? {
                    Some(read) => read,
                    None => return Ok(None), // it failed, and may not the next time
                },
            };
            match read {
                Ok(verdict) => return Ok(Some(verdict)),
                Err(_) => self.n_unreadable.fetch_add(1, Ordering::Relaxed),
            };
        }
        Ok(None)
    }

    /// Makes a call and records it: the reading of its answer, none if it failed.
    fn call(&self, call: &Call, attempt: u32, asked: String) -> Result<Option<std::result::Result<Verdict, String>>> {
        let Some(model) = self.model else {
            let (path, query) = (self.record.path().to_owned(), call.query_id.clone());
            return Err(Error::NotRecorded { path, query, task: call.task });
        };
        let (start, seed) = (Instant::now(), self.seed(attempt));
        let answer = model.ask(call.task, &call.prompt, seed);
        let mut line = Line {
            task: call.task,
            query_id: call.query_id.clone(),
            attempt: attempt + 1,
            seed,
            host: model.host(),
            asked,
            prompt: call.prompt.clone(),
            said: None,
            verdict: None,
            fault: None,
            ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
            prompt_tokens: None,
            completion_tokens: None,
        };
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        match answer {
            Ok(Said { message, n_prompt_tokens, n_completion_tokens }) => {
                self.failures.store(0, Ordering::Relaxed);
                add(&self.n_prompt_tokens, n_prompt_tokens);
                add(&self.n_completion_tokens, n_completion_tokens);
                let read = self.read(call, &message);
                (line.prompt_tokens, line.completion_tokens) = (n_prompt_tokens, n_completion_tokens);
                match &read {
                    Ok(verdict) => line.verdict = Some(serde_json::to_value(verdict).map_err(std::io::Error::from)?),
                    Err(fault) => line.fault = Some(fault.clone()),
                }
                line.said = Some(message);
                self.record.add(&line)?;
                Ok(Some(read))
            }
            Err(reason) => {
                line.fault = Some(reason.clone());
                self.record.add(&line)?;
                self.n_failed.fetch_add(1, Ordering::Relaxed);
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
                match self.failures.fetch_add(1, Ordering::Relaxed) + 1 {
                    n if n >= FAILURES_MAX => Err(Error::Asking { query: call.query_id.clone(), n_failed: n, reason }),
                    _ => Ok(None),
                }
            }
        }
    }

    fn read(&self, call: &Call, said: &str) -> std::result::Result<Verdict, String> {
        match call.task {
            Task::Read => Reply::read(said, self.sentences).map(Verdict::Reply),
            Task::Correct => verdict::correct(said).map(|correct| Verdict::Correct { correct }),
            Task::Support => verdict::support(said, &call.statements).map(|statements| Verdict::Support { statements }),
        }
    }

    fn seed(&self, attempt: u32) -> u32 {
        self.record.head().seed.wrapping_add(attempt)
    }

    /// The hash of all that an answer depends on.
    fn key(&self, call: &Call, seed: u32) -> String {
        let head = self.record.head();
        let model = match call.task {
            Task::Read => &head.model,
            Task::Correct | Task::Support => &head.judge_model,
        };
        let mut hasher = blake3::Hasher::new();
        for part in [model.as_str(), call.task.words(), &call.prompt] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.update(&seed.to_le_bytes()).finalize().to_hex().to_string()
    }
}

/// Adds what a server counted, which may be anything.
fn add(sum: &AtomicU64, n: Option<u64>) {
    let added = |sum: u64| Some(sum.saturating_add(n.unwrap_or(0)));
    let _ = sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added); // it is always added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_counts_ends_at_the_largest() {
        let sum = AtomicU64::new(2);
        add(&sum, None);
        assert_eq!(sum.load(Ordering::Relaxed), 2);
        add(&sum, Some(u64::MAX));
        assert_eq!(sum.load(Ordering::Relaxed), u64::MAX);
    }
}
