//! Shards that several servers have: killed, stopped, replaced under load, named in a file that changes.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::scale::{QUESTIONS, coordinator, notes};
use crate::serving::Serving;
use crate::support::{Place, tiny_model};

/// The corpus in two parts, each behind two servers.
fn served_twice(place: &Place) -> Vec<[Serving; 2]> {
    let model = tiny_model();
    let part = |n: usize| {
        let (part, folder) = (format!("{n}/2"), format!("part{n}"));
        place.ok(&["index", "notes", "--model", &model, "--part", &part, "--collection", &folder]);
        [(); 2].map(|()| Serving::start(place, &["--collection", &folder]))
    };
    (1..=2).map(part).collect()
}

fn url(server: &Serving) -> String {
    format!("http://{}", server.address)
}

fn named(parts: &[[Serving; 2]]) -> Vec<String> {
    parts.iter().map(|[one, other]| format!("{}|{}", url(one), url(other))).collect()
}

/// What is asked, and the answers of a server of the whole but for their generation.
fn expected(place: &Place) -> Vec<(&'static str, Value, Value)> {
    place.index(&["notes"]);
    let whole = Serving::start(place, &[]);
    let asked = QUESTIONS.iter().flat_map(|query| {
        let search = ("/v1/search", json!({"query": query, "k": 20, "explain": true}));
        let contexts = ["cento", "seal"].map(|strategy| json!({"query": query, "budget": 200, "strategy": strategy}));
        std::iter::once(search).chain(contexts.map(|context| ("/v1/context", context)))
    });
    let answered = |(path, body): (&'static str, Value)| {
        let answer = bare(whole.told(path, &body));
        (path, body, answer)
    };
    asked.map(answered).collect()
}

/// An answer without its generation, which of shards is the sum.
fn bare(mut answer: Value) -> Value {
    answer["generation"] = Value::Null;
    answer
}

