//! Embedding on an accelerator: while it computes a batch, the next is queued and the texts behind are tokenized.
//!
//! Threads tokenize pieces of the texts a few ahead; this thread takes the pieces in order, fills batches to the token
//! budget, queues their copies and kernels, and reads a batch back when the one after it is queued. Which texts share a
//! batch depends on the texts alone, so that a run can be repeated.
//! Cost: for each batch its numbers go to the device and one row a text comes back, both while it computes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::embedder::{Embedder, Embedding, Kind};
use crate::encoder::stop::{Stop, check};
use crate::error::{Error, Result};
use crate::kernels::cuda;
use crate::kernels::cuda::pool::pool;
use crate::kernels::cuda::transfer;
use crate::kernels::gpu;
use crate::layers::{Rows, to_host};
use crate::pack::Batch;
use crate::pooling::{NOTHING_BEHIND_PROMPT, NoVector};
use crate::tokens::Encoded;

/// Texts that a thread tokenizes at a time.
const PIECE_TEXTS: usize = 64;
/// Pieces that a thread is ahead, at most.
const PIECES_AHEAD: usize = 8;
/// Batches that are queued before the first of them is read back.
const BATCHES_IN_FLIGHT: usize = 2;

/// A batch that the device works on.
struct Flying {
    /// For each text its position, and its tokens.
    texts: Vec<(usize, u32)>,
    vectors: Vectors,
}

/// The vectors of a batch, one a text.
enum Vectors {
    /// Pooled on the device: for each mode rows \[texts, width\].
    Coming { rows: Vec<Coming>, width: usize, n_prompt: usize },
    /// Pooled here.
    Here(Vec<Result<Vec<f32>, NoVector>>),
}

/// Pooled rows on their way.
enum Coming {
    Device(transfer::Download),
    Gpu(gpu::Download),
}

impl Coming {
    fn wait(self) -> candle_core::Result<Vec<f32>> {
        match self {
            Self::Device(rows) => rows.wait(),
            Self::Gpu(rows) => rows.wait(),
        }
    }
}

/// Batches between their start and their landing.
struct Flight<'a, S, L> {
    start: S,
    land: L,
    /// Tokens of a batch; halved whenever the device's memory was full.
    budget: usize,
    n_halved: &'a AtomicUsize,
    flying: VecDeque<Flying>,
}

impl<S, L> Flight<'_, S, L>
where
    S: Fn(&Batch) -> Result<Flying>,
    L: FnMut(Flying) -> Result<()>,
{
    /// Queues a batch; reads one back if there are too many.
    fn push(&mut self, batch: &Batch) -> Result<()> {
        match (self.start)(batch) {
            Err(error) if error.is_out_of_memory() => self.push_smaller(batch, error),
            Err(error) => Err(error),
            Ok(flying) => {
                self.flying.push_back(flying);
                if self.flying.len() > BATCHES_IN_FLIGHT { self.land_first() } else { Ok(()) }
            }
        }
    }

    /// The device's memory is full: waits until it is empty, then tries again with half as many texts, down to one.
    fn push_smaller(&mut self, batch: &Batch, full: Error) -> Result<()> {
        let was_empty = self.flying.is_empty();
        self.finish()?;
        if batch.inputs.len() > 1 {
            self.n_halved.fetch_add(1, Ordering::Relaxed);
            self.budget = self.budget.min(batch.ids.len().div_ceil(2));
            return batch.halves().iter().try_for_each(|half| self.push(half));
        }
        if was_empty { Err(full) } else { self.push(batch) }
    }

    fn land_first(&mut self) -> Result<()> {
        self.flying.pop_front().map_or(Ok(()), &mut self.land)
    }

    fn finish(&mut self) -> Result<()> {
        while !self.flying.is_empty() {
            self.land_first()?;
        }
        Ok(())
    }
}

type OfText = (usize, u32, Result<Vec<f32>, NoVector>);

fn with_texts(texts: Vec<(usize, u32)>, vectors: Vec<Result<Vec<f32>, NoVector>>) -> Vec<OfText> {
    texts.into_iter().zip(vectors).map(|((input, n_tokens), vector)| (input, n_tokens, vector)).collect()
}

