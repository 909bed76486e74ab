//! What traces are good for: replay and diff; and what a trace file is.

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

pub(crate) fn records(trace: &Value) -> &Vec<Value> {
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
