//! Modules behind the pooling: dense layers, layer norms, normalisation, in the order of the folder.
//!
//! Shapes: a vector \[K\] → \[N\]; a dense layer's weight is kept as \[K, N\], so that its sums run side by side.

use std::path::Path;

use candle_core::{Device, Tensor};
use serde::Serialize;

use crate::error::Result;
use crate::weights::{AlwaysHashed, Bias, Weights};

/// Of the LayerNorm module: torch's default, the module has no setting for it.
const NORM_EPSILON: f64 = 1e-5;

/// A module's settings in the folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) enum ModuleConfig {
    /// `activation(x Wᵀ + b)`, plus the input or a projection of it where there is a residual.
    Dense { n_inputs: usize, n_outputs: usize, bias: bool, activation: ModuleActivation, residual: bool },
    /// `(x - mean) / √(variance + 1e-5) * scale + shift`.
    LayerNorm { width: usize },
    /// `x / max(|x|, 1e-12)`.
    Normalize,
}

/// Activation after a dense module's products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum ModuleActivation {
    Identity,
    Tanh,
    Relu,
    /// With the exact error function.
    Gelu,
    Sigmoid,
    Silu,
}

impl ModuleActivation {
    /// Classes of `torch.nn`, by their last name.
    pub(crate) const NAMES: [(&str, Self); 6] = [
        ("Identity", Self::Identity),
        ("Tanh", Self::Tanh),
        ("ReLU", Self::Relu),
        ("GELU", Self::Gelu),
        ("Sigmoid", Self::Sigmoid),
        ("SiLU", Self::Silu),
    ];

    /// Classes [`ModuleActivation::from_class`] knows.
    pub(crate) const SUPPORTED: &str = "torch.nn.modules: Identity, Tanh, ReLU, GELU, Sigmoid, SiLU";

    /// From a class as the folder names it, such as `torch.nn.modules.activation.Tanh`.
    pub(crate) fn from_class(class: &str) -> Option<Self> {
        let (path, name) = class.rsplit_once('.')?;
        let known = Self::NAMES.iter().find(|(known, _)| *known == name);
        known.filter(|_| path == "torch.nn" || path.starts_with("torch.nn.modules.")).map(|(_, activation)| *activation)
    }

    pub(crate) fn apply(self, values: &mut [f64]) {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        match self {
            Self::Identity => {}
            Self::Tanh => values.iter_mut().for_each(|x| *x = x.tanh()),
            Self::Relu => values.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x }), // a NaN stays
            Self::Gelu => gelu(values),
            Self::Sigmoid => values.iter_mut().for_each(|x| *x = sigmoid(*x)),
            Self::Silu => values.iter_mut().for_each(|x| *x *= sigmoid(*x)),
        }
    }
}

fn gelu(values: &mut [f64]) {
    let tensor = Tensor::new(&*values, &Device::Cpu).and_then(|tensor| tensor.gelu_erf());
    let activated = tensor.and_then(|tensor| tensor.to_vec1::<f64>()).expect("a vector of doubles in main memory");
    values.copy_from_slice(&activated);
}

/// A module with its weights.
#[derive(Debug)]
pub(crate) enum Module {
    Dense(Dense),
    LayerNorm { scale: Vec<f32>, shift: Option<Vec<f32>>, epsilon: f64 },
    Normalize,
}

/// A dense layer, alone or with a residual.
#[derive(Debug)]
pub(crate) struct Dense {
    weight: Matrix,
    bias: Option<Vec<f32>>,
    activation: ModuleActivation,
    residual: Residual,
}

#[derive(Debug)]
enum Residual {
    None,
    Input,
    Projection(Matrix),
}

/// \[K, N\].
#[derive(Debug)]
struct Matrix {
    values: Vec<f32>,
    n_outputs: usize,
}

impl Module {
    /// The module with the weights of `path` (`model.safetensors` in the module's folder), and their hash.
    pub(super) fn load(config: &ModuleConfig, path: &Path) -> Result<(Self, Option<blake3::Hash>)> {
        let read = || Weights::open(path, &Device::Cpu, &AlwaysHashed);
        match *config {
            ModuleConfig::Normalize => Ok((Self::Normalize, None)),
            ModuleConfig::LayerNorm { width } => {
                let (weights, hash) = read()?;
                let norm = Self::layer_norm(&weights.at("norm"), width, Bias::With, NORM_EPSILON)?;
                weights.check_all_taken()?;
                Ok((norm, Some(hash)))
            }
            ModuleConfig::Dense { n_inputs, n_outputs, bias, activation, residual } => {
                let (weights, hash) = read()?;
                let mut dense =
                    Dense::load(&weights.at("linear"), n_inputs, n_outputs, Bias::if_set(bias), activation)?;
                dense.residual = if !residual {
                    Residual::None
                } else if n_inputs == n_outputs {
                    Residual::Input
                } else {
                    Residual::Projection(Matrix::load(&weights.at("residual"), n_inputs, n_outputs)?)
                };
                weights.check_all_taken()?;
                Ok((Self::Dense(dense), Some(hash)))
            }
        }
    }

