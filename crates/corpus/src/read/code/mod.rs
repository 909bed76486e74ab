//! Source code by its syntax: functions, methods, classes and modules are the sections of a file.
//!
//! An item is a section if it begins its line and is long enough; the comments and attributes directly above it are its
//! own, and so are the lines without a letter or digit that follow it: closing brackets stay with what they close.
//! Inside a function there are no items. What the parser could not make sense of is passed over, and what stands in it
//! is looked at.
//! Source: tree-sitter and the grammars of its project.
//! Cost: linear in the text; the steps of the parser are counted, since it may go on for long where nothing fits.

mod item;
mod language;

use std::ops::{ControlFlow, Range};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use self::item::Named;
pub(crate) use self::language::Language;
use self::language::Role;
use crate::budget::{
    CODE_BYTES_MAX, Excess, ITEMS_MAX, NESTED_ITEMS_MAX, PARSER_STEPS_FREE, PARSER_STEPS_PER_BYTE_MAX, within,
};

/// The parser, in reports.
pub(super) const ENGINE: &str = "tree-sitter 0.26.13";

/// Steps of the parser between two looks at how many there were (tree-sitter's own constant).
const STEPS_PER_LOOK: u64 = 100;

/// Lines from which an item is a section of its own; shorter ones stay with what is around them, so that a dozen
/// getters are one chunk and not a dozen.
const LINES_MIN: usize = 5;

/// A section of a file of source code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// 1 for one that stands in no other.
    pub(super) level: u8,
    /// As a person would name it.
    pub(super) title: String,
    /// From its first word to its name.
    pub(super) heading: Range<usize>,
    /// The line after the one on which its contents are opened, if items may stand in it and nothing stands above it:
    /// the lines up to there are a heading.
    pub(super) opened: Option<usize>,
    /// From the first line of what belongs to it, to the next line with a word behind it.
    pub(super) span: Range<usize>,
}

/// The items of a text, in its order.
///
/// # Errors
/// It has too many, too deep in each other, or the parser does not come to an end in time.
pub(super) fn items(text: &str, language: Language) -> Result<Vec<Item>, Excess> {
    within("bytes of source code", text.len() as u64, CODE_BYTES_MAX)?;
    let language = if language == Language::C { Language::of_header(text) } else { language };
    let grammar = language.grammar();
    let tree = parse(text, &grammar)?;
    let roles = language.roles(&grammar);
    let mut finder = Finder { text, language, items: Vec::new(), open: Vec::new(), n_around: 0, lead: None };
    finder.walk(&tree, &roles)?;
    let mut items = finder.items;
    end_before_the_next(&mut items);
    Ok(items)
}

/// Ends items where the next one begins that stands in none of them: a comment above that one may open with a line
/// without a word.
fn end_before_the_next(items: &mut [Item]) {
    let mut before: Vec<usize> = Vec::new();
    for at in 0..items.len() {
        let (level, start) = (items[at].level, items[at].span.start);
        while let Some(ended) = before.pop_if(|before| items[*before].level >= level) {
            items[ended].span.end = items[ended].span.end.min(start);
        }
        before.push(at);
    }
}

fn parse(text: &str, grammar: &tree_sitter::Language) -> Result<Tree, Excess> {
    let limit = (text.len() as u64).saturating_mul(PARSER_STEPS_PER_BYTE_MAX).saturating_add(PARSER_STEPS_FREE);
    let mut n_steps = 0;
    let mut look = |_: &ParseState| {
        n_steps += STEPS_PER_LOOK;
        if n_steps > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut parser = Parser::new();
    let bytes = text.as_bytes();
    let tree = match parser.set_language(grammar) {
        Ok(()) => {
            let options = ParseOptions::new().progress_callback(&mut look);
            parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
        }
        Err(_) => None, // of a grammar of another time; a test sets each
    };
    tree.ok_or(Excess { what: "steps of the parser", n: n_steps, limit })
}

/// An item around the place that is looked at.
struct Open {
    is_section: bool,
    /// The end of its node.
    end: usize,
    /// The name that its methods are called after.
    class: Option<String>,
}

/// A node on the way to the one that is looked at.
struct Above {
    start: usize,
    role: Option<Role>,
    n_named: usize,
}

struct Finder<'t> {
    text: &'t str,
    language: Language,
    items: Vec<Item>,
    /// Items around the place that is looked at.
    open: Vec<Open>,
    /// Those of them that are sections.
    n_around: u64,
    /// The last comments and attributes in a row, each on lines of its own.
    lead: Option<Range<usize>>,
}

