//! Late chunking: a document is read as a whole, and each of its chunks becomes the mean of its own tokens' rows.
//!
//! Source: Günther et al. 2024, "Late Chunking: Contextual Chunk Embeddings Using Long-Context Embedding Models"
//! (arXiv 2409.04701).
//! Shapes: T tokens of a document, H hidden, S spans give S vectors.
//!
//! The text is tokenized once. A token belongs to the span its first character (white space aside) lies in: no token to
//! two, white space and what lies between spans to none. Of the special tokens those before the text belong to the
//! first span, those behind it to the last, so that a document of one span has the vector that mean pooling gives it. A
//! document beyond the window is read in overlapping windows (see [`windows`]), special tokens and prefix in each; of
//! the special tokens only those of its first and last window belong to a span.
//!
//! Every span has a vector. One in which no token begins (a piece of a word that the tokenizer takes for one unknown
//! token, say) is read by itself, prefix before it, as a document of its own.
//!
//! Models whose tokens do not see what follows them are refused: their chunks would share what precedes them alone.
//! So are tables of vectors, whose tokens see nothing: their chunks would share nothing.
//!
//! Pooling is the mean whatever the model's own is, as a span has no token that stands for it. A model whose own
//! pooling is another one was not trained to that: measure before relying on it.
//!
//! Differs: the prefix conditions and is never pooled (in the reference, instructions are pooled into the first chunk);
//! spans beyond the window are read, not dropped; windows are cropped on both sides, and all have special tokens.
//! Cost: the encoder on all tokens, times window over stride where a document is longer than the window.

mod sums;
mod windows;

use std::ops::Range;

use self::sums::{Sum, owner, sums};
use self::windows::{Window, windows};
use crate::embedder::{Embedder, Embedding, Kind, in_parallel};
use crate::encoder::stop::NEVER;
use crate::error::{Error, Result};
use crate::pack::{Batch, pack};
use crate::tokens::Placed;

/// Rounds of batches per thread after which partial sums are added up: more keep threads busier, fewer need less
/// memory.
const BATCHES_PER_WAVE: usize = 64;
/// The share of a window that two neighbours have in common, unless asked otherwise.
pub const DEFAULT_OVERLAP: f64 = 0.5;

/// A document whose chunks share its context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LateDocument {
    /// Read before the text in every window, and in no vector: a title, say. The model's prompt is put before it.
    pub prefix: String,
    /// The document.
    pub text: String,
    /// The chunks: bytes of `text`, ascending, at character boundaries, without overlap. What lies between them is
    /// context.
    pub spans: Vec<Range<usize>>,
}

/// The way documents beyond the encoder's window are read: made by [`Embedder::late_windows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateWindows {
    n_positions: usize,
    n_special: usize,
    overlap: usize,
}

impl LateWindows {
    /// Tokens of a window: special tokens, prompt and prefix included.
    pub fn n_positions(self) -> usize {
        self.n_positions
    }

    /// Tokens that neighbouring windows have in common, at least; fewer where a prefix leaves less room.
    pub fn overlap(self) -> usize {
        self.overlap
    }

    /// Tokens that prompt and prefix together may have: half of what special tokens leave of a window.
    pub fn prefix_tokens_max(self) -> usize {
        (self.n_positions - self.n_special) / 2
    }
}

/// A sequence of tokens to be read in one or several windows.
struct Reading {
    /// Position of its document in the call.
    document: usize,
    prefix: Vec<u32>,
    ids: Vec<u32>,
    /// For each of `ids` the span it belongs to.
    owners: Vec<Option<usize>>,
    /// The span of the special tokens before the text, and of those behind it.
    outer: [usize; 2],
    /// Where it stands for a single span that is longer than a window: its end was left out.
    is_truncated: bool,
    windows: Vec<Window>,
}

