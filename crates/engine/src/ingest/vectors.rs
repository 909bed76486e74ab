//! Gives the rows of new documents their vectors: from the embedding cache, or from the encoder in batches.

use std::collections::HashMap;
use std::ops::Range;

use cento_corpus::{ChunkConfig, ChunkSize};
use cento_embedder::{Embedding, Kind, cache};

use super::contexts::Contexts;
use super::late::{LatePending, LateQueue, late_document};
use super::options::chunk_config;
use crate::cancel::Cancel;
use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::ingest::cache::CacheOptions;
use crate::ingest::kept::EmbeddingLog;
use cento_collection::format::config::{CollectionConfig, VectorColumn};
use cento_collection::format::segment::{NewDocument, SegmentWriter};

/// Texts embedded between two writes of the log; what an interruption loses at most.
pub(super) const EMBED_TEXTS: usize = 512;

/// Bytes of vectors that may wait for those of rows before theirs: a run whose texts are nearly all in the cache fills
/// no batch, and the first row that is not there would hold up all others.
const WAITING_BYTES_MAX: usize = if cfg!(test) { 16 << 10 } else { 32 << 20 };

/// A row whose vector is not known yet.
struct Pending {
    row: u32,
    key: cache::Key,
    text: String,
}

/// Sources of the vectors of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct VectorCounts {
    /// As [`IndexReport::n_tokens`](super::IndexReport::n_tokens).
    pub(crate) n_tokens: u64,
    /// Tokens that went through the encoder.
    pub(crate) n_tokens_embedded: u64,
    /// Rows that were found in the cache.
    pub(crate) n_from_log: u64,
    /// Rows embedded by their beginning.
    pub(crate) n_truncated: u64,
}

/// Looks for vectors in the cache and queues the rows that need the encoder.
pub(crate) struct RowVectors<'e> {
    pub(super) encoder: &'e Encoder,
    pub(super) chunking: ChunkConfig,
    /// Where headers have contexts.
    pub(super) contexts: Option<Contexts>,
    log: EmbeddingLog,
    /// Where plain vectors are kept in the segment, if they are asked for.
    plain: Option<usize>,
    pending: Vec<Pending>,
    /// The same for late vectors.
    late: Option<LateQueue>,
    pub(crate) counts: VectorCounts,
    /// Ends the run between texts.
    pub(super) cancel: Cancel,
}

impl<'e> RowVectors<'e> {
    pub(crate) fn new(config: &CollectionConfig, encoder: &'e Encoder, cache: Option<&CacheOptions>) -> Result<Self> {
        let column = |vectors| config.pooling.columns().iter().position(|column| *column == vectors);
        let late = column(VectorColumn::Late).zip(config.late);
        Ok(Self {
            encoder,
            chunking: chunk_config(config, encoder)?,
            contexts: None,
            log: EmbeddingLog::open(cache, config, encoder.arithmetic()),
            plain: column(VectorColumn::Plain),
            pending: Vec::new(),
            late: late
                .map(|(column, reading)| LateQueue::new(reading, column, encoder.here("pooling")?))
                .transpose()?,
            counts: VectorCounts::default(),
            cancel: Cancel::default(),
        })
    }

    /// Gives the rows of a document that was just pushed the vectors that are known, and queues the others.
    pub(crate) fn add(&mut self, segment: &mut SegmentWriter<'_>, new: &NewDocument<'_>, first_row: u32) -> Result<()> {
        let late_known = self.add_late(segment, new, first_row)?;
        let Some(column) = self.plain else {
            self.counts.n_from_log += if late_known { new.chunks.len() as u64 } else { 0 };
            return Ok(());
        };
        for (row, new_chunk) in (first_row..).zip(&new.chunks) {
            let text = format!("{}{}", new_chunk.header, &new.document.text[new_chunk.chunk.span.clone()]);
            if matches!(self.chunking.size, ChunkSize::Document)
                && self.encoder.tokenizer().count(&text) > self.chunking.window_tokens
            {
                self.counts.n_truncated += 1;
            }
            let key = cache::key(self.encoder.fingerprint(), &self.encoder.bytes_embedded(&text, Kind::Document));
            match self.log.find(&key) {
                Some(logged) => {
                    segment.set_vector(column, row, &logged.vector)?;
                    self.counts.n_tokens += u64::from(logged.n_tokens);
                    self.counts.n_from_log += u64::from(late_known);
                }
                None => self.pending.push(Pending { row, key, text }),
            }
        }
        Ok(())
    }

