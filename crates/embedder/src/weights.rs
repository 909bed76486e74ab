//! The weights of a model: safetensors, hashed unless the hash is known, handed out tensor by tensor as f32.
//!
//! Cost: a tensor is read when a layer takes it, straight to where it stays; the files are open meanwhile.
//! Differs: nothing goes unnoticed. A missing or misshapen tensor, one that is not finite, and one that nobody asked
//! for are errors that name it: they mean that another model would be computed.

mod checkpoint;
mod hashes;
mod header;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use candle_core::{Device, Tensor};

use crate::error::{Error, Result};
use crate::kernels::gpu::Gpu;
use crate::layers::linear::{Activation, Linear};
use crate::layers::norm::LayerNorm;
use crate::precision::Precision;
use checkpoint::Checkpoint;
pub use hashes::{AlwaysHashed, WeightHashes};

/// Tensors that published files hold besides the encoder's, by the beginning of their names: pooler, language model and
/// other heads, tables that follow from the configuration, and the second name of T5's word vectors.
const BESIDE_THE_ENCODER: [&str; 17] = [
    "pooler.",
    "cls.",
    "lm_head.",
    "mlm_head.",
    "head.",
    "decoder.",
    "classifier.",
    "pre_classifier.",
    "score.",
    "qa_outputs.",
    "vocab_transform.",
    "vocab_layer_norm.",
    "vocab_projector.",
    "embeddings.position_ids",
    "embeddings.token_type_ids",
    "embeddings.rotary_emb.",
    "encoder.embed_tokens.",
];
/// Names of unknown tensors that an error lists.
const LISTED_MAX: usize = 3;

/// Tensors under one prefix of the files.
#[derive(Clone)]
pub(crate) struct Weights {
    checkpoint: Arc<Checkpoint>,
    device: Device,
    /// Where layers are made of them, if it is a GPU that has no tensors.
    gpu: Option<Gpu>,
    /// Empty, or ends with a dot.
    prefix: String,
}

/// The presence of a layer's bias; the configuration says so, never the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bias {
    With,
    Without,
}

impl Bias {
    /// As a flag in `config.json`.
    pub(crate) fn if_set(flag: bool) -> Self {
        if flag { Self::With } else { Self::Without }
    }

    pub(crate) fn there_is(self) -> bool {
        self == Self::With
    }
}

/// The shape of each tensor of `model.safetensors` at `path`, by the tensors' names; nothing where there is no file.
pub(crate) fn shapes(path: &Path) -> Result<Option<BTreeMap<String, Vec<usize>>>> {
    checkpoint::shapes(path)
}

/// Why there are no weights at `path`: what lies in the folder instead.
pub(crate) fn missing(path: &Path) -> Error {
    checkpoint::no_safetensors(path)
}

impl Weights {
    /// Opens `model.safetensors` at `path`, or the files of the index beside it; the second result is their BLAKE3
    /// hash. Tensors arrive on `device` as f32.
    pub(crate) fn open(path: &Path, device: &Device, hashes: &dyn WeightHashes) -> Result<(Self, blake3::Hash)> {
        let (checkpoint, hash) = Checkpoint::open(path, hashes)?;
        Ok((Self { checkpoint: Arc::new(checkpoint), device: device.clone(), gpu: None, prefix: String::new() }, hash))
    }

    /// The same for layers on a GPU, if there is one.
    pub(crate) fn on_gpu(self, gpu: Option<&Gpu>) -> Self {
        Self { gpu: gpu.cloned(), ..self }
    }

    /// The tensors whose names begin with this prefix's and `name.`.
    pub(crate) fn at(&self, name: &str) -> Self {
        Self { prefix: format!("{}{name}.", self.prefix), ..self.clone() }
    }

