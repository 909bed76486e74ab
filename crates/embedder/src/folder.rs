//! A model folder as sentence-transformers writes it: which modules, which pooling, which window, which prompts.
//!
//! Source: sentence-transformers 2 to 6. The schema before 5.4 has one boolean per pooling mode and the window in
//! `sentence_bert_config.json`; the one since then has `pooling_mode` and leaves the window to `tokenizer_config.json`.
//! Differs: nothing is guessed. What is not understood is an error that names it, where others fall back to a default.

mod classification;
pub(crate) mod describe;
mod json;
mod judge;
mod modules;
mod pooling;
mod prompts;
mod transformer;

use std::path::{Path, PathBuf};

use crate::encoder::Config;
use crate::error::{Error, Result};
use crate::pooling::Pooling;
use crate::tokens::Tokenizer;
pub(crate) use classification::{Classification, HeadConfig};
use json::read;
pub(crate) use judge::Judge;
use modules::{Module, Modules};
use prompts::ModelConfig;
pub(crate) use prompts::Prompts;
use transformer::{Task, TransformerConfig};

/// Contents of the folder, checked.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Where the encoder's own files lie: the folder itself or one below it.
    transformer: PathBuf,
    pub(crate) config: Config,
    pub(crate) pooling: Pooling,
    /// Modules after the pooling, in order.
    pub(crate) modules: Vec<Module>,
    /// Length of the last module's vectors.
    pub(crate) n_dimensions: usize,
    /// Length that the folder cuts them to.
    pub(crate) truncate_dim: Option<usize>,
    /// The window in tokens, special tokens included.
    pub(crate) max_tokens: usize,
    /// The longest sequence the encoder can be given.
    pub(crate) n_positions: usize,
    pub(crate) prompts: Prompts,
    /// The measure that the model's vectors were trained for: `cosine`, `dot`, `euclidean` or `manhattan`.
    pub(crate) similarity: String,
    /// True if text is to be lowercased, which is left to the tokenizer.
    lowercases: bool,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let modules = Modules::open(path)?;
        let transformer = path.join(&modules.transformer);
        let config_path = transformer.join("config.json");
        let config = Config::parse(&config_path, read(&config_path, "the encoder's configuration")?)?;
        let pooling = pooling::open(&path.join(&modules.pooling).join("config.json"), config.hidden_size())?;
        let n_pooled = pooling.modes.len() * config.hidden_size();
        let n_dimensions = modules.rest.iter().try_fold(n_pooled, |n_inputs, module| module.n_outputs(n_inputs))?;
        let ModelConfig { prompts, similarity, truncate_dim } = ModelConfig::open(path)?;
        let settings = TransformerConfig::open(&transformer, Task::Embed)?;
        let (max_tokens, n_positions) = settings.window(&transformer, &config)?;
        Ok(Self {
            max_tokens,
            n_positions,
            lowercases: settings.do_lower_case,
            modules: modules.rest,
            transformer,
            config,
            pooling,
            n_dimensions,
            truncate_dim,
            prompts,
            similarity,
        })
    }

    pub(crate) fn weights_path(&self) -> PathBuf {
        self.transformer.join("model.safetensors")
    }

    pub(crate) fn tokenizer_path(&self) -> PathBuf {
        self.transformer.join("tokenizer.json")
    }

    /// Holds the tokenizer against the rest of the folder: it is the one of the word vectors, every id has a vector,
    /// the window has room for text, and case is treated as asked.
    pub(crate) fn check_tokenizer(&self, tokenizer: &Tokenizer) -> Result<()> {
        let path = self.tokenizer_path();
        let damaged = |reason: String| Err(Error::Damaged { path: path.clone(), reason });
        let (n_ids, vocab_size) = (tokenizer.n_ids(), self.config.vocab_size());
        if n_ids > vocab_size {
            return damaged(format!("has token ids up to {}, config.json has a vocabulary of {vocab_size}", n_ids - 1));
        }
        if n_ids < vocab_size / 2 {
            return damaged(format!(
                "knows {n_ids} tokens, config.json has a vocabulary of {vocab_size}: it is another model's"
            ));
        }
        let expected = self.config.special_ids();
        for (role, expected, found) in [
            ("first token of every text", expected.start, tokenizer.start()),
            ("last token of every text", expected.end, tokenizer.end()),
            ("padding token", expected.padding, tokenizer.padding()),
        ] {
            if let (Some(expected), Some(found)) = (expected, found)
                && expected != found
            {
                return damaged(format!("has {found} for the {role}, config.json {expected}: it is another model's"));
            }
        }
        if self.max_tokens <= tokenizer.n_special() {
            return damaged(format!("a window of {} tokens has no room for text", self.max_tokens));
        }
        if self.lowercases && !tokenizer.lowercases() {
            let (what, name) = ("setting", "do_lower_case = true".to_owned());
            return Err(Error::Unsupported { path, what, name, supported: "a tokenizer that lowercases by itself" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
