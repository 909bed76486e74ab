//! The hash of a file of weights, which enters the model's fingerprint: worked out at each load, or remembered by
//! whoever can.

use std::fs::File;
use std::io;
use std::path::Path;

/// Where a loader gets the BLAKE3 hash of a file of weights.
pub trait WeightHashes {
    /// The hash of all bytes of the open `file` at `path`: what `hash` gives, or what it gave when the file was the
    /// same.
    ///
    /// # Errors
    /// Those of `hash`.
    fn of(&self, path: &Path, file: &File, hash: &mut dyn FnMut() -> io::Result<[u8; 32]>) -> io::Result<[u8; 32]>;

    /// True if a device is known to have passed its first check with a model; `check` names both, and their versions.
    /// Where nobody remembers, every load checks it.
    fn has_passed(&self, check: &str) -> bool {
        let _ = check;
        false
    }

    /// A device passed its first check.
    fn passed(&self, check: &str) {
        let _ = check;
    }
}

/// Reads every file whole, each time.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysHashed;

impl WeightHashes for AlwaysHashed {
    fn of(&self, _: &Path, _: &File, hash: &mut dyn FnMut() -> io::Result<[u8; 32]>) -> io::Result<[u8; 32]> {
        hash()
    }
}
