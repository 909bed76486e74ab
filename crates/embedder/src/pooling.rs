//! From the hidden rows of a text to its one unit vector: pooling, then the modules a folder puts behind it.
//!
//! Source: `Pooling`, `Dense`, `LayerNorm` and `Normalize` of sentence-transformers 6.
//! Shapes: hidden \[T, H\] of one text; pooled \[M H\] for M modes, one after the other; a vector \[D\] after modules
//! and cut.
//! Differs: everything behind the encoder is computed in double precision; the vectors always have length 1, also where
//! the folder has no Normalize module (the direction is the same).
//! Cost: H additions a token, and H D multiplications a text for a Dense module.

mod modules;

use std::ops::Range;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::kernels::cuda::pool::Pool;
use crate::pack::Spans;
pub(crate) use modules::{Dense, Module, ModuleActivation, ModuleConfig};

/// One way to make a row out of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Mode {
    /// The first token.
    Cls,
    /// The maximum of each dimension.
    Max,
    /// The mean of all tokens, special ones included.
    Mean,
    /// The sum of all tokens over the square root of their number.
    MeanSqrtLen,
    /// The mean of all tokens, each weighted by its place, from 1; places count the prompt's tokens too.
    WeightedMean,
    /// The last token.
    LastToken,
}

impl Mode {
    /// The names in sentence-transformers' configuration, in the order in which the schema before 5.4 concatenates
    /// them.
    pub(crate) const NAMES: [(&str, Self); 6] = [
        ("cls", Self::Cls),
        ("max", Self::Max),
        ("mean", Self::Mean),
        ("mean_sqrt_len_tokens", Self::MeanSqrtLen),
        ("weightedmean", Self::WeightedMean),
        ("lasttoken", Self::LastToken),
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }

    /// Appends the row made of `rows`, which are at least one, of `width` values each; `n_before` tokens of the text
    /// precede them.
    fn apply(self, rows: &[f32], width: usize, n_before: usize, pooled: &mut Vec<f64>) {
        let n_tokens = rows.len() / width;
        let wide = |row: &[f32]| row.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        let weighted = |weight: &dyn Fn(usize) -> f64, divisor: f64| {
            let mut sums = vec![0.0; width];
            for (token, row) in rows.chunks_exact(width).enumerate() {
                let weight = weight(token);
                sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += weight * f64::from(value));
            }
            sums.iter_mut().for_each(|sum| *sum /= divisor);
            sums
        };
        pooled.extend(match self {
            Self::Cls => wide(&rows[..width]),
            Self::LastToken => wide(&rows[rows.len() - width..]),
            Self::Max => rows.chunks_exact(width).skip(1).fold(wide(&rows[..width]), |mut max, row| {
                max.iter_mut().zip(row).for_each(|(max, &value)| *max = larger(*max, f64::from(value)));
                max
            }),
            Self::Mean => weighted(&|_| 1.0, n_tokens as f64),
            Self::MeanSqrtLen => weighted(&|_| 1.0, (n_tokens as f64).sqrt()),
            Self::WeightedMean => {
                let place = |token: usize| (n_before + token + 1) as f64;
                weighted(&place, (0..n_tokens).map(place).sum())
            }
        });
    }
}

/// A NaN replaces any maximum and is replaced by none, so that it is reported in the end.
fn larger(max: f64, value: f64) -> f64 {
    if value > max || value.is_nan() { value } else { max }
}

/// The way the rows of a text become one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pooling {
    /// At least one; their rows are concatenated.
    pub(crate) modes: Vec<Mode>,
    /// True if the tokens of a prompt are pooled with the rest.
    pub(crate) include_prompt: bool,
}

impl Serialize for Pooling {
    /// A single mode is written as its name alone, as it was before there were tuples: fingerprints of such models
    /// stay.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match (self.modes.as_slice(), self.include_prompt) {
            ([mode], true) => mode.serialize(serializer),
            (modes, include_prompt) => (modes, include_prompt).serialize(serializer),
        }
    }
}

impl Pooling {
    /// \[T, H\] → \[M H\]; the first `n_prompt` rows belong to the prompt.
    pub(crate) fn apply(&self, rows: &[f32], width: usize, n_prompt: usize) -> Result<Vec<f64>, NoVector> {
        let n_before = if self.include_prompt { 0 } else { n_prompt };
        let Some(rows) = rows.get(n_before * width..).filter(|rows| !rows.is_empty()) else {
            return Err(NOTHING_BEHIND_PROMPT);
        };
        let mut pooled = Vec::with_capacity(self.modes.len() * width);
        self.modes.iter().for_each(|mode| mode.apply(rows, width, n_before, &mut pooled));
        Ok(pooled)
    }
}

