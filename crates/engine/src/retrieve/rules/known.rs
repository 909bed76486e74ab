//! Links that were found: what a text names or points at, and what is kept of it while a collection is open.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use cento_corpus::LinkKind;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::retrieve::request::Links;
use crate::source::titles::Holder;

/// Documents whose links are kept.
const KEPT_MAX: usize = 10_000;

/// The document that named another, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NamedBy {
    /// Its id.
    pub document: String,
    /// The title as the text has it, in lower case; of a link that its author made, the target as written.
    pub title: String,
    /// Bytes of the canonical text where that stands first.
    pub span: [u64; 2],
    /// The way the link is written, if its author made one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<&'static str>,
}

/// A document that a text names or points at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    pub(crate) to: Holder,
    /// As in [`NamedBy`].
    pub(crate) title: String,
    pub(crate) span: Range<usize>,
    /// The way it is written, if its author made it.
    pub(crate) kind: Option<LinkKind>,
    /// In (0, 1].
    pub(crate) strength: f64,
}

/// The links of documents that were among the best of a query, by the document's id and the links that were asked for.
#[derive(Debug, Default)]
pub(crate) struct KnownLinks {
    kept: Mutex<HashMap<(String, Links), Arc<[Link]>>>,
}

impl KnownLinks {
    pub(crate) fn of(&self, document: &str, links: Links) -> Option<Arc<[Link]>> {
        self.kept.lock().get(&(document.to_owned(), links)).cloned()
    }

    pub(crate) fn keep(&self, document: String, which: Links, links: Arc<[Link]>) {
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert((document, which), links);
    }
}
