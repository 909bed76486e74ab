//! An encoder elsewhere: any server that answers `/v1/embeddings` in the words of OpenAI.
//!
//! Texts are cut here to the window, by a tokenizer that is named, and sent in requests of bounded size, several at a
//! time; each is made again after 429, a fault of the server or a broken connection, a bounded number of times, after
//! bounded waits. What comes back is held against what was asked ([`wire`]); the model itself against its [`probe`]
//! vectors. The order of answers decides nothing.

mod address;
mod batches;
mod probe;
mod wire;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cento_collection::format::config::EndpointEncoder;
use cento_embedder::{Embedding, Kind, Stop};
use parking_lot::Mutex;

pub(crate) use self::address::{Address, Named};
pub use self::address::{EncoderAccess, EncoderKey, is_at_endpoint};
pub(crate) use self::probe::COSINE_MIN;
use self::wire::{Form, Question, Vectors};
use super::tokens::{StandIn, Tokens};
use crate::error::{Error, Result};
use crate::line::{Answer, Line, NoAnswer, StatusCode, excerpt};

/// The tokenizer that texts are counted and cut with, unless another is named: that of OpenAI's embedding models.
pub const ENCODER_TOKENIZER: &str = "cl100k";

/// Tokens of a text that are sent, unless told: what nearly every encoder reads.
pub const ENCODER_WINDOW: usize = 512;

/// The largest window.
const WINDOW_MAX: usize = 1 << 20;

/// Changes when the same answers would become other vectors than before.
const VERSION: &str = "cento endpoint 1";

/// The first wait before a request is made again, doubled each time.
const PAUSE: Duration = Duration::from_millis(500);

/// Time after which an encoder that is still used is held against its probes again.
const KNOWN_FOR: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(15 * 60) };

/// Persistence with a server that does not answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Times that one request is made.
    n_tries: u32,
    /// The longest wait between two; a server that asks for more is not asked again.
    pause_max: Duration,
}

impl Patience {
    /// Of runs over many texts.
    pub(crate) const LONG: Self = Self { n_tries: 6, pause_max: Duration::from_secs(60) };
    /// Of questions, whose answers somebody waits for.
    pub(crate) const SHORT: Self = Self { n_tries: 2, pause_max: Duration::from_secs(2) };
}

/// Settings of an encoder elsewhere; `None` means what the collection has, or the default for a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointSettings {
    /// The tokenizer that texts are counted and cut with: `cl100k`, `o200k`, a model that is here, or the path of a
    /// `tokenizer.json`; [`ENCODER_TOKENIZER`] by default.
    pub tokenizer: Option<String>,
    /// Tokens of a text that are sent, prompt and special tokens counted; [`ENCODER_WINDOW`] by default.
    pub window_tokens: Option<usize>,
    /// Values of each vector, where the server is asked to shorten them (Matryoshka); all by default.
    pub dimensions: Option<usize>,
    /// Put before each query; empty by default.
    pub query_prompt: Option<String>,
    /// Put before each text that queries may find; empty by default.
    pub document_prompt: Option<String>,
}

impl EndpointSettings {
    /// The first of them that was set, as settings are called.
    pub(crate) fn any(&self) -> Option<(&'static str, String)> {
        let Self { tokenizer, window_tokens, dimensions, query_prompt, document_prompt } = self;
        let number = |number: &Option<usize>| number.map(|number| number.to_string());
        let set = [
            ("encoder-tokenizer", tokenizer.clone()),
            ("encoder-window", number(window_tokens)),
            ("encoder-dimensions", number(dimensions)),
            ("query-prompt", query_prompt.clone()),
            ("document-prompt", document_prompt.clone()),
        ];
        set.into_iter().find_map(|(name, value)| Some((name, value?)))
    }

