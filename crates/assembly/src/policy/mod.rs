//! The policy of a selection: what counts as relevant, which sections matter, how much may repeat. Written in TOML.
//!
//! A policy is the settings of all strategies and the gates they share; each key is explained, checked and put to use
//! by its owner.
//! Source: Khurshid and Sehgal, "Structure and Diversity Aware Context Bubble Construction" (arXiv 2601.10681), eqs.
//! 4-13 and appendix A. The paper gives delta = .55 in one row of a table and neither K, theta, rho nor gamma; the
//! other defaults are ours.

mod at_line;
pub mod learned;
pub mod pipeline;
mod second;

use crate::error::{Error, Result};
use crate::lever::Key;
use crate::neighborhood::Neighborhood;
use crate::select::chooser::Chooser;
use crate::select::gates::Gates;
use crate::select::sections::Sections;
use crate::strategies::adaptive::Adaptive;
use crate::strategies::automerge::Automerge;
use crate::strategies::bubble::Bubble;
use crate::strategies::cento::{Cento, Segments};
use crate::strategies::mmr::Mmr;
use crate::strategies::parent::{self, Parent};
use crate::strategies::rse::Rse;
use crate::strategies::rse_kadane::Kadane;
use crate::strategies::seal::{Kept, SealConfig};
use crate::strategies::window::Window;
use crate::strategies::{Flat, RseExact, Strategy};
use crate::value::prior::{Priors, Scoring, normalized};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::candidate::normalize_label;
pub use crate::select::gates::{Relaxed, SecondSearch};
pub use crate::select::redundancy::{DEFAULT_DELTA, Gate};
pub use crate::select::sections::{OTHER_SECTIONS, RhoOf, Slack};
pub use crate::value::prior::{Length, Relevance, Theta};

/// A policy with every key, as a user would write it. `Policy::parse` reads it, and a test holds it to that.
pub const EXAMPLE: &str = include_str!("example.toml");

/// The settings of all strategies; those without a table are of [`Strategy::Bubble`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The measure of eq. 5.
    pub relevance: Relevance,
    /// K of eq. 4: how many candidates are scored, the most relevant first. None: all.
    pub candidates: Option<usize>,
    /// Least relevance, on the scale of retrieval's score (or term frequency) itself.
    pub min_relevance: Option<f64>,
    /// Length, in the encoder's tokens, at which eq. 7 halves a score. None: no penalty.
    pub theta: Option<Theta>,
    /// The overlap of eqs. 12-13.
    pub gate: Gate,
    /// Overlap from which a candidate is redundant, in (0, 1].
    pub delta: f64,
    /// Cosine with one chosen chunk from which a candidate is redundant too, in (0, 1]. None: vectors are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_meaning: Option<f64>,
    /// The use of the tokens that sections leave of their share.
    pub slack: Slack,
    /// The chunks that a share of `rho` is for.
    #[serde(skip_serializing_if = "RhoOf::is_default")]
    pub rho_of: RhoOf,
    /// Most chunks of one document.
    pub max_per_document: Option<usize>,
    /// Most chunks of one section.
    pub max_per_section: Option<usize>,
    /// The way on where nothing passes the gates.
    #[serde(skip_serializing_if = "SecondSearch::is_default")]
    pub second_search: SecondSearch,
    /// pi(s) of eq. 6, by label.
    pub priors: BTreeMap<String, f64>,
    /// gamma of eq. 6, by keyword or phrase.
    pub boosts: BTreeMap<String, f64>,
    /// rho of eq. 11, by label or [`OTHER_SECTIONS`]; in [0, 1].
    pub rho: BTreeMap<String, f64>,
    /// Settings of the strategy of that name.
    pub cento: Cento,
    /// Settings of the strategy of that name.
    pub mmr: Mmr,
    /// Settings of the strategy of that name.
    pub adaptive: Adaptive,
    /// Settings of the strategies `rse` and `rse-exact`.
    pub rse: Rse,
    /// Settings of the strategy `rse-kadane`.
    pub kadane: Kadane,
    /// Settings of the strategy of that name.
    pub window: Window,
    /// Settings of the strategy of that name.
    pub parent: Parent,
    /// Settings of the strategy of that name.
    pub automerge: Automerge,
    /// Settings of the strategy of that name.
    pub seal: SealConfig,
    /// Keeps contexts. None: they are not kept. It changes no context.
    pub cache: Option<Cache>,
}

/// The time for which contexts are kept by whoever holds a collection open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Seconds after which a context is assembled anew.
    pub ttl_seconds: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            relevance: Relevance::default(),
            candidates: None,
            min_relevance: None,
            theta: None,
            gate: Gate::default(),
            delta: DEFAULT_DELTA,
            same_meaning: None,
            slack: Slack::default(),
            rho_of: RhoOf::default(),
            max_per_document: None,
            max_per_section: None,
            second_search: SecondSearch::default(),
            priors: BTreeMap::new(),
            boosts: BTreeMap::new(),
            rho: BTreeMap::new(),
            cento: Cento::default(),
            mmr: Mmr::default(),
            adaptive: Adaptive::default(),
            rse: Rse::default(),
            kadane: Kadane::default(),
            window: Window::default(),
            parent: Parent::default(),
            automerge: Automerge::default(),
            seal: SealConfig::default(),
            cache: None,
        }
    }
}

