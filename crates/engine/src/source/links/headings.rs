//! Headings that anchors mean: by their slug, as GitHub and mdBook make it, or by their words.

use std::collections::HashMap;

use cento_collection::format::segment::{DocumentRecord, Segment};

use super::Heading;
use super::names::{Anchor, parts_of_heading};
use crate::error::Result;
use crate::source::titles::words_of;

/// The sections of a document that have a heading, in order.
pub(super) fn read(segment: &Segment, record: &DocumentRecord) -> Result<Vec<Heading>> {
    let first = record.first_section as usize;
    let end = first.saturating_add(record.n_sections as usize).min(segment.sections.len());
    let mut headings = Vec::new();
    for section in segment.sections.records(first.min(end)..end)? {
        let text = segment.sections.text(section.heading)?;
        if !text.is_empty() {
            headings.push(Heading { text: text.to_owned(), span: [section.start, section.end] });
        }
    }
    Ok(headings)
}

/// The heading that an anchor means.
pub(crate) fn meant<'h>(headings: &'h [Heading], anchor: &Anchor) -> Option<&'h Heading> {
    match anchor {
        Anchor::Number(part) => headings.iter().find(|heading| parts_of_heading(&heading.text).contains(part)),
        Anchor::Slug(written) => {
            let mut n_met: HashMap<String, usize> = HashMap::new();
            let wanted = written.to_lowercase();
            let by_slug = headings.iter().find(|heading| {
                let slug = slug(&heading.text);
                let n = n_met.entry(slug.clone()).or_default();
                let numbered = if *n == 0 { slug } else { format!("{slug}-{n}") };
                *n += 1;
                numbered == wanted
            });
            let words = words_of(&written.replace('_', " "));
            by_slug.or_else(|| headings.iter().find(|heading| words_of(&heading.text.replace('_', " ")) == words))
        }
    }
}

/// Letters, digits, `-` and `_` in lower case, `-` for each blank.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || c.is_whitespace() || "-_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c.is_whitespace() { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_a_slug_or_the_words_of_a_heading() {
        let texts = ["What Is `Drop`?", "Rules", "Rules", "Défense & attaque", "Article 5: scope", "3.2 Terms"];
        let headings = texts.map(|text| Heading { text: text.to_owned(), span: [0, 0] });
        let slug = |slug: &str| Anchor::Slug(slug.to_owned());
        let number = |part: &str| Anchor::Number(part.to_owned());
        for (anchor, expected) in [
            (slug("what-is-drop"), Some(0)),
            (slug("rules"), Some(1)),
            (slug("rules-1"), Some(2)),
            (slug("défense--attaque"), Some(3)),
            (slug("defense"), None),
            (slug("What is drop?"), Some(0)),
            (number("article 5"), Some(4)),
            (number("section 3.2"), Some(5)),
            (number("section 3"), None),
        ] {
            let found = meant(&headings, &anchor).map(|found| found as *const Heading);
            assert_eq!(found, expected.map(|at: usize| &headings[at] as *const Heading), "{anchor:?}");
        }
    }
}
