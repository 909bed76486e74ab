//! Who is answered by `cento serve`, and what clients may do to it that mean no good.

use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::serving::{Serving, answer};
use crate::support::Place;

/// The hash of `moon`.
const MOON: &str = "9e78b43ea00edcac8299e0cc8df7f6f913078171335f733a21d5d911b6999132";

#[test]
fn foreign_names_and_pages_are_refused_on_every_route() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--allow-host", "box.example", "--allow-origin", "https://app.example"]);
    let own = serving.address.clone();
    let paths = serving.get("/openapi.json").json()["paths"].as_object().unwrap().clone();
    let mut asked = 0;
    for (path, verbs) in &paths {
        let path = path.replace("{collection}", "cento").replace("{job}", "x");
        for verb in verbs.as_object().unwrap().keys().map(|verb| verb.to_uppercase()) {
            serving.ask(&verb, &path, &[("Host", "evil.example")], b"{}").refused(403, "host");
            serving.ask(&verb, &path, &[("Origin", "http://evil.example")], b"{}").refused(403, "origin");
            asked += 1;
        }
    }
    assert!(asked > 20, "{asked} routes");
    for path in ["/mcp", "/openapi.json", "/nothing"] {
        serving.ask("POST", path, &[("Host", "evil.example:80")], b"{}").refused(403, "host");
        serving.ask("POST", path, &[("Origin", "null")], b"{}").refused(403, "origin");
    }
    for host in ["localhost", "box.example:99", "127.0.0.1", "[::1]:1"] {
        assert_eq!(serving.ask("GET", "/health", &[("Host", host)], b"").status, 200, "{host}");
    }
    for origin in ["https://app.example", &format!("http://{own}")] {
        assert_eq!(serving.ask("GET", "/health", &[("Origin", origin)], b"").status, 200, "{origin}");
    }
    let bare = serving.raw(b"GET /health HTTP/1.0\r\n\r\n");
    answer(&bare).refused(400, "host");
}

#[test]
fn keys_are_asked_for_where_others_can_reach() {
    let place = Place::indexed();
    let open = ["serve", "--listen", "0.0.0.0:0"];
    place.run(&open).fails(2, &["other machines reach this address", "--api-keys"]);
    place.write("keys", "read sha256:short ann\n");
    place.run(&[&open[..], &["--api-keys", "keys"]].concat()).fails(2, &["keys: line 1", "64 hexadecimal digits"]);
    place.write("keys", format!("# those who may\nread sha256:{MOON} ann\n"));
    let serving = Serving::start(&place, &["--api-keys", "keys"]);
    assert_eq!(serving.get("/health").status, 200);
    for path in ["/v1/collections", "/metrics", "/openapi.json", "/nothing", "/mcp"] {
        let refused = serving.get(path);
        refused.refused(401, "key");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{}", refused.head);
    }
    for (name, value) in [
        ("Authorization", "Bearer tide"),
        ("Authorization", "Bearer "),
        ("Authorization", "Basic moon"),
        ("Authorization", "moon"),
        ("X-API-Key", "Moon"),
        ("Cookie", "key=moon"),
    ] {
        serving.ask("GET", "/v1/collections", &[(name, value)], b"").refused(401, "key");
    }
    for (name, value) in [("Authorization", "Bearer moon"), ("Authorization", "bearer moon"), ("X-API-Key", "moon")] {
        assert_eq!(serving.ask("GET", "/v1/collections", &[(name, value)], b"").status, 200, "{name}: {value}");
    }
    let both = [("Authorization", "Bearer moon"), ("Authorization", "Bearer tide")];
    serving.ask("GET", "/v1/collections", &both, b"").refused(401, "key");
    assert!(serving.log().iter().all(|line| !line.contains("moon") && !line.contains("tide")));
}

