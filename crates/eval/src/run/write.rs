//! Writing a run file: `query Q0 document rank score tag`.
//!
//! Source: trec_eval reads scores as 32-bit floats and orders equal ones by document id, so a ranking survives only
//! when its scores, as 32-bit floats, strictly decrease.

use std::borrow::Cow;
use std::io::{self, Write};

/// Treatment of scores that are equal as 32-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// A score that does not lie below the one above it is written one unit in the last place below that, so whoever
    /// sorts the file by score gets the ranking that was written.
    Break,
    /// Scores are written as they are. The order is then only trec_eval's when scores descend and equal ones have their
    /// document ids in descending order.
    Keep,
}

/// Writes the ranking of one query, best first. Ranks count from 1, blanks in ids and tag are percent-encoded.
///
/// Scores beyond the range of 32-bit floats are written as the largest or smallest of these.
///
/// # Errors
/// `InvalidInput` when a score is not finite, an id is empty, or ties are to be broken below the smallest 32-bit float.
pub fn write<D: AsRef<str>>(
    out: &mut impl Write,
    query: &str,
    ranking: impl IntoIterator<Item = (D, f64)>,
    tag: &str,
    ties: Ties,
) -> io::Result<()> {
    let (query, tag) = (column(query), column(tag));
    let mut above = f32::INFINITY;
    for (n, (document, score)) in ranking.into_iter().enumerate() {
        let document = column(document.as_ref());
        if document.is_empty() || query.is_empty() || tag.is_empty() {
            return Err(invalid(format!("query {query:?}, document {document:?}, tag {tag:?}: an empty column")));
        }
        if !score.is_finite() {
            return Err(invalid(format!("query {query:?}, document {document:?}: score {score} is not finite")));
        }
        let mut written = score.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
        if ties == Ties::Break && written >= above {
            written = above.next_down();
        }
        if written.is_infinite() {
            return Err(invalid(format!(
                "query {query:?}, document {document:?}: no 32-bit float is left below {above}"
            )));
        }
        above = written;
        writeln!(out, "{query} Q0 {document} {} {written} {tag}", n + 1)?;
    }
    Ok(())
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// An id as one column: blanks are percent-encoded, as in a URL, and so is a `%` that would read as such a code, so
/// that no two ids are one. Nothing else is.
pub fn column(id: &str) -> Cow<'_, str> {
    let is_code = |at: usize| {
        let digits = id.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let is_encoded = |(at, c): (usize, char)| c.is_whitespace() || c == '%' && is_code(at);
    if !id.char_indices().any(is_encoded) {
        return Cow::Borrowed(id);
    }
    let mut column = String::with_capacity(id.len() + 2);
    for (at, c) in id.char_indices() {
        if is_encoded((at, c)) {
            column.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")))
        } else {
            column.push(c)
        }
    }
    Cow::Owned(column)
}
