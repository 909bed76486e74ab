//! The section tree: which headings are open at each place of a document.
//!
//! Source: the open-heading stack of structured headers (DOF-RAG), with its faults mended: a heading of the same level
//! replaces its sibling, a level may be skipped (H4 under H2 keeps H2), H1 closes everything.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;

/// A heading and all that stands under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// 1 for the outermost heading; 0 is the whole document.
    pub level: u8,
    /// Heading as plain text; empty for the whole document and for front matter.
    pub heading: String,
    /// The heading in the canonical text, markup included; empty where the heading is not part of the text.
    pub heading_span: Range<usize>,
    /// From the heading through the last subsection.
    pub span: Range<usize>,
    /// The section around it; none for the whole document.
    pub parent: Option<u32>,
    /// Where the heading stands in the source file.
    pub anchor: Anchor,
}

/// Builds the section tree from headings in text order.
#[derive(Debug)]
pub(crate) struct Outline {
    sections: Vec<Section>,
    /// Indexes of the open sections, outermost first; the whole document is always open.
    open: Vec<u32>,
}

impl Outline {
    pub(crate) fn new() -> Self {
        let document = Section {
            level: 0,
            heading: String::new(),
            heading_span: 0..0,
            span: 0..0,
            parent: None,
            anchor: Anchor::default(),
        };
        Self { sections: vec![document], open: vec![0] }
    }

    /// A heading at `heading_span` begins a section at `start`; returns its index.
    pub(crate) fn open(
        &mut self,
        level: u8,
        heading: String,
        heading_span: Range<usize>,
        start: usize,
        anchor: Anchor,
    ) -> u32 {
        let level = level.max(1);
        while self.sections[self.innermost() as usize].level >= level {
            self.close(start);
        }
        let index = self.sections.len() as u32;
        let parent = Some(self.innermost());
        self.sections.push(Section { level, heading, heading_span, span: start..start, parent, anchor });
        self.open.push(index);
        index
    }

    /// Ends the innermost section at `end`.
    pub(crate) fn close(&mut self, end: usize) {
        assert!(self.open.len() > 1, "the whole document is closed by `finish` alone");
        let index = self.innermost() as usize;
        self.sections[index].span.end = end;
        self.open.pop();
    }

    /// The section that text met now belongs to.
    pub(crate) fn innermost(&self) -> u32 {
        self.open[self.open.len() - 1]
    }

    /// The tree of a text of `n_bytes`.
    pub(crate) fn finish(mut self, n_bytes: usize) -> Vec<Section> {
        for index in self.open {
            self.sections[index as usize].span.end = n_bytes;
        }
        self.sections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens the `headings` (`#`s, then the text), returns the path open after the last.
    #[track_caller]
    fn check(headings: &[&str], open: &[&str]) {
        let mut outline = Outline::new();
        for (start, heading) in headings.iter().enumerate() {
            let text = heading.trim_start_matches('#');
            let level = (heading.len() - text.len()) as u8;
            outline.open(level, text.trim().into(), start..start + 1, start, Anchor::default());
        }
        let innermost = outline.innermost();
        let mut path = Vec::new();
        let sections = outline.finish(headings.len());
        let mut at = Some(innermost);
        while let Some(index) = at {
            path.push(sections[index as usize].heading.as_str());
            at = sections[index as usize].parent;
        }
        path.pop();
        path.reverse();
        assert_eq!(path, open);
    }

    #[test]
    fn same_level_replaces() {
        check(&["## A", "## B"], &["B"]);
    }

    #[test]
    fn first_level_resets() {
        check(&["# A", "## B", "### C", "# D"], &["D"]);
    }

    #[test]
    fn a_skipped_level_keeps_what_is_above() {
        check(&["## A", "#### B"], &["A", "B"]);
        check(&["## A", "#### B", "### C"], &["A", "C"]);
    }
}
