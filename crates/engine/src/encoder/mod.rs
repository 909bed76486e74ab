//! What makes vectors of texts: a model of this machine, or one behind an endpoint. Nobody else in the engine knows
//! which of the two it is; what only one of them has is asked for by its name.

mod folder;
mod remote;
mod tokens;

use std::ops::Range;
use std::path::Path;

use cento_collection::format::config::{CollectionConfig, EndpointEncoder};
use cento_embedder::{Accelerator, Embedder, Embedding, Kind, LoadOptions, NEVER, Precision, Stop};
use cento_models::Models;

pub(crate) use self::folder::load_pairs;
pub use self::folder::look;
pub use self::remote::is_at_endpoint;
pub(crate) use self::remote::{Address, Adopted, COSINE_MIN, Known, Named, Opening, Remote, short};
pub use self::remote::{ENCODER_TOKENIZER, ENCODER_WINDOW, EncoderAccess, EncoderKey, EndpointSettings, Estimate};
pub use self::tokens::Tokens;
use crate::error::{Error, Result};

/// An encoder, ready to embed; any number of threads may ask it.
#[derive(Debug)]
pub struct Encoder(Place);

#[derive(Debug)]
enum Place {
    Here(Box<Embedder>),
    Elsewhere(Box<Remote>),
}

impl Encoder {
    /// Loads the encoder in a folder.
    pub(crate) fn load(models: &Models, folder: &Path, options: &LoadOptions) -> cento_embedder::Result<Self> {
        Ok(Self(Place::Here(Box::new(folder::load(models, folder, options)?))))
    }

    /// Opens the encoder at an endpoint for vectors that no collection has yet; `known` are earlier runs, one of which
    /// may have had the same.
    pub(crate) fn open(opening: Opening<'_>, known: &[Known]) -> Result<Self> {
        let mut remote = Remote::open(opening)?;
        let _is_known = known.iter().any(|known| matches!(remote.adopt(known), Adopted::Same));
        Ok(Self(Place::Elsewhere(Box::new(remote))))
    }

    /// Opens the encoder at an endpoint that a collection has its vectors from.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another encoder, [`Error::EncoderChanged`] where there is another model under its name.
    pub(crate) fn open_as(config: &CollectionConfig, opening: Opening<'_>) -> Result<Self> {
        let requested = opening.address.to_string();
        let collection = format!("{} (fingerprint {})", config.model, short(&config.model_fingerprint));
        let Some(endpoint) = &config.endpoint else {
            return Err(Error::Mismatch { setting: "model", collection, requested });
        };
        let known = Known { probes: endpoint.probes.clone(), fingerprint: config.model_fingerprint.clone() };
        let mut remote = Remote::open(opening)?;
        let found = remote.fingerprint().to_owned();
        match remote.adopt(&known) {
            Adopted::Same => Ok(Self(Place::Elsewhere(Box::new(remote)))),
            Adopted::Changed(error) => Err(error),
            Adopted::Other => {
                let requested = format!("{requested} (fingerprint {})", short(&found));
                Err(Error::Mismatch { setting: "model", collection, requested })
            }
        }
    }

    /// The vector of each text, in order. The prompt of `kind` is put before each.
    ///
    /// # Errors
    /// Those of [`Embedder::embed`]; [`Error::Encoder`] of an endpoint.
    pub fn embed(&self, texts: &[String], kind: Kind) -> Result<Vec<Embedding>> {
        self.embed_unless(texts, kind, NEVER)
    }

    /// [`Encoder::embed`] for somebody who may stop wanting the vectors.
    ///
    /// # Errors
    /// As [`Encoder::embed`], and [`Error::Cancelled`].
    pub fn embed_unless(&self, texts: &[String], kind: Kind, stop: Stop<'_>) -> Result<Vec<Embedding>> {
        self.embed_keeping(texts, kind, stop, &mut |_, _| Ok(()))
    }

    /// [`Encoder::embed_unless`] for somebody who keeps vectors: `keep` is told of some as soon as they are there, with
    /// the numbers of their texts, all of them once; also of those that were there before an error.
    pub(crate) fn embed_keeping(
        &self,
        texts: &[String],
        kind: Kind,
        stop: Stop<'_>,
        keep: &mut dyn FnMut(Range<usize>, &[Embedding]) -> Result<()>,
    ) -> Result<Vec<Embedding>> {
        match &self.0 {
            Place::Here(embedder) => {
                let embeddings = embedder.embed_unless(texts, kind, stop)?;
                keep(0..texts.len(), &embeddings)?;
                Ok(embeddings)
            }
            Place::Elsewhere(remote) => remote.embed(texts, kind, stop, keep),
        }
    }

    /// Makes sure, at the end of a run, that all its vectors are of one model.
    ///
    /// # Errors
    /// [`Error::EncoderChanged`] where an endpoint changed it meanwhile.
    pub(crate) fn confirm(&self, stop: Stop<'_>) -> Result<()> {
        self.elsewhere().map_or(Ok(()), |remote| remote.confirm(stop))
    }

    /// The vector of one text, unless `stop` says so before it is there.
    pub(crate) fn embed_one_unless(&self, text: &str, kind: Kind, stop: Stop<'_>) -> Result<Embedding> {
        let mut embedded = self.embed_unless(&[text.to_owned()], kind, stop)?;
        Ok(embedded.pop().expect("one for each text"))
    }