    /// Embeds the queues that are long enough for a batch, or hold up too many vectors. `embedded` is told how many
    /// tokens went through the encoder.
    pub(crate) fn embed_batches(
        &mut self,
        segment: &mut SegmentWriter<'_>,
        embedded: &mut dyn FnMut(u64),
    ) -> Result<()> {
        if segment.waiting_bytes() >= WAITING_BYTES_MAX {
            return self.embed_rest(segment, embedded);
        }
        if self.pending.len() >= EMBED_TEXTS {
            self.embed(segment, embedded)?;
        }
        if self.late.as_ref().is_some_and(|late| late.n_rows >= EMBED_TEXTS) {
            self.embed_late(segment, embedded)?;
        }
        Ok(())
    }

    /// Embeds all that is queued.
    pub(crate) fn embed_rest(&mut self, segment: &mut SegmentWriter<'_>, embedded: &mut dyn FnMut(u64)) -> Result<()> {
        self.embed(segment, embedded)?;
        self.embed_late(segment, embedded)
    }

    /// Makes sure that what was embedded is of one model.
    ///
    /// # Errors
    /// [`Error::EncoderChanged`]; what the run kept is forgotten then.
    pub(crate) fn confirm(&mut self) -> Result<()> {
        if self.counts.n_tokens_embedded == 0 {
            return Ok(());
        }
        let confirmed = self.encoder.confirm(&|| self.cancel.is_cancelled());
        self.unless_changed(confirmed)
    }

