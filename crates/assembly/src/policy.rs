//! The policy of a selection: what counts as relevant, which sections matter, how much may repeat. Written in TOML.
//!
//! Source: Khurshid and Sehgal, "Structure and Diversity Aware Context Bubble Construction" (arXiv 2601.10681), eqs. 4-13 and
//! appendix A. The paper gives delta = .55 in one row of a table and neither K, theta, rho nor gamma; the other defaults are ours.

mod at_line;

use crate::error::{Error, Result};
use crate::seal::SealConfig;
use crate::select::adaptive::{Adaptive, Buffer, Share};
use crate::select::cento::Cento;
use crate::select::mmr::Mmr;
use crate::select::rse::{Kadane, Rse};
use crate::select::small_to_big::{Automerge, Parent, Window};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Overlap from which a candidate is redundant: what says nearly the same. The paper's .55 also keeps out what only shares its
/// subject with a chosen chunk, and evidence with it.
pub const DEFAULT_DELTA: f64 = 0.9;

/// The key of `[rho]` for every section without a share of its own.
pub const OTHER_SECTIONS: &str = "*";

/// A policy with every key, as a user would write it. `Policy::parse` reads it, and a test holds it to that.
pub const EXAMPLE: &str = r#"# How a context bubble is chosen. Every key is optional; what stands here is the default unless a comment says otherwise.
relevance = "fused"     # "fused": the score of retrieval as a share of the best candidate's, in [0, 1].
                        # "tf": the paper's, how often the terms of the query occur in the chunk.
candidates = 200        # K, the pool: the most relevant candidates are scored, the others not. Default: all.
min_relevance = 0.01    # Below this score of retrieval (or term frequency) a candidate is not delivered. Default: none.
theta = 128.0           # Length in the encoder's tokens at which a score is halved, or "median", that of the pool. Default: lengths
                        # do not matter.
gate = "pairwise"       # What makes a candidate redundant: "pairwise", most of its content words are in ONE chosen chunk;
                        # "union", the paper's: most of its words are in ALL chosen chunks together; "none".
delta = 0.9             # How much is "most", in (0, 1]; the paper's figure is 0.55.
slack = "global"        # What sections leave of their share: "global", offered to all in a second pass; "none", left unspent.
max_per_document = 8    # Chunks of one document. Default: no limit.
max_per_section = 4     # Chunks of one section. Default: no limit.

[priors]                # Added to the relevance of every chunk under the heading. Default: none. In the mode "fused", 1.0 is as
"scope of works" = 0.5  # much as the relevance of the best candidate; in the mode "tf", as much as one occurrence of a term.
"terms & conditions" = -0.5 # The strategy `cento` multiplies likelihoods by e^prior instead: 0.7 doubles them, -0.7 halves them.

[boosts]                # The same for every keyword or phrase that the chunk contains as whole words. Default: none.
"delivery date" = 0.25

[rho]                   # The share of the budget that one section may fill, in [0, 1]: by heading, "*" for the others.
"*" = 0.5               # Default: no limit.
"appendix" = 0.1

[cento]                 # The strategy `cento`. It keeps to min_relevance, the maxima, priors, boosts, rho and gate = "none" as well.
candidates = 400        # Chunks that are weighed, the likeliest.
run_max = 20            # Most chunks in a row. Default: no limit.
same_words = 0.8        # Of two chunks one is left out if this share of the shorter one's three-word runs, weighed by idf, is in the other, or
same_meaning = 0.98     # if their vectors have this cosine.
bridges = true          # Whether a document that the question or likely text names is likely too; it is searched for if it was not found.
coverage = 2.0          # What it is worth to meet every need of the question (names, numbers, terms; each part alike), in chunks as
                        # good as the best that meets it. 0: needs are not looked at.
min_support = 0.62      # Below this support nothing is delivered: the collection has no answer. 0: something always is.

[mmr]
lambda = 0.5            # Weight of relevance against novelty.
candidates = 200        # Candidates that are put in a new order.

