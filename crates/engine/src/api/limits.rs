//! The bounds of every request: what one question may cost at most, whoever asks it.

use crate::error::{Error, Result};
pub use crate::source::filter::FILTER_BYTES_MAX as FILTER_TEXT_BYTES_MAX;

/// The longest query. An encoder reads its beginning alone; BM25 reads all of it.
pub const QUERY_BYTES_MAX: usize = 64 << 10;

/// The most candidates of an arm; each costs an id and a text.
pub const CANDIDATES_MAX: usize = 100_000;

/// The widest beam of a graph.
pub const EF_MAX: usize = 100_000;

/// The largest budget; the optimiser's cost grows with it.
pub const BUDGET_TOKENS_MAX: usize = 1_000_000;

/// The most ids in a list of a request.
pub const IDS_MAX: usize = 10_000;

/// The most texts that are embedded at once.
pub const EMBED_TEXTS_MAX: usize = 1_024;

/// The longest text that is embedded, and the longest id.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// An error unless `value` is from `least` to `most`.
pub(super) fn within(setting: &'static str, value: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Setting { setting, value: value.to_string(), reason: format!("is not from {least} to {most}") })
}

/// An error if a text has more than `most` bytes; it is not repeated.
pub(super) fn text(setting: &'static str, text: &str, most: usize) -> Result<()> {
    if text.len() <= most {
        return Ok(());
    }
    let value = format!("{} bytes", text.len());
    Err(Error::Setting { setting, value, reason: format!("are more than the {most} that are read") })
}

/// An error if a list has too many ids, or one that is too long.
pub(super) fn ids(setting: &'static str, ids: &[String]) -> Result<()> {
    if ids.len() > IDS_MAX {
        let value = format!("{} ids", ids.len());
        return Err(Error::Setting { setting, value, reason: format!("are more than the {IDS_MAX} that are read") });
    }
    ids.iter().try_for_each(|id| text(setting, id, TEXT_BYTES_MAX))
}
