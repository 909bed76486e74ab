//! E-mail, by mail-parser: each message a document, and each attachment another, read as what it is.
//!
//! Of a message that is there as text and as HTML the text is read. Who wrote when to whom stands in front of the text
//! and in the metadata; `thread` is the first message of the conversation, so that a filter finds all of it. The id of
//! an attachment is that of its message, `/` and its name.
//! Source: RFC 5322 for the fields, RFC 2045 to 2049 for the parts.

use std::collections::HashSet;

use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use super::super::encoding::{is_utf16, of_utf16};
use super::super::options::NotUtf8;
use super::draft::{About, Draft};
use super::{Fault, Inner, Parsed, Part};
use crate::budget::{NAME_BYTES_MAX, within};
use crate::document::{BlockKind, record_id};
use crate::extraction::Extraction;
use crate::format::Format;
use crate::metadata::{Metadata, Place, Value, add_value};

const ENGINE: &str = "mail-parser 0.11.9";

/// Messages inside each other that are read; those in the innermost are named as unread.
const NESTED_MAX: usize = 16;

/// Attached messages and attachments of one file.
const PARTS_MAX: u64 = 1_024;

/// The type of an attached message.
const NESTED: &[u8] = b"message/rfc822";

/// Bytes of an attachment's name in its id.
const ATTACHMENT_NAME_BYTES_MAX: usize = 200;

/// Addresses of one field that stand in the text and in the metadata.
const ADDRESSES_MAX: usize = 50;

/// Reads a message with what is attached to it.
pub(super) fn read(part: &Part<'_>, inner: Inner<'_>) -> Result<Parsed, Fault> {
    if is_utf16(part.bytes) {
        let path = std::path::Path::new(part.id);
        let (text, _) = of_utf16(part.bytes, path, NotUtf8::Replaced)
            .map_err(|error| Fault::Unparsed { engine: ENGINE, reason: error.to_string() })?;
        return read(&Part { bytes: text.as_bytes(), ..*part }, inner);
    }
    // The parser nests a message for each of these, and so does what frees them.
    let n_nested = part.bytes.windows(NESTED.len()).filter(|word| word.eq_ignore_ascii_case(NESTED)).count();
    within("messages in one message", n_nested as u64, PARTS_MAX)?;
    let message = MessageParser::default().parse(part.bytes);
    let Some(message) = message.filter(|message| !message.headers().is_empty()) else {
        return Err(Fault::Unparsed { engine: ENGINE, reason: "no message: it has no header fields".into() });
    };
    let extraction = Extraction { engine: ENGINE.into(), ..Extraction::default() };
    let mut reading =
        Reading { part, inner, parsed: Parsed { documents: Vec::new(), extraction }, ids: HashSet::new() };
    reading.message(&message, part.id.to_owned(), None, 0)?;
    Ok(reading.parsed)
}

struct Reading<'r> {
    part: &'r Part<'r>,
    inner: Inner<'r>,
    parsed: Parsed,
    ids: HashSet<String>,
}

