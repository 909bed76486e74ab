//! Adapters other than this machine's, for tests.

use std::cell::Cell;

thread_local! {
    static PRETENCE: Cell<Pretence> = const { Cell::new(Pretence::NONE) };
}

/// The adapters of this thread, other than they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pretence {
    /// Software passes for a GPU.
    pub(crate) is_hardware: bool,
    /// Bytes that a kernel reads of one buffer.
    pub(crate) binding_bytes_max: u64,
    /// There are no 16-bit floats.
    pub(crate) lacks_f16: bool,
    /// It is used by Metal.
    pub(crate) is_metal: bool,
}

impl Pretence {
    pub(crate) const NONE: Self =
        Self { is_hardware: false, binding_bytes_max: u64::MAX, lacks_f16: false, is_metal: false };

    pub(super) fn now() -> Self {
        PRETENCE.get()
    }

    /// The result of `job` under this pretence.
    pub(crate) fn during<R>(self, job: impl FnOnce() -> R) -> R {
        PRETENCE.set(self);
        let result = job();
        PRETENCE.set(Self::NONE);
        result
    }
}
