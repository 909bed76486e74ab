//! Context: a ranking → candidates with their neighbourhood → what the assembly delivers, and what is searched for
//! besides.

pub(crate) mod tokens;
pub(crate) mod request;
pub(crate) mod target;
pub(crate) mod candidates;
mod further;
pub(crate) mod gaps;
pub(crate) mod endpoint;
pub(crate) mod seal;
mod labels;
pub(crate) mod pool;
pub(crate) mod given;
pub(crate) mod priors;
