//! A reranker: a cross-encoder of this machine, one behind an endpoint, or what a trace says that one gave.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use cento_assembly::trace::{PairScore, RerankRecord};
use cento_embedder::{CrossEncoder, DeviceChoice, LoadOptions, PairLogit};
use cento_models::{Located, Models, Use};
use parking_lot::{Mutex, MutexGuard};

use super::allowed::Allowed;
use super::endpoint::{DOCUMENTS_MAX, RerankEndpoint};
use crate::cancel::Cancel;
use crate::encoder;
use crate::error::{Error, Result};
use crate::line::Reach;

/// The word before the name of a model behind an endpoint.
const REMOTE: &str = "rerank:";

/// Pairs that a cross-encoder reads between two looks at the time: enough to fill its batches.
const PAIRS: usize = 16;

/// The interval at which whoever waits for a cross-encoder looks whether it still wants it.
const LOOK: Duration = Duration::from_millis(20);

/// The way a reranker is opened.
#[derive(Clone, Copy)]
pub struct RerankerOptions<'a> {
    /// Where a cross-encoder runs.
    pub device: DeviceChoice,
    /// Its threads; 0 = one per core.
    pub threads: usize,
    /// Sent to an endpoint in the `Authorization` header.
    pub key: Option<&'a str>,
    /// The hosts that an endpoint may be at.
    pub reach: Reach,
}

impl Default for RerankerOptions<'_> {
    /// Nobody vouches for a host.
    fn default() -> Self {
        Self { device: DeviceChoice::Auto, threads: 0, key: None, reach: Reach::Public }
    }
}

/// A model that says how likely a passage answers a question. Any number of threads may ask it.
pub struct Reranker {
    name: String,
    fingerprint: String,
    /// As it was asked for.
    spec: String,
    model: Model,
}

enum Model {
    /// On this machine; one call has it at a time, and shares it among the threads.
    Here { encoder: Box<CrossEncoder>, turn: Mutex<()> },
    /// Behind an endpoint.
    There(RerankEndpoint),
    /// In a trace: logits by pair.
    Traced(BTreeMap<String, f32>),
}

impl fmt::Debug for Reranker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reranker").field("name", &self.name).field("fingerprint", &self.fingerprint).finish()
    }
}

impl Reranker {
    /// Opens `model`: the name of one that was pulled, a folder with a cross-encoder, or `rerank:NAME@URL` for one that
    /// is called NAME at an address above `/rerank`. Nothing is downloaded, and an endpoint is not asked yet.
    ///
    /// # Errors
    /// [`Error::Model`] if there is no such model, [`Error::Embedder`] if it is no cross-encoder that can be computed;
    /// [`Error::Setting`] or [`Error::PrivateEndpoint`] for an address that cannot be asked.
    pub fn open(model: &str, options: &RerankerOptions<'_>) -> Result<Self> {
        if let Some(named) = model.strip_prefix(REMOTE) {
            return Self::remote(model, named, options);
        }
        let models = Models::from_env()?;
        let located = models.resolve(model)?;
        Self::local(model, &models, &located, options)
    }

    /// The card's own name for a reranker among those that were pulled; none where no such card has the name: it may be
    /// a folder or an address, which not everybody may name.
    pub(crate) fn pulled(name: &str) -> Result<Option<String>> {
        let models = Models::from_env()?;
        let card = models.show(name).ok().filter(|card| card.of_use == Use::Reranker);
        Ok(card.filter(|card| models.resolve(&card.name).is_ok()).map(|card| card.name.clone()))
    }

    fn local(spec: &str, models: &Models, located: &Located<'_>, options: &RerankerOptions<'_>) -> Result<Self> {
        let RerankerOptions { device, threads, .. } = *options;
        let load = LoadOptions { device, threads, ..LoadOptions::default() };
        let encoder = encoder::load_pairs(models, &located.folder, &load)?;
        let own = located.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = if located.card.is_some() { located.name.clone() } else { own.unwrap_or_default() };
        let (spec, fingerprint) = (spec.to_owned(), encoder.fingerprint().to_owned());
        Ok(Self { name, fingerprint, spec, model: Model::Here { encoder: Box::new(encoder), turn: Mutex::default() } })
    }

    fn remote(spec: &str, named: &str, options: &RerankerOptions<'_>) -> Result<Self> {
        let parts = named.find("@http").map(|at| (&named[..at], &named[at + 1..]));
        let Some((name, url)) = parts.filter(|(name, _)| !name.is_empty()) else {
            // What stands behind the first @ may be a password.
            let value = format!("{REMOTE}{}", named.split('@').next().unwrap_or_default());
            let reason = "does not say which model is asked where; write rerank:NAME@http://localhost:8181/v1";
            return Err(Error::Setting { setting: "rerank", value, reason: reason.to_owned() });
        };
        let (endpoint, host) = RerankEndpoint::open(name, url, options.key, options.reach)?;
        // Nobody sees the weights behind an address.
        let fingerprint = blake3::hash(format!("{REMOTE}{name}@{host}").as_bytes()).to_hex().to_string();
        let name = format!("{name}@{host}");
        Ok(Self { name, fingerprint, spec: spec.to_owned(), model: Model::There(endpoint) })
    }

