//! reproduce and bench: recorded figures run again, the report and its page, and speeds that carry their machine.

use serde_json::{Value, json};

use crate::support::{Place, Ran, binary, tiny_model};
use crate::traces::{context, tides, trace};

/// A plan of two arms over a tiny set, in a folder whose name has a blank.
fn planned() -> Place {
    let place = Place::new();
    place.write(
        "my data/tiny/corpus.jsonl",
        [
            json!({"_id": "tides", "title": "Tides", "text": "The tide rises and falls. The moon pulls the sea."}),
            json!({"_id": "bread", "title": "Bread", "text": "Bread is flour, water, salt and time."}),
            json!({"_id": "stars", "title": "Stars", "text": "Stars are born in clouds of gas."}),
        ]
        .map(|document| format!("{document}\n"))
        .concat(),
    );
    place.write(
        "my data/tiny/queries.jsonl",
        "{\"_id\":\"1\",\"text\":\"what pulls the sea\"}\n{\"_id\":\"2\",\"text\":\"salt water\"}\n",
    );
    place.write("my data/tiny/qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\ttides\t1\n2\tbread\t1\n");
    place.write("plans/arms.toml", plan("nDCG@10"));
    place
}

fn plan(measure: &str) -> String {
    format!(
        r#"
title = "Two arms"
source = "made for a test"
text = "Words and vectors & nothing else."
data = ["tiny"]

[variables]
model = ['{}']
mode = ["lexical", "dense"]

[[step]]
run = "index {{data}}/tiny --format beir --model {{model}} --collection {{work}}/tiny"

[[step]]
run = "run --topics {{data}}/tiny --collection {{work}}/tiny --mode {{mode}} -o {{work}}/{{mode}}.trec"

[[step]]
run = "eval {{data}}/tiny {{work}}/{{mode}}.trec -m {measure}"
figures = {{ row = "tiny", column = "{{mode}}" }}

[[table]]
title = "Quality"
row_title = "set"
measure = "nDCG@10"

[[chart]]
title = "Quality of the arms"
kind = "bars"
x_title = "set"
y_title = "nDCG@10"
measure = "nDCG@10"
"#,
        tiny_model()
    )
}

/// `cento-bench reproduce`, which finds `cento` beside itself.
fn command(place: &Place, arguments: &[&str]) -> std::process::Command {
    let program = binary().with_file_name("cento-bench");
    place.command_of(&program, &[&["reproduce"], arguments].concat())
}

fn bench(place: &Place, arguments: &[&str]) -> Ran {
    Ran::new(arguments, command(place, arguments).output().unwrap())
}

