//! Text to token ids and back to byte offsets, with any `tokenizer.json`.
//!
//! Differs: truncation and padding that the file asks for are switched off. Long text is tokenized in pieces where that
//! cannot change the tokens (see [`cut`]), so memory stays small and a text far beyond the window costs no more than a
//! long one.

pub(crate) mod bounded;
mod cut;
mod pairs;
mod places;

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use bounded::read_bounded;
use cut::Cuts;
pub(crate) use pairs::EncodedPair;
pub(crate) use places::Placed;

/// Long text is counted in pieces of about this size.
const PIECE_BYTES: usize = 64 * 1024;
/// The first attempt at the prefix of a text that fills the window: English has four to five bytes a token.
const PREFIX_BYTES_PER_TOKEN: usize = 8;

/// A tokenizer that neither truncates nor pads.
#[derive(Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    cuts: Cuts,
    /// Special tokens before and after a text.
    before: Vec<u32>,
    after: Vec<u32>,
    /// Id of the token for unknown text.
    unknown: Option<u32>,
    /// True if it is left out of texts that also have others.
    leaves_out_unknown: bool,
    lowercases: bool,
}

/// The parts of a `tokenizer.json` that are looked at here. The vocabulary, nearly all of it, is passed over.
#[derive(Deserialize)]
struct Form {
    #[serde(default)]
    added_tokens: Value,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    model: Model,
}

#[derive(Default, Deserialize)]
struct Model {
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(default)]
    unk_token: Value,
    #[serde(default)]
    unk_id: Value,
}

/// The tokens of a text as the encoder sees them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    /// Ids, special tokens included.
    pub(crate) ids: Vec<u32>,
    /// True if tokens were left out at the end.
    pub(crate) truncated: bool,
}

impl Tokenizer {
    /// Opens a `tokenizer.json` of Hugging Face tokenizers.
    ///
    /// # Errors
    /// If the file is missing, damaged, has no token for unknown text, or surrounds text with anything but fixed
    /// tokens.
    pub fn load(path: &Path) -> Result<Self> {
        Ok(Self::load_hashed(path)?.0)
    }

