//! Cancellation: whoever asked may stop wanting the answer, or want it by a certain time only.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// A token that one side sets and the other looks at: between its stages, and while it scans, walks, reads postings,
/// embeds and assembles. The default one is never set.
#[derive(Clone, Default)]
pub struct Cancel {
    is_set: Option<Arc<AtomicBool>>,
    deadline: Option<Instant>,
}

impl Cancel {
    /// A token that [`Cancel::cancel`] sets, for all its clones.
    #[must_use]
    pub fn new() -> Self {
        Self { is_set: Some(Arc::default()), deadline: None }
    }

    /// A token that is set too when so much time has passed.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self { deadline: Instant::now().checked_add(time), ..Self::new() }
    }

    /// Sets the token; one that was made by default stays as it is.
    pub fn cancel(&self) {
        if let Some(is_set) = &self.is_set {
            is_set.store(true, Ordering::Relaxed);
        }
    }

    /// Says that the answer is not wanted any more.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.is_set.as_ref().is_some_and(|is_set| is_set.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The time until the deadline, if there is one.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// An error if the answer is not wanted any more.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// The same for all: requests are compared by their `Debug` form, and an answer does not depend on its token.
impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancel")
    }
}
