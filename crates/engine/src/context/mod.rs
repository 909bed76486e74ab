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
mod ahead;
pub(crate) mod pool;
mod read;
pub(crate) mod given;
pub(crate) mod priors;
