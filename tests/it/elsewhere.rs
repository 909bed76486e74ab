//! Encoders at endpoints: another `cento serve`, and servers that do everything wrong.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::{Place, Ran, Server, default_model, root, tiny_model};

/// The first words of the probes, by which requests for them are known.
const PROBE: &str = "The tide rises twice a day because";

const KEY: &str = "sk-hush-0123456789";

fn inputs(asked: &Value) -> Vec<String> {
    asked["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn is_probe(asked: &Value) -> bool {
    inputs(asked)[0].starts_with(PROBE)
}

/// A vector of a text that no other text has, of length 2: `model` gives those of another model.
fn vector(text: &str, model: usize, dimensions: usize) -> Vec<f64> {
    let seed = text.bytes().fold(7_u64 + model as u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let value = |at: usize| ((seed % 100_003) as f64 * (at + 1) as f64).sin();
    let values: Vec<f64> = (0..dimensions).map(value).collect();
    let length = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    values.into_iter().map(|value| 2.0 * value / length).collect()
}

/// The answer of a good server.
fn answer(asked: &Value, model: usize, dimensions: usize) -> (String, String) {
    let of = |(index, text): (usize, &String)| json!({"index": index, "embedding": vector(text, model, dimensions)});
    let data: Vec<Value> = inputs(asked).iter().enumerate().map(of).collect();
    let usage = json!({"prompt_tokens": 3 * data.len(), "total_tokens": 3 * data.len()});
    ("200 OK".to_owned(), json!({"object": "list", "data": data, "usage": usage}).to_string())
}

fn good() -> Server {
    Server::replies(|asked| answer(asked, 0, 8))
}

fn model(server: &Server) -> String {
    format!("openai:any@{}", server.url)
}

fn index(place: &Place, model: &str, more: &[&str]) -> Ran {
    place.run(&[&["index", "notes", "--model", model], more].concat())
}

fn notes() -> Place {
    let place = Place::new();
    place.write_notes();
    place
}

/// Bodies of requests.
fn heard(server: &Server) -> Vec<Value> {
    let body = |request: &String| serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    server.heard().iter().map(body).collect()
}

/// Another `cento serve` with the same encoder gives the same bits and the same rankings as the encoder in process.
#[track_caller]
fn same_as_in_process(folder: &str, window: &str, corpus: &[&str], questions: &[&str]) {
    let place = notes();
    let indexed = |arguments: &[&str]| place.json(&[&["index"], corpus, arguments].concat());
    let here = indexed(&["--model", folder]);
    let serving = Serving::start(&place, &[]);
    let model = format!("openai:any-name@http://{}/v1", serving.address);
    let there = indexed(&[
        "--model",
        &model,
        "--collection",
        "there",
        "--encoder-tokenizer",
        &format!("{folder}/tokenizer.json"),
        "--encoder-window",
        window,
    ]);
    for figure in ["n_chunks", "n_tokens", "n_truncated", "n_tokens_embedded"] {
        assert_eq!(here[figure], there[figure], "{figure}");
    }
    for mode in ["dense", "hybrid"] {
        for question in questions {
            let hits = |of: &[&str]| {
                let asked = ["search", question, "--mode", mode, "-k", "50"];
                let answer = place.json(&[&asked, of].concat());
                let hits = answer["hits"].as_array().unwrap().clone();
                assert!(!hits.is_empty());
                hits
            };
            assert_eq!(hits(&[]), hits(&["--collection", "there", "--model", &model]), "{mode} {question}");
        }
    }
    let context = |of: &[&str]| place.ok(&[&["context", questions[0], "--budget", "300"], of].concat()).out;
    assert_eq!(context(&[]), context(&["--collection", "there", "--model", &model]));

    let texts: String = questions.iter().map(|text| format!("{}\n", json!({"id": text, "text": text}))).collect();
    place.write("texts.jsonl", texts);
    let tokenizer = format!("{folder}/tokenizer.json");
    place.ok(&["embed", "texts.jsonl", "-o", "here.npy", "--model", folder]);
    let asked = ["embed", "texts.jsonl", "-o", "there.npy", "--model", &model, "--encoder-tokenizer", &tokenizer];
    place.ok(&[&asked[..], &["--max-tokens", window]].concat());
    assert_eq!(place.read("here.npy"), place.read("there.npy"));
}

#[test]
fn another_cento_gives_the_same_vectors_and_rankings() {
    same_as_in_process(&tiny_model(), "128", &["notes"], &["what moves the sea", "how long is bread baked", "stars"]);
}

#[test]
fn another_cento_with_the_default_encoder_gives_the_same_vectors_and_rankings() {
    let Some(folder) = default_model() else { return };
    let docs = root().join("docs").display().to_string();
    let questions = ["which links does a server follow", "a key that is sent to a stranger", "what moves the sea"];
    same_as_in_process(&folder, "256", &["notes", &docs], &questions);
}

#[test]
fn a_search_asks_the_endpoint_that_the_user_names() {
    let (place, server) = (notes(), good());
    let model = model(&server);
    assert_eq!(index(&place, &model, &[]).code, 0);
    // The collection names a host of this machine, and nobody else does.
    let ran = place.run(&["search", "the moon"]);
    ran.fails(2, &["127.0.0.1", "no public address", "--model, CENTO_MODEL"]);
    let ran = place.ok(&["search", "the moon", "--model", &model]);
    assert!(ran.err.contains("embedded 5 texts in 2 requests"), "{ran:?}");
    assert!(place.ok(&["search", "the moon", "--mode", "lexical"]).err.is_empty());
    // Another address of the same model is the same encoder; another name is not.
    let elsewhere = model.replace("127.0.0.1", "localhost");
    place.ok(&["search", "the moon", "--model", &elsewhere]);
    assert_eq!(index(&place, &elsewhere, &["--collection", "named"]).code, 0);
    place.run(&["search", "the moon", "--collection", "named"]).fails(4, &["localhost", "is no public address"]);
    place
        .run(&["search", "the moon", "--model", &model.replace("any", "other")])
        .fails(3, &["model:", "openai:other@"]);
    place.run(&["search", "the moon", "--model", &tiny_model()]).fails(3, &["model:", "openai:any@"]);
    index(&place, &tiny_model(), &[]).fails(3, &["model:", "openai:any@"]);
    let local = Place::indexed();
    local.run(&["search", "the moon", "--model", &model]).fails(3, &["model:", &model]);
    // A file of the current folder may not name it.
    place.write("cento.toml", format!("model = {model:?}\n"));
    place.run(&["search", "the moon"]).fails(2, &["cento.toml", "only name a model card"]);
    place.ok(&["trust", ".", "--yes"]);
    place.run(&["search", "the moon"]).fails(2, &["no public address"]);
}

#[test]
fn a_server_answers_with_an_encoder_elsewhere() {
    let (place, server) = (notes(), good());
    let model = model(&server);
    assert_eq!(index(&place, &model, &[]).code, 0);
    let serving = Serving::start(&place, &["--model", &model]);
    let found = serving.told("/v1/search", &json!({"query": "the moon", "k": 3}));
    let printed = place.json(&["search", "the moon", "-k", "3", "--model", &model]);
    assert_eq!(found["hits"], printed["hits"]);
    let refused = Serving::start(&place, &[]);
    let body = json!({"query": "the moon"}).to_string();
    refused.ask("POST", "/v1/search", &[], body.as_bytes()).refused(500, "private_endpoint");
}

#[test]
fn a_key_goes_to_its_host_and_nowhere_else() {
    let (place, server) = (notes(), good());
    let model = model(&server);
    let host = server.url.split('/').nth(2).unwrap().to_owned();
    let run = |arguments: &[&str], key: &str| {
        Ran::new(arguments, place.command(arguments).env("CENTO_ENCODER_KEY", key).output().unwrap())
    };
    let n_with_key = || server.heard().iter().filter(|request| request.contains(&format!("Bearer {KEY}"))).count();
    assert_eq!(run(&["index", "notes", "--model", &model], KEY).code, 0);
    let n_index = n_with_key();
    assert_eq!(n_index, server.heard().len(), "every request has it");
    for file in walk(&place.path("")) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()), "{}", file.display());
    }
    // A key of another host stays here; one that names this host vouches for it, whoever named it.
    assert_eq!(run(&["search", "tide", "--model", &model], &format!("api.openai.com {KEY}")).code, 0);
    assert_eq!(n_with_key(), n_index);
    assert_eq!(run(&["search", "tide"], &format!("{host} {KEY}")).code, 0);
    assert!(n_with_key() > n_index);
    run(&["search", "tide"], KEY).fails(2, &["no public address"]);

    let closed = Server::answers("401 Unauthorized", &format!("no such key: {KEY}"));
    let closed = format!("openai:any@{}", closed.url);
    let ran = run(&["index", "notes", "--model", &closed, "--collection", "c"], KEY);
    ran.fails(4, &["401", "no such key: CENTO_ENCODER_KEY", "the key of CENTO_ENCODER_KEY was sent"]);
    assert!(!ran.err.contains(KEY), "{ran:?}");
    place.run(&["index", "notes", "--model", &closed, "--collection", "c"]).fails(4, &["401", "has no key for it"]);
}

