//! BEIR folders: questions whose gold is whole documents, and sentences of them where the set says which.
//!
//! `queries.jsonl` has `{_id, text, metadata: {answer | answers, scope}}`, `qrels/*.tsv` the judged documents.
//! Sentences are in `facts.jsonl` (`{query, doc, sentences}`), or, as SciFact has it, in `rationales.jsonl`
//! (`{query, doc, sentence_sets}`), whose numbers point into `sentences.json` (`{doc: sentences}`).
//! Cost: judgements, questions and facts in memory; `sentences.json` while it is read. The corpus is not read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::{Fact, OneOrMany, Question, Questions, answers};
use crate::error::{Error, Result};
use crate::lines::{self, Lines, read_bounded};
use crate::qrels::Qrels;

#[derive(Deserialize)]
struct Record {
    #[serde(rename = "_id")]
    id: String,
    text: String,
    metadata: Option<Metadata>,
    scope: Option<OneOrMany>,
}

#[derive(Deserialize, Default)]
struct Metadata {
    answer: Option<OneOrMany>,
    answers: Option<OneOrMany>,
    scope: Option<OneOrMany>,
}

#[derive(Deserialize)]
struct Sentences {
    query: String,
    doc: String,
    sentences: Vec<String>,
}

#[derive(Deserialize)]
struct Rationale {
    query: String,
    doc: String,
    sentence_sets: Vec<Vec<usize>>,
}

/// Sentences by query and document.
type Facts = HashMap<String, BTreeMap<String, Vec<String>>>;

/// Reads the questions of a folder with `queries.jsonl` and `qrels/`.
pub(super) fn read(path: &Path) -> Result<Questions> {
    let qrels = Qrels::read(path)?;
    let mut facts = facts(path)?;
    let mut lines = Lines::open(&path.join("queries.jsonl"))?;
    let path = lines.path().to_owned();
    let (mut questions, mut ids) = (Vec::new(), HashSet::new());
    while let Some((line, text)) = lines.next()? {
        let Record { id, text, metadata, scope }: Record = lines::record(&path, line, text)?;
        if !ids.insert(id.clone()) {
            return Err(Error::Duplicate { path, line, what: format!("query {id}") });
        }
        let documents = gold(&qrels, &id);
        if documents.is_empty() {
            continue;
        }
        let metadata = metadata.unwrap_or_default();
        let facts = facts.remove(&id).unwrap_or_default().into_iter();
        questions.push(Question {
            text,
            scope: metadata.scope.or(scope).map(Vec::from),
            answers: answers([metadata.answer, metadata.answers]),
            documents,
            evidence: Vec::new(),
            facts: facts.map(|(document, sentences)| Fact { document, sentences }).collect(),
            id,
        });
    }
    Ok(Questions { questions, texts: BTreeMap::new() })
}

/// The documents judged above 0, sorted.
fn gold(qrels: &Qrels, query: &str) -> Vec<String> {
    let judged = qrels.of(query).into_iter().flat_map(|judgements| judgements.iter());
    let mut gold: Vec<String> =
        judged.filter(|(_, grade)| *grade > 0).map(|(document, _)| document.to_owned()).collect();
    gold.sort_unstable();
    gold
}

/// The sentences that answer, if the folder says which.
fn facts(path: &Path) -> Result<Facts> {
    let mut facts = Facts::new();
    let (sentences, rationales) = (path.join("facts.jsonl"), path.join("rationales.jsonl"));
    if sentences.is_file() {
        let mut lines = Lines::open(&sentences)?;
        while let Some((line, text)) = lines.next()? {
            let Sentences { query, doc, sentences: found } = lines::record(&sentences, line, text)?;
            add(&mut facts, query, doc, found);
        }
    } else if rationales.is_file() {
        let texts = sentence_texts(&path.join("sentences.json"))?;
        let mut lines = Lines::open(&rationales)?;
        while let Some((line, text)) = lines.next()? {
            let rationale: Rationale = lines::record(&rationales, line, text)?;
            let found = sentences_of(&rationale, &texts).map_err(|reason| Error::Reference {
                path: rationales.clone(),
                line,
                question: rationale.query.clone(),
                document: rationale.doc.clone(),
                reason,
            })?;
            add(&mut facts, rationale.query, rationale.doc, found);
        }
    }
    Ok(facts)
}

/// The sentences of all sets of a rationale, in the order of the document; or the reason why one is not there.
fn sentences_of(
    rationale: &Rationale,
    texts: &HashMap<String, Vec<String>>,
) -> std::result::Result<Vec<String>, String> {
    let document = texts.get(&rationale.doc).ok_or("sentences.json does not have the document")?;
    let mut numbers: Vec<usize> = rationale.sentence_sets.iter().flatten().copied().collect();
    numbers.sort_unstable();
    let sentence = |number: usize| {
        document.get(number).cloned().ok_or_else(|| {
            format!("sentence {number} is not there, sentences.json has {} of the document", document.len())
        })
    };
    numbers.into_iter().map(sentence).collect()
}

fn sentence_texts(path: &Path) -> Result<HashMap<String, Vec<String>>> {
    serde_json::from_slice(&read_bounded(path)?).map_err(|error| Error::Malformed {
        path: path.to_owned(),
        line: error.line() as u64,
        column: error.column(),
        expected: "an object of documents and their sentences".into(),
        found: error.to_string(),
    })
}

/// Adds sentences, each once, none that is blank.
fn add(facts: &mut Facts, query: String, document: String, sentences: Vec<String>) {
    for sentence in sentences.into_iter().filter(|sentence| !sentence.trim().is_empty()) {
        let known = facts.entry(query.clone()).or_default().entry(document.clone()).or_default();
        if !known.contains(&sentence) {
            known.push(sentence);
        }
    }
}
