//! `modules.json`, and the settings of the modules behind the pooling.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::json::{read, read_optional};
use super::table;
use crate::error::{Error, Result};
use crate::pooling::{ModuleActivation, ModuleConfig};

/// The chain: an encoder with its pooling, and what follows.
pub(super) struct Modules {
    pub(super) encoder: EncoderModule,
    pub(super) rest: Vec<Module>,
}

/// The modules that make one vector of a text, by their folders.
pub(super) enum EncoderModule {
    Transformer { transformer: PathBuf, pooling: PathBuf },
    Table(PathBuf),
}

/// A module behind the pooling.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) config: ModuleConfig,
    path: PathBuf,
}

/// An entry of `modules.json`.
#[derive(Deserialize)]
struct Entry {
    idx: usize,
    path: PathBuf,
    #[serde(rename = "type")]
    class: String,
}

impl Entry {
    /// The class without its place in the library, which changed from version to version; other packages' classes
    /// whole.
    fn class_name(&self) -> &str {
        match self.class.strip_prefix("sentence_transformers.") {
            Some(path) => path.rsplit('.').next().unwrap_or(path),
            None => &self.class,
        }
    }
}

impl Modules {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        const SUPPORTED: &str = "Transformer and Pooling, or StaticEmbedding; then Dense, LayerNorm, Normalize and \
                                 Dropout as often as wanted";
        const FIRST: [&str; 3] = ["Transformer", "Pooling", "StaticEmbedding"];
        const FOLLOWING: [&str; 4] = ["Dense", "LayerNorm", "Normalize", "Dropout"];
        let path = folder.join("modules.json");
        let mut entries: Vec<Entry> = match read_optional(&path)? {
            Some(entries) => entries,
            None if table::is_table(folder)? => {
                return Ok(Self { encoder: EncoderModule::Table(PathBuf::new()), rest: Vec::new() });
            }
            None => return Err(no_modules(folder, path)),
        };
        entries.sort_by_key(|entry| entry.idx);
        let names: Vec<&str> = entries.iter().map(Entry::class_name).collect();
        let unsupported = |what, name| Err(Error::Unsupported { path: path.clone(), what, name, supported: SUPPORTED });
        if let Some(name) = names.iter().find(|name| !FIRST.contains(name) && !FOLLOWING.contains(name)) {
            return unsupported("module", (*name).to_owned());
        }
        let (encoder, rest) = match (names.as_slice(), entries.as_slice()) {
            (["Transformer", "Pooling", ..], [transformer, pooling, rest @ ..]) => {
                let (transformer, pooling) = (transformer.path.clone(), pooling.path.clone());
                (EncoderModule::Transformer { transformer, pooling }, rest)
            }
            (["StaticEmbedding", ..], [table, rest @ ..]) => (EncoderModule::Table(table.path.clone()), rest),
            _ => return unsupported("order of modules", names.join(", ")),
        };
        if rest.iter().any(|entry| FIRST.contains(&entry.class_name())) {
            return unsupported("order of modules", names.join(", "));
        }
        let mut modules = Vec::new();
        for entry in rest {
            modules.extend(Module::open(folder.join(&entry.path), entry.class_name())?);
        }
        // every vector gets unit length in the end
        while modules.last().is_some_and(|module: &Module| module.config == ModuleConfig::Normalize) {
            modules.pop();
        }
        Ok(Self { encoder, rest: modules })
    }
}

/// Why a folder without `modules.json` at `path` is no encoder.
fn no_modules(folder: &Path, path: PathBuf) -> Error {
    let config_path = folder.join("config.json");
    let config: Value = read_optional(&config_path).ok().flatten().unwrap_or_default();
    if config["is_encoder_decoder"] != true {
        return Error::Missing { path, purpose: "the list of modules, as sentence-transformers saves it" };
    }
    let name = config["architectures"][0].as_str().unwrap_or_default().to_owned();
    let supported = "an encoder without its decoder, in a folder with modules.json as sentence-transformers saves it";
    Error::Unsupported { path: config_path, what: "model", name, supported }
}

