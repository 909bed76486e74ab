//! Documents that come as their parts and from no file: what a program hands over.

use std::path::Path;

use serde_json::{Map, Value};

use super::{jsonl, parse};
use crate::anchor::Anchor;
use crate::budget::{Excess, NAME_BYTES_MAX, VALUES_MAX, within};
use crate::document::Document;
use crate::error::Result;
use crate::format::Format;
use crate::metadata::{Metadata, add_json};

/// The parts of a document.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Its id, which nothing is put before.
    pub id: String,
    /// The name of where it comes from, in the place of a file's.
    pub origin: String,
    /// The way its text is read. As JSONL, it is a text under its title, as a line of a file would have it.
    pub format: Format,
    /// Its title; empty for the one that the text has, if any.
    pub title: String,
    /// Its text.
    pub text: String,
    /// Its metadata, beside what the text says of itself.
    pub metadata: Map<String, Value>,
}

/// The document of some parts.
///
/// # Errors
/// It exceeds a budget; the path of the error is the id.
pub fn from_parts(parts: Parts) -> Result<Document> {
    let Parts { id, origin, format, title, text, metadata } = parts;
    let path = Path::new(&id);
    let n_bytes = (text.len() + title.len()) as u64;
    let fields = within("bytes of id", id.len() as u64, NAME_BYTES_MAX).and_then(|()| fields(&metadata));
    let fields = fields.map_err(|excess| excess.at(path, None))?;
    let document = match format {
        Format::Jsonl => jsonl::compose(id.clone(), origin, title, text, Anchor::default(), fields, Vec::new())
            .map_err(|excess| excess.at(path, None))?,
        _ => {
            let mut document = parse(text.into_bytes(), &id, format)?;
            document.origin = origin;
            document.title = if title.is_empty() { document.title } else { title };
            document.metadata.extend(fields); // what is said beside the text is said by whoever knows it
            document
        }
    };
    document.within_budgets(n_bytes).map_err(|excess| excess.at(path, None))?;
    Ok(document)
}

fn fields(object: &Map<String, Value>) -> Result<Metadata, Excess> {
    let n_values: u64 = object.values().map(n_values).sum();
    within("values", n_values, VALUES_MAX)?;
    let mut metadata = Metadata::new();
    for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        add_json(&mut metadata, name, value)?;
    }
    Ok(metadata)
}

fn n_values(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(n_values).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(n_values).sum::<u64>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
