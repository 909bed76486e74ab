//! What a collection is built with: the caller's wishes, held against what the collection has.

use std::sync::Arc;

use cento_corpus::guard::Guard;
use cento_corpus::{self as corpus, ChunkConfig, ChunkSize, HeaderStyle, ReadOptions};
use cento_embedder::{DeviceChoice, Kind, LoadOptions, Precision};
use cento_lexical::Language;
use cento_vector::Scalar;

use crate::cancel::Cancel;
use crate::encoder::{Address, Encoder, EncoderAccess, EndpointSettings, Named, Opening, short};
use crate::error::{Error, Result};
use crate::ingest::cache::{CacheOptions, ModelFile};
use crate::ingest::contexts::{self, ContextWriter};
use crate::ingest::found::FilePart;
use crate::line::patience::Patience;
use cento_collection::format::config::{
    CHUNKER_VERSION, ChunkTokens, CollectionConfig, GRAPH_ROWS_MIN, LateReading, Pooling, SEGMENT_ROWS_MAX,
};
use cento_collection::format::manifest::Manifest;
use cento_collection::write::compact::{CompactOptions, Merge};
use cento_models::{DEFAULT_MODEL, Models};

/// Name of the prompt before queries that a model's folder has for them.
const QUERY_PROMPT: &str = "query";
/// Tokens of the window that are kept for a context and the end of its line.
const CONTEXT_TOKENS: usize = contexts::TOKENS_MAX + 2;
/// Fewest tokens that a context must leave for the rest of a header and the chunk.
const CHUNK_TOKENS_MIN: usize = 16;

/// Index options; `None` means what the collection has, or the default for a new one.
#[derive(Debug, Clone)]
pub struct IndexOptions {
    /// Card name or folder of the encoder, or `openai:NAME@URL` of one at an endpoint.
    pub model: Option<String>,
    /// Name of the prompt before queries, in the folder of an encoder of this machine; `query` by default.
    pub prompt: Option<String>,
    /// The use of an encoder at an endpoint.
    pub endpoint: EndpointSettings,
    /// The way it is asked.
    pub access: EncoderAccess,
    /// Header style.
    pub header: Option<HeaderStyle>,
    /// The model that writes a context behind each header; `None` for what the collection has, which then wants one for
    /// chunks that are new.
    pub contexts: Option<Arc<dyn ContextWriter>>,
    /// Chunk size.
    pub chunk_tokens: Option<ChunkTokens>,
    /// Language of the lexical analysis.
    pub language: Option<Language>,
    /// Scalar type of stored vectors.
    pub vectors: Option<Scalar>,
    /// Number type the encoder computes in.
    pub precision: Option<Precision>,
    /// The vectors a chunk has.
    pub pooling: Option<Pooling>,
    /// Tokens read together for late vectors.
    pub late_window: Option<usize>,
    /// The way files are found and read.
    pub read: ReadOptions,
    /// The part of the files that is indexed; all without. Documents of other parts stay as they are.
    pub part: Option<FilePart>,
    /// The way files are read in children; without one, formats that want it are refused.
    pub guard: Option<Guard>,
    /// Where the encoder runs.
    pub device: DeviceChoice,
    /// Threads for embedding; 0 = one per core.
    pub threads: usize,
    /// Rows from which the segment gets a graph.
    pub graph_rows_min: usize,
    /// Bytes of memory that the run may take beside the encoder and the keys of the cache, at least
    /// [`MEMORY_BYTES_MIN`](crate::MEMORY_BYTES_MIN); `None` for a quarter of the machine's. A run that needs more
    /// writes several segments.
    pub memory_bytes: Option<u64>,
    /// The most rows of a segment.
    pub segment_rows_max: usize,
    /// The embedding cache; without one every text is embedded, and an interrupted run begins anew.
    pub cache: Option<CacheOptions>,
    /// Documents that a run may remove.
    pub removals: Removals,
    /// True if segments are merged after the commit when that is due; see [`crate::compact`].
    pub compact: bool,
    /// Ends the run where it stands: the collection stays as it was, and what was embedded is in the cache.
    pub cancel: Cancel,
}

