//! What a context may be asked for besides its question: chunks in or out, an order, a budget left to the curve, a language model.

use serde_json::{Value, json};

use crate::support::{Ran, Server};
use crate::traces::{QUERY, context, damage, hold, tides, trace};

#[test]
fn what_is_included_excluded_and_ordered_is_replayed() {
    let place = tides();
    let asked = ["--budget", "120", "--include", "notes/bread.md#0", "--exclude", "notes/copy.md", "--order", "edges"];
    let text = context(&place, "trace.json", &asked);
    assert!(text.contains("flour, water") && !text.contains("notes/copy.md"), "{text}");
    assert_eq!(place.ok(&["replay", "trace.json"]).out, text);
    let why = place.ok(&["why", "trace.json", "notes/copy.md#1"]).out;
    assert!(why.contains("the request leaves it out"), "{why}");
    let published: Value = serde_json::from_str(&place.ok(&["replay", "--schema"]).out).unwrap();
    hold(&published, &trace(&place, "trace.json"), &published, "included").unwrap();

    let all = context(&place, "whole.json", &["--budget", "200", "--include", "notes/bread.md"]);
    assert!(all.contains("flour, water") && all.contains("wild yeast"), "a document is all of its chunks: {all}");
    for (flag, id, words) in [
        ("--include", "notes/bred.md", "no document \"notes/bred.md\" in this collection; nearest: \"notes/bread.md\""),
        (
            "--exclude",
            "notes/bread.md#77",
            "notes/bread.md: no chunk 77 in the document, which has 2 that can be searched",
        ),
    ] {
        place.run(&["context", QUERY, "--budget", "120", flag, id]).fails(1, &[words]);
    }
    let both = ["context", QUERY, "--budget", "120", "--include", "notes/bread.md#0", "--exclude", "notes/bread.md"];
    place.run(&both).fails(2, &["notes/bread.md#0 cannot be included", "left out at once"]);
    let long = ["context", QUERY, "--budget", "12", "--include", "notes/bread.md"];
    place.run(&long).fails(2, &["what must be included (notes/bread.md#0", "needs ", "the budget is 12"]);
}

#[test]
fn a_budget_may_be_left_to_the_curve() {
    let place = tides();
    let curve = place.json(&["context", QUERY, "--budget", "300", "--budget-curve"]);
    let points = curve["points"].as_array().unwrap();
    let value = |point: &Value| point["value"].as_f64().unwrap();
    assert!(points.len() > 1 && points.windows(2).all(|pair| value(&pair[0]) < value(&pair[1])), "{curve}");
    let knee = curve["knee"].as_u64().unwrap();
    assert!(curve["solved"].as_array().unwrap().iter().any(|solved| solved["tokens"] == knee));
    let table = place.ok(&["context", QUERY, "--budget", "300", "--budget-curve"]).out;
    assert!(table.contains("knee") && table.ends_with('\n'), "{table}");

    let context = place.json(&["context", QUERY, "--budget", "auto:300", "--trace", "auto.json"]);
    assert_eq!(context["budget_tokens"], knee);
    let delivered = context["certificate"]["value"].as_f64().unwrap();
    let within = points.iter().filter(|point| point["tokens"].as_u64().unwrap() <= knee).next_back().unwrap();
    assert!(delivered <= value(within) + 1e-9, "{delivered} {within}");
    assert!(place.ok(&["replay", "auto.json"]).err.contains("the same bytes"));
    place.run(&["context", QUERY, "--budget", "plenty"]).fails(2, &["expected a number of tokens, auto or auto:N"]);
    let flat = ["context", QUERY, "--budget", "auto", "--strategy", "flat"];
    place.run(&flat).fails(2, &["a budget curve is of the strategy cento: `flat` knows no value of a token"]);
}

#[test]
fn an_endpoint_is_asked_for_seal_alone_named_when_it_fails_and_not_asked_by_a_replay() {
    let place = tides();
    let run = |arguments: &[&str]| {
        let asked = ["context", QUERY, "--budget", "90", "--strategy", "seal", "--trace", "trace.json"];
        let arguments = [&asked[..], arguments].concat();
        let output = place.command(&arguments).env("CENTO_ENDPOINT_KEY", "sk-hush-123456").output().unwrap();
        let ran = Ran::new(&arguments, output);
        assert!(!format!("{ran:?}").contains("sk-hush"), "{ran:?}");
        ran
    };
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let url = format!("http://{nobody}/v1");
    run(&["--endpoint", &url]).fails(2, &["--endpoint-model"]);
    run(&["--endpoint-model", "small"]).fails(2, &["--endpoint-model small", "--endpoint URL"]);
    run(&["--endpoint", "localhost", "--endpoint-model", "small"]).fails(2, &["localhost", "http://localhost:8000/v1"]);
    let model = ["--endpoint", &url, "--endpoint-model", "small"];
    run(&[&model[..], &["--endpoint-timeout", "0"]].concat()).fails(2, &["--endpoint-timeout", "1..=3600"]);
    let fails = run(&model);
    fails.fails(4, &[&format!("error: endpoint {nobody}: call 1 (notes/"), "cannot be reached", "--endpoint-fallback"]);
    assert_eq!(fails.out, "");
    let flat = ["context", QUERY, "--budget", "90", "--strategy", "flat"];
    place.run(&[&flat[..], &model].concat()).fails(2, &[&nobody, "the strategy flat", "--strategy seal"]);

    let schema: Value = serde_json::from_str(&place.ok(&["replay", "--schema"]).out).unwrap();
    let alone = run(&[]);
    let fallback = run(&[&model[..], &["--endpoint-fallback"]].concat());
    assert_eq!((fallback.code, &fallback.out), (0, &alone.out));
    assert!(fallback.err.contains(&format!("warning: endpoint {nobody}: call 1")), "{fallback:?}");
    assert!(fallback.err.contains(&format!("endpoint {nobody} (small): 1 call,")), "{fallback:?}");

    // From the settings file, and with answers.
    let server =
        Server::says("{\"entities\": [\"moon\", \"Atlantis\"], \"sufficient\": false, \"missing\": [\"tide\"]}");
    place.write_settings(format!("[context]\nendpoint = {:?}\nendpoint-model = \"small\"\n", server.url));
    let made = run(&[]);
    assert_eq!(made.code, 0, "{made:?}");
    let trace = trace(&place, "trace.json");
    hold(&schema, &trace, &schema, "endpoint").unwrap();
    let record = &trace["assembly"]["manifest"]["endpoint"];
    assert!(record["n_calls"].as_u64() > Some(1) && record["n_dropped"].as_u64() > Some(0), "{record}");
    assert!(!trace.to_string().contains("sk-hush"));
    place.write_settings("");
    damage(&place, "trace.json", "nobody.json", "/assembly/manifest/endpoint/host", json!(nobody));
    for file in ["trace.json", "nobody.json"] {
        assert_eq!(place.ok(&["replay", file]).out, made.out, "{file}");
    }
    damage(&place, "trace.json", "no-answers.json", "/assembly/manifest/endpoint/answers", json!([]));
    place.run(&["replay", "no-answers.json"]).fails(4, &["the trace has no answer", "cento context --trace"]);
}
