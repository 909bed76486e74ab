//! Byte-pair encoding: the tokenizers of OpenAI that are built in.
//!
//! Source: Sennrich, Haddow and Birch 2016; patterns and vocabularies are those of tiktoken, and so are the tokens:
//! tests hold them against it.
//! Differs: the vocabulary lies in the program and is looked up there ([`table`]), where tiktoken builds three tables
//! of it, a quarter of a second for o200k, before the first token is counted.
//! Cost: a look-up for each word that is a token; O(n log n) of them for any other of n bytes.

mod table;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::LazyLock;

use fancy_regex::Regex;

use table::Table;

/// A tokenizer: a pattern that cuts a text into words, and the tokens that words are merged to.
pub(crate) struct Bpe {
    words: Regex,
    vocabulary: &'static [u8],
}

impl fmt::Debug for Bpe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bpe")
    }
}

const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

const CL100K: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|",
    r"\s++$|\s*[\r\n]|\s+(?!\S)|\s"
);

/// The tokenizer `o200k`.
pub(crate) fn o200k() -> &'static Bpe {
    static BPE: LazyLock<Bpe> = LazyLock::new(|| Bpe::new(O200K, include_bytes!(concat!(env!("OUT_DIR"), "/o200k"))));
    &BPE
}

/// The tokenizer `cl100k`.
pub(crate) fn cl100k() -> &'static Bpe {
    static BPE: LazyLock<Bpe> = LazyLock::new(|| Bpe::new(CL100K, include_bytes!(concat!(env!("OUT_DIR"), "/cl100k"))));
    &BPE
}

impl Bpe {
    fn new(words: &str, vocabulary: &'static [u8]) -> Self {
        Self { words: Regex::new(words).expect("a pattern of ours"), vocabulary }
    }

    /// Number of tokens of a text.
    pub(crate) fn count(&self, text: &str) -> usize {
        let mut n_tokens = 0;
        self.each_end(text, |_| n_tokens += 1);
        n_tokens
    }

    /// The bytes of tokens by their ids; the first id that is none is the error.
    pub(crate) fn decode(&self, ids: &[u32]) -> Result<Vec<u8>, u32> {
        let table = Table::open(self.vocabulary);
        let mut bytes = Vec::new();
        for id in ids {
            bytes.extend_from_slice(table.bytes(*id).ok_or(*id)?);
        }
        Ok(bytes)
    }

    /// For each token of a text the byte offset of its end.
    pub(crate) fn ends(&self, text: &str) -> Vec<usize> {
        let mut ends = Vec::new();
        self.each_end(text, |end| ends.push(end));
        ends
    }

    fn each_end(&self, text: &str, mut each: impl FnMut(usize)) {
        let table = Table::open(self.vocabulary);
        let mut merge = Merge::default();
        let (mut start, mut done) = (0, 0);
        for part in parts(text) {
            for word in self.words.find_iter(part) {
                // Beyond the limit of its backtracking every byte left counts as a token: never too few.
                let Ok(word) = word else { return (done + 1..=text.len()).for_each(each) };
                done = start + word.end();
                let bytes = word.as_str().as_bytes();
                match table.rank(bytes) {
                    Some(_) => each(done),
                    None => merge.each_end(&table, bytes, |end| each(start + word.start() + end)),
                }
            }
            start += part.len();
        }
    }
}

/// Blanks in a row that a pattern is given at once; it gives up on about a million.
const BLANKS_MAX: usize = 1 << 17;

/// A text in parts that are counted one by one: all of it, unless it has more than [`BLANKS_MAX`] blanks in a row.
/// Those may then have a token more for each part.
fn parts(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let mut n_blanks = 0;
        let mut is_last = |c: char| {
            n_blanks = if c.is_whitespace() { n_blanks + 1 } else { 0 };
            n_blanks == BLANKS_MAX
        };
        let cut = if text.len() < BLANKS_MAX { None } else { text.char_indices().find(|(_, c)| is_last(*c)) };
        let (part, rest) = text.split_at(cut.map_or(text.len(), |(at, c)| at + c.len_utf8()));
        text = rest;
        (!part.is_empty()).then_some(part)
    })
}

/// The working memory of the merging of one word, kept for the next.
#[derive(Default)]
struct Merge {
    /// For each byte that a part begins with, where the part ends; 0 for the others.
    end: Vec<usize>,
    /// For each byte that a part begins with, where the part before it begins.
    before: Vec<usize>,
    /// Pairs of parts that are a token, by its rank, then by place: the whole begins and ends there.
    pairs: BinaryHeap<Reverse<(u32, usize, usize)>>,
}

impl Merge {
    /// Merges the pair of the lowest rank, of equal ones the first, until no pair is a token.
    fn each_end(&mut self, table: &Table<'_>, word: &[u8], mut each: impl FnMut(usize)) {
        let Self { end, before, pairs } = self;
        end.clear();
        end.extend(1..=word.len());
        before.clear();
        before.extend((0..word.len()).map(|at| at.saturating_sub(1)));
        pairs.clear();
        let pair = |from: usize, to: usize| table.rank(&word[from..to]).map(|rank| Reverse((rank, from, to)));
        pairs.extend((2..=word.len()).filter_map(|to| pair(to - 2, to)));
        while let Some(Reverse((_, from, to))) = pairs.pop() {
            let middle = end[from];
            if middle == 0 || middle >= to || end[middle] != to {
                continue; // one of its parts has become another
            }
            (end[from], end[middle]) = (to, 0);
            if to < word.len() {
                before[to] = from;
                pairs.extend(pair(from, end[to]));
            }
            if from > 0 {
                pairs.extend(pair(before[from], to));
            }
        }
        let mut at = 0;
        while at < word.len() {
            at = end[at];
            each(at);
        }
    }
}

#[cfg(test)]
mod tests;