    /// The second result is the BLAKE3 hash of the file.
    ///
    /// # Errors
    /// As [`Tokenizer::load`].
    pub fn load_hashed(path: &Path) -> Result<(Self, blake3::Hash)> {
        let bytes = read_bounded(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::Missing { path: path.to_owned(), purpose: purpose(path) },
            _ => Error::Io { path: path.to_owned(), source },
        })?;
        Ok((Self::parse(path, &bytes)?, blake3::hash(&bytes)))
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        let Form { added_tokens, normalizer, pre_tokenizer, post_processor, model: Model { kind, unk_token, unk_id } } =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        let model = json!({ "type": kind, "unk_token": unk_token, "unk_id": unk_id });
        let json = json!({
            "added_tokens": added_tokens,
            "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": post_processor,
            "model": model,
        });
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| damaged(error.to_string()))?;
        inner.with_truncation(None).map_err(|error| damaged(error.to_string()))?;
        inner.with_padding(None);
        if let Some(token) = missing_unknown(&json["model"], &inner) {
            return Err(damaged(format!("the token for unknown text, {token}, is not in the vocabulary")));
        }
        let probe = |specials| inner.encode_fast("a", specials).map(|encoding| encoding.get_ids().to_vec());
        let (bare, dressed) = (probe(false), probe(true));
        let (Ok(bare @ [_, ..]), Ok(dressed)) = (bare.as_deref(), dressed.as_deref()) else {
            return Err(damaged("cannot tokenize the letter a".to_owned()));
        };
        let Some(start) = dressed.windows(bare.len()).position(|window| window == bare) else {
            return Err(Error::Unsupported {
                path: path.to_owned(),
                what: "post-processor",
                name: json["post_processor"]["type"].as_str().unwrap_or_default().to_owned(),
                supported: "special tokens before and after the text",
            });
        };
        Ok(Self {
            cuts: Cuts::of(&json),
            before: dressed[..start].to_vec(),
            after: dressed[start + bare.len()..].to_vec(),
            unknown: unknown(&json["model"], &inner),
            leaves_out_unknown: false,
            lowercases: json["normalizer"]["lowercase"] == Value::Bool(true),
            inner,
        })
    }

    /// The same, with no special tokens around a text. A text without any token then is the one for unknown text.
    pub(crate) fn without_special(self) -> Self {
        Self { before: Vec::new(), after: Vec::new(), ..self }
    }

    /// The same, with the token for unknown text left out of every text that also has others. [`Tokenizer::count`] and
    /// [`Tokenizer::ends`] count it nonetheless.
    pub(crate) fn without_unknown(self) -> Self {
        Self { leaves_out_unknown: true, ..self }
    }

    /// Number of tokens of `text`, special tokens not counted. Equals the length of [`Tokenizer::ends`].
    pub fn count(&self, text: &str) -> usize {
        self.cuts
            .pieces(text, PIECE_BYTES)
            .map(|piece| self.try_tokenize(piece).map_or(piece.len(), |ids| ids.len()))
            .sum()
    }

    /// For each token of `text` the byte offset of its end in `text`: ascending, each at a character boundary, equal
    /// where tokens share a character. What the tokenizer drops (white space, control characters, accents) belongs to
    /// no token.
    ///
    /// Should the tokenizer's own rules fail on a text (a pattern beyond its backtracking limit), every byte counts as
    /// one token, here and in [`Tokenizer::count`]: never too few.
    pub fn ends(&self, text: &str) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut start = 0;
        for piece in self.cuts.pieces(text, PIECE_BYTES) {
            let mut last = start;
            let mut push = |end: usize| {
                last = last.max(ceil_char_boundary(text, start + end));
                ends.push(last);
            };
            match self.inner.encode(piece, false) {
                Ok(encoding) => encoding.get_offsets().iter().for_each(|&(_, end)| push(end)),
                Err(_) => (1..=piece.len()).for_each(&mut push),
            }
            start += piece.len();
        }
        ends
    }

    /// Number of tokens at the beginning of a text that are its prompt's: special tokens before it, the prompt's own,
    /// but not the special token after it. 0 where the prompt is empty. As sentence-transformers counts: the prompt is
    /// tokenized alone, and cut to the window.
    pub(crate) fn n_prompt_tokens(&self, prompt: &str, max_tokens: usize) -> Result<usize, String> {
        if prompt.is_empty() {
            return Ok(0);
        }
        let ids = self.encode(prompt, max_tokens)?.ids;
        let added = self.inner.get_added_tokens_decoder();
        let ends_special = ids.last().and_then(|id| added.get(id)).is_some_and(|token| token.special);
        Ok(ids.len() - usize::from(ends_special))
    }

    /// Number of special tokens added to every text that is embedded.
    pub fn n_special(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Id of the special token before every text.
    pub(crate) fn start(&self) -> Option<u32> {
        self.before.first().copied()
    }

    /// Id of the last special token after every text.
    pub(crate) fn end(&self) -> Option<u32> {
        self.after.last().copied()
    }

    /// Id of the token that is known for padding, by any of its usual names.
    pub(crate) fn padding(&self) -> Option<u32> {
        ["<pad>", "[PAD]"].iter().find_map(|token| self.inner.token_to_id(token))
    }

    /// One more than the largest token id.
    pub(crate) fn n_ids(&self) -> usize {
        self.inner.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1)
    }

    /// The id of a token of the vocabulary.
    pub(crate) fn id_of(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Tokens of a whole text without special ones, but for those that it spells out.
    pub(crate) fn bare(&self, text: &str) -> Result<Vec<u32>, String> {
        self.try_tokenize(text)
    }

    /// True if upper and lower case give the same tokens.
    pub(crate) fn lowercases(&self) -> bool {
        self.lowercases
    }

    /// The first `max_tokens - n_special` tokens of `text` between the special tokens.
    ///
    /// Only a prefix of a long text is tokenized: one that ends where cutting cannot change the tokens before it,
    /// doubled until it has more tokens than fit.
    pub(crate) fn encode(&self, text: &str, max_tokens: usize) -> Result<Encoded, String> {
        let n_max = max_tokens - self.n_special();
        let mut n_bytes = max_tokens * PREFIX_BYTES_PER_TOKEN;
        loop {
            let prefix = self.cuts.prefix(text, n_bytes);
            let all = self.try_tokenize(prefix)?;
            let truncated = all.len() > n_max;
            if truncated || prefix.len() == text.len() {
                let kept = self.known(&all[..all.len().min(n_max)])?;
                return Ok(Encoded { ids: [&self.before, &*kept, &self.after].concat(), truncated });
            }
            n_bytes = n_bytes.saturating_mul(2);
        }
    }

    /// The tokens that stand for a text: at least one, with the special ones.
    fn known<'i>(&self, ids: &'i [u32]) -> Result<Cow<'i, [u32]>, String> {
        let known: Cow<'_, [u32]> = match self.unknown.filter(|_| self.leaves_out_unknown) {
            Some(unknown) => ids.iter().copied().filter(|&id| id != unknown).collect(),
            None => ids.into(),
        };
        match self.unknown {
            _ if !known.is_empty() || self.n_special() > 0 => Ok(known),
            Some(unknown) => Ok(vec![unknown].into()),
            None => Err("it has no tokens, and there is none for unknown text".to_owned()),
        }
    }

    fn try_tokenize(&self, text: &str) -> Result<Vec<u32>, String> {
        match self.inner.encode_fast(text, false) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The purpose of `tokenizer.json`, and how to make it of what lies in its place.
fn purpose(path: &Path) -> &'static str {
    const OTHERS: [&str; 5] =
        ["vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "sentencepiece.model"];
    if OTHERS.iter().any(|name| path.with_file_name(name).exists()) {
        "the tokenizer in one file, not only its vocabulary: make it once with transformers, \
             `AutoTokenizer.from_pretrained(folder).save_pretrained(folder)`; or"
    } else {
        "the tokenizer in one file (vocab.txt alone is not read)"
    }
}

/// Id of the token for unknown text, where there is one.
fn unknown(model: &Value, tokenizer: &tokenizers::Tokenizer) -> Option<u32> {
    match model["type"].as_str() {
        Some("Unigram") => model["unk_id"].as_u64().and_then(|id| u32::try_from(id).ok()),
        _ => tokenizer.token_to_id(model["unk_token"].as_str()?),
    }
}

/// The token for unknown text, if the model needs one and has none: with it in place no text makes these models fail.
fn missing_unknown(model: &Value, tokenizer: &tokenizers::Tokenizer) -> Option<String> {
    match model["type"].as_str() {
        Some("Unigram") => model["unk_id"].is_null().then(|| "unk_id".to_owned()),
        _ => {
            let token = model["unk_token"].as_str()?;
            tokenizer.token_to_id(token).is_none().then(|| token.to_owned())
        }
    }
}

/// The first character boundary of `text` at or after `at`.
fn ceil_char_boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
