//! Questions: what the right answer to each is, and where in the documents it stands.
//!
//! Two layouts are read. An *excerpt set* is a folder with `questions.jsonl` and `docs/`: gold is spans of text. A
//! *BEIR folder* has `queries.jsonl` and `qrels/`: gold is documents, with `facts.jsonl` or SciFact's rationales
//! sentences of them. Of a folder only questions with gold documents are kept; the others have nothing to be measured
//! by. Where answers alone are judged, a file of questions with answers will do.

mod answered;
mod beir;
mod excerpts;
mod read;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;

/// The questions of a set, in the order of their ids, and the texts of its documents.
#[derive(Debug, Clone)]
pub struct Questions {
    questions: Vec<Question>,
    /// Documents by id; none where the file is not text. Empty for a set whose gold is documents alone.
    texts: BTreeMap<String, Option<String>>,
}

/// A question and what answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// The question as it is asked.
    pub text: String,
    /// Ids of the documents that may answer; none: all.
    pub scope: Option<Vec<String>>,
    /// Right answers, any of them; none where the set has none.
    pub answers: Vec<String>,
    /// Ids of the gold documents, sorted; none in a set that knows answers alone.
    pub documents: Vec<String>,
    /// Spans of text that answer, of an excerpt set.
    pub evidence: Vec<Evidence>,
    /// Sentences that answer, where the set has them, by document.
    pub facts: Vec<Fact>,
}

/// A span of a document that helps to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Id of the document.
    pub document: String,
    /// Bytes of its text, at least one.
    pub span: Range<u64>,
    /// The text of the span.
    pub text: String,
}

/// The sentences of one document that help to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Id of the document.
    pub document: String,
    /// The sentences, each once, none blank.
    pub sentences: Vec<String>,
}

impl Questions {
    /// The questions in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Question> {
        self.questions.iter()
    }

    /// Number of questions, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a set without questions is not read")]
    pub fn len(&self) -> usize {
        self.questions.len()
    }

    /// Where the question stands in [`Questions::iter`].
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.questions.binary_search_by(|question| question.id.as_str().cmp(id)).ok()
    }

    /// The question at a position that is below [`Questions::len`].
    pub(crate) fn at(&self, position: usize) -> &Question {
        &self.questions[position]
    }

    /// The question with this id.
    pub fn of(&self, id: &str) -> Option<&Question> {
        self.position(id).map(|position| self.at(position))
    }

    /// The text of a document of an excerpt set; none for other documents and where the file is not UTF-8.
    pub fn text(&self, document: &str) -> Option<&str> {
        self.texts.get(document)?.as_deref()
    }

    /// Ids of the documents of an excerpt set; of a BEIR folder, whose corpus is not read, those of the gold documents.
    pub(crate) fn documents(&self) -> Vec<&str> {
        if self.texts.is_empty() {
            let mut gold: Vec<&str> = self.iter().flat_map(|q| &q.documents).map(String::as_str).collect();
            gold.sort_unstable();
            gold.dedup();
            gold
        } else {
            self.texts.keys().map(String::as_str).collect()
        }
    }
}

/// A field that holds one string or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Vec<String> {
    fn from(field: OneOrMany) -> Self {
        match field {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}

/// The answers that are not blank, of the first field that is there.
fn answers(fields: [Option<OneOrMany>; 2]) -> Vec<String> {
    let mut answers: Vec<String> = fields.into_iter().flatten().next().map_or_else(Vec::new, Vec::from);
    answers.retain(|answer| !answer.trim().is_empty());
    answers
}

#[cfg(test)]
mod tests;