    /// The norm with these `weight` and, where it has one, `bias`.
    pub(crate) fn layer_norm(weights: &Weights, width: usize, bias: Bias, epsilon: f64) -> Result<Self> {
        let shift = bias.there_is().then(|| weights.vector("bias", [width])).transpose()?;
        Ok(Self::LayerNorm { scale: weights.vector("weight", [width])?, shift, epsilon })
    }

    /// \[K\] → \[N\].
    pub(crate) fn apply(&self, vector: Vec<f64>) -> Vec<f64> {
        match self {
            Self::Dense(dense) => dense.apply(&vector),
            Self::LayerNorm { scale, shift, epsilon } => layer_norm(&vector, scale, shift.as_deref(), *epsilon),
            Self::Normalize => {
                let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
                let divisor = if norm < 1e-12 { 1e-12 } else { norm }; // a NaN stays
                vector.iter().map(|value| value / divisor).collect()
            }
        }
    }
}

impl Dense {
    /// The layer with these `weight` and, where it has one, `bias`.
    pub(crate) fn load(
        weights: &Weights,
        n_inputs: usize,
        n_outputs: usize,
        bias: Bias,
        activation: ModuleActivation,
    ) -> Result<Self> {
        Ok(Self {
            weight: Matrix::load(weights, n_inputs, n_outputs)?,
            bias: bias.there_is().then(|| weights.vector("bias", [n_outputs])).transpose()?,
            activation,
            residual: Residual::None,
        })
    }

    /// The layer with one output and these weights, \[K\].
    pub(crate) fn of_row(weights: Vec<f32>) -> Self {
        let weight = Matrix { values: weights, n_outputs: 1 };
        Self { weight, bias: None, activation: ModuleActivation::Identity, residual: Residual::None }
    }

    fn apply(&self, x: &[f64]) -> Vec<f64> {
        let mut out = self.weight.product(x);
        if let Some(bias) = &self.bias {
            out.iter_mut().zip(bias).for_each(|(sum, &bias)| *sum += f64::from(bias));
        }
        self.activation.apply(&mut out);
        match &self.residual {
            Residual::None => {}
            Residual::Input => out.iter_mut().zip(x).for_each(|(out, x)| *out += x),
            Residual::Projection(matrix) => out.iter_mut().zip(matrix.product(x)).for_each(|(out, x)| *out += x),
        }
        out
    }
}

impl Matrix {
    /// From the tensor `weight`, \[N, K\].
    fn load(weights: &Weights, n_inputs: usize, n_outputs: usize) -> Result<Self> {
        let rows = weights.vector("weight", [n_outputs, n_inputs])?;
        let values = (0..n_inputs).flat_map(|k| rows.iter().skip(k).step_by(n_inputs).copied()).collect();
        Ok(Self { values, n_outputs })
    }

    /// \[K\] → \[N\].
    fn product(&self, x: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_outputs];
        for (&x, row) in x.iter().zip(self.values.chunks_exact(self.n_outputs)) {
            sums.iter_mut().zip(row).for_each(|(sum, &weight)| *sum += x * f64::from(weight));
        }
        sums
    }
}

fn layer_norm(vector: &[f64], scale: &[f32], shift: Option<&[f32]>, epsilon: f64) -> Vec<f64> {
    let n = vector.len() as f64;
    let mean = vector.iter().sum::<f64>() / n;
    let variance = vector.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    let normed = vector.iter().map(|value| (value - mean) / (variance + epsilon).sqrt());
    let scaled = normed.zip(scale).map(|(value, &scale)| value * f64::from(scale));
    scaled.enumerate().map(|(i, value)| value + shift.map_or(0.0, |shift| f64::from(shift[i]))).collect()
}

impl ModuleConfig {
    /// Length of the module's vectors, given that of the vectors it is given; `Err` with the length it expects.
    pub(crate) fn n_outputs(&self, n_inputs: usize) -> Result<usize, usize> {
        match *self {
            Self::Dense { n_inputs: expected, n_outputs, .. } if expected == n_inputs => Ok(n_outputs),
            Self::LayerNorm { width: expected } if expected == n_inputs => Ok(n_inputs),
            Self::Normalize => Ok(n_inputs),
            Self::Dense { n_inputs: expected, .. } | Self::LayerNorm { width: expected } => Err(expected),
        }
    }
}
