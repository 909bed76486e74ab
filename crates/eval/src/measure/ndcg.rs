//! nDCG: the gain of the ranking, discounted by rank, as a share of the best gain that the judgements allow.
//!
//! Source: Järvelin and Kekäläinen 2002; `DCG = sum over ranks i of gain(grade_i) / log2(i + 1)`. The ideal ranking
//! holds all judged documents by grade and is cut at the same rank. trec_eval's gain is the grade, that of Burges et
//! al. 2005 is `2^grade - 1`.
//! Range: `[0, 1]`; 0 when no document has a positive grade. Negative grades gain nothing.

/// The worth of a document of a grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gain {
    /// The grade: trec_eval's, and the usual one.
    Linear,
    /// `2^grade - 1`: ir_measures calls it `dcg='exp-log2'`.
    Exponential,
}

/// `ideal` holds the highest grades, in descending order.
pub(super) fn ndcg(top: &[Option<i32>], ideal: &[i32], gain: Gain) -> f64 {
    let highest = ideal.first().copied().unwrap_or(0);
    if highest <= 0 {
        return 0.0;
    }
    let dcg = |grades: &mut dyn Iterator<Item = i32>| -> f64 {
        let discounted = |(n, grade): (usize, i32)| gain.of(grade, highest) / ((n + 2) as f64).log2();
        grades.enumerate().map(discounted).sum()
    };
    dcg(&mut top.iter().map(|grade| grade.unwrap_or(0))) / dcg(&mut ideal.iter().copied())
}

impl Gain {
    /// The gain of a grade; the exponential one in units of `2^highest`, so that no grade is too large for it.
    fn of(self, grade: i32, highest: i32) -> f64 {
        match self {
            _ if grade <= 0 => 0.0,
            Self::Linear => f64::from(grade),
            Self::Exponential => 2_f64.powi(grade.saturating_sub(highest)) - 2_f64.powi(-highest),
        }
    }
}
