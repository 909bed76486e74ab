//! Pieces: a block tokenised once and cut where the chunker may end a chunk.
//!
//! Assumption: the tokens of a piece are those of its block that end inside it. Tokenizers that look across the cut may
//! count a piece differently by itself; the chunker counts every finished chunk again.
//! Cost: one tokenisation of each block, in slices of bounded length, and binary searches in its token ends.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::document::BlockKind;
use crate::sentence::sentences;

/// A chunk holds at most this many bytes for each token of its target, so that text which a tokenizer swallows whole
/// (base64 as one unknown token) still comes in chunks that can be delivered.
pub const BYTES_PER_TOKEN_MAX: usize = 32;

/// Longest text given to the tokenizer at once, in bytes: tokenizers keep some 100 bytes a token.
const SLICE_BYTES: usize = 64 * 1024;

/// The tokens of the model that will read the chunks.
pub trait Tokens {
    /// Byte offset of the end of each token of `text`, ascending; there are as many as tokens. Special tokens are not
    /// counted.
    fn ends(&self, text: &str) -> Vec<usize>;
}

/// Weight of a text against a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) n_tokens: usize,
    pub(crate) n_bytes: usize,
}

impl Size {
    pub(crate) fn fits(self, limit_tokens: usize) -> bool {
        self.n_tokens <= limit_tokens && self.n_bytes <= limit_tokens.saturating_mul(BYTES_PER_TOKEN_MAX)
    }
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { n_tokens: self.n_tokens + other.n_tokens, n_bytes: self.n_bytes + other.n_bytes }
    }
}

/// A stretch of text that the chunker does not cut further.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) span: Range<usize>,
    pub(crate) size: Size,
    /// The block it comes from; its first piece starts the block.
    pub(crate) block: usize,
    pub(crate) kind: BlockKind,
    /// Without a letter or digit of any script.
    pub(crate) blank: bool,
}

/// The length that pieces may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Parts of a sentence that is cut.
    pub(crate) target: usize,
    /// A sentence that is not cut.
    pub(crate) sentence: usize,
    /// A table, fence or row that is not cut.
    pub(crate) whole: usize,
}

/// Cuts the block `text[span]` into pieces, appended to `pieces`.
pub(crate) fn cut_block(
    text: &str,
    span: Range<usize>,
    kind: BlockKind,
    block: usize,
    limits: Limits,
    tokens: &dyn Tokens,
    pieces: &mut Vec<Piece>,
) {
    let ends = Ends::of(text, span.clone(), tokens);
    let mut push = |span: Range<usize>, size: Size| {
        let blank = !has_words(&text[span.clone()]);
        pieces.push(Piece { span, size, block, kind, blank });
    };
    let whole = ends.size(span.clone());
    let limit = match kind {
        BlockKind::Table | BlockKind::Code | BlockKind::Row => limits.whole,
        BlockKind::Prose | BlockKind::Heading | BlockKind::Hidden => 0,
    };
    if whole.fits(limit) {
        return push(span, whole);
    }
    let parts = match kind {
        BlockKind::Table | BlockKind::Code => lines(&text[span.clone()]),
        _ => sentences(&text[span.clone()]),
    };
    for part in parts {
        let part = span.start + part.start..span.start + part.end;
        let size = ends.size(part.clone());
        if size.fits(limits.sentence) {
            push(part, size);
        } else {
            for part in cut_long(text, part, &ends, limits.target) {
                push(part.clone(), ends.size(part));
            }
        }
    }
}

/// Number of tokens of `text` by itself: exact up to 64 KiB, beyond that the sum over slices.
pub(crate) fn count(text: &str, tokens: &dyn Tokens) -> usize {
    slices(text, 0..text.len()).map(|slice| tokens.ends(&text[slice]).len()).sum()
}

/// True if a text has something to be found by: a letter or digit of any script.
pub(crate) fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Where the tokens of a block end, as offsets in the document.
struct Ends {
    ends: Vec<usize>,
    /// Start of the block: a token of no width there belongs to the block's first piece.
    start: usize,
}

