//! What answers cost, and what they say of what was meant: gzip, excerpts of traces, the embedding cache, near fields.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::serving::{Answer, Serving};
use crate::support::Place;

fn unpacked(answer: &Answer) -> Vec<u8> {
    let mut whole = Vec::new();
    GzDecoder::new(answer.body.as_slice()).read_to_end(&mut whole).unwrap();
    whole
}

#[test]
fn long_texts_are_packed_for_who_takes_that_and_nothing_else_is() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let gzip = ("Accept-Encoding", "br, gzip;q=0.8");
    for path in ["/", "/page/app.js", "/page/style.css", "/openapi.json"] {
        let plain = serving.get(path);
        assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("accept-encoding")), "{path}");
        let packed = serving.ask("GET", path, &[gzip], b"");
        if plain.body.len() < 1024 {
            assert_eq!((packed.header("content-encoding"), &packed.body), (None, &plain.body), "{path} fits a packet");
            continue;
        }
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        assert_eq!(packed.header("content-length").unwrap(), packed.body.len().to_string(), "{path}");
        assert!(packed.body.len() * 3 < plain.body.len() * 2, "{path}: {} of {}", packed.body.len(), plain.body.len());
        assert_eq!(unpacked(&packed), plain.body, "{path}");
        if let Some(tag) = plain.header("etag") {
            assert_eq!(packed.header("etag"), Some(format!("W/{tag}").as_str()), "{path}: other bytes, a weak tag");
            let again = serving.ask("GET", path, &[gzip, ("If-None-Match", &format!("W/{tag}"))], b"");
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        }
        let refused = serving.ask("GET", path, &[("Accept-Encoding", "gzip;q=0, br")], b"");
        assert_eq!((refused.header("content-encoding"), &refused.body), (None, &plain.body), "{path}");
    }
    let body = json!({"query": "what moves the sea"}).to_string();
    let plain = serving.ask("POST", "/v1/explain/trace", &[], body.as_bytes());
    let packed = serving.ask("POST", "/v1/explain/trace", &[gzip], body.as_bytes());
    assert_eq!((packed.header("content-encoding"), unpacked(&packed)), (Some("gzip"), plain.body));
    let batch = json!({"queries": [{"id": "1", "query": "tide"}, {"id": "2", "query": "bread"}]}).to_string();
    let streamed = serving.ask("POST", "/v1/search/batch", &[gzip], batch.as_bytes());
    assert_eq!((streamed.status, streamed.header("content-encoding")), (200, None), "lines come as they are made");
    let vectors = json!({"texts": vec!["tide"; 50]}).to_string();
    let bare = [gzip, ("Accept", "application/octet-stream")];
    let bare = serving.ask("POST", "/v1/embed", &bare, vectors.as_bytes());
    assert_eq!((bare.status, bare.header("content-encoding")), (200, None), "{}", bare.head);
}

#[test]
fn an_excerpt_of_a_trace_counts_what_it_leaves_out_and_nothing_follows_it() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let question = json!({"query": "what moves the sea", "budget": 60});
    let whole = serving.told("/v1/explain/trace", &question);
    let records = |trace: &Value, decision: &str| -> Vec<Value> {
        let records = trace["assembly"]["records"].as_array().unwrap();
        records.iter().filter(|record| record["final_decision"] == decision).cloned().collect()
    };
    let (taken, rejected) = (records(&whole, "selected"), records(&whole, "rejected"));
    assert!(!taken.is_empty() && rejected.len() > 2, "the test wants some of both: {whole}");
    for most in [0, 1, rejected.len(), 1000] {
        let excerpt = serving.told(&format!("/v1/explain/trace?rejected={most}"), &question);
        assert_eq!(records(&excerpt, "selected"), taken, "{most}");
        assert_eq!(records(&excerpt, "rejected"), rejected[..most.min(rejected.len())], "{most}");
        assert_eq!(excerpt["delivered"], whole["delivered"], "{most}");
        let counts = excerpt["rejected"].as_array().unwrap();
        for of in counts {
            let n = rejected.iter().filter(|record| record["final_reason"] == of["reason"]).count();
            assert_eq!(of["n"], n, "{of}");
        }
        let all: u64 = counts.iter().map(|of| of["n"].as_u64().unwrap()).sum();
        assert_eq!(all, rejected.len() as u64, "{most}");
        serving.post("/v1/explain/replay", &json!({"trace": excerpt})).refused(400, "setting");
    }
    serving.post("/v1/explain/trace?rejected=-1", &question).refused(400, "request");
    let misspelt = serving.post("/v1/explain/trace?rejcted=1", &question);
    assert!(misspelt.refused(400, "unknown_field").contains("the field \\\"rejected\\\" is near"));
}

#[test]
fn the_embedding_cache_is_told_as_the_command_line_tells_it() {
    let place = Place::indexed();
    let told = place.ok(&["cache", "status", "--json", "--quiet"]).out;
    let shown = Serving::start(&place, &["--show-folders"]);
    let status = shown.get("/v1/cache");
    assert_eq!((status.status, status.text()), (200, told));
    let model = &status.json()["models"][0];
    assert!(model["n_embeddings"].as_u64().unwrap() > 0 && model["n_bytes"].as_u64().unwrap() > 0, "{model}");
    drop(shown);
    let named = Serving::start(&place, &["--cache-max-bytes", "1MiB"]);
    let answer = named.get("/v1/cache");
    assert!(!answer.text().contains(&place.path("").display().to_string()), "{}", answer.text());
    assert_eq!((&answer.json()["max_bytes"], &answer.json()["folder"]), (&(1 << 20).into(), &"cache".into()));
    named.get("/v1/cache?of=x").refused(400, "unknown_field");
    named.post("/v1/cache", &json!({})).refused(405, "method");
}

#[test]
fn a_server_without_a_place_for_a_cache_says_so() {
    let place = Place::indexed();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env_remove("CENTO_CACHE").env_remove("HOME").env_remove("XDG_CACHE_HOME");
    let serving = Serving::of(command);
    assert!(serving.get("/v1/cache").refused(404, "no_cache").contains("its setting `cache` names one"));
    serving.told("/v1/search", &json!({"query": "tide"}));
}

#[test]
fn the_field_that_was_meant_is_named() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    for (path, body, meant) in [
        ("/v1/context", json!({"query": "x", "budget_tokens": 9}), "budget"),
        ("/v1/context", json!({"query": "x", "stratgy": "flat"}), "strategy"),
        ("/v1/search", json!({"q": "x"}), "query"),
        ("/v1/search?colection=x", json!({"query": "x"}), "collection"),
    ] {
        let told = serving.post(path, &body).refused(400, "unknown_field");
        assert!(told.contains(&format!("the field \\\"{meant}\\\" is near")), "{path} {body}: {told}");
    }
    let bare = serving.ask("POST", "/v1/neighbors?filtr=x", &[("Content-Type", "application/octet-stream")], &[0; 4]);
    assert!(bare.refused(400, "unknown_field").contains("the field \\\"filter\\\" is near"));
}
