//! Reranking: the order is that of the model's scores, at every door; what is wrong with a model or its answer is said.
//!
//! The scores of `cross-bert` are those of transformers 5 for the passages of the notes, cut into chunks of 32 tokens.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::{Place, Ran, Server, root};

const QUERY: &str = "what pulls the sea";

/// Every chunk of the notes, best first, with its logit.
const LOGITS: [(&str, f64); 12] = [
    ("notes/bread.md#1", -0.13737),
    ("notes/bread.md#2", -0.212189),
    ("notes/bread.md#4", -0.216209),
    ("notes/bread.md#3", -0.216345),
    ("notes/tides.md#5", -0.248807),
    ("notes/sub/stars.txt#1", -0.254206),
    ("notes/tides.md#1", -0.273159),
    ("notes/bread.md#0", -0.306677),
    ("notes/sub/stars.txt#0", -0.341983),
    ("notes/tides.md#4", -0.356942),
    ("notes/tides.md#3", -0.3842),
    ("notes/tides.md#2", -0.567304),
];

fn model() -> String {
    root().join("models/parity/cross-bert").display().to_string()
}

fn notes() -> Place {
    let place = Place::new();
    place.write_notes();
    place.index(&["--chunk-tokens", "32", "notes"]);
    place
}

fn ids(answer: &Value) -> Vec<String> {
    let hits = answer["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
}

fn reranked(hit: &Value) -> Option<&Value> {
    hit["contributions"].as_array().unwrap().iter().find(|part| part["arm"] == "rerank")
}

fn logit(id: &str) -> f64 {
    LOGITS.iter().find(|(known, _)| *known == id).unwrap().1
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn the_order_is_that_of_the_scores_of_transformers() {
    let (place, model) = (notes(), model());
    let plain = ids(&place.json(&["search", QUERY, "-k", "100"]));
    let first = |k: &str, more: &[&str]| place.json(&[&["search", QUERY, "-k", k, "--rerank", &model], more].concat());
    let search = |more: &[&str]| first("100", more);
    let all = search(&[]);
    assert_eq!(ids(&all), LOGITS.map(|(id, _)| id));
    assert_eq!((&all["rerank"]["model"], &all["rerank"]["depth"]), (&json!("cross-bert"), &json!(50)));
    assert_eq!((&all["rerank"]["n_scored"], all["rerank"]["fingerprint"].as_str().unwrap().len()), (&json!(12), 64));
    for hit in all["hits"].as_array().unwrap() {
        let (part, id) = (reranked(hit).unwrap(), hit["id"].as_str().unwrap());
        let number = |key: &str| part[key].as_f64().unwrap();
        assert!((number("raw") - logit(id)).abs() < 1e-5, "{id}: {part}");
        assert!((number("normalized") - sigmoid(number("raw"))).abs() < 1e-12, "{id}: {part}");
        let before = plain.iter().position(|other| other == id).unwrap() as u64 + 1;
        assert_eq!(part["rank"], before, "{id}");
        let parts = hit["contributions"].as_array().unwrap().iter().map(|part| part["contribution"].as_f64().unwrap());
        assert!((parts.sum::<f64>() - hit["score"].as_f64().unwrap()).abs() < 1e-9, "{hit}");
        assert!((hit["score"].as_f64().unwrap() - number("normalized")).abs() < 1e-12, "nothing is left unread");
    }
    let told = place.ok(&["search", QUERY, "-k", "1", "--rerank", &model, "--explain"]).out;
    assert!(told.contains("rerank: rank 10 before, logit -0.1373") && told.contains("probability 0.46571"), "{told}");

    let five = search(&["--rerank-depth", "5"]);
    let mut read = plain[..5].to_vec();
    read.sort_by(|a, b| logit(b).total_cmp(&logit(a)));
    assert_eq!(ids(&five), [&read, &plain[5..]].concat());
    let scores: Vec<f64> = five["hits"].as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(five["hits"].as_array().unwrap().iter().skip(5).all(|hit| reranked(hit).is_none()));
    for k in ["1", "3", "7"] {
        let few = first(k, &["--rerank-depth", "5"]);
        let n: usize = k.parse().unwrap();
        assert_eq!(few["hits"].as_array().unwrap()[..], five["hits"].as_array().unwrap()[..n], "k = {k}");
    }

    let within = ids(&search(&["--within", "notes/tides.md"]));
    let tides: Vec<&str> = LOGITS.iter().map(|(id, _)| *id).filter(|id| id.contains("tides")).collect();
    assert_eq!(within, tides);
    for mode in ["lexical", "dense"] {
        let found = ids(&search(&["--mode", mode]));
        assert!(found.is_sorted_by(|a, b| logit(a) >= logit(b)) && !found.is_empty(), "{mode}: {found:?}");
    }
}

#[test]
fn a_run_ranks_documents_by_their_best_passage() {
    let (place, model) = (notes(), model());
    place.write("topics.tsv", format!("1\t{QUERY}\n"));
    let run = |more: &[&str]| {
        let ran = place.ok(&[&["run", "--topics", "topics.tsv", "-q"], more].concat());
        ran.out.lines().map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let plain = run(&[]);
    let read = run(&["--rerank", &model]);
    assert_eq!(read, ["notes/bread.md", "notes/tides.md", "notes/sub/stars.txt"]);
    assert_ne!(plain, read);
    assert_eq!(run(&["--rerank", &model, "-k", "1"]), read[..1]);
    let two = run(&["--rerank", &model, "--rerank-depth", "1"]);
    assert_eq!(two, plain, "one document has one order");
    place.ok(&[
        "run",
        "--topics",
        "topics.tsv",
        "-o",
        "run.txt",
        "--rerank",
        &model,
        "--contexts",
        "contexts.jsonl",
        "--budget",
        "200",
    ]);
    assert!(!place.read("contexts.jsonl").is_empty());
}

#[test]
fn an_endpoint_that_another_cento_plays_gives_what_the_model_gives() {
    let (place, model) = (notes(), model());
    let serving = Serving::start(&place, &["--rerank", &model]);
    let remote = format!("rerank:cross-bert@http://{}/v1", serving.address);
    let here = place.json(&["search", QUERY, "-k", "100", "--rerank", &model]);
    let there = place.json(&["search", QUERY, "-k", "100", "--rerank", &remote]);
    assert_eq!(here["hits"], there["hits"], "same order, same scores");
    assert_eq!(there["rerank"]["model"], format!("cross-bert@{}", serving.address));
    place.write("topics.tsv", format!("1\t{QUERY}\n2\thow long does bread bake\n"));
    let run = |model: &str| place.ok(&["run", "--topics", "topics.tsv", "--rerank", model, "-q"]).out;
    assert_eq!(run(&model), run(&remote));
    let context =
        |model: &str| place.json(&["context", QUERY, "--budget", "120", "--rerank", model])["context"].clone();
    assert_eq!(context(&model), context(&remote));

    // The same at the doors of the server, which takes the reranker by its name.
    let rerank = json!({"model": "cross-bert"});
    let own = serving.told("/v1/search", &json!({"query": QUERY, "k": 100, "rerank": rerank}));
    assert_eq!((&own["hits"], &own["rerank"]), (&here["hits"], &here["rerank"]));
    let own = serving.told("/v1/context", &json!({"query": QUERY, "budget": 120, "rerank": rerank}));
    assert_eq!(own["context"], context(&model));
    assert_eq!(own["rerank"]["fingerprint"], here["rerank"]["fingerprint"]);
    let batch = json!({"queries": [{"id": "1", "query": QUERY}], "search": {"k": 100, "rerank": rerank}});
    let line: Value = serde_json::from_str(&serving.post("/v1/search/batch", &batch).text()).unwrap();
    assert_eq!(line["answer"]["hits"], here["hits"]);
    let documents = ["The moon pulls the sea.", "Bread is flour."];
    let ranked = serving.told("/v1/rerank", &json!({"query": QUERY, "documents": documents}));
    assert_eq!((&ranked["meta"]["scored_by"], &ranked["model"]), (&json!("cross-encoder"), &json!("cross-bert")));
    let by_encoder = serving.told("/v1/rerank", &json!({"model": "tiny", "query": QUERY, "documents": documents}));
    assert_eq!(by_encoder["meta"]["scored_by"], "cosine");

    // A client names neither a folder nor an address.
    for model in [model.replace("cross-bert", "cross-mpnet"), "rerank:x@http://127.0.0.1:1/v1".to_owned()] {
        let answer = serving.post("/v1/search", &json!({"query": QUERY, "rerank": {"model": model}}));
        assert!(answer.refused(400, "setting").contains("none of those served: cross-bert"));
    }
    let deep = serving.post("/v1/search", &json!({"query": QUERY, "rerank": {"model": "cross-bert", "depth": 1001}}));
    assert!(deep.refused(400, "setting").contains("from 1 to 1000"));
}

/// An endpoint that gives each passage what `score` makes of its place.
fn endpoint(score: impl Fn(usize, &str) -> f64 + Send + 'static) -> Server {
    Server::replies(move |asked| {
        let documents = asked["documents"].as_array().unwrap().clone();
        let ranked =
            |(at, text): (usize, &Value)| json!({"index": at, "relevance_score": score(at, text.as_str().unwrap())});
        // Another order than that of the passages, which says nothing.
        let results: Vec<Value> = documents.iter().enumerate().rev().map(ranked).collect();
        ("200 OK".to_owned(), json!({"results": results}).to_string())
    })
}

fn of(server: &Server) -> String {
    format!("rerank:some/model@{}", server.url)
}

#[test]
fn an_answer_that_cannot_be_used_is_an_error_and_never_the_ranking_of_before() {
    let place = notes();
    let twelve = |of: fn(usize) -> Value| {
        let results: Vec<Value> = (0..12).map(of).collect();
        json!({"results": results}).to_string()
    };
    let good = |at: usize| json!({"index": at, "relevance_score": 0.5});
    for (status, body, words) in [
        ("200 OK", twelve(good).replacen("0.5", "NaN", 1), "no ranking"),
        ("200 OK", twelve(good).replacen("0.5", "null", 1), "no ranking"),
        ("200 OK", twelve(good).replacen("0.5", "-8.25", 1), "the score -8.25, which is no probability"),
        ("200 OK", twelve(|at| json!({"index": at + 1, "relevance_score": 0.5})), "index 12, and there are 12"),
        ("200 OK", twelve(|_| json!({"index": 3, "relevance_score": 0.5})), "passage 3 twice"),
        ("200 OK", json!({"results": [good(0), good(1)]}).to_string(), "scores 2 of 12 passages"),
        ("200 OK", json!({"results": []}).to_string(), "scores 0 of 12 passages"),
        ("200 OK", "<html>It works!</html>".to_owned(), "<html>It works!"),
        ("500 Internal Server Error", "the weights are gone".to_owned(), "answered 500"),
        ("302 Found\r\nLocation: http://127.0.0.1:1/", String::new(), "answered 302"),
        ("404 Not Found", "{}".to_owned(), "answered 404"),
    ] {
        let server = Server::answers(status, &body);
        let ran = place.run(&["search", QUERY, "--rerank", &of(&server)]);
        ran.fails(4, &["reranker some/model@127.0.0.1:", words]);
        assert!(ran.out.is_empty(), "{ran:?}");
    }
    place.run(&["search", QUERY, "--rerank", "rerank:x@http://127.0.0.1:1/v1"]).fails(4, &["cannot be reached"]);
    for (model, code, words) in [
        ("rerank:http://localhost/v1", 2, "write rerank:NAME@http"),
        ("rerank:@http://localhost/v1", 2, "write rerank:NAME@http"),
        ("rerank:x@http://me:pass@localhost/v1", 2, "CENTO_RERANK_KEY alone"),
        ("no-such-reranker", 4, "no-such-reranker"),
        (&root().join("models/tiny").display().to_string(), 4, "cross-encoder"),
    ] {
        let ran = place.run(&["search", QUERY, "--rerank", model]);
        ran.fails(code, &[words]);
        assert!(!ran.err.contains("pass@"), "{ran:?}");
    }
    let model = model();
    place
        .run(&["search", QUERY, "--rerank", &model, "--rerank-depth", "0"])
        .fails(2, &["rerank-depth", "from 1 to 1000"]);
    place
        .run(&["search", QUERY, "--rerank", &model, "--rerank-seconds", "-1"])
        .fails(2, &["rerank-seconds", "above 0"]);
    place.run(&["search", QUERY, "--rerank-seconds", "1"]).fails(2, &["--rerank"]);
}

#[test]
fn a_key_goes_to_the_host_that_the_user_names_and_nowhere_else() {
    const KEY: &str = "rr-secret-0123456789";
    let place = notes();
    let server = endpoint(|at, _| 1.0 / (at + 2) as f64);
    let asked = |arguments: &[&str]| {
        Ran::new(arguments, place.command(arguments).env("CENTO_RERANK_KEY", KEY).output().unwrap())
    };
    let ran = asked(&["search", QUERY, "--json", "--rerank", &of(&server)]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY) && !ran.err.contains("warning"), "{ran:?}");
    let heard = server.heard();
    let (head, body) = heard[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/rerank ") && head.contains(&format!("authorization: Bearer {KEY}")), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["model"], &body["query"], &body["top_n"]), (&json!("some/model"), &json!(QUERY), &json!(12)));
    assert_eq!(
        body["documents"][0],
        "Tides\n## Causes\n\nThe moon pulls the sea. The sun pulls it too, with less force.\n\n"
    );
    // The file of a folder that is not trusted names no reranker.
    place.write("cento.toml", format!("[search]\nrerank = \"{}\"\n", of(&server)));
    asked(&["search", QUERY]).fails(2, &["rerank", "cento.toml"]);
    assert_eq!(server.heard().len(), 1);
}

#[test]
fn what_the_time_does_not_suffice_for_is_told_and_stands_behind() {
    let (place, model) = (notes(), model());
    let plain = ids(&place.json(&["search", QUERY, "-k", "100"]));
    let ran = place.ok(&["search", QUERY, "-k", "100", "--json", "--rerank", &model, "--rerank-seconds", "1e-9"]);
    let answer: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ids(&answer), &answer["rerank"]["n_scored"]), (plain, &json!(0)));
    let words = "reranker cross-bert: 0 of 12 candidates were read before the time was up";
    assert!(answer["warnings"][0].as_str().unwrap().contains(words) && ran.err.contains(words), "{ran:?}");

    // A server whose endpoint answers once, and then no more.
    let many = Place::new();
    (0..70).for_each(|n| many.write(&format!("notes/n{n:02}.md"), format!("# Note {n}\n\nThe sea has {n} waves.\n")));
    many.index(&["notes"]);
    let stalls = Server::replies({
        let calls = std::sync::atomic::AtomicUsize::new(0);
        let (_held, never) = mpsc::channel::<()>();
        move |asked| {
            let _ = &_held;
            if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0 {
                let _ = never.recv_timeout(Duration::from_secs(20));
            }
            let n = asked["documents"].as_array().unwrap().len();
            let results: Vec<Value> = (0..n).map(|at| json!({"index": at, "relevance_score": 0.5})).collect();
            ("200 OK".to_owned(), json!({"results": results}).to_string())
        }
    });
    let plain = ids(&many.json(&["search", "waves", "-k", "100"]));
    let serving = Serving::start(&many, &["--rerank", &of(&stalls), "--deadline", "6"]);
    let asked = json!({"query": "waves", "k": 100, "rerank": {"model": "some/model", "depth": 70}});
    let answer = serving.told("/v1/search", &asked);
    assert_eq!(answer["rerank"]["n_scored"], 64);
    assert!(answer["warnings"].to_string().contains("64 of 70 candidates were read"), "{}", answer["warnings"]);
    let mut first = plain[..64].to_vec();
    first.sort_by(|a, b| b.cmp(a));
    assert_eq!(ids(&answer), [&first, &plain[64..]].concat(), "equal scores by id descending, the unread behind");
}

#[test]
fn a_context_takes_the_likelihood_of_the_reranker_and_is_replayed_without_it() {
    let place = notes();
    let server = endpoint(|_, text| if text.contains("crust") { 0.99 } else { 0.001 });
    let context =
        |more: &[&str]| place.ok(&[&["context", QUERY, "--budget", "60", "--trace", "trace.json"], more].concat());
    let plain = context(&[]);
    assert!(!plain.out.contains("crust is brown"), "{plain:?}");
    let model = of(&server);
    let read = context(&["--rerank", &model]);
    assert!(read.out.contains("crust is brown"), "{read:?}");
    let trace: Value = serde_json::from_slice(&place.read("trace.json")).unwrap();
    let record = &trace["assembly"]["manifest"]["rerank"];
    assert_eq!((&record["depth"], record["scores"].as_array().unwrap().len()), (&json!(50), 12));
    let records = trace["assembly"]["records"].as_array().unwrap();
    let likelihood = |record: &Value| record["relevance"].as_f64().unwrap();
    let likeliest = records.iter().max_by(|a, b| likelihood(a).total_cmp(&likelihood(b))).unwrap();
    assert_eq!(likeliest["chunk_id"], "notes/bread.md#4");
    assert!(likelihood(likeliest) > 0.3, "{likeliest}");
    assert!(likeliest["arms"].as_array().unwrap().iter().any(|arm| arm["arm"] == "rerank"), "{likeliest}");

    // The endpoint is gone, and nobody asks it.
    let asked = server.heard().len();
    let replayed = place.ok(&["replay", "trace.json"]);
    assert_eq!(replayed.out, read.out);
    assert_eq!(server.heard().len(), asked);
    let why = place.ok(&["why", "trace.json", "notes/tides.md#3"]);
    assert_eq!(server.heard().len(), asked, "{why:?}");
    let mut bent = trace.clone();
    bent["assembly"]["manifest"]["rerank"]["scores"][0]["logit"] = json!(3.5);
    place.write("bent.json", bent.to_string());
    assert_eq!(place.run(&["replay", "bent.json"]).code, 1, "a score that was changed does not hold");
    for strategy in ["flat", "seal", "rse", "mmr"] {
        let ran = context(&["--rerank", &model, "--strategy", strategy]);
        assert_eq!(place.ok(&["replay", "trace.json"]).out, ran.out, "{strategy}");
    }
    let ran = context(&["--rerank", &model, "--rerank-seconds", "1e-9"]);
    assert!(ran.err.contains("0 of 12 candidates were read"), "{ran:?}");
    assert_eq!(place.ok(&["replay", "trace.json"]).out, ran.out);
}
