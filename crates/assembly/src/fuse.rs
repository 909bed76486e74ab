//! Fusion: several rankings of the same ids become one, and each fused score says what it is made of.
//!
//! Source: Cormack, Clarke and Buettcher 2009 (reciprocal rank fusion); Bruch et al., arXiv 2210.11934 (convex
//! combination); the adaptive combination is ours.
//! Shapes: `A` arms of `N` hits give at most `A * N` fused ids.
//! Range: every method gives scores >= 0; they are comparable within one answer only.
//! Cost: one sort per arm and one of the union.

use crate::error::{Error, Result};
use crate::normalize;
use crate::rank::best_first;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;

/// Rank constant of reciprocal rank fusion, as in its paper.
pub const DEFAULT_RRF_K: f64 = 60.0;

/// Hits that [`Method::Adaptive`] compares an arm's best hit with: itself and the next nineteen.
pub const DEFAULT_CONTRAST_DEPTH: usize = 20;

/// Contrast of an arm whose best hits are all equal: not 0, so that two such arms keep their proportion.
const CONTRAST_MIN: f64 = 0.01;

/// One ranking to fuse. Hits may come in any order: they are ranked by score descending, equal scores by id descending.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm<I> {
    /// Name shown in explanations; no two arms share one. A constant costs nothing beside each of a thousand hits.
    pub name: Cow<'static, str>,
    /// Weight of the arm, >= 0.
    pub weight: f64,
    /// Ids and their scores, larger is better; each id at most once.
    pub hits: Vec<(I, f64)>,
}

/// The rule by which scores of several arms become one.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// Sum of `weight / (k + rank)`, ranks from 1.
    Rrf {
        /// Rank constant, >= 0.
        k: f64,
    },
    /// Sum of `weight * normalised score`. Weights are used as given; only their proportion changes a ranking.
    Convex {
        /// The normalisation that brings scores of one arm to a common scale.
        normalize: Normalize,
    },
    /// Sum of `share * min-max score`, where an arm's share is `weight * contrast` over the sum of that of all arms: an
    /// arm counts for more where its best hit stands out from those behind it, and for less where it cannot tell them
    /// apart.
    ///
    /// `contrast = max(1 - mean of the min-max scores of ranks 2 to depth, 0.01)`, an absent hit counting 0; no hits,
    /// no share.
    Adaptive {
        /// Ranks compared, >= 2.
        depth: usize,
    },
}

impl Default for Method {
    fn default() -> Self {
        Self::Rrf { k: DEFAULT_RRF_K }
    }
}

/// Normalisation of a convex combination, see [`crate::normalize`].
#[derive(Debug, Clone, PartialEq)]
pub enum Normalize {
    /// [`normalize::min_max`].
    MinMax,
    /// [`normalize::z_score`]: standard deviations above the arm's worst hit.
    ZScore,
    /// [`normalize::theoretical_min`], with the least score each arm's scorer can give, in the order of the arms.
    TheoreticalMin(Vec<f64>),
}

/// One id of the fused ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fused<I> {
    /// The id.
    pub id: I,
    /// Sum of the contributions, added in the order in which they stand.
    pub score: f64,
    /// One per arm, by name of the arm.
    pub contributions: Vec<Contribution>,
}

/// The contribution of one arm to a fused score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contribution {
    /// Name of the arm.
    pub arm: Cow<'static, str>,
    /// 1-based rank in the arm; none if the arm did not find the id.
    pub rank: Option<usize>,
    /// The arm's own score.
    pub raw: Option<f64>,
    /// The score on the common scale (convex only); an id the arm did not find has none, and contributes 0.
    pub normalized: Option<f64>,
    /// Weight of the arm.
    pub weight: f64,
    /// The summand of the fused score.
    pub contribution: f64,
}

