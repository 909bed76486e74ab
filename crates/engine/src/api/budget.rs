//! The budget of a context as people write it, `800`, `auto` or `auto:6000`, and what `auto` comes to.

use std::fmt;
use std::str::FromStr;

use cento_assembly::{Curve, Strategy, curve};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::context::pool::Pool;
use crate::context::request::ContextSettings;
use crate::error::Result;

/// The budget unless one is asked for: room for several chunks of the usual length with their headers, and little
/// beside the window of any model that is to read it.
pub const DEFAULT_BUDGET_TOKENS: usize = 2_000;

/// The most that `auto` spends, unless it says.
pub const AUTO_TOKENS_MAX: usize = 4_000;

const EXPECTED: &str = "a number of tokens, auto or auto:N";

/// The length that a context may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// So many tokens.
    Tokens(usize),
    /// As many as pay, of so many at most.
    Auto(usize),
}

/// The tokens that a budget came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settled {
    /// Tokens that the context may have.
    pub budget_tokens: usize,
    /// The share of the value of all tokens allowed that these hold, in percent; none where the budget was a number, or
    /// nothing is worth anything.
    pub share: Option<f64>,
}

impl Budget {
    /// The most tokens it allows.
    #[must_use]
    pub fn most(self) -> usize {
        match self {
            Self::Tokens(most) | Self::Auto(most) => most,
        }
    }

    /// Refuses a strategy for which it cannot be settled, before anything is looked for.
    ///
    /// # Errors
    /// [`Error::Assembly`](crate::Error::Assembly) for `auto` and a strategy without a budget curve.
    pub fn check(self, strategy: Strategy) -> Result<()> {
        match self {
            Self::Tokens(_) => Ok(()),
            Self::Auto(_) => Ok(curve::has_curve(strategy)?),
        }
    }

    /// The tokens it comes to for a request: those of `auto` end at the knee of the budget curve.
    ///
    /// # Errors
    /// Those of [`Pool::budget_curve`], of `auto` alone.
    pub fn settle(self, pool: &Pool<'_>, request: &ContextSettings<'_>) -> Result<Settled> {
        // The knee needs no solution.
        self.settle_by(|most| pool.budget_curve(&ContextSettings { budget_tokens: most, ..*request }, 0))
    }

    /// The same of a curve that is drawn up to the most tokens allowed.
    pub(crate) fn settle_by(self, curve: impl FnOnce(usize) -> Result<Curve>) -> Result<Settled> {
        match self {
            Self::Tokens(budget_tokens) => Ok(Settled { budget_tokens, share: None }),
            Self::Auto(most) => {
                let curve = curve(most)?;
                let budget_tokens = curve.knee.unwrap_or(most);
                Ok(Settled { budget_tokens, share: Self::share(&curve, budget_tokens) })
            }
        }
    }

    /// The share of what the curve reaches at most that so many tokens hold, in percent.
    #[must_use]
    pub fn share(curve: &Curve, tokens: usize) -> Option<f64> {
        curve.points.last().map(|last| curve.bound(tokens) / last.value * 100.0)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::Tokens(DEFAULT_BUDGET_TOKENS)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens(tokens) => write!(f, "{tokens}"),
            Self::Auto(most) => write!(f, "auto:{most}"),
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let tokens = |number: &str| number.parse().map_err(|_| format!("expected {EXPECTED}"));
        match text.strip_prefix("auto") {
            Some("") => Ok(Self::Auto(AUTO_TOKENS_MAX)),
            Some(rest) => tokens(rest.strip_prefix(':').unwrap_or_default()).map(Self::Auto),
            None => tokens(text).map(Self::Tokens),
        }
    }
}

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tokens(tokens) => tokens.serialize(serializer),
            Self::Auto(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Budget;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_u64<E: de::Error>(self, tokens: u64) -> Result<Budget, E> {
                usize::try_from(tokens).map(Budget::Tokens).map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Budget, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Written)
    }
}

impl JsonSchema for Budget {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Budget".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of tokens; or auto, or auto:N, for as many as pay, of so many at most.",
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "string", "pattern": "^([0-9]+|auto(:[0-9]+)?)$" }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_read_as_it_is_written() {
        for (text, json, budget) in [
            ("800", "800", Budget::Tokens(800)),
            ("auto:700", "\"auto:700\"", Budget::Auto(700)),
            ("auto:4000", "\"auto:4000\"", Budget::Auto(AUTO_TOKENS_MAX)),
        ] {
            assert_eq!((text.parse(), budget.to_string().as_str()), (Ok(budget), text));
            assert_eq!(serde_json::to_string(&budget).unwrap(), json);
            assert_eq!(serde_json::from_str::<Budget>(json).unwrap(), budget);
        }
        assert_eq!("auto".parse(), Ok(Budget::Auto(AUTO_TOKENS_MAX)));
        assert_eq!(serde_json::from_str::<Budget>("\"800\"").unwrap(), Budget::Tokens(800));
        for wrong in ["\"many\"", "\"auto:\"", "\"auto7\"", "-1", "1.5", "null", "\"\""] {
            let error = serde_json::from_str::<Budget>(wrong).unwrap_err().to_string();
            assert!(error.contains(EXPECTED), "{wrong}: {error}");
        }
    }
}
