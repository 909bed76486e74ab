//! Plain text and source code: the file's bytes are the text, its paragraphs are the blocks.
//!
//! Headings are recognised where a markup makes them certain: in reStructuredText by the line under them ([`rst`]), in
//! AsciiDoc and Org by the signs before them, outside of blocks that are shown as they are. The functions and classes
//! of source code are its sections where the file may be read by its syntax ([`by_syntax`]).

use std::ops::Range;
use std::path::Path;

use super::code::{self, Item, Language};
use super::markdown::LineCounter;
use super::rst;
use super::{Decoded, Metadata, file_stem};
use crate::anchor::Anchor;
use crate::budget::Excess;
use crate::document::{BlockKind, Document, TextKind, blocks_from_starts};
use crate::format::{Format, is_source_code};
use crate::links::{self, Markup};
use crate::section::Outline;

/// The document of a text, and why it is without the sections that its extension promises, if it is.
///
/// The parser of source code takes in what others wrote byte by byte: this is for a process that can do nothing else.
pub(super) fn by_syntax(source: Decoded, origin: &str, path: &Path) -> Result<(Document, Option<String>), Excess> {
    let Some(language) = language_of(path) else { return Ok((document(source, origin, path)?, None)) };
    let excess = match code::items(&source.text, language) {
        Ok(items) => {
            let n_bytes = source.text.len() as u64;
            let parts = Parts { sections: items.into_iter().map(Part::from).collect(), kind: BlockKind::Code };
            let read = compose(source, origin, parts, None)?;
            match read.within_budgets(n_bytes) {
                Ok(()) => return Ok((read, None)),
                Err(excess) => {
                    let Document { text, kind, warnings, .. } = read;
                    let document = document(Decoded { text, kind, warnings }, origin, path)?;
                    return Ok((document, Some(reason(excess))));
                }
            }
        }
        Err(excess) => excess,
    };
    Ok((document(source, origin, path)?, Some(reason(excess))))
}

/// The language of a file that is read by its syntax.
pub(super) fn language_of(path: &Path) -> Option<Language> {
    Language::of_extension(&extension_of(path))
}

fn reason(Excess { what, n, limit }: Excess) -> String {
    format!("{n} {what}, over the limit of {limit}")
}

fn extension_of(path: &Path) -> String {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or("").to_ascii_lowercase()
}

/// The document of a text, read here: source code without its syntax.
pub(super) fn document(source: Decoded, origin: &str, path: &Path) -> Result<Document, Excess> {
    let extension = extension_of(path);
    let kind = if is_source_code(&extension) { BlockKind::Code } else { BlockKind::Prose };
    let (sections, title) = match extension.as_str() {
        "rst" => {
            let titles = rst::titles(&source.text);
            let title = rst::title(&source.text, &titles);
            (titles.into_iter().map(Part::from).collect(), title)
        }
        "adoc" => {
            let headings = marked_headings(&source.text, &ASCIIDOC);
            let title = headings.first().filter(|first| first.level == 1).map(|first| first.text.clone());
            (headings.into_iter().map(Part::from).collect(), title)
        }
        "org" => (marked_headings(&source.text, &ORG).into_iter().map(Part::from).collect(), org_title(&source.text)),
        _ => (Vec::new(), None),
    };
    compose(source, origin, Parts { sections, kind }, title)
}

/// The outline of a text.
struct Parts {
    sections: Vec<Part>,
    /// The way in which its paragraphs may be cut.
    kind: BlockKind,
}

/// A section of a text.
struct Part {
    level: u8,
    title: String,
    heading: Range<usize>,
    start: usize,
    /// The end of the lines that stay with what follows.
    heading_end: Option<usize>,
    /// Its end; without one it runs to the next of its level.
    end: Option<usize>,
}

impl From<Heading> for Part {
    fn from(heading: Heading) -> Self {
        let Heading { level, text, span, end } = heading;
        Self { level, title: text, start: span.start, heading: span, heading_end: Some(end), end: None }
    }
}

impl From<rst::Title> for Part {
    fn from(title: rst::Title) -> Self {
        let rst::Title { level, text, span, end } = title;
        Self { level, title: text, start: span.start, heading: span, heading_end: Some(end), end: None }
    }
}

impl From<Item> for Part {
    fn from(item: Item) -> Self {
        let Item { level, title, heading, opened, span } = item;
        Self { level, title, heading, start: span.start, heading_end: opened, end: Some(span.end) }
    }
}

