//! `cento why` and `cento why-not`: every reason in words, and the change that would undo it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Place, TIDES, root, tiny_model};
use crate::traces::{QUERY, context, records, tides, trace};

/// Assembles with these settings and explains the first candidate with this reason: its id, what decided, all of it.
#[track_caller]
fn why(place: &Place, policy: &str, arguments: &[&str], reason: &str) -> (String, String, Value) {
    place.write("policy.toml", policy);
    context(place, "trace.json", &[arguments, &["--policy", "policy.toml"]].concat());
    let trace = trace(place, "trace.json");
    let record = records(&trace).iter().find(|record| record["final_reason"] == reason);
    let seen: BTreeSet<String> = records(&trace).iter().map(|record| record["final_reason"].to_string()).collect();
    let id = record.unwrap_or_else(|| panic!("no {reason} among {seen:?}"))["chunk_id"].as_str().unwrap().to_owned();
    let answer = place.json(&["why", "trace.json", &id]);
    let chunk = &answer["chunks"][0];
    assert_eq!(chunk["record"], *record.unwrap(), "the numbers are the trace's");
    let because = chunk["because"].as_str().unwrap().to_owned();
    let told = place.ok(&["why", "trace.json", &id]).out;
    assert!(told.contains(&because) && told.contains(reason), "{told}");
    (id, because, chunk.clone())
}

/// Whether the settings deliver the chunk.
fn delivers(place: &Place, policy: &str, arguments: &[&str], id: &str) -> bool {
    place.write("policy.toml", policy);
    context(place, "again.json", &[arguments, &["--policy", "policy.toml"]].concat());
    let trace = trace(place, "again.json");
    records(&trace).iter().any(|record| record["chunk_id"] == id && record["final_decision"] == "selected")
}

/// The value to which a change moves this setting alone.
#[track_caller]
fn value<'c>(chunk: &'c Value, setting: &str) -> &'c str {
    let alone = |change: &&Value| {
        let settings = change["settings"].as_array().unwrap();
        settings.len() == 1 && settings[0]["setting"] == setting
    };
    let change = chunk["changes"].as_array().unwrap().iter().find(alone);
    change.unwrap_or_else(|| panic!("no {setting} in {chunk:#}"))["settings"][0]["value"].as_str().unwrap()
}

#[test]
fn why_names_the_constraint_and_the_change_it_names_admits_the_chunk() {
    let place = tides();
    // Each gate by itself: a budget that holds everything, or nothing but the budget.
    let wide = ["--budget", "2000", "--strategy", "bubble"];
    for (key, policy, reason) in [
        ("max_per_document", "max_per_document = 2\ngate = \"none\"\n", "document_chunks_exceeded"),
        ("max_per_section", "max_per_section = 1\ngate = \"none\"\n", "section_chunks_exceeded"),
        ("candidates", "candidates = 3\ngate = \"none\"\n", "beyond_candidates"),
        ("min_relevance", "min_relevance = 0.5\ngate = \"none\"\n", "low_relevance"),
    ] {
        let (id, because, chunk) = why(&place, policy, &wide, reason);
        assert!(because.chars().any(|c| c.is_ascii_digit()), "{reason}: {because}");
        let (changed, rest) = (value(&chunk, &format!("policy.{key}")), policy.split_once('\n').unwrap().1);
        assert!(!delivers(&place, policy, &wide, &id), "{reason}");
        assert!(delivers(&place, &format!("{key} = {changed}\n{rest}"), &wide, &id), "{reason}: {changed}");
    }
    for strategy in ["flat", "bubble"] {
        let policy = "gate = \"none\"\n";
        let (id, because, chunk) = why(&place, policy, &["--budget", "80", "--strategy", strategy], "budget_exceeded");
        let budget: usize = value(&chunk, "budget").parse().unwrap();
        assert!(because.contains("budget of 80") && budget > 80, "{because}: {budget}");
        let at =
            |budget: usize| delivers(&place, policy, &["--budget", &budget.to_string(), "--strategy", strategy], &id);
        assert!(at(budget) && !at(budget - 1), "{id} {budget}");
    }
    let policy = "gate = \"none\"\nslack = \"none\"\n[rho]\n\"*\" = 0.01\n";
    let (id, because, chunk) = why(&place, policy, &wide, "section_budget_exceeded");
    assert!(because.contains("its section may have 20 tokens (rho \"*\" = 0.01 of 2000)"), "{because}");
    let is_rho = |change: &&Value| change["settings"][0]["setting"].as_str().unwrap().starts_with("policy.rho.");
    let rho = &chunk["changes"].as_array().unwrap().iter().find(is_rho).unwrap()["settings"][0];
    let label = rho["setting"].as_str().unwrap().strip_prefix("policy.rho.").unwrap();
    let line = format!("{label} = {}\n", rho["value"].as_str().unwrap());
    assert!(delivers(&place, &format!("{policy}{line}"), &wide, &id), "{line}");
    assert_eq!(value(&chunk, "policy.slack"), "\"global\"");
    assert!(delivers(&place, &policy.replace("slack = \"none\"", ""), &wide, &id));
}

