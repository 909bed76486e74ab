//! The chunker's view of the encoder's tokenizer.

use cento_corpus::Tokens;

pub(crate) struct EncoderTokens<'e>(pub(crate) &'e cento_embedder::Tokenizer);

impl Tokens for EncoderTokens<'_> {
    fn ends(&self, text: &str) -> Vec<usize> {
        self.0.ends(text)
    }
}
