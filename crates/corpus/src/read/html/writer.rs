//! The text of a page: its paragraphs, lists, rows and headings, written element by element.

use std::collections::HashSet;
use std::ops::Range;

use scraper::{Html, Node};

use super::tree::{Step, walk};
use crate::anchor::Anchor;
use crate::document::BlockKind;
use crate::links::{LinkKind, Markup};
use crate::metadata::{Metadata, Place, add_value};
use crate::section::Outline;

/// Elements that are left out with all they hold.
const DROPPED: [&str; 9] = ["script", "style", "nav", "template", "noscript", "svg", "iframe", "noframes", "noembed"];

/// Elements that begin and end a paragraph.
const PARAGRAPHS: [&str; 29] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "details",
    "dialog",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "hr",
    "legend",
    "main",
    "menu",
    "ol",
    "p",
    "section",
    "select",
    "summary",
    "table",
    "ul",
];

/// Elements whose presence in a cell says that the table is there for layout.
const LAYOUT: [&str; 12] = ["table", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "pre", "form"];

fn is_dropped(node: &Node) -> bool {
    node.as_element().is_some_and(|element| DROPPED.contains(&element.name()))
}

/// The numbers of the tables that are there for layout: their cells hold headings, lists, tables …
pub(super) fn layout_tables(html: &Html) -> HashSet<usize> {
    let mut layout = HashSet::new();
    let mut open = Vec::new();
    walk(html, |step| {
        match step {
            Step::Open(_, node) if is_dropped(node) => return false,
            Step::Open(number, Node::Element(element)) => {
                if LAYOUT.contains(&element.name()) {
                    layout.extend(open.last().copied());
                }
                if element.name() == "table" {
                    open.push(number);
                }
            }
            Step::Close(Node::Element(element)) if element.name() == "table" => {
                open.pop();
            }
            _ => {}
        }
        true
    });
    layout
}

/// The separator due between the text written and the text to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Break {
    Nothing,
    Space,
    Line,
    /// A line, and another block.
    Item,
    /// An empty line, and another block.
    Paragraph,
}

/// Text that is not written before its element closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Captured {
    Heading(u8),
    Cell,
    Title,
    Preformatted,
}

/// The links of a page on their way into the text.
#[derive(Default)]
pub(super) struct Anchors {
    pub(super) markup: Markup,
    /// Target of the open one, and where its first word was written.
    open: Option<(String, Option<usize>)>,
    /// Targets of those in a heading, a cell or preformatted text, which are written later.
    captured: Vec<String>,
}

impl Anchors {
    /// Text is about to be written at `start`.
    fn begin(&mut self, start: usize) {
        if let Some((_, known)) = &mut self.open {
            known.get_or_insert(start);
        }
    }

    /// The open one ends at `end`, if there is one; without a word it is where it would stand.
    fn close(&mut self, end: usize) {
        if let Some((target, start)) = self.open.take() {
            self.markup.add(LinkKind::Html, &target, start.unwrap_or(end)..end);
        }
    }

    /// The captured links stand in this part of the text.
    pub(super) fn write_captured(&mut self, span: Range<usize>) {
        for target in std::mem::take(&mut self.captured) {
            self.markup.add(LinkKind::Html, &target, span.clone());
        }
    }
}

pub(super) struct Writer {
    pub(super) text: String,
    pub(super) starts: Vec<(usize, BlockKind, u32)>,
    pub(super) outline: Outline,
    pub(super) title: Option<String>,
    pub(super) first_heading: Option<(u8, String)>,
    pub(super) metadata: Metadata,
    layout: HashSet<usize>,
    /// Open tables: whether each is one of data.
    tables: Vec<bool>,
    /// The cells of the open row.
    row: Vec<String>,
    /// Open lists: the number of the last item, for an ordered one.
    lists: Vec<Option<u32>>,
    coming: Break,
    coming_kind: BlockKind,
    coming_mark: String,
    /// Element that is captured, its text, and how many elements of its name are open in it.
    captured: Option<(Captured, String, usize)>,
    pub(super) links: Anchors,
}

impl Writer {
    pub(super) fn new(layout: HashSet<usize>) -> Self {
        Self {
            text: String::new(),
            starts: Vec::new(),
            outline: Outline::new(),
            title: None,
            first_heading: None,
            metadata: Metadata::new(),
            layout,
            tables: Vec::new(),
            row: Vec::new(),
            lists: Vec::new(),
            coming: Break::Paragraph,
            coming_kind: BlockKind::Prose,
            coming_mark: String::new(),
            captured: None,
            links: Anchors::default(),
        }
    }