    /// Where tensors arrive.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.checkpoint.has(&self.full_name(name))
    }

    /// The tensors of the encoder: those under the first of `prefixes` that has the tensor `name`; all where none has.
    pub(crate) fn encoder(&self, prefixes: &[&str], name: &str) -> Self {
        prefixes.iter().map(|prefix| self.at(prefix)).find(|part| part.has(name)).unwrap_or_else(|| self.clone())
    }

    /// The tensor of that name, if it has that shape.
    pub(crate) fn tensor<const RANK: usize>(&self, name: &str, shape: [usize; RANK]) -> Result<Tensor> {
        Ok(Tensor::from_vec(self.vector(name, shape)?, shape.to_vec(), &self.device)?)
    }

    /// Its values in row-major order, in main memory.
    pub(crate) fn vector<const RANK: usize>(&self, name: &str, shape: [usize; RANK]) -> Result<Vec<f32>> {
        self.checkpoint.take(&self.full_name(name), &shape)
    }

    /// As [`Weights::vector`], also of a tensor of 8-bit integers, which stand for themselves.
    pub(crate) fn small_vector<const RANK: usize>(&self, name: &str, shape: [usize; RANK]) -> Result<Vec<f32>> {
        let name = self.full_name(name);
        if self.checkpoint.dtype(&name) != Some("I8") {
            return self.checkpoint.take(&name, &shape);
        }
        let (_, bytes) = self.checkpoint.take_bytes(&name, &shape)?;
        Ok(bytes.into_iter().map(|byte| f32::from(byte as i8)).collect())
    }

    /// Row numbers \[n\], each below `n_rows`.
    pub(crate) fn row_numbers(&self, name: &str, n: usize, n_rows: usize) -> Result<Vec<usize>> {
        let (dtype, bytes) = self.checkpoint.take_bytes(&self.full_name(name), &[n])?;
        let damaged = |reason: String| Error::Damaged { path: self.checkpoint.path.clone(), reason };
        let numbers: Vec<i64> = match dtype.as_str() {
            "I64" => bytes.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect(),
            "I32" => bytes.as_chunks().0.iter().map(|&bytes| i64::from(i32::from_le_bytes(bytes))).collect(),
            _ => return Err(damaged(format!("tensor {name:?} has type {dtype}; supported: I32, I64"))),
        };
        let row = |number: i64| usize::try_from(number).ok().filter(|&row| row < n_rows);
        let outside = |number: &i64| damaged(format!("tensor {name:?} names row {number} of {n_rows}"));
        numbers.iter().map(|number| row(*number).ok_or_else(|| outside(number))).collect()
    }

    /// Holds the tensors of an encoder against what it has taken.
    ///
    /// # Errors
    /// If there are others that are not known to stand beside an encoder: the encoder is then not the one they were
    /// made for. If a file was written to meanwhile.
    pub(crate) fn check_all_taken(&self) -> Result<()> {
        let beside = |name: &str| {
            let name = name.strip_prefix(&self.prefix).unwrap_or(name);
            BESIDE_THE_ENCODER.iter().any(|known| name.starts_with(known)) || name.ends_with(".inv_freq")
        };
        let unknown: Vec<&str> = self.checkpoint.left(&self.prefix).into_iter().filter(|name| !beside(name)).collect();
        if unknown.is_empty() {
            return self.checkpoint.check_unchanged();
        }
        let listed = unknown[..unknown.len().min(LISTED_MAX)].join(", ");
        let more = match unknown.len().saturating_sub(LISTED_MAX) {
            0 => String::new(),
            n_more => format!(" and {n_more} more"),
        };
        let reason = format!("holds tensors that config.json has no place for: {listed}{more}");
        Err(Error::Damaged { path: self.checkpoint.path.clone(), reason })
    }

    /// The dense layer here: `weight` \[N, K\] and `bias` \[N\].
    pub(crate) fn linear(
        &self,
        n_inputs: usize,
        n_outputs: usize,
        bias: Bias,
        activation: Activation,
        precision: Precision,
    ) -> Result<Linear> {
        let weight = self.tensor("weight", [n_outputs, n_inputs])?;
        let bias = bias.there_is().then(|| self.tensor("bias", [n_outputs])).transpose()?;
        Ok(Linear::new(&weight, bias.as_ref(), activation, precision, self.gpu.as_ref())?)
    }

    /// Dense layers of the same inputs as one: their outputs stand side by side.
    pub(crate) fn side_by_side(
        parts: &[Self],
        n_inputs: usize,
        n_outputs_each: usize,
        bias: Bias,
        precision: Precision,
    ) -> Result<Linear> {
        let stacked = |tensors: Result<Vec<Tensor>>| -> Result<Tensor> { Ok(Tensor::cat(&tensors?, 0)?) };
        let weight = stacked(parts.iter().map(|part| part.tensor("weight", [n_outputs_each, n_inputs])).collect())?;
        let bias = if bias.there_is() {
            Some(stacked(parts.iter().map(|part| part.tensor("bias", [n_outputs_each])).collect())?)
        } else {
            None
        };
        Ok(Linear::new(
            &weight,
            bias.as_ref(),
            Activation::None,
            precision,
            parts.first().and_then(|part| part.gpu.as_ref()),
        )?)
    }

    /// Dense layers of the same inputs and of different numbers of outputs as one, without biases.
    pub(crate) fn stacked(parts: &[(Self, usize)], n_inputs: usize, precision: Precision) -> Result<Linear> {
        let of_part = |(part, n_outputs): &(Self, usize)| part.tensor("weight", [*n_outputs, n_inputs]);
        let weight = Tensor::cat(&parts.iter().map(of_part).collect::<Result<Vec<_>>>()?, 0)?;
        Ok(Linear::new(
            &weight,
            None,
            Activation::None,
            precision,
            parts.first().and_then(|(part, _)| part.gpu.as_ref()),
        )?)
    }

    /// The norm around zero here, whose scale is `weight` \[N\] plus `offset`.
    pub(crate) fn rms_norm(&self, width: usize, offset: f64, epsilon: f64) -> Result<LayerNorm> {
        Ok(LayerNorm::rms(&(self.tensor("weight", [width])? + offset)?, epsilon, self.gpu.as_ref())?)
    }

    /// The layer norm here: `weight` and `bias`, both \[H\]; older files call them `gamma` and `beta`.
    pub(crate) fn norm(&self, hidden: usize, bias: Bias, epsilon: f64, precision: Precision) -> Result<LayerNorm> {
        let (scale, shift) = if self.has("gamma") { ("gamma", "beta") } else { ("weight", "bias") };
        let shift = bias.there_is().then(|| self.tensor(shift, [hidden])).transpose()?;
        Ok(LayerNorm::new(&self.tensor(scale, [hidden])?, shift.as_ref(), epsilon, precision, self.gpu.as_ref())?)
    }

    fn full_name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

#[cfg(test)]
mod tests;
