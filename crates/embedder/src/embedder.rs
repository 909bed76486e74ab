//! Text in, unit vectors out: tokenize, pack, encode, pool.
//!
//! **Invariant.** The vector of a text depends on the text and the model alone: bit for bit the same whatever else is
//! in the call, in the batch, and however many threads there are.

mod accelerated;
mod first_check;

use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::device::{self, Device, DeviceChoice, Form, Opened, Work};
use crate::encoder::Transformer;
use crate::encoder::stop::{NEVER, Stop, check};
use crate::error::{Error, Result};
use crate::fingerprint::{dtype, fingerprint, superseded_dtype};
use crate::folder::{Folder, Prompts};
use crate::kernels::gpu::{AdapterKind, Gpu};
use crate::layers::Workspace;
use crate::layers::team::Team;
use crate::pack::{Batch, pack};
use crate::pooling::{Head, NoVector};
use crate::precision::Precision;
use crate::scan::Accelerator;
use crate::tokens::{Encoded, Tokenizer};
use crate::weights::{AlwaysHashed, WeightHashes, Weights};

/// Tokens that one CPU thread computes at a time, unless [`LoadOptions::max_batch_tokens`] says otherwise.
///
/// More gains nothing: at 1024 all hidden rows of MiniLM are in the third-level cache, and the allocator still keeps
/// the memory from one layer to the next (four times fewer page faults than at 2048).
pub const DEFAULT_BATCH_TOKENS: usize = 1024;
/// Tokens that an accelerator computes at a time, unless [`LoadOptions::max_batch_tokens`] says otherwise: enough to
/// keep all of a large GPU busy through every kernel of a small model, whose widest rows (50 MB) still fit its
/// second-level cache.
pub const DEFAULT_ACCELERATOR_BATCH_TOKENS: usize = 16 * 1024;
/// Tokens that a GPU by Vulkan or Metal which is no card of its own computes at a time, unless
/// [`LoadOptions::max_batch_tokens`] says otherwise: a layer of BERT-large is 100 GFLOP of them, which no watchdog
/// minds. A card has as many as another accelerator: with these an H100 is a fifth slower.
pub const DEFAULT_GPU_BATCH_TOKENS: usize = 4 * 1024;
/// Threads that can be asked for, [`LoadOptions::threads`]: more than cores only make a run slower.
pub const THREADS_MAX: usize = 1024;
/// No thread is started for less than this.
const MIN_BATCH_TOKENS: usize = 128;
/// Batches per thread that a call is cut into where it can be, so that the threads finish together.
const BATCHES_PER_THREAD: usize = 4;

/// Texts tokenized before the first of them is computed, at most.
const BLOCK_TEXTS: usize = 8192;

/// Settings to load and run a model. Only precision changes a vector, and the device within rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// Where the model is computed.
    pub device: DeviceChoice,
    /// Number type of weights and products. Vectors of different precisions do not mix.
    pub precision: Precision,
    /// CPU threads, at most [`THREADS_MAX`]; 0 = as many as there are cores.
    pub threads: usize,
    /// Tokens computed at a time; a single longer text is still computed. 0 = [`DEFAULT_BATCH_TOKENS`], or
    /// [`DEFAULT_ACCELERATOR_BATCH_TOKENS`] on a card, or [`DEFAULT_GPU_BATCH_TOKENS`] on another GPU.
    pub max_batch_tokens: usize,
    /// Cuts vectors to their first so many values (Matryoshka); they have unit length nonetheless. `None`: as the
    /// folder says.
    pub dimensions: Option<usize>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            device: DeviceChoice::Auto,
            precision: Precision::F32,
            threads: 0,
            max_batch_tokens: 0,
            dimensions: None,
        }
    }
}

/// The kind of a text, which decides the prompt put before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A question.
    Query,
    /// Text to be found.
    Document,
}

