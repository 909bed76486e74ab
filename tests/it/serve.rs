//! `cento serve`: the same bytes as other doors, every refusal in one form, and who is answered at all.

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::Place;

/// What a command prints with `--json`.
#[track_caller]
fn printed(place: &Place, arguments: &[&str]) -> Vec<u8> {
    let ran = place.run(&[arguments, &["--json", "--quiet"]].concat());
    assert!(ran.code <= 1, "{ran:?}");
    ran.out.into_bytes()
}

#[track_caller]
fn same(place: &Place, arguments: &[&str], answer: &crate::serving::Answer) {
    assert_eq!(answer.status, 200, "{arguments:?}: {}", answer.text());
    assert_eq!(String::from_utf8(printed(place, arguments)).unwrap(), answer.text(), "{arguments:?}");
}

#[test]
fn questions_have_the_same_bytes_at_every_door() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    for query in ["what moves the sea", "yeast", "sun moon \"tide\" ünï", "nothing of the kind"] {
        for mode in ["hybrid", "dense", "lexical"] {
            for k in [1, 3, 10] {
                let body = json!({"query": query, "mode": mode, "k": k, "explain": k == 3});
                let mut arguments = vec!["search", query, "--mode", mode];
                let number = k.to_string();
                arguments.extend(["-k", &number]);
                arguments.extend((k == 3).then_some("--explain"));
                same(&place, &arguments, &serving.post("/v1/search", &body));
            }
        }
        for strategy in ["cento", "flat", "mmr", "rse-exact", "bubble"] {
            let budgets = if strategy == "cento" { &["60", "300", "auto:200"][..] } else { &["60", "300"] };
            for budget in budgets {
                let body = json!({"query": query, "strategy": strategy, "budget": budget});
                let arguments = ["context", query, "--strategy", strategy, "--budget", budget];
                same(&place, &arguments, &serving.post("/v1/context", &body));
            }
        }
        let body = json!({"id": "notes/bread.md", "context": {"query": query, "budget": 80}});
        let arguments = ["why-not", query, "notes/bread.md", "--budget", "80"];
        same(&place, &arguments, &serving.post("/v1/explain", &body));
    }
    let filtered = json!({"query": "tide", "filter": "type = \"text\"", "within": ["notes/sub/stars.txt"]});
    let arguments = ["search", "tide", "--filter", "type = \"text\"", "--within", "notes/sub/stars.txt"];
    same(&place, &arguments, &serving.post("/v1/search", &filtered));
}

#[test]
fn what_there_is_has_the_same_bytes_at_every_door() {
    let place = Place::indexed();
    place.ok(&["snapshot", "create", "first"]);
    let serving = Serving::start(&place, &["--show-folders"]);
    let get = |rest: &str| serving.get(&format!("/v1/collections/cento{rest}"));
    same(&place, &["status"], &get(""));
    same(&place, &["list"], &get("/documents"));
    same(&place, &["list", "--filter", "type = \"text\""], &get("/documents?filter=type%20%3D%20%22text%22"));
    same(&place, &["fields"], &get("/fields"));
    same(&place, &["snapshot", "list"], &get("/snapshots"));
    for citation in ["notes/tides.md", "notes/tides.md#1", "notes/tides.md bytes 3-20", "tides.md:2-3"] {
        let encoded = citation.replace('#', "%23").replace(' ', "%20");
        same(&place, &["get", citation], &get(&format!("/text?citation={encoded}")));
    }
    let list = serving.get("/v1/collections").json();
    assert_eq!(list, json!({"version": 1, "collections": ["cento"]}));
    let sections = get("/sections?document=notes/tides.md").json();
    let headings: Vec<&str> =
        sections["sections"].as_array().unwrap().iter().map(|section| section["heading"].as_str().unwrap()).collect();
    assert!(headings.ends_with(&["Tides", "Causes", "Spring tides", "Measuring"]), "{sections}");
    get("/sections?document=notes/tide.md").refused(404, "unknown_document");
}

