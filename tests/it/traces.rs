//! What traces are good for: replay, why, why-not, diff; and what a trace file is.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Place, TIDES, root, tiny_model};

pub(crate) const QUERY: &str = "what moves the tide";

/// Short chunks of tides, the same once more, and of bread and the moon.
pub(crate) fn tides() -> Place {
    let place = Place::new();
    place.write("notes/tides.md", TIDES);
    place.write("notes/copy.md", TIDES);
    place.write(
        "notes/bread.md",
        "# Bread\n\nBread is flour, water, salt and time.\n\n## Sourdough\n\nA starter holds wild yeast.\n",
    );
    place.write("notes/moon.md", "# Moon\n\nThe moon, the moon, the full moon.\n");
    place.index(&["notes", "--chunk-tokens", "16"]);
    place
}

/// Makes a context with its trace in `file`; stdout.
pub(crate) fn context(place: &Place, file: &str, arguments: &[&str]) -> String {
    place.ok(&[&["context", QUERY, "--trace", file], arguments].concat()).out
}

pub(crate) fn trace(place: &Place, file: &str) -> Value {
    serde_json::from_slice(&place.read(file)).unwrap()
}

fn records(trace: &Value) -> &Vec<Value> {
    trace["assembly"]["records"].as_array().unwrap()
}

/// Changes one value of a trace.
pub(crate) fn damage(place: &Place, file: &str, into: &str, pointer: &str, value: Value) {
    let mut trace = trace(place, file);
    *trace.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
    place.write(into, trace.to_string());
}

const STRATEGIES: [&str; 12] = [
    "cento",
    "flat",
    "mmr",
    "adaptive",
    "bubble",
    "rse",
    "rse-kadane",
    "rse-exact",
    "window",
    "parent",
    "automerge",
    "seal",
];

#[test]
fn a_replay_gives_the_same_bytes_for_every_strategy_and_format() {
    let place = tides();
    place.write(
        "policy.toml",
        "delta = 0.30000000000000004\n[rho]\n\"*\" = 0.7999999999999999\n[priors]\ncauses = 0.1\n[cento]\nrun_max = 3\n",
    );
    let settings: [&[&str]; 4] = [
        &[],
        &["--policy", "policy.toml", "--tokenizer", "model"],
        &["--mode", "lexical", "--within", "notes/copy.md", "--filter", "title = \"Tides\"", "--tokenizer", "cl100k"],
        &["--mode", "dense", "--exact", "--candidates", "4", "--fusion", "rrf"],
    ];
    for (n, strategy) in STRATEGIES.into_iter().enumerate() {
        let asked = ["--budget", "150", "--strategy", strategy, "--format", ["md", "xml", "json"][n % 3]];
        let delivered = context(&place, "trace.json", &[&asked[..], settings[n % 4]].concat());
        let replayed = place.ok(&["replay", "trace.json"]);
        assert_eq!(replayed.out, delivered, "{strategy}");
        assert!(!replayed.err.contains("differs"), "{strategy}: {replayed:?}");
        let answer = place.json(&["replay", "trace.json"]);
        assert_eq!((&answer["same"], &answer["differences"]), (&json!(true), &json!([])), "{strategy}");
    }
    for format in ["md", "xml", "json"] {
        for settings in settings {
            let delivered =
                context(&place, "trace.json", &[&["--budget", "90", "--format", format], settings].concat());
            assert_eq!(place.ok(&["replay", "trace.json", "--threads", "3"]).out, delivered, "{format} {settings:?}");
        }
    }
}

