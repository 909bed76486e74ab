//! What a judge says, read strictly: one JSON object with the fields that were asked for and no other, and a verdict on
//! every statement, of sources that it names. Anything else is no verdict. A frame of ``` and thoughts before
//! `</think>` are passed over.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::reply::{Statement, after_thought};

/// Letters of a wrong answer that a fault shows.
const SHOWN_CHARS: usize = 120;

/// The judgement of one statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Judged {
    /// It follows from the sources that it names.
    pub(super) supported: bool,
    /// Those of them that it needs.
    pub(super) useful: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Correct {
    correct: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Support {
    statements: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    n: usize,
    supported: bool,
    #[serde(default)]
    useful: Vec<u64>,
}

/// The verdict on an answer; the fault of a message that holds none.
pub(super) fn correct(message: &str) -> Result<bool, String> {
    object::<Correct>(message).map(|verdict| verdict.correct)
}

/// The verdicts on statements, in their order.
pub(super) fn support(message: &str, statements: &[Statement]) -> Result<Vec<Judged>, String> {
    let entries = object::<Support>(message)?.statements;
    if entries.len() != statements.len() {
        return Err(format!("{} verdicts on {} statements", entries.len(), statements.len()));
    }
    let judged = |(at, (entry, statement)): (usize, (Entry, &Statement))| {
        let Entry { n, supported, useful } = entry;
        if n != at + 1 {
            return Err(format!("a verdict on statement {n} in place {}", at + 1));
        }
        if let Some(other) = useful.iter().find(|n| !statement.cites.contains(n)) {
            return Err(format!("source {other} is useful to statement {n}, which does not name it"));
        }
        // Of what is not supported no source is useful, whatever is said.
        let mut useful = if supported { useful } else { Vec::new() };
        useful.sort_unstable();
        useful.dedup();
        Ok(Judged { supported, useful })
    };
    entries.into_iter().zip(statements).enumerate().map(judged).collect()
}

fn object<T: DeserializeOwned>(message: &str) -> Result<T, String> {
    let said = after_thought(message);
    let framed = said.strip_prefix("```").and_then(|said| said.strip_suffix("```"));
    let said = framed.map_or(said, |said| said.strip_prefix("json").unwrap_or(said)).trim();
    if !said.starts_with('{') {
        return Err(format!("no verdict in {}: not a JSON object", excerpt(said))); // serde would read a list as fields
    }
    serde_json::from_str(said).map_err(|error| format!("no verdict in {}: {error}", excerpt(said)))
}

/// The beginning of a text, on one line.
fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_one_object_of_the_fields_asked_for() {
        assert_eq!(correct(" {\"correct\": true}\n"), Ok(true));
        assert_eq!(correct("<think>{\"correct\": true}</think>```json\n{\"correct\": false}\n```"), Ok(false));
        for nonsense in [
            "",
            "true",
            "[true]",
            "yes",
            "{}",
            "{\"correct\": \"true\"}",
            "{\"correct\": 1}",
            "{\"correct\": null}",
            "{\"correct\": true, \"score\": 5}",
            "{\"correct\": true} {\"correct\": false}",
            "It is {\"correct\": true}",
            "[{\"correct\": true}]",
            "{\"correct\": true",
        ] {
            let fault = correct(nonsense).unwrap_err();
            assert!(fault.starts_with("no verdict in"), "{fault}");
        }
        let long = correct(&"é".repeat(10_000)).unwrap_err();
        assert!(long.chars().count() < 300, "{long}");
    }

    #[test]
    fn every_statement_has_its_verdict_of_sources_that_it_names() {
        let statement = |cites: &[u64]| Statement { text: "x".to_owned(), cites: cites.to_vec() };
        let statements = [statement(&[1, 3]), statement(&[2])];
        let said = |entries: &str| support(&format!("{{\"statements\": [{entries}]}}"), &statements);
        let judged = |supported, useful: &[u64]| Judged { supported, useful: useful.to_vec() };
        assert_eq!(
            said(
                "{\"n\": 1, \"supported\": true, \"useful\": [3, 3]}, {\"n\": 2, \"supported\": false, \"useful\": [2]}"
            ),
            Ok(vec![judged(true, &[3]), judged(false, &[])])
        );
        for (nonsense, word) in [
            ("{\"n\": 1, \"supported\": true}", "1 verdicts on 2"),
            ("{\"n\": 2, \"supported\": true}, {\"n\": 1, \"supported\": true}", "statement 2 in place 1"),
            ("{\"n\": 1, \"supported\": true, \"useful\": [2]}, {\"n\": 2, \"supported\": true}", "source 2"),
            ("{\"n\": 1}, {\"n\": 2, \"supported\": true}", "supported"),
            ("{\"n\": -1, \"supported\": true}, {\"n\": 2, \"supported\": true}", "no verdict"),
        ] {
            let fault = said(nonsense).unwrap_err();
            assert!(fault.contains(word), "{fault}");
        }
    }
}
