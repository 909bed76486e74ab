//! Writers beside folders: documents that are handed over, and writers that can be told to stop.

pub(crate) mod add;
pub(super) mod stop;
