//! `cento assemble`: candidates of another engine, without a collection, at the command line and over HTTP.

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::Place;

fn candidates() -> Value {
    let text = "The tide rises twice a day. The moon moves the tide. Its pull is strongest when near.";
    json!([
        {"document": "sea", "text": &text[28..], "score": 0.6, "span": {"start": 28, "end": text.len()}},
        {"document": "sea", "text": &text[..52], "score": 0.8, "span": {"start": 0, "end": 52}, "title": "The sea"},
        {"document": "bread", "text": "Yeast lifts the dough, and salt slows it.", "score": 0.1},
    ])
}

fn request() -> Value {
    json!({"query": "what moves the tide", "budget": 80, "candidates": candidates()})
}

#[test]
fn candidates_are_assembled_from_any_file_and_the_trace_is_followed_without_a_collection() {
    let place = Place::new();
    place.write("request.json", request().to_string());
    place.write("list.json", candidates().to_string());
    let lines: String = candidates().as_array().unwrap().iter().map(|line| format!("{line}\n")).collect();
    place.write("lines.jsonl", lines);
    let whole = place.ok(&["assemble", "request.json", "--trace", "trace.json", "--quiet"]).out;
    assert!(whole.contains("The moon moves the tide. Its pull is strongest when near."), "{whole}");
    for file in ["list.json", "lines.jsonl"] {
        let flags = ["assemble", file, "--query", "what moves the tide", "--budget", "80", "--quiet"];
        assert_eq!(place.ok(&flags).out, whole, "{file}");
    }
    assert_eq!(place.ok(&["replay", "trace.json", "--quiet"]).out, whole);
    let why = place.json(&["why", "trace.json", "sea"]);
    assert_eq!(why["chunks"].as_array().unwrap().len(), 2, "{why}");
    place.run(&["diff", "trace.json", "trace.json"]).fails(3, &["candidates that were given"]);

    let mut changed: Value = serde_json::from_slice(&place.read("trace.json")).unwrap();
    changed["request"]["candidates"][1]["text"] = "The sun moves the tide, or the wind, twice each day.".into();
    changed["request"]["candidates"][0]["span"] = Value::Null;
    changed["request"]["candidates"][1]["span"] = Value::Null;
    place.write("changed.json", changed.to_string());
    place.run(&["replay", "changed.json"]).fails(1, &["not the same bytes"]);
}

#[test]
fn what_cannot_be_assembled_is_told() {
    let place = Place::new();
    place.write("list.json", candidates().to_string());
    place.run(&["assemble", "list.json"]).fails(2, &["--query"]);
    let ask = |file: &str, more: &[&str]| place.run(&[&["assemble", file, "--query", "tide"], more].concat());
    ask("list.json", &["--strategy", "seal"]).fails(2, &["needs a collection"]);
    ask("list.json", &["--tokenizer", "none.json"]).fails(2, &["none.json"]);
    ask("list.json", &["--budget", "2"]).fails(2, &["too small"]);
    place.write(
        "wrong.jsonl",
        "{\"document\": \"a\", \"text\": \"b\", \"score\": 1}\n{\"document\": \"a\", \"text\": 7}\n",
    );
    ask("wrong.jsonl", &[]).fails(2, &["wrong.jsonl", "line 2"]);
    place.write("empty.json", "[]");
    ask("empty.json", &[]).fails(2, &["from 1 to 100000"]);
}

#[test]
fn the_server_gives_the_same_bytes() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    for strategy in ["cento", "flat", "mmr", "bubble", "adaptive"] {
        for budget in ["40", "80", "auto:300"] {
            if strategy != "cento" && budget.starts_with("auto") {
                continue;
            }
            let mut asked = request();
            (asked["strategy"], asked["budget"]) = (strategy.into(), budget.into());
            place.write("request.json", asked.to_string());
            let printed = place.ok(&["assemble", "request.json", "--json", "--quiet"]).out;
            let answer = serving.post("/v1/assemble", &asked);
            assert_eq!((answer.status, answer.text()), (200, printed), "{strategy} {budget}");
        }
    }
    place.write("request.json", request().to_string());
    place.ok(&["assemble", "request.json", "--trace", "trace.json"]);
    let trace = serving.post("/v1/assemble/trace", &request());
    assert_eq!(trace.body, place.read("trace.json"));
    let body = json!({"trace": trace.json()});
    let replayed = serving.post("/v1/assemble/replay", &body);
    assert_eq!((replayed.status, &replayed.json()["same"]), (200, &true.into()), "{}", replayed.text());
    assert_eq!(place.ok(&["replay", "trace.json", "--json", "--quiet"]).out, replayed.text());
    let mut changed = trace.json();
    changed["delivered"]["blake3"] = "0".into();
    assert_eq!(serving.told("/v1/assemble/replay", &json!({"trace": changed}))["same"], false);
    changed["version"] = 99.into();
    serving.post("/v1/assemble/replay", &json!({"trace": changed})).refused(400, "setting");
    serving.post("/v1/assemble/replay", &json!({"trace": {}})).refused(400, "request");
    let mut wrong = request();
    wrong["candidates"][0]["score"] = Value::Null;
    wrong["candidates"][2]["score"] = Value::Null;
    assert!(serving.post("/v1/assemble", &wrong).refused(400, "setting").contains("[2]"));
}

#[test]
fn what_is_included_is_delivered_and_what_is_excluded_is_not() {
    let place = Place::indexed();
    place.write("request.json", request().to_string());
    let ask = |more: &[&str]| place.json(&[&["assemble", "request.json", "--quiet"], more].concat());
    let documents = |answer: &Value| {
        let cited = answer["citations"].as_array().unwrap().iter();
        cited.map(|one| one["document"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let plain = ask(&[]);
    assert_eq!(documents(&plain), ["sea", "bread"], "{plain}");
    for id in ["bread", "bread#0"] {
        assert_eq!(documents(&ask(&["--exclude", id])), ["sea"], "{id}");
        let included = documents(&ask(&["--budget", "20", "--include", id]));
        assert!(included.contains(&"bread".to_owned()), "{id}: {included:?}");
    }
    assert_eq!(documents(&ask(&["--budget", "20"])), ["sea"]);
    let serving = Serving::start(&place, &[]);
    let mut asked = request();
    (asked["include"], asked["exclude"]) = (json!(["bread"]), json!(["sea"]));
    let answer = serving.told("/v1/assemble", &asked);
    assert_eq!(documents(&answer), ["bread"]);
    assert_eq!(answer, ask(&["--include", "bread", "--exclude", "sea"]));
    for setting in ["include", "exclude"] {
        place.run(&["assemble", "request.json", &format!("--{setting}"), "moon"]).fails(2, &[setting, "moon"]);
        let mut wrong = request();
        wrong[setting] = json!(["moon"]);
        assert!(serving.post("/v1/assemble", &wrong).refused(400, "setting").contains(&format!("\"{setting}\"")));
    }
}
