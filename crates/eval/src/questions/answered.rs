//! Files of questions with their answers alone: nobody has to say where the answers stand.
//!
//! One JSON object a line: an id (`id`, `_id`, `qid`, `query_id`), a question (`question`, `text`, `query`) and what is
//! right (`answer` or `answers`, a string or several, there or in `metadata`). The `queries.jsonl` of a BEIR folder is
//! such a file.
//! Cost: the questions in memory.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::{OneOrMany, Question, Questions, answers};
use crate::error::{Error, Result};
use crate::lines::{self, Lines};

#[derive(Deserialize)]
struct Record {
    #[serde(alias = "_id", alias = "qid", alias = "query_id")]
    id: String,
    #[serde(alias = "text", alias = "query")]
    question: String,
    answer: Option<OneOrMany>,
    answers: Option<OneOrMany>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize, Default)]
struct Metadata {
    answer: Option<OneOrMany>,
    answers: Option<OneOrMany>,
}

/// Reads the questions that have an answer, in the order of the file.
pub(super) fn read(path: &Path) -> Result<Questions> {
    let mut lines = Lines::open(path)?;
    let path = lines.path().to_owned();
    let (mut questions, mut ids) = (Vec::new(), HashSet::new());
    while let Some((line, text)) = lines.next()? {
        let Record { id, question, answer, answers: several, metadata } = lines::record(&path, line, text)?;
        if !ids.insert(id.clone()) {
            return Err(Error::Duplicate { path, line, what: format!("question {id}") });
        }
        let metadata = metadata.unwrap_or_default();
        let answers = answers([answer.or(several), metadata.answer.or(metadata.answers)]);
        if !answers.is_empty() {
            questions.push(Question {
                id,
                text: question,
                scope: None,
                answers,
                documents: Vec::new(),
                evidence: Vec::new(),
                facts: Vec::new(),
            });
        }
    }
    Ok(Questions { questions, texts: BTreeMap::new() })
}