impl IndexOptions {
    /// The merging of segments after a commit.
    pub(crate) fn merging(&self) -> CompactOptions {
        CompactOptions {
            merge: Merge::Due,
            graph_rows_min: self.graph_rows_min,
            memory_bytes: self.memory_bytes,
            segment_rows_max: self.segment_rows_max,
        }
    }
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            model: None,
            prompt: None,
            endpoint: EndpointSettings::default(),
            access: EncoderAccess::default(),
            header: None,
            contexts: None,
            chunk_tokens: None,
            language: None,
            vectors: None,
            precision: None,
            pooling: None,
            late_window: None,
            read: ReadOptions::default(),
            part: None,
            guard: None,
            device: DeviceChoice::Auto,
            threads: 0,
            graph_rows_min: GRAPH_ROWS_MIN,
            memory_bytes: None,
            segment_rows_max: SEGMENT_ROWS_MAX,
            cache: None,
            removals: Removals::default(),
            compact: true,
            cancel: Cancel::default(),
        }
    }
}

/// Documents that may go because their files are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Removals {
    /// Documents whose files are gone, unless a root is gone with them or most documents would go: then the run is
    /// refused.
    #[default]
    Guarded,
    /// All documents whose files are gone.
    All,
}

/// An encoder and where it came from.
pub(crate) struct Loaded {
    pub(crate) spec: String,
    pub(crate) encoder: Encoder,
}

pub(crate) fn load_encoder(known: Option<&Manifest>, options: &IndexOptions) -> Result<Loaded> {
    if known.is_some_and(|manifest| manifest.config.given.is_some()) {
        let requested = options.model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        let collection = "none, as its vectors were given".to_owned();
        return Err(Error::Mismatch { setting: "model", collection, requested });
    }
    let spec = match (&options.model, known) {
        (Some(spec), _) => spec.clone(),
        (None, Some(manifest)) => manifest.config.model.clone(),
        (None, None) => DEFAULT_MODEL.to_owned(),
    };
    let precision =
        options.precision.or(known.map(|manifest| precision_of(&manifest.config)).transpose()?).unwrap_or_default();
    if let Some(known) = known
        && known.config.precision != precision.to_string()
    {
        let (collection, requested) = (known.config.precision.clone(), precision.to_string());
        return Err(Error::Mismatch { setting: "precision", collection, requested });
    }
    let prompt = options.prompt.as_ref().or(known.and_then(|known| known.config.prompt.as_ref()));
    if let Some(address) = Address::parse(&spec)? {
        if precision != Precision::default() {
            let reason = "is of no use: an encoder at an endpoint has its own".to_owned();
            return Err(Error::Setting { setting: "precision", value: precision.to_string(), reason });
        }
        let mut loaded = open_encoder(known.map(|known| &known.config), address, options)?;
        prompt.map_or(Ok(()), |prompt| loaded.encoder.choose_query_prompt(prompt))?;
        return Ok(loaded);
    }
    if let Some((setting, value)) = options.endpoint.any() {
        let reason = format!("is for an encoder at an endpoint, not for {spec}");
        return Err(Error::Setting { setting, value, reason });
    }
    let models = Models::from_env()?;
    let located = models.resolve(&spec)?;
    let load = LoadOptions { device: options.device, precision, threads: options.threads, ..LoadOptions::default() };
    let mut encoder = Encoder::load(&models, &located.folder, &load)?;
    prompt.map_or(Ok(()), |prompt| encoder.choose_query_prompt(prompt))?;
    Ok(Loaded { spec: located.name, encoder })
}