impl Embedder {
    /// Windows of `n_positions` tokens (`None`: the model's own window, [`Embedder::max_tokens`]) that overlap by
    /// `overlap` tokens (`None`: half of it, [`DEFAULT_OVERLAP`]).
    ///
    /// # Errors
    /// If the model has fewer positions, the overlap leaves no progress, the model's vectors are several poolings
    /// side by side, or its tokens do not see what follows them, or nothing at all.
    pub fn late_windows(&self, n_positions: Option<usize>, overlap: Option<usize>) -> Result<LateWindows> {
        if !self.head().takes_one_row() {
            return Err(Error::LatePooling);
        }
        if self.encoder().is_table() {
            return Err(Error::LateTable);
        }
        if self.encoder().is_causal() {
            return Err(Error::LateCausal);
        }
        let n_positions = n_positions.unwrap_or(self.max_tokens());
        let overlap = overlap.unwrap_or((n_positions as f64 * DEFAULT_OVERLAP) as usize);
        let min = self.n_special() + 2;
        let allowed = min..=self.computed_tokens_max();
        if !allowed.contains(&n_positions) {
            return Err(Error::LateWindow { what: "window", n_tokens: n_positions, allowed });
        }
        let overlap_max = n_positions - self.n_special() - 1;
        if overlap > overlap_max {
            return Err(Error::LateWindow { what: "overlap", n_tokens: overlap, allowed: 0..=overlap_max });
        }
        Ok(LateWindows { n_positions, n_special: self.n_special(), overlap })
    }

    /// For each document the vector of each of its spans. They depend on the document, the windows and the model alone:
    /// not on the other documents, the batches or the threads.
    ///
    /// [`Embedding::n_tokens`] counts the tokens pooled into the vector. [`Embedding::truncated`] is false but for a
    /// span that was read by itself and does not fit a window.
    ///
    /// # Errors
    /// If a text cannot be tokenized, a prefix leaves no room, or a vector is not finite: the document is named by its
    /// position. If the device fails.
    ///
    /// # Panics
    /// If the spans of a document do not ascend within its text.
    pub fn embed_late(&self, documents: &[LateDocument], windows: LateWindows) -> Result<Vec<Vec<Embedding>>> {
        let of_document = |index: usize| self.readings(index, &documents[index], windows);
        let readings = in_parallel(self.n_threads().min(documents.len()), documents.len(), of_document)?;
        let readings: Vec<Reading> = readings.into_iter().flatten().collect();
        let mut pooled: Vec<Vec<Option<Sum>>> =
            documents.iter().map(|document| vec![None; document.spans.len()]).collect();
        let all: Vec<(&Reading, &Window)> =
            readings.iter().flat_map(|reading| reading.windows.iter().map(move |window| (reading, window))).collect();
        let n_wave =
            (BATCHES_PER_WAVE * self.n_threads_for(usize::MAX) * self.max_batch_tokens() / windows.n_positions).max(1);
        for wave in all.chunks(n_wave) {
            for ((reading, _), sums) in wave.iter().zip(self.window_sums(wave)?) {
                for sum in sums {
                    match &mut pooled[reading.document][sum.span] {
                        Some(known) => known.add(&sum),
                        none => *none = Some(sum),
                    }
                }
            }
        }
        let mut truncated: Vec<(usize, usize)> = readings
            .iter()
            .filter(|reading| reading.is_truncated)
            .map(|reading| (reading.document, reading.outer[0]))
            .collect();
        truncated.sort_unstable();
        let embedding = |index: usize, span: usize, sum: Option<Sum>| {
            let sum = sum.ok_or(Error::Vector { index, reason: "has no token" })?;
            let vector = self.head().of_sum(sum.sum, sum.n_tokens).map_err(|reason| Error::Vector { index, reason })?;
            let truncated = truncated.binary_search(&(index, span)).is_ok();
            Ok(Embedding { vector, n_tokens: sum.n_tokens, truncated })
        };
        let of_document = |(index, sums): (usize, Vec<Option<Sum>>)| {
            sums.into_iter().enumerate().map(|(span, sum)| embedding(index, span, sum)).collect()
        };
        pooled.into_iter().enumerate().map(of_document).collect()
    }

    /// The sums each window adds to the spans of its document, in order.
    fn window_sums(&self, wave: &[(&Reading, &Window)]) -> Result<Vec<Vec<Sum>>> {
        let sequences: Vec<Vec<u32>> = wave
            .iter()
            .map(|(reading, window)| self.tokenizer().surround(&[&reading.prefix, &reading.ids[window.read.clone()]]))
            .collect();
        let n_tokens = sequences.iter().map(Vec::len).sum();
        let n_threads = self.n_threads_for(n_tokens);
        let batches = pack(sequences, self.batch_tokens(n_tokens, n_threads));
        let of_batches = in_parallel(n_threads, batches.len(), |index| self.batch_sums(&batches[index], wave))?;
        let mut of_window = vec![Vec::new(); wave.len()];
        for (batch, sums) in batches.iter().zip(of_batches) {
            for (&input, sums) in batch.inputs.iter().zip(sums) {
                of_window[input] = sums;
            }
        }
        Ok(of_window)
    }

