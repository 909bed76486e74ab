//! The commands that measure: runs, contexts, comparisons, and what is learned from judgements.

pub(crate) mod run;
pub(crate) mod eval;
pub(crate) mod eval_context;
pub(crate) mod eval_answers;
pub(crate) mod compare;
pub(crate) mod priors;
pub(crate) mod tune;
pub(crate) mod fuse;
mod groups;