#[test]
fn bodies_that_lie_or_grow_are_refused_and_the_rest_is_served() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--max-body", "100000", "--deadline", "2"]);
    let (address, path) = (serving.address.clone(), "/v1/search");
    let head = |rest: &str| format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{rest}\r\n\r\n");
    answer(&serving.raw(head("Content-Length: 99999999999").as_bytes())).refused(413, "body");
    let mut endless = head("Transfer-Encoding: chunked").into_bytes();
    for _ in 0..30 {
        endless.extend(format!("1000\r\n{}\r\n", " ".repeat(4096)).bytes());
    }
    answer(&serving.raw(&endless)).refused(413, "body");
    let late = [head("Content-Length: 50").as_bytes(), b"{\"query\""].concat();
    answer(&serving.raw(&late)).refused(408, "body");
    for broken in
        ["Content-Length: -1", "Content-Length: 1\r\nContent-Length: 2", "Content-Length: 18446744073709551616"]
    {
        let refused = answer(&serving.raw(head(broken).as_bytes()));
        assert!((400..500).contains(&refused.status), "{broken}: {}", refused.head);
    }
    let deep = "[".repeat(50_000);
    for bomb in [
        deep.clone(),
        format!("{{\"query\": {deep}"),
        format!("{{\"query\": \"x\", \"policy\": {}", "{\"a\":".repeat(10_000)),
        format!("{{\"query\": \"x\", \"k\": 1{}}}", "0".repeat(5_000)),
        format!("{{\"query\": \"x\", \"filter\": \"{}\"}}", "(".repeat(90_000)),
        format!("{{\"query\": \"x\", \"within\": [{}\"\"]}}", "\"\",".repeat(20_000)),
    ] {
        let refused = serving.ask("POST", path, &[], bomb.as_bytes());
        assert_eq!(refused.status, 400, "{}…: {}", &bomb[..30], refused.text());
    }
    for path in ["/v1/rerank", "/v1/embeddings", "/embed", "/v1/explain/diff", "/v1/explain/replay", "/mcp"] {
        let refused = serving.ask("POST", path, &[("Content-Type", "application/json")], deep.as_bytes());
        assert!((400..500).contains(&refused.status), "{path}: {}", refused.head);
        assert_eq!(refused.header("content-type"), Some("application/json"), "{path}: {}", refused.head);
    }
    assert_eq!(serving.told(path, &json!({"query": "tide"}))["hits"][0]["document"], "notes/tides.md");
}

#[test]
fn heads_that_are_none_are_refused_and_the_rest_is_served() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let host = &serving.address;
    for garbage in [
        "\x16\x03\x01\x02\x00\x01\x00\x01".to_owned(), // a TLS greeting
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(40_000)),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n", "A: b\r\n".repeat(500)),
        format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "x".repeat(100_000)),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "\r\n\r\n\r\n\r\n".to_owned(),
        "\0\0\0\0".to_owned(),
    ] {
        let said = serving.raw(garbage.as_bytes());
        let ok = said.starts_with(b"HTTP/1.1 2");
        assert!(!ok, "{:?}: {}", &garbage[..8.min(garbage.len())], String::from_utf8_lossy(&said));
    }
    for path in [
        "/v1/collections/..%2F..%2Fetc%2Fpasswd",
        "/v1/collections/../../etc/passwd",
        "/v1/collections/cento/../../../etc/passwd",
        "//etc/passwd",
        "/v1/collections/%00",
        "/v1/collections/%ff",
        "/v1/collections/cento/text?citation=../../../../etc/passwd",
        "/v1/collections/cento/text?citation=/etc/passwd",
        "/v1/collections/cento/text?citation=notes/../../../etc/passwd%23",
        "/v1/collections/cento/text?citation=%00",
        "/v1/collections/cento/text?citation=%ff%fe",
        "/v1/collections/cento/sections?document=/etc/passwd",
    ] {
        let refused = serving.get(path);
        assert!([400, 404].contains(&refused.status), "{path}: {} {}", refused.head, refused.text());
        assert!(!refused.text().contains("root:"), "{path}");
    }
    assert_eq!(serving.get("/health").status, 200);
}

#[test]
fn slow_heads_are_cut_off_and_idle_connections_keep_nobody_out() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--connections", "8"]);
    let mut slow: Vec<_> = (0..8).map(|_| serving.connect()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET /health HTTP/1.1\r\nHost: loc").unwrap());
    let began = Instant::now();
    assert_eq!(serving.get("/health").status, 200, "answered when a slow one was cut off");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let mut rest = Vec::new();
    let _ = slow[0].read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
}

#[test]
fn what_takes_too_long_is_stopped() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--deadline", "1"]);
    let texts = vec!["tide and moon"; 400_000];
    let began = Instant::now();
    serving.post("/v1/embeddings", &json!({"input": texts})).refused(504, "deadline");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(serving.post("/v1/search", &json!({"query": "tide"})).status, 200);
}

