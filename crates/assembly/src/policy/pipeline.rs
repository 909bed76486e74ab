//! The configuration of a small-to-big pipeline, in YAML: a policy, and the strategy and budget that it implies.
//!
//! Source: `rag-context-pipeline.config.yaml` of "Small-to-Big RAG" (Codcompass), which is accepted as it is written
//! there. Every key is optional but `retrieval.strategy`.
//!
//! - `retrieval.strategy`: `local_expansion` is the strategy `window`; `structural_resolution` is `parent`; `hybrid` is
//!   `parent`, with windows in documents without sections.
//! - `retrieval.fallback`: `local_expansion` (default) puts a window in place of a section that is not there or does
//!   not fit; `none`.
//! - `local_expansion.radius`, `.max_tokens`: as in `[window]`.
//! - `local_expansion.boundary_check`: `document_ref` (default) or `section`, the `boundary` of `[window]`; there are
//!   no windows across documents.
//! - `structural_resolution.hierarchy_depth`, `.max_context_blocks`: as in `[parent]`.
//! - `structural_resolution.deduplicate_parents`: `true`, as a context never holds the same bytes twice; `false` is
//!   refused.
//! - `pipeline.token_budget`: the budget.
//! - `pipeline.truncate_policy`: `relevance_descending`: blocks are offered most relevant first, and what does not fit
//!   is narrowed or left out.
//! - `pipeline.log_boundary_violations`: `log_boundaries` of `[window]`: the trace names the windows that end at an
//!   edge.
//! - `pipeline.cache_resolved_context`, `.cache_ttl_seconds`: `[cache]`, see [`Cache`].
//!
//! A key that is unknown, of the wrong type, out of its range or against another one is an error with its line.

use super::{Cache, Policy, TTL_SECONDS_MAX, nearest};
use crate::error::{Error, Result};
use crate::select::gates::RUN_MAX;
use crate::strategies::Strategy;
use crate::strategies::parent::{Fallback, Parent};
use crate::strategies::window::{Boundary, Window};
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::ops::RangeInclusive;

/// A configuration, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// The settings.
    pub policy: Policy,
    /// The strategy that chooses.
    pub strategy: Stated<Strategy>,
    /// Tokens of the context, if it says so.
    pub budget_tokens: Option<Stated<usize>>,
}

/// A value and where it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stated<T> {
    /// The value.
    pub value: T,
    /// Line of the file, from 1.
    pub line: usize,
}

const STRATEGY: &str = "retrieval.strategy";
const FALLBACK: &str = "retrieval.fallback";
const LOCAL: &str = "local_expansion.enabled";
const RADIUS: &str = "local_expansion.radius";
const BOUNDARY: &str = "local_expansion.boundary_check";
const WINDOW_TOKENS: &str = "local_expansion.max_tokens";
const STRUCTURAL: &str = "structural_resolution.enabled";
const DEPTH: &str = "structural_resolution.hierarchy_depth";
const DEDUPLICATE: &str = "structural_resolution.deduplicate_parents";
const BLOCKS: &str = "structural_resolution.max_context_blocks";
const BUDGET: &str = "pipeline.token_budget";
const TRUNCATE: &str = "pipeline.truncate_policy";
const LOG: &str = "pipeline.log_boundary_violations";
const CACHE: &str = "pipeline.cache_resolved_context";
const TTL: &str = "pipeline.cache_ttl_seconds";

const KEYS: [&str; 15] = [
    STRATEGY,
    FALLBACK,
    LOCAL,
    RADIUS,
    BOUNDARY,
    WINDOW_TOKENS,
    STRUCTURAL,
    DEPTH,
    DEDUPLICATE,
    BLOCKS,
    BUDGET,
    TRUNCATE,
    LOG,
    CACHE,
    TTL,
];

/// Seconds for which a context is kept, where it is kept and nothing says how long.
const DEFAULT_TTL_SECONDS: usize = 300;

/// The way in which chunks found are put into their context.
#[derive(Clone, Copy, PartialEq)]
enum Resolution {
    Local,
    Structural,
    Hybrid,
}

