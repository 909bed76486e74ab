//! Contexts of chunks: a language model says in a line where each chunk stands in its document, and both retrievers
//! read the line behind the header. It is never part of what is cited.
//!
//! Each context is asked for once: what was answered is in the journal of the cache, by model, prompt, document and
//! place, so that a run that is cut short goes on where it ended. An answer that is none (empty, far too long, a
//! refusal) ends the run and names the chunk; one of more than [`TOKENS_MAX`] tokens is cut, and counted.

mod journal;
mod prompt;
mod queue;

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use cento_collection::format::config::WrittenContexts;
use cento_collection::format::segment::with_context;
use cento_corpus as corpus;
use serde::Serialize;

use self::journal::{Damage, Journal, Key};
pub(crate) use self::prompt::TOKENS_MAX;
use self::queue::Queue;
use super::prepare::Prepared;
use crate::cancel::Cancel;
use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::ingest::cache::CacheOptions;
use crate::plural::counted;

/// Calls under way at a time.
const AT_ONCE: usize = 4;
/// Bytes of a token, for an estimate: English has four to five.
const BYTES_PER_TOKEN: u64 = 4;

/// A language model that writes contexts; any thread may ask it.
pub trait ContextWriter: Debug + Send + Sync {
    /// Its name, part of what a collection is built with.
    fn model(&self) -> &str;

    /// The answer to a task and a case of it; `stop` says that it is not wanted any more.
    ///
    /// # Errors
    /// If there is none; [`Error::Cancelled`] where it is not wanted.
    fn answer(&self, system: &str, user: &str, stop: &(dyn Fn() -> bool + Sync)) -> Result<Answered>;
}

/// A language model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The message; empty where there was none.
    pub message: String,
    /// Tokens of request and answer, where they were counted.
    pub n_tokens: Option<(u64, u64)>,
}

/// The contexts of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ContextCounts {
    /// Documents that chunks are asked about for.
    pub n_documents: u64,
    /// Calls that were made, or that a run would make: one a chunk.
    pub n_calls: u64,
    /// Contexts that were in the journal.
    pub n_known: u64,
    /// Tokens of the calls' requests: the server's count, or an estimate by their bytes where there is none yet.
    pub n_tokens_asked: u64,
    /// Those of them that an earlier call about the same document had already sent, estimated: what a server that keeps
    /// prefixes reads again at a lower price.
    pub n_tokens_repeated: u64,
    /// Tokens of the answers: the server's count, or the most that is kept of each where there is none yet.
    pub n_tokens_answered: u64,
    /// Contexts that were cut to their most tokens.
    pub n_cut: u64,
    /// Documents of which the model was given the beginning.
    pub n_documents_cut: u64,
    /// Lines of the journal that hold no whole context.
    pub n_damaged: u64,
}

/// The contexts that a run asks for, if anybody writes any.
pub(super) fn asked(writer: Option<&dyn ContextWriter>) -> Option<WrittenContexts> {
    writer.map(|writer| WrittenContexts { model: writer.model().to_owned(), prompt: prompt::fingerprint() })
}

/// Gives chunks their contexts.
pub(super) struct Contexts {
    written: WrittenContexts,
    writer: Option<Arc<dyn ContextWriter>>,
    journal: Journal,
    pub(super) counts: ContextCounts,
}

/// A context that is not known yet.
struct Wanted<'d> {
    key: Key,
    document: &'d corpus::Document,
    /// Number of the document in its group.
    of: usize,
    /// Number of the chunk in the document.
    chunk: usize,
    text: &'d str,
}

impl Contexts {
    /// Nothing where the chunks of the collection have no contexts.
    ///
    /// # Errors
    /// [`Error::Setting`] without a cache, which keeps what was answered; if the journal cannot be read.
    pub(super) fn open(
        written: Option<&WrittenContexts>,
        writer: Option<Arc<dyn ContextWriter>>,
        cache: Option<&CacheOptions>,
    ) -> Result<Option<Self>> {
        let Some(written) = written else { return Ok(None) };
        let Some(cache) = cache else {
            let reason = "wants the embedding cache, which keeps what was answered".to_owned();
            return Err(Error::Setting { setting: "header", value: written.to_string(), reason });
        };
        let journal = Journal::open(&cache.folder, written)?;
        let n_damaged = journal.damage.map_or(0, |damage| damage.n_lines);
        let counts = ContextCounts { n_damaged, ..ContextCounts::default() };
        Ok(Some(Self { written: written.clone(), writer, journal, counts }))
    }

