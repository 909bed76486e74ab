//! Writers beside folders: new collections, documents and files that are handed over, and writers that can be told to
//! stop.

pub(crate) mod add;
pub(crate) mod create;
pub(super) mod stop;
