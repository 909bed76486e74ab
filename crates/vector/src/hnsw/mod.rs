//! A navigable small-world graph over the rows: built once, frozen into a file, searched where it is mapped.
//!
//! Source: Malkov and Yashunin 2018; the construction is the crate hnsw_rs, serial and in the order of the rows.
//! Differs: only the construction is that crate's. The graph is exported, cleaned of edges that lead nowhere, repaired until
//! every row can be reached, and written as flat lists of neighbours; the search is this module's own.
//!
//! The same rows, configuration and instruction set give the same bytes. A graph is an approximation: [`health`] says how
//! good a one, against [`crate::exact`].

mod beam;
mod build;
mod config;
mod freeze;
mod frozen;
mod graph;
mod health;
mod repair;
mod search;

pub use build::build;
pub use config::{HnswConfig, M_MAX};
pub use frozen::{FrozenGraph, KIND};
pub use graph::{Graph, Repairs};
pub use health::{Health, HealthConfig, IN_DEGREE_COUNTED, health};
pub use search::{Path, plan, search};

#[cfg(test)]
mod tests;