    /// A result; nobody knows which vectors of this run are of which model, if the model was changed during it.
    fn unless_changed<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(Error::EncoderChanged { .. }) = result {
            self.log.forget()?;
        }
        result
    }

    /// Embeds what is pending, logs it, and gives each row its vector. Equal texts are embedded once.
    fn embed(&mut self, segment: &mut SegmentWriter<'_>, embedded: &mut dyn FnMut(u64)) -> Result<()> {
        let Some(column) = self.plain else { return Ok(()) };
        for pending in std::mem::take(&mut self.pending).chunks(EMBED_TEXTS) {
            let mut first_with: HashMap<cache::Key, usize> = HashMap::new();
            let mut texts = Vec::new();
            let mut keys = Vec::new();
            for one in pending {
                first_with.entry(one.key).or_insert_with(|| {
                    texts.push(one.text.clone());
                    keys.push(one.key);
                    texts.len() - 1
                });
            }
            let (log, cancel) = (&mut self.log, &self.cancel);
            let mut keep = |range: Range<usize>, made: &[Embedding]| log.append(&keys[range], made);
            let stop = || cancel.is_cancelled();
            let embeddings = self.encoder.embed_keeping(&texts, Kind::Document, &stop, &mut keep);
            let embeddings = self.unless_changed(embeddings)?;
            for one in pending {
                let embedding = &embeddings[first_with[&one.key]];
                segment.set_vector(column, one.row, &embedding.vector)?;
                self.counts.n_tokens += u64::from(embedding.n_tokens);
            }
            let n_tokens: u64 = embeddings.iter().map(|embedding| u64::from(embedding.n_tokens)).sum();
            self.counts.n_tokens_embedded += n_tokens;
            embedded(n_tokens);
        }
        Ok(())
    }

    /// Gives the rows of a document their late vectors from the log, or puts it in the queue; true if they were in the
    /// log.
    fn add_late(&mut self, segment: &mut SegmentWriter<'_>, new: &NewDocument<'_>, first_row: u32) -> Result<bool> {
        let Some(late) = &mut self.late else { return Ok(true) };
        let encoder = self.encoder.here("pooling")?;
        let Some(document) = late_document(new, self.chunking.header, encoder, late.windows) else {
            return Ok(true);
        };
        let keys = late.keys(&document);
        let mut known = Vec::with_capacity(keys.len());
        for key in &keys {
            match self.log.find(key) {
                Some(logged) => known.push(logged),
                None => {
                    late.n_rows += keys.len();
                    late.pending.push(LatePending { first_row, keys, document });
                    return Ok(false);
                }
            }
        }
        for (row, logged) in (first_row..).zip(known) {
            segment.set_vector(late.column, row, &logged.vector)?;
            self.counts.n_tokens += u64::from(logged.n_tokens);
        }
        Ok(true)
    }

    /// Embeds the queue, logs it, and gives each row its vector. Equal documents are embedded once.
    fn embed_late(&mut self, segment: &mut SegmentWriter<'_>, embedded: &mut dyn FnMut(u64)) -> Result<()> {
        let Some(late) = &mut self.late else { return Ok(()) };
        late.n_rows = 0;
        let mut rest = std::mem::take(&mut late.pending);
        while !rest.is_empty() {
            self.cancel.check()?;
            let mut n_rows = 0;
            let n_batch = rest.iter().take_while(|pending| {
                let fits = n_rows < EMBED_TEXTS;
                n_rows += pending.keys.len();
                fits
            });
            let n_batch = n_batch.count();
            let after = rest.split_off(n_batch);
            let batch = std::mem::replace(&mut rest, after);
            let mut first_with: HashMap<&[cache::Key], usize> = HashMap::new();
            let mut documents = Vec::new();
            let mut keys = Vec::new();
            for one in &batch {
                first_with.entry(&one.keys).or_insert_with(|| {
                    documents.push(one.document.clone());
                    keys.extend_from_slice(&one.keys);
                    documents.len() - 1
                });
            }
            let embeddings = self.encoder.here("pooling")?.embed_late(&documents, late.windows)?;
            for one in &batch {
                for (row, embedding) in (one.first_row..).zip(&embeddings[first_with[one.keys.as_slice()]]) {
                    segment.set_vector(late.column, row, &embedding.vector)?;
                    self.counts.n_tokens += u64::from(embedding.n_tokens);
                }
            }
            let embeddings = embeddings.concat();
            self.log.append(&keys, &embeddings)?;
            let n_tokens: u64 = embeddings.iter().map(|embedding| u64::from(embedding.n_tokens)).sum();
            self.counts.n_tokens_embedded += n_tokens;
            embedded(n_tokens);
        }
        Ok(())
    }

    /// The embeddings of questions. Those of an encoder elsewhere are kept as those of chunks are: nothing is paid for
    /// twice, and an interrupted run asks for none again.
    pub(super) fn of_questions(&mut self, texts: &[String]) -> Result<Vec<Embedding>> {
        if self.encoder.elsewhere().is_none() {
            return self.encoder.embed(texts, Kind::Query);
        }
        let key =
            |text: &String| cache::key(self.encoder.fingerprint(), &self.encoder.bytes_embedded(text, Kind::Query));
        let keys: Vec<cache::Key> = texts.iter().map(key).collect();
        let mut found: Vec<Option<Embedding>> =
            keys.iter().map(|key| self.log.find(key).map(Embedding::from)).collect();
        let missing: Vec<usize> = (0..texts.len()).filter(|at| found[*at].is_none()).collect();
        let asked: Vec<String> = missing.iter().map(|at| texts[*at].clone()).collect();
        let (log, cancel) = (&mut self.log, &self.cancel);
        let mut keep = |range: Range<usize>, made: &[Embedding]| {
            let of_range: Vec<cache::Key> = missing[range].iter().map(|at| keys[*at]).collect();
            log.append(&of_range, made)
        };
        let made = self.encoder.embed_keeping(&asked, Kind::Query, &|| cancel.is_cancelled(), &mut keep)?;
        missing.iter().zip(made).for_each(|(at, made)| found[*at] = Some(made));
        Ok(found.into_iter().map(|found| found.expect("found or made")).collect())
    }

    /// Ends the run; what was noticed.
    pub(crate) fn finish(self) -> Vec<String> {
        let mut notes = self.log.finish();
        notes.extend(self.encoder.remark());
        notes
    }
}
