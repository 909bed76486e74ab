//! A signal to stop: whoever asked does not want the answer any more.
//!
//! It is looked at between pieces of work that take some hundred microseconds at most.

use crate::{Error, Result};

/// Says whether to stop; once it has said so, it always does. Many threads ask it.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The answer is wanted, however long it takes.
pub const NEVER: Stop<'static> = &|| false;

/// An error where the answer is not wanted any more.
#[inline]
pub(crate) fn check(stop: Stop<'_>) -> Result<()> {
    if stop() { Err(Error::Cancelled) } else { Ok(()) }
}
