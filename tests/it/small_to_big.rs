//! Small to big: windows of sentences, radii by document and by question, and a second search where nothing passes.

use serde_json::{Value, json};

use crate::support::{Place, tiny_model};

/// Seven sentences of text, seven of Markdown; the fourth of each has a word of its own.
fn sentences() -> Place {
    let place = Place::new();
    let sentences = |of: &str, word: &str| -> String {
        let numbers = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh"];
        let told = numbers.map(|n| match n {
            "Fourth" => format!("{n} comes {word} into the {of}."),
            _ => format!("{n} comes more of the {of}."),
        });
        told.join(" ")
    };
    place.write("notes/log.txt", sentences("log", "herring"));
    place.write("notes/guide.md", format!("# Guide\n\n{}\n", sentences("guide", "mackerel")));
    place.ok(&["index", "--model", &tiny_model(), "notes", "--chunk-tokens", "sentence"]);
    place
}

fn asked(place: &Place, question: &str, more: &[&str]) -> Value {
    let fixed = ["--mode", "lexical", "--strategy", "window", "--policy", "policy.toml", "--trace", "trace.json"];
    place.json(&[&["context", question][..], &fixed, more].concat())
}

fn manifest(place: &Place) -> Value {
    let trace: Value = serde_json::from_slice(&place.read("trace.json")).unwrap();
    trace["assembly"]["manifest"].clone()
}

/// Sentences of the one citation that are delivered.
fn n_sentences(answer: &Value) -> usize {
    assert_eq!(answer["citations"].as_array().unwrap().len(), 1, "{answer}");
    answer["context"].as_str().unwrap().matches(" comes ").count()
}

#[test]
fn a_window_of_chunks_of_one_sentence_is_a_sentence_window() {
    let place = sentences();
    for (radius, text) in [
        (0, "Fourth comes herring into the log."),
        (1, "Third comes more of the log. Fourth comes herring into the log. Fifth comes more of the log."),
    ] {
        place.write("policy.toml", format!("[window]\nradius = {radius}\n"));
        let answer = asked(&place, "herring", &["--marks", "lean"]);
        assert_eq!(answer["context"].as_str().unwrap().trim_end().lines().last().unwrap().trim(), text);
        assert_eq!(n_sentences(&answer), 2 * radius + 1);
    }
    place.write("policy.toml", "[window]\nradius = 9\n");
    assert_eq!(n_sentences(&asked(&place, "herring", &[])), 7, "it ends with the document");
    assert_eq!(manifest(&place).get("windows"), None, "nothing is decided where nothing is set");
}

#[test]
fn radii_follow_the_document_and_the_question_and_are_in_the_trace() {
    let place = sentences();
    place.write("policy.toml", "[window]\nradius = 0\nradius_by_type = { md = 1 }\nradius_by_query = { number = 2 }\n");
    for (question, n, windows) in [
        ("herring", 1, json!({"kind": "any", "radius": 0, "by_type": {}})),
        ("mackerel", 3, json!({"kind": "any", "radius": 0, "by_type": {"md": 1}})),
        ("how many herring", 5, json!({"kind": "number", "radius": 2, "by_type": {}})),
        ("how many mackerel", 5, json!({"kind": "number", "radius": 2, "by_type": {"md": 2}})),
    ] {
        let answer = asked(&place, question, &[]);
        assert_eq!(n_sentences(&answer), n, "{question}: {answer}");
        assert_eq!(manifest(&place)["windows"], windows, "{question}");
        assert!(place.ok(&["replay", "trace.json"]).err.contains("the same bytes as in the trace"));
    }
    place.write("policy.toml", "[window]\nradius_by_type = { legal = 9 }\n");
    let warnings = asked(&place, "herring", &[])["warnings"].to_string();
    assert!(warnings.contains("no document is of the type") && warnings.contains("legal"), "{warnings}");
    place.write("policy.toml", "[window]\nradius_by_query = { broad = 9 }\n");
    place.run(&["context", "herring", "--policy", "policy.toml"]).fails(2, &["policy.toml", "broad", "several"]);
}

