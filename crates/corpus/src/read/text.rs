//! Plain text and source code: the file's bytes are the text, its paragraphs are the blocks.
//!
//! Headings are recognised where a markup makes them certain: in reStructuredText by an underline as long as the title,
//! in AsciiDoc and Org by the signs before them, outside of blocks that are shown as they are.

use std::ops::Range;
use std::path::Path;

use super::markdown::LineCounter;
use super::{Decoded, Metadata, file_stem};
use crate::anchor::Anchor;
use crate::budget::Excess;
use crate::document::{BlockKind, Document, TextKind, blocks_from_starts};
use crate::format::{Format, is_source_code};
use crate::links::{self, Markup};
use crate::section::Outline;

pub(super) fn document(source: Decoded, origin: &str, path: &Path) -> Result<Document, Excess> {
    let Decoded { text, kind, warnings } = source;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("").to_ascii_lowercase();
    let block_kind = if is_source_code(&extension) { BlockKind::Code } else { BlockKind::Prose };
    let (headings, title) = match extension.as_str() {
        "rst" => {
            let headings = rst_headings(&text);
            let title = rst_title(&text, &headings);
            (headings, title)
        }
        "adoc" => {
            let headings = marked_headings(&text, &ASCIIDOC);
            let title = headings.first().filter(|first| first.level == 1).map(|first| first.text.clone());
            (headings, title)
        }
        "org" => (marked_headings(&text, &ORG), org_title(&text)),
        _ => (Vec::new(), None),
    };
    let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| file_stem(origin));
    let mut starts: Vec<(usize, BlockKind)> =
        paragraph_starts(&text).into_iter().map(|start| (start, block_kind)).collect();
    for heading in &headings {
        starts.extend([(heading.span.start, BlockKind::Heading), (heading.end, block_kind)]);
    }
    starts.push((0, block_kind));
    // At one place the heading comes first and is the one kept.
    starts.sort_by_key(|&(start, kind)| (start, kind != BlockKind::Heading));
    starts.dedup_by_key(|start| start.0);
    let mut outline = Outline::new();
    let mut lines = LineCounter::new(&text);
    let mut coming = headings.into_iter().peekable();
    let mut placed = Vec::with_capacity(starts.len());
    for (start, kind) in starts {
        if let Some(heading) = coming.next_if(|heading| heading.span.start <= start) {
            let anchor = Anchor { line: Some(lines.line(start)), ..Anchor::default() };
            outline.open(heading.level, heading.text, heading.span, start, anchor);
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
}

/// AsciiDoc: `= Title`, `== Section`; listings, literals, passthroughs and comments stand between equal lines.
const ASCIIDOC: Marks = Marks {
    sign: '=',
    levels_max: 6,
    opens: |line| line.starts_with("```") || ["----", "....", "++++", "////"].iter().any(|mark| is_fence(line, mark)),
    closes: |line, opening| line == opening || opening.starts_with("```") && line == "```",
};

/// Org: `* Heading`; blocks stand between `#+begin_…` and `#+end_…`.
const ORG: Marks = Marks {
    sign: '*',
    levels_max: 12,
    opens: |line| begins(line, "#+begin_"),
    closes: |line, _| begins(line, "#+end_"),
};

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
                let title = line.trim_start_matches(marks.sign);
                let level = line.len() - title.len();
                if (1..=marks.levels_max).contains(&level) && title.starts_with(' ') && !title.trim().is_empty() {
                    let text = title.trim().to_owned();
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

/// Titles with an underline of one punctuation character at least as long, at the margin, after a blank line.
///
/// Levels are numbered in the order in which the styles (character, with or without an overline) appear.
fn rst_headings(text: &str) -> Vec<Heading> {
    let mut headings = Vec::new();
    let mut styles: Vec<(char, bool)> = Vec::new();
    let mut starts = vec![0];
    starts.extend(text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some(*at)
    }));
    let line = |i: usize| text[starts[i]..starts[i + 1]].trim_end();
    let n_lines = starts.len() - 1;
    let mut i = 0;
    while i + 1 < n_lines {
        let (title, mark) = (line(i), adornment(line(i + 1)));
        let is_title = !title.is_empty() && !title.starts_with(char::is_whitespace) && adornment(title).is_none();
        let Some(mark) = mark.filter(|_| is_title && line(i + 1).chars().count() >= title.chars().count()) else {
            i += 1;
            continue;
        };
        let overlined = i > 0 && line(i - 1) == line(i + 1);
        let first = if overlined { i - 1 } else { i };
        if first > 0 && !line(first - 1).is_empty() {
            i += 1;
            continue;
        }
        let known = styles.iter().position(|&style| style == (mark, overlined)).unwrap_or_else(|| {
            styles.push((mark, overlined));
            styles.len() - 1
        });
        let span = starts[first]..starts[i + 1] + line(i + 1).len();
        headings.push(Heading { level: (known + 1).min(255) as u8, text: title.into(), span, end: starts[i + 2] });
        i += 2;
    }
    headings
}

/// The character of a line that repeats one punctuation character at least three times.
fn adornment(line: &str) -> Option<char> {
    let first = line.chars().next().filter(char::is_ascii_punctuation)?;
    (line.len() >= 3 && line.chars().all(|character| character == first)).then_some(first)
}

/// The document's title: a first heading before any text whose style no other heading has.
fn rst_title(text: &str, headings: &[Heading]) -> Option<String> {
    let first = headings.first()?;
    let before = text[..first.span.start].split_inclusive('\n').all(|line| {
        let line = line.trim_start_matches('\u{feff}');
        line.trim().is_empty() || line.starts_with("..") || line.starts_with(' ')
    });
    let alone = headings[1..].iter().all(|heading| heading.level > first.level);
    (before && alone).then(|| first.text.clone())
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
        check(
            "a/tides.org",
            "#+TITLE: Tides\n\n* Springs\ntext\n#+BEGIN_SRC c\n* p = 0;\n#+END_SRC\n** Neaps\n*bold* text\n",
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
