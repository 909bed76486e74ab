//! Lean marks: all the wrapping that a context has by default, one mark for each source.
//!
//! ```text
//! [1] Leave > Parents
//! the text, byte for byte
//! …
//! more of the same source
//! [2] costs.csv
//! …
//! ```
//!
//! The name is the title of the document, else the outermost heading above the piece, else the last part of the id, and
//! the innermost heading; a title that is the name of the file is none, and so is an id with a figure that names no
//! file (`doc_12`): the number says as much, and the citation of that number has the id. What the first lines of the
//! piece say is not said again. A name has at most [`NAME_TOKENS`]: first the heading goes, then the title is cut
//! behind a word. A line of the frame is a number in brackets at its beginning, or nothing but `…`; where a line of the
//! texts is such a line, every line of the frame begins with `=` more often than those.
//!
//! Tokens of the parts, measured between two lines of text, and of the forms that were weighed against them (the
//! WordPiece is that of all-minilm-l6-v2):
//!
//! | part | o200k | cl100k | WordPiece |
//! |---|---|---|---|
//! | `[1]` and a line end | 3 | 3 | 3 |
//! | `[1] Leave > Parents` and a line end | 7 | 7 | 6 |
//! | `…` and a line end | 1 | 1 | 1 |
//! | a line end behind a full stop, behind a word | 0, 1 | 0, 1 | 0 |
//! | `=[1]`, `=…`, where a text has such lines | 3, 2 | 3, 2 | 4, 2 |
//! | `<source n="1" title="Leave > Parents">`, `</source>`, `<gap/>` | 12, 3, 3 | 11, 3, 3 | 15, 4, 4 |
//! | weighed: `## [1] Leave`, where `[1] Leave` has 5, 5, 4 | 6 | 6 | 6 |
//! | weighed: `=== [1] Leave` | 6 | 6 | 7 |
//! | weighed: `[…]`, `<omitted/>` | 2, 4 | 2, 4 | 3, 4 |
//! | full: `=== [1] handbook/leave.md > Leave > Parents (bytes 120-560)` | 19 | 19 | 21 |
//! | full: `=== [… 3 chunks omitted …]` | 8 | 8 | 10 |
//!
//! Cost: a count of the name, twice where it is too long for its heading, some ten times where it is cut.

use super::xml;
use crate::candidate::Candidate;
use std::array;
use std::borrow::Cow;

/// Most tokens of a name: those of a line. What is longer is text and no title.
pub(crate) const NAME_TOKENS: i64 = 16;

/// Stands for what is left out.
const ELLIPSIS: &str = "…";

/// The whole context when no candidate is relevant.
pub(super) const NOTHING_RELEVANT: &str = "[nothing relevant]\n";

/// The whole context when the budget is below the least that delivers something.
pub(super) fn nothing_fits(least: usize) -> String {
    format!("[nothing fits below {least} tokens]\n")
}

/// Between two pieces of a source, in XML.
pub(super) const GAP: &str = "<gap/>";

/// Characters that may stand before a heading in its line.
const HEADS: [char; 3] = ['#', ' ', '\t'];

/// Lines of a piece that may say its title and its heading.
const FIRST_LINES: usize = 2;

/// The shortest rule: none, or one `=` more than the longest that opens a line of `texts` the way ours do.
pub(super) fn rule<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let longest = texts.flat_map(super::markdown::lines).filter_map(rule_of_line).max();
    "=".repeat(longest.map_or(0, |longest| longest + 1))
}

/// Length of the rule that opens a line like one of ours. Blanks and letters that nobody sees do not make it another.
fn rule_of_line(line: &str) -> Option<usize> {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || is_unseen(c));
    let rest = line.trim_start_matches('=');
    let is_mark = || {
        let (n, _) = rest.strip_prefix('[')?.split_once(']')?;
        (!n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit())).then_some(n)
    };
    (rest.trim_end() == ELLIPSIS || is_mark().is_some()).then_some(line.len() - rest.len())
}

/// The line above the first piece of a source; a name that is empty is said by the piece.
pub(super) fn mark(rule: &str, n: usize, name: &str) -> String {
    if name.is_empty() { format!("{rule}[{n}]\n") } else { format!("{rule}[{n}] {name}\n") }
}

