//! Topics: the queries of an evaluation, each with its id.
//!
//! Read from JSONL (`{"_id": …, "text": …}` and the usual other names of the two), MS MARCO's `id <tab> text`, or a
//! BEIR folder. A topic's `scope` names the documents that may answer it, where the set has such a restriction.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::lines::{self, Fault, Lines};
use crate::qrels;
use crate::questions::{Question, Questions};

/// Keys of a topic's id; the first that is there counts.
const ID_KEYS: [&str; 4] = ["_id", "id", "qid", "query_id"];
/// Keys of a topic's text; the first that is there counts.
const TEXT_KEYS: [&str; 4] = ["text", "query", "question", "title"];

/// A query with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Not empty and without blanks, so that it can be a column of a run file.
    pub id: String,
    /// The question.
    pub text: String,
    /// Ids of the documents that may answer; none means all.
    pub scope: Option<Vec<String>>,
}

/// Reads the topics of a file, of a BEIR folder (`queries.jsonl`, kept to what any `qrels/*.tsv` judges), of a folder
/// of questions with excerpts (`questions.jsonl`, see [`crate::questions`]), or of `-`, stdin.
///
/// The order is the file's. An id that is a number is taken as its digits.
///
/// # Errors
/// [`Error::Malformed`] when a line has no id or no text or an id with a blank, [`Error::Duplicate`] when an id comes
/// twice, [`Error::Empty`] when no topic is left.
pub fn read(path: &Path) -> Result<Vec<Topic>> {
    let topics = if path.join("questions.jsonl").is_file() {
        Questions::read(path)?.topics()
    } else if path.is_dir() {
        let mut topics = parse(Lines::open(&path.join("queries.jsonl"))?)?;
        if let Some(judged) = judged(&path.join("qrels"))? {
            topics.retain(|topic| judged.contains(&topic.id));
        }
        topics
    } else {
        parse(Lines::open(path)?)?
    };
    if topics.is_empty() { Err(Error::Empty { path: path.to_owned(), what: "topics" }) } else { Ok(topics) }
}

impl Questions {
    /// The questions as topics to run, in the order of their ids.
    pub fn topics(&self) -> Vec<Topic> {
        let topic = |q: &Question| Topic { id: q.id.clone(), text: q.text.clone(), scope: q.scope.clone() };
        self.iter().map(topic).collect()
    }
}

fn parse(mut lines: Lines) -> Result<Vec<Topic>> {
    let path = lines.path().to_owned();
    let (mut topics, mut seen) = (Vec::new(), HashSet::new());
    let mut json = None;
    while let Some((number, line)) = lines.next()? {
        let topic = if *json.get_or_insert_with(|| line.trim_start().starts_with('{')) {
            from_object(lines::object(&path, number, line)?)
        } else {
            from_columns(line)
        };
        let topic = topic.and_then(with_usable_id).and_then(with_text);
        let topic: Topic = topic.map_err(|fault| lines.fault(number, fault))?;
        if !seen.insert(topic.id.clone()) {
            return Err(Error::Duplicate { path, line: number, what: format!("topic {:?}", topic.id) });
        }
        topics.push(topic);
    }
    Ok(topics)
}

/// A topic that asks something.
fn with_text(topic: Topic) -> Result<Topic, Fault> {
    if topic.text.trim().is_empty() {
        Err(Fault::new(1, "a text that asks something", format!("topic {:?} with an empty one", topic.id)))
    } else {
        Ok(topic)
    }
}

fn from_object(object: Map<String, Value>) -> Result<Topic, Fault> {
    let field = |keys: &[&str]| match keys.iter().find_map(|key| object.get(*key)) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(other) => Err(Fault::new(1, format!("a string as {}", one_of(keys)), other.to_string())),
        None => {
            let names: Vec<_> = object.keys().map(|key| format!("`{key}`")).collect();
            Err(Fault::new(1, format!("a key {}", one_of(keys)), format!("only {}", names.join(", "))))
        }
    };
    let scope = object.get("scope").or_else(|| object.get("metadata")?.get("scope"));
    Ok(Topic { id: field(&ID_KEYS)?, text: field(&TEXT_KEYS)?, scope: scope.map(documents).transpose()?.flatten() })
}

