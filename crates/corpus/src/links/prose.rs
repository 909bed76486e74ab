//! Links in prose: wiki links, DOIs, numbered parts, and what templates of documentation include.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::link::LinkKind;
use super::markup::Markup;

/// `[[Target|text]]`, `[[#Heading]]`; what goes on as a Markdown link is one.
static WIKI: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]"));

/// Source: the DOI handbook, 2.2; the suffix ends where prose does.
static DOI: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\b(10\.\d{4,9}/[^\s<>"'\]}|]+)"#));

/// A word for a part with its number in digits; annexes may have a letter or a Roman number.
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(\b(?i:article|art\.|section|sec\.|chapter|clause|rule)[ \u{a0}]\d{1,4}(?:\.\d{1,4}){0,5}\b",
        r"|\b(?i:annex|appendix)[ \u{a0}](?:\d{1,4}|[IVX]{1,6}|[A-Z])\b",
        r"|§[ \u{a0}]?\d{1,4}(?:\.\d{1,4}){0,5}\b)"
    ))
});

/// The files that mdBook puts in a page's place: `{{#include path:lines}}`.
static INCLUDE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\{\{\s*#(?:include|rustdoc_include|playground)\s+([^}\s:]+)[^}\n]*\}\}"));

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test compiles every pattern")
}

/// Finds the links of a text outside the parts that are taken, which ascend.
pub(super) fn find(text: &str, taken: &[Range<usize>], markup: &mut Markup) {
    each(&INCLUDE, text, &[], |_, target| Some(target), LinkKind::Include, markup);
    let wiki = |found: &Captures<'_>, target| {
        let behind = found.get(0).and_then(|all| text.as_bytes().get(all.end()));
        (!matches!(behind, Some(b'(' | b'['))).then_some(target)
    };
    each(&WIKI, text, taken, wiki, LinkKind::Wiki, markup);
    each(&DOI, text, taken, |_, target| Some(without_marks(target)), LinkKind::Doi, markup);
    each(&NUMBERED, text, taken, |_, target| Some(target), LinkKind::Numbered, markup);
}

/// Adds the first group of each match that `target` lets through.
fn each<'t>(
    pattern: &Regex,
    text: &'t str,
    taken: &[Range<usize>],
    target: impl Fn(&Captures<'t>, &'t str) -> Option<&'t str>,
    kind: LinkKind,
    markup: &mut Markup,
) {
    let mut taken = Taken { spans: taken, end: 0 };
    for found in pattern.captures_iter(text) {
        let (Some(all), Some(group)) = (found.get(0), found.get(1)) else { continue };
        if !taken.covers(all.start())
            && let Some(target) = target(&found, group.as_str())
        {
            let cut = group.len() - target.len();
            markup.add(kind, target, all.start()..all.end() - cut);
        }
    }
}

/// A DOI without the marks of the sentence around it: a bracket that closes nothing in it, a full stop.
fn without_marks(doi: &str) -> &str {
    let mut doi = doi;
    loop {
        let cut = match doi.as_bytes().last() {
            Some(b'.' | b',' | b';' | b':' | b'*' | b'_' | b'`') => true,
            Some(b')') => doi.matches(')').count() > doi.matches('(').count(),
            Some(_) | None => false,
        };
        if !cut {
            return doi;
        }
        doi = &doi[..doi.len() - 1];
    }
}

/// Spans that ascend by their start, asked at ascending places.
struct Taken<'s> {
    spans: &'s [Range<usize>],
    /// The furthest end of those that began.
    end: usize,
}

impl Taken<'_> {
    fn covers(&mut self, at: usize) -> bool {
        while let Some((first, rest)) = self.spans.split_first().filter(|(first, _)| first.start <= at) {
            self.end = self.end.max(first.end);
            self.spans = rest;
        }
        at < self.end
    }
}
