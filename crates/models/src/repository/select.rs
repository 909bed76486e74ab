//! Which files of a repository an encoder needs. What is not named here is never asked for, and never becomes a path.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::listing::{Entry, Listing};
use crate::card::{bytes_max, is_inside};
use crate::error::Failure;

/// Settings of the whole model.
const OF_THE_MODEL: [&str; 2] = ["modules.json", "config_sentence_transformers.json"];
/// Settings of a module; the tokenizer lies with the encoder.
const OF_A_MODULE: [&str; 11] = [
    "config.json",
    "model.safetensors.index.json",
    "sentence_albert_config.json",
    "sentence_bert_config.json",
    "sentence_camembert_config.json",
    "sentence_distilbert_config.json",
    "sentence_roberta_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
];
const WEIGHTS: &str = "model.safetensors";
/// Most modules of a model; each is a folder.
const N_MODULES_MAX: usize = 32;

/// The file that names the modules, where there is one.
pub(super) fn modules(listing: &Listing) -> Result<Option<&Entry>, Failure> {
    listing.files.get(OF_THE_MODEL[0]).map(within_bounds).transpose()
}

/// Folders of the modules, each empty or ending in a slash; the model's own where nothing names any.
pub(super) fn folders(modules: Option<&[u8]>) -> Result<Vec<String>, Failure> {
    #[derive(Deserialize)]
    struct Module {
        path: String,
    }
    let unsuited = |reason: String| Failure::Unsuited { reason: format!("modules.json: {reason}") };
    let Some(modules) = modules else { return Ok(vec![String::new()]) };
    let modules: Vec<Module> = serde_json::from_slice(modules).map_err(|error| unsuited(error.to_string()))?;
    if modules.len() > N_MODULES_MAX {
        return Err(unsuited(format!("names {} modules, more than {N_MODULES_MAX}", modules.len())));
    }
    let folder = |Module { path }: Module| match path.trim_end_matches('/') {
        "" | "." => Ok(String::new()),
        path if is_inside(path) => Ok(format!("{path}/")),
        path => Err(unsuited(format!("{path:?} is no folder inside the model's"))),
    };
    modules.into_iter().map(folder).collect()
}

/// The settings, which are read before any weights come.
pub(super) fn settings<'l>(listing: &'l Listing, folders: &[String]) -> Result<Vec<&'l Entry>, Failure> {
    let of_modules = folders.iter().flat_map(|folder| OF_A_MODULE.iter().map(move |name| format!("{folder}{name}")));
    let names: BTreeSet<String> = OF_THE_MODEL.iter().map(|name| (*name).to_owned()).chain(of_modules).collect();
    let found = names.iter().filter_map(|name| listing.files.get(name)).filter(|entry| entry.size_bytes > 0);
    found.map(|entry| within_bounds(entry)).collect()
}

/// The weights of every module that has any. `index` gives the contents of a file of settings.
pub(super) fn weights<'l>(
    listing: &'l Listing,
    folders: &[String],
    index: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<&'l Entry>, Failure> {
    let mut found = Vec::new();
    for folder in folders {
        let name = format!("{folder}{WEIGHTS}");
        if let Some(entry) = listing.files.get(&name) {
            found.push(within_bounds(entry)?);
        } else if let Some(json) = index(&format!("{name}.index.json")) {
            for shard in shards(&json)? {
                let shard = format!("{folder}{shard}");
                let missing =
                    || Failure::Unsuited { reason: format!("{shard}: named by {name}.index.json, not there") };
                found.push(within_bounds(listing.files.get(&shard).ok_or_else(missing)?)?);
            }
        } else if listing.files.contains_key(&format!("{folder}pytorch_model.bin")) {
            let reason = format!("{folder}pytorch_model.bin is a pickle, which can run code; no safetensors beside it");
            return Err(Failure::Unsuited { reason });
        }
    }
    if found.is_empty() { Err(without_safetensors(listing)) } else { Ok(found) }
}

/// Refuses weights that are quantised, by the method.
pub(super) fn check_not_quantised(config: &[u8]) -> Result<(), Failure> {
    let config: Value = serde_json::from_slice(config).unwrap_or_default(); // what is wrong with it, its reader says
    match &config["quantization_config"] {
        Value::Null => Ok(()),
        quantised => {
            let method = quantised["quant_method"].as_str().unwrap_or("an unnamed method");
            Err(Failure::Unsuited { reason: format!("its weights are quantised ({method:?}), which is not supported") })
        }
    }
}

/// True for a model that brings its own code.
pub(super) fn has_code(config: &[u8]) -> bool {
    let config: Value = serde_json::from_slice(config).unwrap_or_default();
    config["auto_map"].is_object()
}

/// Refuses a repository in which no file could be weights, by what it has instead.
pub(super) fn check_has_safetensors(listing: &Listing) -> Result<(), Failure> {
    let is_there = listing.files.keys().any(|name| name.ends_with(".safetensors"));
    if is_there { Ok(()) } else { Err(without_safetensors(listing)) }
}

fn without_safetensors(listing: &Listing) -> Failure {
    let has = |end: &str| listing.files.keys().find(|name| name.ends_with(end));
    let instead = [
        (".bin", "a pickle, which can run code"),
        (".pt", "a pickle, which can run code"),
        (".gguf", "GGUF, quantised for llama.cpp"),
        (".onnx", "ONNX"),
        (".h5", "TensorFlow's"),
        (".msgpack", "Flax's"),
    ]
    .into_iter()
    .find_map(|(end, kind)| Some(format!("; {:?} is {kind}", has(end)?)));
    Failure::Unsuited { reason: format!("it has no model.safetensors{}", instead.unwrap_or_default()) }
}

/// Files of `model.safetensors.index.json`, each beside it.
fn shards(index: &[u8]) -> Result<BTreeSet<String>, Failure> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let unsuited = |reason: String| Failure::Unsuited { reason: format!("model.safetensors.index.json: {reason}") };
    let index: Index = serde_json::from_slice(index).map_err(|error| unsuited(error.to_string()))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    match names.iter().find(|name| !is_inside(name) || name.contains('/') || !name.ends_with(".safetensors")) {
        Some(name) => Err(unsuited(format!("{name:?} is no safetensors file beside it"))),
        None => Ok(names),
    }
}

fn within_bounds(entry: &Entry) -> Result<&Entry, Failure> {
    let limit = bytes_max(&entry.path);
    if entry.size_bytes <= limit {
        return Ok(entry);
    }
    let reason = format!("{}: {} bytes, more than the {limit} of any such file", entry.path, entry.size_bytes);
    Err(Failure::Unsuited { reason })
}
