//! Headers: where a chunk stands, in lines put before its text for the encoder and for BM25.
//!
//! Source: the structured headers of DOF-RAG, `# Document: title | page: p` and then the open headings by level; `last`
//! is its earlier form, which "inherits only the last heading".
//! Differs: whatever stands in the chunk's own text is left out, so nothing is read twice; so is a heading that only
//! repeats the title.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};

use crate::document::Document;
use crate::error::Error;
use crate::section::Section;

/// The form of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown)]
pub enum HeaderStyle {
    /// `# Document: title | page: p`, then each open heading behind as many `#` as its level, one a line.
    #[default]
    Structured,
    /// `Document: title | Section: outer > inner | Page: p`, one line.
    Flat,
    /// The same line with the innermost open heading alone.
    Last,
    /// Nothing.
    None,
}

impl HeaderStyle {
    /// The names, as written on the command line.
    pub const NAMES: &'static str = "structured, flat, last, none";
}

fn unknown(name: &str) -> Error {
    Error::UnknownName { what: "header style", value: name.into(), expected: HeaderStyle::NAMES }
}

/// The headers of a document's chunks.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'d> {
    document: &'d Document,
    style: HeaderStyle,
    /// The first section that has a heading.
    first: Option<&'d Section>,
}

impl<'d> Headers<'d> {
    /// Looks through the document once.
    pub fn new(document: &'d Document, style: HeaderStyle) -> Self {
        let first = document.sections.iter().find(|section| !section.heading.is_empty());
        Self { document, style, first }
    }

    /// Number of lines the longest header of `section` can have, the document's line included.
    pub(crate) fn n_lines(&self, section: u32) -> u32 {
        1 + self.document.path(section).len() as u32
    }

    /// Bytes of the title and headings in the longest header of `section` without its `skip` outermost lines.
    pub(crate) fn n_bytes(&self, section: u32, skip: u32) -> usize {
        if self.style == HeaderStyle::None {
            return 0;
        }
        let title = if skip == 0 { self.document.title.len() } else { 0 };
        let headings = self.document.path(section).into_iter().skip(skip.saturating_sub(1) as usize);
        title + headings.map(str::len).sum::<usize>()
    }

    /// The header of a place without its `skip` outermost lines.
    pub(crate) fn compose(&self, place: &Place, skip: u32) -> String {
        let document = self.document;
        if self.style == HeaderStyle::None {
            return String::new();
        }
        let ancestors = document.ancestors(place.section);
        let inside = |heading: &Range<usize>| {
            !heading.is_empty() && place.span.start <= heading.start && heading.end <= place.span.end
        };
        let title_is_inside = (ancestors.iter().copied().chain(self.first))
            .any(|section| inside(&section.heading_span) && same_words(&section.heading, &document.title));
        let title =
            (skip == 0 && !title_is_inside && !document.title.trim().is_empty()).then(|| one_line(&document.title));
        let headings: Vec<(u8, String)> = (ancestors.iter().filter(|section| !section.heading.is_empty()))
            .skip(skip.saturating_sub(1) as usize)
            .filter(|section| !inside(&section.heading_span))
            .filter(|section| title.is_none() || !same_words(&section.heading, &document.title))
            .map(|section| (section.level, one_line(&section.heading)))
            .collect();
        match self.style {
            HeaderStyle::None => String::new(),
            HeaderStyle::Structured => structured(title, place.page, &headings),
            HeaderStyle::Flat => flat(title, place.page, &headings),
            HeaderStyle::Last => flat(title, place.page, headings.last().map(std::slice::from_ref).unwrap_or_default()),
        }
    }
}

/// The inputs of a header.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Headings inside it are left out; empty for the longest header of the section.
    pub(crate) span: Range<usize>,
    pub(crate) section: u32,
    pub(crate) page: Option<u32>,
}

