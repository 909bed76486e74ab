//! Well-known models: facts about repositories of the hub that no checksum was seen of. The first pull pins what comes.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::card::Use;

const CATALOGUE: &str = include_str!("../../../models/catalogue/known.toml");

/// Parameters that each token passes in the default encoder: the measure of speed.
const DEFAULT_LAYER_PARAMETERS: u64 = 10_600_000;

/// The well-known models, in the order of their names.
#[must_use]
pub fn known() -> &'static [Known] {
    static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
        let mut catalogue: Catalogue = toml::from_str(CATALOGUE).expect("the compiled-in catalogue is well-formed");
        catalogue.model.sort_by(|a, b| a.name.cmp(&b.name));
        catalogue.model
    });
    &KNOWN
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    model: Vec<Known>,
}

/// Facts about a model, as its page states them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Its short name, which its card and folder get.
    pub name: String,
    /// `owner/name` on the hub, the source of these facts.
    pub repository: String,
    /// Its use.
    #[serde(rename = "use", default)]
    pub of_use: Use,
    /// Use of the model, in a line.
    pub description: String,
    /// The `model_type` of its configuration.
    pub architecture: String,
    /// Languages it was trained for: `en`, `multilingual`, or several.
    pub languages: String,
    /// As its page says.
    pub license: String,
    /// Length of a vector; 1 for a score.
    pub dimensions: usize,
    /// Tokens it reads of one text.
    pub max_tokens: usize,
    /// All parameters, in millions.
    pub n_parameters_m: u64,
    /// Layers of its encoder.
    pub n_layers: u64,
    /// Width of a layer.
    pub hidden: u64,
    /// Width inside a layer's dense part.
    pub inner: u64,
    /// True if the dense part has a gate.
    #[serde(default)]
    pub gated_layers: bool,
    /// True if the hub wants terms accepted.
    #[serde(default)]
    pub gated: bool,
    /// Why this version cannot run it although it knows the architecture.
    #[serde(default, skip_serializing)]
    pub obstacle: Option<String>,
}

impl Known {
    /// Times that the default encoder is as fast, by the parameters that each token passes.
    #[must_use]
    pub fn n_times_slower(&self) -> f64 {
        let dense = self.hidden * self.inner * if self.gated_layers { 3 } else { 2 };
        let parameters = self.n_layers * (4 * self.hidden * self.hidden + dense);
        parameters as f64 / DEFAULT_LAYER_PARAMETERS as f64
    }
}
