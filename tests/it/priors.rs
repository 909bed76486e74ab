//! Priors learned from a collection: figures by hand, a policy that is one and does what it says, and what cannot be learned from.

use serde_json::{Value, json};

use crate::support::{Place, Ran, tiny_model};

const TOPICS: [&str; 6] = ["amber", "basalt", "cobalt", "dolomite", "emerald", "flint"];

/// Six documents with three headings in common. All documents have the same notice, which names every topic; a topic's other texts share no
/// word with those of another.
fn handbook() -> Place {
    let place = Place::new();
    for topic in TOPICS {
        place.write(&format!("set/docs/{topic}.md"), document(topic));
    }
    let question = |topic: &&str| {
        let (text, answer) = (document(topic), dose(topic));
        let start = text.find(&answer).unwrap();
        let gold = json!({"doc": topic, "start": start, "end": start + answer.len(), "text": answer});
        json!({"id": topic, "question": topic, "refs": [gold]}).to_string() + "\n"
    };
    place.write("set/questions.jsonl", TOPICS.iter().map(question).collect::<String>());
    place.ok(&["index", "--model", &tiny_model(), "set/docs"]);
    place
}

fn document(topic: &str) -> String {
    let names = TOPICS.join(" and ");
    let summary = format!("Old {topic} {topic}stone {topic}wood {topic}land {topic}water.");
    format!(
        "# The {topic}\n\n## Summary\n\n{summary}\n\n## Dose\n\n{}\n\n## Notice\n\nNo warranty for {names}.\n",
        dose(topic)
    )
}

fn dose(topic: &str) -> String {
    format!("New {topic} {topic}berry {topic}fish {topic}bird {topic}root.")
}

const LEXICAL: [&str; 3] = ["priors", "--mode", "lexical"];

/// Label, answers, where they were looked for, and prior.
#[track_caller]
fn check(answer: &Value, expected: &[(&str, f64, f64, f64)]) {
    let labels = answer["labels"].as_array().unwrap();
    assert_eq!(labels.len(), expected.len(), "{answer}");
    for (label, (name, hits, looked_for, ratio)) in labels.iter().zip(expected) {
        assert_eq!(label["label"], *name, "{answer}");
        for (key, figure) in [("hits", *hits), ("expected", *looked_for), ("nats", ratio.ln())] {
            let found = label[key].as_f64().unwrap();
            assert!((found - figure).abs() < 1e-9, "{name}: {key} {found}, expected {figure}");
        }
        assert_eq!((&label["n_documents"], &label["n_chunks"]), (&json!(6), &json!(6)));
    }
}

#[test]
fn a_heading_is_worth_what_answers_stand_under_it_beside_what_is_found_there() {
    let place = handbook();
    let answer = place.json(&[&LEXICAL[..], &["--topics", "set"]].concat());
    assert_eq!((&answer["n_questions"], &answer["strategy"]), (&json!(6), &json!("cento")));
    // Each question finds eight chunks: six notices, its own summary and its own dose. One of six documents is left out.
    let expected = [
        ("dose", 6.0, 6.0 / 8.0, (5.0 + 2.0) / (5.0 / 8.0 + 2.0)),
        ("summary", 0.0, 6.0 / 8.0, 2.0 / (5.0 / 8.0 + 2.0)),
        ("notice", 0.0, 36.0 / 8.0, 2.0 / (30.0 / 8.0 + 2.0)),
    ];
    check(&answer, &expected);
    // The same as judgements of chunks. A document as a whole is its chunk that is nearest to the question.
    let topic = |topic: &&str| json!({"_id": topic, "text": topic}).to_string() + "\n";
    place.write("topics.jsonl", TOPICS.iter().map(topic).collect::<String>());
    let learned = |gold: &dyn Fn(&str) -> String| {
        place.write("qrels", TOPICS.iter().map(|topic| format!("{topic} 0 {} 1\n", gold(topic))).collect::<String>());
        place.json(&[&LEXICAL[..], &["--topics", "topics.jsonl", "--qrels", "qrels"]].concat())
    };
    check(&learned(&|topic| format!("docs/{topic}.md#1")), &expected);
    let whole = learned(&|topic| format!("docs/{topic}.md"));
    let of = |label: &str| {
        let labels = whole["labels"].as_array().unwrap();
        labels.iter().find(|found| found["label"] == label).unwrap()["hits"].as_f64().unwrap()
    };
    assert_eq!((of("notice"), of("summary") + of("dose")), (0.0, 6.0), "{whole}");
}

