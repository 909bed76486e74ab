//! Titles of reStructuredText: a line at the margin above an underline, or between two lines that are alike.
//!
//! Levels are numbered in the order in which the styles (character, with or without an overline) appear. What stands in
//! directives, literal blocks and tables is indented or begins with marks that no title has.
//! Source: the reStructuredText Markup Specification of docutils, "Sections", and its parser where that takes more: an
//! underline that is too short still makes a title from four characters on.

use std::ops::Range;

/// An underline of so many characters makes a title of any line above it.
const UNDERLINE_MIN: usize = 4;

/// The beginnings of lines that are no title whatever stands below them: items of lists, directives and targets, line
/// blocks and grid tables, doctests.
const NO_TITLE: [&str; 11] = ["- ", "* ", "+ ", "• ", ".. ", "__ ", "| ", "+-", "+=", ">>> ", "... "];

/// A title.
#[derive(Debug)]
pub(super) struct Title {
    pub(super) level: u8,
    pub(super) text: String,
    /// Its lines, from the overline or title to the underline.
    pub(super) span: Range<usize>,
    /// After its last line.
    pub(super) end: usize,
}

/// The titles of a text, in its order.
pub(super) fn titles(text: &str) -> Vec<Title> {
    let lines = Lines::of(text);
    let (mut titles, mut styles) = (Vec::new(), Vec::new());
    // A title begins the text, or follows a blank line or another title.
    let (mut at, mut is_free) = (0, true);
    while at < lines.count() {
        let found = if is_free { lines.title(at) } else { None };
        let Some((style, title, last)) = found else {
            is_free = lines.line(at).is_empty() || lines.line(at).starts_with(".. ");
            at += 1;
            continue;
        };
        let known = styles.iter().position(|known| *known == style).unwrap_or_else(|| {
            styles.push(style);
            styles.len() - 1
        });
        let level = u8::try_from(known + 1).unwrap_or(u8::MAX);
        let span = lines.starts[at]..lines.starts[last] + lines.line(last).len();
        titles.push(Title { level, text: lines.line(title).trim().to_owned(), span, end: lines.starts[last + 1] });
        (at, is_free) = (last + 1, true);
    }
    titles
}

/// The document's title: a first title before any text whose style no other one has.
pub(super) fn title(text: &str, titles: &[Title]) -> Option<String> {
    let first = titles.first()?;
    let before = text[..first.span.start].split_inclusive('\n').all(|line| {
        let line = line.trim_start_matches('\u{feff}');
        line.trim().is_empty() || line.starts_with("..") || line.starts_with(' ')
    });
    let alone = titles[1..].iter().all(|title| title.level > first.level);
    (before && alone).then(|| first.text.clone())
}

/// The character of a title's lines, and if it has one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Style(char, Above);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    Line,
    Nothing,
}

struct Lines<'t> {
    text: &'t str,
    /// Where lines begin, and the end of the text.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let mut starts = vec![0];
        starts.extend(text.split_inclusive('\n').scan(0, |at, line| {
            *at += line.len();
            Some(*at)
        }));
        Self { text, starts }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// A line without the white space at its end; empty behind the last.
    fn line(&self, at: usize) -> &'t str {
        let (start, end) = (self.starts.get(at), self.starts.get(at + 1));
        start.zip(end).map_or("", |(&start, &end)| self.text[start..end].trim_end())
    }

    /// The style of a title that begins on the line `at`, the line of its text, and its last line.
    fn title(&self, at: usize) -> Option<(Style, usize, usize)> {
        let (first, second) = (self.line(at).trim_start_matches('\u{feff}'), self.line(at + 1));
        if let Some(mark) = adornment(first) {
            let fits = first.chars().count() >= second.trim().chars().count().min(UNDERLINE_MIN);
            let is_title = fits && !second.is_empty() && adornment(second).is_none() && self.line(at + 2) == first;
            return is_title.then_some((Style(mark, Above::Line), at + 1, at + 2));
        }
        let mark = adornment(second)?;
        let is_text = !first.is_empty() && !first.starts_with(char::is_whitespace);
        let is_title = is_text && !NO_TITLE.iter().any(|start| first.starts_with(start));
        let fits = second.len() >= first.chars().count().min(UNDERLINE_MIN);
        (is_title && fits).then_some((Style(mark, Above::Nothing), at, at + 1))
    }
}

/// The character of a line that repeats one punctuation character.
fn adornment(line: &str) -> Option<char> {
    let first = line.chars().next().filter(char::is_ascii_punctuation)?;
    line.chars().all(|character| character == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Python enhancement proposals, where they are there: docutils finds so many titles in them, level by level.
    #[test]
    fn titles_of_real_files_are_those_of_docutils() {
        let Some(data) = std::env::var_os("CENTO_DATA") else { return eprintln!("skipped: CENTO_DATA is not set") };
        let root = crate::Root { label: "p".into(), path: std::path::Path::new(&data).join("peps") };
        let Ok(walk) = crate::walk(&root, &crate::ReadOptions::default()) else { return eprintln!("skipped: no peps") };
        let mut n_titles = [0; 5];
        for file in walk.files.iter().filter(|file| file.path.extension().is_some_and(|extension| extension == "rst")) {
            let text = std::fs::read_to_string(&file.path).unwrap();
            titles(&text).iter().for_each(|title| n_titles[usize::from(title.level).min(5) - 1] += 1);
        }
        assert_eq!(n_titles, N_TITLES);
    }

    /// Titles of levels 1 to 4, and below, by docutils 0.23.
    const N_TITLES: [u32; 5] = [7017, 5722, 1460, 139, 30];
}
