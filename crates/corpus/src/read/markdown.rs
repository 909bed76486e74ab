//! Markdown: the file's bytes are the text; headings, tables and fences are found in them.
//!
//! Source: CommonMark with tables and footnotes, by pulldown-cmark's byte offsets. Headings inside quotations and lists
//! open no section. Template directives (`{{#include …}}`) stay as they are.

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::front_matter::FrontMatter;
use super::{Decoded, file_stem};
use crate::anchor::Anchor;
use crate::budget::{BLOCKS_MAX, Excess, MARKDOWN_LINES_MAX, within};
use crate::document::{BlockKind, Document, TextKind, blocks_from_starts};
use crate::format::Format;
use crate::links::{self, LinkKind, Markup};
use crate::section::Outline;

pub(super) fn document(source: Decoded, origin: &str) -> Result<Document, Excess> {
    let Decoded { text, kind, mut warnings } = source;
    within("lines", text.bytes().filter(|&byte| byte == b'\n').count() as u64, MARKDOWN_LINES_MAX)?;
    let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let front = FrontMatter::find(&text[mark..])?;
    let body = mark + front.as_ref().map_or(0, |front| front.end);
    let mut outline = Outline::new();
    let mut starts = Vec::new();
    if body > mark {
        let section = outline.open(1, String::new(), 0..0, 0, Anchor { line: Some(1), ..Anchor::default() });
        outline.close(body);
        starts.push((0, BlockKind::Hidden, section));
    }
    let Structure { headings, mut blocks, markup } = structure(&text, body)?;
    blocks.push((body, BlockKind::Prose));
    // Stable: where two blocks begin in one place, the more particular was met later.
    blocks.sort_by_key(|block| block.0);
    let mut lines = LineCounter::new(&text);
    let mut headings = headings.into_iter().peekable();
    let mut title = None;
    for (start, kind) in merge_same_start(blocks) {
        while let Some(heading) = headings.next_if(|heading| heading.span.start <= start) {
            let anchor = Anchor { line: Some(lines.line(heading.span.start)), ..Anchor::default() };
            title.get_or_insert((heading.level, heading.text.clone()));
            outline.open(heading.level, heading.text, heading.span, start, anchor);
        }
        starts.push((start, kind, outline.innermost()));
    }
    let FrontMatter { metadata, title: written, warnings: of_front, .. } = front.unwrap_or_default();
    warnings.extend(of_front);
    let title = written
        .or_else(|| title.and_then(|(level, text)| (level == 1 && !text.is_empty()).then_some(text)))
        .unwrap_or_else(|| file_stem(origin));
    let mut sections = outline.finish(text.len());
    let mut blocks = blocks_from_starts(&text, starts)?;
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
    let mut document = Document {
        id: origin.into(),
        origin: origin.into(),
        format: Format::Markdown,
        title,
        text,
        kind,
        sections,
        blocks,
        metadata,
        links: Vec::new(),
        warnings,
    };
    links::find(&mut document, markup);
    Ok(document)
}

struct Heading {
    level: u8,
    text: String,
    span: Range<usize>,
}

/// The structure that a Markdown parser sees in a text.
struct Structure {
    headings: Vec<Heading>,
    /// Where blocks begin.
    blocks: Vec<(usize, BlockKind)>,
    markup: Markup,
}