/// The encoder at an endpoint: the one of the collection or of the cache, if it is that.
fn open_encoder(known: Option<&CollectionConfig>, address: Address, options: &IndexOptions) -> Result<Loaded> {
    let spec = address.to_string();
    let opening = Opening {
        address,
        named: if options.model.is_some() { Named::Request } else { Named::Collection },
        access: &options.access,
        settings: options.endpoint.settle(known.and_then(|known| known.endpoint.as_ref()))?,
        patience: Patience::LONG,
    };
    let encoder = match known {
        Some(known) => Encoder::open_as(known, opening)?,
        None => Encoder::open(opening, &options.cache.as_ref().map(ModelFile::at_endpoints).unwrap_or_default())?,
    };
    Ok(Loaded { spec, encoder })
}

/// The number type that the encoder of a collection computes in.
///
/// # Errors
/// `Setting`, if it is none that this build knows.
pub(crate) fn precision_of(config: &CollectionConfig) -> Result<Precision> {
    config.precision.parse().map_err(|error: cento_embedder::Error| Error::Setting {
        setting: "precision",
        value: config.precision.clone(),
        reason: format!("cannot be used: {error}"),
    })
}

/// The configuration the rows will have: the collection's own, or a new one; a request that differs is refused.
pub(crate) fn settle(
    known: Option<&CollectionConfig>,
    options: &IndexOptions,
    loaded: &Loaded,
) -> Result<CollectionConfig> {
    let Loaded { spec, encoder } = loaded;
    let pooling = options.pooling.or(known.map(|known| known.pooling)).unwrap_or_default();
    let asked = CollectionConfig {
        model: spec.clone(),
        model_fingerprint: encoder.fingerprint().to_owned(),
        dimensions: encoder.dimensions(),
        chunk_tokens: options
            .chunk_tokens
            .unwrap_or(ChunkTokens(ChunkSize::Target(corpus::DEFAULT_CHUNK_TOKENS)))
            .to_string(),
        chunker_version: CHUNKER_VERSION,
        header: options.header.unwrap_or(HeaderStyle::Structured).to_string(),
        language: options.language.unwrap_or_default().to_string(),
        vectors: match options.vectors.unwrap_or(Scalar::F32) {
            Scalar::F32 => "f32".to_owned(),
            Scalar::F16 => "f16".to_owned(),
        },
        precision: encoder.precision().to_string(),
        pooling,
        late: late_reading(pooling, options.late_window, encoder)?,
        given: None,
        endpoint: encoder.endpoint().cloned(),
        prompt: options.prompt.clone(),
        context: contexts::asked(options.contexts.as_deref()),
    };
    check_contexts(&asked, encoder)?;
    let Some(known) = known else { return Ok(asked) };
    let differs = |setting, collection: &str, requested: &str| match collection == requested {
        true => Ok(()),
        false => Err(Error::Mismatch { setting, collection: collection.to_owned(), requested: requested.to_owned() }),
    };
    if asked.model_fingerprint != known.model_fingerprint {
        return Err(other_model(known, spec, encoder));
    }
    if let Some(prompt) = &options.prompt {
        differs("prompt", known.prompt.as_deref().unwrap_or(QUERY_PROMPT), prompt)?;
    }
    differs("chunker", &known.chunker_version.to_string(), &asked.chunker_version.to_string())?;
    if options.chunk_tokens.is_some() {
        differs("chunk-tokens", &known.chunk_tokens, &asked.chunk_tokens)?;
    }
    if options.header.is_some() {
        differs("header", &header_of(known), &asked.header)?;
    }
    if asked.context.is_some() && known.context != asked.context {
        let (collection, requested) = (header_of(known), header_of(&asked));
        return Err(Error::Mismatch { setting: "header", collection, requested });
    }
    if options.language.is_some() {
        differs("language", &known.language, &asked.language)?;
    }
    if options.vectors.is_some() {
        differs("vectors", &known.vectors, &asked.vectors)?;
    }
    differs("pooling", &known.pooling.to_string(), &asked.pooling.to_string())?;
    if let (Some(_), Some(known), Some(asked)) = (options.late_window, known.late, asked.late) {
        differs("late-window", &known.window_tokens.to_string(), &asked.window_tokens.to_string())?;
    }
    Ok(known.clone())
}

