//! Links that authors made, resolved when somebody asks: a target as written gives names ([`names`]), and a table of
//! the documents that live says who has one ([`table`]). Nothing that is resolved is stored, so a new document is
//! linked to by those before it, and compaction, deletion and shards leave nothing to mend.

pub(crate) mod names;
pub(crate) mod headings;
pub(super) mod table;
pub(super) mod stored;

use cento_corpus::Link;
use serde::{Deserialize, Serialize};

/// A document with its links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Linking {
    pub(crate) id: String,
    /// The file it came from: root label and relative path.
    pub(crate) origin: String,
    /// In the order of its text; `None` if they were not looked for when it was indexed.
    pub(crate) links: Option<Vec<Link>>,
}

/// The documents of a source that link.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Linkers {
    /// Ids of those that have links.
    pub(crate) ids: Vec<String>,
    /// Documents whose links were not looked for when they were indexed.
    pub(crate) n_unknown: u64,
}

/// A section that an anchor or a number can mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heading {
    pub(crate) text: String,
    /// Bytes of its section.
    pub(crate) span: [u64; 2],
}
