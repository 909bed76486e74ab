//! Kinds of questions: told by their words alone, so that settings can go by them.
//!
//! Source: ours; "Small-to-Big RAG" (Codcompass) asks for windows that follow "query complexity" and gives no rule.
//! The rules read English; a question in another language is [`QueryKind::Several`] or [`QueryKind::Any`].
//! Cost: one pass over the words.

use super::names::{mentions, words};
use super::needs::{Wanted, clauses, wanted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a question; the first rule that holds decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueryKind {
    /// It has two parts or more that say something: a comma, a semicolon, "and", "or", "but" or a relative pronoun
    /// outside of names and quotations divides them.
    Several,
    /// It wants a date: "when" at its beginning, "what year", "which day".
    Date,
    /// It wants a number: "how many", "how long", "what percentage".
    Number,
    /// It wants a name: "who", "whose", "where" or "which" as the first or second word.
    Name,
    /// Anything else, such as "why" and "how does".
    Any,
}

impl QueryKind {
    /// Reads a question.
    pub fn of(question: &str) -> Self {
        let all = words(question, 0..question.len());
        let whole = std::slice::from_ref(&(0..question.len())).to_vec();
        let mentioned = mentions(question, &whole, &|_| false);
        if clauses(question, &all, &mentioned).len() > 1 {
            return Self::Several;
        }
        match wanted(question, &all).0 {
            Wanted::Date => Self::Date,
            Wanted::Number => Self::Number,
            Wanted::Name => Self::Name,
            Wanted::Any => Self::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_holds_decides() {
        for (question, kind) in [
            ("When was the treaty signed?", QueryKind::Date),
            ("In what year did the bridge open?", QueryKind::Date),
            ("How many seals live there?", QueryKind::Number),
            ("What percentage of members voted?", QueryKind::Number),
            ("Who wrote the charter?", QueryKind::Name),
            ("Why does the sea rise?", QueryKind::Any),
            ("How does the pump work?", QueryKind::Any),
            ("Who wrote the charter, and when was the charter signed?", QueryKind::Several),
            ("What did the committee decide on fees and what did members answer?", QueryKind::Several),
            ("Warum steigt das Meer?", QueryKind::Any),
            ("", QueryKind::Any),
        ] {
            assert_eq!(QueryKind::of(question), kind, "{question}");
        }
    }
}