/// Files below a folder; what goes while one looks is not there.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn what_is_no_vector_is_refused_by_name() {
    let bad = |reply: fn(&Value) -> (String, String)| {
        // The probes are answered well, so that the fault comes in the middle.
        Server::replies(move |asked| if is_probe(asked) { answer(asked, 0, 8) } else { reply(asked) })
    };
    type Reply = fn(&Value) -> (String, String);
    let cases: [(Reply, &[&str]); 8] = [
        (|asked| answer(asked, 0, 7), &["has 7 dimensions, not 8"]),
        (
            |asked| {
                // 8 floats, the first of them not a number
                let nan = "AADAfwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
                let data: Vec<Value> = inputs(asked).iter().map(|_| json!({"embedding": nan})).collect();
                ("200 OK".to_owned(), json!({"data": data}).to_string())
            },
            &["is not finite"],
        ),
        (
            |asked| {
                let (status, body) = answer(asked, 0, 8);
                (status, body.replacen("\"embedding\":[", "\"embedding\":[NaN,", 1))
            },
            &["no list of embeddings"],
        ),
        (|_| ("200 OK".to_owned(), json!({"data": [{"embedding": [1, 0]}]}).to_string()), &["gave 1 vector for"]),
        (|_| ("200 OK".to_owned(), "<!DOCTYPE html><h1>Welcome</h1>".to_owned()), &["<!DOCTYPE html>"]),
        (|_| ("404 Not Found".to_owned(), json!({"error": "no model any"}).to_string()), &["404", "no model any"]),
        (
            |_| ("429 Too Many Requests\r\nRetry-After: 3600".to_owned(), "later".to_owned()),
            &["429", "asks to wait 3600 s, longer than 60 s"],
        ),
        (|_| ("200 OK".to_owned(), " ".repeat(4 << 20)), &["with more than", "bytes"]),
    ];
    for (reply, words) in cases {
        let (place, server) = (notes(), bad(reply));
        let ran = index(&place, &model(&server), &[]);
        ran.fails(4, &[&["encoder at 127.0.0.1"], words].concat());
        assert!(!place.path(".cento/manifest.json").exists(), "{ran:?}");
    }
    // Of the probes themselves.
    let huge = Server::answers("200 OK", &" ".repeat(16 << 20));
    index(&notes(), &model(&huge), &[]).fails(4, &["with more than"]);
    let html = Server::answers("200 OK", "<html>");
    index(&notes(), &model(&html), &[]).fails(4, &["no list of embeddings", "<html>"]);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    index(&notes(), &format!("openai:any@http://{gone}"), &[]).fails(4, &["cannot be reached"]);
    for wrong in
        ["openai:any", "openai:any@ftp://h", "openai:any@http://me:secret@h", "openai:any@http://h/v1?key=secret"]
    {
        let ran = index(&notes(), wrong, &[]);
        ran.fails(2, &["model:"]);
        assert!(!ran.err.contains("secret"), "{ran:?}");
    }
}

