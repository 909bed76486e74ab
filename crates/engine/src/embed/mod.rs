//! A file of texts becomes a matrix of vectors, with ids and a manifest: `OUT.npy`, `OUT.ids.jsonl`, `OUT.json`.
//!
//! Data flow: `input` (lines → batches) → the encoder → `part` (rows and ids in the making, a journal) → `quantize` →
//! `npy`.
//!
//! **Invariant.** Memory does not grow with the texts, but for 24 bytes an id. A run that is killed goes on where its
//! journal ends, and its result is, byte for byte, that of a run that was not. The manifest appears last: where it is,
//! all is there.

mod input;
mod quantize;
mod manifest;
mod npy;
mod part;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use cento_collection::fs::OsFs;
use cento_embedder::{DeviceChoice, Embedding, Kind, LoadOptions, NEVER, Precision, cache};
use serde::Serialize;

pub use self::input::EmbedInput;
use self::input::{Batch, Ended, Text};
use self::manifest::Plan;
pub use self::manifest::{Manifest, ManifestInput};
use self::part::{Names, Part, Progressed};
pub use self::quantize::OutputType;
use self::quantize::Ranges;
use crate::encoder::{Address, Encoder, EncoderAccess, EndpointSettings, Named, Opening};
use crate::error::{Error, Result};
use crate::ingest::Issue;
use crate::ingest::cache::{CacheOptions, CachedEmbeddings, ModelFile};
use crate::line::patience::Patience;
use cento_models::{DEFAULT_MODEL, Models};

/// Batches read ahead of the encoder.
const BATCHES_AHEAD: usize = 2;
/// Ranges made of fewer rows are remarked on: other texts will often lie outside.
const RANGE_ROWS_MIN: u64 = 100;

/// Options to embed and write texts.
#[derive(Debug, Clone)]
pub struct EmbedOptions {
    /// Card or folder of the encoder, or `openai:NAME@URL` of one at an endpoint; the default model if none.
    pub model: Option<String>,
    /// Name of the prompt before queries, in the folder of an encoder of this machine; `query` by default.
    pub prompt: Option<String>,
    /// The use of an encoder at an endpoint; its dimensions and window are those of these options.
    pub endpoint: EndpointSettings,
    /// The way it is asked.
    pub access: EncoderAccess,
    /// Kind of prompt before each text.
    pub kind: Kind,
    /// Where the encoder runs.
    pub device: DeviceChoice,
    /// Number type it computes in.
    pub precision: Precision,
    /// CPU threads; 0 = one per core.
    pub threads: usize,
    /// The first so many dimensions, made unit length again; for models trained so (Matryoshka).
    pub dimensions: Option<usize>,
    /// Tokens read of a text, prompt and special tokens counted; at most the model's own window.
    pub max_tokens: Option<usize>,
    /// Treatment of a text beyond the window.
    pub too_long: TooLong,
    /// Type of the matrix.
    pub output_type: OutputType,
    /// Ranges of `int8` and `uint8`: an array of 2 x dimensions f32, least values first; those of the texts themselves
    /// if none.
    pub ranges: Option<PathBuf>,
    /// Take vectors from the cache where it has them, and keep new ones there.
    pub cache: Option<CacheOptions>,
    /// Forget an earlier run that was not finished, and make a result anew that is there.
    pub restart: bool,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self {
            model: None,
            prompt: None,
            endpoint: EndpointSettings::default(),
            access: EncoderAccess::default(),
            kind: Kind::Document,
            device: DeviceChoice::Auto,
            precision: Precision::F32,
            threads: 0,
            dimensions: None,
            max_tokens: None,
            too_long: TooLong::Truncate,
            output_type: OutputType::F32,
            ranges: None,
            cache: None,
            restart: false,
        }
    }
}

/// Treatment of a text beyond the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLong {
    /// Its end is left out, and its line of ids says so.
    Truncate,
    /// The run ends with an error that names it.
    Error,
}

impl TooLong {
    fn name(self) -> &'static str {
        match self {
            Self::Truncate => "truncate",
            Self::Error => "error",
        }
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Default)]
pub struct EmbedProgress {
    /// Rows there, those of an earlier run counted.
    pub n_rows: u64,
    /// Rows of an earlier run.
    pub n_resumed: u64,
    /// Tokens embedded in this run.
    pub n_tokens: u64,
    /// Bytes of the input that the rows come from.
    pub n_bytes: u64,
    /// Bytes of the input, where they are known.
    pub n_bytes_total: Option<u64>,
}

