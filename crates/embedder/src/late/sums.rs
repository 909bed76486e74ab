//! Sums of hidden rows by span: what a window adds to the chunks of its document.

use std::ops::Range;

/// A sequence's part in one span.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sum {
    pub(super) span: usize,
    /// Sum of the rows of its tokens, \[H\].
    pub(super) sum: Vec<f64>,
    pub(super) n_tokens: u32,
}

impl Sum {
    pub(super) fn none(span: usize, width: usize) -> Self {
        Self { span, sum: vec![0.0; width], n_tokens: 0 }
    }

    /// Adds what a later window has.
    pub(super) fn add(&mut self, later: &Self) {
        assert_eq!(self.span, later.span, "sums of one span are added");
        self.sum.iter_mut().zip(&later.sum).for_each(|(sum, value)| *sum += value);
        self.n_tokens += later.n_tokens;
    }
}

/// The sums of one sequence: hidden `rows` \[T, H\], and for each of its T tokens the span it counts for, if any.
/// Tokens of a span follow one another, but for those that count for none.
pub(super) fn sums(rows: &[f32], width: usize, owners: &[Option<usize>]) -> Vec<Sum> {
    assert_eq!(rows.len(), owners.len() * width, "one row a token");
    let mut sums: Vec<Sum> = Vec::new();
    for (row, owner) in rows.chunks_exact(width).zip(owners) {
        let Some(span) = *owner else { continue };
        if sums.last().is_none_or(|last| last.span != span) {
            sums.push(Sum::none(span, width));
        }
        let Some(last) = sums.last_mut() else { continue };
        last.sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        last.n_tokens += 1;
    }
    sums
}

/// The span that a token at `place` belongs to: the one its byte lies in. `spans` ascend and do not overlap.
pub(super) fn owner(spans: &[Range<usize>], place: Option<usize>) -> Option<usize> {
    let place = place?;
    let span = spans.partition_point(|span| span.end <= place);
    spans.get(span).filter(|span| span.start <= place).map(|_| span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_summed_by_owner() {
        let rows = [1.0, 10.0, 2.0, 20.0, 4.0, 40.0, 8.0, 80.0];
        let found = sums(&rows, 2, &[Some(3), None, Some(3), Some(4)]);
        let expected =
            [Sum { span: 3, sum: vec![5.0, 50.0], n_tokens: 2 }, Sum { span: 4, sum: vec![8.0, 80.0], n_tokens: 1 }];
        assert_eq!(found, expected);
        assert_eq!(sums(&rows, 2, &[None; 4]), []);
    }

    #[test]
    fn spans_are_half_open() {
        let spans = [2..5, 5..6, 9..12];
        let owners: Vec<_> = (0..13).map(|place| owner(&spans, Some(place))).collect();
        let (a, b, c) = (Some(0), Some(1), Some(2));
        assert_eq!(owners, [None, None, a, a, a, b, None, None, None, c, c, c, None]);
        assert_eq!(owner(&spans, None), None);
        assert_eq!(owner(&[], Some(0)), None);
    }
}