#[track_caller]
fn ok(place: &Place, arguments: &[&str]) -> String {
    let ran = bench(place, arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out
}

fn reproduce(place: &Place, more: &[&str]) -> Ran {
    bench(place, &[&["--plans", "plans", "--work", "my work", "--data", "my data"], more].concat())
}

#[track_caller]
fn reproduced(place: &Place, more: &[&str]) -> Value {
    let ran = reproduce(place, &[&["arms", "--json"], more].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

/// The figures measured, arm by arm.
fn figures(report: &Value) -> Vec<f64> {
    let cells = report["reproductions"][0]["tables"][0]["rows"][0]["cells"].as_array().unwrap();
    cells.iter().map(|cell| cell["actual"].as_f64().unwrap()).collect()
}

#[test]
fn plans_are_listed_and_their_commands_printed_without_running() {
    let place = planned();
    let list = ok(&place, &["--plans", "plans", "--list"]);
    assert!(list.contains("arms") && list.contains("Two arms") && list.contains("tiny"), "{list}");
    let list: Value = serde_json::from_str(&ok(&place, &["--plans", "plans", "--list", "--json"])).unwrap();
    assert_eq!((&list["version"], &list["reproductions"][0]["name"]), (&json!(1), &json!("arms")));
    let commands = reproduce(&place, &["arms", "--dry-run"]);
    assert_eq!((commands.code, commands.out.lines().count()), (0, 5), "{commands:?}");
    assert!(commands.out.lines().all(|line| line.starts_with("cento ")), "{commands:?}");
    assert!(commands.out.contains("--mode lexical -o ") && commands.out.contains("--mode dense -o "), "{commands:?}");
    assert!(!commands.out.contains(['{', '}']), "every variable has its value: {commands:?}");
    assert!(!place.path("my work").exists());
    let by_environment =
        command(&place, &["--plans", "plans", "arms", "--dry-run"]).env("CENTO_DATA", "my data").output();
    assert!(by_environment.unwrap().status.success());
}

#[test]
fn a_second_run_warm_or_cold_gives_the_same_figures() {
    let place = planned();
    let first = reproduced(&place, &[]);
    assert_eq!(figures(&first)[0], 1.0, "both topics have a word that one document has");
    assert_eq!(first["reproductions"][0]["steps"].as_array().unwrap().len(), 5);
    assert!(first["machine"]["n_cores"].as_u64().unwrap() > 0);
    let warm = reproduced(&place, &[]);
    assert_eq!((figures(&warm), &warm["cache"]), (figures(&first), &json!("warm")));
    let cold = reproduced(&place, &["--cold", "--threads", "1"]);
    assert_eq!((figures(&cold), &cold["cache"]), (figures(&first), &json!("cold")));
}

#[test]
fn recorded_figures_are_ok_when_they_come_again_and_fail_the_command_when_they_do_not() {
    let place = planned();
    let unrecorded = reproduce(&place, &["arms"]);
    assert_eq!(unrecorded.code, 0, "{unrecorded:?}");
    assert!(unrecorded.out.contains("0 figures compared"), "{unrecorded:?}");
    assert_eq!(reproduce(&place, &["arms", "--record"]).code, 0);
    let recorded = reproduce(&place, &["arms"]);
    assert_eq!(recorded.code, 0, "{recorded:?}");
    assert!(recorded.out.contains("1.0000 [OK]"), "{recorded:?}");
    assert!(recorded.out.contains("2 figures compared: 2 [OK], 0 [near], 0 [FAIL]"), "{recorded:?}");
    let expect = |lexical: f64| {
        let mut expected: Value = serde_json::from_slice(&place.read("plans/expected/arms.json")).unwrap();
        expected["Quality"]["tiny"]["lexical"] = json!(lexical);
        place.write("plans/expected/arms.json", expected.to_string());
        reproduce(&place, &["arms"])
    };
    let near = expect(0.998);
    assert_eq!(near.code, 0, "{near:?}");
    assert!(near.out.contains("1.0000 [near: +0.0020]"), "{near:?}");
    let failed = expect(0.9);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(
        failed.out.contains("1.0000 [FAIL: +0.1000]") && failed.out.contains("1 [OK], 0 [near], 1 [FAIL]"),
        "{failed:?}"
    );
    assert!(failed.err.contains("arms: FAIL"), "{failed:?}");
}

#[test]
fn a_figure_that_no_longer_comes_fails_the_command() {
    let place = planned();
    assert_eq!(reproduce(&place, &["arms", "--record"]).code, 0);
    place.write("plans/arms.toml", plan("RR@10").replace("row_title", "rows = ['tiny']\nrow_title"));
    let ran = reproduce(&place, &["arms"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("- [FAIL]") && ran.out.contains("2 [FAIL]"), "{ran:?}");
}

#[test]
fn the_page_fetches_nothing_and_comes_again_from_the_report() {
    let place = planned();
    assert_eq!(reproduce(&place, &["arms", "--record"]).code, 0);
    let report = reproduce(&place, &["arms", "--json", "--html", "page.html"]);
    assert_eq!(report.code, 0, "{report:?}");
    let page = String::from_utf8(place.read("page.html")).unwrap();
    for word in ["Two arms", "Words and vectors &amp; nothing else.", "lexical", "<svg"] {
        assert!(page.contains(word), "no {word:?} in the page");
    }
    for attribute in ["src=", "href=", "url(", "@import"] {
        for (at, _) in page.match_indices(attribute) {
            let target = page[at + attribute.len()..].trim_start_matches(['"', '\'']);
            assert!(
                attribute != "@import" && (target.starts_with('#') || target.starts_with("data:")),
                "the page fetches {attribute}{}",
                &target[..target.len().min(60)]
            );
        }
    }
    place.write("report.json", &report.out);
    let text = ok(&place, &["--from", "report.json", "--html", "again.html"]);
    assert!(text.contains("1.0000 [OK]"), "{text}");
    assert!(place.read("again.html") == place.read("page.html"), "the page of the report differs");
    assert_eq!(ok(&place, &["--from", "report.json", "--json"]), report.out);
}

/// The plan of two arms with one context in pictures.
fn pictured(step: &str, trace: &str) -> Place {
    let place = planned();
    let picture = format!("[[step]]\nrun = \"{step}\"\n\n[[picture]]\ntitle = \"One context\"\ntrace = \"{trace}\"\n");
    place.write("plans/arms.toml", plan("nDCG@10") + &picture);
    place
}

const ASKED: &str =
    "context 'what pulls  the sea' --collection {work}/tiny --budget 40 --strategy bubble --trace {work}/one.json";

#[test]
fn a_context_in_pictures_shows_what_its_trace_says() {
    let place = pictured(ASKED, "{work}/one.json");
    let report = reproduced(&place, &["--html", "page.html", "--record"]);
    let trace: Value = serde_json::from_slice(&place.read("my work/one.json")).unwrap();
    let picture = &report["reproductions"][0]["pictures"][0];
    assert_eq!((&picture["title"], &picture["query"]), (&json!("One context"), &json!("what pulls  the sea")));
    assert_eq!(picture["n_tokens"], trace["delivered"]["n_tokens"]);
    assert_eq!((&picture["n_candidates"], &picture["n_weighed"]), (&json!(3), &json!(3)));
    let n_citations = trace["delivered"]["citations"].as_array().unwrap().len();
    let records = trace["assembly"]["records"].as_array().unwrap();
    let rejected: Vec<&Value> = records.iter().filter(|record| record["final_decision"] == "rejected").collect();
    assert!(n_citations > 0 && !rejected.is_empty(), "{trace}");
    let page = String::from_utf8(place.read("page.html")).unwrap();
    assert_eq!(page.matches("<rect class=\"accepted\"").count(), 2 * n_citations, "on wide and on narrow paper");
    assert!(page.contains("does not fit the budget of 40: it needs"), "{page}");
    for record in rejected {
        let id = record["chunk_id"].as_str().unwrap();
        assert!(page.contains(&format!("<th scope=\"row\">{id}</th>")), "{id} is not among the rejected: {page}");
    }
    let text = reproduce(&place, &["arms"]).out;
    assert!(text.contains("One context\nwhat pulls  the sea\nbubble: ") && text.contains(" of 40 tokens: "), "{text}");
    assert!(text.contains(" budget exceeded\n") && text.contains("2 figures compared: 2 [OK]"), "{text}");
    place.write("report.json", report.to_string());
    ok(&place, &["--from", "report.json", "--html", "again.html"]);
    assert!(place.read("again.html") == place.read("page.html"), "the page of the report differs");
}

#[test]
fn a_rejected_candidate_is_outlined_where_its_record_says() {
    let asked = tides();
    context(&asked, "trace.json", &["--budget", "60", "--strategy", "flat"]);
    let place = pictured("status --collection {work}/tiny", "{plans}/tides.json");
    place.write("plans/tides.json", asked.read("trace.json"));
    let picture = &reproduced(&place, &["--record"])["reproductions"][0]["pictures"][0];
    let trace = trace(&asked, "trace.json");
    let records = trace["assembly"]["records"].as_array().unwrap();
    let mut n_outlined = 0;
    for document in picture["documents"].as_array().unwrap() {
        let of_document = records.iter().filter(|record| record["document"] == document["id"]);
        let rejected: Vec<_> = of_document.filter(|record| record["final_decision"] == "rejected").collect();
        let outlined = document["rejected"].as_array().unwrap();
        assert_eq!(outlined.len(), rejected.len(), "{document}");
        for record in rejected {
            let out = outlined.iter().find(|out| out["chunk"] == record["chunk_id"]).unwrap();
            assert_eq!(out["span"], record["span"]);
            n_outlined += 1;
        }
    }
    assert!(n_outlined > 2, "{picture}");
}

#[test]
fn a_picture_without_a_trace_of_this_version_names_its_plan_and_the_file() {
    let place = pictured("status --collection {work}/tiny", "{work}/one.json");
    let ran = reproduce(&place, &["arms", "--record"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for word in ["failed: arms: picture \"One context\": ", "one.json", "no such trace", "--trace FILE"] {
        assert!(ran.out.contains(word), "no {word:?} in {ran:?}");
    }
    assert!(!place.path("plans/expected/arms.json").exists(), "what failed is not recorded");
    let place = pictured(ASKED, "{plans}/old.json");
    place.write("plans/old.json", "{\"version\": 2, \"records\": []}");
    let ran = reproduce(&place, &["arms"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for word in ["failed: arms: picture \"One context\": ", "old.json", "trace version 2"] {
        assert!(ran.out.contains(word), "no {word:?} in {ran:?}");
    }
    let place = pictured(ASKED, "{plans}/old.json");
    reproduce(&place, &["arms"]);
    let mut trace: Value = serde_json::from_slice(&place.read("my work/one.json")).unwrap();
    for record in trace.pointer_mut("/assembly/records").unwrap().as_array_mut().unwrap() {
        record.as_object_mut().unwrap().remove("span").unwrap();
    }
    place.write("plans/old.json", trace.to_string());
    let ran = reproduce(&place, &["arms"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for word in ["failed: arms: picture \"One context\": ", "old.json", "where a candidate lies", "--trace FILE"] {
        assert!(ran.out.contains(word), "no {word:?} in {ran:?}");
    }
    let place = pictured(ASKED, "{wrok}/one.json");
    reproduce(&place, &["arms"]).fails(3, &["{wrok}/one.json", "no variable"]);
    assert!(!place.path("my work/tiny").exists(), "said before anything is run");
    let place = pictured(&ASKED.replace(" the sea'", " the sea"), "{work}/one.json");
    reproduce(&place, &["arms"]).fails(3, &["single quote"]);
}

#[test]
fn a_work_folder_of_others_is_refused_and_left_alone() {
    let place = planned();
    place.write("my work/thesis.tex", "years of work");
    reproduce(&place, &["arms"]).fails(3, &["my work", "cento-bench reproduce", "name another"]);
    reproduce(&place, &["arms", "--cold"]).fails(3, &["my work"]);
    assert_eq!(place.read("my work/thesis.tex"), b"years of work");
    assert_eq!(std::fs::read_dir(place.path("my work")).unwrap().count(), 1);
}

#[test]
fn missing_data_and_unknown_names_tell_the_way_out() {
    let place = planned();
    bench(&place, &["--plans", "plans", "arms"]).fails(2, &["tiny", "--data", "CENTO_DATA"]);
    bench(&place, &["--plans", "plans", "arms", "--data", "plans"]).fails(2, &["--data", "plans", "tiny"]);
    reproduce(&place, &["arm"]).fails(2, &["\"arm\"", "\"arms\"", "--list"]);
    bench(&place, &["--plans", "nowhere", "--list"]).fails(3, &["nowhere", "--plans"]);
    reproduce(&place, &[]).fails(2, &["NAME"]);
    bench(&place, &["--from", "nowhere.json"]).fails(3, &["nowhere.json"]);
    place.write("plans/broken.toml", "title = 1\n");
    reproduce(&place, &["arms"]).fails(3, &["broken.toml", "title"]);
}

#[test]
fn the_program_that_is_measured_can_be_named() {
    let place = planned();
    let named = binary().display().to_string();
    let first = reproduced(&place, &["--cento", &named]);
    assert_eq!((figures(&first)[0], &first["cento"]), (1.0, &json!(env!("CARGO_PKG_VERSION"))));
    let words = ["--plans", "plans", "--work", "other", "--data", "my data", "arms"];
    let missing = command(&place, &words).env("CENTO", "nowhere/cento").output().unwrap();
    Ran::new(&words, missing).fails(3, &["nowhere/cento"]);
    assert!(!place.path("other").exists(), "said before anything is run");
}

#[test]
fn a_step_that_fails_is_shown_with_its_message_and_fails_the_command() {
    let place = planned();
    place.write("plans/arms.toml", plan("nDGC@10"));
    let ran = reproduce(&place, &["arms", "--record"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for word in ["[FAIL]", "failed: cento eval", "lexical.trec' -m nDGC@10", "did you mean nDCG@10?"] {
        assert!(ran.out.contains(word), "no {word:?} in {ran:?}");
    }
    assert!(!place.path("plans/expected/arms.json").exists(), "what failed is not recorded");
}

/// A collection of small chunks with a graph.
fn graph() -> Place {
    let place = Place::new();
    place.write_notes();
    place.ok(&["index", "--model", &tiny_model(), "notes", "--chunk-tokens", "16", "--graph-rows-min", "1"]);
    place
}

#[track_caller]
fn positive(value: &Value) {
    assert!(value.as_f64().is_some_and(|value| value > 0.0 && value.is_finite()), "{value} is not above 0");
}

#[test]
fn a_speed_carries_its_machine_and_what_it_was_measured_over() {
    let place = graph();
    let latency = place.json(&["bench", "latency", "--n-queries", "5", "-k", "3"]);
    let throughput = place.json(&["bench", "throughput", "--n-queries", "5", "--threads", "1"]);
    for answer in [&latency, &throughput] {
        for name in ["cpu", "os", "instructions"] {
            assert!(answer["machine"][name].is_string(), "{answer}");
        }
        positive(&answer["machine"]["n_cores"]);
        positive(&answer["qps"]);
        assert_eq!(answer["n_queries"], 5);
    }
    assert_eq!((&latency["bench"], &latency["k"]), (&json!("latency"), &json!(3)));
    for stage in ["total", "embed", "dense", "lexical", "fuse", "texts"] {
        let [p50, p95, p99] = ["p50", "p95", "p99"].map(|name| latency["stages_ms"][stage][name].as_f64().unwrap());
        assert!(0.0 <= p50 && p50 <= p95 && p95 <= p99, "{stage}: {latency}");
    }
    positive(&throughput["tokens_per_second"]);
    positive(&throughput["n_tokens"]);
    assert_eq!(throughput["n_threads"], 1);
    place.write("topics.tsv", "1\tmoon\n2\tbread\n");
    assert_eq!(place.json(&["bench", "latency", "--topics", "topics.tsv"])["n_queries"], 2);
    let table = place.ok(&["bench", "latency", "--n-queries", "2"]).out;
    assert!(table.contains("queries a second, one after another"), "{table}");
    place.run(&["bench", "latency", "--n-queries", "0"]).fails(2, &["--n-queries"]);
}

#[test]
fn a_wide_search_of_the_graph_finds_what_the_scan_finds() {
    let place = graph();
    let answer = place.json(&["bench", "recall", "-k", "3", "--ef", "1,320"]);
    assert!(answer["machine"]["cpu"].is_string() && answer["n_rows"].as_u64().unwrap() > 5, "{answer}");
    assert_eq!(answer["n_rows"], answer["n_rows_in_graphs"]);
    positive(&answer["exact_qps"]);
    let widths = answer["widths"].as_array().unwrap();
    assert_eq!((widths.len(), &widths[1]["ef"], &widths[1]["recall@3"]), (2, &json!(320), &json!(1.0)), "{answer}");
    for width in widths {
        positive(&width["qps"]);
        positive(&width["speedup"]);
    }
}

#[test]
fn recall_without_a_graph_names_the_way_to_one() {
    Place::indexed().run(&["bench", "recall"]).fails(2, &["graph", "--graph-rows-min 1"]);
}
