//! The input of an embedding as OpenAI's clients send it: texts, or their tokens.
//!
//! Such clients tokenize texts themselves, and send the tokens. Those are decoded with the encoding that the model's
//! name has there, else with `cl100k`, as such clients do with names they do not know; the encoder then reads the text.

use std::fmt;

use cento_engine::decode_tokens;
use schemars::JsonSchema;
use serde::de::{SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

use crate::refusal::Refusal;

/// A text, a list of texts, or their tokens. The first of a list says what the others are: reading each as anything
/// would take 16 times the bytes of the body.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub(super) enum Input {
    /// A text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// The tokens of a text.
    Tokens(Vec<u32>),
    /// The tokens of texts.
    TokensOfTexts(Vec<Vec<u32>>),
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InputVisitor)
    }
}

struct InputVisitor;

impl<'de> Visitor<'de> for InputVisitor {
    type Value = Input;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, a list of texts, or lists of tokens")
    }

    fn visit_str<E>(self, text: &str) -> Result<Input, E> {
        Ok(Input::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Input, A::Error> {
        Ok(match list.next_element()? {
            None => Input::Texts(Vec::new()),
            Some(First::Text(text)) => Input::Texts(with_rest(text, list)?),
            Some(First::Token(token)) => Input::Tokens(with_rest(token, list)?),
            Some(First::Tokens(tokens)) => Input::TokensOfTexts(with_rest(tokens, list)?),
        })
    }
}

fn with_rest<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(first: T, mut list: A) -> Result<Vec<T>, A::Error> {
    let mut all = vec![first];
    while let Some(next) = list.next_element()? {
        all.push(next);
    }
    Ok(all)
}

/// The first of a list.
enum First {
    Text(String),
    Token(u32),
    Tokens(Vec<u32>),
}

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FirstVisitor)
    }
}

struct FirstVisitor;

impl<'de> Visitor<'de> for FirstVisitor {
    type Value = First;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, a token, or a list of tokens")
    }

    fn visit_str<E>(self, text: &str) -> Result<First, E> {
        Ok(First::Text(text.to_owned()))
    }

    fn visit_u64<E: serde::de::Error>(self, token: u64) -> Result<First, E> {
        let wrong = |_| E::invalid_value(Unexpected::Unsigned(token), &self);
        u32::try_from(token).map(First::Token).map_err(wrong)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First, A::Error> {
        let mut tokens = Vec::new();
        while let Some(token) = list.next_element()? {
            tokens.push(token);
        }
        Ok(First::Tokens(tokens))
    }
}

/// The texts of an input; there is one at least, and none is empty of tokens alone.
pub(super) fn texts(input: Input, model: &str) -> Result<Vec<String>, Refusal> {
    let decoded = |tokens: &[Vec<u32>]| {
        let encoding = encoding_of(model)?;
        tokens.iter().map(|tokens| Ok(decode_tokens(encoding, tokens)?)).collect::<Result<Vec<_>, Refusal>>()
    };
    let texts = match input {
        Input::Text(text) => vec![text],
        Input::Texts(texts) => texts,
        Input::Tokens(tokens) if tokens.is_empty() => Vec::new(),
        Input::Tokens(tokens) => decoded(&[tokens])?,
        Input::TokensOfTexts(tokens) => decoded(&tokens)?,
    };
    match texts.is_empty() {
        true => Err(Refusal::value("input", "input: there is no text to embed")),
        false => Ok(texts),
    }
}

/// The encoding whose tokens a client sends for a model.
fn encoding_of(model: &str) -> Result<&'static str, Refusal> {
    match get_tokenizer(model) {
        None | Some(Tokenizer::Cl100kBase) => Ok("cl100k"),
        Some(Tokenizer::O200kBase | Tokenizer::O200kHarmony) => Ok("o200k"),
        Some(_) => {
            let message = format!("input: the tokens of {model:?} cannot be decoded here; send texts");
            Err(Refusal::value("input", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(json: &str) -> Vec<String> {
        texts(serde_json::from_str(json).unwrap(), "any-model").unwrap()
    }

    #[test]
    fn an_input_is_texts_or_their_tokens() {
        assert_eq!(input(r#""a tide""#), ["a tide"]);
        assert_eq!(input(r#"["a", "tide"]"#), ["a", "tide"]);
        assert_eq!(input("[15339, 1917]"), ["hello world"]); // cl100k's
        assert_eq!(input("[[15339], [1917]]"), ["hello", " world"]);
        assert_eq!(input("[[15339, 1917], []]"), ["hello world", ""]);
        for (mixed, words) in [
            (r#"["a", 1]"#, "expected a string"),
            (r#"[1, "a"]"#, "expected u32"),
            ("[[1], 1]", "expected a sequence"),
            ("[-1]", "expected a text, a token"),
            ("[4294967296]", "expected a text, a token"),
            ("{}", "expected a text, a list"),
        ] {
            let error = serde_json::from_str::<Input>(mixed).unwrap_err().to_string();
            assert!(error.contains(words), "{mixed}: {error}");
        }
        for none in ["[]", "[[4294967295]]"] {
            assert!(texts(serde_json::from_str(none).unwrap(), "any-model").is_err(), "{none}");
        }
    }

    #[test]
    fn tokens_are_those_of_the_models_name() {
        assert_eq!(encoding_of("text-embedding-3-small").unwrap(), "cl100k");
        assert_eq!(encoding_of("all-minilm-l6-v2").unwrap(), "cl100k");
        assert_eq!(encoding_of("gpt-4o").unwrap(), "o200k");
        assert_eq!(encoding_of("text-davinci-003").unwrap_err().status, 400);
    }
}