#[cfg(unix)]
#[test]
fn a_server_stops_within_a_bound_whoever_holds_a_connection() {
    let place = Place::indexed();
    let mut serving = Serving::start(&place, &[]);
    let mut idle = serving.connect();
    idle.write_all(format!("GET /health HTTP/1.1\r\nHost: {}\r\n\r\n", serving.address).as_bytes()).unwrap();
    idle.read_exact(&mut [0; 15]).unwrap();
    let mut half = serving.connect();
    half.write_all(
        format!("POST /v1/search HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\n", serving.address).as_bytes(),
    )
    .unwrap();
    let began = Instant::now();
    let told = Command::new("kill").args(["-TERM", &serving.child.id().to_string()]).status().unwrap();
    assert!(told.success());
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn a_server_ends_with_its_stdin_only_where_it_is_to() {
    let place = Place::indexed();
    let mut serving = Serving::start(&place, &["--until-stdin-ends"]);
    serving.child.stdin.as_mut().unwrap().write_all(b"what comes is nothing to it\n").unwrap();
    assert_eq!(serving.get("/health").status, 200);
    let connection = serving.connect(); // does not hold it up
    drop(serving.child.stdin.take());
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    drop(connection);

    let mut serving = Serving::start(&place, &[]);
    drop(serving.child.stdin.take());
    serving.told("/v1/search", &json!({"query": "tide"}));
    assert_eq!(serving.child.try_wait().unwrap(), None);
}

#[test]
fn a_client_that_leaves_ends_its_work() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--deadline", "600", "--workers", "2"]);
    let body = json!({"texts": vec!["tide and moon ".repeat(70_000); 30]}).to_string();
    let head =
        format!("POST /v1/embed HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", serving.address, body.len());
    let mut stream = serving.connect();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    drop(stream);
    let began = Instant::now();
    while !serving.log().iter().any(|line| line.contains("\"route\":\"/v1/embed\",\"status\":499")) {
        assert!(began.elapsed() < Duration::from_secs(120), "{:#?}", serving.log());
        assert_eq!(serving.get("/health").status, 200);
    }
    // The one thread for bulk work is free again.
    let texts = vec!["tide ".repeat(200); 30];
    assert_eq!(serving.post("/v1/embed", &json!({"texts": texts})).status, 200);
    assert!(began.elapsed() < Duration::from_secs(240), "{:?}", began.elapsed());
}

#[test]
fn more_than_can_wait_is_told_to_come_again() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--queue", "1", "--workers", "2"]);
    let body = json!({"texts": vec!["tide and moon ".repeat(20_000); 30]});
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8).map(|_| scope.spawn(|| serving.post("/v1/embed", &body))).collect();
        let query = serving.post("/v1/search", &json!({"query": "tide"}));
        assert_eq!(query.status, 200, "queries do not wait for bulk work");
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(!refused.is_empty(), "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    for answer in refused {
        answer.refused(429, "busy");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    assert!(answers.iter().all(|answer| [200, 429, 504].contains(&answer.status)));
}

#[test]
fn requests_that_say_two_things_are_one_request_or_none() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let host = &serving.address;
    let head =
        |method: &str, path: &str, rest: &str| format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{rest}\r\n\r\n");
    let inner = head("GET", "/inner", "Connection: close");
    for lengths in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 0",
        "Content-Length: 5, 0",
        "Content-Length: +5",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding:\x0bchunked",
        "Content-Length : 5",
    ] {
        let request = head("POST", "/v1/search", &format!("Connection: close\r\n{lengths}"));
        let said = serving.raw(format!("{request}0\r\n\r\n{inner}").as_bytes());
        let said = String::from_utf8_lossy(&said);
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{lengths}: {said}");
        assert!(said.starts_with("HTTP/1.1 4"), "{lengths}: {said}");
    }
    // A body that a GET has is read with it, and is no request of its own.
    let body = head("GET", "/inner", "");
    let first = head("GET", "/health", &format!("Content-Length: {}", body.len()));
    let said = serving.raw(format!("{first}{body}{}", head("GET", "/health", "Connection: close")).as_bytes());
    let said = String::from_utf8_lossy(&said);
    assert_eq!((said.matches("HTTP/1.1 200").count(), said.matches("HTTP/1.1 ").count()), (2, 2), "{said}");
    for method in ["FROB", "TRACE", "CONNECT", "PUT", "PATCH", "get"] {
        let refused = serving.ask(method, "/v1/search", &[], b"{}");
        assert!([400, 404, 405].contains(&refused.status), "{method}: {}", refused.head);
    }
    for garbage in
        ["", "{}", "[]", "null", "7", "{\"jsonrpc\":\"1.0\"}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", "\u{0}"]
    {
        let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        let refused = serving.ask("POST", "/mcp", &headers, garbage.as_bytes());
        assert!((400..500).contains(&refused.status), "{garbage:?}: {} {}", refused.head, refused.text());
    }
    assert_eq!(serving.get("/health").status, 200);
}

#[test]
fn hundreds_of_connections_that_say_nothing_keep_nobody_out() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let idle: Vec<_> = (0..400).map(|_| serving.connect()).collect();
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(serving.told("/v1/search", &json!({"query": "tide"}))["hits"][0]["document"], "notes/tides.md");
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    drop(idle);
}