fn compose(source: Decoded, origin: &str, parts: Parts, title: Option<String>) -> Result<Document, Excess> {
    let Decoded { text, kind, warnings } = source;
    let Parts { sections: parts, kind: block_kind } = parts;
    let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| file_stem(origin));
    let mut starts: Vec<(usize, BlockKind)> =
        paragraph_starts(&text).into_iter().map(|start| (start, block_kind)).collect();
    for part in &parts {
        let kind = if part.heading_end.is_some() { BlockKind::Heading } else { block_kind };
        starts.push((part.start, kind));
        starts.extend(part.heading_end.into_iter().chain(part.end).map(|end| (end, block_kind)));
    }
    starts.push((0, block_kind));
    // At one place the heading comes first and is the one kept.
    starts.sort_by_key(|&(start, kind)| (start, kind != BlockKind::Heading));
    starts.dedup_by_key(|start| start.0);
    let mut outline = Outline::new();
    let mut lines = LineCounter::new(&text);
    let mut coming = parts.into_iter().peekable();
    let mut ends: Vec<usize> = Vec::new();
    let mut placed = Vec::with_capacity(starts.len());
    for (start, kind) in starts {
        while let Some(end) = ends.pop_if(|end| *end <= start) {
            outline.close(end);
        }
        if let Some(part) = coming.next_if(|part| part.start <= start) {
            let anchor = Anchor { line: Some(lines.line(start)), ..Anchor::default() };
            outline.open(part.level, part.title, part.heading, start, anchor);
            ends.extend(part.end);
        }
        placed.push((start, kind, outline.innermost()));
    }
    let mut blocks = blocks_from_starts(&text, placed)?;
    let mut sections = outline.finish(text.len());
    if kind == TextKind::Source {
        for section in &mut sections {
            section.anchor.source = Some(section.span.start as u64..section.span.end as u64);
        }
    } else {
        let mut lines = LineCounter::new(&text);
        for block in &mut blocks {
            block.anchor.line = Some(lines.line(block.span.start));
        }
    }
    let metadata = Metadata::new();
    let mut document = Document {
        id: origin.into(),
        origin: origin.into(),
        format: Format::Text,
        title,
        text,
        kind,
        sections,
        blocks,
        metadata,
        links: Vec::new(),
        warnings,
    };
    links::find(&mut document, Markup::default());
    Ok(document)
}

/// Where paragraphs begin: at the first line after blank ones.
pub(super) fn paragraph_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let (mut at, mut blank) = (0, true);
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if blank && !is_blank {
            starts.push(at);
        }
        blank = is_blank;
        at += line.len();
    }
    starts
}

struct Heading {
    level: u8,
    text: String,
    /// The title with its marks: overline and underline, or the signs before it.
    span: Range<usize>,
    /// After its last line.
    end: usize,
}

/// A markup whose headings are a line behind as many signs as the level says.
struct Marks {
    sign: char,
    levels_max: usize,
    /// True for a line that opens a block shown as it is, and the same or another that closes it.
    opens: fn(&str) -> bool,
    closes: fn(line: &str, opening: &str) -> bool,
    /// The words of a title.
    says: fn(&str) -> &str,
}

/// AsciiDoc: `= Title`, `== Section`; listings, literals, passthroughs and comments stand between equal lines.
const ASCIIDOC: Marks = Marks {
    sign: '=',
    levels_max: 6,
    opens: |line| line.starts_with("```") || ["----", "....", "++++", "////"].iter().any(|mark| is_fence(line, mark)),
    closes: |line, opening| line == opening || opening.starts_with("```") && line == "```",
    says: |title| title,
};

/// Org: `* Heading`; blocks stand between `#+begin_…` and `#+end_…`.
const ORG: Marks = Marks {
    sign: '*',
    levels_max: 12,
    opens: |line| begins(line, "#+begin_"),
    closes: |line, _| begins(line, "#+end_"),
    says: without_tags,
};

/// A title of Org without the tags at its end, `:so:written:`.
fn without_tags(title: &str) -> &str {
    match title.rsplit_once([' ', '\t']) {
        Some((words, tags)) if tags.len() > 2 && tags.starts_with(':') && tags.ends_with(':') => words.trim_end(),
        _ => title,
    }
}

/// A line of one sign, as often as in the mark or more.
fn is_fence(line: &str, mark: &str) -> bool {
    line.starts_with(mark) && line.chars().all(|sign| mark.starts_with(sign))
}

fn begins(line: &str, mark: &str) -> bool {
    line.trim_start().get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark))
}

fn marked_headings(text: &str, marks: &Marks) -> Vec<Heading> {
    let (mut headings, mut at, mut open) = (Vec::new(), 0, None);
    for whole in text.split_inclusive('\n') {
        let (start, line) = (at, whole.trim_end());
        at += whole.len();
        match open {
            Some(opening) if (marks.closes)(line, opening) => open = None,
            Some(_) => {}
            None if (marks.opens)(line) => open = Some(line),
            None => {
                let marked = line.trim_start_matches('\u{feff}');
                let title = marked.trim_start_matches(marks.sign);
                let level = marked.len() - title.len();
                if (1..=marks.levels_max).contains(&level) && title.starts_with(' ') && !title.trim().is_empty() {
                    let text = (marks.says)(title.trim()).to_owned();
                    headings.push(Heading { level: level as u8, text, span: start..start + line.len(), end: at });
                }
            }
        }
    }
    headings
}