#[test]
fn a_server_that_hangs_is_left() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut streams = Vec::new();
        for mut stream in listener.incoming().flatten() {
            use std::io::{Read as _, Write as _};
            let _ = stream.read(&mut [0; 1 << 16]); // an answer before the request would be no HTTP
            // A head, the first bytes of a body, and nothing more.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"data\":");
            streams.push(stream);
        }
    });
    let start = Instant::now();
    let ran = index(&notes(), &format!("openai:any@http://{address}"), &["--encoder-timeout", "1"]);
    ran.fails(4, &["no answer within 1 s"]);
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_busy_server_is_asked_again() {
    let n_asked = AtomicUsize::new(0);
    let server = Server::replies(move |asked| match n_asked.fetch_add(1, Ordering::Relaxed) {
        1 => ("429 Too Many Requests\r\nRetry-After: 1".to_owned(), "busy".to_owned()),
        2 => ("503 Service Unavailable".to_owned(), "busy".to_owned()),
        _ => answer(asked, 0, 8),
    });
    let ran = index(&notes(), &model(&server), &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("2 of them were made again"), "{ran:?}");
    assert!(ran.err.contains("length that was not 1"), "{ran:?}");
    let bodies = heard(&server);
    assert!(bodies[1] == bodies[2] && bodies[2] == bodies[3], "{bodies:?}");
}

