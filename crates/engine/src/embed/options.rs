//! Options of `cento embed`, and the progress that it tells.

use std::path::PathBuf;

use cento_embedder::{DeviceChoice, Kind, Precision};

use super::quantize::OutputType;
use crate::encoder::{EncoderAccess, EndpointSettings};
use crate::ingest::cache::CacheOptions;

/// Options to embed and write texts.
#[derive(Debug, Clone)]
pub struct EmbedOptions {
    /// Card or folder of the encoder, or `openai:NAME@URL` of one at an endpoint; the default model if none.
    pub model: Option<String>,
    /// Name of the prompt before queries, in the folder of an encoder of this machine; `query` by default.
    pub prompt: Option<String>,
    /// The use of an encoder at an endpoint; its dimensions and window are those of these options.
    pub endpoint: EndpointSettings,
    /// The way it is asked.
    pub access: EncoderAccess,
    /// Kind of prompt before each text.
    pub kind: Kind,
    /// Where the encoder runs.
    pub device: DeviceChoice,
    /// Number type it computes in.
    pub precision: Precision,
    /// CPU threads; 0 = one per core.
    pub threads: usize,
    /// The first so many dimensions, made unit length again; for models trained so (Matryoshka).
    pub dimensions: Option<usize>,
    /// Tokens read of a text, prompt and special tokens counted; at most the model's own window.
    pub max_tokens: Option<usize>,
    /// Treatment of a text beyond the window.
    pub too_long: TooLong,
    /// Type of the matrix.
    pub output_type: OutputType,
    /// Ranges of `int8` and `uint8`: an array of 2 x dimensions f32, least values first; those of the texts themselves
    /// if none.
    pub ranges: Option<PathBuf>,
    /// Take vectors from the cache where it has them, and keep new ones there.
    pub cache: Option<CacheOptions>,
    /// Forget an earlier run that was not finished, and make a result anew that is there.
    pub restart: bool,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self {
            model: None,
            prompt: None,
            endpoint: EndpointSettings::default(),
            access: EncoderAccess::default(),
            kind: Kind::Document,
            device: DeviceChoice::Auto,
            precision: Precision::F32,
            threads: 0,
            dimensions: None,
            max_tokens: None,
            too_long: TooLong::Truncate,
            output_type: OutputType::F32,
            ranges: None,
            cache: None,
            restart: false,
        }
    }
}

/// Treatment of a text beyond the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLong {
    /// Its end is left out, and its line of ids says so.
    Truncate,
    /// The run ends with an error that names it.
    Error,
}

impl TooLong {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Truncate => "truncate",
            Self::Error => "error",
        }
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Default)]
pub struct EmbedProgress {
    /// Rows there, those of an earlier run counted.
    pub n_rows: u64,
    /// Rows of an earlier run.
    pub n_resumed: u64,
    /// Tokens embedded in this run.
    pub n_tokens: u64,
    /// Bytes of the input that the rows come from.
    pub n_bytes: u64,
    /// Bytes of the input, where they are known.
    pub n_bytes_total: Option<u64>,
}