impl Embedder {
    /// As [`Embedder::embed`], on a device that is not the CPU.
    pub(crate) fn embed_on_device(&self, texts: &[String], kind: Kind, stop: Stop<'_>) -> Result<Vec<Embedding>> {
        let mut truncated = Vec::with_capacity(texts.len());
        let mut embeddings: Vec<Option<Result<Embedding>>> = Vec::new();
        embeddings.resize_with(texts.len(), || None);
        let land = |flying: Flying| -> Result<()> {
            for (index, n_tokens, vector) in self.land(flying)? {
                let named = |reason| Error::Vector { index, reason };
                let embedding = |vector| Embedding { vector, n_tokens, truncated: false };
                embeddings[index] = Some(vector.map(embedding).map_err(named));
            }
            Ok(())
        };
        let (budget, n_halved) = (self.max_batch_tokens(), &self.n_halved);
        let start = |batch: &Batch| self.start(batch, kind, stop);
        let mut flight = Flight { start, land, budget, n_halved, flying: VecDeque::new() };
        self.tokenize(texts, kind, stop, |piece| {
            let mut batch = Vec::new();
            let mut n_tokens = 0;
            for text in piece {
                if n_tokens + text.ids.len() > flight.budget && !batch.is_empty() {
                    flight.push(&Batch::new(std::mem::take(&mut batch)))?;
                    n_tokens = 0;
                }
                n_tokens += text.ids.len();
                batch.push((truncated.len(), text.ids));
                truncated.push(text.truncated);
            }
            if batch.is_empty() { Ok(()) } else { flight.push(&Batch::new(batch)) }
        })?;
        flight.finish()?;
        let all = embeddings.into_iter().zip(truncated);
        all.map(|(embedding, truncated)| Ok(Embedding { truncated, ..embedding.expect("every text is in a batch")? }))
            .collect()
    }

    /// Queues all that is to be done for a batch.
    fn start(&self, batch: &Batch, kind: Kind, stop: Stop<'_>) -> Result<Flying> {
        let lengths = batch.spans.iter().map(|span| span.len() as u32);
        let texts = batch.inputs.iter().copied().zip(lengths).collect();
        let mut workspace = self.workspace();
        let rows = self.encoder().forward(batch, &mut workspace, stop)?;
        let n_prompt = self.n_prompt(kind);
        let rows = match rows {
            Rows::Cpu(_) => unreachable!("the CPU has its own way"),
            Rows::Device(rows) => rows,
            Rows::Gpu(rows) => {
                let (width, spans) = (rows.width(), self.spans(batch, n_prompt));
                let mut pooled = Vec::new();
                for mode in self.head().on_device(n_prompt).0 {
                    pooled.push(gpu::ends::pool(&rows, &spans, mode, workspace.recorder())?);
                }
                workspace.submit()?;
                let coming = pooled.iter().map(|rows| Ok(Coming::Gpu(rows.download()?)));
                let rows_coming = coming.collect::<candle_core::Result<_>>()?;
                for rows in pooled.into_iter().chain([rows]) {
                    workspace.give(Rows::Gpu(rows));
                }
                self.give_back(workspace);
                return Ok(Flying { texts, vectors: Vectors::Coming { rows: rows_coming, width, n_prompt } });
            }
        };
        self.give_back(workspace);
        if !cuda::takes_rows(&rows) {
            let vectors = self.head().vectors(&to_host(&rows)?, &batch.spans, n_prompt);
            return Ok(Flying { texts, vectors: Vectors::Here(vectors) });
        }
        let (modes, _) = self.head().on_device(n_prompt);
        let spans = transfer::upload(&self.spans(batch, n_prompt), rows.device())?;
        let download = |mode| Ok(Coming::Device(transfer::Download::start(&pool(&rows, &spans, mode)?)?));
        let coming = modes.into_iter().map(download).collect::<candle_core::Result<_>>()?;
        Ok(Flying { texts, vectors: Vectors::Coming { rows: coming, width: rows.dim(1)?, n_prompt } })
    }

