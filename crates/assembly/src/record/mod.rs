//! The record: the trace of every decision, and what it says about one chunk.

pub mod trace;
pub mod explain;
