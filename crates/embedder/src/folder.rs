//! A model folder as sentence-transformers writes it: which modules, which pooling, which window, which prompts.
//!
//! Source: sentence-transformers 2 to 6. The schema before 5.4 has one boolean per pooling mode and the window in
//! `sentence_bert_config.json`; the one since then has `pooling_mode` and leaves the window to `tokenizer_config.json`.
//! Differs: nothing is guessed. What is not understood is an error that names it, where others fall back to a default.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::encoder::Config;
use crate::error::{Error, Result};
use crate::pooling::Pooling;
use crate::tokens::Tokenizer;

/// What the folder says, checked.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Where the encoder's own files lie: the folder itself or one below it.
    transformer: PathBuf,
    pub(crate) config: Config,
    pub(crate) pooling: Pooling,
    /// The window in tokens, special tokens included.
    pub(crate) max_tokens: usize,
    pub(crate) prompts: Prompts,
    /// Whether text is to be lowercased, which is left to the tokenizer.
    pub(crate) lowercases: bool,
}

/// What is put before a text. Both are empty for most models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Prompts {
    pub(crate) query: String,
    pub(crate) document: String,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let modules = Modules::open(path)?;
        let transformer = path.join(&modules.transformer);
        let config_path = transformer.join("config.json");
        let config = Config::parse(&config_path, read(&config_path, "the encoder's configuration")?)?;
        let prompts = open_prompts(path)?;
        let pooling = open_pooling(&path.join(&modules.pooling).join("config.json"), &config, &prompts)?;
        let bert = TransformerConfig::open(&transformer)?;
        let max_tokens = bert.window(&transformer, &config)?;
        Ok(Self { transformer, config, pooling, max_tokens, prompts, lowercases: bert.do_lower_case })
    }

    pub(crate) fn weights_path(&self) -> PathBuf {
        self.transformer.join("model.safetensors")
    }

    pub(crate) fn tokenizer_path(&self) -> PathBuf {
        self.transformer.join("tokenizer.json")
    }

    /// Holds the tokenizer against the rest of the folder: every id has a word vector, the window has room for text, and case
    /// is treated as asked.
    pub(crate) fn check_tokenizer(&self, tokenizer: &Tokenizer) -> Result<()> {
        let path = self.tokenizer_path();
        let (n_ids, vocab_size) = (tokenizer.n_ids(), self.config.vocab_size());
        if n_ids > vocab_size {
            let reason = format!("has token ids up to {}, config.json has a vocabulary of {vocab_size}", n_ids - 1);
            return Err(Error::Damaged { path, reason });
        }
        if self.max_tokens <= tokenizer.n_special() {
            let reason = format!("a window of {} tokens has no room for text", self.max_tokens);
            return Err(Error::Damaged { path, reason });
        }
        if self.lowercases && !tokenizer.lowercases() {
            let (what, name) = ("setting", "do_lower_case = true".to_owned());
            return Err(Error::Unsupported { path, what, name, supported: "a tokenizer that lowercases by itself" });
        }
        Ok(())
    }
}

/// `modules.json`: an encoder, a pooling, and nothing else but normalisation.
struct Modules {
    transformer: PathBuf,
    pooling: PathBuf,
}

#[derive(Deserialize)]
struct Module {
    idx: usize,
    path: PathBuf,
    #[serde(rename = "type")]
    class: String,
}

impl Module {
    /// The class without its place in the library, which changed from version to version; other packages' classes whole.
    fn class_name(&self) -> &str {
        match self.class.strip_prefix("sentence_transformers.") {
            Some(path) => path.rsplit('.').next().unwrap_or(path),
            None => &self.class,
        }
    }
}

impl Modules {
    fn open(folder: &Path) -> Result<Self> {
        const SUPPORTED: &str = "Transformer, Pooling, and optionally Normalize, in this order";
        let path = folder.join("modules.json");
        let mut modules: Vec<Module> = read(&path, "the list of modules, as sentence-transformers saves it")?;
        modules.sort_by_key(|module| module.idx);
        let names: Vec<&str> = modules.iter().map(Module::class_name).collect();
        let unsupported = |what, name| Err(Error::Unsupported { path: path.clone(), what, name, supported: SUPPORTED });
        if let Some(name) = names.iter().find(|name| !["Transformer", "Pooling", "Normalize"].contains(name)) {
            return unsupported("module", (*name).to_owned());
        }
        match (names.as_slice(), modules.as_slice()) {
            (["Transformer", "Pooling"] | ["Transformer", "Pooling", "Normalize"], [transformer, pooling, ..]) => {
                Ok(Self { transformer: transformer.path.clone(), pooling: pooling.path.clone() })
            }
            _ => unsupported("order of modules", names.join(", ")),
        }
    }
}

