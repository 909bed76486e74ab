//! Windows: which tokens of a long document are read together, and which of them each reading is asked for.
//!
//! As many windows as the overlap demands, all full, spread evenly. Where two overlap, each gives the half that is
//! farther from its own edge, so that no token's vector comes from nearer to a seam than half the overlap, on either
//! side.
//! Differs: in the reference each window but the first leaves out as many of its first tokens as overlap, so that the
//! last token before a seam sees nothing behind it.
//! Cost: `capacity / (capacity - overlap)` times the tokens of the document, at most one window more.

use std::ops::Range;

/// A window over the T tokens of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    /// Tokens read together.
    pub(super) read: Range<usize>,
    /// Those whose vectors are taken from it; over all windows they partition the document.
    pub(super) kept: Range<usize>,
}

/// The windows of a document of `n_tokens`, in order; none for none. `overlap < capacity`.
pub(super) fn windows(n_tokens: usize, capacity: usize, overlap: usize) -> Vec<Window> {
    assert!(overlap < capacity, "windows of {capacity} tokens cannot overlap by {overlap}");
    if n_tokens == 0 {
        return Vec::new();
    }
    let n_beyond = n_tokens.saturating_sub(capacity);
    let n_seams = n_beyond.div_ceil(capacity - overlap);
    let start = |window: usize| window * n_beyond / n_seams.max(1);
    // the middle of what a window shares with the one before it
    let seam = |window: usize| (start(window) + start(window - 1) + capacity) / 2;
    let window = |window: usize| Window {
        read: start(window)..(start(window) + capacity).min(n_tokens),
        kept: if window == 0 { 0 } else { seam(window) }..if window == n_seams { n_tokens } else { seam(window + 1) },
    };
    (0..=n_seams).map(window).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn evenly_spread_by_hand() {
        let window = |read, kept| Window { read, kept };
        assert_eq!(windows(0, 8, 4), []);
        assert_eq!(windows(8, 8, 4), [window(0..8, 0..8)]);
        assert_eq!(windows(9, 8, 4), [window(0..8, 0..4), window(1..9, 4..9)]);
        assert_eq!(windows(16, 8, 4), [window(0..8, 0..6), window(4..12, 6..10), window(8..16, 10..16)]);
        assert_eq!(windows(14, 8, 2), [window(0..8, 0..7), window(6..14, 7..14)]);
        assert_eq!(windows(10, 5, 0), [window(0..5, 0..5), window(5..10, 5..10)]);
    }

    proptest! {
        #[test]
        fn every_token_is_kept_once_and_far_from_the_edge(n_tokens in 1usize..2000, capacity in 1usize..300, share in 0.0f64..1.0) {
            let overlap = ((capacity - 1) as f64 * share) as usize;
            let mut next = 0;
            for Window { read, kept } in windows(n_tokens, capacity, overlap) {
                prop_assert_eq!(kept.start, next);
                prop_assert!(!kept.is_empty() && read.start <= kept.start && kept.end <= read.end && read.end <= n_tokens);
                prop_assert_eq!(read.len(), capacity.min(n_tokens));
                prop_assert!(read.start == 0 || kept.start - read.start >= overlap / 2);
                prop_assert!(read.end == n_tokens || read.end - kept.end >= overlap / 2);
                next = kept.end;
            }
            prop_assert_eq!(next, n_tokens);
        }

        #[test]
        fn each_token_comes_from_the_window_it_is_most_central_in(n_tokens in 1usize..400, capacity in 2usize..50, share in 0.0f64..1.0) {
            let overlap = ((capacity - 1) as f64 * share) as usize;
            let windows = windows(n_tokens, capacity, overlap);
            // a document's own ends are no edges
            let depth = |window: &Window, token: usize| {
                let left = if window.read.start == 0 { usize::MAX } else { token - window.read.start };
                let right = if window.read.end == n_tokens { usize::MAX } else { window.read.end - 1 - token };
                left.min(right)
            };
            for window in &windows {
                for token in window.kept.clone() {
                    let best = windows.iter().filter(|other| other.read.contains(&token)).map(|other| depth(other, token)).max();
                    prop_assert_eq!(Some(depth(window, token)), best);
                }
            }
        }
    }
}
