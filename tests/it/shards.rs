//! A collection on several servers, asked by commands; servers that are not there, and what lies where one should be.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::scale::{QUESTIONS, addresses, coordinator, notes, served_parts};
use crate::serving::Serving;
use crate::support::{Place, tiny_model};

/// An answer without what tells a collection from its parts.
fn bare(mut answer: Value) -> Value {
    answer["generation"] = Value::Null; // of shards it is the sum
    answer
}

#[test]
fn commands_over_shards_answer_as_over_the_whole() {
    let place = notes();
    place.index(&["notes"]);
    let parts = served_parts(&place);
    let (shards, model) = (addresses(&parts).join(","), tiny_model());
    let same = |asked: &[&str]| {
        let here = place.json(asked);
        let there = place.json(&[asked, &["--model", &model, "--shards", &shards]].concat());
        assert_eq!(bare(here), bare(there), "{asked:?}");
    };
    for query in QUESTIONS {
        same(&["search", query, "-k", "20", "--explain"]);
        for strategy in ["cento", "window", "seal"] {
            same(&["context", query, "--budget", "200", "--strategy", strategy]);
        }
        same(&["why-not", query, "notes/note03.md", "--budget", "60"]);
    }
    let topic = |(n, query): (usize, &&str)| json!({"_id": format!("q{n}"), "text": query}).to_string();
    place.write("topics.jsonl", QUESTIONS.iter().enumerate().map(topic).collect::<Vec<_>>().join("\n"));
    let run = |output: &str, more: &[&str]| {
        let contexts = format!("{output}.jsonl");
        let run = ["run", "--topics", "topics.jsonl", "-o", output, "--contexts", &contexts, "--budget", "200"];
        place.ok(&[&run, more].concat());
        (place.read(output), place.read(&contexts))
    };
    assert_eq!(run("here", &[]), run("there", &["--model", &model, "--shards", &shards]));
    place
        .run(&["search", "tide", "--shards", &shards, "--collection", ".cento"])
        .fails(2, &["--collection", "--shards"]);
    place.run(&["search", "tide", "--shards", &shards, "--generation", "1"]).fails(2, &["--generation"]);
    place.run(&["search", "tide", "--allow-partial"]).fails(2, &["--shards"]);
}

#[test]
fn an_answer_of_a_part_says_what_is_missing() {
    let place = notes();
    let mut parts = served_parts(&place);
    let all = addresses(&parts);
    let whole = coordinator(&place, &all, &[]);
    let rest = coordinator(&place, &all[..2], &[]);
    let question = json!({"query": "the tide of day 3", "k": 20, "explain": true});
    let context = json!({"query": "the tide of day 3", "budget": 300});
    let allowing = |request: &Value| {
        let mut request = request.clone();
        request["allow_partial"] = true.into();
        request
    };
    let complete = whole.told("/v1/search", &allowing(&question));
    assert_eq!(complete, whole.told("/v1/search", &question), "nothing is missing");
    let address = parts.pop().unwrap().address.clone();
    let url = format!("http://{address}");
    for (path, request) in [("/v1/search", &question), ("/v1/context", &context)] {
        let said = whole.post(path, request).refused(502, "shard");
        assert!(said.contains(&url), "{said}");
        let mut partial = whole.told(path, &allowing(request));
        let missing = partial.as_object_mut().unwrap().remove("missing").unwrap();
        assert_eq!((&missing[0]["shard"], missing.as_array().unwrap().len()), (&url.as_str().into(), 1), "{missing}");
        assert!(missing[0]["why"].as_str().unwrap().contains("cannot be reached"), "{missing}");
        let warned = partial["warnings"].as_array_mut().unwrap();
        let n = warned.len();
        warned.retain(|warning| !warning.as_str().unwrap().contains("of a part of the collection"));
        assert_eq!(n - warned.len(), 1);
        let mut expected = rest.told(path, request);
        for answer in [&mut partial, &mut expected] {
            if answer["warnings"].as_array().is_some_and(Vec::is_empty) {
                answer["warnings"] = Value::Null;
            }
        }
        if path == "/v1/context" {
            assert_eq!(partial["certificate"]["of_part"], true, "{partial}");
            partial["certificate"].as_object_mut().unwrap().remove("of_part");
        }
        for (name, value) in expected.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()) {
            assert_eq!(partial[name], *value, "{path}: {name}"); // statistics and scores are of those that answered
        }
    }
    let trace = whole.told("/v1/explain/trace", &allowing(&context));
    assert_eq!(trace["collection"]["missing"][0]["shard"], url.as_str());
    let said = whole.post("/v1/explain/replay", &json!({"trace": trace})).refused(400, "part_traced");
    assert!(said.contains(&url) && said.contains("ask for the context anew"), "{said}");
    let why = json!({"trace": trace, "id": trace["assembly"]["records"][0]["chunk_id"]});
    let untried = rest.told("/v1/explain/why", &why)["untried"].clone();
    assert!(untried.as_str().unwrap().contains("a part of its collection"), "{untried}");
    let model = tiny_model();
    let (shards, asked) = (all.join(","), ["search", "the tide of day 3", "--model", &model]);
    place.run(&[&asked[..], &["--shards", &shards]].concat()).fails(3, &[&url, "cannot be reached"]);
    let ran = place.ok(&[&asked[..], &["--shards", &shards, "--allow-partial", "--quiet"]].concat());
    assert!(ran.err.contains(&url) && ran.err.contains("is missing"), "{ran:?}");
    let flags = ["context", "tide", "--model", &model, "--shards", &shards, "--allow-partial", "--trace", "trace.json"];
    place.ok(&flags);
    place.run(&["replay", "trace.json"]).fails(3, &[&url, "part of its collection"]);
    drop(parts);
    whole.post("/v1/search", &allowing(&question)).refused(502, "shard");
}