    /// The settings of a new encoder, or those it was opened with before, if nothing else is asked for.
    pub(crate) fn settle(&self, known: Option<&EndpointEncoder>) -> Result<EndpointEncoder> {
        let asked = EndpointEncoder {
            dimensions: self.dimensions.or(known.and_then(|known| known.dimensions)),
            tokenizer: self.tokenizer.clone().unwrap_or_else(|| match known {
                Some(known) => known.tokenizer.clone(),
                None => ENCODER_TOKENIZER.to_owned(),
            }),
            window_tokens: self.window_tokens.unwrap_or(known.map_or(ENCODER_WINDOW, |known| known.window_tokens)),
            query_prompt: prompt(&self.query_prompt, known.map(|known| &known.query_prompt)),
            document_prompt: prompt(&self.document_prompt, known.map(|known| &known.document_prompt)),
            probes: known.map(|known| known.probes.clone()).unwrap_or_default(),
        };
        let Some(known) = known else { return Ok(asked) };
        let all = |dimensions: Option<usize>| dimensions.map_or_else(|| "all".to_owned(), |n| n.to_string());
        for (setting, collection, requested) in [
            ("encoder-tokenizer", known.tokenizer.clone(), asked.tokenizer.clone()),
            ("encoder-window", known.window_tokens.to_string(), asked.window_tokens.to_string()),
            ("encoder-dimensions", all(known.dimensions), all(asked.dimensions)),
            ("query-prompt", known.query_prompt.clone(), asked.query_prompt.clone()),
            ("document-prompt", known.document_prompt.clone(), asked.document_prompt.clone()),
        ] {
            if collection != requested {
                return Err(Error::Mismatch { setting, collection, requested });
            }
        }
        Ok(asked)
    }
}

fn prompt(asked: &Option<String>, known: Option<&String>) -> String {
    asked.as_ref().or(known).cloned().unwrap_or_default()
}

/// An encoder of an earlier run, by which it is known again: its probes, and the fingerprint it had.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) probes: String,
    pub(crate) fingerprint: String,
}

/// The relation of an encoder to one of an earlier run.
pub(crate) enum Adopted {
    /// The same.
    Same,
    /// One of another name, length or setting.
    Other,
    /// Another model in the place of that one; the error that says so.
    Changed(Error),
}

/// An encoder at an endpoint.
#[derive(Debug)]
pub(crate) struct Remote {
    address: Address,
    host: String,
    line: Line,
    /// A key goes with every request.
    has_key: bool,
    patience: Patience,
    n_at_once: usize,
    settings: EndpointEncoder,
    tokens: StandIn,
    dimensions: usize,
    form: Form,
    fingerprint: String,
    /// Texts of one request at most, as far as the server was found to take them.
    texts_max: AtomicUsize,
    /// Time of the first answer.
    pace: Duration,
    /// When it was last known by its probes.
    known_at: Mutex<Instant>,
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

/// The work that a run over texts asks of an endpoint.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Texts that the cache does not have, equal ones once.
    pub n_texts: u64,
    /// Their tokens, as the stated tokenizer counts.
    pub n_tokens: u64,
    /// Requests, about.
    pub n_requests: u64,
    /// Time at the pace of the first answer, which was short: more for long texts.
    pub seconds: f64,
    /// The tokenizer that counted.
    pub tokenizer: String,
}

/// Why texts have no vectors.
enum Failed {
    Stopped,
    /// The server takes no such request: fewer texts may do.
    Declined(String),
    Other(String),
}

/// A text as it is sent.
struct Input {
    text: String,
    n_tokens: u32,
    truncated: bool,
}

/// The way to an encoder, and how it is to be used.
pub(crate) struct Opening<'a> {
    pub(crate) address: Address,
    pub(crate) named: Named,
    pub(crate) access: &'a EncoderAccess,
    pub(crate) settings: EndpointEncoder,
    pub(crate) patience: Patience,
}

