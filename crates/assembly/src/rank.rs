//! The order of rankings: where ties are decided, for the whole crate; rankings of searches are in the engine's
//! `source/ranking.rs`.
//!
//! What has a public id goes by score descending, then id descending. Names and terms have none: equal ones go by the
//! alphabet. What lies in a text keeps the order of the text where it is worth the same.

use std::cmp::Ordering;

/// Score descending, then public id descending: the order of every ranking of chunks, passages and documents.
pub(crate) fn best_first<I: Ord + ?Sized>(a: (f64, &I), b: (f64, &I)) -> Ordering {
    b.0.total_cmp(&a.0).then_with(|| b.1.cmp(a.1))
}

/// Weight descending, then the alphabet: the order of names and terms.
pub(crate) fn heaviest_first(a: (f64, &str), b: (f64, &str)) -> Ordering {
    b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1))
}

/// Value descending. For stable sorts of what lies in a text, so that equal ones stay in its order.
pub(crate) fn greatest_first(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_go_by_id_descending_and_equal_names_by_the_alphabet() {
        let mut chunks = [(0.5, "a#1"), (0.9, "a#0"), (0.5, "b#0")];
        chunks.sort_by(|a, b| best_first((a.0, a.1), (b.0, b.1)));
        assert_eq!(chunks.map(|(_, id)| id), ["a#0", "b#0", "a#1"]);
        let mut names = [(1.0, "oslo"), (2.0, "tide"), (1.0, "moon")];
        names.sort_by(|a, b| heaviest_first(*a, *b));
        assert_eq!(names.map(|(_, name)| name), ["tide", "moon", "oslo"]);
    }
}
