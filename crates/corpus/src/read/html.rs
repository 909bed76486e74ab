//! HTML: the visible text, with headings as sections, list items marked, table rows as lines.
//!
//! The text is extracted: html5ever keeps no positions, so there is no map to the source. Scripts, styles and
//! navigation are left out; everything else that a browser shows of the body is kept.
//! Cost: two walks over the tree, without recursion. html5ever takes the square of the nesting depth and of an
//! element's attributes, and copies open formatting into every paragraph: it is fed in pieces, and given up over a
//! budget.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use ego_tree::NodeId;
use html5ever::TokenizerResult;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tokenizer::{Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts, TreeSink};
use scraper::{Html, HtmlTreeSink, Node};

use super::{Decoded, Metadata, file_stem};
use crate::anchor::Anchor;
use crate::budget::{ATTRIBUTES_MAX, Excess, FREE_BYTES, NESTED_ELEMENTS_MAX, NODES_PER_BYTE_MAX, within};
use crate::document::{BlockKind, Document, TextKind, blocks_from_starts};
use crate::format::Format;
use crate::links::{self, LinkKind, Markup};
use crate::metadata::{Place, add_value};
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

/// Bytes that html5ever is given between two looks at the tree it makes of them.
const PIECE_BYTES: usize = 1024;

