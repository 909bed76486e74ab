//! Predictions of mteb: a run as JSON.
//!
//! Source: mteb writes `{"mteb_model_meta": …, subset: {split: {query: {document: score}}}}`; BEIR's results are the
//! innermost two levels alone.
//! Cost: the whole file and its rankings in memory.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Hit, Ranking, column};
use crate::error::{Error, Result};
use crate::lines::Lines;

/// The key that says which model wrote the file.
const META: &str = "mteb_model_meta";
const EXPECTED: &str = "JSON as `{query: {document: score}}`, or mteb's `{subset: {split: {query: {document: score}}}}`, with numbers as scores";

/// Reads the rankings of a file whose first lines are `text`, in the order of the file.
pub(super) fn read(mut lines: Lines, mut text: String) -> Result<Vec<Ranking>> {
    let mut n_lines = 1 + text.matches('\n').count() as u64;
    while let Some((number, line)) = lines.next()? {
        text.extend((n_lines..number).map(|_| '\n'));
        text.push_str(line);
        n_lines = number;
    }
    let queries = single_split(&lines, parse(&lines, &text)?)?;
    drop(text);
    let malformed = |found: String| lines.malformed(1, 1, EXPECTED, found);
    let mut rankings = Vec::with_capacity(queries.len());
    for (query, node) in queries {
        let Node::Object(documents) = node else { return Err(malformed(format!("no object for {query:?}"))) };
        let hit = |(document, node): (String, Node)| match node {
            Node::Number(score) => Ok(Hit::new(column(&document), score)),
            _ => Err(malformed(format!("no number as the score of {document:?} for {query:?}"))),
        };
        let hits = documents.into_iter().map(hit).collect::<Result<_>>()?;
        rankings.push(Ranking::new(column(&query), hits));
    }
    if rankings.is_empty() {
        Err(Error::Empty { path: lines.path().to_owned(), what: "results" })
    } else {
        Ok(rankings)
    }
}

type Object = Vec<(String, Node)>;

/// A JSON value as far as it can be part of a run; objects keep their order.
enum Node {
    Number(f64),
    Object(Object),
    Other,
}

/// The level of the queries: the root, or what the only split of the only subset holds.
fn single_split(lines: &Lines, mut root: Object) -> Result<Object> {
    root.retain(|(key, _)| key != META);
    let below = |object: &Object| object.iter().any(|(_, node)| matches!(node, Node::Object(_)));
    let nested = root.iter().any(|(_, node)| matches!(node, Node::Object(object) if below(object)));
    if !nested {
        return Ok(root);
    }
    let (mut names, mut found) = (Vec::new(), Vec::new());
    for (subset, node) in root {
        let Node::Object(splits) = node else {
            return Err(lines.malformed(1, 1, EXPECTED, format!("no object for {subset:?}")));
        };
        for (split, node) in splits {
            names.push(format!("{subset}/{split}"));
            found.push(node);
        }
    }
    match (found.pop(), found.is_empty()) {
        (Some(Node::Object(queries)), true) => Ok(queries),
        (Some(_), false) => Err(Error::Several {
            path: lines.path().to_owned(),
            what: "subsets or splits",
            found: names.join(", "),
            way_out: "one file may hold one run: keep one of them",
        }),
        _ => Err(lines.malformed(1, 1, EXPECTED, format!("no object for {:?}", names.concat()))),
    }
}

fn parse(lines: &Lines, text: &str) -> Result<Object> {
    let twice = RefCell::new(None);
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = json.deserialize_map(Reader { twice: &twice }).and_then(|node| json.end().map(|()| node));
    match parsed {
        Ok(Node::Object(object)) => Ok(object),
        Ok(_) => Err(lines.malformed(1, 1, EXPECTED, "another value")),
        Err(error) => {
            let line = error.line() as u64;
            if let Some(key) = twice.into_inner() {
                return Err(Error::Duplicate {
                    path: lines.path().to_owned(),
                    line,
                    what: format!("key {key:?} of an object"),
                });
            }
            let told = error.to_string();
            let told = told.rsplit_once(" at line ").map_or(told.as_str(), |(what, _)| what);
            let before =
                text.lines().nth(error.line().max(1) - 1).and_then(|line| line.get(..error.column().max(1) - 1));
            Err(lines.malformed(line, before.map_or(1, |before| before.chars().count() + 1), EXPECTED, told))
        }
    }
}

/// Reads any value; a key that an object has twice is remembered and is an error.
#[derive(Clone, Copy)]
struct Reader<'a> {
    twice: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Node, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let (mut object, mut keys) = (Vec::new(), HashSet::new());
        while let Some(key) = map.next_key::<String>()? {
            if !keys.insert(key.clone()) {
                *self.twice.borrow_mut() = Some(key);
                return Err(de::Error::custom("a key twice"));
            }
            object.push((key, map.next_value_seed(self)?));
        }
        Ok(Node::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Node, A::Error> {
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Node::Other)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }
}
