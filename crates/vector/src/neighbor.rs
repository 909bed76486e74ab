//! A row and how far it is from the query: the one order of everything that this crate returns.

use std::cmp::Ordering;

/// A row near a query.
#[derive(Debug, Clone, Copy)]
pub struct Neighbor {
    /// The row, from 0.
    pub row: u32,
    /// `1 - dot`: 0 for the same direction, 2 for the opposite one; rounding may put it a few millionths below 0.
    pub distance: f32,
}

impl Ord for Neighbor {
    /// Nearest first; equal distances by row, so a ranking never depends on visiting order.
    fn cmp(&self, other: &Self) -> Ordering {
        self.distance.total_cmp(&other.distance).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Neighbor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Neighbor {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Neighbor {}
