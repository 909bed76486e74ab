//! A language model behind an OpenAI-compatible endpoint, which reads and judges beside the patterns of `seal`.
//!
//! Source: arXiv 2512.10787, section 3.3, where a model extracts and judges.
//! Differs: it is never needed, and is believed as far as the texts bear it out (`assembly::seal::extraction`). One
//! call for each kept passage, one judgement for each loop, one after the other in a fixed order, at most `calls` of
//! the policy for one answer: equal answers give equal bytes. What was answered is in the trace, from which a replay
//! takes it. Bounds: each call ends in its time, reads at most a mebibyte, and is made again once, after
//! 429 or 503. The key is sent, and nowhere else: not in errors, not in traces. Answers are kept for a while, for
//! whoever asks the same again.

mod messages;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cento_assembly::seal::{Extraction, Passage, Repair};
use cento_assembly::trace::{EndpointAnswer, EndpointRecord};

pub use self::messages::{Completion, Form, Prompt, SEED};
use crate::error::{Error, Result};
use crate::ingest::contexts::{Answered, ContextWriter};
use crate::line::patience::{GaveUp, Patience};
use crate::line::{BODY_BYTES_MAX, Line, Reach, Target};
use crate::remembered::{Limits, Remembered};

/// Time for which an answer is kept: as long as somebody tries a question again and again.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// Answers that are kept at most, and their bytes.
const KEPT_MAX: Limits = Limits { n_values: 4_096, n_bytes: 16 << 20 };

/// The model asked, and how long one waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Address above `/chat/completions`: `http://localhost:8000/v1`.
    pub url: String,
    /// Name of the model there.
    pub model: String,
    /// For one call.
    pub timeout: Duration,
    /// Where a call fails, the rest of the answer is done without it. Otherwise there is no answer.
    pub fallback: bool,
    /// The hosts that are asked at all.
    pub reach: Reach,
}

/// A language model to ask, from any thread; the thread waits for the answer. It remembers for a while what it was
/// asked: nothing is asked twice within a quarter of an hour.
pub struct Endpoint {
    host: String,
    model: String,
    fallback: bool,
    answers: Answers,
}

/// The origin of answers.
enum Answers {
    /// The model; messages that it gave, by the hash of what was asked; true once it answered whoever has patience.
    Line { line: Line, known: Remembered<String>, has_answered: AtomicBool },
    /// A trace: messages by the hash of what was asked, in hex, and why there are no more, if the model failed when it
    /// was made.
    Trace { known: BTreeMap<String, String>, failed: Option<String> },
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("host", &self.host).field("model", &self.model).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Gets ready to ask; nothing is sent. `key` goes into the `Authorization` header.
    ///
    /// # Errors
    /// [`Error::Setting`] for an address that is none, or that holds a password, and for a key that no header can hold.
    pub fn open(options: &EndpointOptions, key: Option<&str>) -> Result<Self> {
        let (url, path) = (&*options.url, "/chat/completions");
        let target = Target { url, path, setting: "endpoint", key_name: "CENTO_ENDPOINT_KEY" };
        let line = Line::open(&target, key, options.timeout, options.reach)?;
        let (host, model, fallback) = (line.host(), options.model.clone(), options.fallback);
        Ok(Self {
            host,
            model,
            fallback,
            answers: Answers::Line { line, known: Remembered::new(KEPT_MAX), has_answered: AtomicBool::new(false) },
        })
    }

    /// An earlier context's endpoint, from its record: nobody is asked.
    pub fn recorded(record: &EndpointRecord) -> Self {
        let EndpointRecord { host, model, fallback: failed, answers, .. } = record.clone();
        let known = answers.into_iter().map(|EndpointAnswer { asked, said }| (asked, said)).collect();
        Self { host, model, fallback: failed.is_some(), answers: Answers::Trace { known, failed } }
    }