    /// The path of a journal that is damaged, and the damage in words.
    pub(super) fn damage(&self) -> Option<(String, String)> {
        let Damage { first_line, n_lines } = self.journal.damage?;
        let lines = counted(n_lines, "line");
        let reason = format!("{lines} without a whole context, from line {first_line} on: it is asked for again");
        Some((self.journal.path.display().to_string(), reason))
    }

    /// Puts contexts behind the headers of all visible chunks. `answered` is told after each call.
    ///
    /// # Errors
    /// [`Error::NoContext`] for an answer that is none, [`Error::NoContextWriter`] where nobody can be asked; those of
    /// the model and the journal; [`Error::Cancelled`].
    pub(super) fn fill(
        &mut self,
        prepared: &mut [Prepared],
        encoder: &Encoder,
        cancel: &Cancel,
        answered: &mut dyn FnMut(),
    ) -> Result<()> {
        let wanted = self.wanted(prepared);
        let mut counts = self.estimate(prepared, &wanted);
        let counted = ask(&self.written, self.writer.as_deref(), &wanted, &mut self.journal, cancel, answered)?;
        (counts.n_tokens_asked, counts.n_tokens_answered) = counted;
        self.counts.add(&counts);
        self.place(prepared, encoder);
        Ok(())
    }

    /// Counts the calls that [`Contexts::fill`] would make; puts the contexts that are known behind their headers.
    pub(super) fn count(&mut self, prepared: &mut [Prepared], encoder: &Encoder) {
        let counts = self.estimate(prepared, &self.wanted(prepared));
        self.counts.add(&counts);
        self.place(prepared, encoder);
    }

    /// Puts the contexts that are known behind the headers.
    fn place(&mut self, prepared: &mut [Prepared], encoder: &Encoder) {
        for prepared in prepared {
            let Prepared { document, chunks, headers, contexts, .. } = prepared;
            let document = text_hash(document);
            for ((chunk, header), context) in chunks.iter().zip(headers).zip(contexts).filter(|((c, _), _)| !c.hidden) {
                let Some(known) = self.journal.find(&key(&document, chunk)) else { continue };
                let cut = prompt::cut(known, &encoder.tokenizer());
                self.counts.n_cut += u64::from(cut.len() < known.len());
                *header = with_context(header, &cut);
                *context = cut.into_owned();
            }
        }
    }

    fn estimate(&self, prepared: &[Prepared], wanted: &[Wanted<'_>]) -> ContextCounts {
        let n_visible = prepared.iter().flat_map(|prepared| &prepared.chunks).filter(|chunk| !chunk.hidden).count();
        let is_cut = |prepared: &&Prepared| prompt::is_cut(&prepared.document.text);
        let is_again = |pair: &&[Wanted<'_>]| pair[0].of == pair[1].of;
        let n_again = wanted.windows(2).filter(is_again).count();
        ContextCounts {
            n_documents: (wanted.len() - n_again) as u64,
            n_calls: wanted.len() as u64,
            n_known: (n_visible - wanted.len()) as u64,
            n_tokens_asked: wanted.iter().map(Wanted::n_tokens).sum(),
            n_tokens_repeated: wanted.windows(2).filter(is_again).map(|pair| pair[1].n_tokens_shared()).sum(),
            n_tokens_answered: (wanted.len() * TOKENS_MAX) as u64,
            n_cut: 0,
            n_documents_cut: prepared.iter().filter(is_cut).count() as u64,
            n_damaged: 0,
        }
    }

    /// The chunks whose contexts are not known, each once, in the order of the documents.
    fn wanted<'d>(&self, prepared: &'d [Prepared]) -> Vec<Wanted<'d>> {
        let mut seen = HashSet::new();
        let of_document = |(of, Prepared { document, chunks, .. }): (usize, &'d Prepared)| {
            let hash = text_hash(document);
            let wanted = move |(at, chunk): (usize, &'d corpus::Chunk)| {
                let text = &document.text[chunk.span.clone()];
                (!chunk.hidden).then(|| Wanted { key: key(&hash, chunk), document, of, chunk: at, text })
            };
            chunks.iter().enumerate().filter_map(wanted)
        };
        let all = prepared.iter().enumerate().flat_map(of_document);
        all.filter(|wanted| self.journal.find(&wanted.key).is_none() && seen.insert(wanted.key)).collect()
    }
}

