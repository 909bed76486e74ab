//! Budget tokenizers: whose tokens a budget counts.

use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;

use crate::context::bpe::{self, Bpe};
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
    pub fn of_model(name: &str, tokenizer: &'m Tokenizer) -> Self {
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

impl Debug for BudgetTokenizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BudgetTokenizer").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
