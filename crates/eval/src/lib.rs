//! Evaluation: what a ranking is worth, what a context is worth, and whether a difference is more than chance.
//!
//! Files come in ([`qrels`], [`run`], [`topics`], [`questions`], [`contexts`]), figures go out ([`measure`],
//! [`context`], [`answers`]), and two sets of figures are compared query by query ([`compare`]). Nothing here knows of
//! a collection.

pub mod qrels;
pub mod run;
pub mod topics;
pub mod measure;
pub mod evaluate;
pub mod compare;
pub mod tune;
pub mod questions;
pub mod contexts;
pub mod context;
pub mod answers;
mod machine;
mod error;
mod lines;

pub use error::{Error, Result};
pub use machine::Machine;
