//! A language model that is asked whether a document answers a query: its score is how much likelier yes is than no.
//!
//! Source: the model card of Qwen3-Reranker (Zhang et al. 2025), whose words these are; `LogitScore` of
//! sentence-transformers 6 for the ids of the two answers.

use std::path::Path;

use serde::Deserialize;

use super::json::read;
use crate::error::Result;

/// The words around a pair.
const BEFORE: &str = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the \
                      Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
const AFTER: &str = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
/// The task, unless the folder names another.
const TASK: &str = "Given a web search query, retrieve relevant passages that answer the query";

/// The question put to a language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judge {
    pub(super) task: String,
    pub(super) answers: Answers,
}

/// The tokens whose likelihoods are compared: the `config.json` of a LogitScore module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct Answers {
    /// Where the file names none, the token `yes`.
    pub(crate) true_token_id: Option<u32>,
    /// Where the file names none, the token `no`; where it names the other alone, nothing is compared.
    pub(crate) false_token_id: Option<u32>,
}

impl Answers {
    pub(super) fn open(module: &Path) -> Result<Self> {
        read(&module.join("config.json"), "the tokens that a language model answers with")
    }
}

impl Judge {
    pub(super) fn new(task: Option<String>, answers: Answers) -> Self {
        Self { task: task.unwrap_or_else(|| TASK.to_owned()), answers }
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// The words before a pair and behind it.
    pub(crate) fn around(&self) -> [&'static str; 2] {
        [BEFORE, AFTER]
    }

    /// A pair in the words that the model was trained with.
    pub(crate) fn words(&self, query: &str, document: &str) -> String {
        format!("<Instruct>: {}\n<Query>: {query}\n<Document>: {document}", self.task)
    }
}