/// The structure of `text[body..]`.
fn structure(text: &str, body: usize) -> Result<Structure, Excess> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    let mut headings: Vec<Heading> = Vec::new();
    let mut blocks = Vec::new();
    let mut markup = Markup::default();
    let mut n_containers = 0;
    let mut in_heading = false;
    let mut line_starts = LineStarts { bytes: text.as_bytes(), at: body, line_start: body };
    for (event, range) in Parser::new_ext(&text[body..], options).into_offset_iter() {
        let range = body + range.start..body + range.end;
        note_link(&event, &text[range.clone()], range.clone(), &mut markup);
        let start =
            if matches!(event, Event::Start(_) | Event::Rule) { line_starts.before(range.start) } else { range.start };
        match event {
            Event::Start(Tag::Heading { level, .. }) if n_containers == 0 => {
                let end = range.start + text[range.clone()].trim_end().len();
                // At its first line, so that indentation belongs to it and nothing else does.
                headings.push(Heading { level: level_number(level), text: String::new(), span: start..end });
                blocks.extend([(start, BlockKind::Heading), (line_end(text, range.end), BlockKind::Prose)]);
                in_heading = true;
            }
            Event::End(TagEnd::Heading(_)) if in_heading => {
                in_heading = false;
                if let Some(heading) = headings.last_mut() {
                    heading.text = clean(&heading.text);
                }
            }
            Event::Start(Tag::CodeBlock(_)) => {
                blocks.extend([(start, BlockKind::Code), (line_end(text, range.end), BlockKind::Prose)]);
            }
            Event::Start(Tag::Table(_)) => {
                blocks.extend([(start, BlockKind::Table), (line_end(text, range.end), BlockKind::Prose)]);
            }
            Event::Start(Tag::Heading { .. }) => {
                blocks.extend([(start, BlockKind::Heading), (line_end(text, range.end), BlockKind::Prose)]);
            }
            Event::Start(Tag::Paragraph | Tag::HtmlBlock) | Event::Rule => blocks.push((start, BlockKind::Prose)),
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item | Tag::FootnoteDefinition(_)) => {
                blocks.push((start, BlockKind::Prose));
                n_containers += 1;
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item | TagEnd::FootnoteDefinition) => {
                n_containers -= 1
            }
            Event::Text(part) | Event::Code(part) if in_heading => {
                if let Some(heading) = headings.last_mut() {
                    heading.text += &part;
                }
            }
            Event::SoftBreak | Event::HardBreak if in_heading => {
                if let Some(heading) = headings.last_mut() {
                    heading.text.push(' ');
                }
            }
            _ => {}
        }
        within("paragraphs", blocks.len() as u64 / 2, BLOCKS_MAX)?; // one that begins, and what follows it
    }
    Ok(Structure { headings, blocks, markup })
}

/// `<a href="target">`, with any quotes.
static HREF: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?i)<a\s(?:[^>]*?\s)?href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))[^>]*>"#)
        .expect("a test compiles the pattern")
});

/// Notes the link that begins with an event, or the code that it is.
fn note_link(event: &Event<'_>, written: &str, range: Range<usize>, markup: &mut Markup) {
    match event {
        Event::Start(Tag::Link { link_type, dest_url, .. }) => {
            let kind = match link_type {
                LinkType::Inline | LinkType::WikiLink { .. } => LinkKind::Inline,
                LinkType::Autolink | LinkType::Email => LinkKind::Autolink,
                LinkType::Reference
                | LinkType::ReferenceUnknown
                | LinkType::Collapsed
                | LinkType::CollapsedUnknown
                | LinkType::Shortcut
                | LinkType::ShortcutUnknown => LinkKind::Reference,
            };
            markup.add(kind, dest_url, range);
        }
        Event::Start(Tag::CodeBlock(_)) | Event::Code(_) => markup.add_code(range),
        Event::Html(_) | Event::InlineHtml(_) => {
            for found in HREF.captures_iter(written) {
                if let (Some(all), Some(target)) = (found.get(0), found.iter().skip(1).flatten().next()) {
                    let span = range.start + all.start()..range.start + all.end();
                    markup.add(LinkKind::Html, target.as_str(), span);
                }
            }
        }
        _ => {}
    }
}

/// One block for each place, of the most particular kind that begins there.
fn merge_same_start(blocks: Vec<(usize, BlockKind)>) -> Vec<(usize, BlockKind)> {
    let mut merged: Vec<(usize, BlockKind)> = Vec::with_capacity(blocks.len());
    for (start, kind) in blocks {
        match merged.last_mut() {
            Some(last) if last.0 == start => last.1 = if kind == BlockKind::Prose { last.1 } else { kind },
            _ => merged.push((start, kind)),
        }
    }
    merged
}

/// Heading text without the `{#id}` that many renderers read as its anchor, and in one line.
fn clean(heading: &str) -> String {
    let heading = heading.trim();
    let heading = match heading.rfind("{#") {
        Some(at) if heading.ends_with('}') => &heading[..at],
        _ => heading,
    };
    heading.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn level_number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// The first start of a line at or after `at`.
fn line_end(text: &str, at: usize) -> usize {
    if text[..at].ends_with(['\n', '\r']) {
        return at;
    }
    text[at..].find('\n').map_or(text.len(), |found| at + found + 1)
}

/// Starts of the lines that ascending offsets are on, in one pass.
struct LineStarts<'a> {
    bytes: &'a [u8],
    at: usize,
    line_start: usize,
}