    /// Host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Asks a model there something of the caller's own: nothing is remembered. Any number of threads may ask at a
    /// time.
    ///
    /// # Errors
    /// [`Error::Unanswered`] where there is no chat completion: no server, another status than success, no answer in
    /// time, other bytes; and of a trace's endpoint, which asks nobody.
    pub fn complete(&self, prompt: &Prompt<'_>) -> Result<Completion> {
        let Answers::Line { line, .. } = &self.answers else {
            return Err(self.error("a trace has only the answers to its own requests".to_owned()));
        };
        let said = line.post(&messages::body(prompt)).and_then(|body| messages::completion(&body));
        let said = said.map_err(|reason| Error::Unanswered { host: self.host.clone(), reason })?;
        Ok(Completion { message: line.hidden(&said.message), ..said })
    }

    /// A request's answer as `read` takes it, and the message with the hash of the request. What cannot be read is not
    /// kept.
    fn answer<T>(&self, body: &[u8], read: fn(&str) -> Result<T, String>) -> Result<(T, EndpointAnswer), String> {
        let hash = blake3::hash(body);
        let asked = hash.to_hex().to_string();
        match &self.answers {
            Answers::Trace { known, failed } => {
                let said = known.get(&asked).cloned();
                let none = || failed.clone().unwrap_or_else(|| "the trace has no answer to it".to_owned());
                let said = said.ok_or_else(none)?;
                Ok((read(&said)?, EndpointAnswer { asked, said }))
            }
            Answers::Line { line, known, .. } => {
                if let Some(said) = known.find(&hash, Instant::now()) {
                    return Ok((read(&said)?, EndpointAnswer { asked, said: String::clone(&said) }));
                }
                let said = line.hidden(&messages::message(&line.post(body)?)?);
                let found = read(&said)?;
                known.keep(hash, said.clone(), said.len(), KEPT, Instant::now());
                Ok((found, EndpointAnswer { asked, said }))
            }
        }
    }

    fn error(&self, reason: String) -> Error {
        let host = self.host.clone();
        match self.answers {
            Answers::Line { .. } => Error::Endpoint { host, reason },
            Answers::Trace { .. } => Error::NoAnswer { host, reason },
        }
    }
}

impl ContextWriter for Endpoint {
    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, system: &str, user: &str, stop: &(dyn Fn() -> bool + Sync)) -> Result<Answered> {
        let Answers::Line { line, has_answered, .. } = &self.answers else {
            return Err(self.error("a trace has only the answers to its own requests".to_owned()));
        };
        let body = messages::body(&Prompt { model: &self.model, system, user, seed: SEED, form: Form::Text });
        let is_known = has_answered.load(Ordering::Relaxed);
        let patience = if is_known { Patience::CALL } else { Patience::CALL.with_stranger() };
        let unanswered = |reason| Error::Unanswered { host: self.host.clone(), reason };
        let answer = line.insist(&body, BODY_BYTES_MAX, patience, stop, &|_| {}).map_err(|gave_up| match gave_up {
            GaveUp::Stopped => Error::Cancelled,
            GaveUp::Unanswered(reason) => unanswered(reason),
        })?;
        if !answer.status.is_success() {
            return Err(unanswered(answer.declined()));
        }
        has_answered.store(true, Ordering::Relaxed);
        let Completion { message, n_prompt_tokens, n_completion_tokens } =
            messages::completion(&answer.body).map_err(unanswered)?;
        Ok(Answered { message: line.hidden(&message), n_tokens: n_prompt_tokens.zip(n_completion_tokens) })
    }
}

/// Work done without the model that was to be asked.
pub(crate) fn warnings(record: &EndpointRecord) -> Vec<String> {
    let EndpointRecord { host, n_untold, fallback, .. } = record;
    let untold = (*n_untold > 0).then(|| {
        format!("endpoint {host}: {n_untold} kept passages were not read, for want of calls (policy: seal.calls)")
    });
    let fallback =
        fallback.as_ref().map(|reason| format!("endpoint {host}: {reason}; went on with the patterns alone"));
    untold.into_iter().chain(fallback).collect()
}

