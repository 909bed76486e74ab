//! A link, and the ways in which links are written.

use serde::{Deserialize, Serialize};

/// A link as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    /// First byte of the canonical text where it stands; 0, like the end, where it is not part of the text.
    pub start: usize,
    /// Byte behind the last.
    pub end: usize,
    /// The way it is written.
    pub kind: LinkKind,
    /// The target as written: a path, an address, the name of a page or module, a DOI, `Article 12`.
    pub target: String,
}

/// The way a link is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// Markdown: `[text](target)`.
    Inline,
    /// Markdown: `[text][label]`, with the target behind the label elsewhere.
    Reference,
    /// Markdown: `<https://…>`.
    Autolink,
    /// HTML: `<a href="target">`.
    Html,
    /// Wikis: `[[Target|text]]`.
    Wiki,
    /// A value of `related` or `see_also` in the metadata.
    Related,
    /// Source code: a module by its name, or a file by its path.
    Import,
    /// Source code: `#include`; templates of documentation: `{{#include path}}`.
    Include,
    /// A digital object identifier in prose.
    Doi,
    /// A numbered part: `Article 12`, `Section 3.2`.
    Numbered,
}

/// Every kind with its name. Its place is its number in a segment: never another one.
const KINDS: [(LinkKind, &str); 10] = [
    (LinkKind::Inline, "inline"),
    (LinkKind::Reference, "reference"),
    (LinkKind::Autolink, "autolink"),
    (LinkKind::Html, "html"),
    (LinkKind::Wiki, "wiki"),
    (LinkKind::Related, "related"),
    (LinkKind::Import, "import"),
    (LinkKind::Include, "include"),
    (LinkKind::Doi, "doi"),
    (LinkKind::Numbered, "numbered"),
];

impl LinkKind {
    /// Its number in the records of a segment.
    pub fn number(self) -> u32 {
        let at = KINDS.iter().position(|(kind, _)| *kind == self);
        at.expect("each kind has a row: a test holds the table to that") as u32
    }

    /// The kind of a number in a record; none if there is no such kind.
    pub fn of_number(number: u32) -> Option<Self> {
        KINDS.get(number as usize).map(|(kind, _)| *kind)
    }

    /// Its name in answers: `inline`.
    pub fn name(self) -> &'static str {
        KINDS[self.number() as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_row_and_keeps_its_number() {
        for (number, (kind, name)) in (0..).zip(KINDS) {
            assert_eq!((kind.number(), LinkKind::of_number(number), kind.name()), (number, Some(kind), name));
            assert_eq!(serde_json::to_value(kind).unwrap(), name);
        }
        assert_eq!(LinkKind::of_number(KINDS.len() as u32), None);
        assert_eq!(KINDS.len(), LinkKind::Numbered as usize + 1, "the last kind is the last row");
    }
}
