//! Gemma 3, its text model: global layers among local ones, each with a rotary base of its own; EmbeddingGemma sees in
//! both directions.
//!
//! Source: Gemma Team 2025; Schechter Vera et al. 2025 (EmbeddingGemma).
//! Differs: the cap on the language model's output is not looked at, as there is no such output here.

use std::path::Path;

use serde_json::Value;

use super::{DecoderConfig, Family, heads};
use crate::encoder::settings::{Reach, Settings, ShapeKeys};
use crate::error::Result;

const KEYS: ShapeKeys = ShapeKeys { epsilon: &["rms_norm_eps"], ..ShapeKeys::BERT };
/// Of `head_dim`, and of what scores are divided by the root of.
const HEAD_WIDTH: usize = 256;

/// From the contents of `config.json`.
pub(in crate::encoder) fn parse(path: &Path, json: &Value) -> Result<DecoderConfig> {
    let settings = Settings::new(path, json);
    let shape = settings.shape(&KEYS, 1e-6)?;
    let heads = heads(&settings, &shape, HEAD_WIDTH)?;
    let is_causal = !settings.flag_or("use_bidirectional_attention", false)?;
    let period = settings.size_or_none(&["_sliding_window_pattern", "sliding_window_pattern"])?.unwrap_or(6).max(1);
    let reach = |layer: usize| if (layer + 1).is_multiple_of(period) { Reach::Global } else { Reach::Local };
    let reaches = settings.reaches_or_none(shape.n_layers)?.unwrap_or_else(|| (0..shape.n_layers).map(reach).collect());
    // before a token the window counts the token itself; around it, half lies on either side
    let window = match settings.size_or_none(&["sliding_window"])?.unwrap_or(4096) {
        0 => return Err(settings.damaged("sliding_window is 0".to_owned())),
        window if is_causal => window - 1,
        window => window / 2,
    };
    let (global_base, local_base) = rotary_bases(&settings)?;
    Ok(DecoderConfig {
        shape,
        n_positions: settings.size(&["max_position_embeddings"])?,
        heads,
        score_divisor: settings.number_or_none(&["query_pre_attn_scalar"])?.unwrap_or(HEAD_WIDTH as f64),
        activation: settings.activation_or("hidden_activation", "gelu_pytorch_tanh")?,
        reaches,
        window: Some(window),
        is_causal,
        global_base,
        local_base,
        family: Family::Gemma,
        ties_words: settings.flag_or("tie_word_embeddings", true)?,
    })
}

/// Of global and local layers: `rope_parameters` of transformers 5, or two keys.
fn rotary_bases(settings: &Settings<'_>) -> Result<(f64, f64)> {
    let parameters = settings.part("rope_parameters");
    let base = |part: &str, old_key: &str, default: f64| -> Result<f64> {
        let part = parameters.part(part);
        part.only("rotary positions", "rope_type", "default")?;
        let base = part.number_or_none(&["rope_theta"])?;
        Ok(base.or(settings.number_or_none(&[old_key])?).unwrap_or(default))
    };
    let global = base("full_attention", "rope_theta", 1_000_000.0)?;
    Ok((global, base("sliding_attention", "rope_local_base_freq", 10_000.0)?))
}
