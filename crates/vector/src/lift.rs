//! Lifts: vectors of any length become unit vectors whose cosine ranks by inner product or by Euclidean distance.
//!
//! Source: Bachrach et al. 2014, "Speeding up the Xbox recommender system using a Euclidean transformation for
//! inner-product spaces": a coordinate fills each row up to unit length and is 0 in queries, so that the product, and
//! with it the order, is that of the vectors, exactly. For the distance a coordinate before it has the row's squared
//! length.
//! Differs: the bound of the lengths is a power of two, so that dividing by it loses nothing and the vector comes back
//! bit for bit; the squared length is centred, so that it takes no more of the unit sphere than it must.
//! Shapes: D coordinates given, `D + added` stored.

use crate::rows::Scalar;

/// The order that unit vectors are to stand for. `exponent` bounds the lengths of rows: `2^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lift {
    /// Cosine: vectors as they are, of unit length.
    Cosine,
    /// Inner product, larger is better.
    InnerProduct {
        /// Rows are no longer than 2 to this power.
        exponent: i32,
    },
    /// Euclidean distance, smaller is better.
    Euclidean {
        /// Rows are no longer than 2 to this power.
        exponent: i32,
    },
}

/// The least and the largest exponent of a bound: products of vectors within it, and their squares, are finite and
/// normal numbers.
pub const EXPONENTS: std::ops::RangeInclusive<i32> = -60..=60;

impl Lift {
    /// The coordinates that a stored row has beyond those given.
    pub fn added(self) -> usize {
        match self {
            Self::Cosine => 0,
            Self::InnerProduct { .. } => 1,
            Self::Euclidean { .. } => 2,
        }
    }

    /// The exponent of the least bound for a length; none if there is no such bound.
    pub fn exponent(length: f64) -> Option<i32> {
        let least = length.max(f64::MIN_POSITIVE).log2().ceil() as i32;
        let least = least.max(*EXPONENTS.start());
        // A logarithm may be off by its last bit.
        let least = if length > 2_f64.powi(least) { least + 1 } else { least };
        (length.is_finite() && EXPONENTS.contains(&least)).then_some(least)
    }

    /// Stored coordinates over given ones: a power of two.
    fn scale(self) -> f64 {
        match self {
            Self::Cosine => 1.0,
            Self::InnerProduct { exponent } => 2_f64.powi(-exponent),
            Self::Euclidean { exponent } => 2_f64.powi(-exponent - 1),
        }
    }

    /// A row as it is stored, of unit length; `vector` is of unit length for the cosine, else within the bound.
    pub fn row(self, vector: &[f32]) -> Vec<f32> {
        let scale = self.scale();
        let mut row: Vec<f32> = vector.iter().map(|value| (f64::from(*value) * scale) as f32).collect();
        let square = squared_length(&row);
        match self {
            Self::Cosine => {}
            Self::InnerProduct { .. } => row.push((1.0 - square).max(0.0).sqrt() as f32),
            Self::Euclidean { .. } => {
                // The squared length over that of the bound is 4 * square, from 0 to 1.
                let centred = 3_f64.sqrt() * (4.0 * square - 0.5);
                row.push(centred as f32);
                row.push((1.0 - square - centred * centred).max(0.0).sqrt() as f32);
            }
        }
        row
    }

    /// A query of unit length, whose cosine with the stored rows ranks them; none if every row would be as good:
    /// a vector of zeros, but for the distance.
    pub fn query(self, vector: &[f32]) -> Option<Vec<f32>> {
        let factor = match self {
            Self::Cosine | Self::InnerProduct { .. } => 1.0,
            // With it the product with a stored row ascends with 2 q·x - |x|².
            Self::Euclidean { exponent } => 4.0 * 3_f64.sqrt() * 2_f64.powi(-exponent),
        };
        let mut values: Vec<f64> = vector.iter().map(|value| f64::from(*value) * factor).collect();
        match self {
            Self::Cosine => {}
            Self::InnerProduct { .. } => values.push(0.0),
            Self::Euclidean { .. } => values.extend([-1.0, 0.0]),
        }
        let length = values.iter().map(|value| value * value).sum::<f64>().sqrt();
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        if self == Self::Cosine && (length - 1.0).abs() <= crate::UNIT_TOLERANCE {
            return Some(vector.to_vec()); // bit for bit, as an encoder gave it
        }
        Some(values.iter().map(|value| (value / length) as f32).collect())
    }

