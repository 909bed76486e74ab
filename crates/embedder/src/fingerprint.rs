//! What makes two vectors comparable: one hash over everything that shapes them.
//!
//! Configuration enters by meaning, not by file: saving a model again in another schema does not change its
//! fingerprint, as long as weights and tokenizer are the same files. The device does not enter: devices agree within
//! rounding.

use serde::Serialize;

use crate::folder::Folder;
use crate::pooling::Head;
use crate::precision::Precision;

/// Changes when the same model would give other vectors than before.
const VERSION: &str = "cento embedding 1";

/// The number type as it enters: int8 gave other vectors before it turned weights and rows.
pub(crate) fn dtype(precision: Precision) -> &'static str {
    match precision {
        Precision::Int8 => "int8 turned",
        Precision::F32 | Precision::Bf16 | Precision::F16 => precision.name(),
    }
}

/// The number type as it entered when its vectors were others.
pub(crate) fn superseded_dtype(precision: Precision) -> Option<&'static str> {
    (precision == Precision::Int8).then_some("int8")
}

/// BLAKE3, as 64 hexadecimal digits.
pub(crate) fn fingerprint(
    folder: &Folder,
    head: &Head,
    weights: &blake3::Hash,
    tokenizer: &blake3::Hash,
    dtype: &str,
) -> String {
    let Folder { config, pooling, max_tokens, prompts, .. } = folder;
    let (config, pooling, max_tokens) = (json(config), json(pooling), max_tokens.to_string());
    let beyond_pooling = head.beyond_pooling().unwrap_or_default();
    let mut parts: Vec<(&str, &[u8])> = vec![
        ("version", VERSION.as_bytes()),
        ("weights", weights.as_bytes()),
        ("tokenizer", tokenizer.as_bytes()),
        ("config", config.as_bytes()),
        ("pooling", pooling.as_bytes()),
        ("query prompt", prompts.query.as_bytes()),
        ("document prompt", prompts.document.as_bytes()),
        ("max tokens", max_tokens.as_bytes()),
        ("dtype", dtype.as_bytes()),
    ];
    if !beyond_pooling.is_empty() {
        parts.push(("beyond pooling", beyond_pooling.as_bytes())); // most models have nothing there, and keep their fingerprint
    }
    let mut hasher = blake3::Hasher::new();
    for (name, value) in parts {
        for bytes in [name.as_bytes(), value] {
            hasher.update(&(bytes.len() as u64).to_le_bytes()); // so that no two lists of parts run together
            hasher.update(bytes);
        }
    }
    hasher.finalize().to_hex().to_string()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data becomes JSON")
}
