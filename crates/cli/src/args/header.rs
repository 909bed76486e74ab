//! Headers of chunks, and the language model that writes contexts behind them.

use std::str::FromStr;

use cento_engine::HeaderStyle;
use clap::Args;

/// The header that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// In one of the styles.
    Style(HeaderStyle),
    /// In the collection's style, with a context behind it that a language model wrote.
    Written,
}

impl FromStr for Header {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "llm" => Ok(Self::Written),
            name => name.parse().map(Self::Style).map_err(|error: cento_engine::corpus::Error| format!("{error}, llm")),
        }
    }
}

/// Prices of a million tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Price {
    pub(crate) asked: f64,
    pub(crate) answered: f64,
    /// Of tokens that the server has kept from an earlier call.
    pub(crate) repeated: f64,
}

impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let prices = text.split(',').map(super::finite::not_negative).collect::<Result<Vec<_>, _>>()?;
        match *prices {
            [asked, answered] => Ok(Self { asked, answered, repeated: asked }),
            [asked, answered, repeated] => Ok(Self { asked, answered, repeated }),
            _ => Err("expected two numbers, or three: 0.15,0.60 or 0.15,0.60,0.075".to_owned()),
        }
    }
}

const WRITER: &str = "Contexts by a language model (--header llm)";

/// The language model that writes the contexts of chunks.
#[derive(Debug, Args)]
pub(crate) struct Writer {
    /// OpenAI-compatible address of the model that writes the contexts: http://localhost:8000/v1. Whole documents are
    /// sent there, one call a chunk; its answers are kept in the cache. A key is taken from CENTO_ENDPOINT_KEY alone
    #[arg(long, value_name = "URL", help_heading = WRITER)]
    pub(crate) endpoint: Option<String>,
    /// The name of the model there
    #[arg(long, value_name = "NAME", help_heading = WRITER)]
    pub(crate) endpoint_model: Option<String>,
    /// Seconds that one call may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = WRITER)]
    pub(crate) endpoint_timeout: u64,
    /// Prices of a million tokens: asked, answered and, where the server keeps what it has read of a document, asked
    /// again: 0.15,0.60,0.075. The price of a run is told before it starts
    #[arg(long, value_name = "IN,OUT[,AGAIN]", help_heading = WRITER)]
    pub(crate) endpoint_price: Option<Price>,
}
