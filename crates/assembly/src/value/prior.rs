//! The score of a candidate before anything is chosen: relevance, structural prior, keyword boosts, length penalty.
//!
//! Source: arXiv 2601.10681, eqs. 4-8: `Score = (tf + prior) * len_penalty`, `prior = pi(label) + sum of gamma over the
//! keywords that occur`, `len_penalty = 1 / (1 + t / theta)`.
//! Differs: relevance is by default retrieval's score as a share of the best candidate's, so a prior of 1 weighs as
//! much as the best match. A likelihood is multiplied instead, see [`by_likelihood`]. A negative sum is *divided* by
//! the penalty: multiplied, a long chunk would become less bad than a short one. Lengths do not matter unless the
//! policy says so: at equal tokens the penalty costs evidence more often than it gains any, most at small budgets
//! (`benches/reproduce/contexts.toml`).
//! Cost: one sort; in the mode `tf` one analysis of each text, with boosts one pass over each text in lower case.

use crate::candidate::{Candidate, normalize_label};
use crate::error::{Error, Result};
use crate::normalize::share_of_best;
use crate::rank::best_first;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Capped, so that products stay finite: a prior and its boosts make a likelihood at most e^10 times what it was.
const NATS_MAX: f64 = 10.0;

/// The measure of a candidate's relevance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Relevance {
    /// The score of retrieval, as a share of the best candidate's.
    #[default]
    Fused,
    /// The paper's: raw counts of the query's terms.
    Tf,
}

/// Where eq. 7 halves a score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number of tokens or \"median\"")]
pub enum Theta {
    /// At this many tokens.
    Tokens(f64),
    /// At a length that the candidates have.
    Of(Length),
}

/// A length worked out from the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// The median of the pool.
    Median,
}

/// The settings of a policy that scores are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scoring<'p> {
    pub(crate) relevance: Relevance,
    /// K of eq. 4.
    pub(crate) candidates: Option<usize>,
    pub(crate) theta: Option<Theta>,
    pub(crate) priors: Priors<'p>,
}

/// Priors by label and boosts by keyword, both normalised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Priors<'p> {
    pub(crate) priors: &'p BTreeMap<String, f64>,
    pub(crate) boosts: &'p BTreeMap<String, f64>,
}

impl Priors<'_> {
    /// The prior of a candidate's label.
    fn of(&self, candidate: &Candidate) -> f64 {
        if self.priors.is_empty() {
            return 0.0;
        }
        self.priors.get(&normalize_label(&candidate.label)).copied().unwrap_or(0.0)
    }

    /// Sum of gamma over the keywords that stand in `text` as whole words.
    fn boost(&self, text: &str) -> f64 {
        if self.boosts.is_empty() {
            return 0.0;
        }
        let text = normalize_label(text);
        self.boosts.iter().filter(|(keyword, _)| occurs(keyword, &text)).fold(0.0, |sum, (_, gamma)| sum + gamma)
    }
}

impl Scoring<'_> {
    /// Checks the range of the penalty.
    pub(crate) fn check_theta(&self) -> Result<()> {
        let penalty = match self.theta {
            Some(Theta::Tokens(tokens)) => tokens > 0.0 && tokens.is_finite(),
            Some(Theta::Of(Length::Median)) | None => true,
        };
        Error::unless(penalty, "theta", "must be a number above 0, or \"median\"")
    }

    /// Checks that the pool has room.
    pub(crate) fn check_pool(&self) -> Result<()> {
        Error::unless(self.candidates != Some(0), "candidates", "must be at least 1")
    }
}

/// A table of numbers by label or keyword, with its keys normalised.
///
/// # Errors
/// A number that is not finite, a key that names nothing, or two that are the same label.
pub(crate) fn normalized(table: &str, values: &BTreeMap<String, f64>) -> Result<BTreeMap<String, f64>> {
    let mut normalized = BTreeMap::new();
    for (key, &value) in values {
        let path = format!("{table}.{key}");
        Error::unless(value.is_finite(), &path, "must be a finite number")?;
        let label = normalize_label(key);
        Error::unless(!label.is_empty(), &path, "names nothing")?;
        let twice = normalized.insert(label, value).is_some();
        Error::unless(!twice, &path, "is there twice, in another case or spacing")?;
    }
    Ok(normalized)
}