#[test]
fn a_model_that_was_changed_is_an_error() {
    let served = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&served);
    let server = Server::replies(move |asked| answer(asked, now.load(Ordering::Relaxed), 8));
    let (place, model) = (notes(), model(&server));
    assert_eq!(index(&place, &model, &[]).code, 0);
    let before = place.read(".cento/manifest.json");
    served.store(1, Ordering::Relaxed);
    place.write("notes/new.md", "# New\n\nSomething else altogether.\n");
    let words = ["is not the one that made the vectors", "those are of fingerprint", "its own now of", "openai:any@"];
    place.run(&["search", "the moon", "--model", &model]).fails(4, &words);
    index(&place, &model, &[]).fails(4, &words);
    assert_eq!(place.read(".cento/manifest.json"), before);
    // A new collection takes the new model, and nothing of the old one out of the cache.
    let ran = index(&place, &model, &["--collection", "new", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["n_from_log"], 0, "{ran:?}");
    served.store(0, Ordering::Relaxed);
    assert_eq!(index(&place, &model, &[]).code, 0);
    place.ok(&["search", "the moon", "--model", &model]);
}

#[test]
fn a_model_that_is_changed_during_a_run_leaves_nothing() {
    let n_asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n_asked);
    let server = Server::replies(move |asked| {
        let is_other = (4..1_000).contains(&count.fetch_add(1, Ordering::Relaxed));
        answer(asked, usize::from(is_other), 8)
    });
    let (place, model) = (Place::new(), model(&server));
    let line = |n: usize| format!("{}\n", json!({"_id": format!("{n}"), "text": format!("text number {n} of many")}));
    place.write("notes/texts.jsonl", (0..300).map(line).collect::<String>());
    let embed = ["embed", "notes/texts.jsonl", "-o", "out.npy", "--model", &model];
    for arguments in [&["index", "notes", "--model", &model][..], &embed] {
        n_asked.store(0, Ordering::Relaxed);
        place.run(arguments).fails(4, &["is not the one that made the vectors"]);
        n_asked.store(1_000, Ordering::Relaxed);
        let report = place.json(arguments);
        let n_kept = report.get("n_from_log").unwrap_or(&report["n_from_cache"]);
        assert_eq!((n_kept, report.get("n_resumed").unwrap_or(&json!(0))), (&json!(0), &json!(0)), "{report}");
        std::fs::remove_dir_all(place.path("cache")).unwrap();
    }
}

#[test]
fn a_server_may_jitter() {
    let n_asked = AtomicUsize::new(0);
    let server = Server::replies(move |asked| {
        let shift = 1e-4 * n_asked.fetch_add(1, Ordering::Relaxed) as f64;
        let of = |text: &String| -> Vec<f64> { vector(text, 0, 8).iter().map(|value| value + shift).collect() };
        let data: Vec<Value> = inputs(asked).iter().map(|text| json!({"embedding": of(text)})).collect();
        ("200 OK".to_owned(), json!({"data": data}).to_string())
    });
    let (place, model) = (notes(), model(&server));
    assert_eq!(index(&place, &model, &[]).code, 0);
    place.ok(&["search", "the moon", "--model", &model]);
    // The cache of an earlier run serves a new collection.
    let ran = index(&place, &model, &["--collection", "other", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["n_tokens_embedded"], report["n_from_log"].as_u64() > Some(0)), (&json!(0), true), "{ran:?}");
}

