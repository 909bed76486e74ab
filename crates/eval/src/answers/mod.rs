//! Answers judged: what a reader makes of a context, whether that is right, and whether its citations bear it out.
//!
//! Without a model, [`STAND_INS`] of [`crate::context`] stand in: the answer is in the context, gold documents and
//! spans are cited. With one, the reader answers from the delivered context alone and cites its sources as `[n]`; then
//! a judge compares the answer with the gold answers, and each statement with the sources that it cites.
//!
//! | figure | of a question | none where |
//! |---|---|---|
//! | `exact_match` | 1 if the answer has the words of a gold answer | no gold answer |
//! | `answer_f1` | `2PR / (P + R)` over the words of the answer and of the best gold answer | no gold answer |
//! | `answer_in_reply` | 1 if the reply has a gold answer as a run of words | no gold answer but yes and no |
//! | `correct` | 1 if the judge says so; 0 of a reader that found no answer | no gold answer, unjudged |
//! | `citation_recall` | statements supported by all they cite / statements | no statement, unjudged |
//! | `citation_precision` | citations that their statement needs / citations; 0 without citations | the same |
//! | `cited_gold_precision`, `_recall` | documents cited and gold / cited, / gold | no gold document, no statement |
//! | `abstained` | 1 if the reader found no answer in the context | unanswered |
//! | `unanswered` | 1 if there is no reply: the call failed, or said nothing | |
//! | `unjudged` | 1 if a verdict is wanting: the call failed, or was nonsense in all attempts | unanswered |
//!
//! Source: ALCE (arXiv 2305.14627, section 3), citation recall and precision: a statement is supported if what it
//! cites, taken together, entails it; a citation is needed unless it does not support its statement alone and the
//! others do. Correctness by a judge that sees question, gold and answer: as in ragas and RAGChecker (arXiv
//! 2408.08067). Words: SQuAD (arXiv 1606.05250).
//! Differs: a language model stands for ALCE's model of entailment, and judges all statements of a reply at once; it
//! sees what is cited and nothing else of the context. As in ALCE a statement without a citation, or with a number that
//! no source has, is not supported, and no judge is asked; here such a number also counts as a citation that is not
//! needed. ALCE looks at the first three citations of a sentence, this at all. A reader that found no answer states
//! nothing.
//! Range: `[0, 1]`. A verdict that is wanting is no figure, never a 0. A question without a context counts as a wrong
//! answer that cites nothing, or is left out, as [`Missing`] says.
//! Cost: a call for each context that is not another's equal, and at most two for each answer; all in memory.

mod agreement;
mod reply;
mod verdict;
mod prompts;
mod record;
mod asking;
mod sources;

use std::collections::BTreeMap;

pub use self::asking::{ATTEMPTS, Model, Said, Tally};
use self::asking::{Asker, Call, Verdict};
pub use self::prompts::Task;
pub use self::record::{Head, Record, VERSION as RECORD_VERSION};
pub use self::reply::Sentences;
use self::reply::{Reply, Statement};
use self::sources::Sources;
use crate::context::documents::Titles;
use crate::context::{Figure, Group, Missing};
use crate::contexts::{Budget, Context};
use crate::error::Result;
use crate::questions::{Question, Questions};

/// The figures of contexts that stand in for answers where no model is asked.
pub const STAND_INS: [&str; 7] = [
    "tokens",
    "answer_in_context",
    "title_precision",
    "title_recall",
    "evidence_precision",
    "evidence_recall",
    "fact_recall",
];

/// Statements of a reply that are judged; a reply with more is unjudged.
const STATEMENTS_MAX: usize = 32;

/// The figures in the order of the table above.
const FIGURES: [&str; 11] = [
    "exact_match",
    "answer_f1",
    "answer_in_reply",
    "correct",
    "citation_recall",
    "citation_precision",
    "cited_gold_precision",
    "cited_gold_recall",
    "abstained",
    "unanswered",
    "unjudged",
];

/// Settings of a judgement.
pub struct JudgeOptions<'a> {
    /// The model, which is asked for what the record does not have; none: nobody is asked.
    pub model: Option<&'a dyn Model>,
    /// Cuts replies into statements.
    pub sentences: &'a Sentences<'a>,
    /// Calls under way at a time, at least 1. Figures do not depend on it.
    pub n_at_once: usize,
    /// The worth of a question without a context.
    pub missing: Missing,
    /// Told of the task, the calls done and all calls of it.
    pub progress: &'a (dyn Fn(&str, usize, usize) + Sync),
}