impl Modules {
    /// The folder of a model's only encoder, which is the model's own where there is no `modules.json`; then that of
    /// the module that makes a score of a language model's output, where there is one.
    pub(super) fn open_single(folder: &Path) -> Result<(PathBuf, Option<PathBuf>)> {
        let path = folder.join("modules.json");
        let Some(entries) = read_optional::<Vec<Entry>>(&path)? else { return Ok((PathBuf::new(), None)) };
        let names: Vec<&str> = entries.iter().map(Entry::class_name).collect();
        match (names.as_slice(), entries.as_slice()) {
            (["Transformer"], [transformer]) => Ok((transformer.path.clone(), None)),
            (["Transformer", "LogitScore"], [transformer, score]) => {
                Ok((transformer.path.clone(), Some(folder.join(&score.path))))
            }
            _ => {
                let (what, name) = ("chain of modules", names.join(", "));
                Err(Error::Unsupported {
                    path,
                    what,
                    name,
                    supported: "Transformer alone or with LogitScore, for a cross-encoder",
                })
            }
        }
    }
}

/// A module's `config.json`.
#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    in_features: usize,
    out_features: usize,
    bias: Option<bool>,
    activation_function: Option<String>,
    use_residual: bool,
    dimension: usize,
    module_input_name: Option<String>,
    module_output_name: Option<String>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

impl Module {
    /// Nothing for a module that does nothing when a model is used.
    fn open(path: PathBuf, class: &str) -> Result<Option<Self>> {
        if class == "Dropout" {
            return Ok(None);
        }
        let config_path = path.join("config.json");
        let file: File = match class {
            "Normalize" => read_optional(&config_path)?.unwrap_or_default(), // older folders have no file for it
            _ => read(&config_path, "the configuration of a module")?,
        };
        let unsupported = |what, name: &str, supported| Error::Unsupported {
            path: config_path.clone(),
            what,
            name: name.to_owned(),
            supported,
        };
        if let Some(setting) = file.rest.keys().next() {
            return Err(unsupported("setting", setting, "the settings of sentence-transformers 2 to 6"));
        }
        for name in [&file.module_input_name, &file.module_output_name].into_iter().flatten() {
            if name != "sentence_embedding" {
                return Err(unsupported("input or output of a module", name, "sentence_embedding"));
            }
        }
        let config = match class {
            "Normalize" => ModuleConfig::Normalize,
            "LayerNorm" => ModuleConfig::LayerNorm { width: file.dimension },
            _ => {
                let class = file.activation_function.as_deref().unwrap_or("torch.nn.modules.activation.Tanh");
                let Some(activation) = ModuleActivation::from_class(class) else {
                    return Err(unsupported("activation", class, ModuleActivation::SUPPORTED));
                };
                ModuleConfig::Dense {
                    n_inputs: file.in_features,
                    n_outputs: file.out_features,
                    bias: file.bias.unwrap_or(true),
                    activation,
                    residual: file.use_residual,
                }
            }
        };
        if matches!(config, ModuleConfig::Dense { n_inputs: 0, .. } | ModuleConfig::Dense { n_outputs: 0, .. }) {
            let reason = "in_features and out_features have to be 1 or more".to_owned();
            return Err(Error::Damaged { path: config_path, reason });
        }
        Ok(Some(Self { config, path }))
    }

    pub(crate) fn weights_path(&self) -> PathBuf {
        self.path.join("model.safetensors")
    }

    /// Length of its vectors, given that of the vectors before it.
    pub(super) fn n_outputs(&self, n_inputs: usize) -> Result<usize> {
        self.config.n_outputs(n_inputs).map_err(|expected| Error::Damaged {
            path: self.path.join("config.json"),
            reason: format!("takes vectors of {expected} dimensions, those before it have {n_inputs}"),
        })
    }
}
