//! Where in its file a policy is wrong: the line of the key that an error names.

use crate::candidate::normalize_label;
use crate::error::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The error with the line of `text` on which its key stands, where it names one that is there.
pub(super) fn at_line(text: &str, error: Error) -> Error {
    let key = match &error {
        Error::PolicyKey { key, .. } | Error::PolicyValue { key, .. } => key.clone(),
        Error::Range { what, .. } => format!("seal.{}", what.trim_matches('`')),
        _ => return error,
    };
    match line_of(text, &key) {
        Some(line) => Error::AtLine { line, error: Box::new(error) },
        None => error,
    }
}

/// The line of a key, `delta` or `rho.appendix`; of its table, where the table is there and the key is not found in it.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let line = |at: usize| 1 + text[..at].matches('\n').count();
    let Some((table, key)) = key.split_once('.') else { return find(root.get_ref(), key).map(|(at, _)| line(at)) };
    let (at_table, within) = find(root.get_ref(), table)?;
    let in_table = within.get_ref().as_table().and_then(|table| find(table, key));
    Some(line(in_table.map_or(at_table, |(at, _)| at)))
}

/// Where a key stands, and its value: as it is written, else as a label.
fn find<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<(usize, &'t Spanned<DeValue<'i>>)> {
    let is_label = |known: &str| normalize_label(known) == normalize_label(key);
    let found = table.iter().find(|(known, _)| known.get_ref() == key);
    let found = found.or_else(|| table.iter().find(|(known, _)| is_label(known.get_ref())));
    found.map(|(known, value)| (known.span().start, value))
}