[adaptive]
rule = "largest-gap"    # Where the ranking ends: "largest-gap", "moving-average" or "spike".
window = 3              # Scores in a moving average.
buffer = 5              # Candidates beyond the end: a number, or with a point a factor.
ignore_head = 0         # First and last ranks between which it does not end: a number, or with a point a share.
ignore_tail = 0.5

[rse]                   # The strategies `rse` and `rse-exact`: dsRAG's preset "balanced". Its "precision": minimum_value 0.7, penalty 0.2;
max_length = 15         # its "find_all": 40, 200, 0.4, 0.18, decay_rate 200, top_k_for_document_selection 200.
overall_max_length = 30
minimum_value = 0.5
irrelevant_chunk_penalty = 0.18
decay_rate = 30.0
top_k_for_document_selection = 10
chunk_length_adjustment = true

[kadane]                # The strategy `rse-kadane`.
k = 10
relevance_threshold = 0.3
max_segment_length = 15

[window]                # The strategy `window`, and `parent` where a document has no headings.
radius = 3              # Chunks on either side, at most 100.
max_tokens = 1500       # Most encoder tokens of a window.
boundary = "document"   # Where windows stop: "document"; "section", the one that the chunk found lies in.
log_boundaries = false  # Whether the trace names the windows that stop there.

[parent]
hierarchy_depth = 2     # 2: the section a chunk lies in; 3: the one around that.
max_tokens = 1500       # Longer sections are cut into parts of at most so many encoder tokens.
max_context_blocks = 4
fallback = "window"     # "window": a window where there is no section, or it does not fit; "linear": where there is none; "none".

[automerge]
k = 12                  # Chunks that take part.
ratio = 0.5             # A section is merged if more than this share of it is found.

[seal]                  # What the paper does not disclose is Cento's choice.
budget = "request"      # The tokens asked for; or { items = 3 }, the paper's k, or { tokens = 800 }.
loops = 1               # L: how often missing things are asked for.
candidates = 20         # M: passages of each ranking that are looked at.
queries = 4             # Micro-queries of one loop.
lambda_gap = 1.0        # Weights of the gaps that a passage closes, of what it confirms, of the new names it brings, of what it
lambda_corr = 0.25      # repeats, and of its relevance to the question itself.
lambda_nov = 0.25
lambda_red = 0.5
lambda_rel = 0.5
epsilon = 0.02          # By how much a passage must be better than the one it replaces.
dwell = 1               # Loops in which a passage that came in cannot be replaced.
coverage_min = 0.95     # Share of the question's needs from which the gate calls it covered.
calls = 16              # Most calls of the endpoint for one answer, if there is one.

[cache]                 # Keeps the contexts of an open collection for whoever asks the same again. Default: nothing is kept.
ttl_seconds = 300
"#;

/// How candidates are scored and gated by [`Strategy::Bubble`](crate::Strategy::Bubble).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// What eq. 5 measures.
    pub relevance: Relevance,
    /// K of eq. 4: how many candidates are scored, the most relevant first. None: all.
    pub candidates: Option<usize>,
    /// Least relevance, on the scale of retrieval's score (or term frequency) itself.
    pub min_relevance: Option<f64>,
    /// Length, in the encoder's tokens, at which eq. 7 halves a score. None: no penalty.
    pub theta: Option<Theta>,
    /// Which overlap eqs. 12-13 look at.
    pub gate: Gate,
    /// Overlap from which a candidate is redundant, in (0, 1].
    pub delta: f64,
    /// What happens to the tokens sections leave of their share.
    pub slack: Slack,
    /// Most chunks of one document.
    pub max_per_document: Option<usize>,
    /// Most chunks of one section.
    pub max_per_section: Option<usize>,
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
    /// Whether contexts are kept. None: they are not. It changes no context.
    pub cache: Option<Cache>,
}

