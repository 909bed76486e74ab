//! Reranking: a model that reads question and passage together orders the best candidates anew.
//!
//! Source: Nogueira and Cho 2019 (arXiv 1901.04085); of documents the best passage counts, MaxP of Dai and Callan 2019
//! (arXiv 1905.09217).
//! Shapes: the first [`depth`](crate::api::Rerank::depth) of a ranking, however many results are wanted.
//! Range: a logit, the logarithm of the odds that the passage answers, as a 32-bit float; its sigmoid is the
//! probability. What was read stands before all others, by logit descending, then by public id descending; the others
//! keep their order.
//! Cost: a pass of the model over every pair; nothing can be kept from one question to the next.

pub(crate) mod allowed;
pub(crate) mod endpoint;
pub(crate) mod reranker;
pub(crate) mod reading;
pub(crate) mod stage;
pub(crate) mod documents;
