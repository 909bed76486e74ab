//! The time that a reranker has: what a request allows it, and some less than is left before a deadline.

use std::time::{Duration, Instant};

use crate::cancel::Cancel;

/// Share of the time before a deadline, and the most of it, that is left for what comes after reranking.
const RESERVED_PART: u32 = 4;
const RESERVED_MAX: Duration = Duration::from_secs(2);

/// A time that began, and may end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    start: Instant,
    time: Duration,
}

impl Allowed {
    /// As much as is asked for, or less if a deadline is near.
    pub(crate) fn new(asked: Option<Duration>, cancel: &Cancel) -> Self {
        let until = cancel.left().map(|left| left - (left / RESERVED_PART).min(RESERVED_MAX));
        Self { start: Instant::now(), time: asked.into_iter().chain(until).min().unwrap_or(Duration::MAX) }
    }

    /// As much as it takes.
    pub(crate) fn all() -> Self {
        Self { start: Instant::now(), time: Duration::MAX }
    }

    pub(super) fn left(&self) -> Duration {
        self.time.saturating_sub(self.start.elapsed())
    }
}
