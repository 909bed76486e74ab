//! A reader's reply: the answer in its first line, and statements that cite sources by number.
//!
//! Statements are the sentences behind the first line, or of it where nothing stands behind. `[1]`, `[1][3]` and
//! `[1, 3]` are citations; those behind the end of a sentence are that sentence's. What stands before `</think>` is
//! thought, and no reply.

use std::ops::Range;

use serde::Serialize;

use crate::context::answer::words;

/// Cuts a text into sentences, a partition of it in order.
pub type Sentences<'a> = dyn Fn(&str) -> Vec<Range<usize>> + Sync + 'a;

/// The word for an answer that the sources do not hold.
pub(super) const UNKNOWN: &str = "unknown";

/// A reply as it is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Reply {
    /// The first line without its citations.
    pub(super) answer: String,
    /// In their order; none where the reader found no answer.
    pub(super) statements: Vec<Statement>,
    /// The reader says that the sources do not hold the answer.
    pub(super) abstained: bool,
}

/// A sentence and the sources that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Statement {
    /// Without its citations.
    pub(super) text: String,
    /// Numbers as they are cited, each once.
    pub(super) cites: Vec<u64>,
}

impl Reply {
    /// Reads a message; the fault, if it says nothing.
    pub(super) fn read(message: &str, sentences: &Sentences<'_>) -> Result<Self, String> {
        let said = after_thought(message);
        if !said.chars().any(char::is_alphanumeric) {
            return Err("an empty reply".to_owned());
        }
        let (first, rest) = said.split_once('\n').unwrap_or((said, ""));
        let (answer, _) = without_citations(first);
        let abstained = words(&answer).trim() == UNKNOWN;
        let told = if rest.trim().is_empty() { first } else { rest };
        let statements = if abstained { Vec::new() } else { statements(told, sentences) };
        Ok(Self { answer, statements, abstained })
    }

    /// All of it without citations: the answer, and what is said of it.
    pub(super) fn text(&self) -> String {
        let statements = self.statements.iter().map(|statement| statement.text.as_str());
        let others = statements.filter(|text| *text != self.answer);
        [self.answer.as_str()].into_iter().chain(others).collect::<Vec<_>>().join("\n")
    }
}

/// The message behind its thoughts.
pub(super) fn after_thought(message: &str) -> &str {
    message.rsplit_once("</think>").map_or(message, |(_, said)| said).trim()
}

fn statements(told: &str, sentences: &Sentences<'_>) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for line in told.lines() {
        let n_before = statements.len();
        for span in sentences(line) {
            let mut rest = line[span].trim_start();
            while let (true, Some((cites, length))) = (statements.len() > n_before, citation(rest)) {
                statements.last_mut().into_iter().for_each(|before| add(&mut before.cites, &cites));
                rest = rest[length..].trim_start();
            }
            let (text, cites) = without_citations(rest);
            if text.chars().any(char::is_alphanumeric) {
                let mut statement = Statement { text, cites: Vec::with_capacity(cites.len()) };
                add(&mut statement.cites, &cites);
                statements.push(statement);
            } else if let Some(before) = statements.last_mut() {
                add(&mut before.cites, &cites); // a line of nothing but citations
            }
        }
    }
    statements
}

/// Adds numbers, each once.
fn add(to: &mut Vec<u64>, cites: &[u64]) {
    for n in cites {
        if !to.contains(n) {
            to.push(*n);
        }
    }
}

