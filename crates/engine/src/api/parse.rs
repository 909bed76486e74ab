//! Reading a request: strictly, so that a misspelt field is an error that names the one that was meant.

use std::fmt;
use std::str::FromStr;

use cento_lexical::Language;
use schemars::JsonSchema;
use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Characters of a refused value that are said again.
const SHOWN: usize = 100;

/// The most letters in which a field may differ from the one that was meant.
const TYPOS_MAX: usize = 3;

/// The likeness of words (Jaro) from which the command line names a flag for another: `budget_tokens` means `budget`.
const LIKENESS_MIN: f64 = 0.7;

/// A request that a door takes.
pub trait Request: DeserializeOwned + JsonSchema {
    /// Holds every value against its limits.
    ///
    /// # Errors
    /// [`Error::Setting`] with the field, its value and the range.
    fn check(&self) -> Result<()>;
}

/// Reads a request from JSON and checks its limits.
///
/// # Errors
/// [`Error::UnknownField`] with the nearest field there is; [`Error::Request`] with the path of a value of another
/// type; those of [`Request::check`].
pub fn parse<T: Request>(json: &[u8]) -> Result<T> {
    if !json.trim_ascii_start().starts_with(b"{") {
        // Serde would read a list as the fields in their order.
        return Err(Error::Request { field: ".".to_owned(), reason: "expected a JSON object".to_owned() });
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let request: T = serde_path_to_error::deserialize(&mut reader).map_err(refused)?;
    reader.end().map_err(|error| Error::Request { field: ".".to_owned(), reason: error.to_string() })?;
    request.check()?;
    Ok(request)
}

/// A value that a request writes as text; none where the request has none.
///
/// # Errors
/// [`Error::Setting`] with the values that are known.
pub(super) fn value<T: FromStr>(setting: &'static str, text: Option<&str>, known: &str) -> Result<Option<T>> {
    let read = |text: &str| text.parse().map_err(|_| refused_value(setting, text, &format!("is none of {known}")));
    text.map(read).transpose()
}

/// The names of languages.
pub(super) fn languages() -> String {
    Language::ALL.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The refusal of a value, of which the beginning alone is said again.
pub(super) fn refused_value(setting: &'static str, value: &str, reason: &str) -> Error {
    Error::Setting { setting, value: value.chars().take(SHOWN).collect(), reason: reason.to_owned() }
}

fn refused(error: serde_path_to_error::Error<serde_json::Error>) -> Error {
    let (path, reason) = (error.path().to_string(), error.inner().to_string());
    match unknown(&reason) {
        Some((field, known)) => Error::UnknownField { nearest: nearest(field, &known), field: field.to_owned() },
        None => Error::Request { field: path, reason },
    }
}

/// The unknown field that serde found, and the fields it knows there.
fn unknown(reason: &str) -> Option<(&str, Vec<&str>)> {
    let mut quoted = reason.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let field = quoted.next()?;
    Some((field, quoted.collect()))
}

/// The field that was meant by one that there is none of: the one a few letters away, else the likeliest.
#[must_use]
pub fn nearest(field: &str, known: &[&str]) -> Option<String> {
    let distance = |other: &str| strsim::damerau_levenshtein(field, other);
    let near = known.iter().min_by_key(|other| distance(other))?;
    if distance(near) <= TYPOS_MAX.min(field.len() / 2) {
        return Some((*near).to_owned());
    }
    let like = known.iter().map(|other| (strsim::jaro(field, other), *other));
    let (likeness, like) = like.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > LIKENESS_MIN).then(|| like.to_owned())
}

/// Reads an object in which no key is there twice, however deep: of two values one would be lost without a word.
pub(super) fn unrepeated<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Map<String, Value>, D::Error> {
    deserializer.deserialize_map(Unrepeated).and_then(|value| match value {
        Value::Object(object) => Ok(object),
        _ => Err(D::Error::custom("expected an object")),
    })
}

/// Any JSON, its objects without repeated keys.
struct Unrepeated;

impl<'de> DeserializeSeed<'de> for Unrepeated {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unrepeated {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} is there twice")));
            }
            object.insert(key, entries.next_value_seed(Self)?);
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Value, E> {
        Ok(value.into())
    }
}