#[test]
fn a_second_search_is_made_where_nothing_passes_and_only_if_it_is_asked_for() {
    let place = sentences();
    place.write("policy.toml", "min_relevance = 0.0\n");
    let empty = ["context", "walrus", "--mode", "lexical", "--strategy", "window", "--policy", "policy.toml"];
    assert_eq!(place.run(&empty).code, 1, "no sentence has the word");

    place.write("policy.toml", "second_search = \"relaxed\"\n");
    let answer = asked(&place, "walrus", &["--filter", "type = \"md\""]);
    let citations = answer["citations"].as_array().unwrap();
    assert!(!citations.is_empty() && citations.iter().all(|cited| cited["document"] == "notes/guide.md"), "{answer}");
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("nothing passed the gates: this is of a second search"), "{warnings}");
    let second = manifest(&place)["second_search"].clone();
    assert_eq!(second[0], json!({"setting": "mode", "from": "lexical", "to": "hybrid"}));
    assert_eq!(second[1], json!({"setting": "candidates", "from": "1000", "to": "4000"}));
    assert!(place.ok(&["replay", "trace.json"]).err.contains("the same bytes as in the trace"));
    asked(&place, "herring", &[]);
    assert_eq!(manifest(&place).get("second_search"), None, "what is found at first is not searched again");

    // A gate of the policy gives way too, and what explains a chunk knows.
    place.write("policy.toml", "second_search = \"relaxed\"\nmin_relevance = 9.0\n");
    let gated = ["context", "herring", "--strategy", "bubble", "--policy", "policy.toml", "--trace", "trace.json"];
    let answer = place.json(&gated);
    assert!(answer["context"].as_str().unwrap().contains("herring"), "{answer}");
    let changed = manifest(&place)["second_search"].clone();
    assert_eq!(changed[0], json!({"setting": "min_relevance", "from": "9.0", "to": "none"}));
    let trace: Value = serde_json::from_slice(&place.read("trace.json")).unwrap();
    assert_eq!(trace["assembly"]["config"]["policy"]["min_relevance"], 9.0, "the trace keeps what was asked");
    let why = place.ok(&["why", "trace.json", "notes/log.txt#3"]).out;
    assert!(!why.contains("below min_relevance"), "{why}");
    assert!(place.ok(&["replay", "trace.json"]).err.contains("the same bytes as in the trace"));
}

#[test]
fn several_questions_choose_their_segments_in_turn() {
    let place = sentences();
    let first = ["context", "herring", "--mode", "lexical", "--strategy", "rse", "--trace", "trace.json"];
    let one = place.json(&first);
    assert_eq!(one["citations"].as_array().unwrap().len(), 1, "{one}");
    let several = place.json(&[&first[..], &["--query", "mackerel", "--query", "herring mackerel"]].concat());
    let context = several["context"].as_str().unwrap();
    assert!(context.contains("herring") && context.contains("mackerel"), "{several}");
    let trace: Value = serde_json::from_slice(&place.read("trace.json")).unwrap();
    assert_eq!(trace["assembly"]["config"]["queries"], json!(["mackerel", "herring mackerel"]));
    let chosen_by = |chunk: &str| {
        let records = trace["assembly"]["records"].as_array().unwrap();
        records.iter().find(|record| record["chunk_id"] == chunk).unwrap()["step_details"]["question"].clone()
    };
    assert_eq!((chosen_by("notes/log.txt#3"), chosen_by("notes/guide.md#3")), (json!(0), json!(1)), "{trace}");
    assert!(place.ok(&["replay", "trace.json"]).err.contains("the same bytes as in the trace"));
    let refused = ["context", "herring", "--query", "mackerel", "--mode", "lexical", "--strategy", "window"];
    place.run(&refused).fails(2, &["mackerel", "window", "rse"]);
    place.run(&[&first[..], &["--query", " "]].concat()).fails(2, &["empty"]);
}
