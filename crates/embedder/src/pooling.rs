//! One unit vector per text from the hidden rows of its tokens.
//!
//! Shapes: hidden \[T, H\], spans of B texts, gives B vectors of length H.
//! Differs: sums and the norm are taken in double precision; the vectors always have length 1, also where the model folder
//! has no Normalize module (the direction is the same).

use serde::Serialize;

use crate::kernels::cuda::pool::Pool;
use crate::pack::Spans;

/// How the rows of a text become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Pooling {
    /// The mean of all tokens, special ones included.
    Mean,
    /// The first token.
    Cls,
    /// The maximum of each dimension.
    Max,
}

/// Why there is no unit vector, as words that follow "the model's vector".
pub(crate) type NoVector = &'static str;

impl Pooling {
    /// The name in sentence-transformers' configuration.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "mean" => Some(Self::Mean),
            "cls" => Some(Self::Cls),
            "max" => Some(Self::Max),
            _ => None,
        }
    }

    /// The vector of every span, or why it has none.
    pub(crate) fn apply(self, hidden: &[f32], width: usize, spans: &Spans) -> Vec<Result<Vec<f32>, NoVector>> {
        spans.iter().map(|span| self.vector(&hidden[span.start * width..span.end * width], width)).collect()
    }

    /// What kernels make of the rows of a text: for each the row they pool.
    pub(crate) fn on_device(self) -> Vec<Pool> {
        vec![match self {
            Self::Mean => Pool::Mean,
            Self::Cls => Pool::First,
            Self::Max => Pool::Max,
        }]
    }

    /// The vector of a pooled row.
    pub(crate) fn finish(self, pooled: Vec<f64>) -> Result<Vec<f32>, NoVector> {
        unit(&pooled)
    }

    /// `rows` are the hidden rows of one text, at least one.
    fn vector(self, rows: &[f32], width: usize) -> Result<Vec<f32>, NoVector> {
        let mut pooled: Vec<f64> = rows[..width].iter().map(|&value| f64::from(value)).collect();
        for row in rows.chunks_exact(width).skip(1) {
            match self {
                Self::Mean => pooled.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value)),
                Self::Cls => break,
                // a NaN replaces any maximum and is replaced by none, so that it is reported below
                Self::Max => pooled.iter_mut().zip(row).for_each(|(max, &value)| {
                    if f64::from(value) > *max || value.is_nan() {
                        *max = f64::from(value);
                    }
                }),
            }
        }
        unit(&pooled) // of the sum as of the mean
    }
}

/// The vector at length 1.
pub(crate) fn unit(vector: &[f64]) -> Result<Vec<f32>, NoVector> {
    let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    if !norm.is_finite() {
        return Err("is not finite");
    }
    if norm == 0.0 {
        return Err("has length zero");
    }
    Ok(vector.iter().map(|value| (value / norm) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pooling: Pooling, rows: &[[f32; 2]], expected: Result<[f32; 2], NoVector>) {
        let pooled = pooling.apply(&rows.concat(), 2, &Spans::of_lengths(&[rows.len()]));
        assert_eq!(pooled, [expected.map(|vector| vector.to_vec())]);
    }

    #[test]
    fn each_mode_by_hand() {
        let rows = [[3.0, 0.0], [0.0, 4.0], [3.0, 4.0]];
        check(Pooling::Mean, &rows, Ok([0.6, 0.8]));
        check(Pooling::Cls, &rows, Ok([1.0, 0.0]));
        check(Pooling::Max, &rows, Ok([0.6, 0.8]));
        check(Pooling::Max, &[[-3.0, -4.0]], Ok([-0.6, -0.8]));
    }

    #[test]
    fn a_vector_without_direction_is_refused() {
        for pooling in [Pooling::Mean, Pooling::Cls, Pooling::Max] {
            check(pooling, &[[0.0, 0.0]], Err("has length zero"));
            check(pooling, &[[f32::NAN, 1.0], [2.0, 3.0]], Err("is not finite"));
            check(pooling, &[[f32::INFINITY, 1.0]], Err("is not finite"));
        }
        check(Pooling::Max, &[[1.0, 1.0], [f32::NAN, 1.0], [2.0, 2.0]], Err("is not finite"));
        check(Pooling::Mean, &[[1.0, 1.0], [f32::NAN, 1.0]], Err("is not finite"));
    }
}