/// The scored pool, and what was left outside it.
#[derive(Debug)]
pub(crate) struct Scores {
    /// Best first, equal scores by id descending: the order of the walk.
    pub(crate) pool: Vec<Scored>,
    /// Candidates beyond the first K, most relevant first.
    pub(crate) beyond: Vec<usize>,
    /// Length at which a score is halved, in the encoder's tokens; none where lengths do not matter.
    pub(crate) theta: Option<f64>,
}

/// One candidate with the parts of its score, which multiply and add up to it as eq. 8 says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scored {
    pub(crate) candidate: usize,
    /// Occurrences of the query's terms; counted in the mode `tf` only.
    pub(crate) tf: Option<u64>,
    /// The term that enters the score: tf, or the share of the best candidate's relevance.
    pub(crate) relevance: f64,
    pub(crate) prior: f64,
    pub(crate) boost: f64,
    pub(crate) len_penalty: f64,
    /// relevance + prior + boost
    pub(crate) raw: f64,
    pub(crate) score: f64,
}

/// Eqs. 4-8 for the K most relevant of `candidates`. `terms` analyses a text as the query was analysed.
pub(crate) fn score(
    candidates: &[&Candidate],
    query: &str,
    scoring: &Scoring<'_>,
    terms: &dyn Fn(&str) -> Vec<String>,
) -> Result<Scores> {
    let (pool, beyond) = cut_pool(candidates, scoring.candidates);
    let theta = scoring.theta.map(|theta| match theta {
        Theta::Tokens(tokens) => tokens,
        Theta::Of(Length::Median) => median_tokens(candidates, &pool),
    });
    let shares = share_of_best(&pool.iter().map(|&at| candidates[at].relevance).collect::<Vec<_>>())?;
    let wanted: BTreeSet<String> = match scoring.relevance {
        Relevance::Tf => terms(query).into_iter().collect(),
        Relevance::Fused => BTreeSet::new(),
    };
    let mut scored: Vec<Scored> = Vec::with_capacity(pool.len());
    for (&at, &share) in pool.iter().zip(&shares) {
        let candidate = candidates[at];
        let tf = match scoring.relevance {
            Relevance::Tf => Some(terms(&candidate.text).iter().filter(|term| wanted.contains(*term)).count() as u64),
            Relevance::Fused => None,
        };
        let relevance = tf.map_or(share, |tf| tf as f64);
        let prior = scoring.priors.of(candidate);
        let boost = scoring.priors.boost(&candidate.text);
        let raw = relevance + prior + boost;
        let len_penalty = theta.map_or(1.0, |theta| 1.0 / (1.0 + f64::from(candidate.n_tokens) / theta));
        scored.push(Scored {
            candidate: at,
            tf,
            relevance,
            prior,
            boost,
            len_penalty,
            raw,
            score: penalized(raw, len_penalty),
        });
    }
    scored.sort_by(|a, b| best_first((a.score, &candidates[a.candidate].id), (b.score, &candidates[b.candidate].id)));
    Ok(Scores { pool: scored, beyond, theta })
}

/// Candidates by relevance alone: no pool, no priors, no penalty. What was not found comes last.
pub(crate) fn by_relevance(candidates: &[&Candidate]) -> Scores {
    let (pool, beyond) = cut_pool(candidates, None);
    let (pool, beyond) = ([pool, beyond].concat(), Vec::new());
    let plain = |candidate: usize| {
        let relevance = candidates[candidate].relevance + 0.0;
        Scored {
            candidate,
            tf: None,
            relevance,
            prior: 0.0,
            boost: 0.0,
            len_penalty: 1.0,
            raw: relevance,
            score: relevance,
        }
    };
    Scores { pool: pool.into_iter().map(plain).collect(), beyond, theta: None }
}

/// Without what retrieval did not find, for strategies that look at nothing else.
pub(crate) fn found_only(candidates: &[&Candidate], scores: Scores) -> Scores {
    let is_neighbor = |candidate: usize| candidates[candidate].is_neighbor;
    let (neighbors, pool): (Vec<Scored>, Vec<Scored>) =
        scores.pool.into_iter().partition(|scored| is_neighbor(scored.candidate));
    let beyond = scores.beyond.into_iter().chain(neighbors.into_iter().map(|scored| scored.candidate)).collect();
    Scores { pool, beyond, ..scores }
}

