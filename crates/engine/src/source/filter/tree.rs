//! A filter as it was read: conditions joined by `and`, `or`, `not`.

use std::fmt;
use std::ops::Range;

use cento_collection::format::metadata::Comparison;
use cento_corpus::Date;

/// Longest filter, in bytes.
pub const FILTER_BYTES_MAX: usize = 1 << 20;

/// Deepest nesting of parentheses and `not`.
pub const FILTER_DEPTH_MAX: usize = 64;

/// A filter, read but not yet held against the fields of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    pub(super) text: String,
    pub(super) root: Node,
}

impl Filter {
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

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Condition(Condition),
}

/// A condition on one field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    pub(super) field: String,
    /// Where the field stands in the text.
    pub(super) span: Range<usize>,
    pub(super) test: Test,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
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
pub(super) struct Literal {
    pub(super) constant: Constant,
    /// Where it stands in the text.
    pub(super) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constant {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Date(Date),
    /// With the date that it is, if it is one.
    String(String, Option<Date>),
}
