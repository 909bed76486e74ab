//! Faults of devices, for tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Submissions after which a device that is opened now will be lost.
static LOST_AFTER: AtomicU64 = AtomicU64::new(u64::MAX);

/// Loses each GPU that is opened from now on after so many submissions, as a driver's reset does; `None` loses none.
pub fn lose_gpus_after(n_submissions: Option<u64>) {
    LOST_AFTER.store(n_submissions.unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// The end of a wait for a device.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Waited {
    /// Too long, and nothing was finished meanwhile.
    InVain,
    /// Too long, and something was finished meanwhile.
    ForOthers,
    /// At once, while another thread is about to say that the bytes are there.
    TooEarly,
    /// The library panics.
    Panicking,
}

/// The faults that a device is to have.
#[derive(Debug)]
pub(super) struct Faults {
    /// Bytes of a buffer that are to count as a full memory.
    pub(super) memory: AtomicU64,
    pub(super) submissions_left: AtomicU64,
    #[cfg(test)]
    pub(super) waits: parking_lot::Mutex<std::collections::VecDeque<Waited>>,
}

impl Faults {
    pub(super) fn new() -> Self {
        let submissions_left = LOST_AFTER.load(Ordering::Relaxed).into();
        Self {
            memory: u64::MAX.into(),
            submissions_left,
            #[cfg(test)]
            waits: Default::default(),
        }
    }
}