#[test]
fn a_record_says_where_its_chunk_lies_and_a_trace_without_that_still_replays() {
    let place = tides();
    let delivered = context(&place, "trace.json", &["--budget", "90", "--strategy", "flat"]);
    let mut earlier = trace(&place, "trace.json");
    let records = earlier.pointer_mut("/assembly/records").unwrap().as_array_mut().unwrap();
    assert!(records.len() > 5, "{records:?}");
    for record in records {
        let span = record.as_object_mut().unwrap().remove("span").unwrap();
        let chunk = place.json(&["get", record["chunk_id"].as_str().unwrap()]);
        assert_eq!(json!([span["start"], span["end"]]), chunk["span"], "{record}");
    }
    place.write("earlier.json", earlier.to_string());
    let replayed = place.ok(&["replay", "earlier.json"]);
    assert_eq!(replayed.out, delivered);
    assert_eq!(place.json(&["replay", "earlier.json"])["differences"], json!([]));
    assert!(place.ok(&["diff", "earlier.json", "trace.json"]).out.contains("the contexts are the same"));
    let why = |file: &str| place.ok(&["why", file, "notes/bread.md"]).out;
    assert_eq!(why("earlier.json"), why("trace.json"));
    // What a trace does say is compared.
    damage(&place, "trace.json", "moved.json", "/assembly/records/0/span/start", json!(1_000_000));
    let replayed = place.run(&["replay", "moved.json", "--json"]);
    assert_eq!(replayed.code, 1, "{replayed:?}");
    let moved: Value = serde_json::from_str(&replayed.out).unwrap();
    let moved = &moved["differences"];
    let first = trace(&place, "trace.json").pointer("/assembly/records/0/chunk_id").unwrap().clone();
    assert_eq!(moved[0]["what"], format!("candidate {}", first.as_str().unwrap()), "{moved}");
    assert_eq!(moved[0]["before"], "span.start 1000000", "{moved}");
}

#[test]
fn a_trace_that_was_changed_is_not_the_trace_of_its_bytes() {
    let place = tides();
    context(&place, "trace.json", &["--budget", "150", "--strategy", "cento"]);
    let whole = trace(&place, "trace.json");
    let id = records(&whole)[0]["chunk_id"].as_str().unwrap().to_owned();
    for (pointer, value, what) in [
        ("/delivered/citations/0/span/start", json!(7), "delivered.citations.0.span.start"),
        ("/delivered/citations/0/document", json!("notes/else.md"), "delivered.citations.0.document"),
        ("/delivered/n_tokens", json!(1), "delivered.n_tokens"),
        ("/assembly/manifest/selected/0", json!("notes/else.md#0"), "assembly.manifest.selected.0"),
        ("/assembly/manifest/tokens", json!(1), "assembly.manifest.tokens"),
        ("/assembly/manifest/certificate/bound", json!(9.5), "assembly.manifest.certificate.bound"),
        ("/assembly/config/n_candidates", json!(99), "assembly.config.n_candidates"),
        ("/assembly/warnings", json!(["all is well"]), "assembly.warnings.0"),
        ("/assembly/records/0/span/end", json!(1), &*format!("candidate {id}")),
        ("/assembly/records/0/rank", json!(4), "record 1"),
        ("/delivered/blake3", json!("00"), "delivered"),
    ] {
        damage(&place, "trace.json", "changed.json", pointer, value);
        let replayed = place.run(&["replay", "changed.json"]);
        replayed.fails(1, &[&format!("differs: {what}: ")]);
        assert_eq!(replayed.out, "", "{pointer}");
        let told =
            if pointer == "/delivered/blake3" { "not the same bytes" } else { "it was changed after it was made" };
        assert!(replayed.err.contains(told), "{pointer}: {replayed:?}");
    }
}

