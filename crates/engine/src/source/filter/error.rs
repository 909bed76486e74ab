//! What can be wrong with a filter, shown with its place as a compiler does.

use std::fmt;
use std::ops::Range;

use cento_collection::format::metadata::FieldType;

/// Fields named in the message on an unknown one.
pub const FIELDS_NAMED_MAX: usize = 12;

/// Characters of a filter shown around a place.
const SHOWN_CHARS: usize = 76;

/// Why a filter cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum FilterError {
    /// The text is no filter.
    #[error("filter: {message}{place}")]
    Syntax {
        /// The thing expected, and the thing found instead.
        message: String,
        /// Where.
        place: Place,
    },
    /// The text is longer than a filter may be.
    #[error("filter: {n_bytes} bytes, the limit is {limit_bytes}")]
    TooLong {
        /// Its length.
        n_bytes: usize,
        /// The limit, [`crate::FILTER_BYTES_MAX`].
        limit_bytes: usize,
    },
    /// More conditions ask where chunks stand than a filter may have: each looks at the chunks one by one.
    #[error(
        "filter: {n} conditions ask where chunks stand, the limit is {limit}; several values stand in one: page in (3, 4)"
    )]
    TooManyPlaces {
        /// Conditions of the kind.
        n: usize,
        /// The limit, [`crate::FILTER_PLACES_MAX`].
        limit: usize,
    },
    /// Whole documents are asked for, and the filter admits chunks by where they stand.
    #[error(
        "filter: `{field}` says where a chunk stands in its file, and documents are listed and deleted whole; name them by fields of their own, as path or type; where `{field}` is one, write `meta.{field}`{place}"
    )]
    OfChunks {
        /// The field.
        field: String,
        /// Where.
        place: Place,
    },
    /// No document of the collection has the field.
    #[error("filter: no field `{field}` in this collection; nearest: `{nearest}`; it has {}{place}", some(known))]
    UnknownField {
        /// The name asked for.
        field: String,
        /// The closest name there is.
        nearest: String,
        /// The names there are.
        known: Vec<String>,
        /// Where.
        place: Place,
    },
    /// The field has no value of a type that can be compared with the value given.
    #[error(
        "filter: field `{field}` holds {}, and {value} is {value_type}{place}\nstrings stand in quotes; numbers, dates, true and false do not",
        plural(types)
    )]
    WrongType {
        /// The field.
        field: String,
        /// The types of its values.
        types: Vec<FieldType>,
        /// The value given, as written.
        value: String,
        /// Its type, with the article.
        value_type: &'static str,
        /// Where.
        place: Place,
    },
}

impl FilterError {
    /// A name of the kind of error that does not change.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

/// A place in a filter: the line around it, and carets under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    shown: String,
    n_before: usize,
    n_marked: usize,
}

impl Place {
    /// The bytes `span` of a filter, which lie on boundaries of characters; none at its end.
    pub(super) fn new(text: &str, span: &Range<usize>) -> Self {
        let before = text[..span.start].chars().count();
        let marked = text[span.clone()].chars().count();
        let first = before.saturating_sub(SHOWN_CHARS / 2);
        let rest = text.chars().skip(first);
        let line: String = rest.clone().take(SHOWN_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let (start, end) = (if first > 0 { "…" } else { "" }, if rest.count() > SHOWN_CHARS { "…" } else { "" });
        let n_before = before - first + start.chars().count();
        let n_shown = line.chars().count() + start.chars().count();
        Self { n_marked: marked.clamp(1, (n_shown - n_before).max(1)), n_before, shown: format!("{start}{line}{end}") }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n  {}\n  {}{}", self.shown, " ".repeat(self.n_before), "^".repeat(self.n_marked))
    }
}

fn some(known: &[String]) -> String {
    let named = known.iter().take(FIELDS_NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match known.len() {
        n if n > FIELDS_NAMED_MAX => format!("{named} and {} more", n - FIELDS_NAMED_MAX),
        _ => named,
    }
}

fn plural(types: &[FieldType]) -> String {
    types.iter().map(|one| format!("{one}s")).collect::<Vec<_>>().join(" and ")
}