/// A text without its citations and the blanks before them, and the numbers in them.
fn without_citations(text: &str) -> (String, Vec<u64>) {
    let (mut kept, mut cites, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    while let Some(bracket) = text[at..].find('[').map(|offset| at + offset) {
        kept.push_str(&text[at..bracket]);
        at = match citation(&text[bracket..]) {
            Some((found, length)) => {
                cites.extend(found);
                kept.truncate(kept.trim_end().len());
                bracket + length
            }
            None => {
                kept.push('[');
                bracket + 1
            }
        };
    }
    kept.push_str(&text[at..]);
    (kept.trim().to_owned(), cites)
}

/// The numbers of a citation at the beginning of a text, and its length. A number that no list is as long as is one
/// that no source has.
fn citation(text: &str) -> Option<(Vec<u64>, usize)> {
    let inner = text.strip_prefix('[')?;
    let inner = &inner[..inner.find(']')?];
    let number = |part: &str| {
        let digits = part.trim();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let numbers: Option<Vec<u64>> = inner.split([',', ';']).map(number).collect();
    Some((numbers?, inner.len() + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sentences end behind a full stop and its blank.
    fn sentences(text: &str) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let mut start = 0;
        for (at, _) in text.match_indices(". ") {
            spans.push(start..at + 2);
            start = at + 2;
        }
        spans.push(start..text.len());
        spans
    }

    #[track_caller]
    fn check(message: &str, answer: &str, statements: &[(&str, &[u64])]) {
        let reply = Reply::read(message, &sentences).unwrap();
        let read: Vec<(&str, &[u64])> =
            reply.statements.iter().map(|statement| (statement.text.as_str(), statement.cites.as_slice())).collect();
        assert_eq!((reply.answer.as_str(), read.as_slice()), (answer, statements), "{message:?}");
    }

    #[test]
    fn the_first_line_is_the_answer_and_the_sentences_behind_it_are_the_statements() {
        check(
            "Rush [2]\nRush made it [1][3]. Peart [2, 1] drums; he is [sic] famous [1].",
            "Rush",
            &[("Rush made it.", &[1, 3]), ("Peart drums; he is [sic] famous.", &[2, 1])],
        );
        check("<think>Toto [9]?</think>\nRush\n\nThey are from Canada.", "Rush", &[("They are from Canada.", &[])]);
    }

    #[test]
    fn a_line_alone_is_answer_and_statement() {
        check("Rush [1].", "Rush.", &[("Rush.", &[1])]);
        check("[1] Rush", "Rush", &[("Rush", &[1])]);
        check("x\nRush made it.\n[2] says so.", "x", &[("Rush made it.", &[]), ("says so.", &[2])]);
    }

    #[test]
    fn a_citation_behind_the_full_stop_is_of_the_sentence_before() {
        check("x\nRush made it. [1] [2]", "x", &[("Rush made it.", &[1, 2])]);
        check("x\nRush made it. [1] Peart drums. [2][2]", "x", &[("Rush made it.", &[1]), ("Peart drums.", &[2])]);
        check("x\nRush made it.\n[3]", "x", &[("Rush made it.", &[3])]);
    }

    #[test]
    fn numbers_in_brackets_alone_are_citations() {
        check("x\nA [b1] c [] d [1-2] e [99999999999999999999].", "x", &[("A [b1] c [] d [1-2] e.", &[u64::MAX])]);
        check("x\nopen [1 and é [", "x", &[("open [1 and é [", &[])]);
    }

    #[test]
    fn a_reader_that_finds_nothing_states_nothing() {
        let reply = Reply::read("Unknown.\nThe sources speak of bread [1].", &sentences).unwrap();
        assert_eq!((reply.abstained, reply.statements.len()), (true, 0));
        assert!(!Reply::read("The unknown soldier", &sentences).unwrap().abstained);
        for empty in ["", " \n", "<think>Rush</think>", "..."] {
            assert!(Reply::read(empty, &sentences).is_err(), "{empty:?}");
        }
    }

    #[test]
    fn what_is_said_twice_is_shown_to_the_judge_once() {
        assert_eq!(Reply::read("Rush [1]", &sentences).unwrap().text(), "Rush");
        assert_eq!(Reply::read("Rush\nRush made it [1].", &sentences).unwrap().text(), "Rush\nRush made it.");
    }
}
