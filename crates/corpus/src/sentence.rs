//! Sentences: the smallest pieces of prose that are quoted on their own.
//!
//! Source: Unicode Standard Annex 29, sentence boundaries.
//! Differs: a line break inside a paragraph is a space (hard-wrapped text); blank lines, list markers, table rows and
//! headings always begin anew; common abbreviations, initials and list numbers do not end a sentence.
//! Cost: linear; runs of other than letters and digits are shortened for the segmenter, which is quadratic on them.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Words that end in a dot inside a sentence, without that dot.
const ABBREVIATIONS: [&str; 28] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "cf", "e.g", "i.e", "eg", "ie", "fig", "figs", "eq", "eqs", "sec",
    "no", "vol", "pp", "al", "ca", "approx", "resp", "incl", "inc", "ltd", "dept",
];

/// The number of characters in a row that are neither letter nor digit the segmenter is shown.
const RUN_MAX: usize = 32;

/// A piece that holds a digit, no letter, and at most this many bytes is a list number: it opens the next sentence.
const LIST_NUMBER_BYTES_MAX: usize = 12;

/// The sentences of `text`, a partition of it in order; white space belongs to the sentence before it.
///
/// A text of white space alone is one sentence; an empty text has none.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let flat = flatten(text);
    assert_eq!(flat.len(), text.len(), "flattening keeps every byte's place");
    let mut sentences: Vec<Range<usize>> = Vec::new();
    let (mut start, mut end) = (0, 0);
    for (at, piece) in flat.split_sentence_bound_indices() {
        if at + piece.len() <= end {
            continue; // white space that the last boundary skipped
        }
        end = skip_white_space(text, at + piece.len());
        if end < text.len() && !ends_sentence(&text[start..end]) {
            continue;
        }
        let blank = !text[start..end].chars().any(char::is_alphanumeric);
        match sentences.last_mut() {
            Some(last) if blank => last.end = end,
            _ => sentences.push(start..end),
        }
        start = end;
    }
    sentences
}

/// `text` with the same length in bytes, its paragraphs unwrapped and its long runs of symbols made opaque.
fn flatten(text: &str) -> String {
    let mut flat = String::with_capacity(text.len());
    let mut lines = lines(text).peekable();
    let mut run = 0;
    while let Some(line) = lines.next() {
        let content = line.trim_end_matches(['\n', '\r']);
        for character in content.chars() {
            run = if character.is_alphanumeric() { 0 } else { run + 1 };
            if run <= RUN_MAX {
                flat.push(character);
            } else {
                flat.extend(std::iter::repeat_n('\0', character.len_utf8()));
            }
        }
        let next = lines.peek().copied().unwrap_or("");
        let wrapped = !is_blank(content) && !is_blank(next) && !stands_alone(content) && !begins_anew(next);
        if wrapped {
            flat.extend(std::iter::repeat_n(' ', line.len() - content.len()));
        } else {
            flat.push_str(&line[content.len()..]);
            run = 0;
        }
    }
    flat
}

/// Lines with their ends, which are LF, CR LF or CR.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let end = match bytes.iter().position(|&byte| byte == b'\n' || byte == b'\r') {
            None if rest.is_empty() => return None,
            None => rest.len(),
            Some(at) if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') => at + 2,
            Some(at) => at + 1,
        };
        let (line, tail) = rest.split_at(end);
        rest = tail;
        Some(line)
    })
}

/// White space, or the mark of a quotation alone.
fn is_blank(line: &str) -> bool {
    line.chars().all(|character| character.is_whitespace() || character == '>')
}

/// A heading or table row: the line after it is another sentence.
fn stands_alone(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('|') || heading_marks(line)
}

/// A list item, heading, table row or underline: never the continuation of the line before.
fn begins_anew(line: &str) -> bool {
    let line = line.trim_start();
    if stands_alone(line) || line.starts_with("```") || line.starts_with("~~~") {
        return true;
    }
    let marker = line.trim_start_matches(|character: char| character.is_ascii_digit());
    let n_digits = line.len() - marker.len();
    let after = match marker.chars().next() {
        Some('-' | '*' | '+' | '•' | '–') if n_digits == 0 => marker.chars().nth(1),
        Some('.' | ')') if (1..=9).contains(&n_digits) => marker.chars().nth(1),
        _ => return false,
    };
    after.is_none_or(char::is_whitespace)
}

fn heading_marks(line: &str) -> bool {
    let text = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - text.len())) && text.starts_with([' ', '\t'])
}

/// True if `piece`, which the segmenter ends here, is whole: not an abbreviation, an initial or a list number.
fn ends_sentence(piece: &str) -> bool {
    let line_ends = piece[piece.trim_end().len()..].bytes().filter(|&byte| byte == b'\n').count();
    let piece = piece.trim_end();
    if line_ends > 1 {
        return true;
    }
    let has = |what: fn(char) -> bool| piece.chars().take(LIST_NUMBER_BYTES_MAX).any(what);
    if piece.len() <= LIST_NUMBER_BYTES_MAX && has(char::is_numeric) && !has(char::is_alphabetic) {
        return line_ends > 0;
    }
    let Some(before_dot) = piece.strip_suffix('.') else { return true };
    let word = before_dot.rsplit([' ', '\t', '\n', '(', '[', '"', '“']).next().unwrap_or("");
    let initials = word.split('.').all(|part| {
        let mut letters = part.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_none()
    });
    !initials && !ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

fn skip_white_space(text: &str, at: usize) -> usize {
    let mut at = at;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at + (text.len() - at - text[at..].trim_start().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` marks the expected boundaries.
    #[track_caller]
    fn check(marked: &str) {
        let text = marked.replace('|', "");
        let found: Vec<&str> = sentences(&text).into_iter().map(|span| &text[span]).collect();
        assert_eq!(found.join("|"), marked);
    }

    #[test]
    fn dots_end_sentences() {
        check("One. |Two! |Is it 3.14? |Yes.");
    }

    #[test]
    fn a_wrapped_line_is_not_a_boundary() {
        check("A sentence over\ntwo lines. |And\r\nanother.\n\n|A paragraph");
    }

    #[test]
    fn abbreviations_initials_and_list_numbers_do_not_end() {
        check("See e.g. Smith et al. (2010). |Dr. J. R. Smith agrees.");
        check("1. Install it. |Then run.\n|2. Done.");
    }

    #[test]
    fn list_items_and_headings_begin_anew() {
        check("Buy:\n|- milk\n|- bread\n\n|## Then\n|go home");
    }

    #[test]
    fn other_scripts() {
        check("今日は晴れ。|明日は雨？|はい。");
        check("Первое. |Второе.");
        check("یہ ایک ہے۔ |یہ دو ہے۔");
    }

    #[test]
    fn blank_texts() {
        assert!(sentences("").is_empty());
        check(" \n\n ");
        check("A.\n\n***\n\n|B.");
    }

    #[test]
    fn long_runs_of_symbols_are_partitioned() {
        // in a square of the time this would not end {
        for unit in [" ", ")", ".", ". ", ".) ", "\u{301}", "!(", "\n", "1. "] {
            let text = format!("a.{}B", unit.repeat(300_000));
            let spans = sentences(&text);
            assert_eq!(spans.iter().map(|span| span.len()).sum::<usize>(), text.len());
        }
    }
}
