//! Contexts: what was delivered to a language model for each query, one JSON object a line, as `cento run --contexts`
//! writes it.
//!
//! Spans are bytes of the document's canonical text; for Markdown and plain text that is the file.
//! Cost: one line in memory, and the names of the contexts already read.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::lines::{self, Lines};

/// The version of the record that is read.
pub const VERSION: u32 = 1;

/// Opens a file of contexts; `-` is stdin. The contexts come one at a time, in the order of the file.
///
/// # Errors
/// A file that cannot be opened. What is wrong with a line comes in its place and ends the iteration: a field that is
/// missing or of another type, a citation whose span is not as long as its text, the same query, strategy and budget
/// twice. Fields that are not known are no error. A file without contexts is one.
pub fn read(path: &Path) -> Result<Contexts> {
    Ok(Contexts { lines: Lines::open(path)?, seen: HashSet::new(), ended: false })
}

/// The delivery for one query, by one strategy, within one budget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// Version of the record: [`VERSION`].
    pub version: u32,
    /// Id of the query.
    pub query_id: String,
    /// Text of the query.
    pub query: String,
    /// The strategy that chose the context: a label, free.
    pub strategy: String,
    /// Tokens that the context may have.
    pub budget_tokens: u64,
    /// The budget that was asked for where each query has tokens of its own, such as `auto:4000`; none where that is
    /// `budget_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Tokens of `context` as a whole: headers, separators and marks too.
    pub n_tokens: u64,
    /// Tokens of the cited texts alone.
    pub n_text_tokens: u64,
    /// The tokenizer that counts them.
    pub tokenizer: String,
    /// The text as it is delivered.
    pub context: String,
    /// Ids of the delivered documents, the one with the most relevant delivered chunk first.
    pub documents: Vec<String>,
    /// Each section's share.
    pub sections: Vec<Section>,
    /// Mean cosine of the delivered chunks' vectors, pair by pair; none where there are fewer than two or no vectors.
    #[serde(deserialize_with = "Option::deserialize")] // null is a value, a missing field is not
    pub redundancy_cosine: Option<f64>,
    /// Candidates decided for each reason, such as `passed_all_gates` and `too_redundant`; empty if the writer kept no
    /// record.
    #[serde(default)]
    pub decisions: BTreeMap<String, u64>,
    /// The delivered pieces in the order of the context.
    pub citations: Vec<Citation>,
}

/// The budget that was asked for: contexts that share it and a strategy are compared with those of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Budget {
    /// So many tokens for every query.
    Tokens(u64),
    /// Tokens that each query has of its own, in the words of whoever asked, such as `auto:4000`.
    Each(String),
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens(tokens) => write!(f, "{tokens} tokens"),
            Self::Each(asked) => f.write_str(asked),
        }
    }
}

impl Context {
    /// The budget that was asked for.
    #[must_use]
    pub fn asked(&self) -> Budget {
        self.budget.clone().map_or(Budget::Tokens(self.budget_tokens), Budget::Each)
    }
}

/// The delivered part of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The section.
    pub section: String,
    /// The kind of section that a budget or a prior goes by; may be empty.
    pub label: String,
    /// Delivered chunks.
    pub chunks: u64,
    /// Their tokens.
    pub tokens: u64,
}

/// One delivered piece: bytes of a document, as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// Its number in the context, from 1.
    pub n: u64,
    /// Id of the document.
    pub document: String,
    /// Headings open where it starts, outermost first.
    pub path: Vec<String>,
    /// Bytes of the document's canonical text.
    pub span: Range<u64>,
    /// The text that the span points into: `source` or `extracted`.
    pub source: String,
    /// Where it is in the file, in words; may be empty.
    pub anchor: String,
    /// Ids of the chunks it is made of.
    pub chunks: Vec<String>,
    /// True if it is a part of its chunk, cut to fit the budget.
    pub cut: bool,
    /// The cited bytes.
    pub text: String,
}

/// The contexts of a file, read as they are asked for.
pub struct Contexts {
    lines: Lines,
    /// Query, strategy and budget of the contexts that were read.
    seen: HashSet<(String, String, Budget)>,
    ended: bool,
}

impl Iterator for Contexts {
    type Item = Result<Context>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let context = self.read_next().transpose();
        self.ended = !matches!(context, Some(Ok(_)));
        context
    }
}

impl Contexts {
    fn read_next(&mut self) -> Result<Option<Context>> {
        let path = self.lines.path().to_owned();
        let Some((number, line)) = self.lines.next()? else {
            return if self.seen.is_empty() { Err(Error::Empty { path, what: "contexts" }) } else { Ok(None) };
        };
        let context: Context = lines::record(&path, number, line)?;
        check(&path, number, &context)?;
        let (Context { query_id, strategy, .. }, budget) = (&context, context.asked());
        if !self.seen.insert((query_id.clone(), strategy.clone(), budget.clone())) {
            let what = format!("the context of query {query_id}, strategy {strategy}, {budget}");
            return Err(Error::Duplicate { path, line: number, what });
        }
        Ok(Some(context))
    }
}

