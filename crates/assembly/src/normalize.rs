//! Normalisation: scores of one ranking brought to a scale on which another ranking's can be added to them.
//!
//! Source: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (arXiv 2210.11934), section 3.
//! Range: every normaliser gives values >= 0, larger is better, so that an id an arm did not find can count as 0.
//! Differs: z-scores are counted from the arm's worst hit. Counted from the mean, an id that was *not* found (0) would
//! beat every hit below the mean; the shift is one constant for all ids, so the order among the found ones is the plain
//! z-score's.
//! Cost: two passes.
//!
//! | normaliser        | n = 0 | n = 1             | all equal         | NaN or infinite |
//! |-------------------|-------|-------------------|-------------------|-----------------|
//! | [`min_max`]         | empty | 1                 | 1                 | error           |
//! | [`z_score`]         | empty | 1                 | 1                 | error           |
//! | [`theoretical_min`] | empty | 1; 0 at the floor | 1; 0 at the floor | error           |

use crate::error::{Error, Result};

/// `(s - min) / (max - min)`: the best hit is 1, the worst 0. All equal: all are the best, 1.
pub fn min_max(scores: &[f64]) -> Result<Vec<f64>> {
    let Some((min, max)) = extent(scores)? else { return Ok(Vec::new()) };
    if min == max {
        return Ok(vec![1.0; scores.len()]);
    }
    finite(scores.iter().map(|score| (score - min) / (max - min)).collect())
}

/// `(s - min) / sd`, the z-score counted from the worst hit, with the population's standard deviation. All equal (sd =
/// 0): 1, so that being found is still worth more than not being found.
pub fn z_score(scores: &[f64]) -> Result<Vec<f64>> {
    let Some((min, max)) = extent(scores)? else { return Ok(Vec::new()) };
    if min == max {
        return Ok(vec![1.0; scores.len()]);
    }
    let n = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let sd = (scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / n).sqrt();
    finite(scores.iter().map(|score| (score - min) / sd).collect())
}

/// `(s - floor) / (max - floor)`, where `floor` is the least score the scorer can give at all: 0 for BM25, -1 for a
/// cosine. The best hit is 1 and the others keep their proportion to it, however deep the ranking goes. A best hit at
/// the floor is worth 0.
///
/// # Errors
/// A score below `floor`: the floor is not this scorer's.
pub fn theoretical_min(scores: &[f64], floor: f64) -> Result<Vec<f64>> {
    if !floor.is_finite() {
        return Err(Error::NotFinite { what: "a theoretical minimum".into() });
    }
    let Some((min, max)) = extent(scores)? else { return Ok(Vec::new()) };
    if min < floor {
        return Err(Error::Range { what: "a score".into(), value: min, expected: "at least the theoretical minimum" });
    }
    if max == floor {
        return Ok(vec![0.0; scores.len()]);
    }
    finite(scores.iter().map(|score| (score - floor) / (max - floor)).collect())
}

/// The fused relevance of a pool of candidates as shares of the best one's, in `[0, 1]`: [`theoretical_min`] with the
/// floor at 0, or at the least score where one is negative. Unlike min-max it does not depend on how deep the pool
/// goes: a candidate half as relevant as the best is worth .5 among ten candidates and among a thousand. If no score is
/// above the floor, all are 0.
pub(crate) fn share_of_best(scores: &[f64]) -> Result<Vec<f64>> {
    let floor = extent(scores)?.map_or(0.0, |(min, _)| min.min(0.0));
    theoretical_min(scores, floor)
}

/// Least and greatest score; none of no scores.
pub(crate) fn extent(scores: &[f64]) -> Result<Option<(f64, f64)>> {
    if scores.iter().any(|score| !score.is_finite()) {
        return Err(Error::NotFinite { what: "a score".into() });
    }
    Ok(scores.iter().fold(None, |extent, &score| match extent {
        None => Some((score, score)),
        Some((min, max)) => Some((score.min(min), score.max(max))),
    }))
}

/// Scores near the ends of `f64` overflow in a difference; that is an error, not a NaN that sorts somewhere.
fn finite(values: Vec<f64>) -> Result<Vec<f64>> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(values)
    } else {
        Err(Error::NotFinite { what: "a normalised score".into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Normalizer = fn(&[f64]) -> Result<Vec<f64>>;
    const ALL: [Normalizer; 4] = [min_max, z_score, |scores| theoretical_min(scores, -1000.0), share_of_best];

    #[test]
    fn each_normaliser_on_none_one_equal_and_nan() {
        for normalize in ALL {
            assert!(normalize(&[]).unwrap().is_empty());
            assert_eq!(normalize(&[0.3]).unwrap(), [1.0]);
            assert_eq!(normalize(&[0.1, 0.1, 0.1]).unwrap(), [1.0; 3]);
            assert!(matches!(normalize(&[0.3, f64::NAN]), Err(Error::NotFinite { .. })));
            assert!(matches!(normalize(&[f64::INFINITY]), Err(Error::NotFinite { .. })));
        }
        assert_eq!(theoretical_min(&[0.0, 0.0], 0.0).unwrap(), [0.0, 0.0]);
        assert_eq!(share_of_best(&[-2.0]).unwrap(), [0.0]);
        assert!(matches!(min_max(&[f64::MAX, -f64::MAX]), Err(Error::NotFinite { .. })));
    }

    #[test]
    fn values_by_hand() {
        assert_eq!(min_max(&[3.0, 2.0, 1.0]).unwrap(), [1.0, 0.5, 0.0]);
        assert_eq!(z_score(&[3.0, 1.0]).unwrap(), [2.0, 0.0]); // mean 2, sd 1
        assert_eq!(theoretical_min(&[0.5, 0.0], -1.0).unwrap(), [1.0, 1.0 / 1.5]); // cosine
        assert_eq!(theoretical_min(&[8.0, 2.0], 0.0).unwrap(), [1.0, 0.25]); // BM25
        assert_eq!(share_of_best(&[2.0 / 61.0, 1.0 / 61.0]).unwrap(), [1.0, 0.5]); // RRF
        assert_eq!(share_of_best(&[1.0, -1.0, 0.0]).unwrap(), [1.0, 0.0, 0.5]);
    }

    #[test]
    fn a_score_below_the_theoretical_minimum_is_an_error() {
        assert!(matches!(theoretical_min(&[0.2, -0.1], 0.0), Err(Error::Range { value, .. }) if value == -0.1));
        assert!(matches!(theoretical_min(&[0.2], f64::NAN), Err(Error::NotFinite { .. })));
    }

    proptest! {
        #[test]
        fn order_is_kept_and_nothing_is_negative(scores in prop::collection::vec(-900.0..900.0f64, 0..40)) {
            for normalize in ALL {
                let values = normalize(&scores).unwrap();
                for (i, value) in values.iter().enumerate() {
                    prop_assert!(*value >= 0.0);
                    for j in 0..i {
                        prop_assert!(scores[i] < scores[j] || values[i] >= values[j]);
                    }
                }
            }
        }

        #[test]
        fn a_deeper_ranking_does_not_change_the_shares_of_its_top(top in prop::collection::vec(0.5..1.0f64, 1..20), tail in prop::collection::vec(0.0..0.5f64, 0..20)) {
            let deep: Vec<f64> = top.iter().chain(&tail).copied().collect();
            prop_assert_eq!(share_of_best(&top).unwrap(), &share_of_best(&deep).unwrap()[..top.len()]);
        }
    }
}