    /// The score of a stored row, larger is better: the inner product, or the Euclidean distance below 0. None for the
    /// cosine, whose score is that of the stored rows.
    pub fn score(self, query: &[f32], row: &[f32]) -> Option<f64> {
        let back = 1.0 / self.scale();
        let pairs = query.iter().zip(row).map(|(a, b)| (f64::from(*a), f64::from(*b) * back));
        match self {
            Self::Cosine => None,
            Self::InnerProduct { .. } => Some(pairs.map(|(a, b)| a * b).sum()),
            Self::Euclidean { .. } => Some(0.0 - pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()),
        }
    }

    /// The most by which a cosine of `dimensions` coordinates, taken in 32 bits with a lifted row, may be off the one
    /// that ranks by [`Lift::score`]. Where one row is far longer than others, this is more than the others differ.
    pub fn cosine_error(dimensions: usize, scalar: Scalar) -> f64 {
        let unit = f64::from(f32::EPSILON) / 2.0;
        let of_sum = (dimensions + 8) as f64 * unit; // both vectors are of unit length: Cauchy and Schwarz
        // The given coordinates are what is stored; those added were made of them before they were rounded.
        let of_row = match scalar {
            Scalar::F32 => 4.0 * unit,
            Scalar::F16 => 4.0 * f64::from(half::f16::EPSILON),
        };
        of_sum + of_row
    }

    /// The direction of the vector that a stored row is of, of unit length; zeros for a vector of zeros.
    pub fn direction(self, row: &[f32]) -> Vec<f32> {
        let given = &row[..row.len() - self.added()];
        let length = squared_length(given).sqrt();
        match self {
            Self::Cosine => row.to_vec(),
            Self::InnerProduct { .. } | Self::Euclidean { .. } if length > 0.0 => {
                given.iter().map(|value| (f64::from(*value) / length) as f32).collect()
            }
            Self::InnerProduct { .. } | Self::Euclidean { .. } => vec![0.0; given.len()],
        }
    }
}

