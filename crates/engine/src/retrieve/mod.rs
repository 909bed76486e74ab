//! Retrieval: a query → a ranking of chunks or of documents, each with the share that every retriever gave.

pub(crate) mod missing;
pub(crate) mod queue;
pub(crate) mod resolved;
pub(crate) mod searcher;

pub(crate) mod quoted;
pub(crate) mod rerank;
pub(crate) mod request;
pub(crate) mod scope;
pub(crate) mod selection;
pub(crate) mod documents;
pub(crate) mod links;

pub(crate) mod likelihood;
pub(crate) mod dense;
pub(crate) mod rules;
pub(crate) mod search;
pub(crate) mod run;
pub(crate) mod probe;