/// Fuses `arms`, best first, equal scores by id descending.
///
/// # Errors
/// An id twice in one arm, two arms of one name, a score that is not finite or below its theoretical minimum, a
/// negative weight.
///
/// ```
/// use cento_assembly::fuse::{Arm, Method, fuse};
/// let dense = Arm { name: "dense".into(), weight: 1.0, hits: vec![("a", 0.9), ("b", 0.8)] };
/// let lexical = Arm { name: "lexical".into(), weight: 1.0, hits: vec![("b", 12.0)] };
/// let fused = fuse(&[dense, lexical], &Method::Rrf { k: 60.0 })?;
/// assert_eq!(fused[0].id, "b");
/// assert_eq!(fused[0].score, 1.0 / 62.0 + 1.0 / 61.0);
/// # Ok::<(), cento_assembly::Error>(())
/// ```
pub fn fuse<I: Ord + Hash + Clone>(arms: &[Arm<I>], method: &Method) -> Result<Vec<Fused<I>>> {
    let mut order: Vec<usize> = (0..arms.len()).collect();
    // Sums do not depend on the order in which the arms are given.
    order.sort_by(|&a, &b| arms[a].name.cmp(&arms[b].name));
    check(arms, &order, method)?;
    let mut rankings = Vec::with_capacity(arms.len());
    for &arm in &order {
        let hits = ranked(&arms[arm]);
        let normalized = normalized(&hits, arm, method)?;
        rankings.push((&arms[arm], hits, normalized));
    }
    let mut weights: Vec<f64> = rankings.iter().map(|(arm, ..)| arm.weight).collect();
    if let Method::Adaptive { depth } = method {
        for (weight, (.., normalized)) in weights.iter_mut().zip(&rankings) {
            *weight *= contrast(normalized.as_deref().unwrap_or_default(), *depth);
        }
        share_out(&mut weights);
    }
    let mut place: HashMap<&I, usize> = HashMap::with_capacity(rankings.iter().map(|(_, hits, _)| hits.len()).sum());
    // The ids, and the rank of each in each arm, 0 where that did not find it: \[ids, arms\].
    let (mut ids, mut ranks): (Vec<&I>, Vec<usize>) = (Vec::new(), Vec::new());
    for (column, (arm, hits, _)) in rankings.iter().enumerate() {
        for (at, &(id, _)) in hits.iter().enumerate() {
            let place = *place.entry(id).or_insert_with(|| {
                ids.push(id);
                ranks.resize(ids.len() * rankings.len(), 0);
                ids.len() - 1
            });
            let rank = &mut ranks[place * rankings.len() + column];
            if *rank > 0 {
                return Err(Error::DuplicateHit { arm: arm.name.to_string(), rank: at + 1 });
            }
            *rank = at + 1;
        }
    }
    let part = |column: usize, rank: usize| {
        let ((arm, hits, normalized), weight) = (&rankings[column], weights[column]);
        let at = rank.checked_sub(1);
        let normalized = at.and_then(|at| normalized.as_ref().map(|values| values[at]));
        let contribution = match (method, at) {
            (_, None) => 0.0,
            (Method::Rrf { k }, Some(_)) => weight / (k + rank as f64),
            _ => weight * normalized.unwrap_or(0.0),
        };
        let (arm, rank, raw) = (arm.name.clone(), at.map(|_| rank), at.map(|at| *hits[at].1));
        Contribution { arm, rank, raw, normalized, weight, contribution }
    };
    let parts = |ranks: &[usize]| ranks.iter().enumerate().map(|(column, &rank)| part(column, rank)).collect();
    let fused = ids.into_iter().zip(ranks.chunks(rankings.len().max(1)));
    let fused = fused.map(|(id, ranks)| {
        let score = ranks.iter().enumerate().fold(0.0, |sum, (column, &rank)| sum + part(column, rank).contribution);
        if score.is_finite() { Ok((id, score, ranks)) } else { Err(Error::NotFinite { what: "a fused score".into() }) }
    });
    // What is moved is small: the parts of a score are made when its place is known.
    let mut fused: Vec<(&I, f64, &[usize])> = fused.collect::<Result<_>>()?;
    fused.sort_by(|a, b| best_first((a.1, a.0), (b.1, b.0)));
    Ok(fused
        .into_iter()
        .map(|(id, score, ranks)| Fused { id: id.clone(), score, contributions: parts(ranks) })
        .collect())
}