/// A policy by its dotted keys.
type Keys = std::collections::BTreeMap<String, String>;

/// The request with the settings of a change; true if the real command then delivers the chunk.
fn change_delivers(place: &Place, query: &str, keys: &Keys, arguments: &[String], change: &Value, id: &str) -> bool {
    let (mut keys, mut arguments) = (keys.clone(), arguments.to_vec());
    for moved in change["settings"].as_array().unwrap() {
        let (setting, value) = (moved["setting"].as_str().unwrap(), moved["value"].as_str().unwrap());
        if let Some(key) = setting.strip_prefix("policy.") {
            keys.insert(key.to_owned(), value.to_owned());
        } else if setting == "exclude" {
            arguments.extend(["--exclude".to_owned(), value.to_owned()]);
        } else {
            let flag = format!("--{setting}");
            match arguments.iter().position(|argument| *argument == flag) {
                Some(at) => value.clone_into(&mut arguments[at + 1]),
                None => arguments.extend([flag, value.to_owned()]),
            }
        }
    }
    delivered(place, query, &keys, &arguments).iter().any(|delivered| delivered == id)
}

/// The ids that the real command delivers; its trace is in `again.json`.
fn delivered(place: &Place, query: &str, keys: &Keys, arguments: &[String]) -> Vec<String> {
    let policy: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    place.write("changed.toml", policy);
    let asked = ["context", query, "--trace", "again.json", "--policy", "changed.toml"];
    let arguments: Vec<&str> = asked.into_iter().chain(arguments.iter().map(String::as_str)).collect();
    place.run(&arguments); // an answer that is empty ends with 1
    let trace = trace(place, "again.json");
    let selected = records(&trace).iter().filter(|record| record["final_decision"] == "selected");
    selected.map(|record| record["chunk_id"].as_str().unwrap().to_owned()).collect()
}

