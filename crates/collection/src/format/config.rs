//! What a collection was built with. Fixed when it is made; a later command that asks for something else is refused.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use cento_corpus::{ChunkSize, HeaderStyle};
use cento_lexical::Language;
use cento_vector::{Lift, Scalar};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// Candidates each arm of a search contributes; never derived from `k`, so that the top 10 are the top 10 of the top
/// 1,000.
pub const CANDIDATE_DEPTH: usize = 1000;

/// Rows from which a segment gets a graph. At the depth that a search needs (1,000 candidates) a walk through 118,180
/// rows of 384 dimensions in f16 takes 1.1 ms, the exact scan of them 5.7 ms, on one core with AVX-512; of half as many
/// rows a scan takes little more than twice the time of a walk, and a graph over them some ten seconds to build.
pub const GRAPH_ROWS_MIN: usize = 50_000;

/// The most rows of a segment: what the formats of its files can number.
pub const SEGMENT_ROWS_MAX: usize = cento_lexical::ROWS_MAX as usize;

/// The vectors that find documents, unless asked otherwise, in a collection with both kinds.
pub const FIND: VectorColumn = VectorColumn::Plain;

/// The vectors that score chunks inside a document, unless asked otherwise, in a collection with both kinds.
pub const SCORE: VectorColumn = VectorColumn::Late;

/// Number type of an encoder, unless another was asked for.
pub const PRECISION: &str = "f32";

/// Version of the chunker's rules; chunks of another version would not be the same chunks.
pub const CHUNKER_VERSION: u32 = 1;

/// The settings that shape every row of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionConfig {
    /// Where the encoder came from: a card's name or a folder.
    pub model: String,
    /// Fingerprint of the encoder: of everything in it that shapes a vector.
    pub model_fingerprint: String,
    /// Length of its vectors.
    pub dimensions: usize,
    /// Target tokens of a chunk, or `document`.
    pub chunk_tokens: String,
    /// [`CHUNKER_VERSION`] at the time.
    pub chunker_version: u32,
    /// Style of the header embedded and indexed with each chunk.
    pub header: String,
    /// Language of the lexical analysis.
    pub language: String,
    /// Scalar type of the stored vectors.
    pub vectors: String,
    /// Number type the encoder computes in; not written for f32, as before there was a choice.
    #[serde(default = "reference", skip_serializing_if = "is_reference")]
    pub precision: String,
    /// The vectors of a chunk; not written for [`Pooling::Plain`], as before there was a choice.
    #[serde(default, skip_serializing_if = "Pooling::is_plain")]
    pub pooling: Pooling,
    /// The windows in which documents are read for late vectors, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateReading>,
    /// The vectors that the collection was given, where no encoder made them: then there is none, and a document has
    /// one chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<GivenVectors>,
    /// The use of an encoder that is at an endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointEncoder>,
    /// Name of the prompt before queries in the model's folder, where it is not the one of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The contexts behind the headers, where a language model wrote any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<WrittenContexts>,
}

/// Contexts of chunks that a language model wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenContexts {
    /// Name of the model, as its endpoint knows it.
    pub model: String,
    /// Fingerprint of what it was asked, and of what was made of its answers.
    pub prompt: String,
}

impl Display for WrittenContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "llm ({}, prompt {})", self.model, self.prompt)
    }
}

/// The use that a collection makes of an encoder at an endpoint. Its address is in the model's name; a key is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointEncoder {
    /// Values of each vector, where the server is asked to shorten them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<usize>,
    /// The tokenizer that texts are counted and cut with.
    pub tokenizer: String,
    /// Tokens of a text that are sent.
    pub window_tokens: usize,
    /// Put before each query.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query_prompt: String,
    /// Put before each text that queries may find.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub document_prompt: String,
    /// The vectors of a few fixed texts, by which the model is known again: the first values of each, 32-bit floats,
    /// little-endian, in base64.
    pub probes: String,
}

/// The name and the fingerprint of the encoder in a collection that has none.
pub const NO_MODEL: &str = "none";

/// Vectors that a collection was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenVectors {
    /// Length of the vectors as they were given; those that are stored may be longer.
    pub dimensions: usize,
    /// The order of their neighbours.
    pub distance: Distance,
    /// No vector is longer than 2 to this power; of the cosine 0, where all have length 1.
    pub norm_exponent: i32,
    /// Documents have texts; without, the text of a document is its id.
    pub texts: bool,
}

/// The order of neighbours, and the score that tells it; a larger score is nearer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// The cosine of the angle; vectors have unit length.
    #[default]
    Cosine,
    /// The inner product.
    InnerProduct,
    /// The Euclidean distance, as a score below 0.
    Euclidean,
}

impl Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cosine => "cosine",
            Self::InnerProduct => "inner-product",
            Self::Euclidean => "euclidean",
        })
    }
}

impl FromStr for Distance {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "cosine" => Ok(Self::Cosine),
            "inner-product" => Ok(Self::InnerProduct),
            "euclidean" => Ok(Self::Euclidean),
            _ => Err(unknown("distance", name, "is not cosine, inner-product or euclidean")),
        }
    }
}

impl GivenVectors {
    /// The way they are stored.
    pub fn lift(&self) -> Lift {
        let exponent = self.norm_exponent;
        match self.distance {
            Distance::Cosine => Lift::Cosine,
            Distance::InnerProduct => Lift::InnerProduct { exponent },
            Distance::Euclidean => Lift::Euclidean { exponent },
        }
    }
}