fn squared_length(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const DIMENSIONS: usize = 12;

    fn dot(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    /// Vectors of lengths from almost 0 to the bound.
    fn vectors(random: &mut Random, length: f32) -> Vec<Vec<f32>> {
        let scaled = |n: usize, random: &mut Random| {
            random.unit(DIMENSIONS).iter().map(|value| value * length * n as f32 / 200.0).collect()
        };
        (0..200).map(|n| scaled(n, random)).collect()
    }

    #[test]
    fn lifted_rows_are_of_unit_length_and_rank_as_the_vectors_do() {
        let mut random = Random::new(11);
        for length in [1e-6_f32, 0.7, 512.0, 3e7] {
            let rows = vectors(&mut random, length);
            let exponent = Lift::exponent(f64::from(length)).unwrap();
            for lift in [Lift::InnerProduct { exponent }, Lift::Euclidean { exponent }] {
                let stored: Vec<Vec<f32>> = rows.iter().map(|row| lift.row(row)).collect();
                assert!(stored.iter().all(|row| (dot(row, row) - 1.0).abs() < 1e-5), "{lift:?}");
                for query in vectors(&mut random, 2.0 * length).iter().skip(1).step_by(20) {
                    let lifted = lift.query(query).unwrap();
                    let of_best = |score: &dyn Fn(usize) -> f64| {
                        (0..rows.len()).max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap()
                    };
                    let truth = |at: usize| match lift {
                        Lift::Cosine | Lift::InnerProduct { .. } => dot(query, &rows[at]),
                        Lift::Euclidean { .. } => {
                            let difference = query.iter().zip(&rows[at]).map(|(a, b)| f64::from(*a) - f64::from(*b));
                            -difference.map(|value| value * value).sum::<f64>().sqrt()
                        }
                    };
                    let best = of_best(&|at| dot(&lifted, &stored[at]));
                    let expected = of_best(&truth);
                    let tolerance = 1e-5 * f64::from(length) * dot(query, query).sqrt().max(f64::from(length));
                    assert!(truth(expected) - truth(best) <= tolerance, "{lift:?}: row {best} for {expected}");
                    for at in 0..rows.len() {
                        let score = lift.score(query, &stored[at]).unwrap();
                        assert_eq!(score, truth(at), "{lift:?}: a vector comes back bit for bit");
                    }
                }
            }
        }
    }

    #[test]
    fn a_cosine_in_32_bits_is_off_by_no_more_than_its_error() {
        let mut random = Random::new(12);
        let mut rows = vectors(&mut random, 1.0);
        rows.extend(vectors(&mut random, 512.0));
        let queries = vectors(&mut random, 3.0).into_iter().skip(1).step_by(20);
        for (query, exponent) in queries.flat_map(|query| [9, 40].map(|exponent| (query.clone(), exponent))) {
            for lift in [Lift::InnerProduct { exponent }, Lift::Euclidean { exponent }] {
                let lifted = lift.query(&query).unwrap();
                for (row, scalar) in rows.iter().flat_map(|row| [(row, Scalar::F32), (row, Scalar::F16)]) {
                    let mut stored = lift.row(row);
                    if scalar == Scalar::F16 {
                        stored.iter_mut().for_each(|value| *value = half::f16::from_f32(*value).to_f32());
                    }
                    let given = &stored[..DIMENSIONS];
                    // Of the coordinates that are stored, by which a row is scored: as the paper has them, in 64 bits.
                    let (ideal, length) = match lift {
                        Lift::Cosine | Lift::InnerProduct { .. } => (dot(&query, given), dot(&query, &query).sqrt()),
                        Lift::Euclidean { exponent } => {
                            let factor = 4.0 * 3_f64.sqrt() * 2_f64.powi(-exponent);
                            let centred = 3_f64.sqrt() * (4.0 * dot(given, given) - 0.5);
                            (
                                factor * dot(&query, given) - centred,
                                (1.0 + factor * factor * dot(&query, &query)).sqrt(),
                            )
                        }
                    };
                    let found: f32 = lifted.iter().zip(&stored).map(|(a, b)| a * b).sum();
                    let error = (f64::from(found) - ideal / length).abs();
                    let bound = Lift::cosine_error(stored.len(), scalar);
                    assert!(error <= bound, "{lift:?}, {scalar:?}: {error:e} is more than {bound:e}");
                }
            }
        }
    }

    #[test]
    fn a_bound_is_the_least_power_of_two_and_lengths_beyond_all_have_none() {
        for (length, exponent) in [(1.0, 0), (1.1, 1), (0.5, -1), (0.51, 0), (1024.0, 10), (0.0, -60), (1e-30, -60)] {
            assert_eq!(Lift::exponent(length), Some(exponent), "{length}");
        }
        for length in [f64::NAN, f64::INFINITY, 1e30] {
            assert_eq!(Lift::exponent(length), None, "{length}");
        }
    }

    #[test]
    fn a_query_of_zeros_has_an_order_only_by_distance() {
        let exponent = 0;
        assert!(Lift::Cosine.query(&[0.0; 3]).is_none() && Lift::InnerProduct { exponent }.query(&[0.0; 3]).is_none());
        assert!(Lift::Euclidean { exponent }.query(&[0.0; 3]).is_some());
        assert_eq!(Lift::Cosine.query(&[0.6, 0.800_1]).unwrap(), [0.6, 0.800_1], "a unit vector stays as it is");
        assert_eq!(Lift::Cosine.query(&[3.0, 4.0]).unwrap(), [0.6, 0.8]);
        let row = Lift::Euclidean { exponent }.row(&[0.0, 0.5]);
        assert_eq!(Lift::Euclidean { exponent }.direction(&row), [0.0, 1.0]);
    }
}