/// Has contexts read and answers judged, and adds the figures to the groups, which
/// [`context::measure`](crate::context::measure) made of the same questions and contexts.
///
/// # Errors
/// [`Error::Asking`](crate::Error::Asking) where calls fail one after the other, and
/// [`Error::NotRecorded`](crate::Error::NotRecorded) where nobody is to be asked and the record lacks an answer.
pub fn judge(
    questions: &Questions,
    contexts: &[Context],
    groups: &mut [Group],
    record: &Record,
    options: &JudgeOptions<'_>,
) -> Result<Tally> {
    let asked: Vec<(&Question, &Context)> =
        contexts.iter().filter_map(|context| Some((questions.of(&context.query_id)?, context))).collect();
    let asker = Asker::new(record, options.model, options.sentences, options.n_at_once)?;
    let reads: Vec<Call> = asked.iter().map(|(question, context)| reading(question, context)).collect();
    let replies = asker.ask(&reads, &|n, of| (options.progress)("contexts read", n, of))?;
    let answered: Vec<Answered<'_>> = asked
        .iter()
        .zip(replies)
        .map(|((question, context), verdict)| Answered::new(question, context, verdict))
        .collect();
    let judged = answered.iter().flat_map(|answered| [answered.correctness(), answered.support()]);
    let (places, calls): (Vec<Option<usize>>, Vec<Call>) = numbered(judged);
    let verdicts = asker.ask(&calls, &|n, of| (options.progress)("verdicts", n, of))?;
    let verdict = |place: Option<usize>| place.and_then(|at| verdicts[at].as_ref());

    let mut rows: BTreeMap<(String, Budget), BTreeMap<&str, [Option<f64>; FIGURES.len()]>> = BTreeMap::new();
    for (at, answered) in answered.iter().enumerate() {
        let Answered { question, context, .. } = answered;
        let readings = answered.readings(verdict(places[2 * at]), verdict(places[2 * at + 1]));
        let group = rows.entry((context.strategy.clone(), context.asked())).or_default();
        group.insert(&question.id, readings);
    }
    for group in groups {
        let mut rows = rows.remove(&(group.strategy.clone(), group.budget.clone())).unwrap_or_default();
        if options.missing == Missing::Zero {
            for question in questions.iter() {
                rows.entry(&question.id).or_insert_with(|| nothing(question));
            }
        }
        group.figures.extend(figures(&rows));
    }
    Ok(asker.tally())
}

/// The calls that are to be made, and where the call of each place is among them.
fn numbered(places: impl Iterator<Item = Option<Call>>) -> (Vec<Option<usize>>, Vec<Call>) {
    let mut calls = Vec::new();
    let place = |call: Option<Call>| {
        call.map(|call| {
            calls.push(call);
            calls.len() - 1
        })
    };
    let places = places.map(place).collect();
    (places, calls)
}

fn reading(question: &Question, context: &Context) -> Call {
    let prompt = prompts::read(&question.text, &context.context);
    Call { task: Task::Read, query_id: question.id.clone(), prompt, statements: Vec::new() }
}

/// A question with a context, and the reader's reply if there is one.
struct Answered<'a> {
    question: &'a Question,
    context: &'a Context,
    reply: Option<Reply>,
    sources: Sources<'a>,
}

impl<'a> Answered<'a> {
    fn new(question: &'a Question, context: &'a Context, verdict: Option<Verdict>) -> Self {
        let reply = match verdict {
            Some(Verdict::Reply(reply)) => Some(reply),
            Some(Verdict::Correct { .. } | Verdict::Support { .. }) | None => None,
        };
        Self { question, context, reply, sources: Sources::of(context) }
    }

    /// The call that judges the answer, where there is something to judge.
    fn correctness(&self) -> Option<Call> {
        let reply = self.reply.as_ref().filter(|reply| !reply.abstained && !self.question.answers.is_empty())?;
        let prompt = prompts::correct(&self.question.text, &self.question.answers, reply);
        Some(Call { task: Task::Correct, query_id: self.question.id.clone(), prompt, statements: Vec::new() })
    }

    /// The call that judges the statements, where one cites what is there.
    fn support(&self) -> Option<Call> {
        let statements: Vec<&Statement> = self.citing().collect();
        if statements.is_empty() || statements.len() > STATEMENTS_MAX {
            return None;
        }
        let mut cited: Vec<u64> = statements.iter().flat_map(|statement| statement.cites.iter().copied()).collect();
        cited.sort_unstable();
        cited.dedup();
        let texts: Vec<(u64, &str)> = cited.into_iter().filter_map(|n| Some((n, self.sources.text(n)?))).collect();
        let prompt = prompts::support(&self.question.text, &texts, &statements);
        let statements = statements.into_iter().cloned().collect();
        Some(Call { task: Task::Support, query_id: self.question.id.clone(), prompt, statements })
    }

