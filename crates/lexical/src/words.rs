//! Where the words of a text begin and end.
//!
//! Source: Unicode Standard Annex 29 (word boundaries), as Lucene's StandardTokenizer; compatibility forms are composed
//! first (NFKC), curly apostrophes made straight, and soft hyphens, zero-width joiners and marks of writing direction
//! dropped. Differs from it in three places:
//! - Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are cut into overlapping pairs of characters (and the
//!   single characters, so that a query of one finds something), whatever the spaces;
//! - an identifier (`snake_case`, `camelCase`, `dotted.name`) is a word, and so is each of its parts of two letters or
//!   digits and more, one of them a letter; a number with points (`1.2.3`) is one word;
//! - a word of more than [`TERM_BYTES_MAX`] bytes is cut into pieces of at most that, none of which is lost.
//!
//! Emoji, symbols and punctuation are no words.

use std::collections::VecDeque;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};
use unicode_segmentation::{UnicodeSegmentation, UnicodeWords};

/// Longest word that stays in one piece, in bytes of UTF-8 (Lucene's `maxTokenLength` is 255 characters).
pub const TERM_BYTES_MAX: usize = 255;

/// The effect of an apostrophe inside a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apostrophe {
    /// It belongs to the word: `o'neil`.
    Joins,
    /// It belongs to the word, but a final `'s` does not: `homer's` is `homer`.
    Possessive,
    /// It ends a word, as elision does: `l'avion` is `l` and `avion`.
    Separates,
}

/// Accents and other marks that no composed letter holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    Keep,
    Drop,
}

/// Cuts a text into words; tantivy's filters come after it.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    apostrophe: Apostrophe,
    marks: Marks,
    normalized: String,
}

impl Words {
    pub(crate) fn new(apostrophe: Apostrophe, marks: Marks) -> Self {
        Self { apostrophe, marks, normalized: String::new() }
    }
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        let text = if is_normal(text) {
            text
        } else {
            self.normalized.clear();
            let marks = self.marks;
            self.normalized.extend(text.nfkc().filter_map(|c| normalize(c, marks)));
            &self.normalized
        };
        // Positions are not indexed.
        let token = Token { position: 0, ..Token::default() };
        WordStream {
            rest: text,
            words: "".unicode_words(),
            pending: VecDeque::new(),
            apostrophe: self.apostrophe,
            token,
        }
    }
}

/// True if [`normalize`] after composition would change nothing.
fn is_normal(text: &str) -> bool {
    text.is_ascii()
        || is_nfkc_quick(text.chars()) == IsNormalized::Yes
            && text.chars().all(|c| normalize(c, Marks::Drop) == Some(c))
}

/// The replacement of a composed character in the words; `None` drops it.
fn normalize(c: char, marks: Marks) -> Option<char> {
    match c {
        '\u{2019}' | '\u{2BC}' => Some('\''),
        // Soft hyphen, zero-width (non-)joiner, word joiner, byte order mark; then marks of writing direction.
        '\u{AD}' | '\u{200C}' | '\u{200D}' | '\u{2060}' | '\u{FEFF}' => None,
        '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => None,
        '\u{300}'..='\u{36F}' if marks == Marks::Drop => None,
        _ => Some(c),
    }
}

/// Words of one text, in order.
pub(crate) struct WordStream<'a> {
    /// Not looked at yet.
    rest: &'a str,
    /// Words of the current run of a script with spaces.
    words: UnicodeWords<'a>,
    /// Found, not yet handed out.
    pending: VecDeque<&'a str>,
    apostrophe: Apostrophe,
    token: Token,
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        loop {
            if let Some(word) = self.pending.pop_front() {
                self.token.text.clear();
                self.token.text.push_str(word);
                return true;
            }
            if let Some(word) = self.words.next() {
                self.push_word(word);
            } else if !self.next_run() {
                return false;
            }
        }
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

impl<'a> WordStream<'a> {
    /// Takes the longest start of the rest that is all with, or all without spaces between words. False at the end.
    fn next_run(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        let spaced = !is_unspaced(first);
        let end = self.rest.find(|c| is_unspaced(c) == spaced).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        if spaced {
            self.words = run.unicode_words();
        } else {
            self.push_grams(run);
        }
        true
    }