#[test]
fn a_killed_run_asks_for_no_text_twice() {
    for verb in ["index", "embed"] {
        let place = Place::new();
        let line =
            |n: usize| format!("{}\n", json!({"_id": format!("{n}"), "text": format!("text number {n} of many")}));
        place.write("notes/texts.jsonl", (0..300).map(line).collect::<String>());
        let answered = Arc::new(Mutex::new(Vec::<String>::new()));
        let (told, hold) = (Arc::clone(&answered), Arc::new(Mutex::new(())));
        let n_asked = Arc::new(AtomicUsize::new(0));
        let (gate, n_heard) = (Arc::clone(&hold), Arc::clone(&n_asked));
        let server = Server::replies(move |asked| {
            if !is_probe(asked) {
                if n_heard.fetch_add(1, Ordering::Relaxed) == 4 {
                    drop(gate.lock().unwrap()); // waits for the kill
                    return answer(asked, 0, 8); // which nobody hears
                }
                told.lock().unwrap().extend(inputs(asked));
            }
            answer(asked, 0, 8)
        });
        let model = model(&server);
        let arguments: Vec<&str> = match verb {
            "index" => vec!["index", "notes", "--model", &model, "--encoder-requests", "1"],
            _ => vec!["embed", "notes/texts.jsonl", "-o", "out.npy", "--model", &model, "--encoder-requests", "1"],
        };
        let held = hold.lock().unwrap();
        let mut child = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while n_asked.load(Ordering::Relaxed) < 5 && child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "{verb}: {:?}", answered.lock().unwrap().len());
            std::thread::yield_now();
        }
        // The fifth request for texts is in the air; what the four before gave is on the disk.
        wait_for_cache(&place, 4 * 32);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(held);
        let n_before = answered.lock().unwrap().len();
        assert_eq!(n_before, 4 * 32, "{verb}");
        let ran = place.ok(&arguments);
        assert!(ran.err.contains("requests"), "{ran:?}");
        let asked = answered.lock().unwrap();
        let once: BTreeSet<&String> = asked.iter().collect();
        assert_eq!(once.len(), asked.len(), "{verb}: no text twice");
        assert!(once.len() >= 300, "{verb}: {}", once.len());
    }
}

