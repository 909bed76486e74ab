//! A signal to stop: whoever asked does not want the context any more.
//!
//! Loops whose length follows the request look at it, and end as if they were done; what they leave is thrown away,
//! since whoever called them looks too. So it must not be taken back.

use crate::error::{Error, Result};

/// Says whether to stop; once it has said so, it always does.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// The context is wanted, however long it takes.
pub const NEVER: Stop<'static> = &|| false;

/// An error where the context is not wanted any more.
pub(crate) fn check(stop: Stop<'_>) -> Result<()> {
    if stop() { Err(Error::Cancelled) } else { Ok(()) }
}
