//! Assembly: the cited context that candidates of another engine make, inside its budget.

pub(super) mod trace;

use cento_assembly::trace::{Certificate, Outcome};
use cento_assembly::{Context, Format, Marks, Order, Policy, Strategy};
use cento_lexical::Language;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::api::budget::Budget;
use crate::api::context::{DEFAULT_TOKENIZER, inline};
use crate::api::parse::{Request, languages, parse, value};
use crate::api::version::VERSION;
use crate::context::given::{Given, GivenCandidate, GivenPassage};
use crate::context::request::ContextSettings;
use crate::context::tokens::BudgetTokenizer;
use crate::error::{Error, Result};
use crate::limits::{self, BUDGET_TOKENS_MAX, CANDIDATES_MAX, QUERY_BYTES_MAX};

/// The longest file of candidates that is read.
pub const READ_BYTES_MAX: u64 = 256 << 20;

/// A question and the candidates that another engine found for it. Every other field may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["query", "candidates"]))]
pub struct AssembleRequest {
    /// The question, in plain words.
    pub query: String,
    /// The candidates; their order does not matter.
    pub candidates: Vec<GivenCandidate>,
    /// Tokens that the context may have, everything in it counted.
    pub budget: Budget,
    /// The way candidates are chosen; `seal` searches again, and so is none of these.
    pub strategy: Strategy,
    /// Priors, boosts, gates, section budgets, settings of the strategies: the keys of a policy file.
    #[serde(deserialize_with = "inline", serialize_with = "outline")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub policy: Policy,
    /// Whose tokens: `o200k`, `cl100k`, or another that the service knows by name.
    pub tokenizer: String,
    /// The format of the context.
    pub format: Format,
    /// The order of its pieces.
    pub order: Order,
    /// The marks around its pieces.
    pub marks: Marks,
    /// Ids of documents, or of chunks as the trace has them (`DOC#number`), that are delivered whatever else is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Ids of documents or chunks that are not delivered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The language of stemming and stop words, or `none`; English, if there is none here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// Writes a policy as it is read: what is not set is not there.
fn outline<S: Serializer>(policy: &Policy, serializer: S) -> Result<S::Ok, S::Error> {
    toml::Table::try_from(policy).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

impl Default for AssembleRequest {
    fn default() -> Self {
        Self {
            query: String::new(),
            candidates: Vec::new(),
            budget: Budget::default(),
            strategy: Strategy::default(),
            policy: Policy::default(),
            tokenizer: DEFAULT_TOKENIZER.to_owned(),
            format: Format::default(),
            order: Order::default(),
            marks: Marks::default(),
            include: Vec::new(),
            exclude: Vec::new(),
            language: None,
        }
    }
}

impl AssembleRequest {
    /// The context of candidates, by every default.
    pub fn new(query: impl Into<String>, candidates: Vec<GivenCandidate>) -> Self {
        Self { query: query.into(), candidates, ..Self::default() }
    }

    /// The language of its texts.
    ///
    /// # Errors
    /// [`Error::Setting`] for one that is none.
    pub fn language(&self) -> Result<Language> {
        Ok(value("language", self.language.as_deref(), &languages())?.unwrap_or_default())
    }

    /// The requirements that a context must meet, with the most tokens that the budget allows.
    pub(crate) fn resolve<'a>(&'a self, tokenizer: &'a BudgetTokenizer<'a>) -> ContextSettings<'a> {
        ContextSettings {
            strategy: self.strategy,
            format: self.format,
            order: self.order,
            marks: self.marks,
            include: &self.include,
            exclude: &self.exclude,
            ..ContextSettings::new(self.budget.most(), tokenizer, &self.policy)
        }
    }
}

impl Request for AssembleRequest {
    fn check(&self) -> Result<()> {
        limits::text("query", &self.query, QUERY_BYTES_MAX)?;
        limits::within("budget", self.budget.most(), 0, BUDGET_TOKENS_MAX)?;
        limits::within("candidates", self.candidates.len(), 1, CANDIDATES_MAX)?;
        limits::ids("include", &self.include)?;
        limits::ids("exclude", &self.exclude)?;
        self.language().map(drop)
    }
}

