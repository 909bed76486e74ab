//! What is delivered: pieces between the lines or tags of a form.

use super::format::Format;
use super::marks::Marks;
use super::order::Order;
use super::piece::{Form, Head, Header, Piece, numbers};
use super::{lean, markdown, xml};
use crate::candidate::Candidate;
use std::borrow::Cow;

/// The form and the marks of a context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) format: Format,
    pub(crate) order: Order,
    pub(crate) marks: Marks,
}

impl Layout {
    /// Pieces of a source that follow each other stand under one mark.
    pub(crate) fn shares_marks(self) -> bool {
        self.marks == Marks::Lean && self.order == Order::Document
    }
}

/// The text that the budget counts: the context as Markdown or XML. JSON carries the Markdown.
pub(crate) fn render(format: Format, candidates: &[&Candidate], pieces: &[Piece]) -> String {
    let texts: Vec<Cow<'_, str>> = pieces.iter().map(|piece| piece.text(candidates)).collect();
    let rule = rule(format, pieces, &texts);
    let mut out = String::from(opening(format));
    for (at, ((piece, text), n)) in pieces.iter().zip(&texts).zip(numbers(candidates, pieces)).enumerate() {
        match &piece.head {
            Head::Header(form) => {
                if piece.omitted > 0 {
                    out.push_str(&gap(format, &rule, piece.omitted));
                }
                out.push_str(&header(format, &rule, *form, &piece.header(candidates, n)));
            }
            Head::Source(name) => out.push_str(&mark(format, &rule, n, name)),
            Head::Same => out.push_str(&omission(format, &rule)),
        }
        out.push_str(&body(format, text));
        if format != Format::Xml || pieces.get(at + 1).is_none_or(|next| next.head != Head::Same) {
            out.push_str(footer(format, text));
        }
    }
    out.push_str(ending(format));
    out
}

fn rule(format: Format, pieces: &[Piece], texts: &[Cow<'_, str>]) -> String {
    let texts = texts.iter().map(AsRef::as_ref);
    match (format, pieces.first().map(|piece| &piece.head)) {
        (Format::Xml, _) | (_, None) => String::new(),
        (Format::Markdown | Format::Json, Some(Head::Header(_))) => markdown::rule(texts),
        (Format::Markdown | Format::Json, Some(Head::Source(_) | Head::Same)) => lean::rule(texts),
    }
}

/// The line that stands for a context without sources.
pub(crate) fn nothing_relevant(layout: Layout) -> &'static str {
    match (layout.format, layout.marks) {
        (Format::Markdown | Format::Json, Marks::Full) => markdown::NOTHING_RELEVANT,
        (Format::Markdown | Format::Json, Marks::Lean) => lean::NOTHING_RELEVANT,
        (Format::Xml, _) => xml::NOTHING_RELEVANT,
    }
}

/// The line that stands for a context without sources, as the budget is below the least that delivers something.
pub(crate) fn nothing_fits(layout: Layout, least: usize) -> String {
    match (layout.format, layout.marks) {
        (Format::Markdown | Format::Json, Marks::Full) => markdown::nothing_fits(least),
        (Format::Markdown | Format::Json, Marks::Lean) => lean::nothing_fits(least),
        (Format::Xml, _) => xml::nothing_fits(least),
    }
}

pub(crate) fn opening(format: Format) -> &'static str {
    if format == Format::Xml { xml::OPENING } else { "" }
}

pub(crate) fn ending(format: Format) -> &'static str {
    if format == Format::Xml { xml::ENDING } else { "" }
}

/// The header of a piece, of full marks.
pub(crate) fn header(format: Format, rule: &str, form: Form, header: &Header<'_>) -> String {
    match format {
        Format::Markdown | Format::Json => markdown::header(rule, form, header),
        Format::Xml => xml::header(form, header),
    }
}

/// The mark of a source, of lean marks.
pub(crate) fn mark(format: Format, rule: &str, n: usize, name: &str) -> String {
    match format {
        Format::Markdown | Format::Json => lean::mark(rule, n, name),
        Format::Xml => lean::tag(n, name),
    }
}

/// The line between two pieces of a source, of lean marks.
pub(crate) fn omission(format: Format, rule: &str) -> String {
    match format {
        Format::Markdown | Format::Json => lean::omission(rule),
        Format::Xml => lean::GAP.to_owned(),
    }
}

pub(crate) fn body(format: Format, text: &str) -> Cow<'_, str> {
    if format == Format::Xml { xml::escape(text) } else { Cow::Borrowed(text) }
}

/// The end of a piece; in Markdown the end of its last line, where the text has none.
pub(crate) fn footer(format: Format, text: &str) -> &'static str {
    match format {
        Format::Xml => xml::FOOTER,
        Format::Markdown | Format::Json if text.ends_with('\n') => "",
        Format::Markdown | Format::Json => "\n",
    }
}

/// The line that stands for chunks left out, of full marks.
pub(crate) fn gap(format: Format, rule: &str, omitted: u32) -> String {
    match format {
        Format::Markdown | Format::Json => markdown::gap(rule, omitted),
        Format::Xml => xml::gap(omitted),
    }
}
