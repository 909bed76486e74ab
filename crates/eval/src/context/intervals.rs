//! Intervals: sets of numbers as sorted, disjoint ranges.
//!
//! Cost: a sort to make one; intersections walk both once.

use std::ops::Range;

/// A set of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Intervals(Vec<Range<u64>>);

impl FromIterator<Range<u64>> for Intervals {
    /// The union of ranges that may overlap, touch or be empty.
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut ranges: Vec<Range<u64>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut union: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match union.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => union.push(range),
            }
        }
        Self(union)
    }
}

impl Intervals {
    /// The numbers that both have.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.as_slice(), other.0.as_slice());
        let mut both = Vec::new();
        while let ([first, ..], [second, ..]) = (a, b) {
            let shared = first.start.max(second.start)..first.end.min(second.end);
            if !shared.is_empty() {
                both.push(shared);
            }
            if first.end <= second.end { a = &a[1..] } else { b = &b[1..] }
        }
        Self(both)
    }

    /// The count of numbers in it.
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    fn ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0_u64..60, 0_u64..12).prop_map(|(start, length)| start..start + length), 0..12)
    }

    fn naive(ranges: &[Range<u64>]) -> BTreeSet<u64> {
        ranges.iter().cloned().flatten().collect()
    }

    fn numbers(set: &Intervals) -> Vec<u64> {
        set.iter().cloned().flatten().collect()
    }

    proptest! {
        #[test]
        fn union_and_intersection_are_those_of_sets(a in ranges(), b in ranges()) {
            let [set_a, set_b]: [Intervals; 2] = [&a, &b].map(|ranges| ranges.iter().cloned().collect());
            let both = set_a.intersection(&set_b);
            prop_assert_eq!(numbers(&set_a), naive(&a).into_iter().collect::<Vec<_>>());
            prop_assert_eq!(numbers(&both), naive(&a).intersection(&naive(&b)).copied().collect::<Vec<_>>());
            prop_assert_eq!(set_a.len(), naive(&a).len() as u64);
            prop_assert_eq!(both, set_b.intersection(&set_a));
        }

        #[test]
        fn ranges_of_a_set_are_sorted_and_do_not_touch(a in ranges()) {
            let set: Intervals = a.into_iter().collect();
            prop_assert!(set.0.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
