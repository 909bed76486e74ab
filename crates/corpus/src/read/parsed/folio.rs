//! Folios: the numbers that pages are printed with. They count along with the pages and say nothing of their own, so
//! they are no part of a text; a citation names its page by its place in the file.
//!
//! Source: ours. Differs from rules by position alone: only what neighbours count on with is taken for a folio, so that
//! a year above a table and the number of a chapter stay.

use std::ops::Range;

/// Pages around one among which its number is counted on with.
const NEAR: usize = 4;

/// The fewest pages around one that have to count with it.
const WITNESSES: usize = 2;

/// The end of the numbers that are folios; years are beyond it.
const END: i64 = 1000;

/// The longest Roman number, in letters: `lxxxviii`.
const ROMAN_LETTERS_MAX: usize = 8;

/// The way a number is written, and how far it is ahead of the page's place.
type Count = (Written, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Arabic,
    Roman,
}

/// Takes the folios out of the texts of pages.
pub(super) fn take_out(pages: &mut [String]) {
    let counts = |(page, text): (i64, &String)| -> Vec<(Range<usize>, Count)> {
        let counted = |line: Range<usize>| number(&text[line.clone()]).map(|(how, n)| (line, (how, n - page)));
        edges(text).into_iter().filter_map(counted).collect()
    };
    let found: Vec<_> = (0_i64..).zip(pages.iter()).map(counts).collect();
    for (page, text) in pages.iter_mut().enumerate() {
        let near = page.saturating_sub(NEAR)..found.len().min(page + NEAR + 1);
        let n_with = |count: Count| {
            let others = near.clone().filter(|&other| other != page);
            others.filter(|&other| found[other].iter().any(|(_, known)| *known == count)).count()
        };
        for (line, count) in found[page].iter().rev() {
            if n_with(*count) >= WITNESSES {
                text.replace_range(line.clone(), "");
            }
        }
    }
}

/// The bytes of the first and of the last line that is not blank; of one line alone, that one.
fn edges(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').filter_map(|line| {
        at += line.len();
        (!line.trim().is_empty()).then(|| at - line.len()..at - line.len() + line.trim_end().len())
    });
    let mut edges: Vec<Range<usize>> = Vec::new();
    for line in lines {
        edges.truncate(1);
        edges.push(line);
    }
    edges
}

/// The number that a line is, and nothing else: with marks around it, `Page` before it or `of 90` behind it.
fn number(line: &str) -> Option<Count> {
    let mut words = line.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut word = words.next()?;
    if word.eq_ignore_ascii_case("page") {
        word = words.next()?;
    }
    match (words.next(), words.next(), words.next()) {
        (None, ..) => {}
        (Some(of), Some(all), None) if of.eq_ignore_ascii_case("of") && all.parse::<u32>().is_ok() => {}
        _ => return None,
    }
    let is_digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let (written, value) = match is_digits {
        true => (Written::Arabic, word.parse().ok()?),
        false => (Written::Roman, roman(word)?),
    };
    (1..END).contains(&value).then_some((written, value))
}

/// The value of a Roman number below 400.
fn roman(word: &str) -> Option<i64> {
    if word.len() > ROMAN_LETTERS_MAX {
        return None;
    }
    let value = |letter: u8| match letter.to_ascii_lowercase() {
        b'i' => Some(1),
        b'v' => Some(5),
        b'x' => Some(10),
        b'l' => Some(50),
        b'c' => Some(100),
        _ => None,
    };
    let values: Vec<i64> = word.bytes().map(value).collect::<Option<_>>()?;
    let signed = |at: usize| if values.get(at + 1) > Some(&values[at]) { -values[at] } else { values[at] };
    Some((0..values.len()).map(signed).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pages: &[&str], expected: &[&str]) {
        let mut pages: Vec<String> = pages.iter().map(|page| (*page).to_owned()).collect();
        take_out(&mut pages);
        assert_eq!(pages, expected);
    }

    #[test]
    fn numbers_that_count_the_pages_go() {
        check(&["a\n7\n", "b\n\n- 8 -\n", "c\nPage\u{a0}9 of 90"], &["a\n\n", "b\n\n\n", "c\n"]);
        check(&["iii\na", "b\nIV", "v\nc\n", "d"], &["\na", "b\n", "\nc\n", "d"]);
        check(&["1", "2\n2", "3"], &["", "\n", ""]);
        check(&["a\n1", "cover", "b\n3", "c\n4"], &["a\n", "cover", "b\n", "c\n"]);
    }

    #[test]
    fn numbers_that_count_something_else_stay() {
        for pages in [
            ["a\n7", "b\n8", "c"],                         // two pages alone
            ["a\n2018", "b\n2019", "c\n2020"],             // years
            ["a\n7\nend", "b\n8\nend", "c\n9\nend"],       // inside a page
            ["a\n7", "b\n7", "c\n7"],                      // the same on each
            ["a\n7 apples", "b\n8 apples", "c\n9 apples"], // with words
            ["a\n1.5", "b\n2.5", "c\n3.5"],                // figures
            ["a\n1", "b\nii", "c\n3"],                     // one written otherwise
            ["", "\n \n", "mix"],
        ] {
            check(&pages, &pages);
        }
    }

    #[test]
    fn roman_numbers_have_their_values() {
        for (word, value) in [("i", 1), ("iv", 4), ("IX", 9), ("xl", 40), ("lxxxviii", 88), ("cxc", 190)] {
            assert_eq!(roman(word), Some(value), "{word}");
        }
        for word in ["mix", "iiiiiiiii", "é"] {
            assert_eq!(roman(word), None, "{word}");
        }
    }
}
