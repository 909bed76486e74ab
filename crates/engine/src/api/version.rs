//! The version that every answer carries.

/// Format of the answers: it changes when a field of theirs goes or means something else.
pub const VERSION: u32 = 1;
