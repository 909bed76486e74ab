//! An encoder elsewhere: any server that answers `/v1/embeddings` in the words of OpenAI.
//!
//! Texts are cut here to the window, by a tokenizer that is named. The [`asker`] sends them; what comes back is held
//! against what was asked ([`wire`]), and the model itself against its [`probe`] vectors.

mod address;
mod asker;
mod batches;
mod probe;
mod settings;
mod wire;

use std::time::{Duration, Instant};

use cento_collection::format::config::EndpointEncoder;
use cento_embedder::{Embedding, Kind, Stop};
use parking_lot::Mutex;

pub(crate) use self::address::{Address, Named};
pub use self::address::{EncoderAccess, EncoderKey, is_at_endpoint};
use self::asker::{Asker, Failed, Input};
pub(crate) use self::probe::COSINE_MIN;
pub use self::settings::{ENCODER_TOKENIZER, ENCODER_WINDOW, EndpointSettings};
use self::wire::Form;
use super::tokens::{StandIn, Tokens};
use crate::error::{Error, Result};
use crate::line::Line;
use crate::line::patience::Patience;

/// The largest window.
const WINDOW_MAX: usize = 1 << 20;

/// Changes when the same answers would become other vectors than before.
const VERSION: &str = "cento endpoint 1";

/// Time after which an encoder that is still used is held against its probes again.
const KNOWN_FOR: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(15 * 60) };

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
    asker: Asker,
    settings: EndpointEncoder,
    tokens: StandIn,
    dimensions: usize,
    fingerprint: String,
    /// Time of the first answer.
    pace: Duration,
    /// When it was last known by its probes.
    known_at: Mutex<Instant>,
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
        let (model, has_key, n_at_once) = (address.name.clone(), key.is_some(), access.n_requests.max(1));
        let mut remote = Self {
            address,
            asker: Asker::new(line, model, has_key, patience, n_at_once, settings.dimensions),
            settings,
            tokens,
            dimensions: 0,
            fingerprint: String::new(),
            pace: Duration::ZERO,
            known_at: Mutex::new(Instant::now()),
        };
        remote.probe()?;
        Ok(remote)
    }

    /// Asks for the probes, in the form that the server takes.
    fn probe(&mut self) -> Result<()> {
        let start = Instant::now();
        let answered = match self.asker.ask(&probe::TEXTS, &|| false) {
            Err(Failed::Declined(_)) => {
                self.asker.form = Form::Floats;
                self.asker.ask(&probe::TEXTS, &|| false)
            }
            answered => answered,
        };
        self.pace = start.elapsed();
        let vectors = answered.map_err(|failed| self.asker.error(failed))?;
        self.dimensions = vectors[0].len();
        self.asker.dimensions = Some(self.dimensions);
        if let Some(asked) = self.settings.dimensions.filter(|asked| *asked != self.dimensions) {
            return Err(Error::Setting {
                setting: "encoder-dimensions",
                value: asked.to_string(),
                reason: format!("is not what {} gives when asked for it: {}", self.asker.line.host(), self.dimensions),
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
        let EndpointEncoder { tokenizer, window_tokens, .. } = &self.settings;
        let counted = format!("the tokenizer {tokenizer}, of a window of {window_tokens}");
        self.asker.embed(&inputs, &counted, stop, keep)
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
        let vectors = self.asker.ask(&probe::TEXTS, stop).map_err(|failed| self.asker.error(failed))?;
        let now = probe::encode(&vectors);
        match probe::least_cosine(&self.settings.probes, &now) {
            Some(cosine) if cosine >= COSINE_MIN => Ok(()),
            cosine => Err(self.changed(&self.fingerprint_with(&now), cosine.unwrap_or(-1.0))),
        }
    }

    /// The error of another model under the same name; `found` is its fingerprint.
    pub(crate) fn changed(&self, found: &str, cosine: f64) -> Error {
        Error::EncoderChanged {
            host: self.asker.line.host(),
            model: self.address.to_string(),
            known: short(&self.fingerprint).to_owned(),
            found: short(found).to_owned(),
            cosine,
        }
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

    /// Requests and time for texts of so many tokens, of which `n_call` are embedded in one call.
    pub(crate) fn estimate(&self, n_tokens: &[u32], n_call: usize) -> Estimate {
        let n_requests: u64 = n_tokens.chunks(n_call).map(|call| batches::pack(call).len() as u64).sum();
        Estimate {
            n_texts: n_tokens.len() as u64,
            n_tokens: n_tokens.iter().map(|n| u64::from(*n)).sum(),
            n_requests,
            seconds: n_requests.div_ceil(self.asker.n_at_once as u64) as f64 * self.pace.as_secs_f64(),
            tokenizer: self.settings.tokenizer.clone(),
        }
    }

    /// The tally in words.
    pub(crate) fn remark(&self) -> String {
        self.asker.remark()
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