/// Follows the first candidate of each reason that kept one out, and makes every change that is told; how many chunks
/// had one, and how many were told.
fn make_every_change(place: &Place, queries: &[&str]) -> (usize, usize) {
    let cases: [(&str, &str, &[(&str, &str)]); 13] = [
        ("cento", "90", &[]),
        ("cento", "300", &[]),
        ("cento", "400", &[("max_per_document", "1")]),
        ("cento", "400", &[("rho.\"*\"", "0.1")]),
        ("cento", "400", &[("cento.candidates", "4")]),
        ("bubble", "120", &[]),
        ("bubble", "400", &[("min_relevance", "0.6")]),
        ("bubble", "400", &[("candidates", "5"), ("max_per_section", "1")]),
        ("bubble", "400", &[("delta", "0.4"), ("rho.\"*\"", "0.15"), ("slack", "\"none\"")]),
        ("flat", "150", &[]),
        ("mmr", "150", &[]),
        ("rse", "200", &[]),
        ("window", "200", &[("window.radius", "1")]),
    ];
    let (mut n_chunks, mut n_changes) = (0, 0);
    for (n, query) in queries.iter().enumerate() {
        for (strategy, budget, policy) in cases.iter().skip(n % 2).step_by(2) {
            let keys: Keys = policy.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let arguments = ["--strategy", strategy, "--budget", budget].map(str::to_owned).to_vec();
            delivered(place, query, &keys, &arguments);
            std::fs::copy(place.path("again.json"), place.path("first.json")).unwrap();
            let first = trace(place, "first.json");
            let mut reasons = BTreeSet::new();
            for record in records(&first).iter().filter(|record| record["final_decision"] == "rejected") {
                if !reasons.insert(record["final_reason"].to_string()) {
                    continue;
                }
                let id = record["chunk_id"].as_str().unwrap();
                let chunk = &place.json(&["why", "first.json", id])["chunks"][0];
                let changes = chunk["changes"].as_array().unwrap_or_else(|| panic!("nothing was tried: {chunk:#}"));
                n_chunks += usize::from(!changes.is_empty());
                for change in changes {
                    let is_true = change_delivers(place, query, &keys, &arguments, change, id);
                    assert!(is_true, "{query:?} {strategy} {budget} {policy:?}: {id} is not delivered by {change:#}");
                    n_changes += 1;
                }
            }
        }
    }
    (n_chunks, n_changes)
}

#[test]
fn every_change_that_is_told_delivers_the_chunk() {
    let place = tides();
    for page in ["ARCHITECTURE.md", "docs/serve.md", "CONTRIBUTING.md"] {
        place.write(&format!("notes/{page}"), std::fs::read(root().join(page)).unwrap());
    }
    place.index(&["notes", "--chunk-tokens", "16"]);
    let queries = [QUERY, "which rooms may know which"];
    let (n_chunks, n_changes) = make_every_change(&place, &queries);
    println!("{n_changes} changes of {n_chunks} chunks");
    assert!(n_chunks >= 15 && n_changes >= 25, "{n_changes} changes of {n_chunks} chunks");
}

#[test]
fn every_change_that_is_told_of_real_questions_delivers_the_chunk() {
    let Some(set) = crate::support::data("hotpot200") else { return };
    let place = Place::new();
    place.ok(&["index", "--model", &tiny_model(), &set.display().to_string(), "--chunk-tokens", "64"]);
    let lines = std::fs::read_to_string(set.join("queries.jsonl")).unwrap();
    let questions: Vec<Value> = lines.lines().step_by(80).map(|line| serde_json::from_str(line).unwrap()).collect();
    let questions: Vec<&str> = questions.iter().map(|question| question["text"].as_str().unwrap()).collect();
    let (n_chunks, n_changes) = make_every_change(&place, &questions);
    println!("{n_changes} changes of {n_chunks} chunks");
    assert!(n_chunks >= 15, "{n_changes} changes of {n_chunks} chunks");
}