/// A run's report.
#[derive(Debug, Clone, Serialize)]
pub struct EmbedReport {
    /// The manifest now.
    #[serde(flatten)]
    pub manifest: Manifest,
    /// Where the matrix is.
    pub output: PathBuf,
    /// Rows that an earlier run had made.
    pub n_resumed: u64,
    /// Rows whose vector came from the cache.
    pub n_from_cache: u64,
    /// Lines that hold no text to embed, and why.
    pub failed: Vec<Issue>,
    /// The role each key was given, and other remarks.
    pub notes: Vec<String>,
}

/// Embeds every line of the input into the matrix `array`, which ends in `.npy`.
///
/// A run that was cut short goes on where it stopped; a result that is there and is of this very input, made as the
/// options say, is left as it is.
///
/// # Errors
/// If the input has an id twice, holds no text, or is not the one that an earlier run began with; if that run was made
/// otherwise; if a text is too long and that is to be an error; if files are in the way that no run of this kind made.
pub fn embed(
    input: &EmbedInput,
    array: &Path,
    options: &EmbedOptions,
    progress: &mut dyn FnMut(&EmbedProgress),
) -> Result<EmbedReport> {
    let names = Names::new(array)?;
    if part::is_whole(&names) {
        part::publish(&OsFs, &names)?;
    }
    let existing = names.existing()?;
    let encoder = Reader::load(options)?;
    let ranges = options.ranges.as_deref().map(|path| Given::read(path, encoder.encoder.dimensions())).transpose()?;
    let plan = encoder.plan(options, ranges.as_ref());
    if options.restart {
        Part::discard(&names)?;
    } else if let (Some(manifest), EmbedInput::File(path)) = (existing, input)
        && manifest.plan() == plan
        && input.n_bytes() == Some(manifest.input.n_bytes)
        && input::hash(path)?.blake3 == manifest.input.blake3
    {
        let notes = vec!["the texts are embedded already; a restart embeds them again".to_owned()];
        let n_resumed = manifest.n_rows;
        return Ok(EmbedReport {
            manifest,
            output: names.array,
            n_resumed,
            n_from_cache: 0,
            failed: Vec::new(),
            notes,
        });
    }
    let part = Part::open(&names, &plan)?;
    let cache = options.cache.as_ref().map(|cache| encoder.open_cache(cache)).transpose()?;
    let mut run = Run { encoder, part, cache, too_long: options.too_long, ranges, n_from_cache: 0 };
    let ended = run.embed(input, progress).and_then(|done| run.encoder.encoder.confirm(NEVER).map(|()| done));
    match ended {
        Ok(ended) => run.finish(input, &names, &plan, ended),
        Err(error @ Error::EncoderChanged { .. }) => {
            run.forget()?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}

/// The encoder of a run.
struct Reader {
    name: String,
    encoder: Encoder,
    kind: Kind,
    /// The window, if it is smaller than the model's.
    limit_tokens: Option<usize>,
}

impl Reader {
    fn load(options: &EmbedOptions) -> Result<Self> {
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
        Ok(Self { name, encoder, kind: options.kind, limit_tokens })
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
        Ok(Self { name, encoder, kind: options.kind, limit_tokens: None })
    }

    fn plan(&self, options: &EmbedOptions, ranges: Option<&Given>) -> Plan {
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
        }
    }

    /// Vectors cut to another window are another model's, as far as the cache goes.
    fn open_cache(&self, options: &CacheOptions) -> Result<CachedEmbeddings> {
        let model = ModelFile {
            model: self.name.clone(),
            fingerprint: self.cache_fingerprint(),
            dimensions: self.encoder.dimensions(),
            arithmetic: self.encoder.arithmetic(),
            probes: self.encoder.endpoint().map(|endpoint| endpoint.probes.clone()),
        };
        CachedEmbeddings::open(options, model)
    }

    fn cache_fingerprint(&self) -> String {
        match self.limit_tokens {
            Some(limit) => format!("{}-t{limit}", self.encoder.fingerprint()),
            None => self.encoder.fingerprint().to_owned(),
        }
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>> {
        self.encoder.embed(texts, self.kind)
    }

    /// True if a text whose vector was found in the cache had been cut.
    fn was_truncated(&self, embedded: &str, n_tokens: u32) -> bool {
        n_tokens as usize >= self.encoder.max_tokens()
            && self.encoder.tokenizer().count(embedded) + self.encoder.n_special() > self.encoder.max_tokens()
    }
}

/// Ranges out of a file.
struct Given {
    ranges: Ranges,
    blake3: String,
}

impl Given {
    fn read(path: &Path, dimensions: usize) -> Result<Self> {
        let (values, shape) = npy::read_f32(path)?;
        let ranges = Ranges::from_rows(&values, shape, dimensions)
            .map_err(|reason| Error::Array { path: path.to_owned(), reason })?;
        Ok(Self { ranges, blake3: input::hash(path)?.blake3 })
    }
}

struct Run {
    encoder: Reader,
    part: Part,
    cache: Option<CachedEmbeddings>,
    too_long: TooLong,
    ranges: Option<Given>,
    n_from_cache: u64,
}

impl Run {
    /// Embeds what is left of the input.
    fn embed(&mut self, input: &EmbedInput, progress: &mut dyn FnMut(&EmbedProgress)) -> Result<Done> {
        let before = self.part.progressed.clone();
        let n_resumed = before.as_ref().map_or(0, |before| before.n_rows);
        let mut done = before.clone().unwrap_or_default();
        let mut state = EmbedProgress {
            n_rows: n_resumed,
            n_resumed,
            n_tokens: 0,
            n_bytes: done.read.n_bytes,
            n_bytes_total: input.n_bytes(),
        };
        progress(&state);
        let (send, batches) = mpsc::sync_channel(BATCHES_AHEAD);
        let ended = thread::scope(|scope| {
            let before = before.as_ref().map(|before| &before.read);
            let reader = scope.spawn(move || input::read(input, n_resumed, before, &send));
            let embedded = batches.iter().try_for_each(|batch: Batch| {
                let n_before = done.n_tokens;
                self.add(input, batch, &mut done)?;
                state.n_rows = done.n_rows;
                state.n_tokens += done.n_tokens - n_before;
                state.n_bytes = done.read.n_bytes;
                progress(&state);
                Ok(())
            });
            drop(batches); // the reader stops, if it has not
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.part.note()?; // so that what was made before an error need not be made again
            embedded.and(read)
        })?;
        Ok(Done { n_resumed, rows: done, ended })
    }

    fn add(&mut self, input: &EmbedInput, batch: Batch, done: &mut Progressed) -> Result<()> {
        let (texts, lines): (Vec<String>, Vec<(u64, String)>) =
            batch.texts.into_iter().map(|Text { line, id, text }| (text, (line, id))).unzip();
        let embeddings = self.vectors(&texts).map_err(|error| match error {
            Error::Embedder(source) => name_line(input, &lines, source),
            other => other,
        })?;
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        let ranges = self.ranges.as_ref().map(|given| &given.ranges);
        for (embedding, (line, id)) in embeddings.iter().zip(lines) {
            if embedding.truncated && self.too_long == TooLong::Error {
                let max_tokens = self.encoder.encoder.max_tokens();
                return Err(Error::TextTooLong { input: input.name(), line, id, max_tokens });
            }
            self.part.written_as().encode(&embedding.vector, ranges, &mut rows);
            let row = IdLine { id: &id, n_tokens: embedding.n_tokens, truncated: embedding.truncated };
            serde_json::to_writer(&mut ids, &row).expect("plain data becomes JSON");
            ids.push(b'\n');
            done.n_tokens += u64::from(embedding.n_tokens);
            done.n_truncated += u64::from(embedding.truncated);
        }
        done.n_rows += texts.len() as u64;
        done.ids_bytes += ids.len() as u64;
        done.read = batch.read;
        self.part.append(&rows, &ids, done.clone())
    }

    /// A vector a text, out of the cache where it is there.
    fn vectors(&mut self, texts: &[String]) -> Result<Vec<Embedding>> {
        let Some(cache) = &mut self.cache else { return self.encoder.embed(texts) };
        let (encoder, fingerprint) = (&self.encoder, self.encoder.cache_fingerprint());
        let mut found: Vec<Option<Embedding>> = Vec::with_capacity(texts.len());
        let (mut keys, mut missing, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (position, text) in texts.iter().enumerate() {
            let embedded = encoder.encoder.bytes_embedded(text, encoder.kind);
            let key = cache::key(&fingerprint, &embedded);
            let cached = cache.find(&key).map(|(vector, n_tokens)| Embedding {
                truncated: encoder.was_truncated(&embedded, n_tokens),
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
        let made = encoder.encoder.embed_keeping(&missing, encoder.kind, NEVER, &mut keep);
        let made = made.map_err(|error| at_position(error, |index| positions[index]))?;
        let mut made = made.into_iter();
        Ok(found.into_iter().map(|found| found.or_else(|| made.next()).expect("found or made")).collect())
    }

    /// Removes what was made: nobody knows which rows are of which model.
    fn forget(self) -> Result<()> {
        self.part.remove()?;
        self.cache.map_or(Ok(()), CachedEmbeddings::forget)
    }

    fn finish(mut self, input: &EmbedInput, names: &Names, plan: &Plan, done: Done) -> Result<EmbedReport> {
        let Done { n_resumed, rows, ended } = done;
        let Ended { read, failed, mut notes } = ended;
        notes.extend(self.encoder.encoder.remark());
        if rows.n_rows == 0 {
            let reason = failed.first().map_or(String::new(), |first| format!("; {}", first.reason));
            self.part.remove()?;
            return Err(Error::NoTexts { input: input.name(), reason });
        }
        let ranges = match self.ranges.take() {
            Some(given) => Some(given.ranges),
            None if plan.output_type.has_ranges() => {
                if rows.n_rows < RANGE_ROWS_MIN {
                    notes.push(format!(
                        "the ranges come from {} texts alone; ranges given, of more texts, hold better",
                        rows.n_rows
                    ));
                }
                Some(self.part.ranges()?)
            }
            None => None,
        };
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest = Manifest {
            version: 1,
            cento: env!("CARGO_PKG_VERSION").to_owned(),
            model: self.encoder.name.clone(),
            model_fingerprint: plan.model_fingerprint.clone(),
            kind: plan.kind.clone(),
            prompt: self.encoder.encoder.prompt(self.encoder.kind).to_owned(),
            dimensions: plan.dimensions,
            max_tokens: plan.max_tokens,
            too_long: plan.too_long.clone(),
            precision: plan.precision.clone(),
            device: plan.device.clone(),
            normalized: true,
            array: name(&names.array),
            ids: name(&names.ids),
            output_type: plan.output_type,
            n_rows: rows.n_rows,
            n_columns: plan.output_type.n_columns(plan.dimensions),
            ranges: ranges.as_ref().map(|_| name(&names.ranges)),
            ranges_given: plan.ranges.clone(),
            n_tokens: rows.n_tokens,
            n_truncated: rows.n_truncated,
            n_failed: failed.len() as u64,
            input: ManifestInput {
                path: input.name().display().to_string(),
                n_bytes: read.n_bytes,
                blake3: read.blake3,
            },
        };
        self.part.finish(names, &manifest, ranges.as_ref())?;
        if let Some(cache) = self.cache {
            cache.finish()?;
        }
        let n_from_cache = self.n_from_cache;
        Ok(EmbedReport { manifest, output: names.array.clone(), n_resumed, n_from_cache, failed, notes })
    }
}

/// The error of a text, by the line it stands in.
fn name_line(input: &EmbedInput, lines: &[(u64, String)], source: cento_embedder::Error) -> Error {
    use cento_embedder::Error::{Tokenize, Vector};
    let (Tokenize { index, .. } | Vector { index, .. }) = &source else { return source.into() };
    let (line, id) = lines[*index].clone();
    Error::Text { input: input.name(), line, id, source: Box::new(source) }
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

/// Rows there, and the end of the input.
struct Done {
    n_resumed: u64,
    rows: Progressed,
    ended: Ended,
}

/// A line of `OUT.ids.jsonl`.
#[derive(Serialize)]
struct IdLine<'a> {
    id: &'a str,
    n_tokens: u32,
    truncated: bool,
}