#[test]
fn a_collection_that_went_on_is_asked_as_it_was_and_a_generation_that_is_gone_is_said() {
    let place = tides();
    let delivered = context(&place, "trace.json", &["--budget", "120", "--strategy", "flat"]);
    let index = |text: &str| {
        place.write("notes/new.md", text);
        place.index(&["notes", "--chunk-tokens", "16"]);
    };
    index("# Tides\n\nThe moon moves the tide, what else moves the tide?\n");
    assert_eq!(place.ok(&["replay", "trace.json"]).out, delivered, "the generation before is still there");
    let latest = place.run(&["replay", "trace.json", "--latest"]);
    latest.fails(
        1,
        &["generation: 1 in the trace, 2 now", "collection: ", "candidate notes/", "decision ", "delivered: "],
    );
    assert_eq!(latest.out, "", "other bytes are not given for the same");
    index("# Tides\n\nNothing moves the tide.\n");
    place.run(&["replay", "trace.json"]).fails(3, &["generation 1", "is gone", "--latest", "there are 2, 3"]);
    place.run(&["replay", "trace.json", "--generation", "9"]).fails(3, &["no generation 9", "there are 2, 3"]);
    place.run(&["replay", "trace.json", "--generation", "2"]).fails(1, &["generation: 1 in the trace, 2 now"]);
}

#[test]
fn a_collection_that_moved_is_named_and_can_be_pointed_to() {
    let place = tides();
    let delivered = context(&place, "trace.json", &["--budget", "120"]);
    std::fs::rename(place.path(".cento"), place.path("elsewhere")).unwrap();
    place.run(&["replay", "trace.json"]).fails(3, &["trace.json", ".cento", "--collection DIR"]);
    assert_eq!(place.ok(&["replay", "trace.json", "--collection", "elsewhere"]).out, delivered);
    // A setting behind the command line is not what the trace says, and does not replace it.
    place.write("cento.toml", "collection = \"elsewhere\"\n");
    place.run(&["replay", "trace.json"]).fails(3, &["--collection DIR"]);
    // Another collection of the same generation is told apart.
    place.write("other/tides.md", TIDES);
    place.ok(&["index", "other", "--model", &tiny_model(), "--collection", "third"]);
    place
        .run(&["replay", "trace.json", "--collection", "third"])
        .fails(1, &["differs: collection: ", "differs: chunking.chunk_tokens: 16 in the trace, 128 now"]);
}