impl Ends {
    fn of(text: &str, span: Range<usize>, tokens: &dyn Tokens) -> Self {
        let (mut ends, start) = (Vec::new(), span.start);
        for slice in slices(text, span) {
            let offset = slice.start;
            ends.extend(tokens.ends(&text[slice]).into_iter().map(|end| offset + end));
        }
        Self { ends, start }
    }

    /// Tokens that end inside `span`, and its bytes.
    fn size(&self, span: Range<usize>) -> Size {
        let before = if span.start == self.start { 0 } else { self.index_after(span.start) };
        Size { n_tokens: self.index_after(span.end) - before, n_bytes: span.len() }
    }

    /// Number of tokens that end at or before `at`.
    fn index_after(&self, at: usize) -> usize {
        self.ends.partition_point(|&end| end <= at)
    }

    /// The end of the `n`th token after `at`, at most `end`.
    fn advance(&self, at: usize, n: usize, end: usize) -> usize {
        self.ends.get(self.index_after(at) + n.max(1) - 1).map_or(end, |&found| found.min(end))
    }
}

/// Cuts a span that exceeds `target` into nearly equal parts of at most `target`: after clauses, else between words,
/// else after a token, else between characters.
fn cut_long(text: &str, span: Range<usize>, ends: &Ends, target: usize) -> Vec<Range<usize>> {
    let target_bytes = target.saturating_mul(BYTES_PER_TOKEN_MAX);
    let clauses: Vec<usize> = clause_ends(&text[span.clone()]).into_iter().map(|end| span.start + end).collect();
    let words: Vec<usize> = word_ends(&text[span.clone()]).into_iter().map(|end| span.start + end).collect();
    let mut parts = Vec::new();
    let mut start = span.start;
    while start < span.end {
        let rest = ends.size(start..span.end);
        let (by_tokens, by_bytes) = (rest.n_tokens.div_ceil(target), rest.n_bytes.div_ceil(target_bytes));
        if by_tokens.max(by_bytes) <= 1 {
            parts.push(start..span.end);
            break;
        }
        let farthest = start.saturating_add(target_bytes).min(span.end);
        let latest = skip_spaces(text, ends.advance(start, target, span.end), farthest);
        let ideal = if by_tokens >= by_bytes {
            skip_spaces(text, ends.advance(start, rest.n_tokens.div_ceil(by_tokens), span.end), latest)
        } else {
            (start + rest.n_bytes.div_ceil(by_bytes)).min(latest)
        };
        let earliest = start + (ideal - start) / 2;
        let cut = nearest(&clauses, earliest..latest, ideal)
            .or_else(|| nearest(&words, earliest..latest, ideal))
            .unwrap_or_else(|| character_end(text, start, ideal));
        parts.push(start..cut);
        start = cut;
    }
    parts
}

/// The place after the white space at `at`, which weighs nothing, but not after `end`.
fn skip_spaces(text: &str, at: usize, end: usize) -> usize {
    let spaces = text.as_bytes().get(at..end).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_whitespace());
    at.min(end) + spaces.count()
}

/// The one of the ascending `ends` in `(range.start, range.end]` that is nearest to `ideal`.
fn nearest(ends: &[usize], range: Range<usize>, ideal: usize) -> Option<usize> {
    let from = ends.partition_point(|&end| end <= range.start);
    let to = ends.partition_point(|&end| end <= range.end).max(from);
    let at = from + ends[from..to].partition_point(|&end| end < ideal);
    let candidates = [at.checked_sub(1).filter(|&i| i >= from), Some(at).filter(|&i| i < to)];
    candidates.into_iter().flatten().map(|i| ends[i]).min_by_key(|&end| end.abs_diff(ideal))
}

