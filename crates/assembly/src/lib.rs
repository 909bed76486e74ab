//! Fuse two rankings, score, select under constraints, pack, explain: pure functions.
//!
//! The flow: [`fuse`](fuse::fuse) makes one ranking of several; its ids come back as [`Candidate`]s. [`assemble`]
//! scores them by a [`Policy`], selects within a hard token budget, packs what it chose in document order, and returns
//! a [`Context`]: the text, citations to exact bytes, and a [`Trace`] with a reason for every candidate.
//!
//! There is no I/O, clock or randomness here; tokenizer, sentences and terms are functions of the caller's.

mod rank;
mod figure;
mod named;

pub mod cite;
pub mod normalize;
pub mod fuse;
pub mod candidate;
mod line;
mod stop;
mod neighborhood;

pub mod question;
mod value;

mod pack;
mod budget;
mod optimum;
mod select;
pub mod strategies;

pub mod lever;
pub mod policy;
mod record;
mod assemble;
mod error;

#[cfg(test)]
mod tests;

pub use assemble::curve::{self, Curve, budget_curve};
pub use assemble::{Context, Further, Request, assemble};
pub use candidate::{Candidate, RERANK};
pub use cite::{Anchor, Citation, Extent};
pub use error::{Error, Result};
pub use neighborhood::{Beside, Cut, Neighborhood};
pub use pack::{Format, Marks, Order};
pub use policy::pipeline::{self, Pipeline};
pub use policy::{Policy, learned};
pub use question::Reading;
pub use record::explain::{self, Why, why};
pub use record::trace::{self, Trace};
pub use select::redundancy;
pub use stop::{NEVER, Stop};
pub use strategies::{Strategy, seal};
pub use value::bridge;
pub use value::evidence::{self, Evidence};