/// `1_Pooling/config.json`, both schemas.
#[derive(Deserialize)]
struct PoolingConfig {
    #[serde(alias = "word_embedding_dimension")]
    embedding_dimension: usize,
    pooling_mode: Option<OneOrMany>,
    #[serde(default = "yes")]
    include_prompt: bool,
    /// The old schema's `pooling_mode_<name>: bool`, among others.
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn yes() -> bool {
    true
}

impl PoolingConfig {
    /// The names of the modes, as the new schema spells them.
    fn modes(&self) -> Vec<String> {
        match &self.pooling_mode {
            Some(OneOrMany::One(mode)) => vec![mode.clone()],
            Some(OneOrMany::Many(modes)) => modes.clone(),
            None => {
                let chosen = self.rest.iter().filter(|(_, value)| **value == Value::Bool(true));
                let names = chosen.filter_map(|(key, _)| key.strip_prefix("pooling_mode_"));
                names
                    .map(|name| match name {
                        "cls_token" => "cls".to_owned(),
                        "mean_tokens" => "mean".to_owned(),
                        "max_tokens" => "max".to_owned(),
                        other => other.to_owned(),
                    })
                    .collect()
            }
        }
    }
}

fn open_pooling(path: &Path, config: &Config, prompts: &Prompts) -> Result<Pooling> {
    let pooling: PoolingConfig = read(path, "the configuration of the pooling module")?;
    let unsupported = |what, name, supported| Err(Error::Unsupported { path: path.to_owned(), what, name, supported });
    let (width, hidden) = (pooling.embedding_dimension, config.hidden_size());
    if width != hidden {
        let reason = format!("pools vectors of {width} dimensions, the encoder's have {hidden}");
        return Err(Error::Damaged { path: path.to_owned(), reason });
    }
    if !pooling.include_prompt && *prompts != Prompts::default() {
        return unsupported(
            "pooling",
            "without the prompt's tokens (include_prompt = false)".to_owned(),
            "include_prompt = true",
        );
    }
    let modes = pooling.modes();
    match modes.as_slice() {
        [mode] if Pooling::from_name(mode).is_some() => Ok(Pooling::from_name(mode).unwrap_or(Pooling::Mean)),
        _ => unsupported("pooling", modes.join(" + "), "one of mean, cls, max"),
    }
}

/// `sentence_bert_config.json`, or one of the names it had for other encoders.
#[derive(Deserialize, Default)]
#[serde(default)]
struct TransformerConfig {
    max_seq_length: Option<usize>,
    do_lower_case: bool,
    transformer_task: Option<String>,
    module_output_name: Option<String>,
}

impl TransformerConfig {
    fn open(transformer: &Path) -> Result<Self> {
        const NAMES: [&str; 7] = ["bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"];
        for name in NAMES {
            let path = transformer.join(format!("sentence_{name}_config.json"));
            let Some(config) = read_optional::<Self>(&path)? else { continue };
            let expected = [
                (&config.transformer_task, "transformer task", "feature-extraction"),
                (&config.module_output_name, "output of the encoder", "token_embeddings"),
            ];
            for (value, what, supported) in expected {
                if let Some(name) = value.as_ref().filter(|value| *value != supported) {
                    return Err(Error::Unsupported { path, what, name: name.clone(), supported });
                }
            }
            return Ok(config);
        }
        Ok(Self::default())
    }

    /// `max_seq_length` where the old schema gives it, else the tokenizer's `model_max_length`, at most the positions there are.
    fn window(&self, transformer: &Path, config: &Config) -> Result<usize> {
        #[derive(Deserialize)]
        struct TokenizerConfig {
            /// A float, because "no limit" is written as 1e30.
            model_max_length: Option<f64>,
        }
        let n_positions = config.n_positions();
        if let Some(window) = self.max_seq_length {
            if window > n_positions {
                let reason = format!("max_seq_length {window} exceeds the encoder's {n_positions} positions");
                return Err(Error::Damaged { path: transformer.join("sentence_bert_config.json"), reason });
            }
            return Ok(window);
        }
        let tokenizer: Option<TokenizerConfig> = read_optional(&transformer.join("tokenizer_config.json"))?;
        let window = tokenizer.and_then(|tokenizer| tokenizer.model_max_length).unwrap_or(f64::INFINITY);
        Ok(window.clamp(0.0, n_positions as f64) as usize)
    }
}

/// `config_sentence_transformers.json`. As `encode_query` and `encode_document` do: a query takes the prompt named "query", a
/// document the first named of "document", "passage", "corpus", and where there is none, none; `default_prompt_name` is
/// for texts that are neither.
fn open_prompts(folder: &Path) -> Result<Prompts> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct PromptConfig {
        prompts: BTreeMap<String, Option<String>>,
    }
    let path = folder.join("config_sentence_transformers.json");
    let prompts = read_optional::<PromptConfig>(&path)?.unwrap_or_default().prompts;
    let prompt = |name: &&str| prompts.get(*name).cloned().flatten().filter(|prompt| !prompt.is_empty());
    Ok(Prompts {
        query: ["query"].iter().find_map(prompt).unwrap_or_default(),
        document: ["document", "passage", "corpus"].iter().find_map(prompt).unwrap_or_default(),
    })
}

fn read<T: DeserializeOwned>(path: &Path, purpose: &'static str) -> Result<T> {
    read_optional(path)?.ok_or_else(|| Error::Missing { path: path.to_owned(), purpose })
}

fn read_optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Io { path: path.to_owned(), source }),
    };
    let damaged = |error: serde_json::Error| Error::Damaged { path: path.to_owned(), reason: error.to_string() };
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

#[cfg(test)]
mod tests;
