//! Metadata: what is known of a document besides its text, as typed values under dotted names.
//!
//! A map inside a map becomes `outer.inner`; a list of maps becomes a list under each inner name; a list inside a list
//! joins it. A string that is an ISO 8601 date is a date, whatever it stood in: JSON and HTML have no type for dates.
//! Null is no value.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::Value as Json;

use crate::budget::{Excess, FIELDS_MAX, NAME_BYTES_MAX, within};
use crate::date::Date;

/// The fields of a document, by name.
pub type Metadata = BTreeMap<String, Field>;

/// A document's value or values under one name.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// One value.
    One(Value),
    /// A list, perhaps empty, perhaps of several types.
    Many(Vec<Value>),
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number; finite.
    Float(f64),
    /// A string that is an ISO 8601 date, alone or with a time.
    Date(Date),
    /// Any other string.
    Text(String),
}

impl Field {
    /// The values, one by one.
    pub fn values(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

impl From<String> for Value {
    /// A date if it is written like one.
    fn from(text: String) -> Self {
        match Date::parse(&text) {
            Some(date) => Self::Date(date),
            None => Self::Text(text),
        }
    }
}

impl Value {
    /// A number, true or false, or a string; `None` for null, maps and lists.
    fn from_json(json: &Json) -> Option<Self> {
        match json {
            Json::Null | Json::Object(_) | Json::Array(_) => None,
            Json::Bool(value) => Some(Self::Boolean(*value)),
            Json::String(text) => Some(text.clone().into()),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Some(Self::Integer(integer)),
                (None, Some(float)) if float.is_finite() => Some(Self::Float(float)),
                _ => Some(Self::Text(number.to_string())),
            },
        }
    }
}

/// Adds what stands under a name of a JSON object.
///
/// # Errors
/// A field's name is longer, or there are more fields, than a document may have.
pub(crate) fn add_json(metadata: &mut Metadata, name: &str, json: &Json) -> Result<(), Excess> {
    within("bytes in the name of a field", name.len() as u64, NAME_BYTES_MAX)?;
    add(metadata, name, json, Place::Alone)
}

/// Adds a value under a name; a second one makes a list.
pub(crate) fn add_value(metadata: &mut Metadata, name: &str, value: Value, place: Place) {
    match (metadata.entry(name.to_owned()), place) {
        (Entry::Vacant(entry), Place::Alone) => drop(entry.insert(Field::One(value))),
        (Entry::Vacant(entry), Place::InList) => drop(entry.insert(Field::Many(vec![value]))),
        (Entry::Occupied(entry), _) => match entry.into_mut() {
            Field::Many(values) => values.push(value),
            field @ Field::One(_) => *field = Field::Many([field.values(), &[value]].concat()),
        },
    }
}

/// The place of a value: by itself or in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// By itself.
    Alone,
    /// Beside others, even if there are none.
    InList,
}

fn add(metadata: &mut Metadata, name: &str, json: &Json, place: Place) -> Result<(), Excess> {
    let inside = |(inner, json): (&String, &Json)| {
        // Before the name is made: a long one over many is the square of what was read.
        within("bytes in the name of a field", (name.len() + 1 + inner.len()) as u64, NAME_BYTES_MAX)?;
        add(metadata, &format!("{name}.{inner}"), json, place)
    };
    match json {
        Json::Object(fields) => return fields.iter().try_for_each(inside),
        Json::Array(items) if items.is_empty() => {
            metadata.entry(name.to_owned()).or_insert_with(|| Field::Many(Vec::new()));
        }
        Json::Array(items) => return items.iter().try_for_each(|item| add(metadata, name, item, Place::InList)),
        scalar => {
            if let Some(value) = Value::from_json(scalar) {
                add_value(metadata, name, value, place);
            }
        }
    }
    within("fields", metadata.len() as u64, FIELDS_MAX)
}

impl fmt::Display for Field {
    /// As a reader would write it: a list in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(value) => value.fmt(f),
            Self::Many(values) => {
                f.write_str("[")?;
                for (n, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if n == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Date(date) => date.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(value) => value.serialize(serializer),
            Self::Many(values) => values.serialize(serializer),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Date(date) => serializer.serialize_str(date.as_str()),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Array(items) => {
                let values: Result<_, _> = items.into_iter().map(Value::deserialize).collect();
                values.map(Self::Many).map_err(D::Error::custom)
            }
            one => Value::deserialize(one).map(Self::One).map_err(D::Error::custom),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Self::from_json(&json).ok_or_else(|| D::Error::custom(format!("{json} is no value of metadata")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        let mut metadata = Metadata::new();
        let json: serde_json::Map<String, Json> = serde_json::from_str(json).unwrap();
        json.iter().for_each(|(name, json)| add_json(&mut metadata, name, json).unwrap());
        let written = serde_json::to_string(&metadata).unwrap();
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_str::<Metadata>(&written).unwrap(), metadata);
    }

    #[test]
    fn types_are_those_of_json_and_dates() {
        check(
            r#"{"b": true, "i": -3, "f": 2.5, "d": "2020-05-17", "t": "May", "n": null, "e": ""}"#,
            r#"{"b":true,"d":"2020-05-17","e":"","f":2.5,"i":-3,"t":"May"}"#,
        );
        let date: Field = serde_json::from_str("\"2020-05-17T10:00Z\"").unwrap();
        assert!(matches!(date, Field::One(Value::Date(_))));
        assert_eq!(
            serde_json::from_str::<Field>("18446744073709551615").unwrap().values(),
            [Value::Float(2f64.powi(64))]
        );
    }

    #[test]
    fn maps_and_lists_are_flattened() {
        check(
            r#"{"a": {"b": 1, "c": {"d": "x"}}, "l": [1, "x", [2, null]], "none": []}"#,
            r#"{"a.b":1,"a.c.d":"x","l":[1,"x",2],"none":[]}"#,
        );
        check(r#"{"by": [{"name": "X"}, {"name": "Y", "born": 1990}]}"#, r#"{"by.born":[1990],"by.name":["X","Y"]}"#);
        check(r#"{"a.b": 1, "a": {"b": 2}}"#, r#"{"a.b":[2,1]}"#);
    }
}