/// The line between two pieces of a source.
pub(super) fn omission(rule: &str) -> String {
    format!("{rule}{ELLIPSIS}\n")
}

/// `<source n="1" title="Leave > Parents">`; the text follows without a line break.
pub(super) fn tag(n: usize, name: &str) -> String {
    let mut tag = format!("<source n=\"{n}\"");
    if !name.is_empty() {
        xml::attribute(&mut tag, "title", name);
    }
    tag + ">"
}

/// The name in the mark of a source, of its first piece and the `text` that this delivers; empty where the text says
/// it.
pub(crate) fn name(chunk: &Candidate, text: &str, tokens: &dyn Fn(&str) -> i64) -> String {
    let file = chunk.document.rsplit(['/', '\\']).map(one_line).find(|part| !part.is_empty()).unwrap_or_default();
    let stem = file.rsplit_once('.').map_or(&*file, |(stem, _)| stem);
    let outermost = || chunk.path.first().map(|heading| one_line(heading)).filter(|heading| !heading.is_empty());
    let title = match one_line(&chunk.title) {
        title if title.is_empty() => outermost().unwrap_or_else(|| if is_number(&file) { title } else { file.clone() }),
        title if title == stem => outermost().unwrap_or(title),
        title => title,
    };
    let heading = chunk.path.last().map(|heading| one_line(heading)).filter(|heading| *heading != title);
    let mut lines = super::markdown::lines(text).filter(|line| !line.trim().is_empty());
    let first_lines: [Option<&str>; FIRST_LINES] = array::from_fn(|_| lines.next());
    let is_said = |name: &str| {
        let says = |line: &&str| line.trim_start_matches(HEADS).split_whitespace().eq(name.split(' '));
        first_lines.iter().flatten().any(says)
    };
    let title = Some(title).filter(|title| !title.is_empty() && !is_said(title));
    let heading = heading.filter(|heading| !heading.is_empty() && !is_said(heading));
    let fits = |name: &str| tokens(name) <= NAME_TOKENS;
    match (title, heading) {
        (None, None) => String::new(),
        (None, Some(heading)) => clipped(&heading, &fits),
        (Some(title), None) => clipped(&title, &fits),
        (Some(title), Some(heading)) => {
            let both = format!("{title} > {heading}");
            if fits(&both) { both } else { clipped(&title, &fits) }
        }
    }
}

/// Says if the last part of an id only tells it from others, as numbers and hashes do. Files have an ending, and names
/// no figure.
fn is_number(id: &str) -> bool {
    !id.contains('.') && id.contains(|c: char| c.is_ascii_digit())
}

/// The name, or as many of its words as fit with `…` behind them; of a first word that is too long, its letters. One
/// letter at least.
fn clipped(name: &str, fits: &dyn Fn(&str) -> bool) -> String {
    if fits(name) {
        return name.to_owned();
    }
    let cut = |end: usize| format!("{}{ELLIPSIS}", &name[..end]);
    let longest = |ends: &[usize]| ends.partition_point(|&end| fits(&cut(end))).checked_sub(1).map(|at| ends[at]);
    let words: Vec<usize> = name.match_indices(' ').map(|(at, _)| at).collect();
    if let Some(end) = longest(&words) {
        return cut(end);
    }
    let letters: Vec<usize> = name.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    longest(&letters).or(letters.first().copied()).map_or_else(String::new, cut)
}