/// How long contexts are kept by whoever holds a collection open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
            slack: Slack::default(),
            max_per_document: None,
            max_per_section: None,
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

/// What the relevance of a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relevance {
    /// The score of retrieval, as a share of the best candidate's.
    #[default]
    Fused,
    /// The paper's: raw counts of the query's terms.
    Tf,
}

/// Where eq. 7 halves a score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of tokens or \"median\"")]
pub enum Theta {
    /// At this many tokens.
    Tokens(f64),
    /// At a length that the candidates have.
    Of(Length),
}

/// A length worked out from the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// The median of the pool.
    Median,
}

/// Which overlap makes a candidate redundant, see [`crate::redundancy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// With the one chosen chunk that shares most; means the same at any budget.
    #[default]
    Pairwise,
    /// With all chosen chunks together, as in the paper; rejects more the larger the budget.
    Union,
    /// Nothing is redundant.
    None,
}

/// What happens to the tokens that sections leave of their share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slack {
    /// A second pass offers what is left to the candidates that only their section's share kept out, best first.
    #[default]
    Global,
    /// They stay unspent.
    None,
}

/// A label or heading as priors and section budgets compare it: lower case, white space collapsed.
pub fn normalize_label(heading: &str) -> String {
    let words: Vec<&str> = heading.split_whitespace().collect();
    words.join(" ").to_lowercase()
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
        demand(self.delta > 0.0 && self.delta <= 1.0, "delta", "must be above 0 and at most 1")?;
        let penalty = match self.theta {
            Some(Theta::Tokens(tokens)) => tokens > 0.0 && tokens.is_finite(),
            Some(Theta::Of(Length::Median)) | None => true,
        };
        demand(penalty, "theta", "must be a number above 0, or \"median\"")?;
        demand(self.min_relevance.is_none_or(f64::is_finite), "min_relevance", "must be a finite number")?;
        demand(self.candidates != Some(0), "candidates", "must be at least 1")?;
        demand(self.max_per_document != Some(0), "max_per_document", "must be at least 1")?;
        demand(self.max_per_section != Some(0), "max_per_section", "must be at least 1")?;
        for (label, rho) in &self.rho {
            demand((0.0..=1.0).contains(rho), &format!("rho.{label}"), "must be a share between 0 and 1")?;
        }
        policy.check_strategies()?;
        Ok(policy)
    }

    fn check_strategies(&self) -> Result<()> {
        let Self { cento, mmr, adaptive, rse, kadane, window, parent, automerge, .. } = self;
        let share = |value: f64, key: &str| demand((0.0..=1.0).contains(&value), key, "must be between 0 and 1");
        let positive =
            |value: f64, key: &str| demand(value > 0.0 && value.is_finite(), key, "must be a number above 0");
        let some = |value: usize, key: &str| demand(value > 0, key, "must be at least 1");
        some(cento.candidates, "cento.candidates")?;
        some(cento.run_max.unwrap_or(1), "cento.run_max")?;
        demand(cento.run_max.is_none_or(|max| max <= RUN_MAX), "cento.run_max", "must be at most 100")?;
        demand(
            cento.min_support >= 0.0 && cento.min_support.is_finite(),
            "cento.min_support",
            "must be a number, 0 or more",
        )?;
        demand(
            cento.coverage >= 0.0 && cento.coverage.is_finite(),
            "cento.coverage",
            "must be a number that is not negative",
        )?;
        demand(cento.same_words > 0.0 && cento.same_words <= 1.0, "cento.same_words", "must be above 0 and at most 1")?;
        demand(
            cento.same_meaning > 0.0 && cento.same_meaning <= 1.0,
            "cento.same_meaning",
            "must be above 0 and at most 1",
        )?;
        share(mmr.lambda, "mmr.lambda")?;
        some(mmr.candidates, "mmr.candidates")?;
        some(adaptive.window, "adaptive.window")?;
        if let Buffer::Times(times) = adaptive.buffer {
            demand(times >= 1.0 && times.is_finite(), "adaptive.buffer", "must be at least 1 as a factor")?;
        }
        for (ignored, key) in
            [(adaptive.ignore_head, "adaptive.ignore_head"), (adaptive.ignore_tail, "adaptive.ignore_tail")]
        {
            if let Share::Of(of) = ignored {
                demand((0.0..1.0).contains(&of), key, "must be a share of at least 0 and below 1")?;
            }
        }
        some(rse.max_length, "rse.max_length")?;
        demand(rse.max_length <= RUN_MAX, "rse.max_length", "must be at most 100")?;
        some(rse.overall_max_length, "rse.overall_max_length")?;
        some(rse.top_k_for_document_selection, "rse.top_k_for_document_selection")?;
        demand(rse.minimum_value.is_finite(), "rse.minimum_value", "must be a finite number")?;
        demand(
            rse.irrelevant_chunk_penalty >= 0.0 && rse.irrelevant_chunk_penalty.is_finite(),
            "rse.irrelevant_chunk_penalty",
            "must be at least 0",
        )?;
        positive(rse.decay_rate, "rse.decay_rate")?;
        some(kadane.k, "kadane.k")?;
        some(kadane.max_segment_length, "kadane.max_segment_length")?;
        demand(kadane.relevance_threshold.is_finite(), "kadane.relevance_threshold", "must be a finite number")?;
        some(window.max_tokens, "window.max_tokens")?;
        demand(window.radius <= RUN_MAX, "window.radius", "must be at most 100")?;
        demand(parent.hierarchy_depth >= 2, "parent.hierarchy_depth", "must be at least 2: the chunk and its section")?;
        some(parent.max_tokens, "parent.max_tokens")?;
        some(parent.max_context_blocks, "parent.max_context_blocks")?;
        some(automerge.k, "automerge.k")?;
        demand((0.0..1.0).contains(&automerge.ratio), "automerge.ratio", "must be at least 0 and below 1")?;
        if let Some(Cache { ttl_seconds }) = self.cache {
            let known = (1..=TTL_SECONDS_MAX as u64).contains(&ttl_seconds);
            demand(known, "cache.ttl_seconds", "must be at least 1 and at most 31536000, a year")?;
        }
        self.seal.checked().map(drop)
    }

    /// The share of the budget that one section of this label may fill.
    pub(crate) fn rho(&self, label: &str) -> Option<f64> {
        self.rho.get(label).or_else(|| self.rho.get(OTHER_SECTIONS)).copied()
    }
}