impl Policy {
    /// Reads a policy from TOML; see [`EXAMPLE`] for every key.
    ///
    /// # Errors
    /// TOML that cannot be read, an unknown key (names the nearest), a value out of its range; each with its line.
    pub fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = toml::from_str(text)?;
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let error = Error::PolicyKey { key: key.clone(), nearest: nearest(key, KEYS) };
            return Err(at_line::at_line(text, error));
        }
        toml::from_str::<Self>(text)?.checked().map_err(|error| at_line::at_line(text, error))
    }

    /// The policy with normalised labels and keywords, every value in its range.
    ///
    /// # Errors
    /// A value out of its range, or two keys that are the same label.
    pub fn checked(&self) -> Result<Self> {
        let mut policy = self.clone();
        policy.priors = normalized("priors", &self.priors)?;
        policy.boosts = normalized("boosts", &self.boosts)?;
        policy.rho = normalized("rho", &self.rho)?;
        let (gates, scoring) = (self.gates(), self.scoring());
        gates.check_delta()?;
        scoring.check_theta()?;
        gates.check_relevance()?;
        scoring.check_pool()?;
        gates.check_maxima()?;
        gates.sections.check()?;
        self.cento.check()?;
        self.mmr.check()?;
        self.adaptive.check()?;
        self.rse.check()?;
        self.kadane.check()?;
        self.window.check()?;
        self.parent.check()?;
        self.automerge.check()?;
        self.cache.iter().try_for_each(Cache::check)?;
        self.seal.checked()?;
        Ok(policy)
    }

    /// The policy with another value under a key.
    ///
    /// # Errors
    /// A value that the key does not take, or out of its range.
    pub fn with(&self, key: &Key, value: toml::Value) -> Result<Self> {
        let mut all = toml::Table::try_from(self).expect("a policy is always TOML");
        let table = match key.table {
            None => &mut all,
            Some(name) => {
                let table = all.entry(name).or_insert_with(|| toml::Value::Table(toml::Table::new()));
                table.as_table_mut().expect("what a key names as a table is one")
            }
        };
        table.insert(key.name.clone(), value);
        let changed: Self = toml::Value::Table(all).try_into()?;
        changed.checked()?;
        Ok(changed)
    }

    /// The value under a key, as TOML writes it; none where there is none.
    pub fn written(&self, key: &Key) -> Option<String> {
        let all = toml::Table::try_from(self).expect("a policy is always TOML");
        let table = match key.table {
            None => &all,
            Some(name) => all.get(name)?.as_table()?,
        };
        table.get(&key.name).map(toml::Value::to_string)
    }

    /// A strategy with the settings that this policy gives it for a question.
    pub(crate) fn chooser(&self, strategy: Strategy, question: &str) -> Box<dyn Chooser + '_> {
        match strategy {
            Strategy::Cento => Box::new(self.segments()),
            Strategy::Flat => Box::new(Flat),
            Strategy::Mmr => Box::new(self.mmr),
            Strategy::Adaptive => Box::new(self.adaptive),
            Strategy::Bubble => Box::new(Bubble { scoring: self.scoring(), gates: self.gates() }),
            Strategy::Rse => Box::new(self.rse),
            Strategy::RseKadane => Box::new(self.kadane),
            Strategy::RseExact => Box::new(RseExact(self.rse)),
            Strategy::Window => Box::new(self.window.asked(question)),
            Strategy::Parent => Box::new(parent::Sections { parent: self.parent, window: self.window.asked(question) }),
            Strategy::Automerge => Box::new(self.automerge),
            Strategy::Seal => Box::new(Kept),
        }
    }

    /// The chunks beside those found that a strategy looks at with these settings to answer a question: what it is to
    /// be offered.
    ///
    /// # Errors
    /// Those of [`Policy::checked`].
    pub fn neighborhood(&self, strategy: Strategy, question: &str) -> Result<Neighborhood> {
        Ok(self.checked()?.chooser(strategy, question).neighborhood())
    }

    /// The strategy `cento`.
    pub(crate) fn segments(&self) -> Segments<'_> {
        Segments::new(self.cento, self.labels(), self.gates())
    }

    /// The gates that strategies share.
    pub(crate) fn gates(&self) -> Gates<'_> {
        Gates {
            relevance: self.relevance,
            min_relevance: self.min_relevance,
            max_per_document: self.max_per_document,
            max_per_section: self.max_per_section,
            gate: self.gate,
            delta: self.delta,
            same_meaning: self.same_meaning,
            sections: Sections { rho: &self.rho, rho_of: self.rho_of, slack: self.slack },
        }
    }

    /// The settings that scores are made of.
    pub(crate) fn scoring(&self) -> Scoring<'_> {
        let Self { relevance, candidates, theta, .. } = *self;
        Scoring { relevance, candidates, theta, priors: self.labels() }
    }

    fn labels(&self) -> Priors<'_> {
        Priors { priors: &self.priors, boosts: &self.boosts }
    }
}

impl Cache {
    fn check(&self) -> Result<()> {
        let known = (1..=TTL_SECONDS_MAX as u64).contains(&self.ttl_seconds);
        Error::unless(known, "cache.ttl_seconds", "must be at least 1 and at most 31536000, a year")
    }
}

/// Longest that a context may be kept.
const TTL_SECONDS_MAX: usize = 365 * 24 * 3600;

const KEYS: [&str; 25] = [
    "relevance",
    "candidates",
    "min_relevance",
    "theta",
    "gate",
    "delta",
    "same_meaning",
    "slack",
    "rho_of",
    "max_per_document",
    "max_per_section",
    "second_search",
    "priors",
    "boosts",
    "rho",
    "cento",
    "mmr",
    "adaptive",
    "rse",
    "kadane",
    "window",
    "parent",
    "automerge",
    "seal",
    "cache",
];

/// The known key nearest to a mistyped one: one edit in three letters at most.
fn nearest(key: &str, keys: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    let distance = |known: &&str| strsim::damerau_levenshtein(&key.to_lowercase(), known);
    let known = keys.into_iter().min_by_key(distance)?;
    (distance(&known) <= known.len().div_ceil(3)).then_some(known)
}

#[cfg(test)]
mod tests;
