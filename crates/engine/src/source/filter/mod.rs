//! Filters: which documents may answer, said of their fields, and which of their chunks, said of where these stand in
//! their file: `type = "pdf" and year >= 2020 and page <= 12`.
//!
//! Text → [`lexer`] → tokens → [`parser`] → conditions joined by `and`, `or`, `not` → [`evaluate`] → a set of
//! documents, or where a condition asks for a place ([`anchor`]) → [`rows`] → a set of chunks.
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
//! VALUE     = "…" or '…' with \\ \" \' \n \t in them | 2020, -1.5, 1e6 | true | false
//!           | 2020-05-17, 2020-05-17T10:30:00Z
//! ```
//!
//! Keywords are read in any case, names of fields and strings as they are. Numbers compare as numbers, whole or not;
//! strings by their bytes; a date covers its day, a time its minute, second or microsecond. A string compares with
//! dates too, if it is one. A field with a list is compared value by value: `tags = "x"` holds where one of them is
//! `x`. Where a field is missing every comparison is false, `!=` and `not in` too, which hold where the field exists
//! and none of its values is among those named; `not` is the true complement, so `not (year = 2020)` holds where there
//! is no year. A `path` may be written as ids show it, with its root: `path starts with "docs/drafts/"`.
//!
//! A filter holds of a chunk: `not (page <= 12 and year = 2020)` admits the later pages of 2020 and all of other years.
//! A chunk that reaches over several rows or lines has them all, as a list has values.

mod error;
mod tree;
mod lexer;
mod parser;
pub(crate) mod anchor;
mod evaluate;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

pub use self::anchor::FILTER_PLACES_MAX;
pub use self::error::{FIELDS_NAMED_MAX, FilterError, Place};
pub(crate) use self::evaluate::Schema;
pub use self::tree::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, Filter};
