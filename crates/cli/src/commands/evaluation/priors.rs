//! `cento priors`: what the headings of a collection are worth, as the `[priors]` of a policy.

use std::fmt::Write as _;
use std::path::Path;

use cento_engine::{Gold, JudgedQuestion, LearnedLabel, LearnedPriors, PriorQuestions, Scan, Searcher, learned};
use cento_eval::qrels::Qrels;
use cento_eval::questions::Questions;
use cento_eval::topics;
use serde_json::{Value, json};

use crate::args::{Global, Priors};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside};

pub(crate) fn execute(args: &Priors, global: &Global) -> anyhow::Result<Outcome> {
    if args.sentences == Some(0) {
        return Err(options::usage("--sentences 0: nothing would be asked; give some hundreds"));
    }
    if learned::in_policy(0.0, args.strategy).is_none() {
        return Err(options::usage(format!("--strategy {}: has no priors; cento and bubble have", args.strategy)));
    }
    let mut judged = args.topics.as_deref().map(|topics| judged(topics, args.qrels.as_deref())).transpose()?;
    let searcher = options::searcher(global, &args.retrieval)?;
    resolve(judged.as_deref_mut().unwrap_or_default(), &searcher)?;
    let questions = match &judged {
        Some(judged) => PriorQuestions::Judged(judged),
        None => PriorQuestions::Sentences(args.sentences.unwrap_or_default()),
    };
    let search = options::request(String::new(), 1, &args.retrieval, Scan::Auto)?;
    let bar = Bar::new(global, Beside::AnyAnswer);
    let learned = searcher.learn_priors(&search, questions, &mut |n_done, n| bar.count(n_done, n, "questions"))?;
    bar.finish();
    options::remark_device(global, &searcher);
    if global.json {
        output::json(&answer(args, &learned))?;
    } else {
        print!("{}", policy(args, &learned));
    }
    let nothing = match (learned.labels.is_empty(), learned.n_questions) {
        (true, _) => format!(
            "no heading stands in {} documents or more, so there is nothing to learn a prior for",
            learned::DOCUMENTS_MIN
        ),
        (_, 0) => "no question has an answer among the documents that may answer".to_owned(),
        _ => return Ok(Outcome::Done),
    };
    eprintln!("{nothing}");
    Ok(Outcome::Nothing)
}

/// Gives records of JSONL that are judged by their own ids those that they have in the collection.
fn resolve(judged: &mut [JudgedQuestion], searcher: &Searcher) -> anyhow::Result<()> {
    let gold = || judged.iter().flat_map(|question| &question.gold);
    let records = searcher.of_records(&gold().map(|gold| gold.id.clone()).collect::<Vec<_>>())?;
    for gold in judged.iter_mut().flat_map(|question| &mut question.gold) {
        if let Some(id) = records.get(&gold.id) {
            gold.id.clone_from(id);
        }
    }
    Ok(())
}

/// The questions of a set that has judgements of its own, or of topics with qrels beside them.
fn judged(path: &Path, qrels: Option<&Path>) -> anyhow::Result<Vec<JudgedQuestion>> {
    let whole = |id: &str| Gold { id: id.to_owned(), span: None };
    if let Some(qrels) = qrels {
        let (topics, qrels) = (topics::read(path)?, Qrels::read(qrels)?);
        let judged = topics.into_iter().filter_map(|topic| {
            let relevant = qrels.of(&topic.id)?.iter().filter(|(_, grade)| *grade > 0);
            let gold: Vec<Gold> = relevant.map(|(id, _)| whole(id)).collect();
            (!gold.is_empty()).then_some(JudgedQuestion { text: topic.text, scope: topic.scope, gold })
        });
        let judged: Vec<_> = judged.collect();
        if judged.is_empty() {
            return Err(options::usage(format!(
                "--qrels: no topic of {} has a relevant document there",
                path.display()
            )));
        }
        return Ok(judged);
    }
    if path.is_file() || path == Path::new("-") {
        return Err(options::usage(format!("--topics {}: what answers them? name --qrels FILE", path.display())));
    }
    let judged = Questions::read(path)?;
    let judged = judged.iter().map(|question| {
        let spans = question.evidence.iter();
        let spans = spans.map(|at| Gold { id: at.document.clone(), span: Some(at.span.clone()) });
        let gold = if question.evidence.is_empty() {
            question.documents.iter().map(|id| whole(id)).collect()
        } else {
            spans.collect()
        };
        JudgedQuestion { text: question.text.clone(), scope: question.scope.clone(), gold }
    });
    Ok(judged.collect())
}

/// The policy: a line for each label that something was learned of, with what it was learned from.
fn policy(args: &Priors, learned: &LearnedPriors) -> String {
    let entry = |label: &'_ LearnedLabel| {
        let prior = learned::in_policy(label.nats, args.strategy).filter(|&prior| prior != 0.0)?;
        Some(format!("{} = {prior:.3}", quoted(&label.label)))
    };
    let entries: Vec<(String, &LearnedLabel)> =
        learned.labels.iter().filter_map(|label| Some((entry(label)?, label))).collect();
    let (n_questions, n_rare, n_others) = (learned.n_questions, learned.n_rare, learned.labels.len() - entries.len());
    let questions = if args.topics.is_some() { "judged questions" } else { "sentences of the collection" };
    let mut text = format!(
        "# For --strategy {}, from {n_questions} {questions}. Beside each heading: where it stands, how many questions were answered\n\
         # there, and how many a search looked for there. Without a prior: {n_rare} headings in fewer than {} documents, {n_others} others of\n\
         # which the questions say too little.\n\
         [priors]\n",
        args.strategy,
        learned::DOCUMENTS_MIN
    );
    let width = entries.iter().map(|(entry, _)| entry.chars().count()).max().unwrap_or(0);
    for (entry, LearnedLabel { n_documents, n_chunks, hits, expected, .. }) in entries {
        let _ = writeln!(
            text,
            "{entry:width$}  # {n_documents} documents, {n_chunks} chunks; answered {hits:.1}, looked for {expected:.1}"
        );
    }
    text
}

fn answer(args: &Priors, learned: &LearnedPriors) -> Value {
    let label = |label: &LearnedLabel| {
        json!({
            "label": label.label, "n_documents": label.n_documents, "n_chunks": label.n_chunks, "hits": label.hits,
            "expected": label.expected, "nats": label.nats, "prior": learned::in_policy(label.nats, args.strategy),
        })
    };
    json!({
        "version": output::JSON_VERSION, "strategy": args.strategy.to_string(), "n_questions": learned.n_questions,
        "n_rare": learned.n_rare, "labels": learned.labels.iter().map(label).collect::<Vec<_>>(),
    })
}

/// A key of TOML: a string of JSON is one, but for the one sign that only JSON lets stand bare.
fn quoted(label: &str) -> String {
    Value::from(label).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_is_a_key() {
        for label in ["scope of work", "a \"b\" \\ c", "é #1 = [x]", "\u{7f}\u{1f}\u{1}", "it's"] {
            let table: toml::Table = format!("{} = 0.5", quoted(label)).parse().unwrap();
            assert_eq!(table.keys().collect::<Vec<_>>(), [label]);
        }
    }
}
