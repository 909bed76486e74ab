//! Where text may be cut without changing its tokens.
//!
//! Two rules, each for tokenizers whose words end there whatever follows; with any other tokenizer, nowhere. Tests hold
//! both against the uncut text.
//!
//! - BERT's pre-tokenizer (words end at white space, punctuation stands alone) with BERT's normaliser or none: after a
//!   space, tab or line break, and after the commonest punctuation, ASCII and Chinese. None of these is dropped,
//!   replaced or joined with its neighbours by the normaliser, no word spans them, and no added token contains them
//!   (checked).
//! - Byte-level and metaspace pre-tokenizers (a word begins with the space before it) with normalisers that change
//!   characters one by one: before a single space between a visible character and a letter or digit. A piece that
//!   begins with a space is read as in the middle of a text.

use serde_json::Value;

/// Form feed and the like are not here: the normaliser drops them, and what stood around them becomes one word.
const AFTER: [char; 17] =
    [' ', '\t', '\n', '\r', '.', ',', ';', ':', '!', '?', '。', '，', '、', '；', '：', '！', '？'];

/// The places where a tokenizer's input may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cuts {
    Nowhere,
    /// BERT's.
    BetweenWords,
    /// Those of byte-level and metaspace tokenizers.
    BeforeSpaces,
}

impl Cuts {
    /// From the contents of a `tokenizer.json`.
    pub(super) fn of(json: &Value) -> Self {
        let (splitter, normalizer) = (&json["pre_tokenizer"], &json["normalizer"]);
        let added = json["added_tokens"].as_array().map_or(&[][..], Vec::as_slice);
        if splitter["type"] == "BertPreTokenizer" && (normalizer.is_null() || normalizer["type"] == "BertNormalizer") {
            let spans_words = |token: &Value| token["content"].as_str().is_none_or(|content| content.contains(AFTER));
            return if added.iter().any(spans_words) { Self::Nowhere } else { Self::BetweenWords };
        }
        if words_begin_with_spaces(splitter) && changes_single_characters(normalizer) {
            return if added.iter().any(reaches_over_spaces) { Self::Nowhere } else { Self::BeforeSpaces };
        }
        Self::Nowhere
    }

    /// `text` up to the first place at or after `n_bytes` where it may be cut, or all of it.
    pub(super) fn prefix(self, text: &str, n_bytes: usize) -> &str {
        let from = super::ceil_char_boundary(text, n_bytes.min(text.len()));
        let place = match self {
            Self::Nowhere => None,
            Self::BetweenWords => {
                let found = text[from..].char_indices().find(|(_, c)| AFTER.contains(c));
                found.map(|(at, c)| from + at + c.len_utf8())
            }
            Self::BeforeSpaces => text[from..].match_indices(' ').map(|(at, _)| from + at).find(|&at| {
                let (before, after) = (text[..at].chars().next_back(), text[at + 1..].chars().next());
                before.is_some_and(is_visible) && after.is_some_and(is_letter_or_digit)
            }),
        };
        place.map_or(text, |at| &text[..at])
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

fn is_visible(c: char) -> bool {
    c.is_ascii_graphic() || c.is_alphanumeric()
}

/// Latin, Greek and Cyrillic ones, which no normaliser joins with a space before them; marks that combine do.
fn is_letter_or_digit(c: char) -> bool {
    c < '\u{530}' && c.is_alphanumeric() && !('\u{300}'..='\u{36f}').contains(&c)
}

/// Byte-level with its usual pattern, or metaspace, alone or behind a split at white space.
fn words_begin_with_spaces(splitter: &Value) -> bool {
    let metaspace = |part: &Value| part["type"] == "Metaspace" && part["split"] != false;
    match splitter["type"].as_str() {
        Some("ByteLevel") => splitter["use_regex"] != false,
        Some("Metaspace") => metaspace(splitter),
        Some("Sequence") => match splitter["pretokenizers"].as_array().map(Vec::as_slice) {
            Some([split, part]) => split["type"] == "WhitespaceSplit" && metaspace(part),
            _ => false,
        },
        _ => false,
    }
}

/// True if what becomes of a character, or of a run of spaces, depends on it alone.
fn changes_single_characters(normalizer: &Value) -> bool {
    match normalizer["type"].as_str() {
        None => normalizer.is_null(),
        Some("NFC" | "NFKC" | "Lowercase" | "Precompiled") => true,
        Some("Replace") => normalizer["pattern"]["Regex"] == " {2,}",
        Some("Sequence") => {
            normalizer["normalizers"].as_array().is_some_and(|parts| parts.iter().all(changes_single_characters))
        }
        Some(_) => false,
    }
}

/// True if an added token can hold a single space between words: within itself, or as what it takes with it to its
/// right.
fn reaches_over_spaces(token: &Value) -> bool {
    let Some(content) = token["content"].as_str() else { return true };
    let is_run_of_space = content.len() > 1 && content.chars().all(char::is_whitespace);
    token["rstrip"] == true || (content.contains(' ') && !is_run_of_space)
}
