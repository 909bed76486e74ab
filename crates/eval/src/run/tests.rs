//! What reading and writing runs must hold: the order of trec_eval, every format, every fault.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::error::{Error, Result};
use crate::lines::Lines;

fn read(text: &str) -> Result<Vec<Ranking>> {
    Rankings::read(Lines::new(std::io::Cursor::new(text.to_owned()), Path::new("run")))?.collect()
}

/// Reads a run and gives `query: document document …` for each ranking.
#[track_caller]
fn order(text: &str) -> Vec<String> {
    let rankings = read(text).unwrap();
    let line = |ranking: &Ranking| {
        let documents: Vec<_> = ranking.hits.iter().map(|hit| hit.document.as_str()).collect();
        format!("{}: {}", ranking.query, documents.join(" "))
    };
    rankings.iter().map(line).collect()
}

#[track_caller]
fn fails(text: &str, parts: &[&str]) {
    let told = read(text).unwrap_err().to_string();
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
}

#[test]
fn the_order_is_by_score_whatever_the_rank_says() {
    assert_eq!(order("q Q0 a 1 0.5 t\nq Q0 b 2 0.7 t\n\nr\tQ0  c 0 -1e3 t\r\nr Q0 d 9 -1 t"), ["q: b a", "r: d c"]);
}

#[test]
fn scores_equal_as_32_bit_floats_are_ordered_by_descending_id() {
    assert_eq!(order("q Q0 d9 1 1.00000001 t\nq Q0 d10 2 1 t\nq Q0 é 3 1 t"), ["q: é d9 d10"]);
    assert_eq!(order("q Q0 a 1 0.0 t\nq Q0 b 2 -0.0 t"), ["q: b a"]);
    assert_eq!(order("q Q0 a 1 2e39 t\nq Q0 b 2 1e39 t"), ["q: b a"]);
}

#[test]
fn the_ranks_of_ms_marco_are_an_order() {
    assert_eq!(order("7\ta\t2\n7\tb\t1\n8\ta\t1\n"), ["7: b a", "8: a"]);
    fails("7\ta\t1\n7\tb\t-1", &["line 2, column 5", "a rank", "\"-1\""]);
}

#[test]
fn predictions_of_mteb_are_a_run() {
    let json = "\n{\"mteb_model_meta\": {\"model_name\": \"m\", \"revision\": null, \"n\": [1]},\n \"en\": {\"test\": {\"q\": {\"a b\": 1, \"c\": 2.5}, \"r\": {}}}}\n";
    assert_eq!(order(json), ["q: c a%20b", "r: "]);
    assert_eq!(order("{\"q\": {\"a\": -1, \"c\": 2.5}}"), ["q: c a"]);
    fails("{\"en\": {\"test\": {\"q\": {\"a\": 1}}, \"dev\": {\"q\": {\"a\": 1}}}}", &["en/test, en/dev", "keep one"]);
    fails("{\"q\": {\"a\": 1,\n\"a\": 2}}", &["line 2", "\"a\"", "twice"]);
    fails("{\"q\": {\"a\": \"1\"}}", &["numbers as scores", "\"a\"", "\"q\""]);
    fails("{\"q\": 1}", &["no object for \"q\""]);
    fails("{\"q\":\n {\"é\": NaN}}", &["line 2, column 8"]);
    fails("{\"mteb_model_meta\": {}}", &["no results"]);
    fails("{} x", &["trailing characters"]);
}

#[test]
fn an_error_names_the_line_and_the_column_in_characters() {
    fails("q Q0 d 1 0.5 t\nq Q0 é 2 nan t", &["run, line 2, column 10", "finite score", "\"nan\""]);
    fails("q Q0 d 1 1e999 t", &["line 1, column 10"]);
    fails("q Q0 d 1 0.5 t\n\nq Q0 d 0.5 t", &["line 3, column 1", "6 columns", "found 5"]);
    fails("q Q0 d 1 0.5 t x", &["6 columns", "found 7"]);
    fails("q\td\t1\nq d", &["3 columns", "found 2"]);
    fails(" \n", &["no results"]);
}

#[test]
fn a_document_is_there_once_in_a_query() {
    fails(
        "q Q0 d 1 3 t\n\nq Q0 e 1 2 t\nq Q0 d 3 1 t\nr Q0 d 1 1 t",
        &["line 4", "document \"d\" of query \"q\"", "twice"],
    );
    assert_eq!(order("q Q0 d 1 3 t\nr Q0 d 1 1 t").len(), 2);
}

#[test]
fn a_query_whose_results_do_not_stand_together_is_refused_with_the_way_out() {
    fails("q Q0 a 1 3 t\nr Q0 a 1 3 t\nq Q0 b 1 3 t", &["line 3", "\"q\"", "sort -s -k1,1 run"]);
}

