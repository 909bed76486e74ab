//! Qwen3: a causal decoder; Qwen3-Embedding pools its last token, Qwen3-Reranker asks it for yes or no.
//!
//! Source: Yang et al. 2025; Zhang et al. 2025 (Qwen3 Embedding).

use std::path::Path;

use serde_json::Value;

use super::{DecoderConfig, Family, heads};
use crate::encoder::settings::{Reach, Settings, ShapeKeys};
use crate::error::Result;

const KEYS: ShapeKeys = ShapeKeys { epsilon: &["rms_norm_eps"], ..ShapeKeys::BERT };
/// Of `head_dim`.
const HEAD_WIDTH: usize = 128;

/// From the contents of `config.json`.
pub(in crate::encoder) fn parse(path: &Path, json: &Value) -> Result<DecoderConfig> {
    let settings = Settings::new(path, json);
    settings.only("attention", "is_causal", "true")?;
    settings.only("attention", "use_bidirectional_attention", "false")?;
    let shape = settings.shape(&KEYS, 1e-6)?;
    let heads = heads(&settings, &shape, HEAD_WIDTH)?;
    let base = settings.rotary_base("rope_theta", 10_000.0)?;
    let slides = settings.flag_or("use_sliding_window", false)?;
    let window = if slides { settings.size_or_none(&["sliding_window"])? } else { None };
    if window == Some(0) {
        return Err(settings.damaged("sliding_window is 0, and use_sliding_window is true".to_owned()));
    }
    let reaches = match settings.reaches_or_none(shape.n_layers)? {
        Some(reaches) => reaches,
        None => {
            let n_global = settings.size_or_none(&["max_window_layers"])?.unwrap_or(28);
            let is_local = |layer: usize| window.is_some() && layer >= n_global;
            (0..shape.n_layers).map(|layer| if is_local(layer) { Reach::Local } else { Reach::Global }).collect()
        }
    };
    if reaches.contains(&Reach::Local) && window.is_none() {
        return Err(settings.damaged("has local layers (sliding_attention) and no sliding_window".to_owned()));
    }
    Ok(DecoderConfig {
        shape,
        n_positions: settings.size(&["max_position_embeddings"])?,
        heads,
        score_divisor: heads.width as f64,
        activation: settings.activation_or("hidden_act", "silu")?,
        reaches,
        window: window.map(|window| window - 1), // the token itself is counted there
        is_causal: true,
        global_base: base,
        local_base: base,
        family: Family::Qwen,
        ties_words: settings.flag_or("tie_word_embeddings", false)?,
    })
}
