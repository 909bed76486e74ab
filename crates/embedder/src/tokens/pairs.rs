//! Two texts as one sequence, as cross-encoders read them.

use tokenizers::utils::truncation::truncate_encodings;
use tokenizers::{Encoding, PostProcessor, TruncationParams};

use super::{PREFIX_BYTES_PER_TOKEN, Tokenizer};

/// The tokens of a pair as the encoder sees them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EncodedPair {
    /// Ids, special tokens included.
    pub(crate) ids: Vec<u32>,
    /// For each token the kind (`token_type`) that the tokenizer gives it: 0 or 1.
    pub(crate) kinds: Vec<u8>,
    /// True if tokens of either text were left out.
    pub(crate) truncated: bool,
}

impl Tokenizer {
    /// Special tokens that a pair gets.
    pub(crate) fn n_special_of_pairs(&self) -> usize {
        self.inner.get_post_processor().map_or(0, |processor| processor.added_tokens(true))
    }

    /// Both texts between special tokens, in at most `max_tokens`: the longer text gives way first, then both alike.
    pub(crate) fn encode_pair(&self, first: &str, second: &str, max_tokens: usize) -> Result<EncodedPair, String> {
        let max_length = max_tokens - self.n_special_of_pairs();
        let (first, second) = (self.first_tokens(first, max_length)?, self.first_tokens(second, max_length)?);
        let truncated = first.len() + second.len() > max_length;
        let params = TruncationParams { max_length, ..TruncationParams::default() }; // longest first, from the right
        let pair = truncate_encodings(first, Some(second), &params)
            .and_then(|(first, second)| self.inner.post_process(first, second, true))
            .map_err(|error| error.to_string())?;
        if pair.len() > max_tokens {
            let n_tokens = pair.len();
            return Err(format!("the tokenizer's template makes {n_tokens} tokens of a pair; {max_tokens} are read"));
        }
        let kind = |&kind: &u32| u8::try_from(kind).map_err(|_| format!("the tokenizer gives a token the kind {kind}"));
        let kinds = pair.get_type_ids().iter().map(kind).collect::<Result<_, _>>()?;
        Ok(EncodedPair { ids: pair.get_ids().to_vec(), kinds, truncated })
    }

    /// All tokens of a text, or the first so many and more.
    fn first_tokens(&self, text: &str, n_tokens: usize) -> Result<Encoding, String> {
        let mut n_bytes = (n_tokens + 1) * PREFIX_BYTES_PER_TOKEN;
        loop {
            let prefix = self.cuts.prefix(text, n_bytes);
            let encoding = self.inner.encode_fast(prefix, false).map_err(|error| error.to_string())?;
            if encoding.len() > n_tokens || prefix.len() == text.len() {
                return Ok(encoding);
            }
            n_bytes = n_bytes.saturating_mul(2);
        }
    }
}
