//! `config.json`, read key by key: every setting that would change the result is either computed or refused by name.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::layers::attention::{Heads, Order, SelfAttention, Sight};
use crate::layers::linear::Activation;
use crate::precision::Precision;

/// Most layers, and the greatest of every other size, that a file may name: many times those of the largest models,
/// so that no list or table is made of a size that nobody has, and no product of two sizes overflows.
const N_LAYERS_MAX: usize = 1 << 10;
const SIZE_MAX: usize = 1 << 24;

/// Sizes that every encoder has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Shape {
    /// V.
    pub(crate) vocab_size: usize,
    /// H, a multiple of the number of heads in all but T5.
    pub(crate) hidden: usize,
    pub(crate) n_layers: usize,
    pub(crate) n_heads: usize,
    /// F.
    pub(crate) inner: usize,
    /// Addend to a norm's variance.
    pub(crate) epsilon: f64,
}

impl Shape {
    pub(super) fn attention(&self, order: Order, window: Option<usize>, precision: Precision) -> SelfAttention {
        let scale = 1.0 / (self.head() as f32).sqrt();
        let (heads, sight) = (Heads::alike(self.n_heads, self.head()), Sight::around(window));
        SelfAttention { heads, scale, order, sight, norms: None, precision }
    }

    /// D, the dimensions of one head.
    pub(super) fn head(&self) -> usize {
        self.hidden / self.n_heads
    }
}

/// Ids of special tokens that the configuration names and that the tokenizer has to agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SpecialIds {
    /// Of the first token of a text.
    pub(crate) start: Option<u32>,
    /// Of the last token of a text.
    pub(crate) end: Option<u32>,
    /// Where it decides on positions.
    pub(crate) padding: Option<u32>,
}

/// Names of a shape's sizes in `config.json`; the first that is there counts.
pub(super) struct ShapeKeys {
    pub(super) hidden: &'static [&'static str],
    pub(super) n_layers: &'static [&'static str],
    pub(super) n_heads: &'static [&'static str],
    pub(super) inner: &'static [&'static str],
    /// Empty where the architecture has a fixed ε.
    pub(super) epsilon: &'static [&'static str],
}

impl ShapeKeys {
    /// As BERT names them.
    pub(super) const BERT: Self = Self {
        hidden: &["hidden_size"],
        n_layers: &["num_hidden_layers"],
        n_heads: &["num_attention_heads"],
        inner: &["intermediate_size"],
        epsilon: &["layer_norm_eps"],
    };
}

/// The range a layer's tokens see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Reach {
    Global,
    Local,
}

/// The activation that transformers knows by that name.
pub(super) fn activation(name: &str) -> Option<Activation> {
    Some(match name {
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Activation::GeluTanh, // one formula, written in three ways
        "relu" => Activation::Relu,
        "silu" | "swish" => Activation::Silu,
        "tanh" => Activation::Tanh,
        _ => return None,
    })
}

/// Names [`activation`] knows.
pub(super) const ACTIVATIONS: &str = "gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, silu, swish, tanh";

/// The file's contents, with its path for errors. A key that is null counts as one that is not there.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a> {
    path: &'a Path,
    json: &'a Value,
}

impl<'a> Settings<'a> {
    pub(super) fn new(path: &'a Path, json: &'a Value) -> Self {
        Self { path, json }
    }