    pub(super) fn step(&mut self, step: Step<'_>) -> bool {
        match step {
            Step::Open(_, node) if is_dropped(node) => return false,
            Step::Open(number, Node::Element(element)) => {
                if element.name() == "meta" || element.name() == "html" {
                    self.describe(element);
                }
                self.open_link(element);
                self.open(element.name(), number, element.attr("start"));
            }
            Step::Open(_, Node::Text(text)) => self.write(&text.text),
            Step::Close(Node::Element(element)) => {
                if element.name() == "a" {
                    self.links.close(self.text.len());
                }
                self.close(element.name());
            }
            _ => {}
        }
        true
    }

    /// `<a href>`: a link, which ends one that is still open.
    fn open_link(&mut self, element: &scraper::node::Element) {
        let Some(target) = element.attr("href").filter(|_| element.name() == "a") else { return };
        self.links.close(self.text.len());
        match self.captured {
            Some(_) => self.links.captured.push(target.to_owned()),
            None => self.links.open = Some((target.to_owned(), None)),
        }
    }

    /// `<html lang>`, and `<meta name content>` for names that describe the text; the first of each. Keywords are a
    /// list.
    fn describe(&mut self, element: &scraper::node::Element) {
        let (key, value) = match element.attr("name").map(str::to_ascii_lowercase) {
            Some(name) if ["description", "keywords", "author", "date"].contains(&name.as_str()) => {
                (name, element.attr("content"))
            }
            _ => ("lang".to_string(), element.attr("lang").filter(|_| element.name() == "html")),
        };
        let Some(value) = value.map(str::trim).filter(|value| !value.is_empty() && !self.metadata.contains_key(&key))
        else {
            return;
        };
        let words = value.split(',').map(str::trim).filter(|word| !word.is_empty());
        match key.as_str() {
            "keywords" => words.for_each(|word| {
                add_value(&mut self.metadata, &key, word.to_string().into(), Place::InList);
            }),
            _ => add_value(&mut self.metadata, &key, value.to_string().into(), Place::Alone),
        }
    }

    fn open(&mut self, name: &str, number: usize, start: Option<&str>) {
        if let Some((captured, text, depth)) = &mut self.captured {
            match name {
                "br" if *captured == Captured::Preformatted => text.push('\n'),
                _ if *captured == Captured::Preformatted => {}
                _ if breaks_line(name) => text.push(' '),
                _ => {}
            }
            *depth += usize::from(element_of(name) == Some(*captured));
            return;
        }
        let in_data = self.tables.last() == Some(&true);
        match name {
            "td" | "th" if !in_data => self.end(Break::Paragraph, BlockKind::Prose),
            "title" if self.title.is_some() => self.captured = Some((Captured::Title, String::new(), 0)),
            "tr" if in_data => self.row.clear(),
            "li" => self.open_item(),
            "dt" => self.end(Break::Item, BlockKind::Prose),
            "dd" => {
                self.end(Break::Item, BlockKind::Prose);
                self.coming_mark = "  ".into();
            }
            "br" | "option" => self.end(Break::Line, self.coming_kind),
            "table" => {
                let data = !self.layout.contains(&number);
                self.tables.push(data);
                self.end(Break::Paragraph, if data { BlockKind::Table } else { BlockKind::Prose });
            }
            "caption" if in_data => {}
            "ol" => {
                let before =
                    start.and_then(|start| start.trim().parse::<u32>().ok()).map_or(0, |start| start.saturating_sub(1));
                self.open_list(Some(before));
            }
            "ul" | "menu" => self.open_list(None),
            _ => match element_of(name) {
                Some(captured) => self.captured = Some((captured, String::new(), 0)),
                None if PARAGRAPHS.contains(&name) => self.end(Break::Paragraph, BlockKind::Prose),
                None => {}
            },
        }
    }

    fn close(&mut self, name: &str) {
        if let Some((captured, text, depth)) = self.captured.take() {
            if element_of(name) != Some(captured) || depth > 0 {
                let text = if breaks_line(name) && captured != Captured::Preformatted { text + " " } else { text };
                let depth = depth - usize::from(element_of(name) == Some(captured));
                self.captured = Some((captured, text, depth));
            } else {
                self.write_captured(captured, text);
            }
            return;
        }
        match name {
            "tr" if self.tables.last() == Some(&true) => self.write_row(),
            "td" | "th" | "tr" => self.end(Break::Paragraph, BlockKind::Prose),
            "table" => {
                self.tables.pop();
                self.end(Break::Paragraph, BlockKind::Prose);
            }
            "caption" => self.end(Break::Line, BlockKind::Table),
            "ol" | "ul" | "menu" => {
                self.lists.pop();
                let outermost = self.lists.is_empty();
                self.end(if outermost { Break::Paragraph } else { Break::Item }, BlockKind::Prose);
            }
            "li" | "dt" | "dd" => {
                self.coming_mark.clear();
                self.end(Break::Item, BlockKind::Prose);
            }
            _ if PARAGRAPHS.contains(&name) => self.end(Break::Paragraph, BlockKind::Prose),
            _ => {}
        }
    }

