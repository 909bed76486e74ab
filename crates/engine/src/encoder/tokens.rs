//! The tokens of an encoder: those of its own tokenizer, or of one that stands in for it.

use std::path::Path;

use cento_embedder::Tokenizer;

use crate::bpe::{self, Bpe};
use crate::error::{Error, Result};
use cento_models::Models;

/// A tokenizer that is lent; special tokens are not counted.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'e>(Of<'e>);

#[derive(Debug, Clone, Copy)]
enum Of<'e> {
    /// A `tokenizer.json`.
    Model(&'e Tokenizer),
    /// One of OpenAI's, built in.
    BuiltIn(&'static Bpe),
}

impl<'e> From<&'e Tokenizer> for Tokens<'e> {
    fn from(tokenizer: &'e Tokenizer) -> Self {
        Self(Of::Model(tokenizer))
    }
}

impl Tokens<'_> {
    /// Number of tokens of a text.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match self.0 {
            Of::Model(tokenizer) => tokenizer.count(text),
            Of::BuiltIn(bpe) => bpe.count(text),
        }
    }

    /// For each token of a text the byte offset of its end, ascending; bytes between two ends belong to the later
    /// token.
    #[must_use]
    pub fn ends(self, text: &str) -> Vec<usize> {
        match self.0 {
            Of::Model(tokenizer) => tokenizer.ends(text),
            Of::BuiltIn(bpe) => bpe.ends(text),
        }
    }

    /// Number of special tokens added to every text.
    pub(crate) fn n_special(self) -> usize {
        match self.0 {
            Of::Model(tokenizer) => tokenizer.n_special(),
            Of::BuiltIn(_) => 0,
        }
    }
}

impl cento_corpus::Tokens for Tokens<'_> {
    fn ends(&self, text: &str) -> Vec<usize> {
        Tokens::ends(*self, text)
    }
}

/// A tokenizer that stands in for that of an encoder elsewhere.
#[derive(Debug)]
pub(super) enum StandIn {
    Model(Box<Tokenizer>, blake3::Hash),
    BuiltIn(&'static str, &'static Bpe),
}

impl StandIn {
    /// `cl100k` and `o200k`, which are built in; the name of a model or a folder of one, whose tokenizer it is; or the
    /// path of a `tokenizer.json`.
    pub(super) fn named(name: &str) -> Result<Self> {
        let of_file = |path: &Path| {
            let (tokenizer, hash) = Tokenizer::load_hashed(path)?;
            Ok(Self::Model(Box::new(tokenizer), hash))
        };
        match name {
            "cl100k" => Ok(Self::BuiltIn("cl100k", bpe::cl100k())),
            "o200k" => Ok(Self::BuiltIn("o200k", bpe::o200k())),
            path if Path::new(path).is_file() => of_file(Path::new(path)),
            model => match Models::from_env()?.resolve(model) {
                Ok(located) => of_file(&located.folder.join("tokenizer.json")),
                Err(error) => Err(Error::Setting {
                    setting: "encoder-tokenizer",
                    value: name.to_owned(),
                    reason: format!("is neither cl100k, o200k, a tokenizer.json nor a model that is here ({error})"),
                }),
            },
        }
    }

    pub(super) fn tokens(&self) -> Tokens<'_> {
        match self {
            Self::Model(tokenizer, _) => Tokens(Of::Model(tokenizer)),
            Self::BuiltIn(_, bpe) => Tokens(Of::BuiltIn(bpe)),
        }
    }

    /// Two of one identity give the same tokens.
    pub(super) fn identity(&self) -> String {
        match self {
            Self::Model(_, hash) => hash.to_hex().to_string(),
            Self::BuiltIn(name, _) => (*name).to_owned(),
        }
    }
}