#[test]
fn a_trace_is_made_explained_and_followed() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let question = json!({"query": "what moves the sea", "budget": 60});
    let trace = serving.post("/v1/explain/trace", &question);
    place.ok(&["context", "what moves the sea", "--budget", "60", "--trace", "trace.json"]);
    assert_eq!(String::from_utf8(place.read("trace.json")).unwrap(), trace.text());
    let body = json!({"trace": trace.json()});
    same(&place, &["replay", "trace.json"], &serving.post("/v1/explain/replay", &body));
    let body = json!({"trace": trace.json(), "id": "notes/bread.md"});
    same(&place, &["why", "trace.json", "notes/bread.md"], &serving.post("/v1/explain/why", &body));
    place.ok(&["context", "what moves the sea", "--budget", "90", "--trace", "other.json"]);
    let other: Value = serde_json::from_slice(&place.read("other.json")).unwrap();
    let body = json!({"before": trace.json(), "after": other});
    same(&place, &["diff", "trace.json", "other.json"], &serving.post("/v1/explain/diff", &body));

    place.write("notes/more.md", "# More\n\nThe sea moves with wind too.\n");
    place.index(&["notes"]);
    let replayed = serving.told("/v1/explain/replay", &json!({"trace": trace.json()}));
    assert_eq!((&replayed["same"], &replayed["generation"]), (&true.into(), &1.into()), "the trace's own generation");
    let replayed = serving.told("/v1/explain/replay", &json!({"trace": trace.json(), "on": "latest"}));
    assert_eq!((&replayed["generation"], &replayed["differences"][0]["what"]), (&2.into(), &"generation".into()));
    place.ok(&["snapshot", "create", "second"]);
    let on = |on: Value| serving.post("/v1/explain/replay", &json!({"trace": trace.json(), "on": on}));
    for (asked, generation) in
        [(json!({"generation": 1}), 1), (json!({"generation": 2}), 2), (json!({"snapshot": "second"}), 2)]
    {
        assert_eq!(on(asked.clone()).json()["generation"], generation, "{asked}");
    }
    assert!(on(json!({"generation": 99})).refused(404, "unknown_generation").contains("\"on\""));
    on(json!({"snapshot": "third"})).refused(404, "unknown_snapshot");
    on(json!({"tag": "x"})).refused(400, "request");
    let mut gone = trace.json();
    gone["collection"]["generation"] = 99.into();
    let why = serving.post("/v1/explain/why", &json!({"trace": gone, "id": "notes/bread.md"}));
    let folder = place.path("").display().to_string();
    assert!(why.json()["untried"].as_str().unwrap().contains("99") && !why.text().contains(&folder), "{}", why.text());
    let mut newer = trace.json();
    newer["version"] = 99.into();
    serving.post("/v1/explain/replay", &json!({"trace": newer})).refused(400, "setting");
    let mut forged = trace.json();
    forged["assembly"]["config"]["budget_tokens"] = json!(1_u64 << 50);
    serving.post("/v1/explain/replay", &json!({"trace": forged})).refused(400, "setting");
    let search = serving.told("/v1/search", &json!({"query": "wind"}));
    assert_eq!(search["generation"], 2, "a commit is seen by the next request");
}

#[test]
fn many_questions_are_answered_in_one_request() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let words = ["sea", "yeast", "stars", "crust", "moon"];
    let queries: Vec<Value> =
        (0..70).map(|n| json!({"id": format!("q{n}"), "query": format!("{} {n}", words[n % 5])})).collect();
    let batch = json!({"queries": queries, "search": {"k": 3}});
    let answer = serving.post("/v1/search/batch", &batch);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    let text = answer.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 70);
    for (line, query) in lines.iter().zip(&queries) {
        let alone = serving.post("/v1/search", &json!({"query": query["query"], "k": 3})).text();
        assert_eq!(*line, format!("{{\"id\":{},\"answer\":{}}}", query["id"], alone.trim_end()));
    }
    let topics: String =
        queries.iter().map(|query| format!("{}\n", json!({"_id": query["id"], "text": query["query"]}))).collect();
    place.write("topics.jsonl", topics);
    let run = place.ok(&["run", "--topics", "topics.jsonl", "-k", "3", "--quiet"]).out;
    let accept = [("Accept", "text/plain"), ("Content-Type", "application/json")];
    let trec = serving.ask("POST", "/v1/search/batch", &accept, batch.to_string().as_bytes());
    assert_eq!((trec.status, trec.text()), (200, run));
    serving.post("/v1/search/batch", &json!({"queries": []})).refused(400, "setting");
    let bad = json!({"queries": [{"id": "a", "query": "x"}], "search": {"k": 0}});
    serving.post("/v1/search/batch", &bad).refused(400, "setting");
}

