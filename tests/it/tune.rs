//! Settings chosen by judged questions: the gain that is told is the one that `run` and `eval` find, and nothing is
//! advised without one.

use std::fmt::Write as _;

use serde_json::Value;

use crate::support::{Place, tiny_model};

/// A set in which words tell and vectors, of an encoder with random weights, do not: document `i` has two words, which
/// six and five others have alone.
fn words_tell(n_questions: usize) -> Place {
    let place = Place::new();
    let (mut corpus, mut queries, mut qrels) =
        (String::new(), String::new(), "query-id\tcorpus-id\tscore\n".to_owned());
    for i in 0..42 {
        let (a, b) = (["amber", "basalt", "cobalt", "dolomite", "emerald", "flint", "garnet"][i % 7], i / 7);
        let b = ["hut", "inn", "jetty", "kiln", "lodge", "mill"][b];
        writeln!(
            corpus,
            "{{\"_id\": \"d{i}\", \"title\": \"\", \"text\": \"A {b} of {a} number {i}, and more of it.\"}}"
        )
        .unwrap();
        if i < n_questions {
            writeln!(queries, "{{\"_id\": \"q{i}\", \"text\": \"{a} {b}\"}}").unwrap();
            writeln!(qrels, "q{i}\td{i}\t1").unwrap();
        }
    }
    place.write("set/corpus.jsonl", corpus);
    place.write("set/queries.jsonl", queries);
    place.write("set/qrels/test.tsv", qrels);
    place.ok(&["index", "--model", &tiny_model(), "set"]);
    place
}

fn ndcg(place: &Place, options: &[&str]) -> f64 {
    place.ok(&[&["run", "--topics", "set", "-o", "run.trec"][..], options].concat());
    place.json(&["eval", "set", "run.trec", "-m", "nDCG@10"])["nDCG@10"].as_f64().unwrap()
}

#[test]
fn the_gain_that_is_told_is_that_of_the_settings_that_are_written() {
    let place = words_tell(42);
    // Where vectors alone rank, words are missed.
    let in_force = ["--lexical-weight", "0"];
    let answer = place.json(&[&["tune", "--topics", "set", "-o", "tuned.toml"][..], &in_force].concat());
    let (chosen, figures) = (&answer["chosen"], &answer["cross_validated"]);
    assert_eq!((&answer["use"], &answer["n_settings"]), (&Value::from(true), &Value::from(224)), "{answer}");
    let figure = |name: &str| figures[name].as_f64().unwrap();
    assert!(figure("low") > 0.1 && figure("low") < figure("gain") && figure("gain") < figure("high"), "{answer}");
    let settings = String::from_utf8(place.read("tuned.toml")).unwrap();
    assert!(settings.starts_with("# Settings of the ranking: chosen among 224 by 42 judged questions"), "{settings}");
    let written: toml::Table = settings.parse().unwrap();
    for (name, value) in chosen.as_object().unwrap() {
        let differs = *value != answer["in_force"][name];
        assert_eq!(written.get(name).is_some(), differs, "{name}: {settings}");
    }
    // What `run` and `eval` find with the settings in force, and with those that are written.
    let (before, after) = (ndcg(&place, &in_force), ndcg(&place, &["--config", "tuned.toml"]));
    assert!((figure("before") - before).abs() < 1e-9, "{before}: {answer}");
    let gain: f64 = answer["moves"].as_array().unwrap().iter().map(|step| step["gain"].as_f64().unwrap()).sum();
    assert!((gain - (after - before)).abs() < 1e-9, "{before} to {after}: {answer}");
    assert!(figure("gain") <= gain + 1e-9, "what chose gains most: {answer}");
    // The same again, and the same file on stdout; search and context take the settings too.
    let again = place.ok(&[&["tune", "--topics", "set"][..], &in_force].concat());
    assert_eq!(again.out, settings);
    assert!(again.err.contains("use them: on questions that did not choose them, nDCG@10"), "{again:?}");
    let top = |options: &[&str]| {
        let found = place.json(&[&["search", "amber hut", "-k", "1"][..], options].concat());
        let parts = found["hits"][0]["contributions"].as_array().unwrap();
        parts.iter().map(|part| part["weight"].clone()).collect::<Vec<_>>()
    };
    assert_ne!(top(&[]), top(&["--config", "tuned.toml"]));
    place.ok(&["context", "amber hut", "--budget", "200", "--config", "tuned.toml"]);
}

#[test]
fn without_a_gain_the_advice_is_to_leave_the_settings() {
    let place = words_tell(42);
    // Where the settings in force are the best there is nothing to move.
    let best = ["--lexical-weight", "6", "--links", "none"];
    let ran = place.run(&[&["tune", "--topics", "set"][..], &best].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with('#')), "{ran:?}");
    assert!(ran.err.contains("keep the settings in force") || ran.err.contains("do not use them"), "{ran:?}");
    let answer: Value = {
        let ran = place.run(&[&["tune", "--topics", "set", "-o", "kept.toml", "--json"][..], &best].concat());
        assert_eq!(ran.code, 1, "{ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    };
    assert_eq!((&answer["use"], &answer["in_force"]["lexical-weight"]), (&Value::from(false), &Value::from(6.0)));
}

#[test]
fn what_cannot_be_chosen_from_is_said() {
    let place = words_tell(12);
    let tune = |options: &[&str]| place.run(&[&["tune"], options].concat());
    place.write("few.tsv", "query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\nq2\td2\t0\n");
    tune(&["--topics", "set", "--qrels", "few.tsv"]).fails(2, &["few.tsv: 2 topics", "at least 10"]);
    let others: String = (0..12).map(|i| format!("q{i} 0 other{i} 1\n")).collect();
    place.write("others.qrels", others);
    let ran = tune(&["--topics", "set", "--qrels", "others.qrels"]);
    ran.fails(2, &["0 topics have a relevant document in this collection", "another corpus"]);
    let strangers: String = (0..12).map(|i| format!("x{i} 0 d{i} 1\n")).collect();
    place.write("strangers.qrels", strangers);
    tune(&["--topics", "set", "--qrels", "strangers.qrels"]).fails(2, &["0 topics have a relevant document there"]);
    tune(&["--topics", "set/queries.jsonl"]).fails(2, &["name --qrels FILE"]);
    tune(&["--topics", "set", "--json"]).fails(2, &["-o FILE"]);
    tune(&["--topics", "set", "--mode", "dense"]).fails(2, &["--mode hybrid"]);
    tune(&["--topics", "set", "--folds", "1"]).fails(2, &["1 folds of 12 questions; give 2 to 12"]);
    tune(&["--topics", "set", "--measure", "nDGC@10"]).fails(2, &["nDCG"]);
    tune(&["--topics", "set", "--k1", "-1"]).fails(2, &["k1"]);
    place.write("excerpts/questions.jsonl", "{\"id\": \"q\", \"question\": \"x\", \"refs\": []}\n");
    tune(&["--topics", "excerpts"]).fails(2, &["answered by excerpts", "--qrels FILE"]);
}
