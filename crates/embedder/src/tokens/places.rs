//! Tokens with their places in the text, for whoever needs to know which part of it a token is from.

use std::ops::Range;

use super::{PIECE_BYTES, Tokenizer};

/// The tokens of a text, special tokens not included.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    /// T ids.
    pub(crate) ids: Vec<u32>,
    /// For each token the byte its first character that is not white space begins at; `None` where there is no such
    /// character, in tokens of white space and in those that the tokenizer puts in by itself.
    ///
    /// White space does not count since some tokenizers make a blank part of the word behind it, and chunks end with
    /// it.
    pub(crate) places: Vec<Option<usize>>,
}

impl Tokenizer {
    /// The whole text as tokens, in the order of their places; the same ids as without places.
    pub(crate) fn tokenize_placed(&self, text: &str) -> Result<Placed, String> {
        let mut placed = Placed::default();
        let mut start = 0;
        for piece in self.cuts.pieces(text, PIECE_BYTES) {
            let encoding = self.inner.encode(piece, false).map_err(|error| error.to_string())?;
            placed.ids.extend(encoding.get_ids());
            let places = encoding.get_offsets().iter().map(|&(from, to)| place(piece, from..to));
            placed.places.extend(places.map(|place| place.map(|at| start + at)));
            start += piece.len();
        }
        Ok(placed)
    }

    /// A sequence as the encoder sees it, of which the caller chooses the tokens: between the special tokens.
    pub(crate) fn surround(&self, parts: &[&[u32]]) -> Vec<u32> {
        [&[self.before.as_slice()], parts, &[self.after.as_slice()]].concat().concat()
    }

    /// Numbers of special tokens before and after a text.
    pub(crate) fn n_around(&self) -> (usize, usize) {
        (self.before.len(), self.after.len())
    }
}

/// Where a token's first character that is not white space begins; offsets inside a character count for all of it.
fn place(text: &str, token: Range<usize>) -> Option<usize> {
    let from = (0..=token.start.min(text.len())).rev().find(|&at| text.is_char_boundary(at))?;
    let (at, _) = text[from..].char_indices().find(|(_, character)| !character.is_whitespace())?;
    (from + at < token.end).then_some(from + at)
}