/// A text as a vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// Unit length, finite, [`Embedder::dimensions`] values.
    pub vector: Vec<f32>,
    /// Tokens the encoder saw: prompt and special tokens included, after truncation.
    pub n_tokens: u32,
    /// True if the text was longer than the window, and its end did not count.
    pub truncated: bool,
}

/// A loaded model.
#[derive(Debug)]
pub struct Embedder {
    encoder: Transformer,
    tokenizer: Tokenizer,
    head: Head,
    prompts: Prompts,
    /// Tokens before the text: the prompt's and the special ones before it, by kind (query, document).
    n_prompt_tokens: [usize; 2],
    similarity: String,
    max_tokens: usize,
    n_positions: usize,
    fingerprint: String,
    superseded: Option<String>,
    device: Device,
    precision: Precision,
    /// One for each thread that has computed so far; taken for a call and given back.
    workspaces: Mutex<Vec<Workspace>>,
    /// For a batch that is alone; none where the caller's is the only thread, or another call has it.
    team: Mutex<Option<Team>>,
    n_threads: usize,
    max_batch_tokens: usize,
    pub(crate) n_halved: AtomicUsize,
    why_no_accelerator: Option<String>,
}

impl Embedder {
    /// Loads a sentence-transformers folder.
    ///
    /// # Errors
    /// If a file is missing or damaged, the model needs what this version does not compute, or the device is not there.
    pub fn load(folder: &Path, options: &LoadOptions) -> Result<Self> {
        Self::load_with(folder, options, &AlwaysHashed)
    }

    /// [`Embedder::load`] where the hashes of weights may be known.
    ///
    /// # Errors
    /// As [`Embedder::load`].
    pub fn load_with(folder: &Path, options: &LoadOptions, hashes: &dyn WeightHashes) -> Result<Self> {
        Ok(Self::of_folder(&Folder::open(folder)?, options, hashes)?.0)
    }

    /// With all weights of the folder, for what else is to be made of them.
    pub(crate) fn of_folder(
        folder: &Folder,
        options: &LoadOptions,
        hashes: &dyn WeightHashes,
    ) -> Result<(Self, Weights)> {
        if options.threads > THREADS_MAX {
            return Err(Error::Threads { asked: options.threads, most: THREADS_MAX });
        }
        let form = if folder.config.table().is_some() { Form::Table } else { Form::Layers };
        let work = Work { precision: options.precision, form };
        let (device, why_not) = device::open(options.device, work)?;
        if !device::is_checked(&device) || form == Form::Table {
            return Self::on_device(folder, options, hashes, (device, why_not));
        }
        // for a check the CPU computes in every precision that the device has
        let on_cpu = |why_not| {
            let (cpu, _) = device::open(DeviceChoice::Cpu, Work { precision: Precision::F32, ..work })?;
            Self::on_device(folder, options, hashes, (cpu, why_not))
        };
        let cpu_will_do = device::check_precision(&Device::CPU, options.precision).is_ok();
        let name = device::name(&device);
        let checked = Self::on_device(folder, options, hashes, (device, None)).and_then(|loaded| {
            let check = loaded.0.check_key();
            if hashes.has_passed(&check) {
                return Ok(loaded);
            }
            match loaded.0.first_check(&on_cpu(None)?.0)? {
                None => hashes.passed(&check),
                Some(reason) => {
                    let reason = format!("{name} computes wrongly, by its first check: {reason}; use cpu");
                    return Err(device::unavailable(options.device, reason));
                }
            }
            Ok(loaded)
        });
        match (options.device, checked) {
            (DeviceChoice::Auto, Err(error @ (Error::Device { .. } | Error::Compute(_)))) if cpu_will_do => {
                on_cpu(Some(error_in_words(&error)))
            }
            (_, checked) => checked,
        }
    }