fn check<I>(arms: &[Arm<I>], order: &[usize], method: &Method) -> Result<()> {
    if let Some(pair) = order.windows(2).find(|pair| arms[pair[0]].name == arms[pair[1]].name) {
        return Err(Error::DuplicateArm { arm: arms[pair[0]].name.to_string() });
    }
    for arm in arms {
        not_negative(format!("the weight of arm `{}`", arm.name), arm.weight)?;
        if arm.hits.iter().any(|(_, score)| !score.is_finite()) {
            return Err(Error::NotFinite { what: format!("a score of arm `{}`", arm.name) });
        }
    }
    match method {
        Method::Rrf { k } => not_negative("the rank constant k".into(), *k),
        Method::Convex { normalize: Normalize::TheoreticalMin(minima) } if minima.len() != arms.len() => {
            Err(Error::Minima { expected: arms.len(), received: minima.len() })
        }
        Method::Adaptive { depth: 0 | 1 } => {
            Err(Error::Range { what: "the depth of the contrast".into(), value: 1.0, expected: "at least 2" })
        }
        Method::Convex { .. } | Method::Adaptive { .. } => Ok(()),
    }
}

fn not_negative(what: String, value: f64) -> Result<()> {
    if !value.is_finite() {
        return Err(Error::NotFinite { what });
    }
    if value < 0.0 { Err(Error::Range { what, value, expected: "at least 0" }) } else { Ok(()) }
}

/// Hits of one arm, best first. `-0.0` ranks as `0.0`.
fn ranked<I: Ord>(arm: &Arm<I>) -> Vec<(&I, &f64)> {
    let mut hits: Vec<(&I, &f64)> = arm.hits.iter().map(|(id, score)| (id, score)).collect();
    hits.sort_by(|a, b| best_first((*a.1 + 0.0, a.0), (*b.1 + 0.0, b.0)));
    hits
}

fn normalized<I>(hits: &[(&I, &f64)], arm: usize, method: &Method) -> Result<Option<Vec<f64>>> {
    let scores = || hits.iter().map(|(_, score)| **score).collect::<Vec<f64>>();
    match method {
        Method::Rrf { .. } => Ok(None),
        Method::Convex { normalize: Normalize::MinMax } | Method::Adaptive { .. } => {
            normalize::min_max(&scores()).map(Some)
        }
        Method::Convex { normalize: Normalize::ZScore } => normalize::z_score(&scores()).map(Some),
        Method::Convex { normalize: Normalize::TheoreticalMin(minima) } => {
            normalize::theoretical_min(&scores(), minima[arm]).map(Some)
        }
    }
}

/// Makes weights add up to 1, unless all are 0.
fn share_out(weights: &mut [f64]) {
    let sum: f64 = weights.iter().sum();
    if sum > 0.0 {
        weights.iter_mut().for_each(|weight| *weight /= sum);
    }
}