    /// The value of the first of `keys` that is there.
    pub(super) fn value(&self, keys: &[&str]) -> Option<&'a Value> {
        keys.iter().map(|key| &self.json[*key]).find(|value| !value.is_null())
    }

    /// The settings below `key`; none of them is there where it is not.
    pub(super) fn part(&self, key: &str) -> Self {
        Self { path: self.path, json: &self.json[key] }
    }

    /// A whole number of at least 1.
    pub(super) fn size(&self, keys: &[&str]) -> Result<usize> {
        match self.size_or_none(keys)? {
            Some(0) => Err(self.damaged(format!("{} is 0", keys[0]))),
            Some(size) => Ok(size),
            None => Err(self.damaged(format!("missing field `{}`", keys[0]))),
        }
    }

    /// A whole number of at least 0, where it is there.
    pub(super) fn size_or_none(&self, keys: &[&str]) -> Result<Option<usize>> {
        let Some(value) = self.value(keys) else { return Ok(None) };
        match value.as_u64().map(usize::try_from) {
            Some(Ok(size)) if size <= SIZE_MAX => Ok(Some(size)),
            Some(_) => Err(self.damaged(format!("{} is {value}, more than the {SIZE_MAX} that can be", keys[0]))),
            None => Err(self.damaged(format!("{} is {value}, not a whole number", keys[0]))),
        }
    }

    /// The id of a token, where it is there.
    pub(super) fn id_or_none(&self, key: &str) -> Result<Option<u32>> {
        let Some(value) = self.value(&[key]) else { return Ok(None) };
        match value.as_u64().and_then(|id| u32::try_from(id).ok()) {
            Some(id) => Ok(Some(id)),
            None => Err(self.damaged(format!("{key} is {value}, not the id of a token"))),
        }
    }

    /// A number above 0, where it is there.
    pub(super) fn number_or_none(&self, keys: &[&str]) -> Result<Option<f64>> {
        let Some(value) = self.value(keys) else { return Ok(None) };
        match value.as_f64().filter(|number| *number > 0.0 && number.is_finite()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.damaged(format!("{} is {value}, not a number above 0", keys[0]))),
        }
    }

    pub(super) fn flag_or(&self, key: &str, default: bool) -> Result<bool> {
        let Some(value) = self.value(&[key]) else { return Ok(default) };
        value.as_bool().ok_or_else(|| self.damaged(format!("{key} is {value}, not true or false")))
    }

    pub(super) fn text_or<'b>(&self, key: &str, default: &'b str) -> Result<&'b str>
    where
        'a: 'b,
    {
        let Some(value) = self.value(&[key]) else { return Ok(default) };
        value.as_str().ok_or_else(|| self.damaged(format!("{key} is {value}, not a name")))
    }

    /// The activation named by `key`.
    pub(super) fn activation_or(&self, key: &str, default: &str) -> Result<Activation> {
        let name = self.text_or(key, default)?;
        activation(name).ok_or_else(|| self.unsupported("activation", name, ACTIVATIONS))
    }

    /// Refuses any value of `key` but that one, which is also the default.
    pub(super) fn only(&self, what: &'static str, key: &str, supported: &'static str) -> Result<()> {
        match self.value(&[key]) {
            None => Ok(()),
            Some(value) if value.as_str() == Some(supported) => Ok(()),
            Some(value)
                if value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string()) == supported =>
            {
                Ok(())
            }
            Some(value) => Err(self.unsupported(what, &format!("{key} = {value}"), supported)),
        }
    }

    /// The sizes of an encoder whose heads part a row.
    pub(super) fn shape(&self, keys: &ShapeKeys, default_epsilon: f64) -> Result<Shape> {
        let shape = self.sizes(keys, default_epsilon)?;
        let Shape { hidden, n_heads, .. } = shape;
        if !hidden.is_multiple_of(n_heads) {
            let (hidden_key, heads_key) = (keys.hidden[0], keys.n_heads[0]);
            return Err(self.damaged(format!("{hidden_key} {hidden} is not a multiple of {heads_key} {n_heads}")));
        }
        Ok(shape)
    }

    /// The sizes of an encoder whose heads are as wide as they like.
    pub(super) fn sizes(&self, keys: &ShapeKeys, default_epsilon: f64) -> Result<Shape> {
        let (hidden, n_heads) = (self.size(keys.hidden)?, self.size(keys.n_heads)?);
        let n_layers = self.size(keys.n_layers)?;
        if n_layers > N_LAYERS_MAX {
            let key = keys.n_layers[0];
            return Err(self.damaged(format!("{key} is {n_layers}, more than the {N_LAYERS_MAX} that can be")));
        }
        Ok(Shape {
            vocab_size: self.size(&["vocab_size"])?,
            hidden,
            n_layers,
            n_heads,
            inner: self.size(keys.inner)?,
            epsilon: self.number_or_none(keys.epsilon)?.unwrap_or(default_epsilon),
        })
    }

    /// `layer_types`: for each layer how far its tokens see, where it is there.
    pub(super) fn reaches_or_none(&self, n_layers: usize) -> Result<Option<Vec<Reach>>> {
        let Some(types) = self.value(&["layer_types"]) else { return Ok(None) };
        let types = types.as_array().map_or(&[][..], Vec::as_slice);
        if types.len() != n_layers {
            return Err(self.damaged(format!("layer_types names {} layers of {n_layers}", types.len())));
        }
        let reach = |name: &Value| match name.as_str() {
            Some("full_attention") => Ok(Reach::Global),
            Some("sliding_attention") => Ok(Reach::Local),
            _ => Err(self.unsupported("layer type", &name.to_string(), "full_attention, sliding_attention")),
        };
        types.iter().map(reach).collect::<Result<_>>().map(Some)
    }

    /// Base of the rotary positions: `rope_parameters` of transformers 5, or the key that the architecture had before.
    pub(super) fn rotary_base(&self, old_key: &str, default: f64) -> Result<f64> {
        let parameters = self.part("rope_parameters");
        parameters.only("rotary positions", "rope_type", "default")?;
        let base = parameters.number_or_none(&["rope_theta"])?;
        Ok(base.or(self.number_or_none(&[old_key])?).unwrap_or(default))
    }

    /// Pairs of a head's dimensions are turned, so their number has to be even.
    pub(super) fn check_even_heads(&self, shape: &Shape) -> Result<()> {
        match shape.head() {
            head if head.is_multiple_of(2) => Ok(()),
            head => Err(self.damaged(format!("heads of {head} dimensions cannot be rotated in pairs"))),
        }
    }

    pub(super) fn damaged(&self, reason: String) -> Error {
        Error::Damaged { path: self.path.to_owned(), reason }
    }

    pub(super) fn unsupported(&self, what: &'static str, name: &str, supported: &'static str) -> Error {
        Error::Unsupported { path: self.path.to_owned(), what, name: name.to_owned(), supported }
    }
}
