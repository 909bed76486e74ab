//! Repair.

/// Folder of damaged segments.
pub(crate) const QUARANTINE: &str = "quarantine";
