//! Rankings and contexts of two small sets, held still: whoever changes a constant sees what it moves.
//!
//! Held are figures to four digits, the ten best documents of every question in every mode, the chunks of every
//! context, and likelihoods to three digits. Not held are scores: vectors differ in their last digits from one
//! instruction set to another (CENTO_SIMD), so two documents whose scores differ by less than [`TIE`] may stand in
//! either order.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::support::{Place, data, default_model, root};

/// Ranks that are held.
const HEAD: usize = 10;
/// Difference of scores that arithmetic may make.
const TIE: f64 = 1e-5;

const BUDGETS: [u64; 2] = [200, 800];

/// Questions whose best chunks are held with their likelihoods.
const SEARCHED: usize = 5;

#[test]
fn paragraphs_that_name_each_other_rank_and_answer_as_recorded() {
    check("hotpot200", 250);
}

#[test]
fn code_ranks_and_answers_as_recorded() {
    check("anth_code", 120);
}

/// Holds the first documents of a set, with the questions that they answer, against the recorded file.
#[track_caller]
fn check(set: &str, n_documents: usize) {
    let Some(folder) = data(set) else { return };
    let Some(model) = default_model() else { return };
    let place = Place::new();
    let n_questions = cut(&place, &folder, n_documents);
    assert!(n_questions >= 20, "{n_questions} questions");
    place.ok(&["index", "--model", &model, "set"]);
    let (mut figures, mut rankings, mut contexts) = (String::new(), Vec::new(), String::new());
    for mode in ["lexical", "dense", "hybrid"] {
        rank(&place, mode, &mut figures, &mut rankings);
    }
    assemble(&place, &mut figures, &mut contexts);
    search(&place, &mut contexts);
    let heads: String = rankings.iter().map(Ranking::line).collect();
    let found = figures + &heads + &contexts;
    let recorded_at = root().join(format!("tests/it/golden/{set}.txt"));
    let recorded = std::fs::read_to_string(&recorded_at).unwrap_or_default();
    let of_line: HashMap<String, &Ranking> = rankings.iter().map(|ranking| (ranking.key(), ranking)).collect();
    let is_held = |(was, is): &(&str, &str)| was == is || of_line.values().any(|ranking| ranking.holds(was, is));
    let (n_recorded, n_found) = (recorded.lines().count(), found.lines().count());
    let moved: Vec<_> = recorded.lines().zip(found.lines()).filter(|lines| !is_held(lines)).collect();
    if moved.is_empty() && n_recorded == n_found {
        return;
    }
    let found_at = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{set}.txt"));
    std::fs::write(&found_at, &found).unwrap();
    panic!(
        "{} of {n_recorded} recorded lines differ ({n_found} found), such as {:#?}; if that is meant, {} replaces {}",
        moved.len(),
        &moved[..moved.len().min(5)],
        found_at.display(),
        recorded_at.display()
    );
}

/// Writes the first documents of a set, and the questions whose relevant documents are all among them.
fn cut(place: &Place, set: &Path, n_documents: usize) -> usize {
    let read = |name: &str| std::fs::read_to_string(set.join(name)).unwrap();
    let parsed = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let (corpus, qrels) = (read("corpus.jsonl"), read("qrels/test.tsv"));
    let documents: Vec<&str> = corpus.lines().take(n_documents).collect();
    let known: HashSet<String> =
        documents.iter().map(|line| parsed(line)["_id"].as_str().unwrap().to_owned()).collect();
    let mut answered: HashMap<&str, bool> = HashMap::new();
    for line in qrels.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        *answered.entry(columns[0]).or_insert(true) &= columns[2] == "0" || known.contains(columns[1]);
    }
    answered.retain(|_, is_answered| *is_answered);
    let of_answered = |line: &&str, key: &str| answered.contains_key(parsed(line)[key].as_str().unwrap());
    let judged = |line: &&str| answered.contains_key(line.split('\t').next().unwrap());
    let (header, judgements) = qrels.split_once('\n').unwrap();
    let judgements: Vec<&str> = judgements.lines().filter(judged).collect();
    let queries = read("queries.jsonl");
    let queries: Vec<&str> = queries.lines().filter(|line| of_answered(line, "_id")).collect();
    place.write("set/corpus.jsonl", documents.join("\n"));
    place.write("set/queries.jsonl", queries.join("\n"));
    place.write("set/qrels/test.tsv", format!("{header}\n{}\n", judgements.join("\n")));
    if set.join("facts.jsonl").is_file() {
        let facts = read("facts.jsonl");
        let facts: Vec<&str> = facts.lines().filter(|line| of_answered(line, "query")).collect();
        place.write("set/facts.jsonl", facts.join("\n"));
    }
    queries.len()
}

