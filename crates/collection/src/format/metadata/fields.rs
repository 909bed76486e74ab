//! The fields of a document: those that every document has, and its metadata.
//!
//! | field | values |
//! |---|---|
//! | `id` | its public id |
//! | `root` | the label of its root: the first part of its file's name in the collection |
//! | `path` | the rest of that name: the file's path inside its root; the label itself where the root is a file |
//! | `type` | its format, `markdown`, `text`, `html`, `jsonl` or `csv`; the extension of its file; `md` for Markdown |
//! | `title` | its title, if it has one |
//!
//! What the metadata has under one of these names is the field `meta.NAME`.

use std::cmp::Ordering;

use cento_corpus::{Field, Format, Metadata, Value};
use serde_json::{Map, Value as Json, json};

use super::layout::FieldType;

/// The fields of every document; all are strings.
pub const BUILT_IN: [&str; 5] = ["id", "path", "root", "title", "type"];

/// The sources of a document's fields.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// Public id.
    pub id: &'a str,
    /// File it came from: root label and relative path.
    pub origin: &'a str,
    /// Title; may be empty.
    pub title: &'a str,
    /// Format it was read as.
    pub format: Format,
    /// Metadata of its reader.
    pub metadata: &'a Metadata,
}

/// The types of a document, the most particular first: the ending of its file in lower case, the short
/// name of the format it was read as, and its name. The values of the field `type`.
pub fn types(origin: &str, format: Format) -> Vec<String> {
    let name = origin.rsplit('/').next().unwrap_or(origin);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    let mut types = vec![extension, format.to_string(), format.name().to_owned()];
    types.retain(|name| !name.is_empty());
    types
}

impl Described<'_> {
    /// Name and value of every field; a field with several values comes several times.
    pub(crate) fn fields(&self) -> Vec<(String, Key)> {
        let (root, path) = self.origin.split_once('/').unwrap_or((self.origin, self.origin));
        let types = types(path, self.format);
        let mut built_in = vec![("id", self.id), ("root", root), ("path", path)];
        built_in.extend(types.iter().rev().map(|name| ("type", name.as_str())));
        built_in.push(("title", self.title));
        built_in.retain(|(_, value)| !value.is_empty());
        let built_in = built_in.into_iter().map(|(name, value)| (name.to_owned(), Key::String(value.to_owned())));
        let metadata = self.metadata.iter().flat_map(|(name, field)| {
            let name = if BUILT_IN.contains(&name.as_str()) { format!("meta.{name}") } else { name.clone() };
            field.values().iter().map(move |value| (name.clone(), Key::from(value)))
        });
        built_in.chain(metadata).collect()
    }
}

/// A value in the order of its column; types follow each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Boolean(bool),
    Integer(i64),
    Float(Finite),
    Date(i64),
    String(String),
}

/// A finite number; there is one zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finite(pub(crate) f64);

impl Key {
    pub(crate) fn kind(&self) -> FieldType {
        match self {
            Self::Boolean(_) => FieldType::Boolean,
            Self::Integer(_) => FieldType::Integer,
            Self::Float(_) => FieldType::Float,
            Self::Date(_) => FieldType::Date,
            Self::String(_) => FieldType::String,
        }
    }
}

impl Key {
    /// Bytes that it has beside its place in a column.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Boolean(_) | Self::Integer(_) | Self::Float(_) | Self::Date(_) => 0,
        }
    }
}

impl From<&Value> for Key {
    fn from(value: &Value) -> Self {
        match value {
            Value::Boolean(value) => Self::Boolean(*value),
            Value::Integer(value) => Self::Integer(*value),
            Value::Float(value) => Self::Float(Finite(value + 0.0)), // -0 + 0 is 0
            Value::Date(date) => Self::Date(date.start()),
            Value::Text(text) => Self::String(text.clone()),
        }
    }
}

impl PartialEq for Finite {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Finite {}

impl PartialOrd for Finite {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Finite {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Key of a float in stored metadata, whose digits are a string: what reads JSON may be off by a unit in the last
/// place.
const FLOAT: &str = "float";

/// Metadata as it is stored with a document: JSON from which [`read_metadata`] makes the same values to the last bit.
pub fn write_metadata(metadata: &Metadata) -> String {
    let value = |value: &Value| match value {
        Value::Float(float) => json!({ FLOAT: format!("{float:?}") }),
        other => json!(other),
    };
    let field = |field: &Field| match field {
        Field::One(one) => value(one),
        Field::Many(many) => many.iter().map(value).collect(),
    };
    metadata.iter().map(|(name, of_name)| (name.clone(), field(of_name))).collect::<Json>().to_string()
}

/// Reads what [`write_metadata`] wrote; otherwise says what it met.
///
/// # Errors
/// What stands there instead, in words.
pub fn read_metadata(stored: &str) -> Result<Metadata, String> {
    let value = |json: Json| match json.get(FLOAT) {
        Some(float) => {
            let float = float.as_str().and_then(|digits| digits.parse::<f64>().ok()).filter(|float| float.is_finite());
            float.map(Value::Float).ok_or_else(|| format!("{json} is no number"))
        }
        None => serde_json::from_value(json).map_err(|error| error.to_string()),
    };
    let fields: Map<String, Json> = serde_json::from_str(stored).map_err(|error| error.to_string())?;
    let field = |(name, json)| {
        Ok((
            name,
            match json {
                Json::Array(items) => Field::Many(items.into_iter().map(value).collect::<Result<_, String>>()?),
                one => Field::One(value(one)?),
            },
        ))
    };
    fields.into_iter().map(field).collect()
}
