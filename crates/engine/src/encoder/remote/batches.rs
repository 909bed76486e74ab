//! The requests that texts are sent in.

use std::ops::Range;

/// Texts of one request at most: as many as the servers take that are set up most narrowly (TEI).
pub(super) const TEXTS_MAX: usize = 32;

/// Tokens of one request at most, unless a single text has more.
const TOKENS_MAX: usize = 8_192;

/// The texts of each request, by the tokens of each text: in order, as many as fit.
pub(super) fn pack(n_tokens: &[u32]) -> Vec<Range<usize>> {
    let (mut batches, mut start, mut sum) = (Vec::new(), 0, 0);
    for (at, n) in n_tokens.iter().enumerate() {
        let is_full = at - start == TEXTS_MAX || sum + *n as usize > TOKENS_MAX;
        if is_full && at > start {
            batches.push(start..at);
            (start, sum) = (at, 0);
        }
        sum += *n as usize;
    }
    if start < n_tokens.len() {
        batches.push(start..n_tokens.len());
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_full_by_texts_or_by_tokens() {
        assert!(pack(&[]).is_empty());
        assert_eq!(pack(&[1; 70]), [0..32, 32..64, 64..70]);
        assert_eq!(pack(&[5_000, 3_192, 1, 9_000, 2]), [0..2, 2..3, 3..4, 4..5]);
    }
}