impl LineStarts<'_> {
    fn before(&mut self, at: usize) -> usize {
        let passed = self.at.min(at)..at;
        if let Some(end) = self.bytes[passed.clone()].iter().rposition(|&byte| byte == b'\n' || byte == b'\r') {
            self.line_start = passed.start + end + 1;
        }
        self.at = self.at.max(at);
        self.line_start.min(at)
    }
}

/// Line numbers of ascending offsets, in one pass.
pub(super) struct LineCounter<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl<'a> LineCounter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The line of `at`, from 1; `at` is never before that of the last call.
    pub(super) fn line(&mut self, at: usize) -> u32 {
        self.line += self.text.as_bytes()[self.at..at].iter().filter(|&&byte| byte == b'\n').count() as u32;
        self.at = at;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, parse};
    use super::*;

    /// Sections as `level heading line`, blocks as `kind text`.
    #[track_caller]
    fn check(text: &str, sections: &[&str], blocks: &[(BlockKind, &str)]) {
        let document = parse(text.into(), "docs/guide.md", Format::Markdown).unwrap();
        let found: Vec<String> = document.sections[1..]
            .iter()
            .map(|section| format!("{} {} {}", section.level, section.heading, section.anchor.line.unwrap()))
            .collect();
        assert_eq!(found, sections);
        let found: Vec<(BlockKind, &str)> =
            document.blocks.iter().map(|block| (block.kind, &document.text[block.span.clone()])).collect();
        assert_eq!(found, blocks);
        assert_eq!(document.text, text);
    }

    #[test]
    fn headings_and_paragraphs() {
        check(
            "intro\n\n# One `two`\n\npara\npara\n\nSetext\n------\nbody\n",
            &["1 One two 3", "2 Setext 8"],
            &[
                (BlockKind::Prose, "intro\n\n"),
                (BlockKind::Heading, "# One `two`\n\n"),
                (BlockKind::Prose, "para\npara\n\n"),
                (BlockKind::Heading, "Setext\n------\n"),
                (BlockKind::Prose, "body\n"),
            ],
        );
    }

    #[test]
    fn hashes_in_fences_and_quotations_are_no_headings() {
        check(
            "```sh\n# not\n```\n> # nor\n> text\n\n{{#include ../x.md}}\n",
            &[],
            &[
                (BlockKind::Code, "```sh\n# not\n```\n"),
                (BlockKind::Heading, "> # nor\n"),
                (BlockKind::Prose, "> text\n\n"),
                (BlockKind::Prose, "{{#include ../x.md}}\n"),
            ],
        );
    }

    #[test]
    fn lists_give_their_items_and_tables_stay_whole() {
        check(
            "- a\n- b\n  ```\n  code\n  ```\n  more\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend",
            &[],
            &[
                (BlockKind::Prose, "- a\n"),
                (BlockKind::Prose, "- b\n"),
                (BlockKind::Code, "  ```\n  code\n  ```\n"),
                (BlockKind::Prose, "  more\n\n"),
                (BlockKind::Table, "| a | b |\n|---|---|\n| 1 | 2 |\n\n"),
                (BlockKind::Prose, "end"),
            ],
        );
    }

    #[test]
    fn byte_order_mark_front_matter_and_carriage_returns_are_text() {
        check(
            "\u{feff}---\r\ntitle: T\r\n---\r\n\r\n# H {#id}\r\n\r\nbody\r\n",
            &["1  1", "1 H 5"],
            &[
                (BlockKind::Hidden, "\u{feff}---\r\ntitle: T\r\n---\r\n\r\n"),
                (BlockKind::Heading, "# H {#id}\r\n\r\n"),
                (BlockKind::Prose, "body\r\n"),
            ],
        );
    }

    #[test]
    fn the_title_is_the_front_matters_then_a_first_h1_then_the_file() {
        let title = |text: &str| parse(text.into(), "docs/the.guide.md", Format::Markdown).unwrap().title;
        assert_eq!(title("---\ntitle: F\n---\n# H\n"), "F");
        assert_eq!(title("text\n\n# H\n\n# I\n"), "H");
        assert_eq!(title("## H\n\n# I\n"), "the.guide");
    }
}
