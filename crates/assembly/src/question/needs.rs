//! Needs: what a question asks for, each with what it is worth.
//!
//! Source: N(q) of arXiv 2512.10787, section 3.4, which leaves it to a language model.
//! Differs: a need is something the question writes. Names, quotations and titles of the corpus are entities; dates,
//! numbers and comparisons are qualifiers; every other content term is a relation. What the question wants to be told
//! ("when", "how many") is not a need but [`Wanted`].
//! Range: a need weighs the idf of its terms together; a comparison, which no single passage can satisfy, weighs 0.

use super::names::{self, Aliases, Date, Kind, Mention, is_opener, mentions, words};
use super::quantity::Quantity;
use super::reading::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// The needs of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    /// Every need once, in the order of the question.
    pub needs: Vec<Need>,
    /// Parts of the question: bytes.
    pub clauses: Vec<Range<usize>>,
    /// The kind of answer that would do.
    pub wanted: Wanted,
}

/// One thing a question asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Need {
    /// Its kind.
    pub kind: NeedKind,
    /// As the question writes it.
    pub text: String,
    /// The key of an entity: [`Aliases::key`].
    pub key: String,
    /// Its distinct terms.
    pub terms: Vec<String>,
    /// The idf of its terms together.
    pub weight: f64,
    /// Number of its clause.
    pub clause: usize,
    /// The value of a number; none where it is no single one ("2-1").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
}

/// The kind of a need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NeedKind {
    /// A name, a quotation, a title of the corpus.
    Entity,
    /// A content term.
    Relation,
    /// A number.
    Number,
    /// A date.
    Date,
    /// "Older", "both", "the same": entities side by side.
    Comparison,
}

/// The kind of answer a question wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wanted {
    /// "When", "what year".
    Date,
    /// "How many", "how old".
    Number,
    /// "Who", "where", "which".
    Name,
    /// Anything that speaks of what is asked.
    Any,
}

impl Needs {
    /// Reads a question. `titles` are those of the corpus, as far as they are known: one that occurs in the question is
    /// a name, however it is written there.
    pub fn read(question: &str, titles: &[&str], aliases: &Aliases, reading: &Reading<'_>) -> Self {
        let all = words(question, 0..question.len());
        let title_words: BTreeSet<String> = titles
            .iter()
            .flat_map(|title| words(title, 0..title.len()).into_iter().map(|word| title[word].to_lowercase()))
            .collect();
        let mut mentioned = in_titles(question, &all, titles);
        let whole = std::slice::from_ref(&(0..question.len())).to_vec();
        for mention in mentions(question, &whole, &|word| title_words.contains(word)) {
            let span = &mention.span;
            if mentioned.iter().all(|other| span.end <= other.span.start || other.span.end <= span.start) {
                mentioned.push(mention);
            }
        }
        mentioned.sort_by_key(|mention| mention.span.start);
        let clauses = clauses(question, &all, &mentioned);
        let (wanted, asking) = wanted(question, &all);
        let mut needs: Vec<Need> = Vec::new();
        let mut add = |kind: NeedKind, span: Range<usize>| {
            let text = &question[span.clone()];
            let mut terms = (reading.terms)(text);
            terms.sort_unstable();
            terms.dedup();
            let key = if kind == NeedKind::Entity { aliases.key(text) } else { terms.join(" ") };
            let weight = if kind == NeedKind::Comparison { 0.0 } else { reading.mass(&terms) };
            let known = needs.iter().any(|need| need.key == key || (kind == NeedKind::Relation && need.terms == terms));
            if !terms.is_empty() && !known {
                let clause = clauses.iter().rposition(|clause| clause.start <= span.start).unwrap_or(0);
                let value = (kind == NeedKind::Number).then(|| Quantity::at(question, &span)).flatten();
                needs.push(Need { kind, text: text.to_owned(), key, terms, weight, clause, value });
            }
        };
        for mention in &mentioned {
            add(
                match mention.kind {
                    Kind::Name | Kind::Quote => NeedKind::Entity,
                    Kind::Date => NeedKind::Date,
                    Kind::Number => NeedKind::Number,
                },
                mention.span.clone(),
            );
        }
        for (at, span) in all.iter().enumerate() {
            let inside = mentioned.iter().any(|mention| mention.span.start < span.end && span.start < mention.span.end);
            let word = question[span.clone()].to_lowercase();
            if COMPARISONS.contains(&word.as_str()) {
                add(NeedKind::Comparison, span.clone());
            } else if !inside && !asking.contains(&at) && !is_opener(&word) {
                add(NeedKind::Relation, span.clone());
            }
        }
        needs.sort_by_key(|need| need.clause);
        Self { needs, clauses, wanted }
    }