#[test]
fn rankings_are_read_as_they_are_asked_for_and_nothing_follows_an_error() {
    let text = "q Q0 a 1 3 t\nr Q0 a 1 3 t\nwrong\ns Q0 a 1 3 t";
    let mut rankings = Rankings::read(Lines::new(text.as_bytes(), Path::new("run"))).unwrap();
    assert_eq!(rankings.next().unwrap().unwrap().query, "q");
    assert!(matches!(rankings.next(), Some(Err(Error::Malformed { line: 3, .. }))));
    assert!(rankings.next().is_none());
}

fn written(scores: &[f64], ties: Ties) -> Vec<f32> {
    let ranking = scores.iter().enumerate().map(|(n, score)| (format!("d{n}"), *score));
    let mut out = Vec::new();
    write(&mut out, "q", ranking, "t", ties).unwrap();
    String::from_utf8(out).unwrap().lines().map(|line| line.split(' ').nth(4).unwrap().parse().unwrap()).collect()
}

#[test]
fn written_scores_strictly_decrease_as_32_bit_floats_unless_ties_are_kept() {
    for scores in
        [vec![0.5; 200], vec![1.0, 1.0 - 1e-12, 0.0, 0.0, 0.0], vec![0.1, 0.1, -0.0, -3.5, -3.5], vec![1e300; 3]]
    {
        let written = written(&scores, Ties::Break);
        assert!(written.windows(2).all(|pair| pair[0] > pair[1]), "{written:?}");
    }
    assert_eq!(written(&[0.5, 0.5], Ties::Keep), [0.5, 0.5]);
}

#[test]
fn what_a_run_file_cannot_hold_is_an_error() {
    let told = |query: &str, document: &str, score| {
        let hits = [("first", f64::from(f32::MIN)), (document, score)];
        write(&mut Vec::new(), query, hits, "t", Ties::Break).unwrap_err().to_string()
    };
    assert!(told("q", "d", f64::NAN).contains("NaN is not finite"));
    assert!(told("q", "d", -1e300).contains("no 32-bit float is left"));
    assert!(told("q", "", 1.0).contains("empty"));
    assert!(told("", "d", 1.0).contains("empty"));
}

#[test]
fn a_document_id_is_one_column() {
    assert_eq!(column("docs/my file.md"), "docs/my%20file.md");
    assert_eq!((column("a%20b"), column("a b")), ("a%2520b".into(), "a%20b".into()), "no two ids are one");
    assert_eq!((column("100%"), column("5 % b%2"), column("%zz")), ("100%".into(), "5%20%%20b%2".into(), "%zz".into()));
    assert_eq!(column("a\u{a0}b"), "a%C2%A0b");
    assert_eq!(column("100%"), "100%");
    let mut out = Vec::new();
    write(&mut out, "q", [("a b", 1.5)], "my tag", Ties::Break).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "q Q0 a%20b 1 1.5 my%20tag\n");
}

fn scores() -> impl Strategy<Value = Vec<f64>> {
    let any = prop_oneof![
        -1.0..1.0,
        Just(0.5),
        Just(0.0),
        Just(-0.0),
        Just(1e-46),
        (-20..20).prop_map(f64::from),
        -1e30..1e30
    ];
    prop::collection::vec(any, 1..40)
}

/// Reads back one written ranking.
fn again(ranking: &[(String, f64)], ties: Ties) -> Vec<String> {
    let mut out = Vec::new();
    write(&mut out, "q", ranking.iter().map(|(document, score)| (document, *score)), "t", ties).unwrap();
    let mut rankings = read(&String::from_utf8(out).unwrap()).unwrap();
    rankings.remove(0).hits.into_iter().map(|hit| hit.document).collect()
}

proptest! {
    #[test]
    fn a_written_ranking_is_read_back_in_its_order(mut scores in scores(), multiplier in 1_usize..1000) {
        scores.sort_by(|a, b| b.total_cmp(a));
        let id = |n: usize| format!("d{}", n * multiplier % 1009);
        let ranking: Vec<_> = scores.into_iter().enumerate().map(|(n, score)| (id(n), score)).collect();
        let documents: Vec<_> = ranking.iter().map(|(document, _)| document.clone()).collect();
        prop_assert_eq!(again(&ranking, Ties::Break), documents);
    }

    #[test]
    fn kept_ties_are_read_back_in_their_order_when_that_is_trec_evals(scores in scores(), multiplier in 1_usize..1000) {
        let hits = scores.into_iter().enumerate().map(|(n, score)| Hit::new(format!("d{}", n * multiplier % 1009), score));
        let hits = Ranking::new("q", hits.collect()).hits;
        let ranking: Vec<_> = hits.into_iter().map(|hit| (hit.document, hit.score)).collect();
        let documents: Vec<_> = ranking.iter().map(|(document, _)| document.clone()).collect();
        prop_assert_eq!(again(&ranking, Ties::Keep), documents);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[qr{}\":, \t\n0-9.ea-]{0,60}") {
        let _ = read(&text);
    }
}
