//! The folder of a cross-encoder: an encoder with a head that gives a pair of texts one score.
//!
//! Source: sentence-transformers 2 to 6. Before 6 the folder is one of transformers, and the activation stands in
//! `config.json`; since then it has a `modules.json` with a single module, and the activation in
//! `config_sentence_transformers.json`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::Folder;
use super::json::{read, read_optional};
use super::judge::{Answers, Judge};
use super::modules::Modules;
use super::prompts::Prompts;
use super::transformer::{Task, TransformerConfig};
use crate::encoder::Config;
use crate::error::{Error, Result};
use crate::pooling::{Mode, ModuleActivation, Pooling};

/// Contents of the folder, checked.
#[derive(Debug)]
pub(crate) struct Classification {
    /// The encoder's part; the pooling is that of the head.
    pub(crate) folder: Folder,
    pub(crate) config_path: PathBuf,
    /// True if tokens of the second text are of another kind than those of the first.
    pub(crate) has_kinds: bool,
    /// Applied to the head's output.
    pub(crate) activation: ModuleActivation,
    pub(crate) head: HeadConfig,
    /// The question, where the model is a language model that is asked for yes or no.
    pub(crate) judge: Option<Judge>,
}

/// Settings of the head in `config.json`; only ModernBERT has any.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct HeadConfig {
    #[serde(default = "gelu")]
    classifier_activation: String,
    #[serde(default)]
    pub(crate) classifier_bias: bool,
    #[serde(default)]
    pub(crate) norm_bias: bool,
    #[serde(default = "cls")]
    classifier_pooling: String,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn cls() -> String {
    "cls".to_owned()
}

impl Classification {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (transformer, logit_score) = Modules::open_single(path)?;
        let transformer = path.join(transformer);
        let config_path = transformer.join("config.json");
        let json: Value = read(&config_path, "the encoder's configuration")?;
        let writes = writes(&json);
        if !writes {
            check_head(&config_path, &json)?;
        }
        let damaged =
            |error: serde_json::Error| Error::Damaged { path: config_path.clone(), reason: error.to_string() };
        let head = HeadConfig::deserialize(&json).map_err(damaged)?;
        let activation = activation(path, &config_path, &json)?;
        let config = Config::parse(&config_path, json)?;
        let judge = if writes { Some(judge(path, logit_score.as_deref())?) } else { None };
        let mode = match head.classifier_pooling.as_str() {
            _ if config.decoder().is_some() => Mode::LastToken,
            "cls" => Mode::Cls,
            "mean" => Mode::Mean,
            other => {
                let (name, what) = (other.to_owned(), "pooling of the head");
                return Err(Error::Unsupported { path: config_path, what, name, supported: "cls, mean" });
            }
        };
        let settings = TransformerConfig::open(&transformer, if writes { Task::Generate } else { Task::Classify })?;
        let (max_tokens, n_positions) = settings.window(&transformer, &config)?;
        let has_kinds = config.n_kinds() > 1 && TransformerConfig::tells_kinds(&transformer)?;
        let folder = Folder {
            transformer,
            n_dimensions: config.hidden_size(),
            config,
            pooling: Pooling { modes: vec![mode], include_prompt: true },
            modules: Vec::new(),
            truncate_dim: None,
            max_tokens,
            n_positions,
            // not read from there, but part of the fingerprint
            prompts: Prompts {
                query: judge.as_ref().map_or_else(String::new, |judge| judge.task.clone()),
                ..Prompts::default()
            },
            similarity: String::new(),
            lowercases: settings.do_lower_case,
        };
        Ok(Self { folder, config_path, has_kinds, activation, head, judge })
    }
}

impl Classification {
    /// Activation between the layers of ModernBERT's head.
    pub(crate) fn head_activation(&self) -> Result<ModuleActivation> {
        let name = &self.head.classifier_activation;
        let known = [
            ("gelu", ModuleActivation::Gelu),
            ("relu", ModuleActivation::Relu),
            ("silu", ModuleActivation::Silu),
            ("tanh", ModuleActivation::Tanh),
        ];
        let found = known.iter().find(|(known, _)| known == name);
        found.map(|(_, activation)| *activation).ok_or_else(|| Error::Unsupported {
            path: self.config_path.clone(),
            what: "activation of the head",
            name: name.clone(),
            supported: "gelu, relu, silu, tanh",
        })
    }
}

/// True if the model is a language model of an architecture that can be asked for yes or no.
fn writes(json: &Value) -> bool {
    json["architectures"][0] == "Qwen3ForCausalLM"
}

/// The question: with the tokens of the LogitScore module at that path, where there is one, and the task that
/// `config_sentence_transformers.json` has for its default prompt.
fn judge(folder: &Path, logit_score: Option<&Path>) -> Result<Judge> {
    let whole: Value = read_optional(&folder.join("config_sentence_transformers.json"))?.unwrap_or_default();
    let task = whole["default_prompt_name"].as_str().and_then(|name| whole["prompts"][name].as_str());
    Ok(Judge::new(task.map(str::to_owned), logit_score.map_or(Ok(Answers::default()), Answers::open)?))
}

/// The model has a head for whole sequences, with one output.
fn check_head(path: &Path, json: &Value) -> Result<()> {
    let unsupported = |what, name, supported| Err(Error::Unsupported { path: path.to_owned(), what, name, supported });
    let architecture = json["architectures"][0].as_str().unwrap_or_default();
    if !architecture.ends_with("ForSequenceClassification") {
        return unsupported(
            "model",
            architecture.to_owned(),
            "one whose name ends with ForSequenceClassification, and Qwen3ForCausalLM",
        );
    }
    let n_labels = json["id2label"].as_object().map(|labels| labels.len() as u64);
    match n_labels.or(json["num_labels"].as_u64()).unwrap_or(2) {
        1 => Ok(()),
        n_labels => unsupported("number of labels", n_labels.to_string(), "1"),
    }
}

/// From `config_sentence_transformers.json`, else from `config.json`, else the sigmoid.
fn activation(folder: &Path, config_path: &Path, config: &Value) -> Result<ModuleActivation> {
    let path = folder.join("config_sentence_transformers.json");
    let whole: Value = read_optional(&path)?.unwrap_or_default();
    if let (Some(name), false) = (whole["default_prompt_name"].as_str(), writes(config)) {
        let (what, name) = ("default prompt of a cross-encoder", name.to_owned());
        return Err(Error::Unsupported { path, what, name, supported: "none" });
    }
    let named = [
        (&path, &whole["activation_fn"]),
        (&config_path.to_owned(), &config["sentence_transformers"]["activation_fn"]),
        (&config_path.to_owned(), &config["sbert_ce_default_activation_function"]),
    ]
    .into_iter()
    .find_map(|(path, class)| class.as_str().map(|class| (path.clone(), class)));
    let Some((path, class)) = named else { return Ok(ModuleActivation::Sigmoid) };
    ModuleActivation::from_class(class).ok_or_else(|| Error::Unsupported {
        path,
        what: "activation",
        name: class.to_owned(),
        supported: ModuleActivation::SUPPORTED,
    })
}
