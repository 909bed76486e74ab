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
mod table;
mod transformer;

use std::path::{Path, PathBuf};

use crate::encoder::Config;
use crate::encoder::table::Unknown;
use crate::error::{Error, Result};
use crate::pooling::{Mode, Pooling};
use crate::tokens::Tokenizer;
pub(crate) use classification::{Classification, HeadConfig};
use json::read;
pub(crate) use judge::Judge;
use modules::{EncoderModule, Module, Modules};
use prompts::ModelConfig;
pub(crate) use prompts::Prompts;
use table::Table;
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
        let Modules { encoder, rest } = Modules::open(path)?;
        let Encoding { folder: transformer, config, pooling, max_tokens, n_positions, lowercases } = match encoder {
            EncoderModule::Transformer { transformer, pooling } => {
                Encoding::of_transformer(path, &transformer, &pooling)?
            }
            EncoderModule::Table(folder) => Encoding::of_table(path.join(folder))?,
        };
        let n_pooled = pooling.modes.len() * config.hidden_size();
        let n_dimensions = rest.iter().try_fold(n_pooled, |n_inputs, module| module.n_outputs(n_inputs))?;
        let ModelConfig { prompts, similarity, truncate_dim } = ModelConfig::open(path)?;
        Ok(Self {
            transformer,
            config,
            pooling,
            modules: rest,
            n_dimensions,
            truncate_dim,
            max_tokens,
            n_positions,
            prompts,
            similarity,
            lowercases,
        })
    }

    pub(crate) fn weights_path(&self) -> PathBuf {
        self.transformer.join("model.safetensors")
    }

    pub(crate) fn tokenizer_path(&self) -> PathBuf {
        self.transformer.join("tokenizer.json")
    }

    /// The tokenizer as the encoder wants it, checked, and the BLAKE3 hash of its file.
    pub(crate) fn tokenizer(&self) -> Result<(Tokenizer, blake3::Hash)> {
        let (tokenizer, hash) = Tokenizer::load_hashed(&self.tokenizer_path())?;
        let tokenizer = match self.config.table() {
            None => tokenizer,
            Some(table) => of_table(tokenizer, table.unknown),
        };
        self.check_tokenizer(&tokenizer)?;
        Ok((tokenizer, hash))
    }

    /// Holds the tokenizer against the rest of the folder: it is the one of the word vectors, every id has a vector,
    /// the window has room for text, and case is treated as asked.
    fn check_tokenizer(&self, tokenizer: &Tokenizer) -> Result<()> {
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

/// The part of a folder that makes one row of a text.
struct Encoding {
    folder: PathBuf,
    config: Config,
    pooling: Pooling,
    max_tokens: usize,
    n_positions: usize,
    lowercases: bool,
}

impl Encoding {
    fn of_transformer(model: &Path, transformer: &Path, pooling: &Path) -> Result<Self> {
        let folder = model.join(transformer);
        let config_path = folder.join("config.json");
        let config = Config::parse(&config_path, read(&config_path, "the encoder's configuration")?)?;
        let pooling = pooling::open(&model.join(pooling).join("config.json"), config.hidden_size())?;
        let settings = TransformerConfig::open(&folder, Task::Embed)?;
        let (max_tokens, n_positions) = settings.window(&folder, &config)?;
        Ok(Self { folder, config, pooling, max_tokens, n_positions, lowercases: settings.do_lower_case })
    }

    fn of_table(folder: PathBuf) -> Result<Self> {
        let table = Table::open(&folder)?;
        let Some(config) = table.config()? else { return Err(table.without_weights()) };
        let pooling = Pooling { modes: vec![Mode::Mean], include_prompt: true };
        let (max_tokens, n_positions) = (table.max_tokens, table.max_tokens);
        Ok(Self { folder, config: Config::Table(config), pooling, max_tokens, n_positions, lowercases: false })
    }
}

/// Texts of a table stand without special tokens.
fn of_table(tokenizer: Tokenizer, unknown: Unknown) -> Tokenizer {
    match unknown {
        Unknown::Counted => tokenizer.without_special(),
        Unknown::LeftOut => tokenizer.without_special().without_unknown(),
    }
}

#[cfg(test)]
mod tests;