    /// The model on an open device.
    fn on_device(
        folder: &Folder,
        options: &LoadOptions,
        hashes: &dyn WeightHashes,
        (device, why_no_accelerator): Opened,
    ) -> Result<(Self, Weights)> {
        let n_cores = || thread::available_parallelism().map_or(1, NonZero::get);
        let (tokenizer, tokenizer_hash) = folder.tokenizer()?;
        let head = Head::load(folder, options.dimensions)?;
        let n_prompt_tokens = |prompt: &str| {
            let count = tokenizer.n_prompt_tokens(prompt, folder.max_tokens);
            count.map_err(|reason| Error::Damaged { path: folder.tokenizer_path(), reason })
        };
        let n_prompt_tokens = [n_prompt_tokens(&folder.prompts.query)?, n_prompt_tokens(&folder.prompts.document)?];
        let (weights, weights_hash) = Weights::open(&folder.weights_path(), device.tensors(), hashes)?;
        let weights = weights.on_gpu(device.gpu());
        let n_threads = if options.threads == 0 { n_cores() } else { options.threads };
        let encoder = folder.config.load(&weights, folder.n_positions, options.precision)?;
        if let Some(gpu) = device.gpu() {
            check_window(gpu, &encoder, folder.max_tokens, options.device)?;
        }
        let fingerprint_as = |dtype| fingerprint(folder, &head, &weights_hash, &tokenizer_hash, dtype);
        let embedder = Self {
            tokenizer,
            fingerprint: fingerprint_as(dtype(options.precision)),
            superseded: superseded_dtype(options.precision).map(fingerprint_as),
            head,
            max_tokens: folder.max_tokens,
            n_positions: folder.n_positions,
            prompts: folder.prompts.clone(),
            n_prompt_tokens,
            similarity: folder.similarity.clone(),
            max_batch_tokens: max_batch_tokens(options.max_batch_tokens, &device, &encoder),
            encoder,
            device,
            precision: options.precision,
            n_halved: AtomicUsize::new(0),
            why_no_accelerator,
            workspaces: Mutex::default(),
            team: Mutex::default(),
            n_threads,
        };
        embedder.hire();
        Ok((embedder, weights))
    }

    /// The vector of each text, in order. The prompt of `kind` is put before each.
    ///
    /// A text beyond the window is embedded without its end, and says so in [`Embedding::truncated`].
    ///
    /// # Errors
    /// If a text cannot be tokenized or its vector is not finite: the first such text is named. If the device fails.
    pub fn embed(&self, texts: &[String], kind: Kind) -> Result<Vec<Embedding>> {
        self.embed_unless(texts, kind, NEVER)
    }

    /// [`Embedder::embed`] for somebody who may stop wanting the vectors.
    ///
    /// # Errors
    /// As [`Embedder::embed`], and [`Error::Cancelled`].
    pub fn embed_unless(&self, texts: &[String], kind: Kind, stop: Stop<'_>) -> Result<Vec<Embedding>> {
        if device::is_accelerator(&self.device) {
            return self.embed_on_device(texts, kind, stop);
        }
        let mut embeddings = Vec::with_capacity(texts.len());
        for block in texts.chunks(BLOCK_TEXTS) {
            embeddings.extend(self.embed_block(block, embeddings.len(), kind, stop)?);
        }
        Ok(embeddings)
    }

    /// The vector of one text, unless `stop` says so before it is there; see [`Embedder::embed_unless`].
    ///
    /// # Errors
    /// As [`Embedder::embed_unless`].
    pub fn embed_one_unless(&self, text: &str, kind: Kind, stop: Stop<'_>) -> Result<Embedding> {
        let mut embedded = self.embed_unless(&[text.to_owned()], kind, stop)?;
        Ok(embedded.pop().expect("one for each text"))
    }

