//! What README and the page of commands by task show is what happens.

use std::fs;

use crate::support::{Place, TIDES, root};

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

#[test]
fn every_command_of_the_table_runs() {
    let place = Place::new();
    place.write("docs/tides.md", TIDES);
    place.write("scifact/queries.jsonl", "{\"_id\":\"1\",\"text\":\"what moves the tide\"}\n");
    place.write("scifact/qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\tdocs/tides.md\t1\n");
    place.write_settings(format!("model = {:?}\n", crate::support::tiny_model()));
    let tasks = fs::read_to_string(root().join("docs/reference/tasks.md")).unwrap();
    let commands: Vec<&str> =
        tasks.lines().filter_map(|line| line.strip_prefix("| ")?.rsplit_once(" | `")?.1.strip_suffix("` |")).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    let (deletes, others): (Vec<&str>, Vec<&str>) =
        commands.into_iter().partition(|command| command.starts_with("cento delete"));
    for command in others.into_iter().chain(deletes) {
        let words = split(command);
        assert_eq!(words[0], "cento", "{command}");
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        if arguments[0] == "diff" {
            std::fs::copy(place.path("trace.json"), place.path(arguments[1])).unwrap();
        }
        place.ok(&arguments);
    }
}

/// Splits a command as a shell would, as far as the table needs it.
fn split(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[test]
fn the_citation_of_the_table_is_a_sentence() {
    let place = Place::new();
    place.write("docs/tides.md", TIDES);
    place.write_settings(format!("model = {:?}\n", crate::support::tiny_model()));
    place.ok(&["index", "docs"]);
    assert_eq!(place.ok(&["get", "docs/tides.md bytes 116-178"]).out, &TIDES[116..178]);
    assert_eq!(place.ok(&["get", "docs/tides.md:11"]).out, &TIDES[116..179]);
}

#[test]
fn the_policy_of_the_guide_is_one() {
    let place = Place::indexed();
    place.write("policy.toml", fs::read(root().join("docs/example/policy.toml")).unwrap());
    place.ok(&["context", "what moves the tide", "--budget", "200", "--policy", "policy.toml"]);
}

#[test]
fn the_two_commands_are_there_and_say_what_they_do() {
    for name in ["quickstart", "test"] {
        assert!(readme().contains(&format!("./scripts/{name}")));
        let script = fs::read_to_string(root().join("scripts").join(name)).unwrap();
        assert!(script.starts_with("#!/usr/bin/env bash"));
    }
}

#[test]
fn help_is_the_same_by_both_names_and_plain_where_no_terminal_reads() {
    let place = Place::new();
    let (by_name, by_flag) = (place.ok(&["help", "index"]).out, place.ok(&["index", "--help"]).out);
    assert_eq!(by_name, by_flag);
    let first = place.ok(&["--help"]).out;
    assert!(!first.contains('\u{1b}') && first.contains("\nMore commands:\n"), "{first}");
    assert_eq!(first.matches("CENTO_").count(), 1, "the environment is told of once: {first}");
}

#[test]
fn help_quotes_the_defaults_that_are() {
    let place = Place::new();
    // Where a line of help ends depends on the longest option.
    let help = |verb: &str| place.ok(&[verb, "--help"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        help("index").contains("all-minilm-l6-v2")
            && help("index").contains("or 128")
            && help("index").contains("or structured")
    );
    assert!(help("search").contains("[default: 1000]") && help("search").contains("[default: 10]"));
    assert!(help("context").contains("[default: cento]") && help("context").contains("[default: o200k]"));
}
