//! Figures against those of pytrec_eval and ir_measures, query by query, through files.
//!
//! `tests/data` is made by `scripts/make-eval-goldens`; its first lines say with which versions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use cento_eval::evaluate::{Evaluation, Missing, Options, evaluate};
use cento_eval::measure::Measure;
use cento_eval::qrels::Qrels;
use cento_eval::run::Rankings;
use serde::Deserialize;

#[derive(Deserialize)]
struct Header {
    measures: Vec<String>,
    tolerances: Vec<f64>,
}

type ByQuery<T> = BTreeMap<String, T>;

#[derive(Deserialize)]
struct Case(ByQuery<BTreeMap<String, i32>>, ByQuery<BTreeMap<String, f64>>, ByQuery<Vec<f64>>);

#[test]
fn figures_are_those_of_pytrec_eval_on_ties_grades_and_gaps() {
    assert_eq!(check(include_str!("data/pytrec_eval.jsonl")), 1_000);
}

#[test]
fn figures_are_those_of_ir_measures_where_nothing_is_tied() {
    assert_eq!(check(include_str!("data/ir_measures.jsonl")), 150);
}

/// Compares every figure of every case, and gives the number of cases.
fn check(goldens: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = goldens.lines();
    let header: Header = serde_json::from_str(lines.next().unwrap()).unwrap();
    let measures: Vec<Measure> = header.measures.iter().map(|name| name.parse().unwrap()).collect();
    let cases: Vec<Case> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    for (n, case) in cases.iter().enumerate() {
        let evaluation = evaluated(folder.path(), case, &measures);
        let Case(qrels, _, expected) = case;
        assert_eq!(evaluation.queries.len(), qrels.len(), "case {n}");
        assert_eq!(evaluation.n_missing, qrels.len() - expected.len(), "case {n}");
        for (at, query) in evaluation.queries.iter().enumerate() {
            for (m, measure) in measures.iter().enumerate() {
                let value = evaluation.values[m][at];
                let golden = expected.get(query).map_or(0.0, |values| values[m]);
                let off = (value - golden).abs();
                assert!(off <= header.tolerances[m], "case {n}, query {query}, {measure}: {value}, not {golden}");
            }
        }
    }
    cases.len()
}

/// Writes the case as a TREC run and as JSON, both of which have to give the same.
fn evaluated(folder: &Path, Case(qrels, run, _): &Case, measures: &[Measure]) -> Evaluation {
    let (mut judgements, mut results) = (String::new(), String::new());
    for (query, documents) in qrels {
        for (document, grade) in documents {
            writeln!(judgements, "{query} 0 {document} {grade}").unwrap();
        }
    }
    for (query, documents) in run {
        for (document, score) in documents {
            writeln!(results, "{query} Q0 {document} 0 {score} t").unwrap();
        }
    }
    let at = |name: &str| folder.join(name);
    fs_err::write(at("qrels"), judgements).unwrap();
    fs_err::write(at("run.trec"), results).unwrap();
    fs_err::write(at("run.json"), serde_json::to_string(run).unwrap()).unwrap();
    let qrels = Qrels::read(&at("qrels")).unwrap();
    let options = Options { missing: Missing::Zero, ..Options::default() };
    let figures = |run: &str| evaluate(&qrels, Rankings::open(&at(run)).unwrap(), measures, options).unwrap();
    let evaluation = figures("run.trec");
    assert_eq!(evaluation, figures("run.json"));
    evaluation
}
