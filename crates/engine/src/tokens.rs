//! Budget tokenizers: whose tokens a budget counts.

use std::fmt::{self, Debug};
use std::path::Path;

use cento_embedder::Tokenizer;

use crate::error::{Error, Result};

/// A tokenizer that budgets are counted with, and its name as answers give it.
pub struct BudgetTokenizer<'m> {
    name: String,
    count: Box<dyn Fn(&str) -> usize + Send + Sync + 'm>,
}

impl<'m> BudgetTokenizer<'m> {
    /// `o200k` and `cl100k` (OpenAI's, built in), or the path of a Hugging Face `tokenizer.json`.
    ///
    /// `model`, the collection's own encoder, is [`BudgetTokenizer::of_model`].
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "o200k" => Ok(Self::new(name, |text| tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len())),
            "cl100k" => Ok(Self::new(name, |text| tiktoken_rs::cl100k_base_singleton().encode_ordinary(text).len())),
            path if Path::new(path).is_file() => {
                let tokenizer = Tokenizer::load(Path::new(path))?;
                Ok(Self::new(path, move |text| tokenizer.count(text)))
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
        Self::new(&format!("model:{name}"), move |text| tokenizer.count(text))
    }

    fn new(name: &str, count: impl Fn(&str) -> usize + Send + Sync + 'm) -> Self {
        Self { name: name.to_owned(), count: Box::new(count) }
    }

    /// The name that answers carry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tokens of a text.
    pub fn count(&self, text: &str) -> usize {
        (self.count)(text)
    }
}

impl Debug for BudgetTokenizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BudgetTokenizer").field(&self.name).finish()
    }
}