/// Why there is no unit vector, as words that follow "the model's vector".
pub(crate) type NoVector = &'static str;
pub(crate) const NOTHING_BEHIND_PROMPT: NoVector = "has no tokens behind its prompt";

/// All that lies behind the encoder.
#[derive(Debug)]
pub(crate) struct Head {
    pooling: Pooling,
    modules: Vec<Module>,
    /// Each module's settings and the hash of its weights.
    descriptions: Vec<(ModuleConfig, Option<String>)>,
    /// H.
    width: usize,
    /// D.
    dimensions: usize,
    /// True if modules give longer vectors than D.
    cut: bool,
}

impl Head {
    /// With the weights of the folder's modules. `dimensions` cuts every vector to its first so many values
    /// (Matryoshka), before it gets its length; without, the folder's own `truncate_dim` does.
    ///
    /// # Errors
    /// If a module's weights are missing or damaged, or the vectors are shorter than asked for.
    pub(crate) fn load(folder: &Folder, dimensions: Option<usize>) -> Result<Self> {
        let width = folder.config.hidden_size();
        let (mut modules, mut descriptions) = (Vec::new(), Vec::new());
        for module in &folder.modules {
            let (loaded, hash) = Module::load(&module.config, &module.weights_path())?;
            modules.push(loaded);
            descriptions.push((module.config.clone(), hash.map(|hash| hash.to_hex().to_string())));
        }
        let available = folder.n_dimensions;
        if let Some(asked) = dimensions.filter(|&asked| asked == 0 || asked > available) {
            return Err(Error::Dimensions { asked, available });
        }
        let dimensions = dimensions.or(folder.truncate_dim.map(|cut| cut.min(available))).unwrap_or(available);
        let cut = dimensions < available;
        Ok(Self { pooling: folder.pooling.clone(), modules, descriptions, width, dimensions, cut })
    }

    /// Length of every vector.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Settings behind the pooling that shape vectors, for the fingerprint; nothing where nothing does.
    pub(crate) fn beyond_pooling(&self) -> Option<String> {
        let cut = self.cut.then_some(self.dimensions);
        let described = (!self.descriptions.is_empty() || self.cut).then_some((&self.descriptions, cut));
        described.map(|described| serde_json::to_string(&described).expect("plain data becomes JSON"))
    }

    /// The vector of every span of `hidden`, \[T, H\], or why it has none. Each text begins with `n_prompt` tokens of
    /// prompt and special tokens before it.
    pub(crate) fn vectors(&self, hidden: &[f32], spans: &Spans, n_prompt: usize) -> Vec<Result<Vec<f32>, NoVector>> {
        let rows = |span: Range<usize>| &hidden[span.start * self.width..span.end * self.width];
        spans.iter().map(|span| self.finish(self.pooling.apply(rows(span), self.width, n_prompt)?)).collect()
    }

    /// The kernels' pooling: for each mode the rows they make, and how many rows of a text that begins with `n_prompt`
    /// tokens of prompt they pass over.
    pub(crate) fn on_device(&self, n_prompt: usize) -> (Vec<Pool>, usize) {
        let modes = self.pooling.modes.iter().map(|mode| match mode {
            Mode::Cls => Pool::First,
            Mode::Max => Pool::Max,
            Mode::Mean => Pool::Mean,
            Mode::MeanSqrtLen => Pool::MeanSqrtLength,
            Mode::WeightedMean => Pool::WeightedMean,
            Mode::LastToken => Pool::Last,
        });
        (modes.collect(), if self.pooling.include_prompt { 0 } else { n_prompt })
    }

    /// The vector of the mean of `n_tokens` rows, given their sum, \[H\].
    pub(crate) fn of_sum(&self, mut sum: Vec<f64>, n_tokens: u32) -> Result<Vec<f32>, NoVector> {
        if !self.modules.is_empty() {
            sum.iter_mut().for_each(|value| *value /= f64::from(n_tokens)); // without modules only the direction counts
        }
        self.finish(sum)
    }

    /// True if vectors are made of one row of the encoder's width, as a mean is.
    pub(crate) fn takes_one_row(&self) -> bool {
        self.pooling.modes.len() == 1
    }

    /// Applies what follows pooling: modules, cut, unit length.
    pub(crate) fn finish(&self, pooled: Vec<f64>) -> Result<Vec<f32>, NoVector> {
        let mut vector = self.modules.iter().fold(pooled, |vector, module| module.apply(vector));
        vector.truncate(self.dimensions);
        unit(&vector)
    }
}

fn unit(vector: &[f64]) -> Result<Vec<f32>, NoVector> {
    let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    if !norm.is_finite() {
        return Err("is not finite");
    }
    if norm == 0.0 {
        return Err("has length zero");
    }
    Ok(vector.iter().map(|value| (value / norm) as f32).collect())
}

#[cfg(test)]
mod tests;