    /// The weight of all needs together.
    pub fn weight(&self) -> f64 {
        self.needs.iter().map(|need| need.weight).sum()
    }
}

/// Titles that occur in a question: of two words and more however they are written there, single words only with a
/// capital.
fn in_titles(question: &str, words: &[Range<usize>], titles: &[&str]) -> Vec<Mention> {
    let lower: Vec<String> = words.iter().map(|word| question[word.clone()].to_lowercase()).collect();
    let keys: BTreeSet<Vec<String>> =
        titles.iter().map(|title| names::key(title).split(' ').map(str::to_owned).collect()).collect();
    let longest = keys.iter().map(Vec::len).max().unwrap_or(0);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let fits = |n: usize| {
            let capital = question[words[at].start..].starts_with(char::is_uppercase);
            let content = lower[at..at + n].iter().any(|word| !is_opener(word));
            keys.contains(&lower[at..at + n]) && content && (n > 1 || (capital && at > 0))
        };
        let n = (1..=longest.min(words.len() - at)).rev().find(|&n| fits(n));
        if let Some(n) = n {
            let span = words[at].start..words[at + n - 1].end;
            // A name that goes on is another one: "Paris" is not what "Paris Hilton" means.
            let goes_on = |word: Option<&Range<usize>>| {
                word.is_some_and(|word| question[word.start..].starts_with(char::is_uppercase))
            };
            let part = n == 1 && (goes_on(words.get(at + 1)) || (at > 1 && goes_on(words.get(at - 1))));
            if !part {
                found.push(Mention { span, kind: Kind::Name, sentence: 0 });
            }
        }
        at += n.unwrap_or(1);
    }
    found
}

/// The parts of a question: it is divided at commas, semicolons, "and", "or", "but" and relative pronouns outside of
/// names and quotations, where both sides say something.
pub(super) fn clauses(question: &str, words: &[Range<usize>], mentioned: &[Mention]) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    let mut content = false;
    for (at, span) in words.iter().enumerate() {
        let inside = mentioned.iter().any(|mention| mention.span.start < span.start && span.start < mention.span.end);
        let word = question[span.clone()].to_lowercase();
        let comma = at > 0 && question[words[at - 1].end..span.start].contains([',', ';']);
        let opens = at > 0 && (comma || DIVIDERS.contains(&word.as_str()));
        let says_more = words[at..].iter().any(|word| !is_opener(&question[word.clone()]));
        if opens && !inside && content && says_more {
            starts.push(span.start);
            content = false;
        }
        content |= !is_opener(&word) && !DIVIDERS.contains(&word.as_str());
    }
    let ends: Vec<usize> = starts[1..].iter().copied().chain([question.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| start..end).collect()
}

/// The kind of answer that is wanted, and the words (by number) that say so.
pub(super) fn wanted(question: &str, words: &[Range<usize>]) -> (Wanted, Vec<usize>) {
    let word = |at: usize| words.get(at).map(|span| question[span.clone()].to_lowercase()).unwrap_or_default();
    for at in 0..words.len() {
        match (word(at).as_str(), word(at + 1).as_str()) {
            ("what" | "which", "year" | "date" | "day" | "month" | "decade" | "century") => {
                return (Wanted::Date, vec![at, at + 1]);
            }
            ("how", "many" | "much" | "old" | "long" | "tall" | "far" | "large" | "big" | "high") => {
                return (Wanted::Number, vec![at, at + 1]);
            }
            ("what" | "which", "number" | "percentage" | "population") => return (Wanted::Number, vec![at]),
            ("when", _) if at == 0 => return (Wanted::Date, vec![at]),
            ("who" | "whom" | "whose" | "where" | "which", _) if at < 2 => return (Wanted::Name, vec![at]),
            _ => {}
        }
    }
    (Wanted::Any, Vec::new())
}

/// Says if a passage has the date of a need.
pub(crate) fn says_date(need: &Need, text: &str, mentions: &[Mention]) -> bool {
    let mut said = mentions.iter().filter(|mention| mention.kind.is_qualifier());
    let date = Date::parse(&need.text);
    date.is_some_and(|date| {
        said.any(|said| Date::parse(&text[said.span.clone()]).is_some_and(|said| said.agrees(&date)))
    })
}

const DIVIDERS: [&str; 10] = ["and", "or", "but", "who", "which", "that", "whose", "whom", "where", "while"];
const COMPARISONS: [&str; 24] = [
    "older",
    "younger",
    "earlier",
    "later",
    "larger",
    "bigger",
    "smaller",
    "taller",
    "shorter",
    "longer",
    "higher",
    "lower",
    "more",
    "less",
    "fewer",
    "most",
    "least",
    "same",
    "both",
    "either",
    "different",
    "common",
    "than",
    "first",
];