    /// The encoder of this machine, for what an endpoint does not give.
    ///
    /// # Errors
    /// [`Error::Setting`] where it is elsewhere.
    pub(crate) fn here(&self, setting: &'static str) -> Result<&Embedder> {
        match &self.0 {
            Place::Here(embedder) => Ok(embedder),
            Place::Elsewhere(remote) => Err(Error::Setting {
                setting,
                value: remote.address().to_string(),
                reason: "gives the vectors of whole texts alone; this wants an encoder of this machine".to_owned(),
            }),
        }
    }

    /// The encoder at an endpoint, if it is one.
    pub(crate) fn elsewhere(&self) -> Option<&Remote> {
        match &self.0 {
            Place::Here(_) => None,
            Place::Elsewhere(remote) => Some(remote),
        }
    }

    /// The use of an endpoint, as a collection keeps it.
    pub(crate) fn endpoint(&self) -> Option<&EndpointEncoder> {
        self.elsewhere().map(Remote::settings)
    }

    /// The exact text that is embedded for `text`: its prompt, then the text.
    pub(crate) fn bytes_embedded(&self, text: &str, kind: Kind) -> String {
        [self.prompt(kind), text].concat()
    }

    /// Length of every vector.
    pub fn dimensions(&self) -> usize {
        match &self.0 {
            Place::Here(embedder) => embedder.dimensions(),
            Place::Elsewhere(remote) => remote.dimensions(),
        }
    }

    /// The window: tokens of prompt, text and special tokens together.
    pub fn max_tokens(&self) -> usize {
        match &self.0 {
            Place::Here(embedder) => embedder.max_tokens(),
            Place::Elsewhere(remote) => remote.settings().window_tokens,
        }
    }

    /// Narrows the window of an encoder of this machine; see [`Embedder::limit_tokens`].
    pub(crate) fn limit_tokens(&mut self, max_tokens: usize) {
        match &mut self.0 {
            Place::Here(embedder) => embedder.limit_tokens(max_tokens),
            Place::Elsewhere(remote) => assert_eq!(remote.settings().window_tokens, max_tokens, "as it was opened"),
        }
    }

    /// Puts another prompt before queries, by its name in the model's folder; see [`Embedder::choose_query_prompt`].
    ///
    /// # Errors
    /// Those of the embedder; [`Error::Setting`] where the encoder is elsewhere.
    pub(crate) fn choose_query_prompt(&mut self, name: &str) -> Result<()> {
        match &mut self.0 {
            Place::Here(embedder) => Ok(embedder.choose_query_prompt(name)?),
            Place::Elsewhere(remote) => Err(Error::Setting {
                setting: "prompt",
                value: name.to_owned(),
                reason: format!("is a name in a model's folder, and {} has none here", remote.address()),
            }),
        }
    }

    /// Special tokens added to every text; they count toward the window.
    pub(crate) fn n_special(&self) -> usize {
        self.tokenizer().n_special()
    }

    /// The prompt before each text of that kind; empty for most models.
    pub(crate) fn prompt(&self, kind: Kind) -> &str {
        match &self.0 {
            Place::Here(embedder) => embedder.prompt(kind),
            Place::Elsewhere(remote) => remote.prompt(kind),
        }
    }

    /// The encoder's own tokenizer; of one elsewhere, the one that stands in for it.
    pub fn tokenizer(&self) -> Tokens<'_> {
        match &self.0 {
            Place::Here(embedder) => Tokens::from(embedder.tokenizer()),
            Place::Elsewhere(remote) => remote.tokenizer(),
        }
    }

    /// Vectors of different fingerprints are not comparable.
    pub fn fingerprint(&self) -> &str {
        match &self.0 {
            Place::Here(embedder) => embedder.fingerprint(),
            Place::Elsewhere(remote) => remote.fingerprint(),
        }
    }

    /// True if earlier builds gave this model this fingerprint, and with it other vectors.
    pub(crate) fn has_superseded(&self, fingerprint: &str) -> bool {
        match &self.0 {
            Place::Here(embedder) => embedder.superseded_fingerprint() == Some(fingerprint),
            Place::Elsewhere(_) => false,
        }
    }

    /// The part of the machine that decides the bits of a vector; see [`Embedder::arithmetic`].
    pub(crate) fn arithmetic(&self) -> String {
        match &self.0 {
            Place::Here(embedder) => embedder.arithmetic(),
            Place::Elsewhere(_) => "endpoint".to_owned(),
        }
    }

    /// Number type of weights and products; f32 of an endpoint, whose own is not known.
    pub(crate) fn precision(&self) -> Precision {
        match &self.0 {
            Place::Here(embedder) => embedder.precision(),
            Place::Elsewhere(_) => Precision::F32,
        }
    }

    /// Where the model is computed, in words.
    pub(crate) fn device_name(&self) -> String {
        match &self.0 {
            Place::Here(embedder) => embedder.device_name(),
            Place::Elsewhere(_) => "endpoint".to_owned(),
        }
    }

    /// A remark on the device, or on what was asked of an endpoint; see [`Embedder::device_remark`].
    pub(crate) fn remark(&self) -> Option<String> {
        match &self.0 {
            Place::Here(embedder) => embedder.device_remark(),
            Place::Elsewhere(remote) => Some(remote.remark()),
        }
    }

    /// Where vectors can be compared beside the model.
    pub(crate) fn accelerator(&self) -> Accelerator {
        match &self.0 {
            Place::Here(embedder) => embedder.accelerator(),
            Place::Elsewhere(_) => Accelerator::cpu(),
        }
    }
}
