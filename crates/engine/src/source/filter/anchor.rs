//! Anchors: the fields that say where a chunk stands in its file, and whose they are where a document has a field of
//! the same name.
//!
//! | field | of a chunk |
//! |---|---|
//! | `page` | its page, or slide |
//! | `slide` | its slide, in presentations alone |
//! | `sheet` | the sheet that it is of |
//! | `row` | the rows of its sheet that it holds |
//! | `line` | the lines of its file that it takes; the first, where the text is not that of the file |
//!
//! What a document has under one of these names itself, in front matter or JSONL, counts in place of the anchors of its
//! chunks: nothing that was written is hidden. `chunk.NAME` means the anchor, `meta.NAME` what documents have.

use super::tree::{Filter, Node};
use super::{FilterError, Place};
use cento_collection::format::metadata::FieldType;

/// The prefix of a name that means the anchor of chunks.
const OF_CHUNK: &str = "chunk.";

/// The prefix of a name that means what documents have.
const OF_DOCUMENT: &str = "meta.";

/// The most conditions of a filter that ask where chunks stand: each is held against chunks one by one.
pub const FILTER_PLACES_MAX: usize = 64;

/// A part of the place of a chunk in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Line,
    Page,
    Row,
    Sheet,
    Slide,
}

impl Anchor {
    /// All of them, by name ascending.
    pub(crate) const ALL: [Self; 5] = [Self::Line, Self::Page, Self::Row, Self::Sheet, Self::Slide];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Page => "page",
            Self::Row => "row",
            Self::Sheet => "sheet",
            Self::Slide => "slide",
        }
    }

    /// The type of its values.
    pub(crate) fn kind(self) -> FieldType {
        match self {
            Self::Sheet => FieldType::String,
            Self::Line | Self::Page | Self::Row | Self::Slide => FieldType::Integer,
        }
    }

    /// The anchor that a field of a filter means, unless a document has a field of the name.
    pub(super) fn of(field: &str) -> Option<Self> {
        let name = field.strip_prefix(OF_CHUNK).unwrap_or(field);
        Self::ALL.into_iter().find(|anchor| anchor.name() == name)
    }

    /// The filter that admits the chunks that have it.
    pub(crate) fn exists(self) -> Filter {
        Filter::exists(&format!("{OF_CHUNK}{}", self.name()))
    }
}

/// The names under which documents may have what a field of a filter means.
pub(super) fn stored_names(field: &str) -> impl Iterator<Item = &str> {
    let plain = field.strip_prefix(OF_DOCUMENT).filter(|name| Anchor::of(name).is_some());
    std::iter::once(field).chain(plain)
}

/// The name that means a field of documents alone.
pub(crate) fn of_documents(field: &str) -> String {
    match Anchor::of(field) {
        Some(_) => format!("{OF_DOCUMENT}{field}"),
        None => field.to_owned(),
    }
}

impl Filter {
    /// True if it asks where chunks stand: then it admits chunks, and documents as far as they have such.
    pub(crate) fn is_of_chunks(&self) -> bool {
        self.root.is_of_chunks()
    }

    /// Conditions that ask where chunks stand.
    pub(super) fn n_places(&self) -> usize {
        self.root.n_places()
    }

    /// An error unless it admits documents whole or not at all.
    pub(crate) fn check_of_documents(&self) -> Result<(), FilterError> {
        match self.root.first_place() {
            None => Ok(()),
            Some((field, span)) => {
                let (field, place) = (field.to_owned(), Place::new(&self.text, span));
                Err(FilterError::OfChunks { field, place })
            }
        }
    }
}

impl Node {
    pub(super) fn is_of_chunks(&self) -> bool {
        self.first_place().is_some()
    }

    fn first_place(&self) -> Option<(&str, &std::ops::Range<usize>)> {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().find_map(Self::first_place),
            Self::Not(node) => node.first_place(),
            Self::Condition(condition) => {
                Anchor::of(&condition.field).map(|_| (condition.field.as_str(), &condition.span))
            }
        }
    }

    fn n_places(&self) -> usize {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().map(Self::n_places).sum(),
            Self::Not(node) => node.n_places(),
            Self::Condition(condition) => usize::from(Anchor::of(&condition.field).is_some()),
        }
    }
}
