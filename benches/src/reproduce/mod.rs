//! `cento-bench reproduce`: recorded figures, run again from scratch with `cento`, each beside what is expected.
//!
//! A plan (TOML) → its steps, commands as a user would type them → figures out of their JSON answers → tables and
//! charts → one report, as text, JSON or page. Beside them pictures, each of one context, out of its trace.

mod command;
mod plan;
mod expected;
mod steps;
mod workplace;
mod report;
mod assemble;
mod picture;
mod text;
mod page;
mod table;
mod chart;
mod markup;

pub use self::command::{Args, execute};
pub use self::report::Verdict;
