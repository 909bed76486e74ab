//! The k nearest seen so far, and every other row exactly as near as the k-th.
//!
//! Ties are kept because another key may break them: rows of equal text have equal vectors, and the collection orders
//! them by public id, which this crate does not know.
//!
//! Cost: amortised constant a row; memory at most about twice the rows that are kept.

use crate::Neighbor;

/// Collects neighbours in any order; what it keeps does not depend on that order.
#[derive(Debug, Clone)]
pub(crate) struct TopK {
    k: usize,
    kept: Vec<Neighbor>,
    /// No farther row can be among the k nearest.
    cut: Option<f32>,
    /// Where `kept` is next cut down to the k nearest and their ties.
    full: usize,
}

/// Below this many rows a cut costs more than it saves.
const SLACK: usize = 64;

impl TopK {
    pub(crate) fn new(k: usize) -> Self {
        Self { k, kept: Vec::new(), cut: None, full: k.saturating_mul(2).max(SLACK) }
    }

    #[inline]
    pub(crate) fn push(&mut self, neighbor: Neighbor) {
        if self.k > 0 && self.cut.is_none_or(|cut| neighbor.distance.total_cmp(&cut).is_le()) {
            self.kept.push(neighbor);
            if self.kept.len() >= self.full {
                self.shrink();
            }
        }
    }

    /// Takes everything that the other one kept.
    pub(crate) fn merge(&mut self, other: Self) {
        for neighbor in other.kept {
            self.push(neighbor);
        }
    }

    /// The k nearest and the ties of the last, nearest first.
    pub(crate) fn into_sorted(mut self) -> Vec<Neighbor> {
        self.shrink();
        self.kept.sort_unstable();
        self.kept
    }

    fn shrink(&mut self) {
        if self.kept.len() > self.k && self.k > 0 {
            let (_, last, _) = self.kept.select_nth_unstable(self.k - 1);
            let last = last.distance;
            self.cut = Some(last);
            self.kept.retain(|neighbor| neighbor.distance.total_cmp(&last).is_le());
        }
        // With many ties nothing may have gone: doubling keeps the cost amortised.
        self.full = self.kept.len().saturating_mul(2).max(SLACK);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn top(distances: &[f32], k: usize) -> Vec<Neighbor> {
        let mut top = TopK::new(k);
        for (row, &distance) in distances.iter().enumerate() {
            top.push(Neighbor { row: row as u32, distance });
        }
        top.into_sorted()
    }

    /// Sorts everything, then cuts after the ties of the k-th.
    fn naive(distances: &[f32], k: usize) -> Vec<Neighbor> {
        let mut all: Vec<Neighbor> =
            distances.iter().enumerate().map(|(row, &distance)| Neighbor { row: row as u32, distance }).collect();
        all.sort();
        let n_kept = match k.checked_sub(1).and_then(|last| all.get(last)) {
            Some(last) => all.iter().filter(|neighbor| neighbor.distance <= last.distance).count(),
            None => all.len().min(k),
        };
        all.truncate(n_kept);
        all
    }

    #[test]
    fn every_row_tied_with_the_last_is_kept() {
        let rows: Vec<u32> = top(&[0.5, 0.2, 0.5, 0.5, 0.9], 2).iter().map(|neighbor| neighbor.row).collect();
        assert_eq!(rows, [1, 0, 2, 3]);
    }

    #[test]
    fn nothing_is_nearer_than_the_none_asked_for() {
        assert!(top(&[0.5, 0.2], 0).is_empty());
    }

    #[test]
    fn a_thousand_ties_are_all_kept() {
        assert_eq!(top(&[0.25; 1000], 3).len(), 1000);
    }

    proptest! {
        #[test]
        fn equals_sorting_everything(steps in prop::collection::vec(0_u8..20, 0..400), k in 0_usize..50) {
            let distances: Vec<f32> = steps.iter().map(|&step| f32::from(step) / 10.0).collect();
            prop_assert_eq!(top(&distances, k), naive(&distances, k));
        }

        #[test]
        fn parts_merge_into_the_whole(steps in prop::collection::vec(0_u8..20, 0..400), k in 0_usize..50, cut in 0_usize..400) {
            let distances: Vec<f32> = steps.iter().map(|&step| f32::from(step) / 10.0).collect();
            let cut = cut.min(distances.len());
            let (mut left, mut right) = (TopK::new(k), TopK::new(k));
            for (row, &distance) in distances.iter().enumerate() {
                let part = if row < cut { &mut left } else { &mut right };
                part.push(Neighbor { row: row as u32, distance });
            }
            right.merge(left);
            prop_assert_eq!(right.into_sorted(), naive(&distances, k));
        }
    }
}
