//! From the rows of a pair to its score: one row of them, one or two dense layers, an activation. Of a language model
//! the one layer is the difference of two rows of its output's weights: those of yes and no.
//!
//! Source: the `...ForSequenceClassification` classes of transformers 5, `LogitScore` of sentence-transformers 6.
//! Differs: computed in double precision.

use crate::encoder::Config;
use crate::encoder::decoder::{DecoderConfig, PREFIXES, WORDS};
use crate::error::{Error, Result};
use crate::folder::{Classification, HeadConfig, Judge};
use crate::pooling::{Dense, Module, ModuleActivation, Pooling};
use crate::tokens::Tokenizer;
use crate::weights::{Bias, Weights};

/// The head with its weights.
#[derive(Debug)]
pub(super) struct ClassifierHead {
    pooling: Pooling,
    modules: Vec<Module>,
    activation: ModuleActivation,
}

impl ClassifierHead {
    pub(super) fn load(folder: &Classification, weights: &Weights, tokenizer: &Tokenizer) -> Result<Self> {
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
            Config::Qwen3(config) | Config::Gemma3(config) => {
                let dense = match &folder.judge {
                    Some(judge) => answers(folder, judge, config, weights, tokenizer)?,
                    None => Dense::load(&weights.at("score"), hidden, 1, Bias::Without, ModuleActivation::Identity)?,
                };
                vec![Module::Dense(dense)]
            }
            Config::Jina(_) | Config::T5(_) | Config::Table(_) => {
                let (path, what) = (folder.config_path.clone(), "cross-encoder");
                let name = match config {
                    Config::T5(_) => "T5",
                    Config::Table(_) => "a table",
                    _ => "Jina's second BERT",
                };
                let name = name.to_owned();
                return Err(Error::Unsupported { path, what, name, supported: "the other architectures" });
            }
        };
        Ok(Self { pooling: folder.folder.pooling.clone(), modules, activation: folder.activation })
    }

    /// Of a pair's `rows`, \[T, H\]: the score before the activation.
    pub(super) fn logit(&self, rows: &[f32], width: usize) -> f64 {
        let pooled = self.pooling.apply(rows, width, 0).expect("a pair has at least its special tokens");
        self.modules.iter().fold(pooled, |vector, module| module.apply(vector))[0]
    }

    /// The score of a logit.
    pub(super) fn activate(&self, logit: f64) -> f64 {
        let mut score = [logit];
        self.activation.apply(&mut score);
        score[0]
    }
}

/// The difference of what a language model gives for two tokens, or what it gives for one.
fn answers(
    folder: &Classification,
    judge: &Judge,
    config: &DecoderConfig,
    weights: &Weights,
    tokenizer: &Tokenizer,
) -> Result<Dense> {
    let [vocab_size, hidden] = config.table();
    let table = if config.ties_words() {
        weights.encoder(&PREFIXES, WORDS).vector(WORDS, config.table())?
    } else {
        weights.vector("lm_head.weight", config.table())?
    };
    let row = |id: Option<u32>, word: &str| match id.or_else(|| tokenizer.id_of(word)).map(|id| id as usize) {
        Some(id) if id < vocab_size => Ok(&table[id * hidden..(id + 1) * hidden]),
        found => {
            let reason = match found {
                Some(id) => format!("the answer {word:?} is token {id}, of a vocabulary of {vocab_size}"),
                None => format!("has no token {word:?} to answer with"),
            };
            Err(Error::Damaged { path: folder.folder.tokenizer_path(), reason })
        }
    };
    let answers = judge.answers();
    let yes = row(answers.true_token_id, "yes")?;
    if answers.true_token_id.is_some() && answers.false_token_id.is_none() {
        return Ok(Dense::of_row(yes.to_vec()));
    }
    let no = row(answers.false_token_id, "no")?;
    Ok(Dense::of_row(yes.iter().zip(no).map(|(yes, no)| yes - no).collect()))
}
