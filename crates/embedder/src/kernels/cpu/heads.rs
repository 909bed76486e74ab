//! The heads of an attention, and how far a token sees.
//!
//! Source: Vaswani et al. 2017; heads that share keys and values: Ainslie et al. 2023 (grouped queries), Shazeer 2019
//! (all share one).

use std::ops::Range;

use serde::Serialize;

/// Heads of a row `q | k | v`: all queries, then all keys, then all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Heads {
    /// A, heads of queries.
    pub(crate) n: usize,
    /// G, heads of keys, and as many of values: A is a multiple, and A / G neighbours share one.
    pub(crate) n_shared: usize,
    /// D, dimensions of one head.
    pub(crate) width: usize,
}

impl Heads {
    /// As many heads of keys as of queries.
    pub(crate) fn alike(n: usize, width: usize) -> Self {
        Self { n, n_shared: n, width }
    }

    /// A D, the width of all queries, and of what attention gives.
    #[inline(always)]
    pub(crate) fn queries(self) -> usize {
        self.n * self.width
    }

    /// G D, the width of all keys, and of all values.
    #[inline(always)]
    pub(crate) fn keys(self) -> usize {
        self.n_shared * self.width
    }

    /// (A + 2 G) D, the width of queries, keys and values.
    #[inline(always)]
    pub(crate) fn row(self) -> usize {
        self.queries() + 2 * self.keys()
    }

    /// Heads of queries that one head of keys serves.
    #[inline(always)]
    pub(crate) fn n_each(self) -> usize {
        self.n / self.n_shared
    }
}

/// The keys that a query sees beside its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Tokens before the query.
    pub(crate) back: usize,
    /// Tokens behind it.
    pub(crate) ahead: usize,
}

impl Sight {
    /// As far on one side as on the other; `None`: all of the text.
    pub(crate) fn around(window: Option<usize>) -> Self {
        let far = window.unwrap_or(usize::MAX);
        Self { back: far, ahead: far }
    }

    /// So many tokens before the query (`None`: all) and none behind it.
    pub(crate) fn behind(window: Option<usize>) -> Self {
        Self { back: window.unwrap_or(usize::MAX), ahead: 0 }
    }

    /// True if some token of a long text does not see what follows it.
    pub(crate) fn is_causal(self) -> bool {
        self.ahead == 0
    }

    /// The keys that a query of a text of `n_tokens` sees.
    #[inline(always)]
    pub(crate) fn keys(self, query: usize, n_tokens: usize) -> Range<usize> {
        query.saturating_sub(self.back)..n_tokens.min(query.saturating_add(self.ahead).saturating_add(1))
    }
}