pub(super) fn document(source: Decoded, origin: &str) -> Result<Document, Excess> {
    let html = tree(&source.text)?;
    let layout = layout_tables(&html);
    let mut writer = Writer::new(layout);
    walk(&html, |step| writer.step(step));
    writer.links.write_captured(writer.text.len()..writer.text.len()); // in a row of empty cells
    let Writer { text, starts, outline, title, first_heading, metadata, links: Anchors { markup, .. }, .. } = writer;
    let title = (title.filter(|title| !title.is_empty()))
        .or_else(|| first_heading.and_then(|(level, text)| (level == 1).then_some(text)))
        .unwrap_or_else(|| file_stem(origin));
    let mut warnings = source.warnings;
    if text.is_empty() && !source.text.is_empty() {
        warnings.push("no visible text".into());
    }
    let sections = outline.finish(text.len());
    let blocks = blocks_from_starts(&text, starts)?;
    let kind = TextKind::Extracted;
    let mut document = Document {
        id: origin.into(),
        origin: origin.into(),
        format: Format::Html,
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

/// The tree of a page, as a browser makes it.
fn tree(source: &str) -> Result<Html, Excess> {
    let builder = TreeBuilder::new(HtmlTreeSink::new(Html::new_document()), TreeBuilderOpts::default());
    let tokenizer = Tokenizer::new(Watched::new(builder), TokenizerOpts::default());
    let (mut rest, mut n_nodes) = (source, 0);
    let nodes_max = source.len() as u64 * NODES_PER_BYTE_MAX + FREE_BYTES / 64;
    let input = BufferQueue::default();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = behind;
        input.push_back(piece.into());
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        tokenizer.sink.look(piece)?;
        let html = tokenizer.sink.builder.sink.0.borrow();
        let nodes = html.tree.nodes();
        within("nodes", nodes.len() as u64, nodes_max)?;
        let n_known = std::mem::replace(&mut n_nodes, nodes.len());
        let deepest = nodes.skip(n_known).map(|node| node.ancestors().count()).max();
        within("elements inside each other", deepest.unwrap_or(0) as u64, NESTED_ELEMENTS_MAX)?;
    }
    tokenizer.end();
    Ok(tokenizer.sink.builder.sink.finish())
}

type Builder = TreeBuilder<NodeId, HtmlTreeSink>;

/// Counts attributes on their way to the tree.
struct Watched {
    builder: Builder,
    /// Most attributes of an element; those of `html` and `body` come from all tags of these names.
    n_attributes: Cell<u64>,
    n_of_page: Cell<u64>,
    has_token: Cell<bool>,
    /// Words since the last token: attributes of a tag that is still open, perhaps.
    n_words: Cell<u64>,
}

/// Words of one tag, comment or attribute that may be attributes, before it has ended and says what it is.
const OPEN_WORDS_MAX: u64 = 16 * ATTRIBUTES_MAX;

impl Watched {
    fn new(builder: Builder) -> Self {
        let (n_attributes, n_of_page, n_words) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Self { builder, n_attributes, n_of_page, has_token: Cell::new(false), n_words }
    }

    /// Looks at the counts after a piece of the page.
    fn look(&self, piece: &str) -> Result<(), Excess> {
        const WHAT: &str = "attributes of one element";
        within(WHAT, self.n_attributes.get(), ATTRIBUTES_MAX)?;
        let words = piece.bytes().filter(|byte| byte.is_ascii_whitespace() || b"/\"'".contains(byte)).count() as u64;
        let before = if self.has_token.take() { 0 } else { self.n_words.get() };
        self.n_words.set(before + words);
        within(WHAT, self.n_words.get(), OPEN_WORDS_MAX)
    }
}

impl TokenSink for Watched {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line_number: u64) -> TokenSinkResult<NodeId> {
        self.has_token.set(true);
        if let Token::TagToken(tag) = &token {
            let n = tag.attrs.len() as u64;
            let is_of_page = ["html", "body"].contains(&&*tag.name);
            self.n_of_page.set(self.n_of_page.get() + if is_of_page { n } else { 0 });
            self.n_attributes.set(self.n_attributes.get().max(n).max(self.n_of_page.get()));
        }
        self.builder.process_token(token, line_number)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// A node is met when it opens, with its number in tree order, and once more when it closes.
#[derive(Clone, Copy)]
enum Step<'a> {
    Open(usize, &'a Node),
    Close(&'a Node),
}

/// Visits the tree in order; where `visit` answers no to an opening node, what it holds is passed over.
fn walk<'a>(html: &'a Html, mut visit: impl FnMut(Step<'a>) -> bool) {
    let mut node = html.tree.root();
    let mut number = 0;
    loop {
        number += 1;
        let enters = visit(Step::Open(number, node.value()));
        if let Some(child) = node.first_child().filter(|_| enters) {
            node = child;
            continue;
        }
        if enters {
            visit(Step::Close(node.value()));
        }
        loop {
            if let Some(next) = node.next_sibling() {
                node = next;
                break;
            }
            let Some(parent) = node.parent() else { return };
            node = parent;
            visit(Step::Close(node.value()));
        }
    }
}

fn is_dropped(node: &Node) -> bool {
    node.as_element().is_some_and(|element| DROPPED.contains(&element.name()))
}

/// The numbers of the tables that are there for layout: their cells hold headings, lists, tables …
fn layout_tables(html: &Html) -> HashSet<usize> {
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
struct Anchors {
    markup: Markup,
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
    fn write_captured(&mut self, span: Range<usize>) {
        for target in std::mem::take(&mut self.captured) {
            self.markup.add(LinkKind::Html, &target, span.clone());
        }
    }
}

struct Writer {
    text: String,
    starts: Vec<(usize, BlockKind, u32)>,
    outline: Outline,
    title: Option<String>,
    first_heading: Option<(u8, String)>,
    metadata: Metadata,
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
    links: Anchors,
}

impl Writer {
    fn new(layout: HashSet<usize>) -> Self {
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

    fn step(&mut self, step: Step<'_>) -> bool {
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

#[cfg(test)]
mod tests {
    use super::super::{Format, parse};
    use super::*;
    use crate::format::ReadAs;

    #[track_caller]
    fn check(html: &str, text: &str) {
        let document = parse(html.into(), "docs/page.html", ReadAs::Auto).unwrap();
        assert_eq!(document.text, text);
        assert_eq!(document.kind, TextKind::Extracted);
    }

    #[test]
    fn paragraphs_and_inline_markup() {
        check(
            "<p>One <b>t</b>wo<br>three  \n four<div>five<p>six</div>seven",
            "One two\nthree four\n\nfive\n\nsix\n\nseven",
        );
    }

    #[test]
    fn what_is_not_text_is_dropped() {
        let html = "<head><title>T</title><style>s</style></head><nav>n</nav><script>x</script><p>a<svg><title>v</title></svg><!-- c -->\
            <noscript>no</noscript><template>t</template> b";
        check(html, "a b");
        assert_eq!(parse(html.into(), "p.html", Format::Html).unwrap().title, "T");
    }

    #[test]
    fn lists() {
        check("<ul><li>a<li><p>b</p><ol start=3><li>c<li>d</ol></ul>end", "- a\n\n- b\n\n  3. c\n  4. d\n\nend");
        check("<dl><dt>term<dd>what it is</dl>", "term\n  what it is");
    }

    #[test]
    fn data_tables_have_a_row_a_line() {
        check(
            "<table><caption>Cap</caption><tr><th>a<th>b<tr><td><p>1</p><td></td><tr><td></table>after",
            "Cap\na | b\n1 | \n\nafter",
        );
    }

    #[test]
    fn layout_tables_are_read_cell_by_cell() {
        check("<table><tr><td><h2>H</h2>x<td>y<table><tr><td>1<td>2</table></table>", "H\n\nx\n\ny\n\n1 | 2");
    }

    #[test]
    fn preformatted_text_is_kept() {
        check("<p>see<pre>\n\n  a\n    b <b>c</b>\n</pre>", "see\n\n  a\n    b c");
    }

    #[test]
    fn headings_are_sections() {
        let html = "<h1>A\n<i>b</i></h1><p>x<h3>C</h3>y<h2>D</h2>";
        let document = parse(html.into(), "p.html", Format::Html).unwrap();
        let found: Vec<(u8, &str, &str)> = document.sections[1..]
            .iter()
            .map(|section| (section.level, section.heading.as_str(), &document.text[section.span.clone()]))
            .collect();
        assert_eq!(found, [(1, "A b", "A b\n\nx\n\nC\n\ny\n\nD"), (3, "C", "C\n\ny\n\n"), (2, "D", "D")]);
        assert_eq!(document.title, "A b");
    }

    #[test]
    fn deep_nesting_and_no_text() {
        check(&("<div>".repeat(1_000) + "x"), "x");
        assert_eq!(parse("<p></p>".into(), "p.html", Format::Html).unwrap().warnings, ["no visible text"]);
    }

    #[test]
    fn a_page_that_costs_its_square_is_refused() {
        let over = |html: String| parse(html.into(), "p.html", Format::Html).unwrap_err().to_string();
        let words = "elements inside each other, the limit for one document is 1024";
        assert!(over("<div>".repeat(50_000)).contains(words));
        // Nodes behind the body hang from the root, wherever the parser is.
        assert!(over("<div></body><!---->".repeat(20_000)).contains(words));
        let formats: String = (0..900).map(|n| format!("<b id={n}>")).collect();
        assert!(over(format!("<p>{formats}</p>{}", "<p>x".repeat(50_000))).contains(" nodes, the limit"));
        let words = "attributes of one element, the limit for one document is 4096";
        let attributes = |n: usize| (0..n).map(|n| format!(" a{n}")).collect::<String>();
        assert_eq!(over(format!("<p{}>x", attributes(5_000))), format!("p.html: 5000 {words}"));
        assert!(over(format!("<svg><style><p a='>'{}>x", attributes(5_000).replace(' ', "/"))).ends_with(words));
        assert!(over(format!("<p{}", attributes(100_000))).contains("attributes of one element"));
        assert!(over((0..5_000).map(|n| format!("<body a{n}>")).collect()).ends_with(words));
    }

    #[test]
    fn a_page_in_pieces_is_the_page() {
        // Pieces end inside characters, entities, tags, comments and between the two bytes of a line's end.
        let unit = "<p title='a b'>Größe &amp; &#x1F30A;<!-- c -->\r\n<b>fett</b> <script>if (a<b) {}</script></p>";
        for shift in 0..unit.len() {
            let page = format!("{}{}", "x".repeat(shift), unit.repeat(30));
            let whole = Html::parse_document(&page);
            assert_eq!(tree(&page).unwrap(), whole, "{shift}");
        }
    }
}
