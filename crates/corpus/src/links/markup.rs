//! What a reader knows of a document's links, and what is found in its text besides.

use std::ops::Range;

use super::link::{Link, LinkKind};
use crate::budget::{LINKS_MAX, TARGET_BYTES_MAX};
use crate::document::{BlockKind, Document};

/// Schemes of targets that are no documents.
const NO_DOCUMENTS: [&str; 4] = ["data:", "javascript:", "mailto:", "tel:"];

/// The links that the markup of a document says, and where its text is no prose.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    links: Vec<Link>,
    /// Code, which names no wiki page.
    code: Vec<Range<usize>>,
    /// Links that were left out over a limit.
    n_left_out: u64,
}

impl Markup {
    /// Adds a link, unless its target is empty or no document.
    pub(crate) fn add(&mut self, kind: LinkKind, target: &str, span: Range<usize>) {
        let target = target.trim();
        let begins = |scheme: &str| target.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
        if target.is_empty() || NO_DOCUMENTS.iter().any(|scheme| begins(scheme)) {
            return;
        }
        if target.len() > TARGET_BYTES_MAX || !self.has_room() {
            self.n_left_out += 1;
            return;
        }
        self.links.push(Link { start: span.start, end: span.end, kind, target: target.to_owned() });
    }

    /// True if the document may have more links.
    pub(crate) fn has_room(&self) -> bool {
        self.links.len() < LINKS_MAX
    }

    /// Notes a part of the text that is no prose.
    pub(crate) fn add_code(&mut self, span: Range<usize>) {
        self.code.push(span);
    }

    /// The parts of a text that prose is not looked for in, ascending: code, headings, links that are known.
    pub(super) fn taken(&self, document: &Document) -> Vec<Range<usize>> {
        let links = self.links.iter().map(|link| link.start..link.end);
        let headings = document.sections.iter().map(|section| section.heading_span.clone());
        let hidden = document.blocks.iter().filter(|block| block.kind == BlockKind::Hidden);
        let all = self.code.iter().cloned().chain(links).chain(headings).chain(hidden.map(|block| block.span.clone()));
        let mut taken: Vec<Range<usize>> = all.filter(|span| !span.is_empty()).collect();
        taken.sort_unstable_by_key(|span| (span.start, span.end));
        taken
    }

    /// The links in the order of the text, each once, and how many were left out.
    pub(super) fn into_links(mut self) -> (Vec<Link>, u64) {
        self.links.sort_unstable();
        self.links.dedup();
        (self.links, self.n_left_out)
    }
}
