//! Two texts in, one score out: how well the second answers the first.
//!
//! A cross-encoder reads both texts as one sequence; a head of two dense layers makes a number of its first row. A
//! language model reads them in a question, and its number is how much likelier yes is than no.
//! Nothing can be kept from one pair to the next, so it is for reranking a few candidates, not for search.
//!
//! **Invariant.** The score of a pair depends on the pair and the model alone.

mod head;

use std::path::Path;

use crate::embedder::{Embedder, LoadOptions, in_parallel};
use crate::encoder::stop::{NEVER, Stop, check};
use crate::error::{Error, Result};
use crate::folder::{Classification, Judge};
use crate::pack::{Batch, pack};
use crate::tokens::EncodedPair;
use crate::weights::{AlwaysHashed, WeightHashes};
use head::ClassifierHead;

/// The score of a pair before the model's activation, and what was read for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairLogit {
    /// Finite, of any size; larger is likelier.
    pub logit: f32,
    /// Tokens the encoder saw.
    pub n_tokens: u32,
    /// True if the end of either text did not count.
    pub truncated: bool,
}

/// A loaded cross-encoder.
#[derive(Debug)]
pub struct CrossEncoder {
    /// Computes the rows; its own pooling is not used.
    encoder: Embedder,
    head: ClassifierHead,
    /// True if the encoder tells tokens of the second text from those of the first.
    has_kinds: bool,
    /// The question that a language model is asked, and the tokens before and behind it.
    judge: Option<(Judge, [Vec<u32>; 2])>,
}

impl CrossEncoder {
    /// Loads the folder of a cross-encoder as sentence-transformers or transformers saves it: an encoder for sequence
    /// classification with one label, or a Qwen3 language model that was trained to judge pairs with yes or no.
    /// [`LoadOptions::dimensions`] means nothing here.
    ///
    /// # Errors
    /// If a file is missing or damaged, the model needs what this version does not compute, or the device is not there.
    pub fn load(folder: &Path, options: &LoadOptions) -> Result<Self> {
        Self::load_with(folder, options, &AlwaysHashed)
    }

    /// [`CrossEncoder::load`] where the hashes of weights may be known.
    ///
    /// # Errors
    /// As [`CrossEncoder::load`].
    pub fn load_with(folder: &Path, options: &LoadOptions, hashes: &dyn WeightHashes) -> Result<Self> {
        let folder = Classification::open(folder)?;
        let options = LoadOptions { dimensions: None, ..*options };
        let (encoder, weights) = Embedder::of_folder(&folder.folder, &options, hashes)?;
        if encoder.max_tokens() <= encoder.tokenizer().n_special_of_pairs() + 1 {
            let reason = format!("a window of {} tokens has no room for two texts", encoder.max_tokens());
            return Err(Error::Damaged { path: folder.folder.tokenizer_path(), reason });
        }
        let head = ClassifierHead::load(&folder, &weights, encoder.tokenizer())?;
        let judge = match folder.judge {
            None => None,
            Some(judge) => {
                let path = folder.folder.tokenizer_path();
                let tokens = |words: &str| {
                    let damaged = |reason| Error::Damaged { path: path.clone(), reason };
                    encoder.tokenizer().bare(words).map_err(damaged)
                };
                let [before, after] = judge.around();
                let around = [tokens(before)?, tokens(after)?];
                let n_around = around.iter().map(Vec::len).sum::<usize>();
                if encoder.max_tokens() <= n_around + encoder.n_special() {
                    let window = encoder.max_tokens();
                    let reason =
                        format!("a window of {window} tokens has no room for two texts in {n_around} of question");
                    return Err(Error::Damaged { path, reason });
                }
                Some((judge, around))
            }
        };
        Ok(Self { encoder, head, has_kinds: folder.has_kinds, judge })
    }

    /// The score of each pair, in order; its range is that of the model's activation, 0 to 1 for most.
    ///
    /// A pair beyond the window is read without the end of its longer text, or of both.
    ///
    /// # Errors
    /// If a text cannot be tokenized or a score is not finite: the first such pair is named by its position. If the
    /// device fails.
    pub fn score(&self, pairs: &[(String, String)]) -> Result<Vec<f32>> {
        let logits = self.read(pairs, NEVER)?.into_iter().enumerate();
        logits.map(|(index, (logit, ..))| Self::finite(index, self.head.activate(logit))).collect()
    }

