//! Levers: the settings that a decision hangs on, and the way each has to be moved to undo it.
//!
//! A lever is a guess from the numbers of one decision. A context is chosen as a whole, so what a moved setting does to
//! a chunk, only assembling again can tell.

use std::fmt;

/// Thousandths in a unit: shares and scores are moved by so much.
const THOUSANDTHS: f64 = 1000.0;

/// A key of a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its table; none for the keys that stand before all tables.
    pub table: Option<&'static str>,
    /// Its name in the table.
    pub name: String,
}

impl Key {
    /// The key of a label, such as a section's prior.
    pub(crate) fn of(table: &'static str, name: &str) -> Self {
        Self { table: Some(table), name: name.to_owned() }
    }
}

impl From<&'static str> for Key {
    fn from(key: &'static str) -> Self {
        match key.split_once('.') {
            Some((table, name)) => Self::of(table, name),
            None => Self { table: None, name: key.to_owned() },
        }
    }
}

impl fmt::Display for Key {
    /// As TOML writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if let Some(table) = self.table {
            write!(f, "{table}.")?;
        }
        match !self.name.is_empty() && self.name.chars().all(is_bare) {
            true => f.write_str(&self.name),
            false => write!(f, "{}", toml::Value::String(self.name.clone())),
        }
    }
}

/// The steps in which a number of a policy is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Whole numbers.
    One,
    /// Thousandths of one.
    Thousandth,
}

impl Unit {
    /// So many steps, as a policy writes them.
    pub fn value(self, steps: i64) -> toml::Value {
        match self {
            Self::One => toml::Value::Integer(steps),
            Self::Thousandth => toml::Value::Float(steps as f64 / THOUSANDTHS),
        }
    }
}

/// A number of a policy, moved in steps of its unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// Its key.
    pub key: Key,
    /// The size of a step.
    pub unit: Unit,
    /// The last step at which the decision is known to stand.
    pub from: i64,
    /// The first step at which it seems undone.
    pub guess: i64,
    /// The step beyond which nothing is looked for.
    pub end: i64,
}

impl Number {
    /// A limit of so many, raised to hold `guess`.
    pub(crate) fn limit(key: impl Into<Key>, from: usize, guess: usize, end: usize) -> Self {
        let [from, guess, end] = [from, guess, end].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let next = from.saturating_add(1);
        Self { key: key.into(), unit: Unit::One, from, guess: guess.max(next), end: end.max(next) }
    }

    /// A figure, raised above `figure`, to 1 at most.
    pub(crate) fn above(key: impl Into<Key>, from: f64, figure: f64) -> Self {
        Self { end: THOUSANDTHS as i64, ..Self::moved(key, (from * THOUSANDTHS).floor(), figure) }
    }

    /// A figure, raised above `figure` with no end to speak of.
    pub(crate) fn far_above(key: impl Into<Key>, from: f64, figure: f64) -> Self {
        let number = Self::moved(key, (from * THOUSANDTHS).floor(), figure);
        Self { end: number.guess.saturating_mul(64).max(64 * THOUSANDTHS as i64), ..number }
    }

    fn moved(key: impl Into<Key>, from: f64, figure: f64) -> Self {
        let guess = ((figure * THOUSANDTHS).floor() as i64).saturating_add(1);
        Self {
            key: key.into(),
            unit: Unit::Thousandth,
            from: from as i64,
            guess: guess.max((from as i64).saturating_add(1)),
            end: guess,
        }
    }

    /// A figure, lowered to `figure`, and to `end` at most.
    pub(crate) fn down_to(key: impl Into<Key>, from: f64, figure: f64, end: f64) -> Self {
        let from = (from * THOUSANDTHS).ceil() as i64;
        let guess = ((figure * THOUSANDTHS).floor() as i64).min(from.saturating_sub(1));
        let end = ((end * THOUSANDTHS).floor() as i64).min(guess);
        Self { key: key.into(), unit: Unit::Thousandth, from, guess, end }
    }
}

/// A setting that may undo a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Lever {
    /// A larger budget; so many tokens seem enough.
    Budget(usize),
    /// A number of the policy.
    Number(Number),
    /// A choice of the policy.
    Choice(Key, &'static str),
    /// The strategy of that name.
    Strategy(&'static str),
    /// Leaving out the chunk of that id.
    Exclude(String),
    /// Not leaving out this chunk, nor its document.
    Admit {
        /// Id of the chunk.
        chunk: String,
        /// Id of its document.
        document: String,
    },
    /// More candidates of every retriever.
    Candidates,
}
