//! Fuse two rankings, score, select under constraints, pack, explain: pure functions.
//!
//! [`fuse`](fuse::fuse) makes one ranking of several. [`assemble`] turns its candidates into a [`Context`]: text within a hard token
//! budget, citations to exact bytes, and a [`Trace`](trace::Trace) with a reason for every candidate. There is no I/O, clock or
//! randomness here; tokenizer, sentences and terms are functions of the caller's.

mod assemble;
mod budget;
pub mod candidate;
pub mod cite;
mod cut;
mod error;
pub mod fuse;
pub mod normalize;
mod pack;
pub mod policy;
mod prior;
pub mod redundancy;
mod select;
pub mod trace;

#[cfg(test)]
mod tests;

pub use assemble::{Context, Request, assemble};
pub use candidate::Candidate;
pub use cite::Citation;
pub use error::{Error, Result};
pub use pack::Format;
pub use policy::Policy;
pub use select::Strategy;
pub use trace::Trace;