    /// For each text the rows that its vector is made of, as the kernels take them.
    fn spans(&self, batch: &Batch, n_prompt: usize) -> Vec<u32> {
        let (_, n_before) = self.head().on_device(n_prompt);
        // a text that ends with its prompt has no vector; pooled as a whole it does no harm
        let n_before = |span: &Range<usize>| if span.len() > n_before { n_before } else { 0 };
        let words = |span: Range<usize>| [span.start + n_before(&span), span.end, n_before(&span)].map(|n| n as u32);
        batch.spans.iter().flat_map(words).collect()
    }

    /// The vector of each text, once the device has come that far.
    fn land(&self, flying: Flying) -> Result<Vec<OfText>> {
        let (rows, width, n_prompt) = match flying.vectors {
            Vectors::Coming { rows, width, n_prompt } => (rows, width, n_prompt),
            Vectors::Here(vectors) => return Ok(with_texts(flying.texts, vectors)),
        };
        let rows = rows.into_iter().map(Coming::wait).collect::<candle_core::Result<Vec<_>>>()?;
        let (_, n_before) = self.head().on_device(n_prompt);
        let vector = |at: usize, n_tokens: u32| -> Result<Vec<f32>, NoVector> {
            if n_before > 0 && n_tokens as usize <= n_before {
                return Err(NOTHING_BEHIND_PROMPT);
            }
            let of_mode = |rows: &Vec<f32>| rows[at * width..(at + 1) * width].to_vec();
            self.head().finish(rows.iter().flat_map(of_mode).map(f64::from).collect())
        };
        let texts = flying.texts.into_iter().enumerate();
        Ok(texts.map(|(at, (input, n_tokens))| (input, n_tokens, vector(at, n_tokens))).collect())
    }

    /// Number of times a batch was halved since the model was loaded because the device's memory was full; the vectors
    /// are the same.
    pub fn n_batches_halved(&self) -> usize {
        self.n_halved.load(Ordering::Relaxed)
    }

    /// Hands `take` the tokens of all texts, in order, while threads tokenize ahead.
    fn tokenize(
        &self,
        texts: &[String],
        kind: Kind,
        stop: Stop<'_>,
        take: impl FnOnce(&mut dyn Iterator<Item = Encoded>) -> Result<()>,
    ) -> Result<()> {
        let tokenized = |piece: usize| -> Result<Vec<Encoded>> {
            let first = piece * PIECE_TEXTS;
            let encode = |(n, text): (usize, &String)| {
                check(stop)?;
                self.encode(self.prompt(kind), text).map_err(|reason| Error::Tokenize { index: first + n, reason })
            };
            texts[first..texts.len().min(first + PIECE_TEXTS)].iter().enumerate().map(encode).collect()
        };
        let n_pieces = texts.len().div_ceil(PIECE_TEXTS);
        let n_threads = self.n_threads().saturating_sub(1).clamp(1, n_pieces.max(1)); // this thread has its own work
        let mut failed = None;
        let until_failure = |piece: Result<Vec<Encoded>>| piece.map_err(|error| failed = Some(error)).ok();
        let taken = match n_pieces {
            0 | 1 => take(&mut (0..n_pieces).map(tokenized).map_while(until_failure).flatten()),
            _ => thread::scope(|scope| {
                let of_thread = |thread: usize| {
                    let (send, receive) = sync_channel(PIECES_AHEAD);
                    let tokenized = &tokenized;
                    scope.spawn(move || {
                        for piece in (thread..n_pieces).step_by(n_threads).map(tokenized) {
                            let is_last = piece.is_err();
                            if send.send(piece).is_err() || is_last {
                                return; // nobody listens any more
                            }
                        }
                    });
                    receive
                };
                let receivers: Vec<Receiver<Result<Vec<Encoded>>>> = (0..n_threads).map(of_thread).collect();
                let received =
                    |piece: usize| receivers[piece % n_threads].recv().expect("a thread sends all its pieces");
                take(&mut (0..n_pieces).map(received).map_while(until_failure).flatten())
            }),
        };
        failed.map_or(taken, Err)
    }
}

#[cfg(test)]
mod tests;
