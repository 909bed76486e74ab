//! Failures of a GPU while it computes, and answers of its library.

use std::time::Duration;

/// Result of the device, as the tensor library's.
pub(crate) type Result<T, E = candle_core::Error> = std::result::Result<T, E>;

/// The words by which [`Failure::OutOfMemory`] is known behind the tensor library's error.
pub(crate) const NO_MEMORY: &str = "no memory for";

/// The failure of a GPU while it computed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{gpu}: {NO_MEMORY} {n_bytes} bytes; fewer tokens at a time may do")]
    OutOfMemory { gpu: String, n_bytes: u64 },
    #[error("{gpu}: {n_bytes} bytes in one buffer, {most} are allowed; it is too small for the model: use cpu")]
    TooLarge { gpu: String, n_bytes: u64, most: u64 },
    #[error("{gpu}: a weight of {value:e} is larger than any number of f16 (65504); use f32")]
    TooWide { gpu: String, value: f32 },
    #[error("{gpu}: a head of {width} values does not fit a workgroup's memory; use cpu")]
    WideHead { gpu: String, width: usize },
    #[error("{gpu} was lost: {reason}; what was embedded before is kept: run again, or use cpu")]
    Lost { gpu: String, reason: String },
    #[error(
        "{gpu} has finished nothing for {} s: its driver hangs, or the model is too large for it; what was embedded \
         before is kept: run again, or use cpu", waited.as_secs()
    )]
    Stalled { gpu: String, waited: Duration },
    #[error("{gpu} refused a command: {reason}; what was embedded before is kept: run again, or use cpu")]
    Refused { gpu: String, reason: String },
}

/// In the tensor library's error, which passes through all layers.
pub(super) fn failed(failure: Failure) -> candle_core::Error {
    candle_core::Error::Wrapped(Box::new(failure)) // without the backtrace of this thread
}

/// The output of a future that is ready: on this machine all of the library's are.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
