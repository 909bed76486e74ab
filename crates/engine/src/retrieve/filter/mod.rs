//! Filters: which documents may answer, said of their fields: `type = "pdf" and year >= 2020`.
//!
//! Text → [`lexer`] → tokens → [`parser`] → conditions joined by `and`, `or`, `not` → [`evaluate`] → a set of
//! documents.
//!
//! ```text
//! filter    = both { "or" both }
//! both      = one { "and" one }
//! one       = "not" one | "(" filter ")" | condition
//! condition = FIELD ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) VALUE
//!           | FIELD [ "not" ] "in" "(" VALUE { "," VALUE } ")"
//!           | FIELD "starts" "with" STRING
//!           | FIELD "exists" | FIELD "is" "missing"
//! FIELD     = letters, digits, "_", ".", "-", the first one a letter or "_"; any name in backticks
//! VALUE     = "…" or '…' with \\ \" \' \n \t in them | 2020, -1.5, 1e6 | 2020-05-17, 2020-05-17T10:30:00Z | true | false
//! ```
//!
//! Keywords are read in any case, names of fields and strings as they are. Numbers compare as numbers, whole or not;
//! strings by their bytes; a date covers its day, a time its minute, second or microsecond. A string compares with
//! dates too, if it is one. A field with a list is compared value by value: `tags = "x"` holds where one of them is
//! `x`. Where a field is missing every comparison is false, `!=` and `not in` too, which hold where the field exists
//! and none of its values is among those named; `not` is the true complement, so `not (year = 2020)` holds where there
//! is no year.

mod error;
mod evaluate;
mod lexer;
mod parser;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use cento_corpus::Date;

pub use self::error::{FilterError, Place};
pub(crate) use self::evaluate::Schema;
use cento_collection::format::metadata::Comparison;

/// Longest filter, in bytes.
pub const FILTER_BYTES_MAX: usize = 1 << 20;

/// Deepest nesting of parentheses and `not`.
pub const FILTER_DEPTH_MAX: usize = 64;

/// A filter, read but not yet held against the fields of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    text: String,
    root: Node,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// [`FilterError::Syntax`], with the place and what was expected there; [`FilterError::TooLong`].
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { text: text.to_owned(), root: parser::parse(text)? })
    }

    /// The filter that admits the documents that have a field.
    pub(crate) fn exists(field: &str) -> Self {
        let condition = Condition { field: field.to_owned(), span: 0..0, test: Test::Exists };
        Self { text: format!("`{field}` exists"), root: Node::Condition(condition) }
    }

    /// The filter as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Condition(Condition),
}

/// A condition on one field.
#[derive(Debug, Clone, PartialEq)]
struct Condition {
    field: String,
    /// Where the field stands in the text.
    span: Range<usize>,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    /// A value stands so to the literal.
    Compare(Comparison, Literal),
    /// A value is one of these.
    AnyOf(Vec<Literal>),
    /// The field exists, and no value is one of these.
    NoneOf(Vec<Literal>),
    /// A value begins with this.
    StartsWith(Literal),
    Exists,
    Missing,
}

/// A value in a filter.
#[derive(Debug, Clone, PartialEq)]
struct Literal {
    constant: Constant,
    /// Where it stands in the text.
    span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
enum Constant {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Date(Date),
    /// With the date that it is, if it is one.
    String(String, Option<Date>),
}

#[cfg(test)]
mod tests;
