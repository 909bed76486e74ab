//! The weights of a model: one safetensors file, read once, hashed on the way, handed out tensor by tensor.
//!
//! Cost: the file is held in memory while the layers take their tensors from it, and dropped afterwards.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use candle_core::{DType, Tensor};
use candle_nn::VarBuilder;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::layers::linear::{Activation, Linear};
use crate::layers::norm::LayerNorm;
use crate::precision::Precision;

/// Tensors under one prefix of the file.
#[derive(Clone)]
pub(crate) struct Weights {
    builder: VarBuilder<'static>,
    path: PathBuf,
}

/// Whether a layer has a bias; the configuration says so, never the file.
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

    fn there_is(self) -> bool {
        self == Self::With
    }
}

impl Weights {
    /// Reads the file whole; the second result is the BLAKE3 hash of its bytes. Tensors arrive on `device` as f32.
    pub(crate) fn read(path: &Path, device: &Device) -> Result<(Self, blake3::Hash)> {
        let (bytes, hash) = read_hashed(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::Missing {
                path: path.to_owned(),
                purpose: "the weights in one safetensors file (pytorch_model.bin and sharded weights are not read)",
            },
            _ => Error::Io { path: path.to_owned(), source },
        })?;
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        if bytes.starts_with(b"version https://git-lfs") {
            return Err(damaged(
                "is a Git LFS pointer, not the weights; fetch the file itself (`git lfs pull`)".to_owned(),
            ));
        }
        let n_bytes = bytes.len();
        let builder = VarBuilder::from_buffered_safetensors(bytes, DType::F32, device).map_err(|error| {
            damaged(format!("not a complete safetensors file ({n_bytes} bytes): {}", first_line(&error)))
        })?;
        Ok((Self { builder, path: path.to_owned() }, hash))
    }

    /// The tensors whose names begin with this prefix's and `name.`.
    pub(crate) fn at(&self, name: &str) -> Self {
        Self { builder: self.builder.pp(name), path: self.path.clone() }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.builder.contains_tensor(name)
    }

    /// The tensor of that name, if it has that shape.
    pub(crate) fn tensor<const RANK: usize>(&self, name: &str, shape: [usize; RANK]) -> Result<Tensor> {
        self.builder.get(shape.to_vec(), name).map_err(|error| Error::Damaged {
            path: self.path.clone(),
            reason: format!("tensor {:?}: {}", self.full_name(name), first_line(&error)),
        })
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
        Ok(Linear::new(&weight, bias.as_ref(), activation, precision)?)
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
        let bias = match bias.there_is() {
            true => Some(stacked(parts.iter().map(|part| part.tensor("bias", [n_outputs_each])).collect())?),
            false => None,
        };
        Ok(Linear::new(&weight, bias.as_ref(), Activation::None, precision)?)
    }

    /// The layer norm here: `weight` and `bias`, both \[H\]; older files call them `gamma` and `beta`.
    pub(crate) fn norm(&self, hidden: usize, bias: Bias, epsilon: f64, precision: Precision) -> Result<LayerNorm> {
        let (scale, shift) = if self.has("gamma") { ("gamma", "beta") } else { ("weight", "bias") };
        let shift = bias.there_is().then(|| self.tensor(shift, [hidden])).transpose()?;
        Ok(LayerNorm::new(&self.tensor(scale, [hidden])?, shift.as_ref(), epsilon, precision)?)
    }

    fn full_name(&self, name: &str) -> String {
        match self.builder.prefix() {
            prefix if prefix.is_empty() => name.to_owned(),
            prefix => format!("{prefix}.{name}"),
        }
    }
}

/// Errors of the tensor library can carry a backtrace; what happened stands in the first line.
fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn read_hashed(path: &Path) -> io::Result<(Vec<u8>, blake3::Hash)> {
    const BLOCK_BYTES: u64 = 1 << 20;
    let mut file = File::open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
    let mut hasher = blake3::Hasher::new();
    loop {
        let start = bytes.len();
        if (&mut file).take(BLOCK_BYTES).read_to_end(&mut bytes)? == 0 {
            return Ok((bytes, hasher.finalize()));
        }
        hasher.update(&bytes[start..]);
    }
}