#[test]
fn every_refusal_has_one_form() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let search = |body: &str| serving.ask("POST", "/v1/search", &[], body.as_bytes());
    assert!(search(r#"{"qeury": "x"}"#).refused(400, "unknown_field").contains("did you mean"));
    assert!(search(r#"{"query": 7}"#).refused(400, "request").contains("\"parameter\":\"query\""));
    assert!(search(r#"{"query": "  "}"#).refused(400, "empty_query").contains("\"parameter\":\"query\""));
    assert!(search(r#"{"query": "x", "k": 0}"#).refused(400, "setting").contains("\"parameter\":\"k\""));
    assert!(search(r#"{"query": "x", "k": 5000}"#).refused(400, "too_many_results").contains("\"parameter\":\"k\""));
    for (body, code) in
        [("", "request"), ("[]", "request"), ("{", "request"), ("null", "request"), ("\u{feff}{}", "request")]
    {
        search(body).refused(400, code);
    }
    for (body, parameter) in [
        (json!({"query": "tide", "budget": 1}), "budget"),
        (json!({"query": "tide", "filter": "colour = 3"}), "filter"),
        (json!({"query": "tide", "budget": 9, "include": ["notes/tides.md"]}), "include"),
    ] {
        let refused = serving.post("/v1/context", &body);
        assert_eq!((refused.status, &refused.json()["error"]["parameter"]), (400, &parameter.into()), "{body}");
    }
    let filter = search(r#"{"query": "x", "filter": "colour = 3"}"#);
    assert!(filter.status == 400 && filter.text().contains("/fields"), "{}", filter.text());
    serving.get("/v1/search").refused(405, "method");
    serving.get("/v2/nothing").refused(404, "route");
    serving.get("/v1/collections/notes").refused(404, "unknown_collection");
    serving.post("/v1/search?collection=notes", &json!({"query": "x"})).refused(404, "unknown_collection");
    serving.post("/v1/search?colection=cento", &json!({"query": "x"})).refused(400, "unknown_field");
    serving.get("/v1/collections/cento/documents?fitler=x").refused(400, "unknown_field");
    serving.get("/v1/collections/cento/text?citation=a&citation=b").refused(400, "request");
    let unknown = serving.get("/v1/collections/cento/text?citation=notes/tide.md");
    assert!(unknown.refused(404, "unknown_document").contains("notes/tides.md"));
    let far = serving.get("/v1/collections/cento/text?citation=elsewhere");
    assert!(far.refused(404, "unknown_document").contains("GET /v1/collections/{collection}/documents lists them"));
    let answer = serving.post("/v1/search", &json!({"query": "tide"}));
    assert_eq!(answer.header("x-request-id").map(str::len), Some(36), "{}", answer.head);
}

#[test]
fn a_server_says_how_it_is() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    serving.told("/v1/search", &json!({"query": "a secret question"}));
    serving.get("/v1/collections/cento/text?citation=a-secret-document");
    serving.get("/a-secret-address");
    assert_eq!(serving.get("/health").text(), "{\"status\":\"ok\"}\n");
    let metrics = serving.get("/metrics").text();
    for line in [
        "cento_requests_total{route=\"/v1/search\",status=\"200\"} 1",
        "cento_requests_total{route=\"unknown\",status=\"404\"} 1",
        "cento_request_seconds_count{route=\"/v1/search\"} 1",
        "cento_stage_seconds_count{stage=\"embed\"} 1",
        "cento_queue_waiting{lane=\"bulk\"} 0",
        "cento_generation{collection=\"cento\"} 1",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    let document = serving.get("/openapi.json").json();
    assert_eq!(document["paths"]["/v1/search"]["post"]["operationId"], "post_v1_search");
    let log = serving.log();
    assert!(log.len() >= 5 && log.iter().all(|line| !line.contains("secret")), "{log:#?}");
    let first: Value = serde_json::from_str(&log[0]).unwrap();
    assert_eq!(
        (&first["route"], &first["status"], &first["method"]),
        (&"/v1/search".into(), &200.into(), &"POST".into())
    );
    assert!(first["request"].is_string() && first["ms"].is_f64() && first["unix_ms"].is_u64(), "{first}");
}

#[test]
fn several_collections_are_asked_by_name() {
    let place = Place::new();
    place.write_notes();
    place.write("other/rain.md", "# Rain\n\nRain falls from clouds.\n");
    place.index(&["notes", "--collection", "all/notes"]);
    place.index(&["other", "--collection", "all/other"]);
    place.write("all/nothing/readme.txt", "no collection");
    let serving = Serving::start(&place, &["--collections", "all"]);
    assert_eq!(serving.get("/v1/collections").json()["collections"], json!(["notes", "other"]));
    let found = serving.told("/v1/search?collection=other", &json!({"query": "rain"}));
    assert_eq!(found["hits"][0]["document"], "other/rain.md");
    serving.post("/v1/search", &json!({"query": "rain"})).refused(400, "request");
    let models = serving.get("/v1/models").json();
    assert_eq!(models["data"].as_array().unwrap().len(), 1, "one encoder for both: {models}");
    let empty = place.run(&["serve", "--listen", "127.0.0.1:0", "--collections", "all/nothing"]);
    empty.fails(3, &["none of its folders is a collection"]);
    place.run(&["serve", "--listen", "127.0.0.1:0", "--collection", "gone"]).fails(3, &["gone", "cento index"]);
}

#[test]
fn embeddings_are_asked_for_in_the_words_of_several_clients() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let long = "the tide and the moon ".repeat(200);
    let embed = |more: Value| {
        let mut body = json!({"input": [long, "a"], "model": "any"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serving.post("/v1/embeddings", &body)
    };
    embed(json!({})).refused(413, "too_long");
    let whole = embed(json!({"truncate_prompt_tokens": -1, "encoding_format": null})).json();
    assert_eq!((&whole["usage"]["truncated"], &whole["object"]), (&1.into(), &"list".into()), "{whole}");
    let few = embed(json!({"truncate_prompt_tokens": 5, "dimensions": null, "user": null})).json();
    assert_eq!(few["usage"]["truncated"], 1, "{few}");
    let short = serving.told("/v1/embeddings", &json!({"input": "a"}))["usage"]["prompt_tokens"].as_u64().unwrap();
    assert_eq!(few["usage"]["prompt_tokens"], 5 + short, "of the long one five");
    assert!(few["data"][0] != whole["data"][0] && few["data"][1] == whole["data"][1]);
    for tokens in [json!(0), json!(-2), json!(2), json!(100_000), json!(1.5), json!("5")] {
        let refused = embed(json!({"truncate_prompt_tokens": tokens}));
        assert_eq!(refused.status, 400, "{tokens}: {}", refused.text());
        assert_eq!(refused.json()["error"]["parameter"], "truncate_prompt_tokens", "{tokens}");
    }
    let models = serving.get("/v1/models").json();
    let one = serving.get(&format!("/v1/models/{}", models["data"][0]["id"].as_str().unwrap()));
    assert_eq!((one.status, &one.json()), (200, &models["data"][0]));
    assert!(serving.get("/v1/models/gpt-4").refused(404, "model").contains("tiny"));
}