#[test]
fn what_differs_is_said_in_the_order_in_which_it_follows() {
    let place = tides();
    context(&place, "trace.json", &["--budget", "120", "--strategy", "flat"]);
    let second = |pointer: &str, value: Value| damage(&place, "changed.json", "changed.json", pointer, value);
    damage(&place, "trace.json", "changed.json", "/cento", json!("0.0.1"));
    second("/collection/config/model_fingerprint", json!("abc"));
    second("/collection/config/header", json!("flat"));
    second("/assembly/records/2/retrieval_score", json!(0.125));
    second("/assembly/records/1/final_reason", json!("too_redundant"));
    second("/delivered/n_bytes", json!(1));
    let answer = place.run(&["replay", "changed.json", "--json"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    let what: Vec<&str> =
        answer["differences"].as_array().unwrap().iter().map(|found| found["what"].as_str().unwrap()).collect();
    let trace = trace(&place, "trace.json");
    let id = |n: usize| records(&trace)[n]["chunk_id"].as_str().unwrap();
    let expected = [
        "cento".to_owned(),
        "model".to_owned(),
        "chunking.header".to_owned(),
        format!("candidate {}", id(2)),
        format!("decision {}", id(1)),
        "delivered".to_owned(),
    ];
    assert_eq!(what, expected);
    assert_eq!(answer["differences"][3]["before"], "retrieval_score 0.125");
}

#[test]
fn a_file_that_is_no_trace_is_named_with_the_place() {
    let place = tides();
    context(&place, "trace.json", &["--budget", "120"]);
    let whole = String::from_utf8(place.read("trace.json")).unwrap();
    place.write("cut.json", &whole[..whole.len() / 2]);
    place.write("text.json", "The tide rises.");
    place.write("foreign.json", "{\"version\": 1, \"hits\": []}");
    place.write("list.json", "[1, 2]");
    damage(&place, "trace.json", "newer.json", "/version", json!(4));
    damage(&place, "trace.json", "type.json", "/assembly/config/budget_tokens", json!("many"));
    let mut assembly = trace(&place, "trace.json")["assembly"].clone();
    assembly["version"] = json!(2);
    place.write("older.json", assembly.to_string());
    damage(&place, "trace.json", "filter.json", "/search/filter", json!("year >="));
    damage(&place, "trace.json", "policy.json", "/policy", json!("delta = 7.0"));
    let commands: [&dyn Fn(&str) -> Vec<String>; 3] = [
        &|file| vec!["replay".into(), file.into()],
        &|file| vec!["why".into(), file.into(), "notes/tides.md#1".into()],
        &|file| vec!["diff".into(), "trace.json".into(), file.into()],
    ];
    for command in commands {
        let run = |file: &str| {
            let arguments = command(file);
            place.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        };
        run("missing.json").fails(3, &["missing.json", "No such file"]);
        run("cut.json").fails(3, &["cut.json", "not a trace", "line ", "column "]);
        run("text.json").fails(3, &["text.json", "not a trace", "line 1 column 1"]);
        run("foreign.json").fails(3, &["foreign.json", "not a trace", "missing field"]);
        run("list.json").fails(3, &["list.json", "not a trace"]);
        run("newer.json").fails(3, &["newer.json", "trace version 4", "reads 3", "update cento"]);
        run("older.json").fails(3, &["older.json", "trace version 2", "reads 3", "make the trace again"]);
        run("type.json").fails(3, &["type.json", "\"many\""]);
    }
    place.run(&["replay", "filter.json"]).fails(2, &["filter"]);
    place.run(&["replay", "policy.json"]).fails(2, &["delta"]);
    place.run(&["replay"]).fails(2, &["<TRACE>"]);
    place.run(&["replay", "trace.json", "--latest", "--generation", "1"]).fails(2, &["--latest"]);
}

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

#[test]
fn diff_names_settings_decisions_and_what_was_delivered() {
    let place = tides();
    context(&place, "wide.json", &["--budget", "300", "--strategy", "cento"]);
    context(&place, "again.json", &["--budget", "300", "--strategy", "cento"]);
    context(&place, "narrow.json", &["--budget", "60", "--strategy", "cento"]);
    let same = place.ok(&["diff", "wide.json", "again.json"]);
    assert_eq!(same.out, "the contexts are the same\n");
    let differ = place.run(&["diff", "wide.json", "narrow.json"]);
    assert_eq!(differ.code, 1, "{differ:?}");
    for word in [
        "config.budget_tokens: 300 -> 60",
        "delivered by the first alone",
        "decisions (",
        "tokens: ",
        "value: ",
        "not the same",
    ] {
        assert!(differ.out.contains(word), "no {word:?} in {}", differ.out);
    }
    let answer: Value = serde_json::from_str(&place.run(&["diff", "wide.json", "narrow.json", "--json"]).out).unwrap();
    let (wide, narrow) = (trace(&place, "wide.json"), trace(&place, "narrow.json"));
    let selected = |trace: &Value| {
        let ids = trace["assembly"]["manifest"]["selected"].as_array().unwrap().iter();
        ids.map(|id| id.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let only: Vec<String> = selected(&wide).difference(&selected(&narrow)).cloned().collect();
    assert_eq!(answer["delivered_before"], json!(only));
    assert!(!only.is_empty());
    context(&place, "copy.json", &["--budget", "300", "--strategy", "cento", "--within", "notes/copy.md"]);
    let scoped = place.run(&["diff", "wide.json", "copy.json"]).out;
    assert!(
        scoped.contains("search.scope.0: absent -> notes/copy.md") && scoped.contains("candidates of the first alone"),
        "{scoped}"
    );
}

/// Holds a value to a schema: types, constants, choices, properties, items, references, bounds. A rule it does not know is a panic.
pub(crate) fn hold(schema: &Value, value: &Value, root: &Value, place: &str) -> Result<(), String> {
    let demand = |holds: bool, rule: &Value| match holds {
        true => Ok(()),
        false => Err(format!("{place}: {value} is not {rule}")),
    };
    for (key, rule) in schema.as_object().unwrap() {
        let names = || rule.as_array().into_iter().flatten();
        match key.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => hold(root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap(), value, root, place)?,
            "const" => demand(value == rule, rule)?,
            "enum" => demand(names().any(|choice| choice == value), rule)?,
            "anyOf" => demand(names().any(|schema| hold(schema, value, root, place).is_ok()), rule)?,
            "type" => {
                demand(if rule.is_array() { names().any(|name| is(value, name)) } else { is(value, rule) }, rule)?
            }
            "minimum" => demand(value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()), rule)?,
            "maximum" => demand(value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()), rule)?,
            "pattern" => {
                assert_eq!(rule, "^[0-9a-f]{64}$");
                let is_hex =
                    |text: &str| text.len() == 64 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
                demand(value.as_str().is_none_or(is_hex), rule)?;
            }
            "required" => demand(names().all(|name| value.get(name.as_str().unwrap()).is_some()), rule)?,
            "additionalProperties" => {
                assert_eq!(rule, false);
                for name in value.as_object().into_iter().flat_map(|object| object.keys()) {
                    demand(schema["properties"].get(name).is_some(), &json!(format!("without {name}")))?;
                }
            }
            "properties" => {
                for (name, inner) in rule.as_object().unwrap() {
                    let held = value.get(name).map(|value| hold(inner, value, root, &format!("{place}/{name}")));
                    held.unwrap_or(Ok(()))?;
                }
            }
            "items" => {
                for (n, value) in value.as_array().into_iter().flatten().enumerate() {
                    hold(rule, value, root, &format!("{place}/{n}"))?;
                }
            }
            other => panic!("{place}: {other}"),
        }
    }
    Ok(())
}

fn is(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    }
}