#[test]
fn why_knows_every_other_reason_too() {
    let place = tides();
    let wide = |strategy: &'static str| ["--budget", "2000", "--strategy", strategy];
    let (id, because, chunk) = why(&place, "", &wide("bubble"), "too_redundant");
    let partner = id.replace("copy", "tides");
    assert_eq!(because, format!("says the same as {partner}: containment 1, not below delta = 0.9"));
    assert_eq!((value(&chunk, "policy.gate"), value(&chunk, "exclude")), ("\"none\"", partner.as_str()));
    assert!(delivers(&place, "gate = \"none\"", &wide("bubble"), &id));
    let (_, because, _) = why(&place, "", &wide("cento"), "too_redundant");
    assert!(because.contains("cento.same_words = 0.8") && because.contains("cento.same_meaning = 0.98"), "{because}");

    let (_, because, chunk) = why(&place, "", &wide("flat"), "passed_all_gates");
    assert!(because.starts_with("delivered whole: ") && chunk["changes"].is_null(), "{because}");
    let long = Place::new();
    long.write("notes/tides.md", TIDES);
    long.index(&["notes", "--chunk-tokens", "document"]);
    let (_, because, _) = why(&long, "", &["--budget", "50", "--strategy", "flat"], "cut_to_fit");
    assert!(because.contains("delivered in part") && because.contains("bytes "), "{because}");

    let few = ["--budget", "2000", "--candidates", "3", "--mode", "dense", "--strategy", "rse"];
    let (_, because, chunk) = why(&place, "", &few, "not_proposed");
    assert!(because.starts_with("not found by itself, and in no segment worth 0.5 or more"), "{because}");
    // A lower rse.minimum_value would need a lower penalty too, which does alone.
    let settings = chunk["changes"].as_array().unwrap().iter().map(|change| change["settings"].as_array().unwrap());
    let names: Vec<Vec<&str>> =
        settings.map(|all| all.iter().map(|moved| moved["setting"].as_str().unwrap()).collect()).collect();
    assert_eq!(names, [["policy.rse.irrelevant_chunk_penalty"]], "{chunk:#}");
    let (_, because, chunk) = why(&place, "gate = \"none\"\n[cento]\nrun_max = 1\n", &wide("cento"), "run_too_long");
    assert!(because.contains("more than 1 chunk"), "{because}");
    assert!(value(&chunk, "policy.cento.run_max").parse::<usize>().unwrap() > 1);
    let (_, because, chunk) =
        why(&place, "gate = \"none\"\n[cento]\ncandidates = 2\n", &wide("cento"), "beyond_candidates");
    assert!(because.contains("beyond the 2 likeliest"), "{because}");
    assert!(value(&chunk, "policy.cento.candidates").parse::<usize>().unwrap() > 2);
    let (_, because, chunk) = why(&place, "relevance = \"tf\"\n", &wide("bubble"), "low_relevance");
    assert!(because.contains("no term of the query"), "{because}");
    assert_eq!(value(&chunk, "policy.relevance"), "\"fused\"");
}

#[test]
fn why_needs_no_collection_takes_documents_and_names_the_nearest_ids() {
    let place = tides();
    context(&place, "trace.json", &["--budget", "100"]);
    std::fs::remove_dir_all(place.path(".cento")).unwrap();
    let answer = place.json(&["why", "trace.json", "notes/tides.md"]);
    let chunks = answer["chunks"].as_array().unwrap();
    assert!(chunks.len() > 3 && chunks.iter().all(|chunk| chunk["record"]["document"] == "notes/tides.md"), "{answer}");
    assert!(answer["untried"].as_str().is_some() && chunks.iter().all(|chunk| chunk["changes"].is_null()), "{answer}");
    let told = place.ok(&["why", "trace.json", "notes/tides.md#1"]);
    assert!(told.err.contains("no change was tried: ") && told.err.contains(".cento"), "{told:?}");
    let told = told.out;
    for word in ["notes/tides.md#1: ", "dense: rank ", "lexical: rank ", "normalised ", "weight ", "because ", "place "]
    {
        assert!(told.contains(word), "no {word:?} in {told}");
    }
    place.run(&["why", "trace.json", "notes/tide.md#1"]).fails(1, &["notes/tide.md#1", "nearest", "notes/tides.md#1"]);
}

