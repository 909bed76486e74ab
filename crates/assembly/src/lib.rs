//! Fuse two rankings, score, select under constraints, pack, explain: pure functions.
//!
//! The flow: [`fuse`](fuse::fuse) makes one ranking of several; its ids come back as [`Candidate`]s. [`assemble`] scores them by
//! a [`Policy`], selects within a hard token budget, packs what it chose in document order, and returns a [`Context`]: the text,
//! citations to exact bytes, and a [`Trace`] with a reason for every candidate.
//!
//! There is no I/O, clock or randomness here; tokenizer, sentences and terms are functions of the caller's.

pub mod candidate;
mod reading;

pub mod fuse;
pub mod normalize;

pub mod policy;
pub mod pipeline;
mod prior;
pub mod learned;

mod line;
pub mod evidence;
pub mod bridge;
mod likelihood;
mod coverage;

mod budget;
mod cut;
pub mod redundancy;
mod optimum;
pub mod select;

pub mod seal;

pub mod cite;
mod pack;
pub mod trace;
pub mod explain;

mod prepare;
mod assemble;
pub mod curve;
mod error;

#[cfg(test)]
mod tests;

pub use assemble::{Context, Request, assemble};
pub use candidate::Candidate;
pub use cite::{Anchor, Citation, Extent};
pub use curve::{Curve, budget_curve};
pub use error::{Error, Result};
pub use evidence::Evidence;
pub use explain::{Why, why};
pub use pack::{Format, Order};
pub use pipeline::Pipeline;
pub use policy::Policy;
pub use reading::Reading;
pub use select::Strategy;
pub use trace::Trace;