/// The value of `#+TITLE:`.
fn org_title(text: &str) -> Option<String> {
    let line = text.lines().find(|line| begins(line, "#+title:"))?;
    Some(line.trim_start()["#+title:".len()..].trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::format::ReadAs;

    #[test]
    fn paragraphs_are_blocks() {
        let text = "\n\none\ntwo\n \n\nthree";
        let document = parse(text.into(), "a/notes.txt", ReadAs::Auto).unwrap();
        let blocks: Vec<&str> = document.blocks.iter().map(|block| &text[block.span.clone()]).collect();
        assert_eq!(blocks, ["\n\none\ntwo\n \n\n", "three"]);
        assert_eq!((document.title.as_str(), document.sections.len()), ("notes", 1));
    }

    #[test]
    fn rst_headings_nest_by_order_of_style() {
        let text = "=====\nTitle\n=====\n\nintro\n\nPart\n====\n\nSub\n---\ntext\n\nPart 2\n======\n\nnot a\ntitle\n-----\n\n  lit\n  ---\n";
        let document = parse(text.into(), "a/x.rst", ReadAs::Auto).unwrap();
        let found: Vec<(u8, &str)> =
            document.sections[1..].iter().map(|section| (section.level, section.heading.as_str())).collect();
        assert_eq!(found, [(1, "Title"), (2, "Part"), (3, "Sub"), (2, "Part 2")]);
        assert_eq!(document.title, "Title");
        assert_eq!(&text[document.sections[3].span.clone()], "Sub\n---\ntext\n\n");
    }

    #[test]
    fn rst_titles_are_those_of_docutils() {
        #[track_caller]
        fn check(text: &str, titles: &[(u8, &str)]) {
            let document = parse(text.into(), "a/x.rst", ReadAs::Auto).unwrap();
            let found: Vec<(u8, &str)> =
                document.sections[1..].iter().map(|section| (section.level, section.heading.as_str())).collect();
            assert_eq!(found, titles, "{text:?}");
        }
        check("Part\n====\nSub\n---\ntext\n", &[(1, "Part"), (2, "Sub")]);
        check("=====\n  In\n=====\n\nA\n=\n", &[(1, "In"), (2, "A")]);
        check(".. _label:\nPart\n====\n", &[(1, "Part")]);
        check("A title of many words\n-----\n", &[(1, "A title of many words")]);
        check("1. First\n========\n", &[(1, "1. First")]);
        // Too short to be one, a transition, a paragraph, an item, a doctest, tables, literal blocks and directives.
        check("Word\n---\n", &[]);
        check("text\n\n----\n\ntext\n", &[]);
        check("two\nlines\n-----\n", &[]);
        check("- an item\n---------\n", &[]);
        check(">>> print(1)\n------------\n", &[]);
        check("+----+\n| a  |\n+====+\n\n====  ====\na     b\n====  ====\n1     2\n====  ====\n", &[]);
        check("So::\n\n    Part\n    ====\n\n.. code-block:: rst\n\n   Part\n   ====\n", &[]);
    }

    #[test]
    fn signs_before_a_line_make_it_a_heading_outside_of_what_is_shown_as_it_is() {
        #[track_caller]
        fn check(name: &str, text: &str, title: &str, sections: &[(u8, &str)]) {
            let document = parse(text.into(), name, ReadAs::Auto).unwrap();
            let found: Vec<(u8, &str)> =
                document.sections[1..].iter().map(|section| (section.level, section.heading.as_str())).collect();
            assert_eq!((document.title.as_str(), found.as_slice()), (title, sections));
            assert_eq!(document.text, text);
        }
        check(
            "a/tides.adoc",
            "= Tides\n:toc:\n\nIntro.\n\n== Springs\ntext\n\n----\n== no heading\n----\n\n=== Neaps\n==not\n",
            "Tides",
            &[(1, "Tides"), (2, "Springs"), (3, "Neaps")],
        );
        check("a/tides.adoc", "\u{feff}= Tides\n\ntext\n", "Tides", &[(1, "Tides")]);
        check(
            "a/tides.org",
            "#+TITLE: Tides\n\n* Springs  :moon:sun:\ntext\n#+BEGIN_SRC c\n* p = 0;\n#+END_SRC\n** Neaps\n*bold* text\n",
            "Tides",
            &[(1, "Springs"), (2, "Neaps")],
        );
    }

    #[test]
    fn a_first_section_is_no_title() {
        let text = "Abstract\n========\n\na\n\nRationale\n=========\n";
        assert_eq!(parse(text.into(), "a/pep-1.rst", ReadAs::Auto).unwrap().title, "pep-1");
    }

    #[test]
    fn source_code_is_code() {
        let document = parse("fn a() {}\n\nfn b() {}\n".into(), "a/x.rs", ReadAs::Auto).unwrap();
        assert!(document.blocks.iter().all(|block| block.kind == BlockKind::Code));
        assert_eq!(document.blocks.len(), 2);
    }
}