fn signal(server: &Serving, signal: &str) {
    let sent = Command::new("kill").args([signal, &server.child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn replicas(coordinator: &Serving) -> Value {
    coordinator.get("/v1/collections/cento").json()["shards"].clone()
}

#[test]
fn replicas_that_are_killed_and_replaced_under_load_show_in_no_answer() {
    let place = notes();
    let expected = expected(&place);
    let mut parts = served_twice(&place);
    let shards = coordinator(&place, &named(&parts), &[]);
    let (is_over, n_right, n_named) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for from in 0..3 {
            let (shards, expected, is_over, n_right, n_named) = (&shards, &expected, &is_over, &n_right, &n_named);
            scope.spawn(move || {
                for (path, body, answer) in expected.iter().cycle().skip(from * 5) {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    let told = shards.post(path, body);
                    match told.status {
                        200 => {
                            assert_eq!(bare(told.json()), *answer, "{path} {body}");
                            n_right.fetch_add(1, Ordering::SeqCst);
                        }
                        _ => {
                            let said = told.refused(502, "shard");
                            assert!(said.contains("none of its replicas answers"), "{said}");
                            n_named.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                }
            });
        }
        let until = |more: usize| {
            let seen = n_right.load(Ordering::SeqCst);
            while n_right.load(Ordering::SeqCst) < seen + more {
                std::thread::yield_now();
            }
        };
        for round in 0..6 {
            until(10);
            let [shard, replica] = [round % 2, round / 2 % 2];
            signal(&parts[shard][replica], "-KILL");
            until(20);
            let (folder, address) = (format!("part{}", shard + 1), parts[shard][replica].address.clone());
            parts[shard][replica].child.wait().unwrap();
            parts[shard][replica] = Serving::start(&place, &["--collection", &folder, "--listen", &address]);
        }
        until(10);
        is_over.store(true, Ordering::SeqCst);
    });
    // One replica of a shard was there at any time.
    assert_eq!(n_named.into_inner(), 0, "of {n_right:?}");
    let text = shards.get("/metrics").text();
    let failed = text.lines().filter(|line| line.contains("cento_replica_calls_total") && line.contains("\"failed\""));
    assert!(failed.clone().count() == 4 && failed.clone().any(|line| !line.ends_with(" 0")), "{text}");
    assert!(text.contains("cento_replica_up{") && text.contains("cento_shard_hedged_calls_total{"), "{text}");
}

#[test]
fn a_replica_that_stands_still_is_asked_around() {
    let place = notes();
    let expected = expected(&place);
    let parts = served_twice(&place);
    let shards = coordinator(&place, &named(&parts), &[]);
    signal(&parts[0][1], "-STOP");
    for (path, body, answer) in &expected {
        assert_eq!(bare(shards.told(path, body)), *answer, "{path} {body}");
    }
    let known = replicas(&shards);
    assert!(known[0]["n_hedges_won"].as_u64().is_some_and(|n| n > 0), "{known}");
    assert!(known[0]["replicas"][1]["down"].as_str().is_some_and(|why| why.contains("slower")), "{known}");
    assert_eq!((&known[1]["n_hedged"], &known[1]["replicas"][1]["down"]), (&0.into(), &Value::Null), "{known}");
    signal(&parts[0][1], "-CONT");
    // The commands ask replicas, too.
    let (model, named) = (tiny_model(), named(&parts).join(","));
    let hits = |more: &[&str]| place.json(&[&["search", QUESTIONS[0], "-k", "20"], more].concat())["hits"].clone();
    assert_eq!(hits(&["--model", &model, "--shards", &named]), hits(&[]));
}

#[test]
fn a_shard_without_any_replica_is_named_and_so_is_a_replica_of_something_else() {
    let place = notes();
    let mut parts = served_twice(&place);
    let (names, model) = (named(&parts), tiny_model());
    let shards = coordinator(&place, &names, &[]);
    let question = json!({"query": "the tide of day 3"});
    shards.told("/v1/search", &question);
    drop(parts.pop());
    let said = shards.post("/v1/search", &question).refused(502, "shard");
    assert!(names[1].split('|').all(|url| said.matches(url).count() == 2), "{said}");
    let partial = shards.told("/v1/search", &json!({"query": "the tide of day 3", "allow_partial": true}));
    assert_eq!(partial["missing"][0]["shard"], names[1].as_str(), "{partial}");
    let refused = |shards: &str, code: i32, words: &[&str]| {
        place.run(&["serve", "--listen", "127.0.0.1:0", "--model", &model, "--shards", shards]).fails(code, words);
    };
    let [one, other] = [url(&parts[0][0]), url(&parts[0][1])];
    refused(&format!("{one}|{one}"), 2, &["named twice"]);
    refused(&format!("{one}|"), 2, &["no address"]);
    refused(&format!("{one},{other}"), 2, &["same collection", "as a replica"]);
    let second = Serving::start(&place, &["--collection", "part2"]);
    refused(&format!("{one}|{}", url(&second)), 2, &["no replica of", "copy one", &url(&second)]);
}

#[test]
fn shards_named_in_a_file_are_those_that_it_names_now() {
    let place = notes();
    let expected = expected(&place);
    let mut parts = served_twice(&place);
    let write = |lines: &str| {
        place.write("shards.new", lines);
        std::fs::rename(place.path("shards.new"), place.path("shards")).unwrap();
    };
    write(&format!("# two shards\n{}\n\n{}\n", named(&parts)[0], named(&parts)[1]));
    let model = tiny_model();
    let shards = Serving::start(&place, &["--model", &model, "--shards-from", "shards"]);
    let same = || {
        for (path, body, answer) in expected.iter().take(4) {
            assert_eq!(bare(shards.told(path, body)), *answer, "{path} {body}");
        }
    };
    same();
    // Both servers of a shard go, and come elsewhere.
    parts[0] = [(); 2].map(|()| Serving::start(&place, &["--collection", "part1"]));
    shards.post("/v1/search", &json!({"query": "tide"})).refused(502, "shard");
    write(&named(&parts).join("\n"));
    same();
    let known = replicas(&shards);
    assert_eq!(known[0]["replicas"][0]["address"], url(&parts[0][0]).as_str(), "{known}");
    write("");
    shards.post("/v1/search", &json!({"query": "tide"})).refused(400, "setting");
    write(&named(&parts).join("\n"));
    same();
    place.run(&["serve", "--shards-from", "nowhere"]).fails(3, &["nowhere"]);
    place.run(&["serve", "--shards-from", "shards", "--shards", "http://a"]).fails(2, &["--shards-from"]);
}