    /// The statements that cite, and cite nothing that is not there.
    fn citing(&self) -> impl Iterator<Item = &Statement> {
        let statements = self.reply.iter().flat_map(|reply| &reply.statements);
        statements.filter(|statement| {
            !statement.cites.is_empty() && statement.cites.iter().all(|n| self.sources.text(*n).is_some())
        })
    }

    /// The figures, in the order of [`FIGURES`].
    fn readings(&self, correct: Option<&Verdict>, support: Option<&Verdict>) -> [Option<f64>; FIGURES.len()] {
        let Some(reply) = &self.reply else {
            return [None, None, None, None, None, None, None, None, None, Some(1.0), None];
        };
        let gold = &self.question.answers;
        let correct = match correct {
            Some(Verdict::Correct { correct }) => Some(f64::from(*correct)),
            Some(Verdict::Reply(_) | Verdict::Support { .. }) | None => {
                (reply.abstained && !gold.is_empty()).then_some(0.0)
            }
        };
        let citations = self.citations(reply, support);
        let cited = self.cited_gold(reply);
        let is_wanting = correct.is_none() && !gold.is_empty() || citations.is_none() && !reply.statements.is_empty();
        [
            agreement::exact_match(&reply.answer, gold),
            agreement::f1(&reply.answer, gold),
            agreement::contained(&reply.text(), gold),
            correct,
            citations.map(|(recall, _)| recall),
            citations.map(|(_, precision)| precision),
            cited.map(|titles| titles.precision),
            cited.map(|titles| titles.recall),
            Some(f64::from(reply.abstained)),
            Some(0.0),
            Some(f64::from(is_wanting)),
        ]
    }

    /// Citation recall and precision; none without a statement, and where a verdict is wanting.
    fn citations(&self, reply: &Reply, support: Option<&Verdict>) -> Option<(f64, f64)> {
        if reply.statements.is_empty() {
            return None;
        }
        let judged = match support {
            Some(Verdict::Support { statements }) => statements.as_slice(),
            Some(Verdict::Reply(_) | Verdict::Correct { .. }) | None if self.citing().next().is_some() => return None,
            Some(Verdict::Reply(_) | Verdict::Correct { .. }) | None => &[],
        };
        let n_supported = judged.iter().filter(|judged| judged.supported).count();
        let n_useful: usize = judged.iter().map(|judged| judged.useful.len()).sum();
        let n_cites: usize = reply.statements.iter().map(|statement| statement.cites.len()).sum();
        Some((n_supported as f64 / reply.statements.len() as f64, n_useful as f64 / n_cites.max(1) as f64))
    }

    /// Precision and recall of the documents behind the citations; none without gold documents or statements.
    fn cited_gold(&self, reply: &Reply) -> Option<Titles> {
        let cites = reply.statements.iter().flat_map(|statement| &statement.cites);
        let cited: Vec<String> = cites.flat_map(|n| self.sources.documents(*n)).map(str::to_owned).collect();
        let is_known = !self.question.documents.is_empty() && !reply.statements.is_empty();
        is_known.then(|| Titles::of(&cited, &self.question.documents))
    }
}

/// The figures of a question without a context: what could be right is wrong, and nothing was said.
fn nothing(question: &Question) -> [Option<f64>; FIGURES.len()] {
    let zero = |reading: Option<f64>| reading.map(|_| 0.0);
    let gold = &question.answers;
    let of_answer = [
        zero(agreement::exact_match("", gold)),
        zero(agreement::f1("", gold)),
        zero(agreement::contained("", gold)),
        (!gold.is_empty()).then_some(0.0),
    ];
    let mut readings = [None; FIGURES.len()];
    readings[..of_answer.len()].copy_from_slice(&of_answer);
    readings
}

/// Means of the readings, over the questions that have them.
fn figures(rows: &BTreeMap<&str, [Option<f64>; FIGURES.len()]>) -> Vec<Figure> {
    let figure = |(at, name): (usize, &&str)| {
        let values = rows.iter().filter_map(|(question, readings)| Some(((*question).to_owned(), readings[at]?)));
        let values: Vec<(String, f64)> = values.collect();
        let n = values.len();
        let mean = values.iter().map(|(_, value)| value).sum::<f64>() / n.max(1) as f64;
        (n > 0).then(|| Figure { name: (*name).to_owned(), mean, n, values })
    };
    FIGURES.iter().enumerate().filter_map(figure).collect()
}

#[cfg(test)]
mod tests;
