//! The XML form: one element a piece, its text escaped.

use super::piece::{Form, Header};
use crate::cite::Extent;
use std::borrow::Cow;

/// The whole context when no candidate is relevant.
pub(crate) const NOTHING_RELEVANT: &str = "<context><nothing-relevant/></context>\n";

/// The whole context when the budget is below the least that delivers something.
pub(crate) fn nothing_fits(least: usize) -> String {
    format!("<context><nothing-fits below=\"{least}\"/></context>\n")
}

pub(crate) const OPENING: &str = "<context>\n";
pub(crate) const ENDING: &str = "</context>\n";
pub(crate) const FOOTER: &str = "</source>\n";

/// `<source n="1" document="…" path="a > b" page="3" bytes="120-560" cut="true">`; the text follows without a line
/// break.
pub(crate) fn header(form: Form, header: &Header<'_>) -> String {
    let mut tag = format!("<source n=\"{}\"", header.n);
    if form != Form::Mark {
        attribute(&mut tag, "document", header.document);
    }
    if form == Form::Full && !header.path.is_empty() {
        attribute(&mut tag, "path", &header.path.join(" > "));
    }
    if form != Form::Mark {
        let anchor = &header.anchor;
        let numbers = |extent: Option<Extent>| extent.map(|extent| extent.to_string());
        let (page, row, line) = (numbers(anchor.page), numbers(anchor.row), numbers(anchor.line));
        for (name, value) in [("page", page), ("sheet", anchor.sheet.clone()), ("row", row), ("line", line)] {
            value.iter().for_each(|value| attribute(&mut tag, name, value));
        }
        let name = if header.source == "extracted" { "extracted-bytes" } else { "bytes" };
        attribute(&mut tag, name, &format!("{}-{}", header.span.start, header.span.end));
    }
    if header.cut {
        tag.push_str(" cut=\"true\"");
    }
    tag + ">"
}

pub(crate) fn gap(omitted: u32) -> String {
    format!("<omitted chunks=\"{omitted}\"/>\n")
}

pub(super) fn attribute(tag: &mut String, name: &str, value: &str) {
    tag.push_str(&format!(
        " {name}=\"{}\"",
        escape(value).replace('"', "&quot;").replace('\n', "&#10;").replace('\t', "&#9;")
    ));
}

/// Stands for a character that XML cannot say, not even as a reference: most control characters, U+FFFE and U+FFFF.
/// Spans are of the document, which has it.
const UNSAYABLE: char = char::REPLACEMENT_CHARACTER;

/// Text between tags. A carriage return would be read as a line feed, and the control characters behind ASCII are
/// easily lost, so they are written as references.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let is_unsayable =
        |c: char| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    let special =
        |c: char| matches!(c, '&' | '<' | '>') || is_unsayable(c) || (c.is_control() && !matches!(c, '\n' | '\t'));
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c if is_unsayable(c) => escaped.push(UNSAYABLE),
            c if special(c) => escaped.push_str(&format!("&#{};", u32::from(c))),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_a_parser_is_escaped() {
        assert_eq!(escape("a < b && c > d\r\n\t\u{85}\"é"), "a &lt; b &amp;&amp; c &gt; d&#13;\n\t&#133;\"é");
        assert!(matches!(escape("plain \"text\"\n"), Cow::Borrowed(_)));
        let mut tag = String::new();
        attribute(&mut tag, "path", "a\"<b>\n\t&");
        assert_eq!(tag, " path=\"a&quot;&lt;b&gt;&#10;&#9;&amp;\"");
    }

    #[test]
    fn what_xml_cannot_say_is_replaced_and_the_rest_is_what_a_parser_reads() {
        // XML 1.0, production 2: Char.
        let is_char = |c: u32| matches!(c, 9 | 10 | 13 | 0x20..=0xd7ff | 0xe000..=0xfffd | 0x1_0000..);
        let all = (0..=0x10_ffff).filter_map(char::from_u32);
        for c in all {
            let escaped = escape(&c.to_string()).into_owned();
            let reference = escaped.strip_prefix("&#").map(|rest| rest.trim_end_matches(';').parse().unwrap());
            let said = reference.unwrap_or_else(|| u32::from(escaped.chars().next().unwrap()));
            assert!(is_char(said), "{c:?} is written {escaped:?}");
            let named = ['&', '<', '>'].contains(&c);
            let expected = if is_char(u32::from(c)) { u32::from(c) } else { 0xfffd };
            assert!(named || said == expected, "{c:?} is written {escaped:?}");
        }
    }
}