/// The documents of a scope: a string or an array of strings; `null` is no scope.
fn documents(scope: &Value) -> Result<Option<Vec<String>>, Fault> {
    let documents = match scope {
        Value::Null => return Ok(None),
        Value::String(document) => Some(vec![document.clone()]),
        Value::Array(documents) => documents.iter().map(|document| document.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    match documents {
        Some(documents) if !documents.is_empty() => Ok(Some(documents)),
        _ => Err(Fault::new(1, "`scope` as a document id or a list of them", scope.to_string())),
    }
}

fn from_columns(line: &str) -> Result<Topic, Fault> {
    match line.split_once('\t') {
        Some((id, text)) => Ok(Topic { id: id.to_owned(), text: text.to_owned(), scope: None }),
        None => Err(Fault::new(1, "a JSON object, or `id <tab> text`", "a line without a tab")),
    }
}

fn with_usable_id(topic: Topic) -> Result<Topic, Fault> {
    if topic.id.is_empty() || topic.id.contains(char::is_whitespace) {
        let expected = "an id that can be a column of a run file: not empty, no blanks";
        Err(Fault::new(1, expected, format!("{:?}", topic.id)))
    } else {
        Ok(topic)
    }
}

fn one_of(keys: &[&str]) -> String {
    let names: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    names.join(" or ")
}

/// Ids of the queries that any file of judgements in the folder has; none when the folder has no such file.
fn judged(folder: &Path) -> Result<Option<BTreeSet<String>>> {
    let tables = qrels::tables(folder)?;
    let mut ids = BTreeSet::new();
    for path in &tables {
        ids.extend(qrels::Qrels::read(path)?.iter().map(|(query, _)| query.to_owned()));
    }
    Ok((!tables.is_empty()).then_some(ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Topic>> {
        parse(Lines::new(std::io::Cursor::new(text.to_owned()), Path::new("topics")))
    }

    #[track_caller]
    fn fails(text: &str, parts: &[&str]) {
        let told = parsed(text).unwrap_err().to_string();
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }

    fn topic(id: &str, text: &str) -> Topic {
        Topic { id: id.to_owned(), text: text.to_owned(), scope: None }
    }

    #[test]
    fn topics_take_the_usual_keys_and_the_first_of_two() {
        let text = "\n{\"qid\": 7, \"question\": \"moon\"}\n\n{\"id\":\"b\",\"_id\":\"a\",\"title\":\"t\",\"query\":\"sun\"}\n";
        assert_eq!(parsed(text).unwrap(), [topic("7", "moon"), topic("a", "sun")]);
    }

    #[test]
    fn tab_separated_topics_keep_their_order_and_further_tabs() {
        assert_eq!(parsed("9\tx y\r\n1\ta\tb\n").unwrap(), [topic("9", "x y"), topic("1", "a\tb")]);
    }

    #[test]
    fn a_scope_is_one_document_or_several() {
        let topics = parsed(
            "{\"id\":1,\"text\":\"a\",\"scope\":\"d\"}\n{\"id\":2,\"text\":\"a\",\"metadata\":{\"scope\":[\"d\",\"e\"]}}\n{\"id\":3,\"text\":\"a\",\"scope\":null}",
        );
        let scopes: Vec<_> = topics.unwrap().into_iter().map(|topic| topic.scope).collect();
        assert_eq!(scopes, [Some(vec!["d".to_owned()]), Some(vec!["d".to_owned(), "e".to_owned()]), None]);
        fails("{\"id\":1,\"text\":\"a\",\"scope\":[1]}", &["`scope`", "[1]"]);
        fails("{\"id\":1,\"text\":\"a\",\"scope\":[]}", &["`scope`"]);
    }

    #[test]
    fn an_error_names_the_line_and_what_would_do() {
        fails("{\"_id\":\"a\",\"text\":\"x\"}\n{\"_id\":\"a\",\"text\":\"y\"}", &["line 2", "\"a\"", "twice"]);
        fails("{\"_id\":\"a b\",\"text\":\"x\"}", &["line 1", "\"a b\"", "no blanks"]);
        fails("\tx", &["not empty"]);
        fails("{\"key\":1,\"text\":\"x\"}", &["`_id` or `id` or `qid` or `query_id`", "`key`"]);
        fails("{\"id\":1,\"text\":[]}", &["a string as `text`", "[]"]);
        fails("{\"id\":1}", &["`text` or `query` or `question` or `title`"]);
        fails("no tab", &["`id <tab> text`"]);
        fails("{\"id\":1,", &["a JSON object"]);
    }

    #[test]
    fn a_beir_folder_has_the_topics_that_any_of_its_qrels_judges() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let queries = ["q1", "q2", "q3"].map(|id| format!("{{\"_id\":\"{id}\",\"text\":\"x\"}}\n"));
        fs_err::write(at("queries.jsonl"), queries.concat()).unwrap();
        let ids = || read(folder.path()).map(|topics| topics.into_iter().map(|topic| topic.id).collect::<Vec<_>>());
        assert_eq!(ids().unwrap(), ["q1", "q2", "q3"]);
        fs_err::create_dir(at("qrels")).unwrap();
        assert_eq!(ids().unwrap().len(), 3);
        fs_err::write(at("qrels/dev.tsv"), "query-id\tcorpus-id\tscore\nq3\td\t1\n").unwrap();
        fs_err::write(at("qrels/test.tsv"), "query-id\tcorpus-id\tscore\nq1\td\t0\n").unwrap();
        assert_eq!(ids().unwrap(), ["q1", "q3"]);
        fs_err::write(at("qrels/dev.tsv"), "query-id\tcorpus-id\tscore\nq9\td\t1\n").unwrap();
        fs_err::write(at("qrels/test.tsv"), "query-id\tcorpus-id\tscore\nq9\td\t0\n").unwrap();
        assert!(matches!(ids(), Err(Error::Empty { .. })));
    }
}
