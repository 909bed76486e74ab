//! What is delivered: pieces between the lines or tags of a form.

use super::format::Format;
use super::piece::{Header, Piece};
use super::{markdown, xml};
use crate::candidate::Candidate;
use std::borrow::Cow;

/// The text that the budget counts: the context as Markdown or XML. JSON carries the Markdown.
pub(crate) fn render(format: Format, candidates: &[&Candidate], pieces: &[Piece]) -> String {
    let texts: Vec<Cow<'_, str>> = pieces.iter().map(|piece| piece.text(candidates)).collect();
    let rule =
        if format == Format::Xml { String::new() } else { markdown::rule(texts.iter().map(|text| text.as_ref())) };
    let mut out = String::from(opening(format));
    for (at, (piece, text)) in pieces.iter().zip(&texts).enumerate() {
        if piece.omitted > 0 {
            out.push_str(&gap(format, &rule, piece.omitted));
        }
        out.push_str(&header(format, &rule, &piece.header(candidates, at + 1)));
        out.push_str(&body(format, text));
        out.push_str(footer(format, text));
    }
    out.push_str(ending(format));
    out
}

/// The line that stands for a context without sources.
pub(crate) fn nothing_relevant(format: Format) -> &'static str {
    match format {
        Format::Markdown | Format::Json => markdown::NOTHING_RELEVANT,
        Format::Xml => xml::NOTHING_RELEVANT,
    }
}

pub(crate) fn opening(format: Format) -> &'static str {
    if format == Format::Xml { xml::OPENING } else { "" }
}

pub(crate) fn ending(format: Format) -> &'static str {
    if format == Format::Xml { xml::ENDING } else { "" }
}

pub(crate) fn header(format: Format, rule: &str, header: &Header<'_>) -> String {
    match format {
        Format::Markdown | Format::Json => markdown::header(rule, header),
        Format::Xml => xml::header(header),
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

pub(crate) fn gap(format: Format, rule: &str, omitted: u32) -> String {
    match format {
        Format::Markdown | Format::Json => markdown::gap(rule, omitted),
        Format::Xml => xml::gap(omitted),
    }
}
