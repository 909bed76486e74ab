//! A navigable small-world graph over the rows: built once, frozen into a file, searched where it is mapped.
//!
//! Source: Malkov and Yashunin 2018, built in batches as ParlayANN does (Manohar et al. 2024).
//! Differs: the graph is built and walked on codes of 8 bits a dimension, which its file holds; what a walk finds is
//! ranked by the distances of the rows. It is repaired until every row can be reached.
//!
//! The same rows and configuration give the same bytes, for any number of threads and any instruction set. A graph is
//! an approximation: [`health`] says how good a one, against [`crate::exact`].

mod beam;
mod config;
mod order;

mod build;
mod draft;
mod repair;

mod frozen;
mod graph;

mod health;
mod search;

pub use build::{build, row_memory_bytes};
pub use config::{EF_CONSTRUCTION_MAX, HnswConfig, M_MAX};
pub use frozen::{FrozenGraph, KIND};
pub use graph::{Graph, Repairs};
pub use health::{Health, HealthConfig, IN_DEGREE_COUNTED, health};
pub use search::{Found, Path, Wanted, plan, search, search_batch};

#[cfg(test)]
mod tests;
