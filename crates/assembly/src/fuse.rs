//! Fusion: several rankings of the same ids become one, and each fused score says what it is made of.
//!
//! Source: Cormack, Clarke and Buettcher 2009 (reciprocal rank fusion); Bruch et al., arXiv 2210.11934 (convex
//! combination); the adaptive combination is ours.
//! Shapes: `A` arms of `N` hits give at most `A * N` fused ids.
//! Range: every method gives scores >= 0; they are comparable within one answer only.
//! Cost: one sort per arm and one of the union.

use crate::error::{Error, Result};
use crate::normalize;
use crate::rank::{best_first, greatest_first};
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
    /// One per arm, by name of the arm; none in [`Fusion::ranking`].
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
    let arms: Vec<Arm<&I>> = arms.iter().map(ranked).collect();
    let fusion = Fusion::new(&arms, method)?;
    let mut fused = fusion.ranking()?;
    fused.sort_by(|a, b| best_first((a.score, a.id), (b.score, b.id)));
    let whole = |Fused { id, score, .. }: Fused<&I>| {
        let contributions = fusion.contributions(&id);
        Fused { id: id.clone(), score, contributions }
    };
    Ok(fused.into_iter().map(whole).collect())
}

/// Arms whose hits stand in their order, fused. Of most ids the score alone is asked for: what it is made of is told
/// one by one.
#[derive(Debug)]
pub struct Fusion<'a, I> {
    /// By name: sums do not depend on the order in which the arms are given.
    columns: Vec<Column<'a, I>>,
    /// In the order in which they are met.
    ids: Vec<&'a I>,
    places: HashMap<&'a I, usize>,
    /// The rank of each id in each arm, 0 where that did not find it: \[ids, arms\].
    ranks: Vec<usize>,
}

/// An arm with what its hits are worth.
#[derive(Debug)]
struct Column<'a, I> {
    arm: &'a Arm<I>,
    weight: f64,
    worth: Worth,
}

#[derive(Debug)]
enum Worth {
    /// By their ranks.
    Rrf { k: f64 },
    /// By their scores on the common scale.
    Normalized(Vec<f64>),
}

impl<'a, I: Eq + Hash + Clone> Fusion<'a, I> {
    /// Fuses arms as [`fuse`] does.
    ///
    /// # Errors
    /// Those of [`fuse`].
    pub fn new(arms: &'a [Arm<I>], method: &Method) -> Result<Self> {
        let mut order: Vec<usize> = (0..arms.len()).collect();
        order.sort_by(|&a, &b| arms[a].name.cmp(&arms[b].name));
        check(arms, &order, method)?;
        let mut columns = Vec::with_capacity(arms.len());
        for at in order {
            let arm = &arms[at];
            columns.push(Column { arm, weight: arm.weight, worth: worth(&arm.hits, at, method)? });
        }
        if let Method::Adaptive { depth } = method {
            for Column { weight, worth, .. } in &mut columns {
                *weight *= contrast(worth.normalized(), *depth);
            }
            share_out(&mut columns);
        }
        Self::of(columns)
    }

    /// One arm that keeps its own scores.
    ///
    /// # Errors
    /// An id twice.
    pub fn alone(arm: &'a Arm<I>) -> Result<Self> {
        let worth = Worth::Normalized(arm.hits.iter().map(|(_, score)| *score).collect());
        Self::of(vec![Column { arm, weight: 1.0, worth }])
    }

    fn of(columns: Vec<Column<'a, I>>) -> Result<Self> {
        let n_columns = columns.len();
        let mut places = HashMap::with_capacity(columns.iter().map(|column| column.arm.hits.len()).sum());
        let (mut ids, mut ranks): (Vec<&I>, Vec<usize>) = (Vec::new(), Vec::new());
        for (at, Column { arm, .. }) in columns.iter().enumerate() {
            for (rank, (id, _)) in (1..).zip(&arm.hits) {
                let place = *places.entry(id).or_insert_with(|| {
                    ids.push(id);
                    ranks.resize(ids.len() * n_columns, 0);
                    ids.len() - 1
                });
                let known = &mut ranks[place * n_columns + at];
                if *known > 0 {
                    return Err(Error::DuplicateHit { arm: arm.name.to_string(), rank });
                }
                *known = rank;
            }
        }
        Ok(Self { columns, ids, places, ranks })
    }

    /// The ids with their scores, best first, equal ones in the order in which they were met, arm by arm in the order
    /// of their names; without contributions.
    ///
    /// # Errors
    /// A sum that is not finite.
    pub fn ranking(&self) -> Result<Vec<Fused<I>>> {
        let mut fused = Vec::with_capacity(self.ids.len());
        for (id, ranks) in self.ids.iter().zip(self.ranks.chunks(self.columns.len().max(1))) {
            let contributions = self.columns.iter().zip(ranks).map(|(column, &rank)| column.contribution(rank));
            let score = contributions.reduce(|sum, contribution| sum + contribution).unwrap_or_default();
            if !score.is_finite() {
                return Err(Error::NotFinite { what: "a fused score".into() });
            }
            fused.push(Fused { id: (*id).clone(), score, contributions: Vec::new() });
        }
        fused.sort_by(|a, b| greatest_first(a.score, b.score));
        Ok(fused)
    }