#[test]
fn why_not_follows_a_document_to_the_stage_that_lost_it() {
    let place = tides();
    let lost = |doc: &str, arguments: &[&str]| {
        let asked = [&["why-not", QUERY, doc], arguments].concat();
        let answer = place.json(&asked);
        let told = place.ok(&asked).out;
        match answer["lost"]["stage"].as_str() {
            Some(stage) => assert!(told.contains(&format!("lost at {stage}: ")), "{told}"),
            None => assert!(told.ends_with("delivered\n"), "{told}"),
        }
        answer
    };
    let wide = ["--budget", "2000"];
    let with = |more: &[&'static str]| [&wide[..], more].concat();

    assert_eq!(lost("notes/moon.md", &with(&["--within", "notes/bread.md"]))["lost"]["stage"], "scope");
    let filtered = lost("notes/moon.md", &with(&["--filter", "title = \"Bread\""]));
    assert_eq!(filtered["lost"]["stage"], "filter");
    assert!(filtered["lost"]["because"].as_str().unwrap().contains("title = \"Bread\""), "{filtered}");

    let lexical = lost("notes/moon.md", &with(&["--mode", "lexical"]));
    assert_eq!((&lexical["lost"]["stage"], &lexical["lexical"]), (&json!("lexical"), &Value::Null));
    assert!(lexical["terms"]["terms"].as_array().unwrap().iter().all(|term| term["tf"] == 0.0), "{lexical}");

    let dense = lost("notes/bread.md", &with(&["--mode", "dense", "--candidates", "1", "--strategy", "flat"]));
    assert_eq!(dense["lost"]["stage"], "dense");
    let rank = dense["dense"]["rank"].as_u64().unwrap();
    let moved = json!({"setting": "candidates", "value": rank.to_string(), "instead": "1"});
    assert_eq!(dense["lost"]["changes"][0], json!({"settings": [moved]}));
    let reached = ["--budget", "2000", "--mode", "dense", "--candidates", &rank.to_string(), "--strategy", "flat"];
    assert_eq!(place.json(&[&["why-not", QUERY, "notes/bread.md"], &reached[..]].concat())["lost"], Value::Null);

    let both = lost("notes/bread.md#0", &with(&["--candidates", "1"]));
    assert_eq!(both["lost"]["stage"], "lexical and dense");
    assert!(both["fused"].is_null() && both["assembly"] == json!([]), "{both}");

    let assembly = lost("notes/copy.md", &with(&["--strategy", "bubble"]));
    assert_eq!(assembly["lost"]["stage"], "assembly");
    assert!(assembly["lost"]["because"].as_str().unwrap().contains("says the same as notes/tides.md#"), "{assembly}");
    // The places are those of the arms, and the matched terms those of the score.
    let hit = &place.json(&["search", QUERY, "-k", "20", "--mode", "lexical"])["hits"];
    let first = hit.as_array().unwrap().iter().find(|hit| hit["document"] == "notes/copy.md").unwrap();
    assert_eq!((&assembly["lexical"]["chunk_id"], &assembly["lexical"]["rank"]), (&first["id"], &first["rank"]));
    assert_eq!(assembly["lexical"]["score"], assembly["terms"]["score"]);

    assert_eq!(lost("notes/tides.md", &with(&["--strategy", "bubble"]))["lost"], Value::Null);
}

#[test]
fn why_not_names_the_phrase_that_is_not_there_word_by_word() {
    let place = tides();
    let lost = |more: &[&str]| {
        let asked = [&["why-not", "\"full moon\"", "notes/bread.md", "--budget", "2000"], more].concat();
        let told = place.ok(&asked).out;
        (place.json(&asked)["lost"].clone(), told)
    };
    let (phrase, told) = lost(&[]);
    let words = json!({"settings": [{"setting": "phrases", "value": "words", "instead": null}]});
    assert_eq!((&phrase["stage"], &phrase["changes"]), (&json!("phrases"), &json!([words])), "{phrase}");
    assert!(told.contains("notes/bread.md does not have word by word: \"full moon\""), "{told}");
    assert!(told.contains("--phrases words"), "{told}");
    assert_eq!(lost(&["--phrases", "words"]).0, Value::Null);
    let (filtered, told) = lost(&["--filter", "title = \"Bread\""]);
    assert_eq!(filtered["stage"], "phrases", "the filter admits it: {told}");
    assert_eq!(lost(&["--filter", "title = \"Moon\""]).0["stage"], "filter");
}

#[test]
fn why_not_of_what_is_not_there_names_the_nearest() {
    let place = tides();
    place.run(&["why-not", QUERY, "notes/tide.md", "--budget", "100"]).fails(1, &["notes/tide.md", "notes/tides.md"]);
    place.run(&["why-not", QUERY, "notes/tides.md#99", "--budget", "100"]).fails(1, &["notes/tides.md", "chunk 99"]);
    place.run(&["why-not", " ", "notes/tides.md", "--budget", "100"]).fails(2, &["empty"]);
    place.run(&["why-not", QUERY, "notes/tides.md", "--budget", "1"]).fails(2, &["budget"]);
}
