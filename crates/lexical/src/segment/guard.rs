//! The boundary to tantivy's readers: what they do not expect in a file is an error, not the end of the program.
//!
//! tantivy trusts the bytes it is given, which is what checksums are for. Files that somebody forged, whose checksums
//! hold, make it index out of range, add up beyond a number, or assert. Readers change nothing, so nothing is half done
//! when they give up: each public function that reads a segment runs in [`guarded`].

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::error::POSTINGS;
use crate::{Error, Result};

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// The outcome of reading a segment; [`Error::Corrupt`] where it ends in a panic, of which nothing is printed.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    keep_quiet();
    let outer = IS_READING.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    IS_READING.set(outer);
    outcome.unwrap_or_else(|panic| {
        let reason = format!("its reader gave up: {}", words(&*panic));
        Err(Error::Corrupt { name: POSTINGS.to_owned(), reason })
    })
}

/// Panics of other code are reported as before.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_READING.get() {
                report(panic);
            }
        }));
    });
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_guard_is_there_again_afterwards() {
        for _ in 0..2 {
            let inner = guarded(|| {
                let nested: Result<()> = guarded(|| Ok(()));
                nested?;
                let nothing: &[u8] = &[];
                Ok(nothing[nothing.len()]) // as a reader of forged bytes does
            });
            let error = inner.unwrap_err().to_string();
            assert!(error.contains("gave up: index out of bounds"), "{error}");
            assert!(!IS_READING.get());
        }
        assert_eq!(guarded(|| Ok(7)).unwrap(), 7);
    }
}