/// The ranking of a question in one mode.
struct Ranking {
    mode: &'static str,
    topic: String,
    /// Documents and scores, best first.
    hits: Vec<(String, f64)>,
}

impl Ranking {
    fn key(&self) -> String {
        format!("{} {}", self.mode, self.topic)
    }

    fn line(&self) -> String {
        let head = self.hits.iter().take(HEAD).map(|(document, _)| format!(" {document}"));
        format!("{}{}\n", self.key(), head.collect::<String>())
    }

    /// True if the found line is this ranking's, and the recorded one has the same documents but for ties.
    fn holds(&self, recorded: &str, found: &str) -> bool {
        let key = self.key() + " ";
        let (Some(recorded), true) = (recorded.strip_prefix(&key), found.starts_with(&key)) else { return false };
        let score = |document: &str| self.hits.iter().find(|(known, _)| known == document).map(|(_, score)| *score);
        let recorded: Vec<&str> = recorded.split(' ').collect();
        let at_rank = |(document, (_, here)): (&&str, &(String, f64))| {
            score(document).is_some_and(|score| (score - here).abs() < TIE)
        };
        recorded.len() == self.hits.len().min(HEAD) && recorded.iter().zip(&self.hits).all(at_rank)
    }
}

fn rank(place: &Place, mode: &'static str, figures: &mut String, rankings: &mut Vec<Ranking>) {
    place.ok(&["run", "--topics", "set", "--mode", mode, "-o", "run.trec", "--ties", "keep"]);
    let judged = place.json(&["eval", "set", "run.trec", "-m", "nDCG@10", "-m", "R@10", "-m", "R@100"]);
    for measure in ["nDCG@10", "R@10", "R@100"] {
        writeln!(figures, "{mode} {measure} {:.4}", judged[measure].as_f64().unwrap()).unwrap();
    }
    for line in String::from_utf8(place.read("run.trec")).unwrap().lines() {
        let columns: Vec<&str> = line.split(' ').collect();
        let hit = (columns[2].to_owned(), columns[4].parse().unwrap());
        match rankings.last_mut() {
            Some(last) if last.mode == mode && last.topic == columns[0] => last.hits.push(hit),
            _ => rankings.push(Ranking { mode, topic: columns[0].to_owned(), hits: vec![hit] }),
        }
    }
}

fn assemble(place: &Place, figures: &mut String, contexts: &mut String) {
    let budgets = BUDGETS.map(|budget| budget.to_string()).join(",");
    let files = ["-o", "run.trec", "--contexts", "contexts.jsonl"];
    place.ok(&[&["run", "--topics", "set", "--budget", &budgets][..], &files].concat());
    let judged = place.json(&["eval-context", "set", "contexts.jsonl"]);
    for group in judged["groups"].as_array().unwrap() {
        for measure in ["all_gold", "title_recall", "fact_recall", "tokens"] {
            if let Some(value) = group[measure].as_f64() {
                writeln!(figures, "cento {} {measure} {value:.4}", group["budget_tokens"]).unwrap();
            }
        }
    }
    for line in String::from_utf8(place.read("contexts.jsonl")).unwrap().lines() {
        let context: Value = serde_json::from_str(line).unwrap();
        write!(contexts, "cento {} {}", context["budget_tokens"], context["query_id"].as_str().unwrap()).unwrap();
        for citation in context["citations"].as_array().unwrap() {
            let chunks: Vec<&str> =
                citation["chunks"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
            write!(contexts, " {}", chunks.join("+")).unwrap();
        }
        contexts.push('\n');
    }
}

/// The three best chunks of a few questions, and how likely they answer.
fn search(place: &Place, found: &mut String) {
    let queries = String::from_utf8(place.read("set/queries.jsonl")).unwrap();
    for line in queries.lines().take(SEARCHED) {
        let query: Value = serde_json::from_str(line).unwrap();
        let answer = place.json(&["search", query["text"].as_str().unwrap(), "-k", "3"]);
        write!(found, "search {}", query["_id"].as_str().unwrap()).unwrap();
        for hit in answer["hits"].as_array().unwrap() {
            write!(found, " {} {:.3}", hit["id"].as_str().unwrap(), hit["likelihood"].as_f64().unwrap()).unwrap();
        }
        found.push('\n');
    }
}