/// A place where a shard should be, that says the same to whoever asks.
fn liar(said: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, said) = (format!("http://{}", listener.local_addr().unwrap()), said.to_vec());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut asked) = (stream.unwrap(), Vec::new());
            let mut some = [0; 4096];
            while !asked.ends_with(b"}") {
                match stream.read(&mut some) {
                    Ok(n) if n > 0 => asked.extend_from_slice(&some[..n]),
                    Ok(_) | Err(_) => break,
                }
            }
            let _ = stream.write_all(&said);
        }
    });
    url
}

#[test]
fn whatever_is_where_a_shard_should_be_is_named() {
    let place = Place::new();
    let model = tiny_model();
    let with = |status: &str, body: &str| format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let version = json!({"wire": 4, "cento": "9.9.9", "generation": "a", "answer": null}).to_string();
    for (said, words) in [
        (String::new(), "the connection broke"),
        ("SSH-2.0-OpenSSH_9.6\r\n".to_owned(), "the connection broke"),
        (with("200 OK", "hello"), "cannot be read"),
        (with("200 OK", "\u{0}\u{1}"), "cannot be read"),
        (with("200 OK", &version), "cento 9.9.9"),
        (with("200 OK", &"x".repeat(5_000)), "more than 4096 bytes"),
        (with("302 Found", ""), "302"),
        (with("404 Not Found", "no such page"), "404"),
        (with("200 OK", "{}")[..39].to_owned(), "the connection broke"),
    ] {
        let url = liar(said.as_bytes());
        let asked = ["search", "tide", "--model", &model, "--shards", &url];
        place.run(&asked).fails(3, &[&format!("shard {url}"), words]);
    }
}

#[test]
fn a_server_that_was_started_anew_is_asked_at_once() {
    let place = notes();
    let mut parts = served_parts(&place);
    let shards = coordinator(&place, &addresses(&parts), &[]);
    let question = json!({"query": "the tide of day 3", "k": 20});
    let before = shards.told("/v1/search", &question);
    for _ in 0..3 {
        let gone = parts.pop().unwrap();
        let address = gone.address.clone();
        drop(gone);
        parts.push(Serving::start(&place, &["--collection", "part3", "--listen", &address]));
        assert_eq!(shards.told("/v1/search", &question), before);
    }
}
