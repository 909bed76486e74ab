//! A signal to stop: whoever asked does not want the vectors any more.
//!
//! It is looked at before each text is tokenized and before each layer of a batch.

use crate::error::{Error, Result};

/// Says whether to stop; once it has said so, it always does. Many threads ask it.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The vectors are wanted, however long it takes.
pub const NEVER: Stop<'static> = &|| false;

/// An error where the vectors are not wanted any more.
pub(crate) fn check(stop: Stop<'_>) -> Result<()> {
    if stop() { Err(Error::Cancelled) } else { Ok(()) }
}
