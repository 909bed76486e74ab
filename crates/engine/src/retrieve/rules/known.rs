//! Links that were found: what a text names, and what is kept of it while a collection is open.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::source::titles::Holder;

/// Documents whose links are kept.
const KEPT_MAX: usize = 10_000;

/// The document that named another, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NamedBy {
    /// Its id.
    pub document: String,
    /// The title as the text has it, in lower case.
    pub title: String,
    /// Bytes of the canonical text where the title stands first.
    pub span: [u64; 2],
}

/// A document that a text names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    pub(crate) to: Holder,
    pub(crate) title: String,
    /// Bytes of the naming text where the title stands first.
    pub(crate) span: Range<usize>,
    /// In (0, 1].
    pub(crate) strength: f64,
}

/// The links of documents that were among the best of a query, by the document's id.
#[derive(Debug, Default)]
pub(crate) struct KnownLinks {
    kept: Mutex<HashMap<String, Arc<[Link]>>>,
}

impl KnownLinks {
    pub(crate) fn of(&self, document: &str) -> Option<Arc<[Link]>> {
        self.kept.lock().get(document).cloned()
    }

    pub(crate) fn keep(&self, document: String, links: Arc<[Link]>) {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(document, links);
    }
}