impl Remote {
    /// Opens an encoder and asks it for the probes: it answers, and says how long its vectors are.
    ///
    /// # Errors
    /// [`Error::Setting`] for an address, a tokenizer, a window or a length that cannot be; [`Error::Encoder`] where
    /// there is no answer, or none that can be used.
    pub(crate) fn open(opening: Opening<'_>) -> Result<Self> {
        let Opening { address, named, access, settings, patience } = opening;
        let tokens = StandIn::named(&settings.tokenizer)?;
        let n_prompt_tokens = [&settings.query_prompt, &settings.document_prompt].map(|p| tokens.tokens().count(p));
        let least = tokens.tokens().n_special() + n_prompt_tokens[0].max(n_prompt_tokens[1]) + 1;
        if !(least..=WINDOW_MAX).contains(&settings.window_tokens) {
            return Err(Error::Setting {
                setting: "encoder-window",
                value: settings.window_tokens.to_string(),
                reason: format!("is not one of {least}, for a prompt and a token, to {WINDOW_MAX}"),
            });
        }
        let (key, reach) = access.of(&address, named)?;
        let line = Line::open(&address.target(), key, access.timeout, reach)?;
        let mut remote = Self {
            host: line.host(),
            has_key: key.is_some(),
            address,
            line,
            patience,
            n_at_once: access.n_requests.max(1),
            settings,
            tokens,
            dimensions: 0,
            form: Form::Base64,
            fingerprint: String::new(),
            texts_max: AtomicUsize::new(batches::TEXTS_MAX),
            pace: Duration::ZERO,
            known_at: Mutex::new(Instant::now()),
            tally: Tally::default(),
        };
        remote.probe()?;
        Ok(remote)
    }

    /// Asks for the probes, in the form that the server takes.
    fn probe(&mut self) -> Result<()> {
        let start = Instant::now();
        let answered = match self.ask(&probe::TEXTS, &|| false) {
            Err(Failed::Declined(_)) => {
                self.form = Form::Floats;
                self.ask(&probe::TEXTS, &|| false)
            }
            answered => answered,
        };
        self.pace = start.elapsed();
        let vectors = answered.map_err(|failed| self.error(failed))?;
        self.dimensions = vectors[0].len();
        if let Some(asked) = self.settings.dimensions.filter(|asked| *asked != self.dimensions) {
            return Err(Error::Setting {
                setting: "encoder-dimensions",
                value: asked.to_string(),
                reason: format!("is not what {} gives when asked for it: {}", self.host, self.dimensions),
            });
        }
        self.settings.probes = probe::encode(&vectors);
        self.fingerprint = self.fingerprint_with(&self.settings.probes);
        Ok(())
    }

