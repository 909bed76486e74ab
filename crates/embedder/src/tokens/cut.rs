//! Where text may be cut without changing its tokens.
//!
//! Rule: with BERT's pre-tokenizer (words end at white space, punctuation stands alone) and BERT's normaliser or none, after
//! a space, tab or line break, and after the commonest punctuation, ASCII and Chinese. None of these is dropped, replaced or
//! joined with its neighbours by the normaliser, no word spans them, and no added token contains them (checked). With any
//! other tokenizer, nowhere.

use serde_json::Value;

/// Form feed and the like are not here: the normaliser drops them, and what stood around them becomes one word.
const AFTER: [char; 17] =
    [' ', '\t', '\n', '\r', '.', ',', ';', ':', '!', '?', '。', '，', '、', '；', '：', '！', '？'];

/// The places where a tokenizer's input may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cuts {
    Nowhere,
    BetweenWords,
}

impl Cuts {
    /// From the contents of a `tokenizer.json`.
    pub(super) fn of(json: &Value) -> Self {
        let splits_words = json["pre_tokenizer"]["type"] == "BertPreTokenizer";
        let keeps_words = json["normalizer"].is_null() || json["normalizer"]["type"] == "BertNormalizer";
        let added = json["added_tokens"].as_array().map_or(&[][..], Vec::as_slice);
        let spans_words = |token: &Value| token["content"].as_str().is_none_or(|content| content.contains(AFTER));
        if splits_words && keeps_words && !added.iter().any(spans_words) { Self::BetweenWords } else { Self::Nowhere }
    }

    /// `text` up to the first place at or after `n_bytes` where it may be cut, or all of it.
    pub(super) fn prefix(self, text: &str, n_bytes: usize) -> &str {
        let from = super::ceil_char_boundary(text, n_bytes.min(text.len()));
        match self {
            Self::Nowhere => text,
            Self::BetweenWords => match text[from..].char_indices().find(|(_, c)| AFTER.contains(c)) {
                Some((at, c)) => &text[..from + at + c.len_utf8()],
                None => text,
            },
        }
    }

    /// Partition of `text` into pieces of at least `n_bytes` (but for the last).
    pub(super) fn pieces(self, text: &str, n_bytes: usize) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let piece = self.prefix(rest, n_bytes);
            rest = &rest[piece.len()..];
            (!piece.is_empty()).then_some(piece)
        })
    }
}
