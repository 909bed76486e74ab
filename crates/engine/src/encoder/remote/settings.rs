//! The use of an encoder elsewhere: what is asked for, held against what the vectors there are were made with.

use cento_collection::format::config::EndpointEncoder;

use crate::error::{Error, Result};

/// The tokenizer that texts are counted and cut with, unless another is named: that of OpenAI's embedding models.
pub const ENCODER_TOKENIZER: &str = "cl100k";

/// Tokens of a text that are sent, unless told: what nearly every encoder reads.
pub const ENCODER_WINDOW: usize = 512;

/// Settings of an encoder elsewhere; `None` means what the collection has, or the default for a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointSettings {
    /// The tokenizer that texts are counted and cut with: `cl100k`, `o200k`, a model that is here, or the path of a
    /// `tokenizer.json`; [`ENCODER_TOKENIZER`] by default.
    pub tokenizer: Option<String>,
    /// Tokens of a text that are sent, prompt and special tokens counted; [`ENCODER_WINDOW`] by default.
    pub window_tokens: Option<usize>,
    /// Values of each vector, where the server is asked to shorten them (Matryoshka); all by default.
    pub dimensions: Option<usize>,
    /// Put before each query; empty by default.
    pub query_prompt: Option<String>,
    /// Put before each text that queries may find; empty by default.
    pub document_prompt: Option<String>,
}

impl EndpointSettings {
    /// The first of them that was set, as settings are called.
    pub(crate) fn any(&self) -> Option<(&'static str, String)> {
        let Self { tokenizer, window_tokens, dimensions, query_prompt, document_prompt } = self;
        let number = |number: &Option<usize>| number.map(|number| number.to_string());
        let set = [
            ("encoder-tokenizer", tokenizer.clone()),
            ("encoder-window", number(window_tokens)),
            ("encoder-dimensions", number(dimensions)),
            ("query-prompt", query_prompt.clone()),
            ("document-prompt", document_prompt.clone()),
        ];
        set.into_iter().find_map(|(name, value)| Some((name, value?)))
    }

    /// The settings of a new encoder, or those it was opened with before, if nothing else is asked for.
    pub(crate) fn settle(&self, known: Option<&EndpointEncoder>) -> Result<EndpointEncoder> {
        let asked = EndpointEncoder {
            dimensions: self.dimensions.or(known.and_then(|known| known.dimensions)),
            tokenizer: self.tokenizer.clone().unwrap_or_else(|| match known {
                Some(known) => known.tokenizer.clone(),
                None => ENCODER_TOKENIZER.to_owned(),
            }),
            window_tokens: self.window_tokens.unwrap_or(known.map_or(ENCODER_WINDOW, |known| known.window_tokens)),
            query_prompt: prompt(&self.query_prompt, known.map(|known| &known.query_prompt)),
            document_prompt: prompt(&self.document_prompt, known.map(|known| &known.document_prompt)),
            probes: known.map(|known| known.probes.clone()).unwrap_or_default(),
        };
        let Some(known) = known else { return Ok(asked) };
        let all = |dimensions: Option<usize>| dimensions.map_or_else(|| "all".to_owned(), |n| n.to_string());
        for (setting, collection, requested) in [
            ("encoder-tokenizer", known.tokenizer.clone(), asked.tokenizer.clone()),
            ("encoder-window", known.window_tokens.to_string(), asked.window_tokens.to_string()),
            ("encoder-dimensions", all(known.dimensions), all(asked.dimensions)),
            ("query-prompt", known.query_prompt.clone(), asked.query_prompt.clone()),
            ("document-prompt", known.document_prompt.clone(), asked.document_prompt.clone()),
        ] {
            if collection != requested {
                return Err(Error::Mismatch { setting, collection, requested });
            }
        }
        Ok(asked)
    }
}

fn prompt(asked: &Option<String>, known: Option<&String>) -> String {
    asked.as_ref().or(known).cloned().unwrap_or_default()
}
