//! The parts of a file that is a zip archive of XML: a second, crude reading of its text, and what it says of itself.
//!
//! Cost: bounded by [`PART_BYTES_MAX`] for a part and [`PACKAGE_BYTES_MAX`] for all; what is longer is left out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use quick_xml::XmlVersion;
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use zip::ZipArchive;
use zip::result::ZipError;

use super::part::ENCRYPTED;
use crate::metadata::{Metadata, Place, Value, add_value};

/// Longest part that is read, in bytes.
const PART_BYTES_MAX: u64 = 64 << 20;

/// Bytes that are read of all parts.
const PACKAGE_BYTES_MAX: u64 = 256 << 20;

/// Longest value of metadata, in bytes; a longer one is text, and not a property.
const PROPERTY_BYTES_MAX: usize = 2_048;

/// The elements that hold a property in the parts for properties of OOXML, OpenDocument and EPUB, and the field's name.
const PROPERTIES: [(&str, &str); 12] = [
    ("title", "title"),
    ("creator", "author"),
    ("initial-creator", "author"),
    ("created", "created"),
    ("creation-date", "created"),
    ("date", "date"),
    ("modified", "modified"),
    ("subject", "subject"),
    ("keywords", "keywords"),
    ("keyword", "keywords"),
    ("description", "description"),
    ("language", "language"),
];

/// An archive in memory.
pub(super) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    bytes_left: u64,
}

/// The elements of a part that hold text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextOf {
    /// Those called `t`, as in OOXML; of two ways to show one thing, the first.
    Runs,
    /// All of the body.
    Body,
}

impl<'a> Package<'a> {
    /// Opens an archive; none if the bytes are none.
    pub(super) fn open(bytes: &'a [u8]) -> Option<Self> {
        let archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
        Some(Self { archive, bytes_left: PACKAGE_BYTES_MAX })
    }

    /// Names of the parts, ascending.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.archive.file_names().filter_map(Result::ok).map(Cow::into_owned).collect();
        names.sort_unstable();
        names
    }

    /// A part; none if it cannot be read.
    pub(super) fn part(&mut self, name: &str) -> Option<Vec<u8>> {
        self.read(name).ok()
    }

    /// A part, else why it is not read.
    pub(super) fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let part = self.archive.by_name(name).map_err(unread)?;
        let limit = PART_BYTES_MAX.min(self.bytes_left);
        if part.size() > limit {
            return Err(format!("{} bytes, the limit is {limit}", part.size()));
        }
        let mut bytes = Vec::new();
        part.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let n_bytes = bytes.len() as u64;
        self.bytes_left = self.bytes_left.saturating_sub(n_bytes);
        if n_bytes > limit { Err(format!("more than {limit} bytes, unpacked")) } else { Ok(bytes) }
    }

    /// The text of a part; empty if it cannot be read.
    pub(super) fn text(&mut self, name: &str, of: TextOf) -> String {
        self.part(name).map(|xml| text_of(&xml, of)).unwrap_or_default()
    }

    /// The first value of each property in a part: title, author, dates …
    pub(super) fn properties(&mut self, name: &str) -> (Option<String>, Metadata) {
        let found = self.part(name).map(|xml| properties_of(&xml)).unwrap_or_default();
        let mut metadata = Metadata::new();
        let mut title = None;
        for (field, value) in found {
            if field == "title" {
                title = Some(value.clone());
            }
            add_value(&mut metadata, field, Value::from(value), Place::Alone);
        }
        (title, metadata)
    }
}

/// Why a part of an archive cannot be unpacked.
pub(super) fn unread(error: ZipError) -> String {
    match error {
        ZipError::FileNotFound => "not in the file".to_owned(),
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => ENCRYPTED.to_owned(),
        error => error.to_string(),
    }
}

/// The text of XML, a line end behind every paragraph. A part that is not well formed is read as far as it is.
pub(super) fn text_of(xml: &[u8], of: TextOf) -> String {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().check_end_names = false;
    let (mut text, mut buffer) = (String::new(), Vec::new());
    let (mut n_open, mut n_skipped) = (0_u32, 0_u32);
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) => {
                let name = start.local_name();
                let name = name.as_ref();
                if n_skipped > 0 || is_skipped(name, of) {
                    n_skipped += 1;
                }
                n_open += u32::from(is_text(name, of));
            }
            Ok(Event::End(end)) => {
                let name = end.local_name();
                let name = name.as_ref();
                n_skipped = n_skipped.saturating_sub(1);
                n_open = n_open.saturating_sub(u32::from(is_text(name, of)));
                if ends_word(name) {
                    text.push('\n');
                }
            }
            Ok(Event::Empty(empty)) => {
                if ends_word(empty.local_name().as_ref()) {
                    text.push('\n');
                }
            }
            Ok(Event::Text(piece)) if n_open > 0 && n_skipped == 0 => {
                text.push_str(&piece);
            }
            Ok(Event::CData(piece)) if n_open > 0 && n_skipped == 0 => {
                text.push_str(&piece);
            }
            Ok(Event::GeneralRef(name)) if n_open > 0 && n_skipped == 0 => {
                text.push_str(&character_of(&name));
            }
            Ok(Event::Eof) | Err(_) => return text,
            Ok(_) => {}
        }
    }
}