    /// The characters of a run without spaces and each pair of neighbours. A character here is a letter with its marks.
    fn push_grams(&mut self, run: &'a str) {
        let mut previous: Option<usize> = None;
        for (start, cluster) in run.grapheme_indices(true) {
            if !cluster.starts_with(char::is_alphanumeric) {
                previous = None;
                continue;
            }
            let end = start + cluster.len();
            if let Some(previous) = previous {
                push_pieces(&mut self.pending, &run[previous..end]);
            }
            push_pieces(&mut self.pending, cluster);
            previous = Some(start);
        }
    }

    /// One word of a script with spaces.
    fn push_word(&mut self, word: &'a str) {
        // A mark without a letter before it stands on a space, or on nothing, and UAX 29 takes the two for a word.
        let word = word.trim_start_matches(|c: char| c.is_whitespace() || is_combining_mark(c));
        match self.apostrophe {
            Apostrophe::Joins => self.push_compound(word),
            Apostrophe::Possessive => {
                let stripped = word.strip_suffix("'s").or_else(|| word.strip_suffix("'S")).unwrap_or(word);
                self.push_compound(stripped);
            }
            Apostrophe::Separates => word.split('\'').for_each(|piece| self.push_compound(piece)),
        }
    }

    /// A word (or nothing) and, where it is an identifier, its parts.
    fn push_compound(&mut self, word: &'a str) {
        if word.is_empty() {
            return;
        }
        push_pieces(&mut self.pending, word);
        if word.len() <= TERM_BYTES_MAX {
            self.pending.extend(parts(word).filter(|part| part.len() < word.len() && is_name(part)));
        }
    }
}

/// At least two letters or digits, one of them a letter.
fn is_name(part: &str) -> bool {
    part.chars().filter(|c| c.is_alphanumeric()).nth(1).is_some() && part.contains(char::is_alphabetic)
}

/// The parts of an identifier: cut at punctuation other than an apostrophe, before a capital that follows none
/// (`get|Name`), and before the last capital of several when a small letter follows (`HTTP|Server`).
fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c) && c != '\'').flat_map(camel_parts)
}

fn camel_parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, tail) = rest.split_at(camel_end(rest));
        rest = tail;
        Some(part)
    })
}

/// Where the first part of a camel-case word ends.
fn camel_end(word: &str) -> usize {
    let mut previous: Option<(usize, char)> = None;
    for (at, c) in word.char_indices() {
        if let Some((previous_at, before)) = previous {
            if c.is_uppercase() && !before.is_uppercase() {
                return at;
            }
            if c.is_lowercase() && before.is_uppercase() && previous_at > 0 {
                return previous_at;
            }
        }
        previous = Some((at, c));
    }
    word.len()
}

/// A word, cut where it is too long for one term.
fn push_pieces<'a>(pending: &mut VecDeque<&'a str>, word: &'a str) {
    let mut rest = word;
    while rest.len() > TERM_BYTES_MAX {
        // A character takes four bytes at most, so one of four neighbouring places is a boundary.
        let end =
            (TERM_BYTES_MAX - 3..=TERM_BYTES_MAX).rev().find(|&end| rest.is_char_boundary(end)).unwrap_or(rest.len());
        let (piece, tail) = rest.split_at(end);
        pending.push_back(piece);
        rest = tail;
    }
    pending.push_back(rest);
}

/// True for a character of a script written without spaces between words, or (Korean) with spaces that do not part
/// words.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF // Thai, Lao
        | 0x1000..=0x109F // Burmese
        | 0x1100..=0x11FF | 0x3130..=0x318F | 0xA960..=0xA97F | 0xAC00..=0xD7FF // Hangul
        | 0x1780..=0x17FF // Khmer
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF // Han
        | 0x3041..=0x30FF | 0x31F0..=0x31FF // Hiragana, Katakana
        | 0x1B000..=0x1B16F // Kana supplements
        | 0x20000..=0x3FFFF // Han extensions
    )
}
