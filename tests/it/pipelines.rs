//! The configuration of a small-to-big pipeline, as its source writes it, in the place of a policy.

use serde_json::{Value, json};

use crate::support::{Place, tiny_model};

/// The configuration of "Small-to-Big RAG", byte for byte.
const SOURCE: &str = include_str!("../data/rag-context-pipeline.config.yaml");

/// A document in sections, and one without headings; a chunk is a paragraph or so.
fn tides() -> Place {
    let place = Place::new();
    let paragraph =
        |of: &str| format!("{of} is told of here in some words, and in others that say the same of {of} again.\n\n");
    let section = |heading: &str| format!("## {heading}\n\n{}", paragraph(heading).repeat(3));
    let sections = ["Tide pools", "Salt marshes", "River deltas"].map(section).concat();
    place.write("notes/coast.md", format!("# Coasts\n\n{sections}"));
    let log: String = (0..12).map(|day| paragraph(&format!("Day {day} of the lighthouse"))).collect();
    place.write("notes/log.txt", log);
    place.ok(&["index", "--model", &tiny_model(), "notes", "--chunk-tokens", "32"]);
    place.write("rag.yaml", SOURCE);
    place
}

fn trace(place: &Place) -> Value {
    serde_json::from_slice(&place.read("trace.json")).unwrap()
}

/// Chunks of each citation.
fn delivered(answer: &Value) -> Vec<Vec<String>> {
    let chunks = |citation: &Value| serde_json::from_value(citation["chunks"].clone()).unwrap();
    answer["citations"].as_array().unwrap().iter().map(chunks).collect()
}

#[test]
fn the_source_is_followed_as_written() {
    let place = tides();
    let asked = ["context", "salt marshes", "--mode", "lexical", "--policy", "rag.yaml", "--trace", "trace.json"];
    let answer = place.json(&asked);
    assert_eq!(answer["budget_tokens"], 4000);
    let marshes = delivered(&answer).into_iter().find(|chunks| chunks[0].starts_with("notes/coast.md")).unwrap();
    let context = answer["context"].as_str().unwrap();
    assert!(marshes.len() > 1, "a section is more than the chunk found: {marshes:?}");
    assert!(
        context.matches("Salt marshes is told of").count() == 3 && !context.contains("River deltas is"),
        "{context}"
    );
    let trace = trace(&place);
    let config = &trace["assembly"]["config"];
    assert_eq!((&config["strategy"], &config["policy"]["cache"]), (&json!("parent"), &json!({"ttl_seconds": 300})));
    let plain = place.ok(&asked).out;
    assert_eq!(place.ok(&["replay", "trace.json"]).out, plain);
}

#[test]
fn documents_without_headings_have_windows_and_their_edges_are_logged() {
    let place = tides();
    let asked = ["--mode", "lexical", "--policy", "rag.yaml", "--trace", "trace.json", "--within", "notes/log.txt"];
    let answer = place.json(&[&["context", "day 0"][..], &asked].concat());
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("in no section: delivered with the 3 chunks around"), "{warnings}");
    assert!(warnings.contains("at the edge of the"), "{warnings}");
    let stops = trace(&place)["assembly"]["boundaries"].clone();
    assert_eq!(
        stops[0],
        json!({"chunk_id": "notes/log.txt#0", "boundary": "document", "before": 3, "after": 0}),
        "{stops}"
    );
    place.write("quiet.yml", SOURCE.replace("log_boundary_violations: true", "log_boundary_violations: false"));
    let quiet = ["context", "day 0", "--mode", "lexical", "--policy", "quiet.yml", "--trace", "trace.json"];
    let answer = place.json(&[&quiet[..], &["--within", "notes/log.txt"]].concat());
    assert!(!answer["warnings"].to_string().contains("at the edge of the"), "{answer}");
    assert_eq!(trace(&place)["assembly"].get("boundaries"), None);

    // Three chunks on either side of one in the middle, and none without a fallback.
    let middle = |policy: &str| {
        place.write("one.yaml", policy);
        let one = ["context", "day 6", "--mode", "lexical", "--policy", "one.yaml", "--within", "notes/log.txt"];
        place.run(&[&one[..], &["--json"]].concat())
    };
    let one_block = SOURCE.replace("max_context_blocks: 4", "max_context_blocks: 1");
    let answer: Value = serde_json::from_str(&middle(&one_block).out).unwrap();
    assert_eq!(delivered(&answer).concat().len(), 7, "{answer}");
    let linear = one_block.replace("fallback: local_expansion", "fallback: none");
    let answer: Value = serde_json::from_str(&middle(&linear).out).unwrap();
    assert_eq!(delivered(&answer).concat().len(), 7, "a hybrid routes documents without sections: {answer}");
    let none = middle(&linear.replace("strategy: hybrid", "strategy: structural_resolution"));
    assert_eq!(none.code, 1, "{none:?}");
    let window = one_block.replace("strategy: hybrid", "strategy: local_expansion").replace("radius: 3", "radius: 0");
    let answer: Value = serde_json::from_str(&middle(&window).out).unwrap();
    assert!(delivered(&answer).concat().len() > 1, "windows are not limited in number: {answer}");
}

