//! `1_Pooling/config.json`, both schemas: one boolean a mode before 5.4, `pooling_mode` since.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::json::read;
use crate::error::{Error, Result};
use crate::pooling::{Mode, Pooling};

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
    /// The names of the modes, as the new schema spells them, in the order in which their rows are concatenated.
    fn modes(&self) -> Vec<String> {
        match &self.pooling_mode {
            Some(OneOrMany::One(mode)) => vec![mode.clone()],
            Some(OneOrMany::Many(modes)) => modes.clone(),
            None => {
                let chosen = self.rest.iter().filter(|(_, value)| **value == Value::Bool(true));
                let names = chosen.filter_map(|(key, _)| key.strip_prefix("pooling_mode_"));
                let place = |name: &str| Mode::NAMES.iter().position(|(known, _)| *known == name);
                let mut names: Vec<String> = names.map(new_name).map(str::to_owned).collect();
                names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
                names
            }
        }
    }
}

/// The old schema's name of a mode in the new.
fn new_name(name: &str) -> &str {
    match name {
        "cls_token" => "cls",
        "mean_tokens" => "mean",
        "max_tokens" => "max",
        "weightedmean_tokens" => "weightedmean",
        other => other,
    }
}

/// The pooling of encoder rows of `hidden` values.
pub(super) fn open(path: &Path, hidden: usize) -> Result<Pooling> {
    let pooling: PoolingConfig = read(path, "the configuration of the pooling module")?;
    let width = pooling.embedding_dimension;
    if width != hidden {
        let reason = format!("pools vectors of {width} dimensions, the encoder's have {hidden}");
        return Err(Error::Damaged { path: path.to_owned(), reason });
    }
    let names = pooling.modes();
    let modes: Option<Vec<Mode>> = names.iter().map(|name| Mode::from_name(name)).collect();
    match modes.filter(|modes| !modes.is_empty()) {
        Some(modes) => Ok(Pooling { modes, include_prompt: pooling.include_prompt }),
        None => Err(Error::Unsupported {
            path: path.to_owned(),
            what: "pooling",
            name: names.join(" + "),
            supported: "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, and lists of them",
        }),
    }
}