/// Asks for what is not known, several calls at a time, and keeps each answer before the next one is looked at; the
/// tokens of requests and answers.
fn ask(
    written: &WrittenContexts,
    writer: Option<&dyn ContextWriter>,
    wanted: &[Wanted<'_>],
    journal: &mut Journal,
    cancel: &Cancel,
    answered: &mut dyn FnMut(),
) -> Result<(u64, u64)> {
    if wanted.is_empty() {
        return Ok((0, 0));
    }
    let Some(writer) = writer else {
        return Err(Error::NoContextWriter { contexts: written.to_string(), n_chunks: wanted.len() });
    };
    let queue = Queue::new(wanted.iter().enumerate().map(|(at, wanted)| (at, wanted.of)));
    let is_over = AtomicBool::new(false);
    let stop = || cancel.is_cancelled() || is_over.load(Ordering::Relaxed);
    let (mut counted, mut ended) = ((0_u64, 0_u64), Ok(()));
    thread::scope(|scope| {
        let (send, answers) = mpsc::sync_channel(0); // whoever asks on has handed the last answer over
        for _ in 0..AT_ONCE.min(wanted.len()) {
            let (send, queue, stop) = (send.clone(), &queue, &stop);
            scope.spawn(move || {
                while let Some((at, document)) = queue.next() {
                    let answer = wanted[at].ask(writer, stop);
                    queue.done(document);
                    if send.send((at, answer)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        for (at, answer) in answers {
            match answer.and_then(|answer| wanted[at].keep(&answer, journal)) {
                Ok((n_asked, n_answered)) => {
                    // A server may count what it likes.
                    counted = (counted.0.saturating_add(n_asked), counted.1.saturating_add(n_answered));
                    answered();
                }
                Err(error) => {
                    is_over.store(true, Ordering::Relaxed);
                    queue.end();
                    if ended.is_ok() {
                        ended = Err(error); // the first one is told
                    }
                }
            }
        }
    });
    ended.map(|()| counted)
}

impl Wanted<'_> {
    fn ask(&self, writer: &dyn ContextWriter, stop: &(dyn Fn() -> bool + Sync)) -> Result<Answered> {
        if stop() {
            return Err(Error::Cancelled);
        }
        writer.answer(prompt::SYSTEM, &prompt::user(&self.document.text, self.text), stop)
    }

    /// Keeps the context in an answer; tokens of request and answer.
    fn keep(&self, answer: &Answered, journal: &mut Journal) -> Result<(u64, u64)> {
        let context = prompt::read(&answer.message).map_err(|reason| Error::NoContext {
            document: self.document.id.clone(),
            chunk: self.chunk,
            reason,
        })?;
        journal.keep(&self.key, &context)?;
        Ok(answer.n_tokens.unwrap_or_else(|| (self.n_tokens(), context.len() as u64 / BYTES_PER_TOKEN)))
    }

    /// Tokens of the request, by its bytes.
    fn n_tokens(&self) -> u64 {
        self.n_tokens_shared() + self.text.len() as u64 / BYTES_PER_TOKEN
    }

    /// Those of them that all requests about the document begin with.
    fn n_tokens_shared(&self) -> u64 {
        (prompt::SYSTEM.len() + prompt::given(&self.document.text).len()) as u64 / BYTES_PER_TOKEN
    }
}

impl ContextCounts {
    fn add(&mut self, other: &Self) {
        let Self {
            n_documents,
            n_calls,
            n_known,
            n_tokens_asked,
            n_tokens_repeated,
            n_tokens_answered,
            n_cut,
            n_documents_cut,
            n_damaged,
        } = *other;
        for (sum, n) in [
            (&mut self.n_documents, n_documents),
            (&mut self.n_calls, n_calls),
            (&mut self.n_known, n_known),
            (&mut self.n_tokens_asked, n_tokens_asked),
            (&mut self.n_tokens_repeated, n_tokens_repeated),
            (&mut self.n_tokens_answered, n_tokens_answered),
            (&mut self.n_cut, n_cut),
            (&mut self.n_documents_cut, n_documents_cut),
            (&mut self.n_damaged, n_damaged),
        ] {
            *sum = sum.saturating_add(n);
        }
    }
}

fn text_hash(document: &corpus::Document) -> blake3::Hash {
    blake3::hash(document.text.as_bytes())
}

/// A chunk by its document's text and its place in it.
fn key(document: &blake3::Hash, chunk: &corpus::Chunk) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(document.as_bytes());
    for at in [chunk.span.start, chunk.span.end] {
        hasher.update(&(at as u64).to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_server_that_counts_what_it_likes_end_at_the_largest() {
        let counts = ContextCounts { n_tokens_asked: u64::MAX, n_tokens_answered: 1, ..ContextCounts::default() };
        let mut sum = counts;
        sum.add(&counts);
        assert_eq!((sum.n_tokens_asked, sum.n_tokens_answered), (u64::MAX, 2));
    }
}