fn structured(title: Option<String>, page: Option<u32>, headings: &[(u8, String)]) -> String {
    let mut header = String::new();
    if let Some(title) = title {
        header += &format!("# Document: {title}");
        if let Some(page) = page {
            header += &format!(" | page: {page}");
        }
        header.push('\n');
    }
    for (level, heading) in headings {
        header += &format!("{} {heading}\n", "#".repeat(usize::from(*level)));
    }
    header
}

fn flat(title: Option<String>, page: Option<u32>, headings: &[(u8, String)]) -> String {
    let mut parts = Vec::new();
    parts.extend(title.map(|title| format!("Document: {title}")));
    if !headings.is_empty() {
        let path: Vec<&str> = headings.iter().map(|(_, heading)| heading.as_str()).collect();
        parts.push(format!("Section: {}", path.join(" > ")));
    }
    parts.extend(page.map(|page| format!("Page: {page}")));
    if parts.is_empty() { String::new() } else { parts.join(" | ") + "\n" }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn same_words(a: &str, b: &str) -> bool {
    a.split_whitespace().map(str::to_lowercase).eq(b.split_whitespace().map(str::to_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::read::parse;

    /// The headers of the place that `needle` begins, structured and flat.
    #[track_caller]
    fn check(markdown: &str, needle: &str, structured: &str, flat: &str) {
        let document = parse(markdown.into(), "docs/guide.md", Format::Markdown).unwrap();
        let start = markdown.find(needle).unwrap();
        let block = document.blocks.iter().find(|block| block.span.contains(&start)).unwrap();
        let place = Place { span: block.span.clone(), section: block.section, page: None };
        let compose = |style| Headers::new(&document, style).compose(&place, 0);
        assert_eq!(compose(HeaderStyle::Structured), structured);
        assert_eq!(compose(HeaderStyle::Flat), flat);
        assert_eq!(compose(HeaderStyle::Last), last_of(flat));
        assert_eq!(compose(HeaderStyle::None), "");
    }

    /// A flat header without the headings around its innermost one.
    fn last_of(flat: &str) -> String {
        match flat.split_once("Section: ") {
            Some((title, path)) => format!("{title}Section: {}", path.rsplit(" > ").next().unwrap()),
            None => flat.to_owned(),
        }
    }

    #[test]
    fn open_headings_by_level() {
        let text = "---\ntitle: The Guide\n---\n# Part\n\n## A\n\n## B\n\n#### C\n\nbody\n";
        check(
            text,
            "body",
            "# Document: The Guide\n# Part\n## B\n#### C\n",
            "Document: The Guide | Section: Part > B > C\n",
        );
    }

    #[test]
    fn what_the_chunk_says_itself_is_left_out() {
        check("# Guide\n\n## A\n\nbody\n", "## A", "# Document: Guide\n", "Document: Guide\n");
        check("# Guide\n\nbody\n", "# Guide", "", "");
    }

    #[test]
    fn a_heading_that_repeats_the_title_stands_once() {
        check("# Guide\n\nbody\n\nmore\n", "more", "# Document: Guide\n", "Document: Guide\n");
    }

    #[test]
    fn a_page_follows_the_title() {
        let document = parse("body".into(), "docs/guide.txt", Format::Text).unwrap();
        let place = Place { span: 0..4, section: 0, page: Some(3) };
        let compose = |style| Headers::new(&document, style).compose(&place, 0);
        assert_eq!(compose(HeaderStyle::Structured), "# Document: guide | page: 3\n");
        assert_eq!(compose(HeaderStyle::Flat), "Document: guide | Page: 3\n");
    }

    #[test]
    fn names_are_read_back() {
        for style in [HeaderStyle::Structured, HeaderStyle::Flat, HeaderStyle::Last, HeaderStyle::None] {
            assert_eq!(style.to_string().parse::<HeaderStyle>().unwrap(), style);
            assert!(HeaderStyle::NAMES.contains(&style.to_string()));
        }
        assert!("fancy".parse::<HeaderStyle>().is_err());
    }
}