fn reference() -> String {
    PRECISION.to_owned()
}

fn is_reference(precision: &str) -> bool {
    precision == PRECISION
}

/// The vectors that the chunks of a collection have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// Each chunk is embedded by itself, behind its header.
    #[default]
    Plain,
    /// Each chunk is the mean of its tokens in the document read as a whole.
    Late,
    /// A vector of either kind.
    Both,
}

impl Pooling {
    fn is_plain(&self) -> bool {
        *self == Self::Plain
    }

    /// The vectors of a chunk, in the order of their columns in a segment.
    pub fn columns(self) -> &'static [VectorColumn] {
        match self {
            Self::Plain => &[VectorColumn::Plain],
            Self::Late => &[VectorColumn::Late],
            Self::Both => &[VectorColumn::Plain, VectorColumn::Late],
        }
    }
}

impl Display for Pooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Late => "late",
            Self::Both => "both",
        })
    }
}

impl FromStr for Pooling {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "plain" => Ok(Self::Plain),
            "late" => Ok(Self::Late),
            "both" => Ok(Self::Both),
            _ => Err(unknown("pooling", name, "is not plain, late or both")),
        }
    }
}

/// One kind of vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VectorColumn {
    /// Of the chunk by itself, behind its header.
    Plain,
    /// Of the chunk in its document.
    Late,
}

impl Display for VectorColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Late => "late",
        })
    }
}

impl FromStr for VectorColumn {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "plain" => Ok(Self::Plain),
            "late" => Ok(Self::Late),
            _ => Err(unknown("vectors", name, "is not plain or late")),
        }
    }
}

/// The reading of documents for late vectors: windows of tokens that overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LateReading {
    /// Tokens read together.
    pub window_tokens: usize,
    /// Tokens that neighbouring windows have in common, at least.
    pub overlap_tokens: usize,
}

fn unknown(setting: &'static str, value: &str, reason: &str) -> Error {
    Error::Setting { setting, value: value.to_owned(), reason: reason.to_owned() }
}

impl CollectionConfig {
    /// The first setting in which another configuration differs, with both values; none where they are the same.
    pub fn difference(&self, other: &Self) -> Option<(String, String, String)> {
        let settings = |config: &Self| -> BTreeMap<String, Value> {
            match serde_json::to_value(config) {
                Ok(Value::Object(settings)) => settings.into_iter().collect(),
                Ok(_) | Err(_) => BTreeMap::new(),
            }
        };
        let (own, others) = (settings(self), settings(other));
        let setting = own.keys().chain(others.keys()).find(|setting| own.get(*setting) != others.get(*setting))?;
        let value = |settings: &BTreeMap<String, Value>| settings.get(setting).unwrap_or(&Value::Null).to_string();
        Some((setting.clone(), value(&own), value(&others)))
    }

    /// The way vectors are stored: as they are, unless they were given for another distance.
    pub fn lift(&self) -> Lift {
        self.given.map_or(Lift::Cosine, |given| given.lift())
    }

    /// Length of a vector that is searched for.
    pub fn query_dimensions(&self) -> usize {
        self.given.map_or(self.dimensions, |given| given.dimensions)
    }

    /// The order of neighbours.
    pub fn distance(&self) -> Distance {
        self.given.map_or(Distance::Cosine, |given| given.distance)
    }

    /// The chunk size, as the chunker takes it.
    pub fn chunk_size(&self) -> Result<ChunkSize> {
        self.chunk_tokens.parse::<ChunkTokens>().map(|tokens| tokens.0)
    }

    /// The header style, as the chunker takes it.
    pub fn header_style(&self) -> Result<HeaderStyle> {
        parse("header", &self.header)
    }

    /// The language, as the analyser takes it.
    pub fn language(&self) -> Result<Language> {
        parse("language", &self.language)
    }

    /// The scalar type of the vectors.
    pub fn scalar(&self) -> Result<Scalar> {
        match self.vectors.as_str() {
            "f32" => Ok(Scalar::F32),
            "f16" => Ok(Scalar::F16),
            other => Err(Error::Setting {
                setting: "vectors",
                value: other.to_owned(),
                reason: "is not f32 or f16".to_owned(),
            }),
        }
    }
}

fn parse<T: FromStr<Err: Display>>(setting: &'static str, value: &str) -> Result<T> {
    value.parse().map_err(|error: T::Err| Error::Setting {
        setting,
        value: value.to_owned(),
        reason: format!("cannot be used: {error}"),
    })
}

/// `--chunk-tokens`: a number of tokens, or the word `sentence` or `document`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkTokens(pub ChunkSize);

impl FromStr for ChunkTokens {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |reason: &str| Error::Setting {
            setting: "chunk-tokens",
            value: text.to_owned(),
            reason: reason.to_owned(),
        };
        match (text, text.parse::<usize>()) {
            ("document", _) => Ok(Self(ChunkSize::Document)),
            ("sentence", _) => Ok(Self(ChunkSize::Sentence)),
            (_, Ok(0)) => Err(refuse("is too small: a chunk has at least one token")),
            (_, Ok(n_tokens)) => Ok(Self(ChunkSize::Target(n_tokens))),
            (_, Err(_)) => Err(refuse("is neither a number of tokens nor one of the words `sentence` and `document`")),
        }
    }
}

impl Display for ChunkTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ChunkSize::Target(n_tokens) => write!(f, "{n_tokens}"),
            ChunkSize::Sentence => f.write_str("sentence"),
            ChunkSize::Document => f.write_str("document"),
        }
    }
}