    fn batch_sums(&self, batch: &Batch, wave: &[(&Reading, &Window)]) -> Result<Vec<Vec<Sum>>> {
        self.with_hidden(batch, NEVER, |hidden, width| {
            let of_input = |(span, &input): (Range<usize>, &usize)| {
                let (reading, window) = wave[input];
                let owners = self.owners(reading, window);
                sums(&hidden[span.start * width..span.end * width], width, &owners)
            };
            batch.spans.iter().zip(&batch.inputs).map(of_input).collect()
        })
    }

    /// For each token of a window's sequence the span it counts for.
    fn owners(&self, reading: &Reading, window: &Window) -> Vec<Option<usize>> {
        let (n_before, n_after) = self.tokenizer().n_around();
        let n_kept_before = window.kept.start - window.read.start;
        let n_kept_after = window.read.end - window.kept.end;
        let first = (reading.windows.first() == Some(window)).then_some(reading.outer[0]);
        let last = (reading.windows.last() == Some(window)).then_some(reading.outer[1]);
        let none = |n| std::iter::repeat_n(None, n);
        std::iter::repeat_n(first, n_before)
            .chain(none(reading.prefix.len() + n_kept_before))
            .chain(reading.owners[window.kept.clone()].iter().copied())
            .chain(none(n_kept_after))
            .chain(std::iter::repeat_n(last, n_after))
            .collect()
    }

    /// The document as a whole, then each span by itself in which no token begins.
    fn readings(&self, document: usize, late: &LateDocument, windows: LateWindows) -> Result<Vec<Reading>> {
        check_spans(late);
        if late.spans.is_empty() {
            return Ok(Vec::new());
        }
        let tokenize = |text: &str| {
            self.tokenizer().tokenize_placed(text).map_err(|reason| Error::Tokenize { index: document, reason })
        };
        let prefix = tokenize(&[self.prompt(Kind::Document), &late.prefix].concat())?.ids;
        let capacity = self.capacity(document, prefix.len(), windows)?;
        let Placed { ids, places } = tokenize(&late.text)?;
        let owners: Vec<Option<usize>> = places.into_iter().map(|place| owner(&late.spans, place)).collect();
        let mut has_token = vec![false; late.spans.len()];
        owners.iter().flatten().for_each(|&span| has_token[span] = true);
        let mut readings = Vec::new();
        for span in (0..late.spans.len()).filter(|&span| !has_token[span]) {
            let mut ids = tokenize(&late.text[late.spans[span].clone()])?.ids;
            let is_truncated = ids.len() > capacity;
            ids.truncate(capacity);
            let whole = Window { read: 0..ids.len(), kept: 0..ids.len() };
            let is_empty = ids.is_empty() && prefix.is_empty() && self.n_special() == 0;
            readings.push(Reading {
                document,
                prefix: prefix.clone(),
                owners: vec![Some(span); ids.len()],
                ids,
                outer: [span; 2],
                is_truncated,
                windows: if is_empty { Vec::new() } else { vec![whole] },
            });
        }
        let first = has_token.iter().position(|&has| has);
        let last = has_token.iter().rposition(|&has| has);
        if let (Some(first), Some(last)) = (first, last) {
            let mut windows = self::windows(ids.len(), capacity, windows.overlap.min(capacity - 1));
            // between spans far apart nothing is asked for
            windows.retain(|window| owners[window.kept.clone()].iter().any(Option::is_some));
            let outer = [first, last];
            readings.push(Reading { document, prefix, ids, owners, outer, is_truncated: false, windows });
        }
        Ok(readings)
    }

    /// Tokens of text that a window holds beside special tokens and prefix.
    fn capacity(&self, document: usize, n_prefix: usize, windows: LateWindows) -> Result<usize> {
        match windows.prefix_tokens_max() {
            max if n_prefix > max => Err(Error::LatePrefix { index: document, n_tokens: n_prefix, max }),
            _ => Ok(windows.n_positions - windows.n_special - n_prefix),
        }
    }
}

fn check_spans(late: &LateDocument) {
    let mut end = 0;
    for span in &late.spans {
        let LateDocument { text, .. } = late;
        assert!(
            end <= span.start && span.start <= span.end && text.get(span.clone()).is_some(),
            "span {span:?} does not lie behind byte {end} of a text of {} bytes",
            text.len()
        );
        end = span.end;
    }
}

#[cfg(test)]
mod tests;
