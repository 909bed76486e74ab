//! A thousand filters against a reading of the documents one by one.

use cento_corpus::{Field, Metadata, Value};
use proptest::prelude::*;

use super::super::{Filter, Schema};
use super::columns;

/// A filter as a tree, for the naive reading.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Compare(&'static str, &'static str, String),
    In(&'static str, bool, Vec<String>),
    StartsWith(&'static str, String),
    Exists(&'static str),
    Missing(&'static str),
}

impl Expression {
    pub(super) fn text(&self) -> String {
        let join = |nodes: &[Self], by: &str| {
            nodes.iter().map(|node| format!("({})", node.text())).collect::<Vec<_>>().join(by)
        };
        match self {
            Self::And(nodes) => join(nodes, " and "),
            Self::Or(nodes) => join(nodes, " OR "),
            Self::Not(node) => format!("not ({})", node.text()),
            Self::Compare(field, mark, literal) => format!("{field}{mark}{literal}"),
            Self::In(field, true, literals) => format!("{field} in ({})", literals.join(", ")),
            Self::In(field, false, literals) => format!("{field} Not In({})", literals.join(",")),
            Self::StartsWith(field, prefix) => format!("{field} starts with {prefix}"),
            Self::Exists(field) => format!("{field} exists"),
            Self::Missing(field) => format!("{field} is missing"),
        }
    }

    pub(super) fn admits(&self, document: &Metadata) -> bool {
        let values = |field: &str| document.get(field).map_or(&[][..], Field::values);
        let any = |field: &str, holds: &dyn Fn(&Value) -> bool| values(field).iter().any(holds);
        match self {
            Self::And(nodes) => nodes.iter().all(|node| node.admits(document)),
            Self::Or(nodes) => nodes.iter().any(|node| node.admits(document)),
            Self::Not(node) => !node.admits(document),
            Self::Compare(field, "!=", literal) => {
                !values(field).is_empty() && !any(field, &|value| stands(value, literal) == Some(0))
            }
            Self::Compare(field, mark, literal) => any(field, &|value| {
                stands(value, literal).is_some_and(|stands| match *mark {
                    "=" => stands == 0,
                    "<" => stands < 0,
                    "<=" => stands <= 0,
                    ">" => stands > 0,
                    _ => stands >= 0,
                })
            }),
            Self::In(field, is_in, literals) => {
                let named = |value: &Value| literals.iter().any(|literal| stands(value, literal) == Some(0));
                !values(field).is_empty() && any(field, &named) == *is_in
            }
            Self::StartsWith(field, prefix) => {
                let prefix = prefix.trim_matches('"');
                any(field, &|value| matches!(value, Value::Text(text) if text.starts_with(prefix)))
            }
            Self::Exists(field) => !values(field).is_empty(),
            Self::Missing(field) => values(field).is_empty(),
        }
    }
}

/// -1, 0 or 1: how a value stands to a literal as written. Dates are compared letter by letter, as far as the literal
/// goes.
fn stands(value: &Value, literal: &str) -> Option<i32> {
    let sign = |ordering: std::cmp::Ordering| ordering as i32;
    let bare = literal.trim_matches('"');
    let is_quoted = bare.len() < literal.len();
    match value {
        Value::Boolean(value) => literal.parse().ok().map(|literal: bool| sign(value.cmp(&literal))),
        Value::Integer(value) => literal.parse().ok().map(|literal: f64| sign((*value as f64).total_cmp(&literal))),
        Value::Float(value) => literal.parse().ok().map(|literal: f64| sign(value.total_cmp(&literal))),
        Value::Date(date) if bare.len() >= 10 && bare.starts_with('2') => {
            let written = format!("{date}T00:00:00");
            Some(sign(written[..bare.len()].cmp(bare)))
        }
        Value::Date(_) => None,
        Value::Text(text) => is_quoted.then(|| sign(text.as_str().cmp(bare))),
    }
}

/// A field and the literals that it has and is compared with.
pub(super) type Compared = (&'static str, &'static [&'static str]);

const FIELDS: [Compared; 6] = [
    ("year", &["2018", "2019", "2019.5", "2020", "2021.0", "\"old\""]),
    ("tags", &["\"a\"", "\"ab\"", "\"b\"", "\"\"", "1"]),
    ("date", &["2020-01-01", "2020-01-02", "\"2020-01-02\"", "2020-01-02T10:00:00", "2021-12-31"]),
    ("draft", &["true", "false"]),
    ("by.name", &["\"X\"", "\"x\"", "\"Yz\""]),
    ("score", &["-1.5", "0", "0.25", "7"]),
];

pub(super) fn value(literal: &str) -> Value {
    serde_json::from_str(literal).unwrap_or_else(|_| Value::from(literal.to_owned()))
}

fn document() -> impl Strategy<Value = Metadata> {
    let field = |(name, literals): (&'static str, &'static [&'static str])| {
        let values = prop::collection::vec(prop::sample::select(literals), 0..4);
        values.prop_map(move |values| {
            let mut values: Vec<Value> = values.into_iter().map(value).collect();
            let field = match values.len() {
                1 => Field::One(values.remove(0)),
                _ => Field::Many(values),
            };
            (name.to_owned(), field)
        })
    };
    FIELDS.map(field).to_vec().prop_map(|fields| fields.into_iter().collect())
}

/// Filters on some fields; `prefixed` is one of strings.
pub(super) fn expression(fields: &'static [Compared], prefixed: &'static str) -> impl Strategy<Value = Expression> {
    let condition = prop::sample::select(fields).prop_flat_map(move |(field, literals)| {
        let literal = || prop::sample::select(literals).prop_map(str::to_owned);
        let marks = prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
        prop_oneof![
            4 => (marks, literal()).prop_map(move |(mark, literal)| Expression::Compare(field, mark, literal)),
            2 => (any::<bool>(), prop::collection::vec(literal(), 1..4))
                .prop_map(move |(is_in, literals)| Expression::In(field, is_in, literals)),
            1 => prop::sample::select(vec!["\"\"", "\"a\"", "\"o\"", "\"X\""])
                .prop_map(move |prefix| Expression::StartsWith(prefixed, prefix.to_owned())),
            1 => Just(Expression::Exists(field)),
            1 => Just(Expression::Missing(field)),
        ]
    });
    condition.prop_recursive(4, 16, 3, |inner| {
        let nodes = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            nodes().prop_map(Expression::And),
            nodes().prop_map(Expression::Or),
            inner.clone().prop_map(|node| Expression::Not(Box::new(node))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]
    /// Fifty collections of two segments, twenty filters each.
    #[test]
    fn the_documents_admitted_are_those_a_naive_reading_admits(
        documents in prop::collection::vec(document(), 0..40),
        expressions in prop::collection::vec(expression(&FIELDS, "tags"), 20),
    ) {
        // One document has every field with every type, so that every filter can be asked.
        let all = |literals: &[&str]| Field::Many(literals.iter().map(|literal| value(literal)).collect());
        let full: Metadata = FIELDS.iter().map(|(name, literals)| ((*name).to_owned(), all(literals))).collect();
        let second = documents.len() / 2;
        let segments = [[&[full], &documents[..second]].concat(), documents[second..].to_vec()];
        let opened = segments.each_ref().map(|documents| columns(documents));
        let schema = Schema::of(opened.iter().map(|(_, columns)| columns)).unwrap();
        for expression in &expressions {
            let text = expression.text();
            let filter = Filter::parse(&text).unwrap();
            prop_assert!(schema.check(&filter).is_ok(), "{}", text);
            for (documents, (_, columns)) in segments.iter().zip(&opened) {
                let expected: Vec<u32> =
                    (0..documents.len() as u32).filter(|&n| expression.admits(&documents[n as usize])).collect();
                let found: Vec<u32> = filter.documents(columns).unwrap().iter().collect();
                prop_assert_eq!(found, expected, "{}", text);
            }
        }
    }
}