#[test]
fn a_repair_is_seen_in_the_trace_in_why_and_beside_the_context() {
    let place = Place::new();
    place.write("notes/film.md", "# Night Train\n\nNight Train is a 1931 drama film directed by Ada Quist.\n");
    place.write("notes/ada.md", "# Ada Quist\n\nAda Quist was born in Tromso to a baker.\n");
    for number in 0..6 {
        let text = format!("# Town {number}\n\nThe town has a station, and a director was born in town {number}.\n");
        place.write(&format!("notes/town{number}.md"), &text);
    }
    place.index(&["notes"]);
    place.write("policy.toml", "[seal]\nbudget = { items = 2 }\n");
    let question = "In which town was the director of Night Train born?";
    let asked = ["context", question, "--mode", "lexical", "--strategy", "seal", "--policy", "policy.toml"];
    let ran = place.ok(&[&asked[..], &["--trace", "trace.json", "--explain"]].concat());
    let trace = trace(&place, "trace.json");
    let repair = &trace["assembly"]["manifest"]["repair"];
    let swap = repair["loops"][0]["swaps"].as_array().unwrap().last().unwrap().clone();
    let (out, came) = (swap["out"].as_str().unwrap(), swap["in"].as_str().unwrap());
    assert_eq!(came, "notes/ada.md#0", "{repair}");
    let schema: Value = serde_json::from_str(&place.ok(&["replay", "--schema"]).out).unwrap();
    hold(&schema, &trace, &schema, "seal").unwrap();

    let why = place.ok(&["why", "trace.json", out]).out;
    assert!(why.contains(&format!("replaced in loop 1 by {came}: S ")), "{why}");
    for told in [&ran.err, &why] {
        let lines = ["asked for  ", "loop 1", "ledger     ", "verdict    ", "gaps       ", "Ada Quist", "end"];
        assert!(lines.iter().all(|line| told.contains(line)), "{told}");
        assert!(told.contains(&format!("  swap       {came}")) && told.contains(" > S(v) "), "{told}");
    }
    assert!(ran.err.contains(&format!("delivered     {came}")), "{}", ran.err);
    let answer = place.json(&["why", "trace.json", out]);
    let details = &answer["chunks"][0]["record"]["step_details"];
    assert_eq!((&details["partner"], &details["value"]), (&swap["in"], &swap["out_score"]["total"]), "{details}");
    assert_eq!(details["value_needed"], swap["in_score"]["total"]);
    assert_eq!(&answer["repair"], repair);

    assert!(place.ok(&["replay", "trace.json"]).err.contains("the same bytes as in the trace"));
    damage(
        &place,
        "trace.json",
        "bent.json",
        "/assembly/manifest/repair/loops/0/swaps/0/in",
        json!("notes/town1.md#0"),
    );
    assert_eq!(place.run(&["replay", "bent.json"]).code, 1, "a repair that was changed does not hold");
    // A trace that was written before traces had repairs.
    let mut earlier = trace.clone();
    earlier["assembly"]["manifest"].as_object_mut().unwrap().remove("repair");
    for record in earlier["assembly"]["records"].as_array_mut().unwrap() {
        if record["final_reason"] == "not_proposed" {
            record["step_details"] = json!({});
        }
    }
    place.write("earlier.json", earlier.to_string());
    assert!(place.ok(&["replay", "earlier.json"]).err.contains("the same bytes as in the trace"));
}

