//! A file of texts becomes a matrix of vectors, with ids and a manifest: `OUT.npy`, `OUT.ids.jsonl`, `OUT.json`.
//!
//! Data flow: `input` (lines → batches) → `encoder` → `part` (rows and ids in the making, a journal) → `quantize` →
//! `npy`. A stream of Arrow goes through `encoder` and `quantize` alone (`arrow`).
//!
//! **Invariant.** Memory does not grow with the texts, but for 24 bytes an id. A run that is killed goes on where its
//! journal ends, and its result is, byte for byte, that of a run that was not. The manifest appears last: where it is,
//! all is there.

mod arrow;
mod encoder;
mod input;
mod quantize;
mod manifest;
mod npy;
mod options;
mod part;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use cento_collection::fs::OsFs;
use cento_embedder::NEVER;
use serde::Serialize;

pub use self::arrow::{ArrowReport, embed_arrow};
use self::encoder::TextEncoder;
use self::input::{BATCHES_AHEAD, Batch, Ended, Text};
pub use self::input::{EmbedInput, FileLines};
use self::manifest::Plan;
pub use self::manifest::{Manifest, ManifestInput};
pub use self::options::{EmbedOptions, EmbedProgress, TooLong};
use self::part::{Names, Part, Progressed};
use self::quantize::GivenRanges;
pub use self::quantize::OutputType;
use crate::error::{Error, Result};
use crate::ingest::Issue;

/// Ranges made of fewer rows are remarked on: other texts will often lie outside.
const RANGE_ROWS_MIN: u64 = 100;

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
    let mut encoder = TextEncoder::load(options)?;
    let dimensions = encoder.encoder.dimensions();
    let ranges = options.ranges.as_deref().map(|path| GivenRanges::read(path, dimensions)).transpose()?;
    let plan = Plan { part: input.part(), ..encoder.plan(options, ranges.as_ref()) };
    if options.restart {
        Part::discard(&names)?;
    } else if let Some(manifest) = existing
        && manifest.plan() == plan
        && input.n_bytes() == Some(manifest.input.n_bytes)
        && input.hash()?.is_some_and(|all| all.blake3 == manifest.input.blake3)
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
    options.cache.as_ref().map_or(Ok(()), |cache| encoder.open_cache(cache))?;
    let mut run = Run { encoder, part, too_long: options.too_long, ranges };
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

struct Run {
    encoder: TextEncoder,
    part: Part,
    too_long: TooLong,
    ranges: Option<GivenRanges>,
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
        let embeddings = self.encoder.vectors(&texts).map_err(|error| match error {
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

    /// Removes what was made: nobody knows which rows are of which model.
    fn forget(mut self) -> Result<()> {
        self.part.remove()?;
        self.encoder.forget_cache()
    }

    fn finish(mut self, input: &EmbedInput, names: &Names, plan: &Plan, done: Done) -> Result<EmbedReport> {
        let Done { n_resumed, rows, ended } = done;
        let Ended { read, failed, mut notes } = ended;
        notes.extend(self.encoder.encoder.remark());
        if rows.n_rows == 0 {
            let reason = match (failed.first(), &plan.part) {
                (Some(first), _) => format!("; {}", first.reason),
                (None, Some(part)) => format!(" in part {part}: no line begins there; take fewer parts"),
                (None, None) => String::new(),
            };
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
                part: plan.part.clone(),
            },
        };
        self.part.finish(names, &manifest, ranges.as_ref())?;
        self.encoder.finish_cache()?;
        let n_from_cache = self.encoder.n_from_cache;
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
