//! The machine that this process runs on, as far as locks go: processes of one start of one kernel see each other's.

use std::fs;

/// The name where the system does not tell: its machines are not told apart, and locks are believed.
const UNNAMED: &str = "machine";

/// A name of this machine since its last start, without blanks.
pub(super) fn name() -> String {
    let started = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    started.split_whitespace().next().unwrap_or(UNNAMED).to_owned()
}
