//! The encoder of a run: loaded as the options say, with a window of its own and the embedding cache before it.

use std::ops::Range;

use cento_embedder::{Embedding, Kind, LoadOptions, NEVER, Precision, cache};
use cento_models::{DEFAULT_MODEL, Models};

use super::manifest::Plan;
use super::options::EmbedOptions;
use super::quantize::GivenRanges;
use crate::encoder::{Address, Encoder, EndpointSettings, Named, Opening};
use crate::error::{Error, Result};
use crate::ingest::cache::{CacheOptions, CachedEmbeddings, ModelFile};
use crate::line::patience::Patience;

/// The encoder of a run, and the cache before it.
pub(super) struct TextEncoder {
    /// Card, folder or address.
    pub(super) name: String,
    pub(super) encoder: Encoder,
    pub(super) kind: Kind,
    /// The window, if it is smaller than the model's.
    limit_tokens: Option<usize>,
    cache: Option<CachedEmbeddings>,
    /// Texts whose vector came from the cache.
    pub(super) n_from_cache: u64,
}

impl TextEncoder {
    pub(super) fn load(options: &EmbedOptions) -> Result<Self> {
        if let Some(path) = options.ranges.as_ref().filter(|_| !options.output_type.has_ranges()) {
            let reason = format!("are of no use: {} has none, int8 and uint8 have", options.output_type);
            return Err(Error::Setting { setting: "ranges", value: path.display().to_string(), reason });
        }
        if let Some(prompt) = options.prompt.as_ref().filter(|_| options.kind == Kind::Document) {
            let reason = "is for queries; these texts are documents".to_owned();
            return Err(Error::Setting { setting: "prompt", value: prompt.clone(), reason });
        }
        let spec = options.model.as_deref().unwrap_or(DEFAULT_MODEL);
        if let Some(address) = Address::parse(spec)? {
            return Self::open(address, options);
        }
        if let Some((setting, value)) = options.endpoint.any() {
            let reason = format!("is for an encoder at an endpoint, not for {spec}");
            return Err(Error::Setting { setting, value, reason });
        }
        let models = Models::from_env()?;
        let located = models.resolve(spec)?;
        let load = LoadOptions {
            device: options.device,
            precision: options.precision,
            threads: options.threads,
            dimensions: options.dimensions,
            ..LoadOptions::default()
        };
        let setting = |setting: &'static str, value: usize, reason: String| Error::Setting {
            setting,
            value: value.to_string(),
            reason,
        };
        let mut encoder = Encoder::load(&models, &located.folder, &load).map_err(|error| match error {
            cento_embedder::Error::Dimensions { asked, available } => {
                setting("dimensions", asked, format!("is not one of 1 to {available}, the model's"))
            }
            other => other.into(),
        })?;
        options.prompt.as_ref().map_or(Ok(()), |prompt| encoder.choose_query_prompt(prompt))?;
        let name = located.name;
        let limit_tokens = options.max_tokens.filter(|max_tokens| *max_tokens != encoder.max_tokens());
        if let Some(max_tokens) = limit_tokens {
            let least = encoder.n_special() + 1;
            if max_tokens < least || max_tokens > encoder.max_tokens() {
                let most = encoder.max_tokens();
                let reason = format!("is not one of {least} to {most}, the model's window");
                return Err(setting("max-tokens", max_tokens, reason));
            }
            encoder.limit_tokens(max_tokens);
        }
        Ok(Self { name, encoder, kind: options.kind, limit_tokens, cache: None, n_from_cache: 0 })
    }

    fn open(address: Address, options: &EmbedOptions) -> Result<Self> {
        if options.precision != Precision::default() {
            let (value, reason) =
                (options.precision.to_string(), "is of no use: an encoder at an endpoint has its own");
            return Err(Error::Setting { setting: "precision", value, reason: reason.to_owned() });
        }
        let name = address.to_string();
        let (dimensions, window_tokens) = (options.dimensions, options.max_tokens);
        let settings = EndpointSettings { dimensions, window_tokens, ..options.endpoint.clone() };
        let (access, settings) = (&options.access, settings.settle(None)?);
        let opening = Opening { address, named: Named::Request, access, settings, patience: Patience::LONG };
        let known = options.cache.as_ref().map(ModelFile::at_endpoints).unwrap_or_default();
        let mut encoder = Encoder::open(opening, &known)?;
        options.prompt.as_ref().map_or(Ok(()), |prompt| encoder.choose_query_prompt(prompt))?;
        Ok(Self { name, encoder, kind: options.kind, limit_tokens: None, cache: None, n_from_cache: 0 })
    }

    /// The settings of every row of a run.
    pub(super) fn plan(&self, options: &EmbedOptions, ranges: Option<&GivenRanges>) -> Plan {
        Plan {
            model_fingerprint: self.encoder.fingerprint().to_owned(),
            prompt: self.encoder.prompt(self.kind).to_owned(),
            kind: match self.kind {
                Kind::Document => "document",
                Kind::Query => "query",
            }
            .to_owned(),
            dimensions: self.encoder.dimensions(),
            max_tokens: self.encoder.max_tokens(),
            too_long: options.too_long.name().to_owned(),
            output_type: options.output_type,
            ranges: ranges.map(|given| given.blake3.clone()),
            precision: self.encoder.precision().to_string(),
            device: self.encoder.device_name(),
            part: None,
        }
    }

    /// Vectors are taken from the cache from now on where it has them, and new ones kept there. Vectors cut to another
    /// window are another model's, as far as it goes.
    pub(super) fn open_cache(&mut self, options: &CacheOptions) -> Result<()> {
        let model = ModelFile {
            model: self.name.clone(),
            fingerprint: self.cache_fingerprint(),
            dimensions: self.encoder.dimensions(),
            arithmetic: self.encoder.arithmetic(),
            probes: self.encoder.endpoint().map(|endpoint| endpoint.probes.clone()),
        };
        self.cache = Some(CachedEmbeddings::open(options, model)?);
        Ok(())
    }

    /// Ends the use of the cache.
    pub(super) fn finish_cache(&mut self) -> Result<()> {
        self.cache.take().map_or(Ok(()), CachedEmbeddings::finish)
    }

    /// Forgets what this run put into the cache.
    pub(super) fn forget_cache(&mut self) -> Result<()> {
        self.cache.take().map_or(Ok(()), CachedEmbeddings::forget)
    }

    fn cache_fingerprint(&self) -> String {
        match self.limit_tokens {
            Some(limit) => format!("{}-t{limit}", self.encoder.fingerprint()),
            None => self.encoder.fingerprint().to_owned(),
        }
    }

    /// True if a text whose vector was found in the cache had been cut.
    fn was_truncated(&self, embedded: &str, n_tokens: u32) -> bool {
        n_tokens as usize >= self.encoder.max_tokens()
            && self.encoder.tokenizer().count(embedded) + self.encoder.n_special() > self.encoder.max_tokens()
    }

    /// A vector a text, out of the cache where it is there.
    pub(super) fn vectors(&mut self, texts: &[String]) -> Result<Vec<Embedding>> {
        let fingerprint = self.cache_fingerprint();
        let Some(mut cache) = self.cache.take() else { return self.encoder.embed(texts, self.kind) };
        let made = self.vectors_by(&mut cache, &fingerprint, texts);
        self.cache = Some(cache);
        made
    }

    fn vectors_by(
        &mut self,
        cache: &mut CachedEmbeddings,
        fingerprint: &str,
        texts: &[String],
    ) -> Result<Vec<Embedding>> {
        let mut found: Vec<Option<Embedding>> = Vec::with_capacity(texts.len());
        let (mut keys, mut missing, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (position, text) in texts.iter().enumerate() {
            let embedded = self.encoder.bytes_embedded(text, self.kind);
            let key = cache::key(fingerprint, &embedded);
            let cached = cache.find(&key).map(|(vector, n_tokens)| Embedding {
                truncated: self.was_truncated(&embedded, n_tokens),
                vector,
                n_tokens,
            });
            if cached.is_none() {
                keys.push(key);
                missing.push(text.clone());
                positions.push(position);
            }
            self.n_from_cache += u64::from(cached.is_some());
            found.push(cached);
        }
        let mut keep = |range: Range<usize>, made: &[Embedding]| {
            cache.append(keys[range].iter().zip(made).map(|(key, made)| (key, made.n_tokens, &made.vector[..])))
        };
        let made = self.encoder.embed_keeping(&missing, self.kind, NEVER, &mut keep);
        let made = made.map_err(|error| at_position(error, |index| positions[index]))?;
        let mut made = made.into_iter();
        Ok(found.into_iter().map(|found| found.or_else(|| made.next()).expect("found or made")).collect())
    }
}

/// The same error of a text at another position.
fn at_position(error: Error, position: impl Fn(usize) -> usize) -> Error {
    use cento_embedder::Error::{Tokenize, Vector};
    match error {
        Error::Embedder(Tokenize { index, reason }) => Tokenize { index: position(index), reason }.into(),
        Error::Embedder(Vector { index, reason }) => Vector { index: position(index), reason }.into(),
        other => other,
    }
}
