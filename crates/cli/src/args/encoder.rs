//! Options of encoders at endpoints.

use cento_engine::{EncoderAccess, EndpointSettings};
use clap::Args;

const ELSEWHERE: &str = "Encoder at an endpoint (--model openai:NAME@URL)";

/// The use of an encoder at an endpoint.
#[derive(Debug, Args)]
pub(crate) struct Elsewhere {
    /// The tokenizer that texts are counted and cut with before they are sent: cl100k, o200k, a model that is here, or
    /// a tokenizer.json; the encoder's own is exact [default: the collection's, or cl100k]
    #[arg(long, value_name = "NAME|FILE", help_heading = ELSEWHERE)]
    pub(crate) encoder_tokenizer: Option<String>,
    /// Put before each question, where the encoder was trained so ('query: ') [default: the collection's, or nothing]
    #[arg(long, value_name = "TEXT", help_heading = ELSEWHERE)]
    pub(crate) query_prompt: Option<String>,
    /// Put before each text to be found ('passage: ') [default: the collection's, or nothing]
    #[arg(long, value_name = "TEXT", help_heading = ELSEWHERE)]
    pub(crate) document_prompt: Option<String>,
    /// Seconds that one request may take
    #[arg(long, value_name = "SECONDS", default_value_t = EncoderAccess::default().timeout.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = ELSEWHERE)]
    pub(crate) encoder_timeout: u64,
    /// Requests that are in the air at once
    #[arg(long, value_name = "N", default_value_t = EncoderAccess::default().n_requests, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256), help_heading = ELSEWHERE)]
    pub(crate) encoder_requests: usize,
}

/// Options of such an encoder that `cento index` alone has.
#[derive(Debug, Args)]
pub(crate) struct ElsewhereIndexed {
    #[command(flatten)]
    pub(crate) both: Elsewhere,
    /// Tokens of a text that are sent, prompt and special tokens counted: no more than the encoder reads [default:
    /// the collection's, or 512]
    #[arg(long, value_name = "N", help_heading = ELSEWHERE)]
    pub(crate) encoder_window: Option<usize>,
    /// Ask for vectors of so many values; for models trained so (Matryoshka) [default: the collection's, or all]
    #[arg(long, value_name = "N", help_heading = ELSEWHERE)]
    pub(crate) encoder_dimensions: Option<usize>,
    /// With --dry-run: the price of a million tokens, for what the run would cost
    #[arg(long, value_name = "PRICE", requires = "dry_run", value_parser = super::finite::not_negative, help_heading = ELSEWHERE)]
    pub(crate) price_per_million_tokens: Option<f64>,
}

impl Elsewhere {
    /// The way an encoder is asked; who may be asked is known already.
    pub(crate) fn access(&self, access: &EncoderAccess) -> EncoderAccess {
        EncoderAccess {
            timeout: std::time::Duration::from_secs(self.encoder_timeout),
            n_requests: self.encoder_requests,
            ..access.clone()
        }
    }

    pub(crate) fn settings(&self) -> EndpointSettings {
        EndpointSettings {
            tokenizer: self.encoder_tokenizer.clone(),
            query_prompt: self.query_prompt.clone(),
            document_prompt: self.document_prompt.clone(),
            ..EndpointSettings::default()
        }
    }
}

impl ElsewhereIndexed {
    pub(crate) fn settings(&self) -> EndpointSettings {
        EndpointSettings {
            window_tokens: self.encoder_window,
            dimensions: self.encoder_dimensions,
            ..self.both.settings()
        }
    }
}