#[test]
fn flags_may_repeat_the_file_and_not_contradict_it() {
    let place = tides();
    place.write("topics.tsv", "1\tsalt marshes\n");
    let context = ["context", "salt marshes", "--mode", "lexical", "--policy", "rag.yaml"];
    let run =
        ["run", "--topics", "topics.tsv", "--mode", "lexical", "-o", "run", "--contexts", "c", "--policy", "rag.yaml"];
    let why_not = ["why-not", "salt marshes", "notes/coast.md", "--mode", "lexical", "--policy", "rag.yaml"];
    for command in [&context[..], &run, &why_not] {
        let with = |more: &[&str]| place.run(&[command, more].concat());
        assert_eq!(with(&[]).code, 0, "{:?}", with(&[]));
        assert_eq!(with(&["--strategy", "parent", "--budget", "4000"]).code, 0);
        with(&["--strategy", "window"]).fails(
            2,
            &["--strategy window: contradicts line 3 of rag.yaml, whose `retrieval.strategy` asks for parent"],
        );
        with(&["--budget", "800"])
            .fails(2, &["--budget 800: contradicts line 19 of rag.yaml, whose `pipeline.token_budget` asks for 4000"]);
    }
    place.run(&[&run[..], &["--budget", "4000,800"]].concat()).fails(2, &["--budget 800: contradicts line 19"]);
    place.write("cento.toml", "[context]\nbudget = 800\n");
    place.run(&context).fails(2, &["--budget 800: contradicts line 19"]);
    place.write("cento.toml", "");

    place.write("rag.yaml", SOURCE.replace("  token_budget: 4000\n", ""));
    assert_eq!(place.json(&context)["budget_tokens"], 2000);
    place.run(&run).fails(2, &["--budget: is missing"]);
    assert_eq!(place.json(&[&context[..], &["--budget", "700"]].concat())["budget_tokens"], 700);
    let unasked = place.ok(&["context", "salt marshes"]);
    assert!(unasked.err.starts_with("budget: 2000 tokens (default)\n"), "{}", unasked.err);
}

#[test]
fn what_is_wrong_in_it_is_named_with_file_line_key_and_value() {
    let place = tides();
    for (line, by, told) in [
        (
            "  radius: 3",
            "  radius: -1",
            "line 8: `local_expansion.radius` is -1, it must be a whole number from 0 to 100",
        ),
        (
            "  radius: 3",
            "  raduis: 3",
            "line 8: policy: unknown key `local_expansion.raduis`, did you mean `local_expansion.radius`?",
        ),
        (
            "  deduplicate_parents: true",
            "  deduplicate_parents: false",
            "line 15: `structural_resolution.deduplicate_parents` is false",
        ),
        (
            "  cache_resolved_context: true",
            "  cache_resolved_context: false",
            "line 23: `pipeline.cache_ttl_seconds` is 300, but",
        ),
        ("  strategy: hybrid", "  strategy: [hybrid]", "line 3: `strategy` wants one plain value"),
        ("  strategy: hybrid", "\tstrategy: hybrid", "line 3: "),
    ] {
        place.write("wrong.yaml", SOURCE.replace(line, by));
        let told = format!("--policy wrong.yaml: {told}");
        place.run(&["context", "salt marshes", "--policy", "wrong.yaml"]).fails(2, &[&told]);
    }
    place.write("toml.yaml", "delta = 0.5\n");
    place.run(&["context", "salt marshes", "--policy", "toml.yaml"]).fails(2, &["toml.yaml: line 1: "]);
    place.write("yaml.toml", SOURCE);
    place
        .run(&["context", "salt marshes", "--policy", "yaml.toml", "--budget", "100"])
        .fails(2, &["yaml.toml", "line 2"]);
}

#[test]
fn topics_that_come_again_are_answered_as_without_the_cache() {
    let place = tides();
    place.write("topics.tsv", (0..90).map(|n| format!("{n}\tday {}\n", n % 3)).collect::<String>());
    let contexts = |policy: String| {
        place.write("rag.yaml", policy);
        let run = ["run", "--topics", "topics.tsv", "-o", "run", "--contexts", "contexts", "--policy", "rag.yaml"];
        place.ok(&run);
        String::from_utf8(place.read("contexts")).unwrap()
    };
    let kept = contexts(SOURCE.to_owned());
    assert_eq!(kept.lines().count(), 90);
    let without = SOURCE.lines().filter(|line| !line.contains("cache_")).map(|line| format!("{line}\n")).collect();
    assert!(kept == contexts(without), "what is kept differs from what is made anew");
}