/// The height of the best of these min-max scores, best first, above those behind it.
fn contrast(scores: &[f64], depth: usize) -> f64 {
    if scores.is_empty() {
        return 0.0;
    }
    let behind: f64 = scores.iter().take(depth).skip(1).sum();
    (1.0 - behind / (depth - 1) as f64).max(CONTRAST_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arm(name: &'static str, weight: f64, hits: &[(u32, f64)]) -> Arm<u32> {
        Arm { name: name.into(), weight, hits: hits.to_vec() }
    }

    #[track_caller]
    fn check(arms: &[Arm<u32>], method: Method, expected: &[(u32, f64)]) {
        let fused: Vec<(u32, f64)> = fuse(arms, &method).unwrap().iter().map(|one| (one.id, one.score)).collect();
        assert_eq!(fused, expected);
    }

    #[test]
    fn rrf_by_hand() {
        let arms = [arm("dense", 1.0, &[(1, 0.9), (2, 0.5)]), arm("lexical", 2.0, &[(2, 7.0), (3, 1.0)])];
        check(&arms, Method::Rrf { k: 60.0 }, &[(2, 1.0 / 62.0 + 2.0 / 61.0), (3, 2.0 / 62.0), (1, 1.0 / 61.0)]);
        // Anthropic's cookbook: k = 0, .8 and .2.
        let arms = [arm("dense", 0.8, &[(1, 0.9), (2, 0.5)]), arm("lexical", 0.2, &[(2, 7.0)])];
        check(&arms, Method::Rrf { k: 0.0 }, &[(1, 0.8), (2, 0.8 / 2.0 + 0.2)]);
    }

    #[test]
    fn convex_by_hand() {
        let arms = [arm("dense", 0.5, &[(1, 0.9), (2, 0.5), (3, 0.1)]), arm("lexical", 0.5, &[(2, 8.0), (4, 2.0)])];
        check(&arms, Method::Convex { normalize: Normalize::MinMax }, &[(2, 0.75), (1, 0.5), (4, 0.0), (3, 0.0)]);
        let arms = [arm("dense", 1.0, &[(1, 1.0), (2, 0.0)]), arm("lexical", 1.0, &[(2, 8.0), (4, 2.0)])];
        check(
            &arms,
            Method::Convex { normalize: Normalize::TheoreticalMin(vec![-1.0, 0.0]) },
            &[(2, 1.5), (1, 1.0), (4, 0.25)],
        );
        check(&arms, Method::Convex { normalize: Normalize::ZScore }, &[(2, 2.0), (1, 2.0), (4, 0.0)]);
    }

    #[test]
    fn what_an_arm_did_not_find_contributes_zero_and_never_beats_what_it_found() {
        let arms = [arm("a", 1.0, &[(1, 0.5)]), arm("b", 1.0, &[(2, 5.0), (3, -5.0)])];
        for normalize in [Normalize::MinMax, Normalize::ZScore, Normalize::TheoreticalMin(vec![-9.0, -9.0])] {
            for fused in fuse(&arms, &Method::Convex { normalize }).unwrap() {
                for part in &fused.contributions {
                    assert!(part.rank.is_some() || (part.contribution == 0.0 && part.normalized.is_none()));
                    assert!(part.contribution >= 0.0);
                }
            }
        }
    }

    #[test]
    fn adaptive_by_hand() {
        // dense: 1, .75, .5, .25, 0 (contrast over 3 ranks: 1 - (.75 + .5) / 2); lexical: 1, 0 and nothing (1 - 0).
        let dense = [(1, 0.9), (2, 0.8), (3, 0.7), (4, 0.6), (5, 0.5)].map(|(id, score)| (id, f64::from(score as f32)));
        let arms = [arm("dense", 1.0, &dense), arm("lexical", 0.5, &[(3, 9.0), (1, 2.0)])];
        let fused = fuse(&arms, &Method::Adaptive { depth: 3 }).unwrap();
        let (dense, lexical) = (0.375 / 0.875, 0.5 / 0.875);
        let expected = [(3, 0.5 * dense + lexical), (1, dense), (2, 0.75 * dense), (4, 0.25 * dense), (5, 0.0)];
        for (one, (id, score)) in fused.iter().zip(expected) {
            assert!(one.id == id && (one.score - score).abs() < 1e-6, "{one:?} is not {id}: {score}");
            assert!((one.contributions[1].weight - lexical).abs() < 1e-6, "the explanation shows the share");
        }
    }

    #[test]
    fn an_arm_that_cannot_tell_its_hits_apart_gives_way() {
        let flat: Vec<(u32, f64)> = (0..30).map(|id| (id, 5.0)).collect();
        let arms = [arm("dense", 1.0, &[(7, 0.9), (8, 0.2), (9, 0.1)]), arm("lexical", 1.0, &flat)];
        let fused = fuse(&arms, &Method::Adaptive { depth: 20 }).unwrap();
        assert_eq!(fused[0].id, 7);
        assert!(fused[0].contributions[1].weight < 0.02);
        // Two such arms keep their proportion; one alone has all of it; none has nothing.
        let weights = |arms: &[Arm<u32>]| {
            fuse(arms, &Method::Adaptive { depth: 20 }).unwrap()[0]
                .contributions
                .iter()
                .map(|part| part.weight)
                .collect::<Vec<_>>()
        };
        assert_eq!(weights(&[arm("a", 3.0, &flat), arm("b", 1.0, &flat)]), [0.75, 0.25]);
        assert_eq!(weights(&[arm("a", 1.0, &[]), arm("b", 1.0, &flat)]), [0.0, 1.0]);
        assert!(fuse(&[arm("a", 1.0, &flat)], &Method::Adaptive { depth: 1 }).is_err());
    }

    #[test]
    fn no_arms_and_empty_arms_give_an_empty_ranking() {
        check(&[], Method::default(), &[]);
        check(&[arm("a", 1.0, &[]), arm("b", 1.0, &[])], Method::Convex { normalize: Normalize::ZScore }, &[]);
    }

    #[test]
    fn bad_input_is_an_error_that_names_the_arm() {
        let rrf = Method::default();
        let error = |arms: &[Arm<u32>], method: &Method| fuse(arms, method).unwrap_err().to_string();
        assert_eq!(
            error(&[arm("a", 1.0, &[(1, 0.5), (2, 0.4), (1, 0.3)])], &rrf),
            "arm `a` holds the same id twice, the second time at rank 3"
        );
        assert_eq!(error(&[arm("a", 1.0, &[]), arm("a", 1.0, &[])], &rrf), "arm `a` is there twice");
        assert_eq!(error(&[arm("a", 1.0, &[(1, f64::NAN)])], &rrf), "a score of arm `a` is not a finite number");
        assert_eq!(error(&[arm("a", -1.0, &[])], &rrf), "the weight of arm `a` is -1, it must be at least 0");
        assert_eq!(error(&[], &Method::Rrf { k: f64::NAN }), "the rank constant k is not a finite number");
        let minima = Method::Convex { normalize: Normalize::TheoreticalMin(vec![0.0, 0.0]) };
        assert_eq!(error(&[arm("a", 1.0, &[])], &minima), "2 theoretical minima for 1 arms");
    }

    fn any_arm(name: &'static str) -> impl Strategy<Value = Arm<u32>> {
        (0.0..3.0f64, prop::collection::btree_map(0..30u32, -5..5i32, 0..20)).prop_map(move |(weight, hits)| Arm {
            name: name.into(),
            weight,
            hits: hits.into_iter().map(|(id, score)| (id, f64::from(score) / 3.0)).collect(),
        })
    }

    fn any_method() -> impl Strategy<Value = Method> {
        prop_oneof![
            (0.0..100.0f64).prop_map(|k| Method::Rrf { k }),
            Just(Method::Convex { normalize: Normalize::MinMax }),
            Just(Method::Convex { normalize: Normalize::ZScore }),
            Just(Method::Convex { normalize: Normalize::TheoreticalMin(vec![-2.0; 3]) }),
            (2..30usize).prop_map(|depth| Method::Adaptive { depth }),
        ]
    }

    proptest! {
        #[test]
        fn order_of_hits_and_arms_changes_nothing(
            arms in (any_arm("a"), any_arm("b"), any_arm("c")).prop_map(|(a, b, c)| vec![a, b, c]),
            method in any_method(), turn in 0..20usize, swap in 0..3usize,
        ) {
            let fused = fuse(&arms, &method).unwrap();
            let mut turned = arms.clone();
            for arm in &mut turned {
                let by = turn % arm.hits.len().max(1);
                arm.hits.rotate_left(by);
            }
            turned.rotate_left(swap);
            prop_assert_eq!(&fused, &fuse(&turned, &method).unwrap());
        }

        #[test]
        fn contributions_add_up_and_every_id_is_ranked_once(
            arms in (any_arm("a"), any_arm("b"), any_arm("c")).prop_map(|(a, b, c)| vec![a, b, c]), method in any_method(),
        ) {
            let fused = fuse(&arms, &method).unwrap();
            for one in &fused {
                prop_assert_eq!(one.score, one.contributions.iter().map(|part| part.contribution).sum::<f64>());
            }
            for pair in fused.windows(2) {
                prop_assert!(pair[0].score > pair[1].score || (pair[0].score == pair[1].score && pair[0].id > pair[1].id));
            }
            let union: std::collections::BTreeSet<u32> = arms.iter().flat_map(|arm| arm.hits.iter().map(|hit| hit.0)).collect();
            let mut ids: Vec<u32> = fused.iter().map(|one| one.id).collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, union.into_iter().collect::<Vec<_>>());
        }
    }
}