impl Scores {
    /// Puts candidates that must be delivered into the pool, behind it where they are not in it.
    pub(crate) fn include(&mut self, include: &[usize]) {
        for &candidate in include {
            if self.beyond.contains(&candidate) {
                self.beyond.retain(|&other| other != candidate);
                self.pool.push(Scored::unscored(candidate));
            }
        }
    }
}

impl Scored {
    /// A candidate that nothing is known of.
    pub(crate) fn unscored(candidate: usize) -> Self {
        Self { candidate, tf: None, relevance: 0.0, prior: 0.0, boost: 0.0, len_penalty: 1.0, raw: 0.0, score: 0.0 }
    }
}

/// Candidates by how likely they hold what is asked for: `likelihood * e^(prior + boosts)`.
///
/// A likelihood says how a chunk's text stands to the query, the prior what is known without it, so they multiply, as
/// chances do. Added, they would have to be of one size, and likelihoods have none: they add up to 1 over however many
/// candidates there are.
pub(crate) fn by_likelihood(candidates: &[&Candidate], likelihoods: &[f64], priors: Priors<'_>) -> Scores {
    let score = |(candidate, &relevance): (usize, &f64)| {
        let chunk = candidates[candidate];
        let nats = priors.of(chunk);
        let added = |nats: f64| relevance * nats.clamp(-NATS_MAX, NATS_MAX).exp_m1();
        let prior = added(nats);
        let boost = added(nats + priors.boost(&chunk.text)) - prior;
        let raw = relevance + prior + boost;
        Scored { candidate, tf: None, relevance, prior, boost, len_penalty: 1.0, raw, score: raw }
    };
    let mut pool: Vec<Scored> = likelihoods.iter().enumerate().map(score).collect();
    pool.sort_by(|a, b| best_first((a.score, &candidates[a.candidate].id), (b.score, &candidates[b.candidate].id)));
    Scores { pool, beyond: Vec::new(), theta: None }
}

/// The longer, the worse, on both sides of zero. Adding `0.0` turns `-0.0` into `0.0`, which would sort apart from it.
fn penalized(raw: f64, len_penalty: f64) -> f64 {
    if raw < 0.0 { raw / len_penalty } else { raw * len_penalty + 0.0 }
}

/// The K most relevant candidates and the others, each most relevant first.
fn cut_pool(candidates: &[&Candidate], k: Option<usize>) -> (Vec<usize>, Vec<usize>) {
    let mut pool: Vec<usize> = (0..candidates.len()).collect();
    let key = |at: usize| (candidates[at].relevance + 0.0, &candidates[at].id);
    let is_neighbor = |at: usize| candidates[at].is_neighbor;
    pool.sort_by(|&a, &b| is_neighbor(a).cmp(&is_neighbor(b)).then_with(|| best_first(key(a), key(b))));
    let n_found = pool.partition_point(|&at| !is_neighbor(at));
    let beyond = pool.split_off(k.unwrap_or(usize::MAX).min(n_found));
    (pool, beyond)
}

/// Median length of the pool, the mean of the middle two of an even number; at least 1, so that it can divide.
fn median_tokens(candidates: &[&Candidate], pool: &[usize]) -> f64 {
    let mut lengths: Vec<u32> = pool.iter().map(|&at| candidates[at].n_tokens).collect();
    lengths.sort_unstable();
    let n = lengths.len();
    if n == 0 {
        return 1.0;
    }
    let median = (f64::from(lengths[(n - 1) / 2]) + f64::from(lengths[n / 2])) / 2.0;
    median.max(1.0)
}