/// An endpoint's part in one answer.
#[derive(Debug)]
pub(crate) struct Consultation<'e> {
    endpoint: &'e Endpoint,
    question: &'e str,
    calls_max: usize,
    record: EndpointRecord,
}

impl<'e> Consultation<'e> {
    pub(crate) fn new(endpoint: &'e Endpoint, question: &'e str, calls_max: usize) -> Self {
        let (host, model) = (endpoint.host.clone(), endpoint.model.clone());
        Self { endpoint, question, calls_max, record: EndpointRecord { host, model, ..EndpointRecord::default() } }
    }

    /// Has what is kept read and judged, before a loop.
    ///
    /// # Errors
    /// [`Error::Endpoint`] for a call that fails, unless the rest may be done without.
    pub(crate) fn consult(&mut self, repair: &mut Repair<'_>) -> Result<()> {
        let n_loops = repair.n_loops_left();
        if n_loops == 0 || self.record.fallback.is_some() {
            return Ok(());
        }
        match self.read(repair, n_loops).and_then(|()| self.judge(repair)) {
            Ok(()) => Ok(()),
            Err(reason) if self.endpoint.fallback => {
                self.record.fallback = Some(reason);
                Ok(())
            }
            Err(reason) => Err(self.endpoint.error(reason)),
        }
    }

    pub(crate) fn finish(self) -> EndpointRecord {
        self.record
    }

    /// One call for each kept passage that was not read yet: the first as far as the calls reach, one left for each
    /// loop, by id.
    fn read(&mut self, repair: &mut Repair<'_>, n_loops: usize) -> Result<(), String> {
        let n_calls = (self.calls_max - self.record.n_calls).saturating_sub(n_loops);
        let mut untold: Vec<Passage> = repair.untold().cloned().collect();
        self.record.n_untold = untold.len().saturating_sub(n_calls);
        untold.truncate(n_calls);
        untold.sort_by(|a, b| a.id.cmp(&b.id));
        let mut told: Vec<(String, Extraction)> = Vec::with_capacity(untold.len());
        let mut failed = Ok(());
        for Passage { id, text, .. } in untold {
            let request = messages::extraction(&self.endpoint.model, self.question, &text);
            match self.ask(&id, &request, messages::read_extraction) {
                Ok((said, n_malformed)) => {
                    self.record.n_found += said.len() + n_malformed;
                    self.record.n_dropped += n_malformed;
                    told.push((id, said));
                }
                Err(reason) => {
                    failed = Err(reason);
                    break;
                }
            }
        }
        self.record.n_dropped += repair.tell(&told);
        failed
    }

    fn judge(&mut self, repair: &mut Repair<'_>) -> Result<(), String> {
        if self.record.n_calls == self.calls_max {
            return Ok(());
        }
        let request = messages::sufficiency(&self.endpoint.model, self.question, repair.kept());
        let said = self.ask("sufficiency", &request, messages::read_sufficiency)?;
        self.record.n_found += said.missing.len();
        self.record.n_dropped += repair.judged(&said);
        Ok(())
    }

    /// One call; what is read from its message is kept with it.
    fn ask<T>(&mut self, what: &str, request: &[u8], read: fn(&str) -> Result<T, String>) -> Result<T, String> {
        self.record.n_calls += 1;
        let n_calls = self.record.n_calls;
        // What a trace says went wrong names the call already.
        let named = |reason| match &self.endpoint.answers {
            Answers::Trace { failed: Some(_), .. } => reason,
            Answers::Trace { failed: None, .. } | Answers::Line { .. } => format!("call {n_calls} ({what}): {reason}"),
        };
        let (found, answer) = self.endpoint.answer(request, read).map_err(named)?;
        self.record.answers.push(answer);
        Ok(found)
    }
}