impl Finder<'_> {
    /// Looks at every node but those inside functions, in the order of the text.
    fn walk(&mut self, tree: &Tree, roles: &[Option<Role>]) -> Result<(), Excess> {
        let mut cursor = tree.walk();
        let mut above: Vec<Above> = Vec::new();
        loop {
            let node = cursor.node();
            let role = roles.get(usize::from(node.kind_id())).copied().flatten();
            let descends = match role {
                None | Some(Role::Wrapper | Role::WrapperOfOne) => true,
                Some(Role::Lead) => {
                    self.lead(node);
                    false
                }
                Some(role) => self.item(node, role, &above)?,
            };
            if descends && cursor.goto_first_child() {
                let n_named = if matches!(role, Some(Role::WrapperOfOne)) { node.named_child_count() } else { 0 };
                above.push(Above { start: node.start_byte(), role, n_named: n_named as usize });
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Ok(());
                }
                above.pop();
            }
        }
    }

    /// Takes a comment or attribute to those before it.
    fn lead(&mut self, node: Node<'_>) {
        let text = self.text.get(node.byte_range()).unwrap_or_default();
        let is_inner = self.language == Language::Rust && (text.starts_with("//!") || text.starts_with("/*!"));
        let span = node.start_byte()..node.start_byte() + text.trim_end().len();
        if is_inner || !self.begins_line(span.start) {
            return;
        }
        match &mut self.lead {
            Some(lead) if touches(self.text, lead.end, span.start) => lead.end = span.end,
            lead => *lead = Some(span),
        }
    }

    /// Takes a node that may be an item; true if there may be items in it.
    fn item(&mut self, node: Node<'_>, role: Role, above: &[Above]) -> Result<bool, Excess> {
        let (start, node_end) = (node.start_byte(), node.end_byte());
        self.close(start);
        let class = self.open.last().and_then(|open| open.class.as_deref());
        let Some(named) = item::name(node, role, self.language, class, self.text) else {
            return Ok(true);
        };
        let Named { name, title, end, holds, is_class } = named;
        let is_wrapper = |above: &&Above| match above.role {
            Some(Role::Wrapper | Role::Typedef) => true,
            Some(Role::WrapperOfOne) => above.n_named == 1,
            _ => false,
        };
        let outer = above.iter().rev().take_while(is_wrapper).last().map_or(start, |above| above.start);
        let lead = self.lead.take().filter(|lead| touches(self.text, lead.end, outer)).map(|lead| lead.start);
        let mut open = Open { is_section: false, end: node_end, class: is_class.then_some(name) };
        let first = line_start(self.text, lead.unwrap_or(outer));
        let is_behind = self.items.last().is_none_or(|last| last.span.start < first);
        if is_behind && self.begins_line(outer) && self.is_long(first, node_end) {
            let level = self.n_around + 1;
            within("classes and functions inside each other", level, NESTED_ITEMS_MAX)?;
            within("classes and functions", self.items.len() as u64 + 1, ITEMS_MAX)?;
            let opened = (holds && lead.is_none()).then(|| self.opened(node)).flatten();
            open.is_section = true;
            let span = first..end_of(self.text, node_end);
            self.items.push(Item { level: level as u8, title, heading: start..end.max(start), opened, span });
        }
        if holds {
            self.n_around += u64::from(open.is_section);
            self.open.push(open);
        }
        Ok(holds)
    }

    /// True if so many lines are between two places that they are a section.
    fn is_long(&self, start: usize, end: usize) -> bool {
        let feeds = memchr::memchr_iter(b'\n', &self.text.as_bytes()[start..end]);
        feeds.take(LINES_MIN - 1).count() == LINES_MIN - 1
    }

    /// The start of the line behind the one that opens the contents of a node.
    fn opened(&self, node: Node<'_>) -> Option<usize> {
        let body = node.child_by_field_name("body")?;
        match self.language {
            Language::Python => Some(line_start(self.text, body.start_byte())),
            _ => Some(line_end(self.text, body.start_byte())),
        }
        .filter(|&at| at < node.end_byte())
    }

    /// Leaves what ends before `at`.
    fn close(&mut self, at: usize) {
        while let Some(open) = self.open.pop_if(|open| open.end <= at) {
            self.n_around -= u64::from(open.is_section);
        }
    }

    /// True if nothing but white space is before `at` on its line.
    fn begins_line(&self, at: usize) -> bool {
        let start = line_start(self.text, at);
        start == 0 || self.text.as_bytes()[start - 1] == b'\n'
    }
}

/// The start of the white space before `at` on its line.
fn line_start(text: &str, at: usize) -> usize {
    let before = text.as_bytes()[..at].iter().rev();
    at - before.take_while(|byte| **byte != b'\n' && byte.is_ascii_whitespace()).count()
}

/// The place behind the line that `at` is on.
fn line_end(text: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |end| at + end + 1)
}

/// The start of the first line behind that of `at` that has a letter or digit.
fn end_of(text: &str, at: usize) -> usize {
    let mut end = if text.as_bytes()[..at].ends_with(b"\n") { at } else { line_end(text, at) };
    while end < text.len() {
        let next = line_end(text, end);
        if text[end..next].chars().any(char::is_alphanumeric) {
            break;
        }
        end = next;
    }
    end
}

/// True if at most a line end and white space are between two places.
fn touches(text: &str, from: usize, to: usize) -> bool {
    text.get(from..to)
        .is_some_and(|between| between.trim().is_empty() && between.bytes().filter(|&byte| byte == b'\n').count() <= 1)
}

#[cfg(test)]
mod tests;