/// Checks what a type alone does not hold.
fn check(path: &Path, line: u64, context: &Context) -> Result<()> {
    let malformed = |expected: String, found: String| {
        Err(Error::Malformed { path: path.to_owned(), line, column: 1, expected, found })
    };
    if context.version != VERSION {
        return malformed(format!("`version` {VERSION}"), context.version.to_string());
    }
    for Citation { n, span, text, .. } in &context.citations {
        if span.end.checked_sub(span.start) != Some(text.len() as u64) {
            let expected = format!("citation {n} with a span as long as its text, {} bytes", text.len());
            return malformed(expected, format!("{}..{}", span.start, span.end));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"version":1,"query_id":"q1","query":"what?","strategy":"bubble","budget_tokens":800,"n_tokens":9,"n_text_tokens":3,"tokenizer":"o200k","context":"=== [1] a\nNuts.","documents":["docs/a.md"],"sections":[{"section":"A","label":"","chunks":1,"tokens":3}],"redundancy_cosine":null,"citations":[{"n":1,"document":"docs/a.md","path":["A"],"span":{"start":4,"end":9},"source":"source","anchor":"line 2","chunks":["docs/a.md#0"],"cut":false,"text":"Nuts."}],"new_in_a_later_version":true}"#;

    /// Reads lines as a file; all that came before the first error, and the error.
    fn read_lines(lines: &[&str]) -> (Vec<Context>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contexts.jsonl");
        fs_err::write(&path, lines.join("\n")).unwrap();
        let (mut contexts, mut error) = (Vec::new(), None);
        for context in read(&path).unwrap() {
            match context {
                Ok(context) => contexts.push(context),
                Err(told) => error = Some(told.to_string().replace(path.to_str().unwrap(), "F")),
            }
        }
        (contexts, error)
    }

    #[test]
    fn a_record_is_read_with_fields_that_are_not_known() {
        let (contexts, error) = read_lines(&["", LINE]);
        assert_eq!(error, None);
        assert_eq!(contexts[0].citations[0].span, 4..9);
        assert_eq!(contexts[0].redundancy_cosine, None);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let context = read_lines(&[LINE]).0.remove(0);
        let written = serde_json::to_string(&context).unwrap();
        assert_eq!(read_lines(&[&written]).0, [context]);
    }

    #[test]
    fn a_missing_field_is_named_with_its_line() {
        for field in ["tokenizer", "redundancy_cosine", "citations"] {
            let line = LINE.replace(&format!("\"{field}\""), "\"else\"");
            let (contexts, error) = read_lines(&[LINE, &line]);
            assert_eq!(contexts.len(), 1);
            let error = error.unwrap();
            assert!(error.starts_with("F, line 2, ") && error.contains(&format!("missing field `{field}`")), "{error}");
        }
    }

    #[test]
    fn columns_count_characters() {
        let error = read_lines(&[r#"{"query":"äöü","query_id":3}"#]).1.unwrap();
        assert_eq!(
            error,
            "F, line 1, column 27: expected a record, found invalid type: integer `3`, expected a string"
        );
    }

    #[test]
    fn a_query_twice_is_an_error_unless_strategy_or_budget_differs() {
        let other = LINE.replace("bubble", "rse");
        let (contexts, error) = read_lines(&[LINE, &other, &LINE.replace("800", "400"), &other]);
        assert_eq!(contexts.len(), 3);
        assert_eq!(error.unwrap(), "F, line 4: the context of query q1, strategy rse, 800 tokens is there twice");
    }

    #[test]
    fn a_budget_that_each_query_has_of_its_own_is_another_than_its_number() {
        let auto = |budget: &str| LINE.replace("\"n_tokens\"", &format!("\"budget\":\"{budget}\",\"n_tokens\""));
        let (contexts, error) = read_lines(&[LINE, &auto("auto:900"), &auto("auto:4000"), &auto("auto:900")]);
        assert_eq!(contexts[1].asked(), Budget::Each("auto:900".to_owned()));
        assert_eq!((contexts.len(), contexts[1].budget_tokens, contexts[0].asked()), (3, 800, Budget::Tokens(800)));
        assert_eq!(error.unwrap(), "F, line 4: the context of query q1, strategy bubble, auto:900 is there twice");
        let written = serde_json::to_string(&contexts[1]).unwrap();
        assert_eq!(read_lines(&[&written]).0, [contexts[1].clone()]);
    }

    #[test]
    fn a_span_is_as_long_as_its_text() {
        let error = read_lines(&[&LINE.replace("\"end\":9", "\"end\":8")]).1.unwrap();
        assert_eq!(
            error,
            "F, line 1, column 1: expected citation 1 with a span as long as its text, 5 bytes, found 4..8"
        );
    }

    #[test]
    fn another_version_and_an_empty_file_are_errors() {
        let error = read_lines(&[&LINE.replace("\"version\":1", "\"version\":2")]).1.unwrap();
        assert_eq!(error, "F, line 1, column 1: expected `version` 1, found 2");
        assert_eq!(read_lines(&[""]).1.unwrap(), "F: no contexts");
    }
}