/// Waits until the cache holds so many vectors of 8 values.
fn wait_for_cache(place: &Place, n: u64) {
    let start = Instant::now();
    let kept = || -> u64 {
        let files = walk(&place.path("cache"));
        let vectors = files.iter().filter(|file| file.ends_with("vectors"));
        vectors.map(|file| std::fs::metadata(file).map_or(0, |found| found.len() / 32)).sum()
    };
    while !place.path("cache").exists() || kept() < n {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
}

#[test]
fn a_dry_run_says_what_a_run_would_cost() {
    let (place, server) = (notes(), good());
    let model = model(&server);
    let dry = |more: &[&str]| {
        place.json(
            &[&["index", "notes", "--model", &model, "--dry-run", "--price-per-million-tokens", "20"], more].concat(),
        )
    };
    let first = dry(&[]);
    assert_eq!(heard(&server).len(), 1, "the probes alone");
    let estimate = &first["estimate"];
    assert_eq!((&estimate["n_requests"], &estimate["tokenizer"]), (&json!(1), &json!("cl100k")), "{first}");
    assert_eq!(estimate["n_texts"], first["n_chunks"]);
    let n_tokens = estimate["n_tokens"].as_f64().unwrap();
    assert!(n_tokens > 50.0 && (first["price"].as_f64().unwrap() - n_tokens * 20e-6).abs() < 1e-12, "{first}");
    assert!(place.ok(&["index", "notes", "--model", &model, "--dry-run"]).out.contains("about 1 request:"));
    let report = place.json(&["index", "notes", "--model", &model]);
    assert_eq!(report["n_tokens_embedded"], estimate["n_tokens"]);
    assert!(report.get("estimate").is_none() && report.get("price").is_none(), "{report}");
    let other = dry(&["--collection", "other"]);
    assert_eq!(
        (&other["estimate"]["n_texts"], &other["price"]),
        (&json!(0), &json!(0.0)),
        "all is in the cache: {other}"
    );
    let local = place.json(&["index", "notes", "--model", &tiny_model(), "--dry-run", "--collection", "local"]);
    assert!(local.get("estimate").is_none(), "{local}");
}

#[test]
fn a_narrow_server_gets_fewer_texts_and_plain_numbers() {
    let server = Server::replies(|asked| match asked {
        asked if asked.get("encoding_format").is_some() => ("400 Bad Request".to_owned(), "unknown field".to_owned()),
        asked if inputs(asked).len() > 4 => ("422 Unprocessable Entity".to_owned(), "batch size > 4".to_owned()),
        asked => answer(asked, 0, 8),
    });
    let place = notes();
    let ran = index(&place, &model(&server), &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    // A text that the server does not take is named.
    let server = Server::replies(|asked| match inputs(asked).iter().any(|text| text.contains("Sourdough")) {
        true => ("400 Bad Request".to_owned(), "too many tokens".to_owned()),
        false => answer(asked, 0, 8),
    });
    let ran = index(&notes(), &model(&server), &[]);
    ran.fails(4, &["too many tokens", "the text begins", "Bread", "cl100k", "window of 512"]);
}

#[test]
fn prompts_window_and_dimensions_are_the_collections() {
    let server = Server::replies(|asked| answer(asked, 0, asked["dimensions"].as_u64().unwrap_or(8) as usize));
    let (place, model) = (notes(), model(&server));
    place.write("notes/long.txt", "The tide rises and falls. ".repeat(200));
    let settings = [
        "--query-prompt",
        "query: ",
        "--document-prompt",
        "passage: ",
        "--encoder-window",
        "40",
        "--encoder-dimensions",
        "6",
        "--chunk-tokens",
        "document",
        "--json",
    ];
    let ran = index(&place, &model, &settings);
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert!(report["n_truncated"].as_u64() >= Some(1), "{report}");
    place.ok(&["search", "the moon", "--model", &model]);
    let texts: Vec<String> = heard(&server).iter().filter(|asked| !is_probe(asked)).flat_map(inputs).collect();
    assert!(texts.iter().all(|text| text.starts_with("query: ") || text.starts_with("passage: ")), "{texts:?}");
    assert_eq!(texts.last().unwrap(), "query: the moon");
    let longest = texts.iter().filter(|text| text.contains("passage: ")).map(String::len).max().unwrap();
    assert!((100..=40 * 8).contains(&longest), "{longest}");
    assert!(heard(&server).iter().all(|asked| asked["dimensions"] == 6));
    for (option, value) in [
        ("--query-prompt", "q: "),
        ("--encoder-window", "41"),
        ("--encoder-dimensions", "8"),
        ("--encoder-tokenizer", "o200k"),
    ] {
        index(&place, &model, &[option, value]).fails(3, &["the collection has"]);
    }
    assert_eq!(index(&place, &model, &[]).code, 0);
    index(&place, &model, &["--encoder-window", "0", "--collection", "x"]).fails(2, &["encoder-window", "1"]);
    index(&place, &model, &["--encoder-tokenizer", "nothing", "--collection", "x"]).fails(2, &["encoder-tokenizer"]);
    index(&place, &model, &["--precision", "bf16", "--collection", "x"]).fails(2, &["precision"]);
    index(&place, &model, &["--pooling", "late", "--collection", "x"]).fails(2, &["pooling", "whole texts alone"]);
    index(&place, &tiny_model(), &["--query-prompt", "q: ", "--collection", "x"])
        .fails(2, &["query-prompt", "endpoint"]);
    let wide = Server::replies(|asked| answer(asked, 0, 8));
    let wide = format!("openai:any@{}", wide.url);
    index(&place, &wide, &["--encoder-dimensions", "6", "--collection", "x"]).fails(2, &["encoder-dimensions", "8"]);
}
