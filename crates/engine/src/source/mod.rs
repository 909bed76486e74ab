//! Source: where candidates come from. One collection is a source, one on another machine is, and so are several that
//! answer as one.

pub(crate) mod refs;
pub(crate) mod ranking;
pub(crate) mod filter;
pub(crate) mod scope;
pub(crate) mod seam;

mod keys;
mod lexical;
pub(crate) mod device_scan;
mod dense;
pub(crate) mod chunks;
mod labels;
pub(crate) mod titles;
pub(crate) mod links;
mod nearest;
pub(crate) mod documents;
pub(crate) mod selected;

pub(crate) mod local;
pub(crate) mod remote;
pub(crate) mod replicas;
pub(crate) mod shards;