#[test]
fn every_trace_is_what_the_schema_says() {
    let place = tides();
    let published = place.ok(&["replay", "--schema"]).out;
    assert_eq!(published, std::fs::read_to_string(root().join("docs/trace.schema.json")).unwrap());
    let schema: Value = serde_json::from_str(&published).unwrap();
    place.write(
        "policy.toml",
        "slack = \"none\"\ntheta = \"median\"\nmax_per_document = 3\n[rho]\n\"*\" = 0.3\n[cento]\nleast_share = 1.0\n",
    );
    let settings: [&[&str]; 4] = [
        &["--budget", "90"],
        &["--budget", "2000", "--candidates", "3", "--exclude", "notes/tides.md#1"],
        &["--budget", "40", "--mode", "lexical", "--format", "xml"],
        &["--budget", "150", "--policy", "policy.toml", "--filter", "title exists", "--format", "json"],
    ];
    let (mut reasons, mut details) = (BTreeSet::new(), BTreeSet::new());
    for strategy in STRATEGIES {
        for settings in settings {
            context(&place, "trace.json", &[settings, &["--strategy", strategy]].concat());
            let trace = trace(&place, "trace.json");
            hold(&schema, &trace, &schema, strategy).unwrap();
            for record in records(&trace) {
                reasons.insert(record["final_reason"].as_str().unwrap().to_owned());
                details.extend(record["step_details"].as_object().unwrap().keys().cloned());
            }
        }
    }
    assert!(reasons.contains("unlikely"), "{reasons:?}");
    assert!(reasons.len() >= 7 && details.len() >= 12, "the traces exercise the schema: {reasons:?} {details:?}");
    // What is strict about it finds a field too many, one too few, and a value of another kind.
    let refused = |pointer: &str, value: Option<Value>| {
        let mut trace = trace(&place, "trace.json");
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = trace.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => drop(parent.insert(name.to_owned(), value)),
            None => drop(parent.remove(name)),
        }
        hold(&schema, &trace, &schema, pointer).is_err()
    };
    assert!(refused("/assembly/records/0/mood", Some(json!(1))));
    assert!(refused("/assembly/records/0/final_reason", Some(json!("liked"))));
    assert!(refused("/delivered/blake3", None));
    assert!(refused("/search/candidates", Some(json!(-1))));
    assert!(refused("/version", Some(json!(4))));
}
