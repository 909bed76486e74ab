//! Budget tokenizers: whose tokens a budget counts.

use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;

use crate::bpe::{self, Bpe};
use crate::encoder::Tokens;
use crate::error::{Error, Result};
use cento_embedder::Tokenizer;

/// A tokenizer that budgets are counted with, and its name as answers give it.
pub struct BudgetTokenizer<'m> {
    name: String,
    /// The name; of a file, its content.
    identity: String,
    count: OfText<'m, usize>,
    ends: OfText<'m, Vec<usize>>,
}

/// Something worked out from a text.
type OfText<'m, T> = Box<dyn Fn(&str) -> T + Send + Sync + 'm>;

impl<'m> BudgetTokenizer<'m> {
    /// `o200k` and `cl100k` (OpenAI's, built in), or the path of a Hugging Face `tokenizer.json`.
    ///
    /// `model`, the collection's own encoder, is [`BudgetTokenizer::of_model`].
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "o200k" => Ok(Self::of_bpe(name, bpe::o200k())),
            "cl100k" => Ok(Self::of_bpe(name, bpe::cl100k())),
            path if Path::new(path).is_file() => {
                let (tokenizer, hash) = Tokenizer::load_hashed(Path::new(path))?;
                let (tokenizer, identity) = (Arc::new(tokenizer), hash.to_hex().to_string());
                let counter = tokenizer.clone();
                let made = Self::new(path, move |text| counter.count(text), move |text| tokenizer.ends(text));
                Ok(Self { identity, ..made })
            }
            other => Err(Error::Setting {
                setting: "tokenizer",
                value: other.to_owned(),
                reason: "is neither `model`, `o200k`, `cl100k` nor the path of a tokenizer.json".to_owned(),
            }),
        }
    }

    /// The tokenizer of an encoder, special tokens not counted.
    pub fn of_model(name: &str, tokenizer: Tokens<'m>) -> Self {
        Self::new(&format!("model:{name}"), move |text| tokenizer.count(text), move |text| tokenizer.ends(text))
    }

    fn of_bpe(name: &str, bpe: &'static Bpe) -> Self {
        Self::new(name, move |text| bpe.count(text), move |text| bpe.ends(text))
    }

    fn new(
        name: &str,
        count: impl Fn(&str) -> usize + Send + Sync + 'm,
        ends: impl Fn(&str) -> Vec<usize> + Send + Sync + 'm,
    ) -> Self {
        Self { name: name.to_owned(), identity: name.to_owned(), count: Box::new(count), ends: Box::new(ends) }
    }

    /// The name that answers carry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Two tokenizers of one identity count the same, as long as models of one name are the same.
    pub(crate) fn identity(&self) -> (&str, &str) {
        (&self.name, &self.identity)
    }

    /// Tokens of a text.
    pub fn count(&self, text: &str) -> usize {
        (self.count)(text)
    }

    /// For each token of a text the byte offset of its end, ascending; bytes between two ends belong to the later
    /// token.
    pub fn ends(&self, text: &str) -> Vec<usize> {
        (self.ends)(text)
    }
}

/// The text of tokens of `o200k` or `cl100k`. Bytes that are no UTF-8, as of a text that was cut inside a character,
/// become U+FFFD, as tiktoken decodes them.
///
/// # Errors
/// [`Error::Setting`] for another tokenizer, and for an id that is no token of it.
pub fn decode_tokens(name: &str, ids: &[u32]) -> Result<String> {
    let refused = |value: String, reason: &str| Error::Setting { setting: "tokens", value, reason: reason.to_owned() };
    let bpe = match name {
        "o200k" => bpe::o200k(),
        "cl100k" => bpe::cl100k(),
        other => return Err(refused(other.to_owned(), "is a tokenizer whose tokens cannot be decoded here")),
    };
    let bytes = bpe.decode(ids).map_err(|id| refused(id.to_string(), &format!("is no token of {name}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Debug for BudgetTokenizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BudgetTokenizer").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_decoded_to_their_text() {
        for (name, bpe) in
            [("o200k", tiktoken_rs::o200k_base_singleton()), ("cl100k", tiktoken_rs::cl100k_base_singleton())]
        {
            for text in ["", "The tide rises twice a day.", "naïve 東京 👍🏽 \r\n\t x²"] {
                assert_eq!(decode_tokens(name, &bpe.encode_ordinary(text)).unwrap(), text, "{name}");
            }
            let half = bpe.encode_ordinary("👍🏽")[..1].to_vec();
            assert_eq!(
                decode_tokens(name, &half).unwrap(),
                bpe.decode_bytes(&half).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap()
            );
            let error = decode_tokens(name, &[u32::MAX]).unwrap_err();
            assert!(error.to_string().contains("is no token of"), "{error}");
        }
        assert!(matches!(decode_tokens("p50k", &[1]), Err(Error::Setting { setting: "tokens", .. })));
    }

    #[test]
    fn a_run_of_blanks_of_any_length_is_counted() {
        for name in ["o200k", "cl100k"] {
            let tokenizer = BudgetTokenizer::named(name).unwrap();
            for blank in [" ", "\t", "\n", "\u{a0}", " \n"] {
                let text = format!("tide{}moon", blank.repeat(1 << 20));
                let ends = tokenizer.ends(&text);
                assert_eq!((ends.len(), ends.last()), (tokenizer.count(&text), Some(&text.len())), "{name} {blank:?}");
                assert!(ends.is_sorted(), "{name} {blank:?}");
            }
        }
    }
}