    /// The fingerprint of this encoder had it given those probes: of everything that shapes a vector but the host.
    fn fingerprint_with(&self, probes: &str) -> String {
        let EndpointEncoder { dimensions: asked, window_tokens, query_prompt, document_prompt, .. } = &self.settings;
        let mut hasher = blake3::Hasher::new();
        let (dimensions, asked, window) =
            (self.dimensions.to_string(), format!("{asked:?}"), window_tokens.to_string());
        let tokenizer = self.tokens.identity();
        for part in [
            VERSION,
            &self.address.name,
            &dimensions,
            &asked,
            &window,
            &tokenizer,
            query_prompt,
            document_prompt,
            probes,
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes()); // so that no two lists of parts run together
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Takes the fingerprint that the encoder had in an earlier run, if it is the same one.
    pub(crate) fn adopt(&mut self, known: &Known) -> Adopted {
        if self.fingerprint_with(&known.probes) != known.fingerprint {
            return Adopted::Other;
        }
        let found = std::mem::replace(&mut self.fingerprint, known.fingerprint.clone());
        match probe::least_cosine(&known.probes, &self.settings.probes) {
            Some(cosine) if cosine >= COSINE_MIN => {
                self.settings.probes.clone_from(&known.probes);
                Adopted::Same
            }
            cosine => {
                let changed = self.changed(&found, cosine.unwrap_or(-1.0));
                self.fingerprint = found;
                Adopted::Changed(changed)
            }
        }
    }

    /// The vector of each text, in order; `keep` is told of those of each request as they come, with the numbers of
    /// their texts.
    pub(crate) fn embed(
        &self,
        texts: &[String],
        kind: Kind,
        stop: Stop<'_>,
        keep: &mut dyn FnMut(std::ops::Range<usize>, &[Embedding]) -> Result<()>,
    ) -> Result<Vec<Embedding>> {
        self.know_again(stop)?;
        let inputs: Vec<Input> = texts.iter().map(|text| self.input(text, kind)).collect();
        let n_tokens: Vec<u32> = inputs.iter().map(|input| input.n_tokens).collect();
        let queue = Mutex::new(VecDeque::from(batches::pack(&n_tokens)));
        let n_threads = self.n_at_once.min(queue.lock().len());
        let mut found: Vec<Option<Embedding>> = vec![None; texts.len()];
        let mut ended = Ok(());
        let has_failed = AtomicBool::new(false);
        thread::scope(|scope| {
            let (send, answers) = mpsc::channel();
            for _ in 0..n_threads {
                let (send, queue, has_failed, inputs) = (send.clone(), &queue, &has_failed, &inputs);
                scope.spawn(move || self.work(inputs, queue, has_failed, stop, &send));
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

    /// Holds an encoder that was opened some time ago against its probes.
    fn know_again(&self, stop: Stop<'_>) -> Result<()> {
        let Some(mut known_at) = self.known_at.try_lock().filter(|at| at.elapsed() >= KNOWN_FOR) else {
            return Ok(()); // known, or somebody is asking
        };
        self.confirm(stop)?;
        *known_at = Instant::now();
        Ok(())
    }

    /// Asks for the probes again: the model is the one that was opened.
    ///
    /// # Errors
    /// [`Error::EncoderChanged`] where it is another one.
    pub(crate) fn confirm(&self, stop: Stop<'_>) -> Result<()> {
        let vectors = self.ask(&probe::TEXTS, stop).map_err(|failed| self.error(failed))?;
        let now = probe::encode(&vectors);
        match probe::least_cosine(&self.settings.probes, &now) {
            Some(cosine) if cosine >= COSINE_MIN => Ok(()),
            cosine => Err(self.changed(&self.fingerprint_with(&now), cosine.unwrap_or(-1.0))),
        }
    }

    /// The error of another model under the same name; `found` is its fingerprint.
    pub(crate) fn changed(&self, found: &str, cosine: f64) -> Error {
        Error::EncoderChanged {
            host: self.host.clone(),
            model: self.address.to_string(),
            known: short(&self.fingerprint).to_owned(),
            found: short(found).to_owned(),
            cosine,
        }
    }

    /// Makes requests until none is left, or one has failed.
    fn work(
        &self,
        inputs: &[Input],
        queue: &Mutex<VecDeque<std::ops::Range<usize>>>,
        has_failed: &AtomicBool,
        stop: Stop<'_>,
        send: &mpsc::Sender<Result<(std::ops::Range<usize>, Vec<Embedding>)>>,
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
                        "{reason}; the text begins {} and has {} tokens of the tokenizer {}, of a window of {}",
                        excerpt(texts[0]),
                        batch[0].n_tokens,
                        self.settings.tokenizer,
                        self.settings.window_tokens
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
    fn ask(&self, texts: &[&str], stop: Stop<'_>) -> Result<Vec<Vec<f32>>, Failed> {
        let known = Some(self.dimensions).filter(|dimensions| *dimensions > 0);
        let question = Question {
            model: &self.address.name,
            texts: texts.to_vec(),
            dimensions: self.settings.dimensions,
            form: self.form,
        };
        let (body, bytes_max) = (question.body(), wire::bytes_max(texts.len(), known));
        for n_tries in 1.. {
            self.tally.n_requests.fetch_add(1, Ordering::Relaxed);
            let (reason, pause) = match self.line.ask(&body, bytes_max, stop) {
                Ok(answer) if answer.status.is_success() => return self.take(&answer, texts.len(), known),
                Ok(answer) => self.declined(answer)?,
                Err(NoAnswer::Stopped) => return Err(Failed::Stopped),
                Err(NoAnswer::Refused(reason)) => return Err(Failed::Other(reason)),
                // A server that never answered is not there.
                Err(NoAnswer::Lost(reason)) if known.is_none() => return Err(Failed::Other(reason)),
                Err(NoAnswer::Lost(reason)) => (reason, None),
            };
            if n_tries == self.patience.n_tries {
                return Err(Failed::Other(format!("{reason} (asked {n_tries} times)")));
            }
            let pause = pause.unwrap_or(PAUSE * (1 << (n_tries - 1)));
            if pause > self.patience.pause_max {
                let (asked, most) = (pause.as_secs(), self.patience.pause_max.as_secs());
                return Err(Failed::Other(format!("{reason}; it asks to wait {asked} s, longer than {most} s")));
            }
            self.tally.n_again.fetch_add(1, Ordering::Relaxed);
            if !self.line.wait(pause, stop) {
                return Err(Failed::Stopped);
            }
        }
        unreachable!("the tries are counted")
    }

    /// An answer without vectors: the wait before the next try, if there is to be one.
    fn declined(&self, answer: Answer) -> Result<(String, Option<Duration>), Failed> {
        let Answer { status, retry_after, body } = answer;
        let reason = format!("answered {status}: {}", excerpt(&body));
        match status {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                Err(Failed::Declined(reason))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let name = EncoderKey::NAME;
                Err(Failed::Other(match self.has_key {
                    true => format!("{reason}; the key of {name} was sent"),
                    false => format!("{reason}; {name} has no key for it that was sent"),
                }))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Ok((reason, retry_after)),
            status if status.is_server_error() => Ok((reason, retry_after)),
            _ => Err(Failed::Other(reason)),
        }
    }

    fn take(&self, answer: &Answer, n_texts: usize, dimensions: Option<usize>) -> Result<Vec<Vec<f32>>, Failed> {
        let Vectors { vectors, n_normalised, n_tokens } =
            wire::read(&answer.body, n_texts, dimensions).map_err(Failed::Other)?;
        let add = |tally: &AtomicU64, n: u64| tally.fetch_add(n, Ordering::Relaxed);
        add(&self.tally.n_texts, n_texts as u64);
        add(&self.tally.n_normalised, n_normalised as u64);
        add(&self.tally.n_tokens, n_tokens.unwrap_or_default());
        Ok(vectors)
    }

    /// A text behind its prompt, cut to the window.
    fn input(&self, text: &str, kind: Kind) -> Input {
        let (mut text, tokens) = ([self.prompt(kind), text].concat(), self.tokenizer());
        let (ends, n_max) = (tokens.ends(&text), self.settings.window_tokens - tokens.n_special());
        let truncated = ends.len() > n_max;
        if truncated {
            text.truncate(ends[n_max - 1]);
        }
        Input { text, n_tokens: (ends.len().min(n_max) + tokens.n_special()) as u32, truncated }
    }

    fn error(&self, failed: Failed) -> Error {
        match failed {
            Failed::Stopped => Error::Cancelled,
            Failed::Declined(reason) | Failed::Other(reason) => Error::Encoder { host: self.host.clone(), reason },
        }
    }

    /// Requests and time for texts of so many tokens, of which `n_call` are embedded in one call.
    pub(crate) fn estimate(&self, n_tokens: &[u32], n_call: usize) -> Estimate {
        let n_requests: u64 = n_tokens.chunks(n_call).map(|call| batches::pack(call).len() as u64).sum();
        Estimate {
            n_texts: n_tokens.len() as u64,
            n_tokens: n_tokens.iter().map(|n| u64::from(*n)).sum(),
            n_requests,
            seconds: n_requests.div_ceil(self.n_at_once as u64) as f64 * self.pace.as_secs_f64(),
            tokenizer: self.settings.tokenizer.clone(),
        }
    }

    /// The tally in words.
    pub(crate) fn remark(&self) -> String {
        let read = |tally: &AtomicU64| tally.load(Ordering::Relaxed);
        let (n_again, n_normalised, n_tokens) =
            (read(&self.tally.n_again), read(&self.tally.n_normalised), read(&self.tally.n_tokens));
        let mut said = format!(
            "{} embedded {} texts in {} requests, probes counted",
            self.host,
            read(&self.tally.n_texts),
            read(&self.tally.n_requests)
        );
        if n_again > 0 {
            said += &format!("; {n_again} of them were made again");
        }
        if n_tokens > 0 {
            said += &format!("; it counted {n_tokens} tokens");
        }
        if n_normalised > 0 {
            said += &format!("; {n_normalised} vectors did not have length 1 and were divided by theirs");
        }
        said
    }

    pub(crate) fn prompt(&self, kind: Kind) -> &str {
        match kind {
            Kind::Query => &self.settings.query_prompt,
            Kind::Document => &self.settings.document_prompt,
        }
    }

    pub(crate) fn tokenizer(&self) -> Tokens<'_> {
        self.tokens.tokens()
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn settings(&self) -> &EndpointEncoder {
        &self.settings
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// A fingerprint as it is shown.
pub(crate) fn short(fingerprint: &str) -> &str {
    fingerprint.get(..12).unwrap_or(fingerprint)
}