    /// The embeddings of some texts; the first of them has the number `first` in the call.
    fn embed_block(&self, texts: &[String], first: usize, kind: Kind, stop: Stop<'_>) -> Result<Vec<Embedding>> {
        let prompt = self.prompt(kind);
        let encoded = in_parallel(self.n_threads.min(texts.len().div_ceil(8)), texts.len(), |index| {
            check(stop)?;
            self.encode(prompt, &texts[index]).map_err(|reason| Error::Tokenize { index: first + index, reason })
        })?;
        let (ids, truncated): (Vec<_>, Vec<_>) = encoded.into_iter().map(|text| (text.ids, text.truncated)).unzip();
        let n_tokens: usize = ids.iter().map(Vec::len).sum();
        let n_threads = self.n_threads_for(n_tokens);
        let batches = pack(ids, self.batch_tokens(n_tokens, n_threads));
        let vectors = in_parallel(n_threads, batches.len(), |index| self.vectors(&batches[index], kind, stop))?;

        let mut of_texts: Vec<Option<Result<Embedding>>> = Vec::new();
        of_texts.resize_with(texts.len(), || None);
        for (batch, vectors) in batches.iter().zip(vectors) {
            for ((&index, span), vector) in batch.inputs.iter().zip(batch.spans.iter()).zip(vectors) {
                let embedding = |vector| Embedding { vector, n_tokens: span.len() as u32, truncated: truncated[index] };
                let named = |reason| Error::Vector { index: first + index, reason };
                of_texts[index] = Some(vector.map(embedding).map_err(named));
            }
        }
        of_texts.into_iter().map(|embedding| embedding.expect("every text is in a batch")).collect()
    }

    /// The exact text that is embedded for `text`: its prompt, then the text.
    pub fn bytes_embedded(&self, text: &str, kind: Kind) -> String {
        [self.prompt(kind), text].concat()
    }

    /// Length of every vector.
    pub fn dimensions(&self) -> usize {
        self.head.dimensions()
    }

    /// The measure that the model's vectors were trained for, as its folder says: `cosine`, `dot`, `euclidean`,
    /// `manhattan`. Between vectors of unit length the first three rank alike; a model trained for `dot` loses the
    /// length of its vectors here.
    pub fn similarity(&self) -> &str {
        &self.similarity
    }

    /// The window: tokens of prompt, text and special tokens together.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Narrows the window: at most `max_tokens` of a text are read, prompt and special tokens counted. The fingerprint
    /// stays.
    pub fn limit_tokens(&mut self, max_tokens: usize) {
        assert!(self.n_special() < max_tokens && max_tokens <= self.max_tokens, "{max_tokens} of {}", self.max_tokens);
        self.max_tokens = max_tokens;
    }

    /// Puts another of the folder's prompts before queries, by its name there: instruction models have one a task. The
    /// fingerprint stays, as documents have the vectors that they had.
    ///
    /// # Errors
    /// [`Error::Prompt`] for a name that the folder does not have, or a prompt that cannot be tokenized.
    pub fn choose_query_prompt(&mut self, name: &str) -> Result<()> {
        let refuse = |reason: String| Error::Prompt { name: name.to_owned(), reason };
        let Some(prompt) = self.prompts.named.get(name) else {
            let known: Vec<&str> = self.prompts.named.keys().map(String::as_str).collect();
            return Err(refuse(match known.is_empty() {
                true => "the model's folder names no prompt".to_owned(),
                false => format!("is none of the model's: {}", known.join(", ")),
            }));
        };
        self.n_prompt_tokens[0] = self.tokenizer.n_prompt_tokens(prompt, self.max_tokens).map_err(refuse)?;
        self.prompts.query.clone_from(prompt);
        Ok(())
    }

    /// Special tokens added to every text; they count toward the window.
    pub fn n_special(&self) -> usize {
        self.tokenizer.n_special()
    }