impl Reading<'_> {
    fn message(&mut self, message: &Message<'_>, id: String, name: Option<String>, depth: usize) -> Result<(), Fault> {
        let origin = self.part.origin;
        let mut draft = Draft::new(message.raw_message.len().max(self.part.bytes.len()) as u64);
        let fields = fields(message);
        let shown = fields.iter().filter(|field| SHOWN.contains(&field.0));
        let head: String = shown.map(|(name, value)| format!("{}: {value}\n", title_case(name))).collect();
        draft.block(BlockKind::Prose, &head)?;
        let mut html = Vec::new();
        for body in message.text_bodies() {
            match &body.body {
                PartType::Text(text) => paragraphs(&mut draft, text)?,
                PartType::Html(text) => html.push(text),
                PartType::Binary(_) | PartType::InlineBinary(_) | PartType::Message(_) | PartType::Multipart(_) => {}
            }
        }
        let mut about = About { title: message.subject().map(str::to_owned), ..About::default() };
        about.metadata = metadata(message, fields);
        for html in html {
            let page = Part { bytes: html.as_bytes(), id: &id, ..*self.part };
            match (self.inner)(&page, Format::Html) {
                Ok(parsed) => parsed.documents.iter().try_for_each(|page| paragraphs(&mut draft, &page.text))?,
                Err(fault) => about.warnings.push(format!("its HTML was not read: {}", fault.reason())),
            }
        }
        let name = name.unwrap_or_else(|| self.part.name());
        let document = draft.finish(&id, origin, Format::Eml, name, about);
        let thread = document.metadata.get("thread").cloned();
        self.parsed.documents.push(document);
        for (part, number) in message.attachments().zip(1..) {
            let first = self.parsed.documents.len();
            self.attachment(part, &id, number, depth)?;
            for document in &mut self.parsed.documents[first..] {
                if let Some(thread) = &thread {
                    document.metadata.entry("thread".into()).or_insert_with(|| thread.clone());
                }
            }
        }
        Ok(())
    }

    fn attachment(&mut self, part: &MessagePart<'_>, around: &str, number: usize, depth: usize) -> Result<(), Fault> {
        within("attachments", self.parsed.documents.len() as u64, PARTS_MAX)?;
        let kind = part.content_type().map_or("", |kind| kind.ctype());
        let name = self.name(part, around, number);
        let id = record_id(around, &name);
        let read = match &part.body {
            PartType::Message(_) if depth + 1 >= NESTED_MAX => Err(format!("message inside {NESTED_MAX} others")),
            PartType::Message(message) => return self.message(message, id, Some(name), depth + 1),
            PartType::Multipart(_) => return Ok(()),
            PartType::Text(_) | PartType::Html(_) | PartType::Binary(_) | PartType::InlineBinary(_) => {
                self.read(part.contents(), &id, &name)
            }
        };
        match read {
            Ok(parsed) => self.parsed.take(&name, parsed),
            Err(_) if kind == "image" => self.parsed.extraction.n_images += 1,
            Err(reason) => self.parsed.extraction.unread.push(format!("attachment {name:?}: {reason}")),
        }
        Ok(())
    }

    /// The documents of an attachment, else why there are none.
    fn read(&self, bytes: &[u8], id: &str, name: &str) -> Result<Parsed, String> {
        let Some(format) = Format::of_path(std::path::Path::new(name)) else {
            return Err(format!("its extension is of no format that is read, {} bytes", bytes.len()));
        };
        (self.inner)(&Part { bytes, id, ..*self.part }, format).map_err(|fault| fault.reason())
    }

    /// The name of an attachment, another for each.
    fn name(&mut self, part: &MessagePart<'_>, around: &str, number: usize) -> String {
        let is_message = matches!(part.body, PartType::Message(_));
        let written = part.attachment_name().unwrap_or_default();
        let clean = written.chars().map(|letter| if letter == '/' || letter == '\\' { '_' } else { letter });
        let mut name: String = clean.filter(|letter| !letter.is_control()).collect();
        name.truncate(name.floor_char_boundary(ATTACHMENT_NAME_BYTES_MAX));
        let name = match name.trim() {
            "" | "." | ".." => format!("part-{number}.{}", if is_message { "eml" } else { extension(part) }),
            name => name.to_owned(),
        };
        let unique = if self.ids.contains(&record_id(around, &name)) { format!("{number}-{name}") } else { name };
        self.ids.insert(record_id(around, &unique));
        unique
    }
}

/// The extension of a part without a name.
fn extension(part: &MessagePart<'_>) -> &'static str {
    match &part.body {
        PartType::Text(_) => "txt",
        PartType::Html(_) => "html",
        PartType::Message(_) => "eml",
        PartType::Binary(_) | PartType::InlineBinary(_) | PartType::Multipart(_) => "bin",
    }
}

/// Fields that stand in front of the text.
const SHOWN: [&str; 5] = ["from", "to", "cc", "date", "subject"];

/// The fields of a message as text.
fn fields(message: &Message<'_>) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    for (name, address) in [("from", message.from()), ("to", message.to()), ("cc", message.cc())] {
        fields.extend(addresses(address).into_iter().map(|address| (name, address)));
    }
    fields.extend(message.date().map(|date| ("date", date.to_rfc3339())));
    fields.extend(message.subject().map(|subject| ("subject", subject.to_owned())));
    fields.retain(|(_, value)| !value.trim().is_empty() && value.len() as u64 <= NAME_BYTES_MAX);
    fields
}

fn metadata(message: &Message<'_>, fields: Vec<(&'static str, String)>) -> Metadata {
    let mut metadata = Metadata::new();
    for (name, value) in fields {
        add_value(&mut metadata, name, Value::from(value), Place::Alone);
    }
    let short = |text: &&str| text.len() as u64 <= NAME_BYTES_MAX;
    let id = message.message_id().filter(short);
    // The root of the conversation: the first reference, else what this replies to, else the message itself.
    let first = |header: &mail_parser::HeaderValue<'_>| {
        let listed = header.as_text_list().and_then(|ids| ids.first().map(|id| id.to_string()));
        listed.or_else(|| header.as_text().map(str::to_owned)).filter(|id| short(&id.as_str()))
    };
    let thread = first(message.references()).or_else(|| first(message.in_reply_to())).or(id.map(str::to_owned));
    for (name, value) in [("message_id", id.map(str::to_owned)), ("thread", thread)] {
        if let Some(value) = value {
            add_value(&mut metadata, name, Value::Text(value), Place::Alone);
        }
    }
    metadata
}

fn addresses(address: Option<&Address<'_>>) -> Vec<String> {
    let written = address.into_iter().flat_map(|address| address.iter()).map(|one| match (one.name(), one.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default().to_owned(),
    });
    written.take(ADDRESSES_MAX).collect()
}

fn title_case(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_ascii_uppercase() + rest
}

/// Writes a plain text, a block for each paragraph.
fn paragraphs(draft: &mut Draft, text: &str) -> Result<(), crate::budget::Excess> {
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            paragraph.push_str(line.trim_end());
            paragraph.push('\n');
        } else if !paragraph.is_empty() {
            draft.block(BlockKind::Prose, &paragraph)?;
            paragraph.clear();
        }
    }
    Ok(())
}
