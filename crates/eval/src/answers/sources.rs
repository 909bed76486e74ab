//! The sources of a context by the numbers that the reader sees.
//!
//! A source is what stands under one number: its name as the context says it, or its headings, and the delivered texts
//! of it. The pieces of one document share a number in lean marks; in full marks each has its own.

use std::collections::BTreeMap;

use crate::contexts::Context;

/// Between pieces of one source.
const GAP: &str = "\n…\n";

/// Texts and documents by number.
pub(super) struct Sources<'a> {
    by_number: BTreeMap<u64, Source<'a>>,
}

struct Source<'a> {
    text: String,
    documents: Vec<&'a str>,
}

impl<'a> Sources<'a> {
    pub(super) fn of(context: &'a Context) -> Self {
        let mut by_number: BTreeMap<u64, Source<'a>> = BTreeMap::new();
        for citation in &context.citations {
            let source = by_number.entry(citation.n).or_insert_with(|| {
                let name = name(&context.context, citation.n);
                let name = name.map_or_else(|| citation.path.join(" > "), str::to_owned);
                let text = if name.is_empty() { name } else { name + "\n" };
                Source { text, documents: Vec::new() }
            });
            if !source.documents.is_empty() {
                source.text.push_str(GAP);
            }
            source.text.push_str(&citation.text);
            source.documents.push(&citation.document);
        }
        Self { by_number }
    }

    /// The text behind a number, if there is such a source.
    pub(super) fn text(&self, n: u64) -> Option<&str> {
        self.by_number.get(&n).map(|source| source.text.as_str())
    }

    /// Ids of the documents behind a number.
    pub(super) fn documents(&self, n: u64) -> impl Iterator<Item = &'a str> {
        self.by_number.get(&n).into_iter().flat_map(|source| source.documents.iter().copied())
    }
}

/// The name in the mark `[n] name`. A line of a text may look like a mark: then marks begin with more `=` than it.
fn name(context: &str, n: u64) -> Option<&str> {
    let mark = format!("[{n}]");
    let marks = context.lines().filter_map(|line| {
        let rest = line.trim_start_matches('=');
        let named = rest.trim_start().strip_prefix(mark.as_str())?;
        Some((line.len() - rest.len(), named.trim()))
    });
    // The first of the longest.
    let longest = marks.fold(None, |longest: Option<(usize, &str)>, found| match longest {
        Some(longest) if longest.0 >= found.0 => Some(longest),
        Some(_) | None => Some(found),
    });
    longest.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contexts::Citation;

    fn citation(n: u64, document: &str, path: &[&str], text: &str) -> Citation {
        Citation {
            n,
            document: document.to_owned(),
            path: path.iter().map(|heading| (*heading).to_owned()).collect(),
            span: 0..text.len() as u64,
            source: "source".to_owned(),
            anchor: String::new(),
            chunks: Vec::new(),
            cut: false,
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_source_is_all_that_stands_under_its_number_with_the_name_of_its_mark() {
        let context = Context {
            context: "=[1] Rush\n[1] is a mark in the text\n=…\nThey are from Canada.\n=[2]\nToto\n".to_owned(),
            citations: vec![
                citation(1, "a", &["Band"], "[1] is a mark in the text"),
                citation(1, "a", &["Band"], "They are from Canada."),
                citation(2, "b", &["Toto"], "Toto"),
            ],
            ..Context::default()
        };
        let sources = Sources::of(&context);
        assert_eq!(sources.text(1), Some("Rush\n[1] is a mark in the text\n…\nThey are from Canada."));
        assert_eq!((sources.text(2), sources.text(3)), (Some("Toto"), None));
        assert_eq!(sources.documents(1).collect::<Vec<_>>(), ["a", "a"]);
    }

    #[test]
    fn a_context_without_such_marks_names_a_source_by_its_headings() {
        let context = Context {
            context: "<source n=\"1\" title=\"Band\">Rush</source>".to_owned(),
            citations: vec![citation(1, "a", &["Band", "Rush"], "They are from Canada.")],
            ..Context::default()
        };
        assert_eq!(Sources::of(&context).text(1), Some("Band > Rush\nThey are from Canada."));
        assert_eq!(name("=== [3] a.md > Leave (bytes 1-2)\ntext", 3), Some("a.md > Leave (bytes 1-2)"));
    }
}