#[test]
fn what_is_printed_is_a_policy_that_brings_answers_forward() {
    let place = handbook();
    let printed = place.ok(&[&LEXICAL[..], &["--topics", "set"]].concat()).out;
    assert!(
        printed.contains("\"dose\" = 0.981") && printed.contains("6 documents, 6 chunks; answered 6.0, looked for 0.8")
    );
    place.write("learned.toml", &printed);
    let score = |extra: &[&str]| {
        let asked = ["context", "amber", "--budget", "400", "--mode", "lexical", "--trace", "trace.json"];
        place.ok(&[&asked[..], extra].concat());
        let trace: Value = serde_json::from_slice(&place.read("trace.json")).unwrap();
        let records = trace["assembly"]["records"].as_array().unwrap();
        let of = |chunk: &str| {
            let record = records.iter().find(|record| record["chunk_id"] == chunk).unwrap();
            record["score_final"].as_f64().unwrap()
        };
        of("docs/amber.md#1") / of("docs/amber.md#2")
    };
    let (without, with) = (score(&[]), score(&["--policy", "learned.toml"]));
    assert!((with / without / f64::exp(0.981 + 1.056) - 1.0).abs() < 1e-6, "{without} {with}");
    let bubble = place.ok(&[&LEXICAL[..], &["--topics", "set", "--strategy", "bubble"]].concat()).out;
    assert!(bubble.contains("\"dose\" = 0.196") && bubble.contains("\"notice\" = -0.211"), "{bubble}");
}

#[test]
fn sentences_tell_which_headings_are_found_too_often_and_threads_change_nothing() {
    let place = handbook();
    let asked = [&LEXICAL[..], &["--sentences", "18"]].concat();
    let answer = place.json(&asked);
    let nats = |label: &str| {
        let labels = answer["labels"].as_array().unwrap();
        labels.iter().find(|found| found["label"] == label).unwrap()["nats"].as_f64().unwrap()
    };
    // Nothing of a summary or a dose is found in other documents but in their notices.
    assert!(nats("notice") < 0.0 && nats("summary") > 0.0 && nats("dose") > 0.0, "{answer}");
    let with = |threads: &str| place.ok(&[&asked[..], &["--threads", threads]].concat()).out;
    assert_eq!(with("1"), with("3"));
}

#[test]
fn what_nothing_can_be_learned_from_is_said() {
    let place = Place::indexed();
    place.write("topics.jsonl", "{\"_id\":\"1\",\"text\":\"moon\"}\n");
    place.write("qrels", "1 0 notes/tide.md 1\n");
    place.write("other", "2 0 notes/tides.md 1\n");
    let run = |arguments: &[&str]| -> Ran { place.run(&[&["priors"], arguments].concat()) };
    run(&[]).fails(2, &["--topics", "--sentences"]);
    run(&["--sentences", "0"]).fails(2, &["--sentences 0", "give some hundreds"]);
    run(&["--sentences", "9", "--topics", "topics.jsonl"]).fails(2, &["cannot be used with"]);
    run(&["--sentences", "9", "--strategy", "flat"]).fails(2, &["--strategy flat", "cento and bubble"]);
    run(&["--topics", "nowhere"]).fails(3, &["nowhere"]);
    run(&["--topics", "topics.jsonl"]).fails(2, &["topics.jsonl", "--qrels"]);
    run(&["--topics", "topics.jsonl", "--qrels", "other"]).fails(2, &["--qrels", "no topic of topics.jsonl"]);
    let rare = run(&["--sentences", "9"]);
    rare.fails(1, &["no heading stands in 3 documents or more"]);
    let place = handbook();
    place.write("topics.jsonl", "{\"_id\":\"1\",\"text\":\"amber\"}\n");
    place.write("qrels", "1 0 docs/amberr.md 1\n");
    let arguments = ["priors", "--topics", "topics.jsonl", "--qrels", "qrels"];
    place.run(&arguments).fails(1, &["docs/amberr.md", "nearest", "docs/amber.md"]);
    let elsewhere = ["--within", "docs/flint.md"];
    place.write("qrels", "1 0 docs/amber.md 1\n");
    place.run(&[&arguments[..], &elsewhere].concat()).fails(1, &["no question has an answer"]);
}
