//! The Markdown form: text as it is between lines that begin with a rule no line of the text begins with.

use super::piece::{Form, Header};
use crate::cite::Anchor;

/// The rule where no source has a line like ours.
pub(crate) const SHORTEST_RULE: &str = "===";

/// The whole context when no candidate is relevant.
pub(crate) const NOTHING_RELEVANT: &str = "=== [nothing relevant]\n";

/// The whole context when the budget is below the least that delivers something.
pub(crate) fn nothing_fits(least: usize) -> String {
    format!("{SHORTEST_RULE} [nothing fits below {least} tokens]\n")
}

/// The shortest rule, or one `=` more than the longest that opens a line of `texts` the way ours do.
pub(crate) fn rule<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let longest = texts.flat_map(lines).filter_map(rule_of_line).max();
    "=".repeat(longest.map_or(0, |longest| longest + 1).max(SHORTEST_RULE.len()))
}

/// Length of the rule that opens a line like one of ours.
fn rule_of_line(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches('=');
    let rule = line.len() - rest.len();
    (rule >= SHORTEST_RULE.len() && rest.starts_with(" [")).then_some(rule)
}

/// Everything that some reader takes for the end of a line.
pub(super) fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The lines of a text, by [`ends_line`]: the same as to split at it, but what surely ends none is passed in blocks.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut at = 0;
        while let Some(n) = first_that_may_end(&line.as_bytes()[at..]) {
            let letter = line[at + n..].chars().next().unwrap_or('\n');
            if ends_line(letter) {
                rest = Some(&line[at + n + letter.len_utf8()..]);
                return Some(&line[..at + n]);
            }
            at += n + letter.len_utf8();
        }
        rest = None;
        Some(line)
    })
}

/// The first byte that may begin a letter that ends a line; of two bytes or three others begin so too.
fn first_that_may_end(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    let may_end =
        |&byte: &u8| (byte.wrapping_sub(0xa) <= 3) | (byte.wrapping_sub(0x1c) <= 2) | (byte == 0xc2) | (byte == 0xe2);
    let has_none = |block: &&[u8; BLOCK]| block.iter().fold(0, |any, byte| any | u8::from(may_end(byte))) == 0;
    let passed = BLOCK * bytes.as_chunks().0.iter().take_while(has_none).count();
    bytes[passed..].iter().position(may_end).map(|n| passed + n)
}

/// `=== [1] document > heading > heading (rows 12-19, extracted bytes 120-560, cut)`. Lines are left out: bytes say it
/// nearer.
pub(crate) fn header(rule: &str, form: Form, header: &Header<'_>) -> String {
    let n = header.n;
    let cut = if header.cut { ", cut" } else { "" };
    let bytes = if header.source == "extracted" { "extracted bytes" } else { "bytes" };
    let place = place(header);
    let span = format!("{place}{bytes} {}-{}{cut}", header.span.start, header.span.end);
    let document = one_line(header.document);
    match form {
        Form::Full => {
            let path: String = header.path.iter().map(|heading| format!(" > {}", one_line(heading))).collect();
            format!("{rule} [{n}] {document}{path} ({span})\n")
        }
        Form::Document => format!("{rule} [{n}] {document} ({span})\n"),
        Form::Mark if header.cut => format!("{rule} [{n}] (cut)\n"),
        Form::Mark => format!("{rule} [{n}]\n"),
    }
}

/// `page 3, `, or nothing. A sheet that the document or a heading names already is not named again.
fn place(header: &Header<'_>) -> String {
    let is_named = |sheet: &str| header.document.contains(sheet) || header.path.contains(&sheet);
    let sheet = header.anchor.sheet.as_deref().filter(|sheet| !is_named(sheet)).map(one_line);
    let place = Anchor { sheet, line: None, ..header.anchor.clone() }.to_string();
    if place.is_empty() { place } else { place + ", " }
}

pub(crate) fn gap(rule: &str, omitted: u32) -> String {
    let chunks = if omitted == 1 { "chunk" } else { "chunks" };
    format!("{rule} [… {omitted} {chunks} omitted …]\n")
}

/// A name as it can stand in a line: what would end the line, or is invisible, is escaped.
fn one_line(name: &str) -> String {
    let escaped = |c: char| if c.is_control() || ends_line(c) { c.escape_unicode().to_string() } else { c.to_string() };
    name.trim().chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_longer_than_any_that_opens_a_line_of_the_sources() {
        for (text, expected) in [
            ("text", "==="),
            ("Title\n=====\n", "==="),
            ("say === [1]", "==="),
            ("== [1]", "==="),
            ("=== [1] mine", "===="),
            ("a\r=== [1]\n===== [… 2 chunks omitted …]", "======"),
            ("a\u{2028}=== [1]", "===="),
        ] {
            assert_eq!(rule([text].into_iter()), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_those_between_what_ends_one() {
        for text in ["", "a", "\n", "a\r\nb\n", "é\u{85}â\u{2028}…\u{b}x\u{1c}\u{1d}\u{a0}", "\u{2029}", "no end ·"]
        {
            assert_eq!(lines(text).collect::<Vec<_>>(), text.split(ends_line).collect::<Vec<_>>(), "{text:?}");
            for n in 20..70 {
                let text = format!("{}{text}{}", "x".repeat(n), "é".repeat(n));
                assert_eq!(lines(&text).collect::<Vec<_>>(), text.split(ends_line).collect::<Vec<_>>(), "{text:?}");
            }
        }
        for byte in 0..128_u8 {
            let text = format!("{}{}", "x".repeat(40), char::from(byte));
            assert_eq!(lines(&text).count(), text.split(ends_line).count(), "{byte}");
        }
    }

    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(one_line(" a\nb\u{7}é "), r"a\u{a}b\u{7}é");
    }
}
