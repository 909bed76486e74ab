//! eval, compare and fuse: figures by hand, gates, file formats, and orders that agree with those of trec_eval.

use serde_json::{Value, json};

use crate::support::{Place, tiny_model};

/// Three judged queries; `q1` has three relevant documents, of grades 2, 1 and 1.
const QRELS: &str = "q1 0 a 2\nq1 0 b 1\nq1 0 c 0\nq1 0 e 1\nq2 0 a 1\nq3 0 b 1\n";

/// trec_eval ranks `q1` as c x b a (x and b tie, the larger id first) and `q2` as b a (one score as 32-bit floats, the
/// larger id first), whatever the rank column says. `q3` has no results.
const RUN: &str =
    "q1 Q0 a 1 1.0 t\nq1 Q0 c 2 3.0 t\nq1 Q0 b 3 2.0 t\nq1 Q0 x 4 2.0 t\nq2 Q0 a 1 0.50000001 t\nq2 Q0 b 2 0.5 t\n";

/// Reading a figure back from JSON may be off by a unit in the last place.
const READ_BACK: f64 = 1e-12;

fn judged() -> Place {
    let place = Place::new();
    place.write("qrels", QRELS);
    place.write("run", RUN);
    place
}

#[track_caller]
fn close(figure: &Value, expected: f64) {
    let actual = figure.as_f64().unwrap_or_else(|| panic!("{figure} is no number, expected {expected}"));
    assert!((actual - expected).abs() < READ_BACK, "{actual}, expected {expected}");
}

/// The documents of a query, in the order of the lines.
fn documents<'r>(run: &'r str, query: &str) -> Vec<&'r str> {
    let columns = run.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    columns.filter(|columns| columns[0] == query).map(|columns| columns[2]).collect()
}

#[test]
fn figures_are_those_of_the_arithmetic_in_trec_evals_order() {
    let place = judged();
    let mut arguments = vec!["eval", "qrels", "run", "--per-query"];
    for measure in ["nDCG@10", "R@3", "P@2", "AP", "RR@10", "Success@1", "Success@3", "Judged@4"] {
        arguments.extend(["-m", measure]);
    }
    let answer = place.json(&arguments);
    let log2 = |x: f64| x.log2();
    let (q1, q2) = (&answer["queries"]["q1"], &answer["queries"]["q2"]);
    // q1: grades 0, none, 1, 2 at ranks 1 to 4; ideally 2, 1, 1.
    close(&q1["nDCG@10"], (1.0 / log2(4.0) + 2.0 / log2(5.0)) / (2.0 / log2(2.0) + 1.0 / log2(3.0) + 1.0 / log2(4.0)));
    close(&q1["R@3"], 1.0 / 3.0);
    close(&q1["P@2"], 0.0);
    close(&q1["AP"], (1.0 / 3.0 + 2.0 / 4.0) / 3.0);
    close(&q1["RR@10"], 1.0 / 3.0);
    close(&q1["Success@1"], 0.0);
    close(&q1["Success@3"], 1.0);
    close(&q1["Judged@4"], 3.0 / 4.0);
    // q2: none, then grade 1 at rank 2; two results are all there are.
    close(&q2["nDCG@10"], 1.0 / log2(3.0));
    close(&q2["R@3"], 1.0);
    close(&q2["P@2"], 1.0 / 2.0);
    close(&q2["AP"], 1.0 / 2.0);
    close(&q2["RR@10"], 1.0 / 2.0);
    close(&q2["Judged@4"], 1.0 / 2.0);
    // The mean is over three queries: q3 counts as 0.
    close(&answer["AP"], ((1.0 / 3.0 + 2.0 / 4.0) / 3.0 + 1.0 / 2.0 + 0.0) / 3.0);
    close(&answer["P@2"], (0.0 + 1.0 / 2.0 + 0.0) / 3.0);
    close(&answer["Judged@4"], (3.0 / 4.0 + 1.0 / 2.0 + 0.0) / 3.0);
}

#[test]
fn one_run_has_its_figures_at_the_top_and_several_have_theirs_under_runs() {
    let place = judged();
    place.write("other", "q3 Q0 b 1 1.0 t\n");
    let one = place.json(&["eval", "qrels", "run", "-m", "RR@10"]);
    close(&one["RR@10"], (1.0 / 3.0 + 1.0 / 2.0) / 3.0);
    assert_eq!((&one["run"], &one["n_queries"], &one["n_missing"]), (&json!("run"), &json!(3), &json!(1)));
    let two = place.json(&["eval", "qrels", "run", "other", "-m", "RR@10"]);
    assert!(two["RR@10"].is_null(), "{two}");
    assert_eq!(two["runs"][0]["RR@10"], one["RR@10"]);
    assert_eq!((&two["runs"][1]["run"], &two["runs"][1]["n_missing"]), (&json!("other"), &json!(2)));
    close(&two["runs"][1]["RR@10"], 1.0 / 3.0);
}