/// Longest run of chunks that a limit may name; without a limit runs are as long as they are.
pub(crate) const RUN_MAX: usize = 100;

/// Longest that a context may be kept.
pub(crate) const TTL_SECONDS_MAX: usize = 365 * 24 * 3600;

const KEYS: [&str; 22] = [
    "relevance",
    "candidates",
    "min_relevance",
    "theta",
    "gate",
    "delta",
    "slack",
    "max_per_document",
    "max_per_section",
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
pub(crate) fn nearest(key: &str, keys: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    let distance = |known: &&str| strsim::damerau_levenshtein(&key.to_lowercase(), known);
    let known = keys.into_iter().min_by_key(distance)?;
    (distance(&known) <= known.len().div_ceil(3)).then_some(known)
}

fn normalized(table: &str, values: &BTreeMap<String, f64>) -> Result<BTreeMap<String, f64>> {
    let mut normalized = BTreeMap::new();
    for (key, &value) in values {
        let path = format!("{table}.{key}");
        demand(value.is_finite(), &path, "must be a finite number")?;
        let label = normalize_label(key);
        demand(!label.is_empty(), &path, "names nothing")?;
        demand(normalized.insert(label, value).is_none(), &path, "is there twice, in another case or spacing")?;
    }
    Ok(normalized)
}

fn demand(holds: bool, key: &str, reason: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::PolicyValue { key: key.into(), reason }) }
}

#[cfg(test)]
mod tests;