/// The character of a reference; entities that a file declares are not resolved, so that none can grow.
pub(super) fn character_of(name: &str) -> String {
    let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok(),
        None => number.parse().ok(),
    });
    match (name, number.and_then(char::from_u32)) {
        (_, Some(character)) => character.to_string(),
        ("amp", None) => "&".into(),
        ("lt", None) => "<".into(),
        ("gt", None) => ">".into(),
        ("apos", None) => "'".into(),
        ("quot", None) => "\"".into(),
        _ => " ".into(),
    }
}

fn is_text(name: &str, of: TextOf) -> bool {
    match of {
        TextOf::Runs => name == "t",
        TextOf::Body => name == "body",
    }
}

fn is_skipped(name: &str, of: TextOf) -> bool {
    match of {
        TextOf::Runs => ["Fallback", "rPh"].contains(&name), // rPh: how the text is spoken
        TextOf::Body => ["nav", "script", "style", "tracked-changes"].contains(&name),
    }
}

/// Paragraphs, line breaks, tabs, cells: no word goes on behind them.
fn ends_word(name: &str) -> bool {
    !matches!(name, "t" | "r" | "span" | "a" | "b" | "i" | "em" | "strong" | "rPr" | "sup" | "sub" | "small" | "code")
}

/// The attributes, by their names as written, of each element of this name with or without a namespace.
pub(super) fn elements(xml: &[u8], name: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().check_end_names = false;
    let (mut found, mut buffer) = (Vec::new(), Vec::new());
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(element) | Event::Empty(element)) if element.local_name().as_ref() == name => {
                let attributes = element.attributes().filter_map(Result::ok);
                let named = attributes.filter_map(|attribute| {
                    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned();
                    Some((attribute.key.as_ref().to_owned(), value))
                });
                found.push(named.collect());
            }
            Ok(Event::Eof) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

/// The first place where XML is not well formed: nothing behind it is read.
pub(super) fn fault_of(xml: &[u8]) -> Option<String> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().check_end_names = false;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Eof) => return None,
            Ok(_) => {}
            Err(error) => return Some(format!("no XML from byte {} on: {error}", reader.error_position())),
        }
    }
}

fn properties_of(xml: &[u8]) -> BTreeMap<&'static str, String> {
    let mut reader = Reader::from_reader(xml);
    reader.config_mut().check_end_names = false;
    let (mut found, mut open, mut buffer) = (BTreeMap::new(), None, Vec::new());
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) => {
                let name = start.local_name();
                let name = name.as_ref();
                let field = PROPERTIES.iter().find(|(element, _)| *element == name).map(|known| known.1);
                open = field.filter(|field| !found.contains_key(field)).map(|field| (field, String::new()));
            }
            Ok(Event::Text(piece)) => {
                if let Some((_, value)) = &mut open {
                    value.push_str(&piece);
                }
            }
            Ok(Event::GeneralRef(name)) => {
                if let Some((_, value)) = &mut open {
                    value.push_str(&character_of(&name));
                }
            }
            Ok(Event::End(_)) => {
                if let Some((field, value)) = open.take() {
                    let value = value.trim();
                    if !value.is_empty() && value.len() <= PROPERTY_BYTES_MAX {
                        found.insert(field, value.to_owned());
                    }
                }
            }
            Ok(Event::Eof) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_runs_is_read_once_and_entities_do_not_grow() {
        let xml = "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]><d xmlns:w='w'><w:p><w:r><w:t>ti</w:t></w:r>\
            <w:r><w:t>de &amp; &b;sea</w:t></w:r></w:p><mc:Fallback><w:t>tide</w:t></mc:Fallback><w:p><w:t>x</w:t></w:p></d>";
        let words: Vec<String> = text_of(xml.as_bytes(), TextOf::Runs).split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["tide", "&", "sea", "x"]);
    }

    #[test]
    fn properties_are_the_first_of_each() {
        let xml = "<m><dc:title>Tides &amp; us</dc:title><dc:creator>Ada</dc:creator><dc:creator>Bob</dc:creator>\
            <dcterms:created>2020-05-17T10:00:00Z</dcterms:created></m>";
        let found = properties_of(xml.as_bytes());
        assert_eq!((found["title"].as_str(), found["author"].as_str()), ("Tides & us", "Ada"));
    }
}