#[test]
fn a_judged_query_without_results_counts_as_0_unless_told_otherwise() {
    let place = judged();
    let complete = place.ok(&["eval", "qrels", "run", "-m", "RR@10"]);
    assert!(complete.out.contains("0.2778"), "{complete:?}"); // (1/3 + 1/2 + 0) / 3
    assert!(complete.err.contains("3 queries, 1 without results count as 0"), "{complete:?}");
    let retrieved = place.ok(&["eval", "qrels", "run", "-m", "RR@10", "--retrieved-only"]);
    assert!(retrieved.out.contains("0.4167"), "{retrieved:?}"); // (1/3 + 1/2) / 2
    assert!(retrieved.err.contains("2 queries, 1 more without results are left out"), "{retrieved:?}");
    let answer = place.json(&["eval", "qrels", "run", "-m", "RR@10", "--retrieved-only", "--per-query"]);
    assert_eq!((&answer["n_queries"], answer["queries"].as_object().unwrap().len()), (&json!(2), 2));
    assert_eq!(place.ok(&["eval", "qrels", "run", "--quiet"]).err, "");
    place.write("run", format!("{RUN}q9 Q0 a 1 1.0 t\n"));
    let unjudged = place.ok(&["eval", "qrels", "run"]);
    assert!(unjudged.err.contains("not judged and left out: 1 query of the run"), "{unjudged:?}");
}

#[test]
fn every_query_is_shown_when_asked_for() {
    let place = judged();
    let ran = place.ok(&["eval", "qrels", "run", "-m", "RR@10", "--per-query"]);
    for (query, figure) in [("q1", "0.3333"), ("q2", "0.5000"), ("q3", "0.0000")] {
        let is_row = |line: &&str| line.split_whitespace().eq(["run", query, figure]);
        assert!(ran.out.lines().any(|line| is_row(&line)), "no {query} {figure} in {ran:?}");
    }
}

#[test]
fn a_document_that_is_the_query_is_no_result_when_told() {
    let place = Place::new();
    place.write("qrels", "a 0 b 1\n");
    place.write("run", "a Q0 a 1 2.0 t\na Q0 b 2 1.0 t\n");
    close(&place.json(&["eval", "qrels", "run"])["RR@10"], 1.0 / 2.0);
    close(&place.json(&["eval", "qrels", "run", "--remove-query"])["RR@10"], 1.0);
}