    /// The score of each pair before the model's activation, in order: for a head that was trained to tell texts that
    /// answer from those that do not, the logarithm of the odds that the second text answers the first; of a language
    /// model, the difference between yes and no. For long pairs see [`CrossEncoder::score`].
    ///
    /// # Errors
    /// As [`CrossEncoder::score`], and [`Error::Cancelled`].
    pub fn logits_unless(&self, pairs: &[(String, String)], stop: Stop<'_>) -> Result<Vec<PairLogit>> {
        let finite = |(index, (logit, n_tokens, truncated))| {
            Ok(PairLogit { logit: Self::finite(index, logit)?, n_tokens, truncated })
        };
        self.read(pairs, stop)?.into_iter().enumerate().map(finite).collect()
    }

    /// Of each pair the logit, the tokens, and whether the model read its beginning alone.
    fn read(&self, pairs: &[(String, String)], stop: Stop<'_>) -> Result<Vec<(f64, u32, bool)>> {
        let encode = |index: usize| {
            check(stop)?;
            let (first, second) = &pairs[index];
            match self.encode(first, second) {
                Ok(pair) if pair.ids.is_empty() => {
                    Err(Error::Tokenize { index, reason: "neither text has a token, and none is added".to_owned() })
                }
                encoded => encoded.map_err(|reason| Error::Tokenize { index, reason }),
            }
        };
        let encoded = in_parallel(self.encoder.n_threads().min(pairs.len().div_ceil(8)), pairs.len(), encode)?;
        let mut read: Vec<_> = encoded.iter().map(|pair| (0.0, pair.ids.len() as u32, pair.truncated)).collect();
        let (ids, kinds): (Vec<_>, Vec<_>) =
            encoded.into_iter().map(|EncodedPair { ids, kinds, .. }| (ids, kinds)).unzip();
        let n_tokens: usize = ids.iter().map(Vec::len).sum();
        let n_threads = self.encoder.n_threads_for(n_tokens);
        let mut batches = pack(ids, self.encoder.batch_tokens(n_tokens, n_threads));
        if self.has_kinds {
            for batch in &mut batches {
                batch.kinds = batch.inputs.iter().flat_map(|&index| kinds[index].iter().copied()).collect();
            }
        }
        let of_batches = in_parallel(n_threads, batches.len(), |index| self.batch_logits(&batches[index], stop))?;
        for (&index, logit) in batches.iter().flat_map(|batch| &batch.inputs).zip(of_batches.into_iter().flatten()) {
            read[index].0 = logit;
        }
        Ok(read)
    }

    fn finite(index: usize, score: f64) -> Result<f32> {
        let score = score as f32;
        if score.is_finite() { Ok(score) } else { Err(Error::Vector { index, reason: "is not finite" }) }
    }

    /// The longest pair it reads whole, in tokens, special ones included.
    pub fn max_tokens(&self) -> usize {
        self.encoder.max_tokens()
    }

    /// Hexadecimal BLAKE3 of weights, tokenizer, configuration, window and number type.
    pub fn fingerprint(&self) -> &str {
        self.encoder.fingerprint()
    }

    /// Where the model is computed, in words.
    pub fn device_name(&self) -> String {
        self.encoder.device_name()
    }

    /// The tokens of a pair; of a question too long, the end of the second text is left out.
    fn encode(&self, first: &str, second: &str) -> Result<EncodedPair, String> {
        let (tokenizer, max_tokens) = (self.encoder.tokenizer(), self.encoder.max_tokens());
        let Some((judge, [before, after])) = &self.judge else {
            return tokenizer.encode_pair(first, second, max_tokens);
        };
        let pair = tokenizer.encode(&judge.words(first, second), max_tokens - before.len() - after.len())?;
        let ids = [before.as_slice(), &pair.ids, after].concat();
        Ok(EncodedPair { kinds: vec![0; ids.len()], ids, truncated: pair.truncated })
    }

    fn batch_logits(&self, batch: &Batch, stop: Stop<'_>) -> Result<Vec<f64>> {
        self.encoder.with_hidden(batch, stop, |hidden, width| {
            let rows = batch.spans.iter().map(|span| &hidden[span.start * width..span.end * width]);
            rows.map(|rows| self.head.logit(rows, width)).collect()
        })
    }
}

#[cfg(test)]
mod tests;