    /// The prompt before each text of that kind; empty for most models.
    pub fn prompt(&self, kind: Kind) -> &str {
        match kind {
            Kind::Query => &self.prompts.query,
            Kind::Document => &self.prompts.document,
        }
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Hexadecimal BLAKE3 of weights, tokenizer, configuration, pooling, prompts, window and number type. Vectors of
    /// different fingerprints are not comparable.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The fingerprint that earlier builds gave this model in this number type, if their vectors were others: those of
    /// int8, before it turned weights and rows.
    pub fn superseded_fingerprint(&self) -> Option<&str> {
        self.superseded.as_deref()
    }

    /// The part of the machine that decides the bits of a vector, beside model and text: `cpu` where every processor
    /// gives the same, `cpu` and its instruction set in bf16, else the accelerator. Vectors of one fingerprint and
    /// another arithmetic are close, not equal.
    pub fn arithmetic(&self) -> String {
        device::arithmetic(&self.device, self.precision)
    }

    /// Number type of weights and products.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Floating-point operations that a text of that many tokens takes, a multiply-add counted as two: dense layers and
    /// attention.
    pub fn flops(&self, n_tokens: usize) -> u64 {
        self.encoder.flops(n_tokens)
    }

    /// Where the model is computed, in words.
    pub fn device_name(&self) -> String {
        device::name(&self.device)
    }

    /// A remark on the choice of the device: which accelerator it was and what befell it, or why it was none. `None`
    /// where there was no choice.
    pub fn device_remark(&self) -> Option<String> {
        let (name, precision) = (self.device_name(), self.precision);
        match (&self.why_no_accelerator, self.n_batches_halved()) {
            (Some(reason), _) => Some(format!("computed on the {name} and no other device: {reason}")),
            _ if self.device.is_cpu() => None,
            (None, 0) => Some(format!("computed on {name} in {precision}")),
            (None, n) => {
                Some(format!("computed on {name} in {precision}; its memory was full: {n} batches were halved"))
            }
        }
    }

    /// The longest sequence the encoder has positions for; [`Embedder::max_tokens`] may be less.
    pub fn n_positions(&self) -> usize {
        self.n_positions
    }

    /// The longest sequence that encoder and device compute.
    pub(crate) fn computed_tokens_max(&self) -> usize {
        let of_device = self.device.gpu().map_or(usize::MAX, |gpu| gpu.rows_max(self.encoder.widest_row()));
        self.n_positions.min(of_device)
    }

    pub(crate) fn n_threads(&self) -> usize {
        self.n_threads
    }

    pub(crate) fn max_batch_tokens(&self) -> usize {
        self.max_batch_tokens
    }

    /// Threads that share so many tokens.
    pub(crate) fn n_threads_for(&self, n_tokens: usize) -> usize {
        if !device::is_accelerator(&self.device) { self.n_threads.min(n_tokens.div_ceil(MIN_BATCH_TOKENS)) } else { 1 }
    }

    pub(crate) fn encode(&self, prompt: &str, text: &str) -> Result<Encoded, String> {
        if prompt.is_empty() {
            return self.tokenizer.encode(text, self.max_tokens);
        }
        self.tokenizer.encode(&[prompt, text].concat(), self.max_tokens)
    }

    /// Small calls are cut finer, so that every thread has some of the work.
    pub(crate) fn batch_tokens(&self, n_tokens: usize, n_threads: usize) -> usize {
        match n_threads {
            0 | 1 => self.max_batch_tokens,
            n => n_tokens.div_ceil(n * BATCHES_PER_THREAD).max(MIN_BATCH_TOKENS).min(self.max_batch_tokens),
        }
    }

    /// Tokens before a text of that kind: a prompt that fills the window is cut, and what follows a text follows it.
    pub(crate) fn n_prompt(&self, kind: Kind) -> usize {
        self.n_prompt_tokens[kind as usize].min(self.max_tokens - self.tokenizer.n_around().1)
    }

    fn vectors(&self, batch: &Batch, kind: Kind, stop: Stop<'_>) -> Result<Vec<Result<Vec<f32>, NoVector>>> {
        let n_prompt = self.n_prompt(kind);
        self.with_hidden(batch, stop, |hidden, _| self.head.vectors(hidden, &batch.spans, n_prompt))
    }

    /// The part behind the encoder.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// The result of `read` on the hidden rows of a batch, \[T, H\] in main memory, and on H.
    pub(crate) fn with_hidden<R>(
        &self,
        batch: &Batch,
        stop: Stop<'_>,
        read: impl FnOnce(&[f32], usize) -> R,
    ) -> Result<R> {
        let mut workspace = self.workspace();
        let mut lent = Lent { embedder: self, had_team: false };
        if batch.is_alone {
            workspace.team = self.team.lock().take();
            lent.had_team = workspace.team.is_some();
            workspace.team.iter().for_each(Team::wake);
        }
        let rows = self.encoder.forward(batch, &mut workspace, stop);
        if let Some(team) = workspace.team.take() {
            *self.team.lock() = Some(team);
            lent.had_team = false;
        }
        let rows = rows?;
        let result = {
            let hidden = rows.to_host()?;
            read(&hidden, hidden.len() / batch.ids.len())
        };
        workspace.give(rows);
        self.give_back(workspace);
        Ok(result)
    }

    pub(crate) fn encoder(&self) -> &Transformer {
        &self.encoder
    }

    /// Where vectors can be compared beside the model: the device it is computed on.
    pub fn accelerator(&self) -> Accelerator {
        Accelerator::new(self.device.clone())
    }

    pub(crate) fn workspace(&self) -> Workspace {
        let new = || match self.device.gpu() {
            None => Workspace::new(device::simd()),
            Some(gpu) => Workspace::of_gpu(device::simd(), gpu.clone()),
        };
        self.workspaces.lock().pop().unwrap_or_else(new)
    }

    pub(crate) fn give_back(&self, workspace: Workspace) {
        self.workspaces.lock().push(workspace);
    }

    /// Makes a team, where there can be one.
    fn hire(&self) {
        if self.n_threads > 1 && !device::is_accelerator(&self.device) {
            *self.team.lock() = Some(Team::new(device::simd(), self.n_threads));
        }
    }
}

/// Tokens computed at a time: `asked`, or the device's own number; on a GPU no more than the adapter lets a kernel read
/// the widest rows of.
fn max_batch_tokens(asked: usize, device: &Device, encoder: &Transformer) -> usize {
    let wanted = match asked {
        0 if device.is_cpu() => DEFAULT_BATCH_TOKENS,
        0 if device.gpu().is_some_and(|gpu| gpu.adapter().kind != AdapterKind::Discrete) => DEFAULT_GPU_BATCH_TOKENS,
        0 => DEFAULT_ACCELERATOR_BATCH_TOKENS,
        n => n,
    };
    device.gpu().map_or(wanted, |gpu| wanted.min(gpu.rows_max(encoder.widest_row())))
}

/// Refuses a GPU that has no room for the longest text of the model: another text would fail in the midst of a run.
fn check_window(gpu: &Gpu, encoder: &Transformer, max_tokens: usize, choice: DeviceChoice) -> Result<()> {
    let row_bytes = encoder.widest_row() * size_of::<f32>();
    let n_rows = gpu.rows_max(encoder.widest_row());
    if max_tokens <= n_rows {
        return Ok(());
    }
    let reason = format!(
        "{} is too small for the model: a text may have {max_tokens} tokens, each a row of {row_bytes} bytes, and a \
         kernel takes {n_rows} such rows there; use cpu",
        gpu.name()
    );
    Err(device::unavailable(choice, reason))
}

/// An error with its causes.
fn error_in_words(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    std::iter::once(error.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}

/// A team at work: if a panic ends it, another is hired, so that the next text is embedded as fast as the last.
struct Lent<'e> {
    embedder: &'e Embedder,
    had_team: bool,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if self.had_team {
            self.embedder.hire();
        }
    }
}

/// `job(0)`, `job(1)`, … on threads that take the next number when they are free; results in order, or the error of the
/// lowest number that failed.
pub(crate) fn in_parallel<T: Send>(
    n_threads: usize,
    n_jobs: usize,
    job: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    if n_threads <= 1 || n_jobs <= 1 {
        return (0..n_jobs).map(job).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= n_jobs {
                return done;
            }
            done.push((number, job(number)));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..n_threads.min(n_jobs)).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod parity;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod tests;