/// A name as it can stand in a line: white space once, without what ends a line, is invisible, or turns the direction
/// of what follows.
fn one_line(name: &str) -> Cow<'_, str> {
    let is_spaced_once = !name.starts_with(' ') && !name.ends_with(' ') && !name.contains("  ");
    if is_spaced_once && name.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(name); // as nearly all names are
    }
    let is_gone = |c: &char| (c.is_control() && !c.is_whitespace()) || is_unseen(*c);
    let blank = |c: char| if super::markdown::ends_line(c) { ' ' } else { c };
    let name: String = name.chars().filter(|c| !is_gone(c)).map(blank).collect();
    Cow::Owned(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Says if a letter has no shape of its own: it turns the direction of what follows, or has no width. The joiners,
/// which give shape to others, are none.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::candidate;

    fn words(text: &str) -> i64 {
        text.split_whitespace().count() as i64
    }

    fn letters(text: &str) -> i64 {
        text.chars().count() as i64
    }

    #[track_caller]
    fn check(title: &str, path: &[&str], text: &str, expected: &str) {
        let chunk = Candidate {
            title: title.into(),
            path: path.iter().map(|&heading| heading.into()).collect(),
            ..candidate("notes/leave.md", 0, text, 0.5)
        };
        assert_eq!(name(&chunk, text, &words), expected);
    }

    #[test]
    fn a_name_is_title_and_heading_without_what_the_piece_says_itself() {
        check("Leave", &["Leave", "Parents"], "They may.", "Leave > Parents");
        check("Leave", &["Leave", "Parents"], "\n## Parents\n\nThey may.", "Leave");
        check("Leave", &["Leave"], "# Leave\nAll of it.", "");
        check("Leave", &["Leave", "Parents"], "# Leave\n\n## Parents\nThey may.", "");
        check("Leave", &["Parents"], "Leave\nThey may.", "Parents");
        check("", &[], "Text.", "leave.md");
        check("", &["Leave", "Parents"], "They may.", "Leave > Parents");
        check("leave", &["For parents", "Fathers"], "They may.", "For parents > Fathers");
        check("leave", &[], "They may.", "leave");
        check(" \u{202e}\n", &["\t"], "Text.", "leave.md");
    }

    #[test]
    fn an_id_that_is_a_number_is_no_name() {
        let named = |document: &str, path: &[&str]| {
            let path = path.iter().map(|&heading| heading.into()).collect();
            let chunk = Candidate { path, ..candidate(document, 0, "They may.", 0.5) };
            name(&chunk, "They may.", &words)
        };
        assert_eq!(named("doc_1_chunk_0", &[]), "");
        assert_eq!(named("rows/12", &[]), "");
        assert_eq!(named("rows/12.json", &[]), "12.json");
        assert_eq!(named("people/Neil_Peart", &[]), "Neil_Peart");
        assert_eq!(named("rows/12", &["Leave", "Parents"]), "Leave > Parents");
    }

    #[test]
    fn a_plain_name_stays_as_it_is() {
        for name in ["", " ", "a", " a", "a ", "a b", "a  b", "a\tb", "a\u{7f}b", "~!", "é"] {
            assert_eq!(one_line(name), one_line(&format!("{name}\u{200b}")), "{name:?}");
        }
    }

    #[test]
    fn what_is_no_name_is_made_one() {
        check("A [1]\n[2] B\u{202e}\u{7}\u{2028}c", &[], "Text.", "A [1] [2] B c");
        check("דוח שנתי", &["פרק \u{200f}א"], "Text.", "דוח שנתי > פרק א");
        let long = "word ".repeat(2_000);
        check("Leave", &[&long], "Text.", "Leave");
        check(&long, &[], "Text.", &format!("{}…", ["word"; 16].join(" ")));
    }

    #[test]
    fn a_name_without_words_is_cut_at_a_letter_and_has_one_at_least() {
        assert_eq!(clipped(&"é".repeat(10_000), &|name| letters(name) <= 5), "éééé…");
        assert_eq!(clipped("one two three", &|name| letters(name) <= 9), "one two…");
        assert_eq!(clipped("one two three", &|_| false), "o…");
        assert_eq!(clipped("", &|_| false), "");
    }

    #[test]
    fn the_rule_is_longer_than_any_that_opens_a_line_of_the_sources() {
        for (text, expected) in [
            ("text", ""),
            ("see [1]", ""),
            ("[a] or []", ""),
            ("[12] Smith 2003", "="),
            ("a\r…\nb", "="),
            ("… and so on", ""),
            ("==[1] mine\n=…", "==="),
            ("a\u{2028}[1]", "="),
            (" \u{200b}[1] mine", "="),
        ] {
            assert_eq!(rule([text].into_iter()), expected, "{text:?}");
        }
    }
}
