//! What an evaluation must hold: missing queries, self hits, judgements of another set.

use super::*;
use crate::run::Hit;

/// Judgements and a run as `query document number` lines.
fn parts(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        (fields[0], fields[1], fields[2])
    })
}

fn qrels(text: &str) -> Qrels {
    Qrels::from_grades(parts(text).map(|(query, document, grade)| (query, document, grade.parse().unwrap())))
}

fn run(text: &str) -> Vec<Ranking> {
    let mut rankings: Vec<Ranking> = Vec::new();
    for (query, document, score) in parts(text) {
        let hit = Hit::new(document, score.parse().unwrap());
        match rankings.last_mut().filter(|ranking| ranking.query == query) {
            Some(ranking) => ranking.hits.push(hit),
            None => rankings.push(Ranking::new(query, vec![hit])),
        }
    }
    rankings
}

fn measured(judgements: &str, results: &str, measures: &[&str], options: Options) -> Result<Evaluation> {
    let measures: Vec<Measure> = measures.iter().map(|name| name.parse().unwrap()).collect();
    evaluate(&qrels(judgements), run(results).into_iter().map(Ok), &measures, options)
}

#[test]
fn judged_queries_without_results_count_as_zero_unless_they_are_skipped() {
    let (judgements, results) = ("q2 a 1\nq1 a 1\nq3 b 1", "q1 a 1\nq9 a 1\nq2 b 2\nq2 a 1");
    let zero = measured(judgements, results, &["RR", "P@1"], Options::default()).unwrap();
    assert_eq!(zero.queries, ["q1", "q2", "q3"]);
    assert_eq!(zero.values, [[1.0, 0.5, 0.0], [1.0, 0.0, 0.0]]);
    assert_eq!((zero.mean(0), zero.mean(1)), (0.5, 1.0 / 3.0));
    assert_eq!((zero.n_missing, zero.n_unjudged), (1, 1));
    let skip =
        measured(judgements, results, &["RR"], Options { missing: Missing::Skip, ..Options::default() }).unwrap();
    assert_eq!((skip.queries, skip.values[0].as_slice()), (vec!["q1".to_owned(), "q2".to_owned()], &[1.0, 0.5][..]));
    assert_eq!((skip.n_missing, skip.n_unjudged), (1, 1));
}

#[test]
fn the_query_itself_is_no_result_when_self_hits_are_removed() {
    let (judgements, results) = ("q1 a 1\nq2 a 1", "q1 q1 9\nq1 a 1\nq2 q2 9");
    let figures = |self_hits| {
        let options = Options { self_hits, ..Options::default() };
        let evaluation = measured(judgements, results, &["RR"], options).unwrap();
        (evaluation.values[0].clone(), evaluation.n_missing)
    };
    assert_eq!(figures(SelfHits::Keep), (vec![0.5, 0.0], 0));
    assert_eq!(figures(SelfHits::Remove), (vec![1.0, 0.0], 1));
}

#[test]
fn hits_are_ordered_before_they_are_measured() {
    let evaluation = measured("q b 1", "q a 1\nq b 1\nq c 0.5", &["RR"], Options::default()).unwrap();
    assert_eq!(evaluation.mean(0), 1.0);
}

#[test]
fn a_run_of_other_queries_or_of_another_corpus_is_refused_by_example() {
    let told =
        |judgements, results| measured(judgements, results, &["RR"], Options::default()).unwrap_err().to_string();
    let queries = told("q1 a 1", "7 a 1");
    assert!(
        queries.contains("no query in common") && queries.contains("\"7\"") && queries.contains("\"q1\""),
        "{queries}"
    );
    let documents = told("q1 a 1\nq2 b 1", "q1 x.md 1\nq2 y.md 1");
    assert!(documents.contains("no document in common") && documents.contains("\"x.md\""), "{documents}");
    assert!(told("q1 a 1", "").contains("no results in the run"));
    // Judged for another query: the corpus is the same.
    assert!(measured("q1 a 1\nq2 b 1", "q1 b 1", &["RR"], Options::default()).is_ok());
}

#[test]
fn nothing_left_to_average_over_is_an_error() {
    let options = Options { missing: Missing::Skip, self_hits: SelfHits::Remove };
    let told = measured("q1 q1 1", "q1 q1 1", &["RR"], options).unwrap_err().to_string();
    assert!(told.contains("no query with results"), "{told}");
}

#[test]
fn a_query_is_ranked_once() {
    for results in ["q a 1\nx a 1\nq b 1", "q a 1\nx a 1\nq b 1\nx b 1"] {
        assert!(matches!(measured("q a 1", results, &["RR"], Options::default()), Err(Error::RankedTwice { .. })));
    }
    let told = measured("q a 1", "q a 1\nx a 1\ny a 1\nx b 1", &["RR"], Options::default()).unwrap_err();
    assert_eq!(told.to_string(), "query \"x\" is ranked twice");
}

#[test]
fn an_error_of_the_run_ends_the_evaluation() {
    let broken = [Err(Error::Nothing { what: "luck" })];
    let told = evaluate(&qrels("q a 1"), broken.into_iter(), &[], Options::default()).unwrap_err();
    assert_eq!(told.to_string(), "no luck to evaluate");
}