/// The last character boundary at or before `at` that is after `start`, else the first after `start`.
pub(crate) fn character_end(text: &str, start: usize, at: usize) -> usize {
    let before = (start + 1..=at).rev().find(|&at| text.is_char_boundary(at));
    before.or_else(|| (at.max(start + 1)..=text.len()).find(|&at| text.is_char_boundary(at))).unwrap_or(text.len())
}

/// After `; : , — – |` or a closing bracket and the white space that follows, after a CJK clause mark, after a line.
fn clause_ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|next| next.1);
        let ends_here = match character {
            '\n' => true,
            ';' | ':' | ',' | '—' | '–' | '|' | ')' | ']' | '}' => {
                next.is_some_and(|next| next.is_whitespace() && next != '\n')
            }
            '，' | '、' | '；' | '：' | '）' | '」' | '』' | '،' | '؛' => true,
            _ => false,
        };
        if ends_here {
            let mut end = at + character.len_utf8();
            while let Some((_, space)) = characters.next_if(|next| next.1.is_whitespace()) {
                end += space.len_utf8();
            }
            ends.push(end);
        }
    }
    ends
}

/// After the white space behind a word, and between two words that touch, as in CJK.
pub(crate) fn word_ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut before = None;
    for (at, word) in text.split_word_bound_indices() {
        let first = word.chars().next();
        let is_word = first.is_some_and(char::is_alphanumeric);
        let is_space = first.is_some_and(char::is_whitespace);
        match before {
            Some((_, true)) if !is_space => ends.push(at),
            Some((true, _)) if is_word => ends.push(at),
            _ => {}
        }
        before = Some((is_word, is_space));
    }
    ends
}

fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let line = start..start + line.len();
        start = line.end;
        line
    });
    lines.collect()
}

/// `span` in slices of at most [`SLICE_BYTES`], cut after a line, else after white space, else between characters.
fn slices(text: &str, span: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = span.start;
    std::iter::from_fn(move || {
        if start == span.end {
            return None;
        }
        let mut end = span.end;
        if end - start > SLICE_BYTES {
            end = character_end(text, start, start + SLICE_BYTES);
            let slice = &text.as_bytes()[start..end];
            let space = slice.iter().rposition(|&byte| byte == b'\n').filter(|&at| at > SLICE_BYTES / 2);
            let space = space.or_else(|| slice.iter().rposition(u8::is_ascii_whitespace));
            end = space.map_or(end, |at| start + at + 1);
        }
        let slice = start..end;
        start = end;
        Some(slice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Words;

    #[track_caller]
    fn check_long(marked: &str, target: usize) {
        let text = marked.replace('|', "");
        let ends = Ends::of(&text, 0..text.len(), &Words);
        let parts: Vec<&str> =
            cut_long(&text, 0..text.len(), &ends, target).into_iter().map(|span| &text[span]).collect();
        assert_eq!(parts.join("|"), marked);
    }

    #[test]
    fn a_long_sentence_is_cut_after_a_clause_then_between_words() {
        check_long("one two three, |four five six", 4);
        check_long("one two three |four five six", 4);
        check_long("one two |three four |five six", 2);
    }

    #[test]
    fn a_text_without_words_is_cut_by_its_bytes() {
        let text = "é".repeat(1000); // one token of 2000 bytes
        let ends = Ends::of(&text, 0..text.len(), &Words);
        let parts = cut_long(&text, 0..text.len(), &ends, 10);
        assert!(parts.iter().all(|part| part.len() <= 320 && !part.is_empty()));
        assert_eq!(parts.last().map(|part| part.end), Some(2000));
    }

    #[test]
    fn slices_are_bounded_and_whole() {
        for unit in ["word ", "é", "a line of text\n"] {
            let text = unit.repeat(300_000 / unit.len());
            let spans: Vec<_> = slices(&text, 0..text.len()).collect();
            assert!(spans.iter().all(|span| span.len() <= SLICE_BYTES));
            assert_eq!(spans.iter().map(|span| &text[span.clone()]).collect::<String>(), text);
        }
    }
}
