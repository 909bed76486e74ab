//! `cento reproduce`: recorded figures, run again from scratch with this very binary, each beside what is expected.
//!
//! A plan (TOML) → its steps, commands as a user would type them → figures out of their JSON answers → tables and charts →
//! one report, as text, JSON or page. Beside them pictures, each of one context, out of its trace.

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

pub(crate) use self::assemble::assemble;
pub(crate) use self::expected::Expected;
pub(crate) use self::page::html;
pub(crate) use self::picture::pictures;
pub(crate) use self::plan::{Judged, Plan};
pub(crate) use self::report::{Cache, Report, Reproduction, Verdict};
pub(crate) use self::steps::{Figures, Runner, commands};
pub(crate) use self::text::text;
pub(crate) use self::workplace::prepare;