    fn open_list(&mut self, number: Option<u32>) {
        self.end(if self.lists.is_empty() { Break::Paragraph } else { Break::Item }, BlockKind::Prose);
        self.lists.push(number);
    }

    fn open_item(&mut self) {
        self.end(Break::Item, BlockKind::Prose);
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(8));
        self.coming_mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{indent}{number}. ")
            }
            _ => format!("{indent}- "),
        };
    }

    /// Whatever was open ends; the text to come is of `kind`.
    fn end(&mut self, at_least: Break, kind: BlockKind) {
        self.coming = self.coming.max(at_least);
        self.coming_kind = kind;
    }

    fn write(&mut self, text: &str) {
        if let Some((_, captured, _)) = &mut self.captured {
            captured.push_str(text);
            return;
        }
        for (i, word) in text.split(|character: char| character.is_ascii_whitespace()).enumerate() {
            if i > 0 {
                self.coming = self.coming.max(Break::Space);
            }
            if !word.is_empty() {
                self.flush();
                self.text.push_str(word);
            }
        }
    }

    /// Writes the break that is due, and the mark of a list item.
    fn flush(&mut self) {
        let coming = std::mem::replace(&mut self.coming, Break::Nothing);
        if !self.text.is_empty() {
            self.text.push_str(match coming {
                Break::Nothing => "",
                Break::Space => " ",
                Break::Line | Break::Item => "\n",
                Break::Paragraph => "\n\n",
            });
        }
        if coming >= Break::Item {
            self.starts.push((self.text.len(), self.coming_kind, self.outline.innermost()));
        }
        self.text.push_str(&std::mem::take(&mut self.coming_mark));
        self.links.begin(self.text.len());
    }

    fn write_captured(&mut self, captured: Captured, text: String) {
        if captured == Captured::Preformatted {
            let text = text.trim_end();
            let blank = text.len() - text.trim_start().len();
            let first_line = text[..blank].rfind('\n').map_or(0, |end| end + 1);
            self.write_block(&text[first_line..], BlockKind::Code);
            self.links.write_captured(self.text.len() - text[first_line..].len()..self.text.len());
            return;
        }
        let line = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        match captured {
            Captured::Title => self.title = self.title.take().or(Some(line)),
            Captured::Cell => self.row.push(line),
            Captured::Heading(level) if !line.is_empty() => {
                self.coming_mark.clear();
                let start = self.text.len() + if self.text.is_empty() { 0 } else { 2 };
                self.first_heading.get_or_insert((level, line.clone()));
                self.outline.open(level, line.clone(), start..start + line.len(), start, Anchor::default());
                self.write_block(&line, BlockKind::Heading);
                self.links.write_captured(start..self.text.len());
                assert!(
                    self.text.ends_with(&line) && self.text.len() == start + line.len(),
                    "a heading stands where it was said to"
                );
            }
            _ => {}
        }
    }

    fn write_block(&mut self, text: &str, kind: BlockKind) {
        if text.is_empty() {
            return;
        }
        self.end(Break::Paragraph, kind);
        self.flush();
        self.text.push_str(text);
        self.end(Break::Paragraph, BlockKind::Prose);
    }

    fn write_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.iter().any(|cell| !cell.is_empty()) {
            self.flush();
            let start = self.text.len();
            self.text.push_str(&row.join(" | "));
            self.links.write_captured(start..self.text.len());
            self.end(Break::Line, BlockKind::Table);
        }
    }
}

fn element_of(name: &str) -> Option<Captured> {
    match name {
        "h1" => Some(Captured::Heading(1)),
        "h2" => Some(Captured::Heading(2)),
        "h3" => Some(Captured::Heading(3)),
        "h4" => Some(Captured::Heading(4)),
        "h5" => Some(Captured::Heading(5)),
        "h6" => Some(Captured::Heading(6)),
        "td" | "th" => Some(Captured::Cell),
        "title" => Some(Captured::Title),
        "pre" | "listing" | "xmp" | "plaintext" => Some(Captured::Preformatted),
        _ => None,
    }
}

/// Elements that part the words before them from those in them.
fn breaks_line(name: &str) -> bool {
    PARAGRAPHS.contains(&name) || ["br", "li", "dt", "dd", "tr", "td", "th", "option", "pre"].contains(&name)
}