#[test]
fn a_minimum_that_a_run_does_not_reach_fails_the_command() {
    let place = judged();
    place.write("other", "q3 Q0 b 1 1.0 t\n");
    let passed = place.ok(&["eval", "qrels", "run", "-m", "AP", "--min", "RR@10=.27"]);
    assert!(passed.out.contains("passed: run RR@10 0.2778, at least 0.2700"), "{passed:?}");
    let failed = place.run(&["eval", "qrels", "run", "other", "--min", "RR@10=.3"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.out.contains("FAILED: run RR@10 0.2778, at least 0.3000"), "{failed:?}");
    assert!(failed.out.contains("passed: other RR@10 0.3333"), "{failed:?}");
    let json = place.run(&["eval", "qrels", "run", "--min", "RR@10=.3", "--json"]);
    assert_eq!(json.code, 1, "{json:?}");
    let answer: Value = serde_json::from_str(&json.out).unwrap();
    let check = &answer["checks"][0];
    assert_eq!((&check["measure"], &check["passed"]), (&json!("RR@10"), &json!(false)));
    place.run(&["eval", "qrels", "run", "--min", "RR@10"]).fails(2, &["--min", "MEASURE=NUMBER"]);
}

#[test]
fn a_regression_beyond_the_tolerance_fails_the_command() {
    let place = judged();
    place.write("base.json", place.ok(&["eval", "qrels", "run", "-m", "RR@10", "--json"]).out);
    place.write(
        "worse",
        "q1 Q0 c 1 3.0 t\nq1 Q0 x 2 2.0 t\nq1 Q0 y 3 1.5 t\nq1 Q0 b 4 1.0 t\nq2 Q0 b 1 2 t\nq2 Q0 a 2 1 t\n",
    );
    let eval = |run: &str, more: &[&str]| {
        place.run(&[&["eval", "qrels", run, "-m", "RR@10", "--baseline", "base.json"], more].concat())
    };
    let shown = eval("worse", &[]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(shown.out.contains("-0.0278"), "{shown:?}"); // (1/4 - 1/3) / 3
    assert_eq!(eval("run", &["--fail-on-regression"]).code, 0);
    let failed = eval("worse", &["--fail-on-regression"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.out.contains("FAILED: worse RR@10 0.2500, at least 0.2773 (baseline)"), "{failed:?}");
    assert_eq!(eval("worse", &["--fail-on-regression", "--tolerance", "0.028"]).code, 0);
    place
        .run(&["eval", "qrels", "run", "-m", "AP", "--baseline", "base.json"])
        .fails(2, &["base.json", "AP", "cento eval"]);
}

#[test]
fn every_format_of_a_run_and_of_judgements_gives_the_same_figures() {
    let place = judged();
    let grades = [("q1", "a", 2), ("q1", "b", 1), ("q1", "c", 0), ("q1", "e", 1), ("q2", "a", 1), ("q3", "b", 1)];
    let rows = grades.iter().map(|(query, document, grade)| format!("{query}\t{document}\t{grade}\n"));
    place.write("beir/qrels/test.tsv", format!("query-id\tcorpus-id\tscore\n{}", rows.collect::<String>()));
    place.write("run.msmarco", "q1\tc\t1\nq1\tx\t2\nq1\tb\t3\nq1\ta\t4\nq2\tb\t1\nq2\ta\t2\n");
    let queries = json!({"q1": {"a": 1.0, "b": 2.0, "c": 3.0, "x": 2.0}, "q2": {"a": 0.50000001, "b": 0.5}});
    place.write("run.json", queries.to_string());
    place.write("run.mteb", json!({"mteb_model_meta": {"name": "m"}, "default": {"test": queries}}).to_string());
    let figures = |qrels: &str, run: &str| place.json(&["eval", qrels, run, "--per-query"])["queries"].clone();
    let expected = figures("qrels", "run");
    for run in ["run", "run.msmarco", "run.json", "run.mteb"] {
        for qrels in ["qrels", "beir", "beir/qrels", "beir/qrels/test.tsv"] {
            assert_eq!(figures(qrels, run), expected, "{qrels} {run}");
        }
    }
    let stdin = std::fs::File::open(place.path("run.mteb")).unwrap();
    let output = place.command(&["eval", "qrels", "-", "--per-query", "--json"]).stdin(stdin).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["queries"], expected, "stdin");
}

#[test]
fn a_run_sorted_by_score_and_id_is_in_the_order_of_the_file() {
    let place = Place::new();
    // Four documents of one text: every arm gives them one score.
    for name in ["b", "d", "a", "c"] {
        place.write(&format!("notes/{name}.txt"), "The moon pulls the sea.\n");
    }
    place.write("notes/e.txt", "The moon and the tide.\n");
    place.index(&["notes", "--header", "none"]);
    place.write("topics.tsv", "1\tmoon\n2\tthe sea\n");
    for mode in ["lexical", "dense", "hybrid"] {
        for ties in ["break", "keep"] {
            let run = place.ok(&["run", "--topics", "topics.tsv", "--mode", mode, "--ties", ties]).out;
            let mut lines: Vec<Vec<&str>> = run.lines().map(|line| line.split(' ').collect()).collect();
            let written = lines.clone();
            assert!(lines.len() > 8, "{mode}: {run}");
            let score = |line: &[&str]| line[4].parse::<f32>().unwrap();
            lines.sort_by(|a, b| a[0].cmp(b[0]).then(score(b).total_cmp(&score(a))).then(b[2].cmp(a[2])));
            assert_eq!(lines, written, "{mode} {ties}");
            let n_tied = written.windows(2).filter(|pair| pair[0][0] == pair[1][0] && pair[0][4] == pair[1][4]).count();
            assert_eq!(n_tied > 0, ties == "keep", "{mode} {ties}: {run}");
        }
    }
}

#[test]
fn an_id_with_blanks_is_judged_under_its_own_name() {
    let place = Place::new();
    place.write("my notes/high tide.md", "The moon pulls the sea.\n");
    place.write("my notes/bread.md", "Bread is flour and water.\n");
    place.index(&["my notes"]);
    place.write("topics.tsv", "1\tmoon\n");
    place.ok(&["run", "--topics", "topics.tsv", "-o", "run"]);
    let run = String::from_utf8(place.read("run")).unwrap();
    assert_eq!(documents(&run, "1")[0], "my%20notes/high%20tide.md");
    place.write("test.tsv", "query-id\tcorpus-id\tscore\n1\tmy notes/high tide.md\t1\n");
    let answer = place.json(&["eval", "test.tsv", "run", "-m", "RR@10", "-m", "Judged@1"]);
    assert_eq!((&answer["RR@10"], &answer["Judged@1"]), (&json!(1.0), &json!(1.0)));
}

#[test]
fn a_run_compared_with_itself_does_not_differ() {
    let place = judged();
    let answer = place.json(&["compare", "run", "run", "--qrels", "qrels"]);
    let comparisons = answer["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 5, "a row for every measure: {answer}");
    for row in comparisons {
        for name in ["difference", "low", "high", "t"] {
            assert_eq!(row[name], 0.0, "{name}: {row}");
        }
        assert_eq!((&row["p_bootstrap"], &row["p_t"]), (&json!(1.0), &json!(1.0)), "{row}");
        assert_eq!((&row["wins"], &row["ties"], &row["losses"]), (&json!(0), &json!(3), &json!(0)), "{row}");
    }
}

/// Two runs of three queries with reciprocal ranks 1, 1/2, 1/2 and 1/2, 1, 1.
fn two_runs() -> Place {
    let place = Place::new();
    place.write("qrels", "1 0 a 1\n2 0 a 1\n3 0 a 1\n");
    let run = |ranks: [usize; 3]| {
        let line = |(query, rank): (usize, usize)| match rank {
            1 => format!("{0} Q0 a 1 2 t\n{0} Q0 b 2 1 t\n", query + 1),
            _ => format!("{0} Q0 b 1 2 t\n{0} Q0 a 2 1 t\n", query + 1),
        };
        ranks.into_iter().enumerate().map(line).collect::<String>()
    };
    place.write("a", run([1, 2, 2]));
    place.write("b", run([2, 1, 1]));
    place
}

#[test]
fn a_comparison_of_three_queries_is_that_of_the_textbook() {
    let place = two_runs();
    let arguments = ["compare", "a", "b", "--qrels", "qrels", "-m", "RR@10", "--per-query"];
    let answer = place.json(&arguments);
    let row = &answer["comparisons"][0];
    // Differences -1/2, 1/2, 1/2: mean 1/6, standard deviation sqrt(1/3); t = d sqrt(3), p = 1 - t / sqrt(t² + 2) for 2 degrees.
    close(&row["mean_a"], 2.0 / 3.0);
    close(&row["mean_b"], 5.0 / 6.0);
    close(&row["difference"], 1.0 / 6.0);
    close(&row["cohens_d"], (1.0 / 6.0) / (1.0_f64 / 3.0).sqrt());
    close(&row["t"], 0.5);
    close(&row["p_t"], 2.0 / 3.0);
    assert_eq!((&row["wins"], &row["ties"], &row["losses"]), (&json!(2), &json!(0), &json!(1)));
    // Of the 27 resamples one has mean -1/2, eight have 1/2; 15 are at least 1/6 away from 1/6.
    close(&row["low"], -0.5);
    close(&row["high"], 0.5);
    let p = row["p_bootstrap"].as_f64().unwrap();
    assert!((p - 15.0 / 27.0).abs() < 0.02, "{p}");
    assert_eq!((&row["measure"], &row["n"], &row["n_unpaired"]), (&json!("RR@10"), &json!(3), &json!(0)));
    assert_eq!(row["queries"].as_array().unwrap().len(), 3);
    assert_eq!((&answer["a"], &row["b"]), (&json!("a"), &json!("b")));
    assert_eq!((&answer["resamples"], &answer["confidence"]), (&json!(10_000), &json!(0.95)));
    let again = |more: &[&str]| place.json(&[&arguments[..], more].concat());
    assert_eq!(again(&[]), answer);
    assert_eq!(again(&["--threads", "1"]), answer);
    let seeded = again(&["--seed", "1"]);
    assert_ne!(seeded["comparisons"][0]["p_bootstrap"], row["p_bootstrap"]);
    assert_eq!(seeded["comparisons"][0]["p_t"], row["p_t"]);
}

#[test]
fn answers_of_eval_compare_as_their_runs_do() {
    let place = two_runs();
    for run in ["a", "b"] {
        place.write(
            &format!("{run}.json"),
            place.ok(&["eval", "qrels", run, "-m", "RR@10", "-m", "AP", "--per-query", "--json"]).out,
        );
    }
    let of_runs = place.json(&["compare", "a", "b", "b", "--qrels", "qrels", "-m", "RR@10", "-m", "AP"]);
    let of_answers = place.json(&["compare", "a.json", "b.json", "b.json"]);
    let rows = |answer: &Value| {
        let mut rows = answer["comparisons"].as_array().unwrap().clone();
        rows.iter_mut().for_each(|row| row["b"] = Value::Null);
        rows
    };
    assert_eq!(rows(&of_runs).len(), 4);
    assert_eq!(rows(&of_runs), rows(&of_answers));
    place.run(&["compare", "a", "b"]).fails(2, &["--qrels", "--per-query --json"]);
    place.write("means.json", place.ok(&["eval", "qrels", "a", "--json"]).out);
    place.run(&["compare", "means.json", "b.json"]).fails(2, &["means.json", "--per-query --json"]);
}

#[test]
fn fused_scores_are_those_of_the_arithmetic() {
    let place = Place::new();
    place.write("one", "1 Q0 a 1 3 t\n1 Q0 b 2 2 t\n1 Q0 c 3 1 t\n2 Q0 z 1 1 t\n");
    place.write("two", "1 Q0 b 1 9 t\n1 Q0 d 2 8 t\n");
    let fused = |more: &[&str]| {
        let run = place.ok(&[&["fuse", "one", "two"], more].concat()).out;
        let line = |line: &str| {
            let columns: Vec<&str> = line.split(' ').collect();
            (format!("{} {}", columns[0], columns[2]), columns[4].parse::<f64>().unwrap())
        };
        run.lines().map(line).collect::<Vec<_>>()
    };
    let check = |more: &[&str], expected: &[(&str, f64)]| {
        let fused = fused(more);
        let names: Vec<&str> = fused.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{more:?}");
        for ((name, score), (_, expected)) in fused.iter().zip(expected) {
            assert!((score - expected).abs() < 1e-7, "{more:?} {name}: {score}, expected {expected}"); // 32-bit floats
        }
    };
    let half = 0.5;
    check(
        &[],
        &[
            ("1 b", half / 62.0 + half / 61.0),
            ("1 a", half / 61.0),
            ("1 d", half / 62.0),
            ("1 c", half / 63.0),
            ("2 z", half / 61.0),
        ],
    );
    check(
        &["--weights", "2,1", "--rrf-k", "1", "-k", "2"],
        &[("1 b", 2.0 / 3.0 + 1.0 / 2.0), ("1 a", 2.0 / 2.0), ("2 z", 2.0 / 2.0)],
    );
    // Min-max: a 1, b 1/2, c 0 and b 1, d 0; a ranking of one is 1.
    check(
        &["--method", "convex", "--weights", "1,1", "--depth", "3"],
        &[("1 b", 1.5), ("1 a", 1.0), ("1 d", 0.0), ("1 c", 0.0), ("2 z", 1.0)],
    );
    place.run(&["fuse", "one", "two", "--weights", "1"]).fails(2, &["--weights", "1 weights for 2 runs"]);
    place.run(&["fuse", "one", "two", "--weights", "1,-1"]).fails(2, &["weight", "-1"]);
    place.run(&["fuse", "one"]).fails(2, &["RUN"]);
}

#[test]
fn arms_fused_by_hand_rank_as_the_hybrid_does() {
    let place = Place::indexed();
    place.write("more/sea.md", "# Sea\n\nThe sea is salt. The moon and the sun move the water of the sea.\n");
    place.write("more/clock.md", "# Clock\n\nA clock counts minutes. The tide has a clock too.\n");
    place.ok(&["index", "--model", &tiny_model(), "more"]);
    place.write(
        "topics.tsv",
        "1\tthe moon and the sea\n2\twild yeast\n3\thow many minutes does bread take\n4\tvolcano\n",
    );
    for mode in ["lexical", "dense", "hybrid"] {
        place.ok(&["run", "--topics", "topics.tsv", "--mode", mode, "-o", mode]);
    }
    place.ok(&["fuse", "lexical", "dense", "--method", "adaptive", "--weights", ".55,1", "-o", "fused"]);
    let [fused, hybrid] = ["fused", "hybrid"].map(|run| String::from_utf8(place.read(run)).unwrap());
    for query in ["1", "2", "3", "4"] {
        assert_eq!(documents(&hybrid, query).len(), 5);
        assert_eq!(documents(&fused, query), documents(&hybrid, query), "query {query}");
    }
}
