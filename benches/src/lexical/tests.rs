//! The steps over a small made-up collection.

use std::fmt::Write as _;

use tempfile::TempDir;

use super::*;
use crate::{Random, WORDS};

/// A collection of `n_documents` of made-up words; the queries are these.
fn collection(n_documents: usize, queries: &[&str]) -> TempDir {
    let mut random = Random(9);
    let mut text = |n_max: usize| {
        let n_words = 1 + random.below(n_max);
        (0..n_words).map(|_| WORDS[random.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
    };
    let (mut corpus, mut topics) = (String::new(), String::new());
    for id in 0..n_documents {
        let document = serde_json::json!({"_id": format!("d{id}"), "title": text(6), "text": text(150)});
        writeln!(corpus, "{document}").unwrap();
    }
    let mut qrels = "query-id\tcorpus-id\tscore\n".to_owned();
    for (id, query) in queries.iter().enumerate() {
        writeln!(topics, "{}", serde_json::json!({"_id": format!("q{id}"), "text": query})).unwrap();
        writeln!(qrels, "q{id}\td{id}\t1").unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("qrels")).unwrap();
    for (name, text) in [("corpus.jsonl", corpus), ("queries.jsonl", topics), ("qrels/test.tsv", qrels)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn set(queries: &[&str]) -> (TempDir, Set) {
    let folder = collection(60, queries);
    let set = Set::read(folder.path()).unwrap();
    (folder, set)
}

/// Scores of every document, in the order of the corpus; 0 where it is not found.
fn scores(set: &Set, ranked: &Ranked, factor: f64) -> Vec<f64> {
    let mut scores = vec![0.0; set.documents.len()];
    for &(document, score) in ranked {
        scores[document] = factor * score;
    }
    scores
}

#[track_caller]
fn assert_equal(set: &Set, a: &[Ranked], b: &[Ranked], factor: f64) {
    for (a, b) in a.iter().zip(b) {
        for (a, b) in scores(set, a, 1.0).into_iter().zip(scores(set, b, factor)) {
            assert!((a - b).abs() <= 1e-5 * a.abs(), "{a} is not {b}");
        }
    }
}

const QUERIES: [&str; 3] = ["tide of the moon", "water rises twice, twice", "sun-and-moon measured"];

#[test]
fn with_tantivys_parameters_and_lengths_the_scores_are_tantivys() {
    let (_folder, set) = set(&QUERIES);
    for pipeline in [Pipeline::Default, Pipeline::EnglishStems, Pipeline::EnglishStopWords] {
        let tantivy = Ranker::Tantivy(Layout::TitleText, pipeline, Reading::AllTerms).rank(&set).unwrap();
        let stock = Bm25 { k1: 1.2, b: 0.75, lengths: Lengths::OneByte };
        let ours = Ranker::Bm25(Analysis::Tantivy(pipeline), stock).rank(&set).unwrap();
        assert_equal(&set, &tantivy, &ours, 2.2);
    }
}

#[test]
fn with_centos_analysis_the_scores_are_centos() {
    let (_folder, set) = set(&QUERIES);
    let ours = Ranker::Bm25(Analysis::Cento, EXACT).rank(&set).unwrap();
    assert_equal(&set, &Ranker::Cento.rank(&set).unwrap(), &ours, 1.0);
}

#[test]
fn the_parser_reads_compounds_minus_signs_and_parentheses_as_syntax() {
    let (_folder, set) = set(&["sun-moon", "water() and the tide", "tide -moon", "the the tide"]);
    let stock = Stock::build(&set, Layout::TitleAndBody, Pipeline::Default).unwrap();
    let Syntax { n_refused, n_cut_short, n_phrases, n_operators, n_repeated } = stock.syntax(&set);
    assert_eq!((n_refused, n_cut_short, n_phrases, n_operators, n_repeated), (1, 1, 1, 1, 1));
}

#[test]
fn a_walk_repeats_itself() {
    let folder = collection(60, &QUERIES);
    let walk = || serde_json::to_string(&super::walk("made-up", folder.path()).unwrap()).unwrap();
    assert_eq!(walk(), walk());
}