    /// An earlier context's reranker, from its record: no model is asked.
    pub(crate) fn recorded(record: &RerankRecord) -> Self {
        let RerankRecord { model, fingerprint, scores, .. } = record.clone();
        let known = scores.into_iter().map(|PairScore { pair, logit }| (pair, logit)).collect();
        Self { name: model.clone(), fingerprint, spec: model, model: Model::Traced(known) }
    }

    /// The name of a card, of a folder, or of a model with its host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hexadecimal BLAKE3 of weights, tokenizer, configuration, window and number type; of an endpoint, of the model's
    /// name and the host.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// True if a request that says `name` means this one: its name, that of its model without the host, or the words
    /// that it was opened with.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let without_host = match self.model {
            Model::There(_) => self.name.rsplit_once('@').map(|(name, _)| name),
            Model::Here { .. } | Model::Traced(_) => None,
        };
        self.name == name || self.spec == name || without_host == Some(name)
    }

    /// True if it knows the pairs of a trace alone.
    pub(crate) fn is_traced(&self) -> bool {
        matches!(self.model, Model::Traced(_))
    }

    /// The longest pair that is read whole, in tokens; 0 where nobody says.
    pub(crate) fn max_tokens(&self) -> usize {
        match &self.model {
            Model::Here { encoder, .. } => encoder.max_tokens(),
            Model::There(_) | Model::Traced(_) => 0,
        }
    }

    /// Passages that are read between two looks at the time.
    pub(crate) fn n_together(&self) -> usize {
        match self.model {
            Model::Here { .. } => PAIRS,
            Model::There(_) => DOCUMENTS_MAX,
            Model::Traced(_) => usize::MAX,
        }
    }

    /// The logit of a pair that a trace has.
    pub(super) fn traced(&self, pair: &str) -> Option<f32> {
        match &self.model {
            Model::Traced(known) => known.get(pair).copied(),
            Model::Here { .. } | Model::There(_) => None,
        }
    }

    /// The logits of passages; none if the time ends before they are there.
    pub(super) fn logits(
        &self,
        query: &str,
        passages: &[String],
        time: &Allowed,
        cancel: &Cancel,
    ) -> Result<Option<Vec<f32>>> {
        match &self.model {
            Model::Here { .. } => {
                let read = self.pairs(query, passages, time, cancel)?;
                Ok(read.map(|read| read.into_iter().map(|pair| pair.logit).collect()))
            }
            Model::There(endpoint) => {
                let stop = || time.left().is_zero() || cancel.is_cancelled();
                let read = endpoint.logits(query, passages, &stop);
                cancel.check()?;
                read.map_err(|reason| Error::Reranker { name: self.name.clone(), reason })
            }
            Model::Traced(_) => Ok(None),
        }
    }

    /// The logits of texts, with what was read of them, as far as that is known; none if the time ends before.
    ///
    /// # Errors
    /// [`Error::Embedder`], [`Error::Reranker`], [`Error::Cancelled`].
    pub(crate) fn pairs(
        &self,
        query: &str,
        texts: &[String],
        time: &Allowed,
        cancel: &Cancel,
    ) -> Result<Option<Vec<PairLogit>>> {
        let Model::Here { encoder, turn } = &self.model else {
            let unknown = |logit| PairLogit { logit, n_tokens: 0, truncated: false };
            let read = self.logits(query, texts, time, cancel)?;
            return Ok(read.map(|logits| logits.into_iter().map(unknown).collect()));
        };
        let pairs: Vec<(String, String)> = texts.iter().map(|text| (query.to_owned(), text.clone())).collect();
        let Some(_turn) = take(turn, time, cancel)? else { return Ok(None) };
        match encoder.logits_unless(&pairs, &|| time.left().is_zero() || cancel.is_cancelled()) {
            Ok(read) => Ok(Some(read)),
            Err(cento_embedder::Error::Cancelled) => cancel.check().map(|()| None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits for the turn; none if the time ends before.
fn take<'t>(turn: &'t Mutex<()>, time: &Allowed, cancel: &Cancel) -> Result<Option<MutexGuard<'t, ()>>> {
    loop {
        cancel.check()?;
        if time.left().is_zero() {
            return Ok(None);
        }
        if let Some(taken) = turn.try_lock_for(LOOK) {
            return Ok(Some(taken));
        }
    }
}
