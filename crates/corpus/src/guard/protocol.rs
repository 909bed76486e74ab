//! What parent and child say to each other, each message one line of JSON.
//!
//! The child says [`Hello`]; the parent sends a [`Request`] and, behind it, the bytes of the file to the end of the
//! input; the child answers with its [`Confinement`], then with [`Answer`]s, of which [`Answer::End`] is the last. A
//! child that is to run a command becomes that, whose output is its own.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::confine::Confinement;
use crate::date::Date;
use crate::document::{Block, Document, TextKind};
use crate::extraction::Extraction;
use crate::folder::RecordIds;
use crate::format::Format;
use crate::links::Link;
use crate::metadata::{Field, Metadata, Value};
use crate::read::Passwords;
use crate::section::Section;

/// Changes whenever the messages do. Parent and child are one executable, unless it was replaced in between.
pub(super) const PROTOCOL: u32 = 3;

/// Longest line of a request: a name, some numbers, passwords and a command.
pub(super) const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// The first line of a child, which then waits.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hello {
    pub(super) protocol: u32,
}

/// The file that is to be read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) format: Format,
    /// Its name in the collection; where it lies the child is not told.
    pub(super) origin: String,
    /// The extension of the file, which its name in the collection may lack.
    pub(super) extension: Option<String>,
    pub(super) n_bytes: u64,
    pub(super) record_ids: RecordIds,
    pub(super) lossy: bool,
    pub(super) max_file_bytes: u64,
    /// They come this way alone: arguments and environment can be seen by others.
    pub(super) passwords: Passwords,
    pub(super) memory_bytes: u64,
    pub(super) processor_seconds: u64,
    /// The command that reads the file in the place of a reader here; none without a program.
    pub(super) run: Vec<String>,
}

/// A line of a child that has its request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The first: the child is confined and has not looked at the file.
    Confined(Confinement),
    /// A document.
    Document(Box<Sent>),
    /// The file, or a document in it, was refused; the reason names no file.
    Refused(String),
    /// The last.
    End { notes: Vec<String>, extraction: Option<Box<Extraction>> },
}

/// A document on its way. Metadata is spelled out, since JSON has neither dates nor every float.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sent {
    id: String,
    origin: String,
    format: Format,
    title: String,
    text: String,
    kind: TextKind,
    sections: Vec<Section>,
    blocks: Vec<Block>,
    metadata: Vec<(String, SentField)>,
    links: Vec<Link>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
enum SentField {
    One(SentValue),
    Many(Vec<SentValue>),
}

#[derive(Debug, Serialize, Deserialize)]
enum SentValue {
    Boolean(bool),
    Integer(i64),
    /// The bits of a finite float.
    Float(u64),
    Date(String),
    Text(String),
}

impl From<Document> for Sent {
    fn from(document: Document) -> Self {
        let Document { id, origin, format, title, text, kind, sections, blocks, metadata, links, warnings } = document;
        let metadata = metadata.into_iter().map(|(name, field)| (name, field.into())).collect();
        Self { id, origin, format, title, text, kind, sections, blocks, metadata, links, warnings }
    }
}

impl Sent {
    /// The document; it is not checked but for its values.
    ///
    /// # Errors
    /// A value is none of its kind.
    pub(super) fn into_document(self) -> Result<Document, String> {
        let Self { id, origin, format, title, text, kind, sections, blocks, metadata, links, warnings } = self;
        let n_fields = metadata.len();
        let metadata = metadata.into_iter().map(|(name, field)| Ok((name, field.into_field()?)));
        let metadata: Metadata = metadata.collect::<Result<_, String>>()?;
        if metadata.len() != n_fields {
            return Err("two fields of one name".to_owned());
        }
        Ok(Document { id, origin, format, title, text, kind, sections, blocks, metadata, links, warnings })
    }
}

impl From<Field> for SentField {
    fn from(field: Field) -> Self {
        match field {
            Field::One(value) => Self::One(value.into()),
            Field::Many(values) => Self::Many(values.into_iter().map(SentValue::from).collect()),
        }
    }
}

impl SentField {
    fn into_field(self) -> Result<Field, String> {
        match self {
            Self::One(value) => value.into_value().map(Field::One),
            Self::Many(values) => {
                values.into_iter().map(SentValue::into_value).collect::<Result<_, _>>().map(Field::Many)
            }
        }
    }
}

impl From<Value> for SentValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Boolean(value) => Self::Boolean(value),
            Value::Integer(value) => Self::Integer(value),
            Value::Float(value) => Self::Float(value.to_bits()),
            Value::Date(value) => Self::Date(value.as_str().to_owned()),
            Value::Text(value) => Self::Text(value),
        }
    }
}

impl SentValue {
    fn into_value(self) -> Result<Value, String> {
        Ok(match self {
            Self::Boolean(value) => Value::Boolean(value),
            Self::Integer(value) => Value::Integer(value),
            Self::Float(bits) => match f64::from_bits(bits) {
                value if value.is_finite() => Value::Float(value),
                value => return Err(format!("{value} as a value")),
            },
            Self::Date(text) => Date::parse(&text).map(Value::Date).ok_or("a date that is none")?,
            Self::Text(text) => Value::Text(text),
        })
    }
}

/// Writes a message.
pub(super) fn send(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *output, message)?;
    output.write_all(b"\n")
}