/// The way documents are read where chunks have late vectors; the encoder's window unless another one is asked for.
fn late_reading(pooling: Pooling, window: Option<usize>, encoder: &Encoder) -> Result<Option<LateReading>> {
    let refuse = |reason: String| Error::Setting {
        setting: "late-window",
        value: window.map(|window| window.to_string()).unwrap_or_default(),
        reason,
    };
    match (pooling, window) {
        (Pooling::Plain, None) => Ok(None),
        (Pooling::Plain, Some(_)) => Err(refuse("is for late vectors only".to_owned())),
        _ => {
            let encoder = encoder.here("pooling")?;
            let windows = encoder.late_windows(window, None).map_err(|error| refuse(format!("cannot be: {error}")))?;
            Ok(Some(LateReading { window_tokens: windows.n_positions(), overlap_tokens: windows.overlap() }))
        }
    }
}

/// The header's style, or who writes the contexts behind it.
fn header_of(config: &CollectionConfig) -> String {
    config.context.as_ref().map_or_else(|| config.header.clone(), ToString::to_string)
}

/// Contexts stand before a chunk's own text, in the window of the encoder: there must be room for both.
fn check_contexts(config: &CollectionConfig, encoder: &Encoder) -> Result<()> {
    let Some(written) = &config.context else { return Ok(()) };
    let refuse = |reason: String| Err(Error::Setting { setting: "header", value: written.to_string(), reason });
    if config.pooling != Pooling::Plain {
        return refuse("is for plain vectors only: late vectors have no header".to_owned());
    }
    if chunk_config(config, encoder)?.window_tokens < CHUNK_TOKENS_MIN {
        let window = encoder.max_tokens();
        return refuse(format!("leaves no room for text in the encoder's window of {window} tokens"));
    }
    Ok(())
}

/// The refusal of an encoder whose vectors are not those of the collection: another model, or the same in a number type
/// that was computed otherwise when the collection was made.
pub(crate) fn other_model(known: &CollectionConfig, spec: &str, encoder: &Encoder) -> Error {
    let (setting, remark) = match encoder.has_superseded(&known.model_fingerprint) {
        true => ("precision", format!(", {} as an earlier build computed it", known.precision)),
        false => ("model", String::new()),
    };
    Error::Mismatch {
        setting,
        collection: format!("{} (fingerprint {}{remark})", known.model, short(&known.model_fingerprint)),
        requested: format!("{spec} (fingerprint {})", short(encoder.fingerprint())),
    }
}

/// The chunker's configuration for an encoder: header and chunk share its window with the prompt and the special
/// tokens.
pub(super) fn chunk_config(config: &CollectionConfig, encoder: &Encoder) -> Result<ChunkConfig> {
    let n_prompt = encoder.tokenizer().count(encoder.prompt(Kind::Document));
    let n_context = if config.context.is_some() { CONTEXT_TOKENS } else { 0 };
    let window_tokens = encoder.max_tokens().saturating_sub(encoder.n_special() + n_prompt + n_context);
    Ok(ChunkConfig { size: config.chunk_size()?, window_tokens, header: config.header_style()? })
}

/// Says that chunks cannot be as long as was asked for.
pub(super) fn capped(chunking: &ChunkConfig) -> Option<String> {
    match chunking.size {
        ChunkSize::Target(n_tokens) if n_tokens > chunking.window_tokens => Some(format!(
            "chunk-tokens: {n_tokens} is more than the encoder reads; a chunk with its header ends at {} tokens",
            chunking.window_tokens
        )),
        _ => None,
    }
}
