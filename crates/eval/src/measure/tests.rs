//! What the measures must hold, by hand with the arithmetic in view.

use super::*;
use crate::error::Error;

/// A ranking as grades, `.` where a document is not judged, and all judged grades; figures to 1e-12.
#[track_caller]
fn check(retrieved: &str, judged: &[i32], expected: &[(&str, f64)]) {
    let retrieved: Vec<_> = retrieved.split_whitespace().map(|grade| grade.parse().ok()).collect();
    let graded = Graded::new(retrieved, judged);
    for (name, expected) in expected {
        let value = name.parse::<Measure>().unwrap().of(&graded);
        assert!((value - expected).abs() < 1e-12, "{name}: {value}, not {expected}");
    }
}

fn log2(x: f64) -> f64 {
    x.log2()
}

#[test]
fn ndcg_discounts_the_grade_by_the_logarithm_of_the_rank() {
    // DCG = 0/1 + 2/log2(3) + 1/log2(4) = 0.5 + 2/log2(3); ideal 3, 2, 1: 3 + 2/log2(3) + 0.5.
    let ideal = 3.0 + 2.0 / log2(3.0) + 0.5;
    let dcg = 2.0 / log2(3.0) + 0.5;
    check(". 2 1", &[1, 2, 3, 0], &[("nDCG", dcg / ideal), ("nDCG@3", dcg / ideal), ("nDCG@100", dcg / ideal)]);
    // The ideal is cut at the same rank: 3 + 2/log2(3).
    check(". 2 1", &[1, 2, 3, 0], &[("nDCG@2", 2.0 / log2(3.0) / (3.0 + 2.0 / log2(3.0))), ("nDCG@1", 0.0)]);
}

#[test]
fn the_exponential_gain_of_grade_3_is_7() {
    // (2^2 - 1) / log2(3) + (2^1 - 1) / log2(4), ideal (2^3 - 1) + 3 / log2(3) + 1 / log2(4).
    let (dcg, ideal) = (3.0 / log2(3.0) + 0.5, 7.0 + 3.0 / log2(3.0) + 0.5);
    check(". 2 1", &[1, 2, 3], &[("nDCG(dcg='exp-log2')@10", dcg / ideal)]);
    // Grades that no float could raise 2 to: the larger is everything.
    check("1 2000", &[2000, 1], &[("nDCG(dcg='exp-log2')", 1.0 / log2(3.0))]);
}

#[test]
fn negative_grades_gain_nothing_and_are_not_relevant() {
    check("-1 1", &[1, -1, -2], &[("nDCG", 1.0 / log2(3.0)), ("P@2", 0.5), ("R@2", 1.0), ("Judged@2", 1.0)]);
    let figures = [("nDCG", 0.0), ("nDCG(dcg='exp-log2')", 0.0), ("AP", 0.0), ("R@1", 0.0)];
    check("-1 0", &[-1, 0], &figures);
}

#[test]
fn average_precision_divides_by_all_relevant_documents_even_when_cut() {
    // Relevant at ranks 1 and 3, of three: (1/1 + 2/3) / 3.
    check("1 0 2 .", &[1, 0, 2, 1], &[("AP", (1.0 + 2.0 / 3.0) / 3.0), ("AP@2", 1.0 / 3.0), ("AP(rel=2)", 1.0 / 3.0)]);
}

#[test]
fn precision_counts_documents_that_were_not_retrieved_recall_counts_those_that_could_be() {
    check(
        "1 .",
        &[1, 1, 0],
        &[("P@1", 1.0), ("P@2", 0.5), ("P@10", 0.1), ("R@1", 0.5), ("R@10", 0.5), ("Judged@10", 0.5)],
    );
    check("1 2 2", &[1, 2, 2, 3], &[("P(rel=2)@3", 2.0 / 3.0), ("R(rel=2)@3", 2.0 / 3.0), ("R(rel=4)@3", 0.0)]);
}

#[test]
fn the_first_relevant_document_decides_reciprocal_rank_and_success() {
    let figures = [
        ("RR", 1.0 / 3.0),
        ("RR@3", 1.0 / 3.0),
        ("RR@2", 0.0),
        ("Success@2", 0.0),
        ("Success@3", 1.0),
        ("RR(rel=2)", 0.25),
    ];
    check(". 0 1 2", &[0, 1, 2], &figures);
}

#[test]
fn an_empty_ranking_is_worth_nothing() {
    let all = ["nDCG", "nDCG@1", "R@1", "P@1", "AP", "RR", "Success@1", "Judged@1", "Judged"];
    check("", &[1], &all.map(|name| (name, 0.0)));
    check(".", &[], &all.map(|name| (name, 0.0)));
}

#[test]
fn names_are_written_back_as_ir_measures_writes_them() {
    for (given, written) in [
        ("ndcg@10", "nDCG@10"),
        (" NDCG ", "nDCG"),
        ("nDCG(dcg=\"exp-log2\")@5", "nDCG(dcg='exp-log2')@5"),
        ("nDCG( dcg='log2' )@5", "nDCG@5"),
        ("r@100", "R@100"),
        ("P(rel=2) @ 10", "P(rel=2)@10"),
        ("p(REL=1)@10", "P@10"),
        ("ap", "AP"),
        ("AP(rel=3)@100", "AP(rel=3)@100"),
        ("RR()", "RR"),
        ("success@1", "Success@1"),
        ("judged", "Judged"),
    ] {
        let measure: Measure = given.parse().unwrap();
        assert_eq!(measure.to_string(), written);
        assert_eq!(written.parse::<Measure>().unwrap(), measure);
    }
}

#[test]
fn a_name_that_is_none_gets_the_nearest_that_is_one() {
    for (given, offered) in [
        ("recall@100", "did you mean R@100?"),
        ("ndgc@10", "did you mean nDCG@10?"),
        ("ndcg_cut_10", "did you mean nDCG@10?"),
        ("MRR@10", "did you mean RR@10?"),
        ("MAP", "did you mean AP?"),
        ("Succes@5", "did you mean Success@5?"),
        ("Precision@5", "did you mean P@5?"),
    ] {
        let told = given.parse::<Measure>().unwrap_err().to_string();
        assert!(told.contains(offered) && told.contains("Judged@10"), "{told}");
    }
    let told = "zzz@10".parse::<Measure>().unwrap_err().to_string();
    assert!(!told.contains("did you mean") && told.contains("nDCG@10, R@100"), "{told}");
}

#[test]
fn a_measure_with_a_wrong_parameter_is_refused() {
    for (given, reason) in [
        ("nDCG@0", "not an integer above 0"),
        ("nDCG@ten", "not an integer above 0"),
        ("nDCG@", "not an integer above 0"),
        ("nDCG@10@5", "not an integer above 0"),
        ("R", "R wants a cutoff, as in R@100"),
        ("P(rel=2)", "wants a cutoff"),
        ("P(rel=0)@5", "not a grade above 0"),
        ("P(rel=x)@5", "not a grade above 0"),
        ("nDCG(rel=2)@5", "no parameter \"rel\", only dcg"),
        ("P(dcg='log2')@5", "no parameter \"dcg\", only rel"),
        ("Judged(rel=2)@5", "nor any other"),
        ("nDCG(dcg='x')@5", "neither"),
        ("P(rel=2@5", "not closed"),
        ("P(2)@5", "not `name=value`"),
    ] {
        let error = given.parse::<Measure>().unwrap_err();
        assert!(matches!(error, Error::Measure { .. }) && error.to_string().contains(reason), "{error}");
    }
}