/// Reads a request from a file: as JSON whole, as a list of candidates, or as candidates a line each. The question of
/// a mere list is empty.
///
/// # Errors
/// Those of [`parse`]; of lines, [`Error::Request`] with the line.
pub fn candidates(file: &[u8]) -> Result<AssembleRequest> {
    let list = |candidates: Vec<GivenCandidate>| AssembleRequest::new(String::new(), candidates);
    let refused = |field: String, error: &serde_json::Error| Error::Request { field, reason: error.to_string() };
    let text = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file).trim_ascii();
    if text.starts_with(b"[") {
        return serde_json::from_slice(text).map(list).map_err(|error| refused(".".to_owned(), &error));
    }
    let first: Option<serde_json::Value> =
        serde_json::Deserializer::from_slice(text).into_iter().next().and_then(Result::ok);
    if first.is_some_and(|first| first.get("candidates").is_some() || first.get("text").is_none()) {
        return parse(text);
    }
    let lines = text.split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    let candidate = |(at, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|error| refused(format!("line {}", at + 1), &error))
    };
    lines.map(candidate).collect::<Result<_>>().map(list)
}

/// The likeness of two candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Likeness {
    /// By the vectors that were given, and by words.
    Vectors,
    /// By words alone.
    Words,
}

/// A context of candidates that were given, and what it cites.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AssembleAnswer {
    /// Format of this answer.
    pub version: u32,
    /// The question as given.
    pub query: String,
    /// The context.
    pub context: String,
    /// Its tokens.
    pub n_tokens: usize,
    /// The tokens it may have.
    pub budget_tokens: usize,
    /// Whose tokens.
    pub tokenizer: String,
    /// One for each piece, in order.
    pub citations: Vec<GivenCitation>,
    /// The outcome that the context states: `whole`, `cut`, `nothing_relevant` or `nothing_fits`.
    pub outcome: Outcome,
    /// The nearness of the choice to the best; none where the strategy knows no bound.
    pub certificate: Option<Certificate>,
    /// The likeness of candidates.
    pub likeness: Likeness,
    /// The texts among which a word's rarity was counted: so many of the candidates' own, as there is no collection.
    pub idf_of: usize,
    /// Warnings to whoever asks.
    pub warnings: Vec<String>,
}

/// A citation of candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GivenCitation {
    /// The number in its mark, from 1.
    pub n: usize,
    /// Id of the document.
    pub document: String,
    /// The headings of the first candidate in it, outermost first.
    pub headings: Vec<String>,
    /// The candidates that it is made of, in order, and which bytes of each.
    pub passages: Vec<GivenPassage>,
    /// True if it is a part of what was given, cut to fit the budget.
    pub cut: bool,
}

impl AssembleAnswer {
    /// The answer that a context of given candidates is.
    #[must_use]
    pub fn new(request: &AssembleRequest, given: &Given<'_>, context: &Context) -> Self {
        let made = &context.trace.manifest;
        let cited = |citation: &cento_assembly::Citation| GivenCitation {
            n: citation.n,
            document: citation.document.clone(),
            headings: citation.path.clone(),
            passages: given.passages(citation),
            cut: citation.cut,
        };
        Self {
            version: VERSION,
            query: request.query.clone(),
            context: context.counted().to_owned(),
            n_tokens: context.n_tokens,
            budget_tokens: context.budget_tokens,
            tokenizer: context.tokenizer.clone(),
            citations: context.citations.iter().map(cited).collect(),
            outcome: made.outcome,
            certificate: made.certificate.clone(),
            likeness: if given.has_vectors() { Likeness::Vectors } else { Likeness::Words },
            idf_of: given.n_texts(),
            warnings: context.trace.warnings.clone(),
        }
    }
}