    /// The contributions to the score of an id, one per arm, by name of the arm; of an id that no arm found too.
    pub fn contributions(&self, id: &I) -> Vec<Contribution> {
        let ranks = self.places.get(id).and_then(|place| self.ranks.chunks(self.columns.len().max(1)).nth(*place));
        let part = |(at, column): (usize, &Column<'_, I>)| column.part(ranks.map_or(0, |ranks| ranks[at]));
        self.columns.iter().enumerate().map(part).collect()
    }
}

impl<I> Column<'_, I> {
    /// The share of a hit, by its rank; 0 where there is none.
    fn contribution(&self, rank: usize) -> f64 {
        match (&self.worth, rank.checked_sub(1)) {
            (_, None) => 0.0,
            (Worth::Rrf { k }, Some(_)) => self.weight / (k + rank as f64),
            (Worth::Normalized(values), Some(at)) => self.weight * values[at],
        }
    }

    fn part(&self, rank: usize) -> Contribution {
        let at = rank.checked_sub(1);
        Contribution {
            arm: self.arm.name.clone(),
            rank: at.map(|_| rank),
            raw: at.map(|at| self.arm.hits[at].1),
            normalized: at.and_then(|at| self.worth.normalized().get(at).copied()),
            weight: self.weight,
            contribution: self.contribution(rank),
        }
    }
}

impl Worth {
    /// Scores on the common scale; none where ranks count.
    fn normalized(&self) -> &[f64] {
        match self {
            Self::Rrf { .. } => &[],
            Self::Normalized(values) => values,
        }
    }
}

/// An arm whose hits stand best first. `-0.0` ranks as `0.0`.
fn ranked<I: Ord>(arm: &Arm<I>) -> Arm<&I> {
    let mut hits: Vec<(&I, f64)> = arm.hits.iter().map(|(id, score)| (id, *score)).collect();
    hits.sort_by(|a, b| best_first((a.1 + 0.0, a.0), (b.1 + 0.0, b.0)));
    Arm { name: arm.name.clone(), weight: arm.weight, hits }
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

fn worth<I>(hits: &[(I, f64)], arm: usize, method: &Method) -> Result<Worth> {
    let scores = || hits.iter().map(|(_, score)| *score).collect::<Vec<f64>>();
    Ok(Worth::Normalized(match method {
        Method::Rrf { k } => return Ok(Worth::Rrf { k: *k }),
        Method::Convex { normalize: Normalize::MinMax } | Method::Adaptive { .. } => normalize::min_max(&scores())?,
        Method::Convex { normalize: Normalize::ZScore } => normalize::z_score(&scores())?,
        Method::Convex { normalize: Normalize::TheoreticalMin(minima) } => {
            normalize::theoretical_min(&scores(), minima[arm])?
        }
    }))
}

/// Makes weights add up to 1, unless all are 0.
fn share_out<I>(columns: &mut [Column<'_, I>]) {
    let sum: f64 = columns.iter().map(|column| column.weight).sum();
    if sum > 0.0 {
        columns.iter_mut().for_each(|column| column.weight /= sum);
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
    fn an_id_that_no_arm_found_has_a_part_of_each_that_is_nothing() {
        let arms = [arm("lexical", 2.0, &[(1, 7.0)]), arm("dense", 1.0, &[(1, 0.5), (2, 0.4)])];
        let fusion = Fusion::new(&arms, &Method::Rrf { k: 60.0 }).unwrap();
        let parts = fusion.contributions(&3).into_iter().map(|part| (part.arm, part.rank, part.raw, part.contribution));
        assert_eq!(parts.collect::<Vec<_>>(), [("dense".into(), None, None, 0.0), ("lexical".into(), None, None, 0.0)]);
        assert_eq!(fusion.contributions(&2)[0].raw, Some(0.4));
    }

    #[test]
    fn an_arm_alone_keeps_its_scores_and_its_order() {
        let arms = [arm("dense", 9.0, &[(1, 0.5), (3, -0.0), (2, -0.0), (4, -3.0)])];
        let fusion = Fusion::alone(&arms[0]).unwrap();
        let scores: Vec<_> = fusion.ranking().unwrap().iter().map(|one| (one.id, one.score.to_bits())).collect();
        assert_eq!(
            scores,
            [(1, 0.5), (3, -0.0), (2, -0.0), (4, -3.0)].map(|(id, score): (u32, f64)| (id, score.to_bits()))
        );
        let part = fusion.contributions(&2).remove(0);
        assert_eq!((part.rank, part.weight, part.normalized), (Some(3), 1.0, Some(-0.0)));
        assert!(Fusion::alone(&arm("dense", 1.0, &[(1, 0.5), (1, 0.4)])).is_err());
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
