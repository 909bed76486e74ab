//! The settings of the encoder's module: window, case, and what would make it another computation.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::json::read_optional;
use crate::encoder::Config;
use crate::error::{Error, Result};

/// The longest window of an encoder that computes its positions: its tables are made when it is loaded. Also that of
/// one that has none.
pub(super) const WINDOW_MAX: usize = 1 << 16;

/// The purpose of the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Embed,
    Classify,
    /// To write the next token.
    Generate,
}

/// `sentence_bert_config.json`, or one of the names it had for other encoders.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct TransformerConfig {
    max_seq_length: Option<usize>,
    pub(super) do_lower_case: bool,
    transformer_task: Option<String>,
    module_output_name: Option<String>,
    modality_config: BTreeMap<String, Modality>,
    /// Settings that change nothing here, whatever they are.
    #[serde(rename = "unpad_inputs")]
    _unpad_inputs: Option<Value>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct Modality {
    method: String,
    method_output_name: Option<String>,
}

/// `tokenizer_config.json`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenizerConfig {
    tokenizer_class: Option<String>,
    model_input_names: Option<Vec<String>>,
    /// A float, because "no limit" is written as 1e30.
    model_max_length: Option<f64>,
    truncation_side: Option<String>,
}

impl TransformerConfig {
    pub(super) fn open(transformer: &Path, task: Task) -> Result<Self> {
        const NAMES: [&str; 7] = ["bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"];
        for name in NAMES {
            let path = transformer.join(format!("sentence_{name}_config.json"));
            let Some(config) = read_optional::<Self>(&path)? else { continue };
            config.check(&path, task)?;
            return Ok(config);
        }
        Ok(Self::default())
    }

    fn check(&self, path: &Path, task: Task) -> Result<()> {
        let unsupported =
            |what, name: String, supported| Err(Error::Unsupported { path: path.to_owned(), what, name, supported });
        let text = self.modality_config.get("text");
        let (task, output, method_output) = match task {
            Task::Embed => ("feature-extraction", "token_embeddings", "last_hidden_state"),
            Task::Classify => ("sequence-classification", "scores", "logits"),
            Task::Generate => ("text-generation", "causal_logits", "logits"),
        };
        let expected = [
            (self.transformer_task.as_ref(), "transformer task", task),
            (self.module_output_name.as_ref(), "output of the encoder", output),
            (text.map(|text| &text.method), "method of the encoder", "forward"),
            (text.and_then(|text| text.method_output_name.as_ref()), "output of the encoder", method_output),
        ];
        for (value, what, supported) in expected {
            if let Some(name) = value.filter(|value| *value != supported) {
                return unsupported(what, name.clone(), supported);
            }
        }
        match self.rest.iter().find(|(key, value)| !changes_nothing(key, value)) {
            Some((key, value)) => unsupported("setting", format!("{key} = {value}"), "max_seq_length, do_lower_case"),
            None => Ok(()),
        }
    }

    /// True if the encoder is told which of two texts a token is of. As transformers decides: by `model_input_names` of
    /// `tokenizer_config.json`, else by the tokenizer's class, of which BERT's and the general one of transformers 4
    /// do.
    pub(super) fn tells_kinds(transformer: &Path) -> Result<bool> {
        let tokenizer: TokenizerConfig = read_optional(&transformer.join("tokenizer_config.json"))?.unwrap_or_default();
        if let Some(names) = tokenizer.model_input_names {
            return Ok(names.iter().any(|name| name == "token_type_ids"));
        }
        let class = tokenizer.tokenizer_class.unwrap_or_default();
        Ok(class.is_empty() || class.starts_with("Bert") || class == "PreTrainedTokenizerFast")
    }

    /// `max_seq_length` where the file gives it, else the tokenizer's `model_max_length`, at most the positions of the
    /// configuration. A folder may ask for more where positions are computed and not looked up.
    ///
    /// The second result is how many positions the encoder has: no fewer than the window.
    pub(super) fn window(&self, transformer: &Path, config: &Config) -> Result<(usize, usize)> {
        let tokenizer_path = transformer.join("tokenizer_config.json");
        let tokenizer: TokenizerConfig = read_optional(&tokenizer_path)?.unwrap_or_default();
        if let Some(name) = tokenizer.truncation_side.filter(|side| side != "right") {
            let (path, what) = (tokenizer_path, "truncation side");
            return Err(Error::Unsupported { path, what, name, supported: "right" });
        }
        let (n_positions, n_rows) = (config.n_positions(), config.n_position_rows());
        let limit = tokenizer.model_max_length.unwrap_or(f64::INFINITY).clamp(0.0, n_positions as f64) as usize;
        let window = self.max_seq_length.unwrap_or(limit);
        let n_rows_max = n_rows.unwrap_or(WINDOW_MAX);
        if window > n_rows_max {
            let reason = format!("max_seq_length {window} exceeds the encoder's {n_rows_max} positions");
            return Err(Error::Damaged { path: transformer.join("sentence_bert_config.json"), reason });
        }
        Ok(match n_rows {
            // RoBERTa's table has rows before the first position, which some folders count
            Some(_) => (window.min(n_positions), n_positions),
            None => (window, n_positions.min(WINDOW_MAX).max(window)),
        })
    }
}

/// True if a setting is at the value it would have if it were not there, or only says how fast or by whose code things
/// run.
fn changes_nothing(key: &str, value: &Value) -> bool {
    const HOW: [&str; 6] =
        ["trust_remote_code", "attn_implementation", "torch_dtype", "dtype", "add_pooling_layer", "use_safetensors"];
    match (key, value) {
        (_, Value::Null) => true,
        ("model_args" | "model_kwargs" | "config_args" | "config_kwargs", Value::Object(settings))
        | ("tokenizer_args" | "processor_kwargs" | "processing_kwargs", Value::Object(settings)) => {
            settings.keys().all(|key| HOW.contains(&key.as_str()))
        }
        _ => false,
    }
}