impl Pipeline {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`Error::AtLine`]: YAML that cannot be read or is no table of tables, an unknown key (with the nearest), a value
    /// of another type or out of its range, two keys that contradict each other. [`Error::PipelineStrategy`] if there
    /// is no `retrieval.strategy`.
    pub fn parse(text: &str) -> Result<Self> {
        let entries = Entries::read(text)?;
        let resolutions = [
            ("local_expansion", Resolution::Local),
            ("structural_resolution", Resolution::Structural),
            ("hybrid", Resolution::Hybrid),
        ];
        let resolution = entries.choice(STRATEGY, &resolutions, "local_expansion, structural_resolution or hybrid")?;
        let resolution = resolution.ok_or(Error::PipelineStrategy)?;
        let fallbacks = [("local_expansion", true), ("none", false)];
        let falls_back = entries.choice(FALLBACK, &fallbacks, "local_expansion or none")?;
        entries.check_enabled(resolution.value, falls_back.map(|stated| stated.value))?;
        entries.choice(TRUNCATE, &[("relevance_descending", ())], "relevance_descending, which is all there is")?;
        let fallback = match (falls_back.is_none_or(|stated| stated.value), resolution.value) {
            (true, _) => Fallback::Window,
            (false, Resolution::Hybrid) => Fallback::Linear,
            (false, _) => Fallback::None,
        };
        let policy = Policy {
            window: entries.window()?,
            parent: entries.parent(fallback)?,
            cache: entries.cache()?,
            ..Policy::default()
        };
        let strategy = if resolution.value == Resolution::Local { Strategy::Window } else { Strategy::Parent };
        Ok(Self {
            policy: policy.checked()?,
            strategy: Stated { value: strategy, line: resolution.line },
            budget_tokens: entries.number(BUDGET, 1..=usize::MAX, "a whole number of at least 1")?,
        })
    }
}

/// A key with its table before it, and the value written under it.
struct Entry {
    key: &'static str,
    value: String,
    /// Written without quotes.
    is_plain: bool,
    line: usize,
}

impl Entry {
    /// The value as it is written.
    fn written(&self) -> String {
        match (self.value.as_str(), self.is_plain) {
            ("", true) => "empty".into(),
            (value, true) => value.into(),
            (value, false) => format!("{value:?}"),
        }
    }

    fn must_be(&self, expected: &'static str) -> Error {
        at(self.line, Error::PipelineValue { key: self.key, value: self.written(), expected })
    }

    fn bool(&self) -> Result<bool> {
        match self.value.as_str() {
            "true" | "True" | "TRUE" if self.is_plain => Ok(true),
            "false" | "False" | "FALSE" if self.is_plain => Ok(false),
            _ => Err(self.must_be("true or false")),
        }
    }
}

/// All that is written, every key once.
struct Entries(Vec<Entry>);

impl Entries {
    fn read(text: &str) -> Result<Self> {
        let mut entries = Self(Vec::new());
        // The key that waits for what is under it, and the table that is open, each with its line.
        let (mut key, mut table): (Option<(String, usize)>, Option<(String, usize)>) = (None, None);
        let (mut depth, mut n_documents) = (0, 0);
        for event in Parser::new_from_str(text) {
            let (event, span) = event
                .map_err(|error| at(error.marker().line(), Error::PipelineSyntax { reason: error.info().into() }))?;
            let line = span.start.line();
            match event {
                Event::DocumentStart(_) => {
                    n_documents += 1;
                    demand(n_documents == 1, line, "a second document: one file is one pipeline")?;
                }
                Event::MappingStart(..) if depth == 0 => depth = 1,
                Event::MappingStart(..) if depth == 1 && key.is_some() => (depth, table, key) = (2, key, None),
                Event::MappingEnd => {
                    depth -= 1;
                    table = None;
                }
                Event::Scalar(name, ..) if depth == 1 && key.is_none() => key = Some((known_table(&name, line)?, line)),
                Event::Scalar(name, ..) if depth == 2 && key.is_none() => key = Some((name.into_owned(), line)),
                Event::Scalar(value, style, _, None) if depth == 2 => {
                    let (name, line) = key.take().expect("a value follows its key");
                    let table = &table.as_ref().expect("a table is open at this depth").0;
                    let key = known_key(table, &name, line)?;
                    entries.push(Entry { key, value: value.into(), is_plain: style == ScalarStyle::Plain, line })?;
                }
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
                _ if depth == 0 => demand(false, line, "expected tables: retrieval, local_expansion and so on")?,
                _ => {
                    let (key, line) = key.or(table).unwrap_or(("a table".into(), line));
                    let wants = if depth == 1 { "keys below it" } else { "one plain value" };
                    return Err(at(line, Error::PipelineSyntax { reason: format!("`{key}` wants {wants}") }));
                }
            }
        }
        Ok(entries)
    }

    fn push(&mut self, entry: Entry) -> Result<()> {
        if let Some(first) = self.get(entry.key) {
            return Err(at(entry.line, Error::PipelineTwice { key: entry.key, first: first.line }));
        }
        self.0.push(entry);
        Ok(())
    }

    fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)], expected: &'static str) -> Result<Option<Stated<T>>> {
        let Some(entry) = self.get(key) else { return Ok(None) };
        let chosen = choices.iter().find(|(name, _)| *name == entry.value);
        chosen.map(|&(_, value)| Some(Stated { value, line: entry.line })).ok_or_else(|| entry.must_be(expected))
    }

    fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.get(key).map(Entry::bool).transpose()
    }

    fn number(&self, key: &str, range: RangeInclusive<usize>, expected: &'static str) -> Result<Option<Stated<usize>>> {
        let Some(entry) = self.get(key) else { return Ok(None) };
        let number = entry.value.parse().ok().filter(|number| entry.is_plain && range.contains(number));
        let value = number.ok_or_else(|| entry.must_be(expected))?;
        Ok(Some(Stated { value, line: entry.line }))
    }

    /// A part that the strategy or the fallback needs must not be switched off.
    fn check_enabled(&self, resolution: Resolution, falls_back: Option<bool>) -> Result<()> {
        let (local, structural) = (self.bool(LOCAL)?, self.bool(STRUCTURAL)?);
        if local == Some(false) && resolution != Resolution::Structural {
            return Err(self.conflict(STRATEGY, LOCAL));
        }
        if structural == Some(false) && resolution != Resolution::Local {
            return Err(self.conflict(STRATEGY, STRUCTURAL));
        }
        if local == Some(false) && falls_back == Some(true) {
            return Err(self.conflict(FALLBACK, LOCAL));
        }
        Ok(())
    }

    fn window(&self) -> Result<Window> {
        let window = Window::default();
        let boundaries = [("document_ref", Boundary::Document), ("section", Boundary::Section)];
        let boundary = self.choice(BOUNDARY, &boundaries, "document_ref or section")?;
        let radius = self.number(RADIUS, 0..=RUN_MAX, "a whole number from 0 to 100")?;
        let max_tokens = self.number(WINDOW_TOKENS, 1..=usize::MAX, "a whole number of at least 1")?;
        Ok(Window {
            radius: radius.map_or(window.radius, |stated| stated.value),
            max_tokens: max_tokens.map_or(window.max_tokens, |stated| stated.value),
            boundary: boundary.map_or(window.boundary, |stated| stated.value),
            log_boundaries: self.bool(LOG)?.unwrap_or(window.log_boundaries),
            ..window
        })
    }

    fn parent(&self, fallback: Fallback) -> Result<Parent> {
        let parent = Parent::default();
        if let Some(entry) = self.get(DEDUPLICATE)
            && !entry.bool()?
        {
            return Err(entry.must_be("true: a context never holds the same bytes twice"));
        }
        let depth = self.number(DEPTH, 2..=usize::MAX, "a whole number of at least 2, the chunk and its section")?;
        let blocks = self.number(BLOCKS, 1..=usize::MAX, "a whole number of at least 1")?;
        Ok(Parent {
            hierarchy_depth: depth.map_or(parent.hierarchy_depth, |stated| stated.value),
            max_context_blocks: blocks.map_or(parent.max_context_blocks, |stated| stated.value),
            fallback,
            ..parent
        })
    }

    fn cache(&self) -> Result<Option<Cache>> {
        let ttl = self.number(TTL, 1..=TTL_SECONDS_MAX, "a whole number from 1 to 31536000, a year")?;
        let is_on = self.bool(CACHE)?.unwrap_or(false);
        if ttl.is_some() && !is_on {
            return Err(self.conflict(TTL, CACHE));
        }
        let ttl_seconds = ttl.map_or(DEFAULT_TTL_SECONDS, |stated| stated.value) as u64;
        Ok(is_on.then_some(Cache { ttl_seconds }))
    }

    /// A key that is there asks for what another one does not give.
    fn conflict(&self, key: &'static str, other: &'static str) -> Error {
        let (line, value) = self.get(key).map_or((0, String::new()), |entry| (entry.line, entry.written()));
        let is = self.get(other).map_or("not there".into(), |entry| format!("{} (line {})", entry.value, entry.line));
        at(line, Error::PipelineConflict { key, value, other, is })
    }
}

/// The name of a table that there is.
fn known_table(name: &str, line: usize) -> Result<String> {
    let tables = || KEYS.into_iter().map(|key| split(key).0);
    if tables().any(|table| table == name) {
        return Ok(name.to_owned());
    }
    Err(at(line, Error::PolicyKey { key: name.to_owned(), nearest: nearest(name, tables()) }))
}

/// The key of that name in a table; if there is none, the nearest is looked for in all tables.
fn known_key(table: &str, name: &str, line: usize) -> Result<&'static str> {
    if let Some(known) = KEYS.into_iter().find(|key| split(key) == (table, name)) {
        return Ok(known);
    }
    let near = nearest(name, KEYS.into_iter().map(|key| split(key).1));
    let in_table = |key: &&str| split(key).0 != table;
    let near = near.and_then(|near| KEYS.into_iter().filter(|key| split(key).1 == near).min_by_key(in_table));
    Err(at(line, Error::PolicyKey { key: format!("{table}.{name}"), nearest: near }))
}

/// Table and key.
fn split(key: &str) -> (&str, &str) {
    key.split_once('.').unwrap_or((key, ""))
}

fn at(line: usize, error: Error) -> Error {
    Error::AtLine { line, error: Box::new(error) }
}

fn demand(holds: bool, line: usize, reason: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(at(line, Error::PipelineSyntax { reason: reason.into() })) }
}

#[cfg(test)]
mod tests;