/// Says if `keyword` stands in `text` with no letter or digit right before or after it. A side of the keyword that is
/// itself no letter or digit (`c++`) needs no boundary.
fn occurs(keyword: &str, text: &str) -> bool {
    let joins = |inner: Option<char>, outer: Option<char>| {
        inner.is_some_and(char::is_alphanumeric) && outer.is_some_and(char::is_alphanumeric)
    };
    text.match_indices(keyword).any(|(at, _)| {
        let before = joins(keyword.chars().next(), text[..at].chars().next_back());
        let after = joins(keyword.chars().next_back(), text[at + keyword.len()..].chars().next());
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::tests::{candidate, words};
    use proptest::prelude::*;

    fn scored(candidates: &[Candidate], query: &str, policy: &str) -> Vec<Scored> {
        let sorted: Vec<&Candidate> = candidates.iter().collect();
        score(&sorted, query, &Policy::parse(policy).unwrap().scoring(), &words).unwrap().pool
    }

    #[test]
    fn eq_5_to_8_by_hand_in_the_papers_mode() {
        let mut chunk = candidate("a", 0, "Scope of work: the work in scope, and the delivery date.", 0.5);
        (chunk.label, chunk.n_tokens) = ("Scope of  Works".into(), 50);
        let policy = "relevance = \"tf\"\ntheta = 150\n[priors]\n\"scope of works\" = 6.0\n[boosts]\n\"delivery date\" = 0.5\nliver = 9.0";
        let one = &scored(&[chunk], "scope work scope", policy)[0];
        assert_eq!((one.tf, one.relevance, one.prior, one.boost), (Some(4), 4.0, 6.0, 0.5)); // a repeated query term counts once
        assert_eq!((one.raw, one.len_penalty, one.score), (10.5, 0.75, 7.875));
    }

    #[test]
    fn the_fused_relevance_is_a_share_of_the_best() {
        let pool = [candidate("a", 0, "x", 0.032), candidate("b", 0, "x", 0.008)];
        let shares: Vec<(f64, Option<u64>)> =
            scored(&pool, "x", "").iter().map(|one| (one.relevance, one.tf)).collect();
        assert_eq!(shares, [(1.0, None), (0.25, None)]);
    }

    #[test]
    fn a_prior_of_one_lifts_an_irrelevant_chunk_to_the_best() {
        let mut pool = [candidate("a", 0, "x", 0.03), candidate("b", 0, "x", 0.0)];
        pool[1].label = "scope".into();
        let scores: Vec<f64> = scored(&pool, "x", "[priors]\nscope = 1.0").iter().map(|one| one.score).collect();
        assert_eq!(scores[0], scores[1]);
    }

    #[test]
    fn theta_is_the_median_of_the_pool() {
        let pool: Vec<Candidate> = [10, 40, 20, 100]
            .iter()
            .enumerate()
            .map(|(at, &n_tokens)| Candidate { n_tokens, ..candidate("a", at as u32, "x", 1.0 - at as f64 / 10.0) })
            .collect();
        let sorted: Vec<&Candidate> = pool.iter().collect();
        assert_eq!(median_tokens(&sorted, &[0, 1, 2, 3]), 30.0);
        assert_eq!(median_tokens(&sorted, &[0, 1, 2]), 20.0);
        assert_eq!(median_tokens(&sorted, &[]), 1.0);
        let scores =
            score(&sorted, "x", &Policy::parse("candidates = 3\ntheta = \"median\"").unwrap().scoring(), &words)
                .unwrap();
        assert_eq!((scores.theta, scores.pool.len(), scores.beyond), (Some(20.0), 3, vec![3]));
    }

    #[test]
    fn lengths_do_not_matter_unless_the_policy_says_so() {
        let long = Candidate { n_tokens: 5000, ..candidate("a", 0, "x", 0.9) };
        let pool = [long, Candidate { n_tokens: 5, ..candidate("b", 0, "x", 0.8) }];
        let first = |policy| scored(&pool, "x", policy)[0].candidate;
        assert_eq!((first(""), first("theta = 100")), (0, 1));
        assert!(scored(&pool, "x", "").iter().all(|one| one.len_penalty == 1.0));
    }

    #[test]
    fn keywords_are_whole_words_or_phrases() {
        for (keyword, text, expected) in [
            ("date", "the date.", true),
            ("date", "update", false),
            ("date", "dates", false),
            ("delivery date", "delivery date", true),
            ("c++", "in c++17", true),
            ("c++", "objc++", false),
            ("été", "l'été", true),
            ("date", "updated date", true),
        ] {
            assert_eq!(occurs(keyword, text), expected, "{keyword} in {text}");
        }
    }

    proptest! {
        #[test]
        fn the_longer_of_two_never_scores_higher(raw in -10.0..10.0f64, a in 1..5000u32, b in 1..5000u32, theta in 1.0..500.0f64) {
            let score = |tokens: u32| penalized(raw, 1.0 / (1.0 + f64::from(tokens) / theta));
            prop_assert!(score(a.min(b)) >= score(a.max(b)));
        }
    }
}
