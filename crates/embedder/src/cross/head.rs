//! From the rows of a pair to its score: one row of them, two dense layers, an activation.
//!
//! Source: the `...ForSequenceClassification` classes of transformers 5.
//! Differs: computed in double precision.

use crate::encoder::Config;
use crate::error::{Error, Result};
use crate::folder::{Classification, HeadConfig};
use crate::pooling::{Dense, Module, ModuleActivation, Pooling};
use crate::weights::{Bias, Weights};

/// The head with its weights.
#[derive(Debug)]
pub(super) struct ClassifierHead {
    pooling: Pooling,
    modules: Vec<Module>,
    activation: ModuleActivation,
}

impl ClassifierHead {
    pub(super) fn load(folder: &Classification, weights: &Weights) -> Result<Self> {
        let config = &folder.folder.config;
        let hidden = config.hidden_size();
        let wide = |weights: &Weights, bias, activation| Dense::load(weights, hidden, hidden, bias, activation);
        let score = |name: &str| Dense::load(&weights.at(name), hidden, 1, Bias::With, ModuleActivation::Identity);
        let modules = match config {
            Config::Bert(_) | Config::Nomic(_) | Config::Gte(_) => {
                let base = weights.encoder(&["bert", "nomic_bert", "gte", "new"], "pooler.dense.weight");
                let pooler = wide(&base.at("pooler").at("dense"), Bias::With, ModuleActivation::Tanh)?;
                vec![Module::Dense(pooler), Module::Dense(score("classifier")?)]
            }
            Config::Roberta(_) | Config::Mpnet(_) => {
                let dense = wide(&weights.at("classifier").at("dense"), Bias::With, ModuleActivation::Tanh)?;
                vec![Module::Dense(dense), Module::Dense(score("classifier.out_proj")?)]
            }
            Config::DistilBert(_) => {
                let dense = wide(&weights.at("pre_classifier"), Bias::With, ModuleActivation::Relu)?;
                vec![Module::Dense(dense), Module::Dense(score("classifier")?)]
            }
            Config::ModernBert(config) => {
                let HeadConfig { classifier_bias, norm_bias, .. } = folder.head;
                let weights = weights.at("head");
                let dense = wide(&weights.at("dense"), Bias::if_set(classifier_bias), folder.head_activation()?)?;
                let norm = Bias::if_set(norm_bias);
                let norm = Module::layer_norm(&weights.at("norm"), hidden, norm, config.epsilon())?;
                vec![Module::Dense(dense), norm, Module::Dense(score("classifier")?)]
            }
            Config::Jina(_) => {
                let (path, what) = (folder.config_path.clone(), "cross-encoder");
                let (name, supported) = ("Jina's second BERT".to_owned(), "the other architectures");
                return Err(Error::Unsupported { path, what, name, supported });
            }
        };
        Ok(Self { pooling: folder.folder.pooling.clone(), modules, activation: folder.activation })
    }

    /// Of a pair's `rows`, \[T, H\].
    pub(super) fn score(&self, rows: &[f32], width: usize) -> f32 {
        let pooled = self.pooling.apply(rows, width, 0).expect("a pair has at least its special tokens");
        let mut scores = self.modules.iter().fold(pooled, |vector, module| module.apply(vector));
        self.activation.apply(&mut scores);
        scores[0] as f32
    }
}
