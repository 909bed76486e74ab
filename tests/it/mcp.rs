//! The Model Context Protocol: over pipes and over HTTP, one text an answer, within its tokens, and nothing else said.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::Place;

/// A server at the other end of two pipes.
pub(crate) struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    output: std::io::Lines<BufReader<std::process::ChildStdout>>,
    n: u64,
}

impl Pipes {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command(&[&["mcp"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        Self { child, input, output, n: 0 }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next message; every line of stdout must be one.
    #[track_caller]
    fn next(&mut self) -> Value {
        let line = self.output.next().expect("stdout ended").unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    #[track_caller]
    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.n += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.n, "method": method, "params": parameters});
        self.send(&message.to_string());
        let answer = self.next();
        assert_eq!(answer["id"], self.n, "{answer}");
        answer
    }

    #[track_caller]
    pub(crate) fn greet(&mut self, version: &str) -> Value {
        let client = json!({"name": "a test", "version": "1"});
        let answer =
            self.ask("initialize", &json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client}));
        self.send(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
        answer["result"].clone()
    }

    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// The one text that a tool answers with.
    #[track_caller]
    pub(crate) fn told(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{result}");
        text(&result)
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn text(result: &Value) -> String {
    let content = result["content"].as_array().unwrap_or_else(|| panic!("{result}"));
    assert!(content.len() == 1 && content[0]["type"] == "text", "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    content[0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn tools_answer_with_one_text() {
    let place = Place::indexed();
    let mut pipes = Pipes::start(&place, &[]);
    let greeted = pipes.greet("2025-06-18");
    assert_eq!((&greeted["protocolVersion"], &greeted["serverInfo"]["name"]), (&"2025-06-18".into(), &"cento".into()));
    let tools = pipes.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["context", "search", "fetch", "status"]);
    assert!(tools.as_array().unwrap().iter().all(|tool| tool.get("outputSchema").is_none()), "{tools}");

    let page: Value =
        serde_json::from_str(&pipes.told("search", &json!({"query": "what moves the sea", "k": 2}))).unwrap();
    let ranked = place.json(&["search", "what moves the sea", "-k", "4"]);
    assert_eq!(page["results"][0]["id"], ranked["hits"][0]["id"]);
    assert_eq!((&page["generation"], &page["changed_files"], &page["cursor"]), (&1.into(), &0.into(), &"2".into()));
    let next = json!({"query": "what moves the sea", "k": 2, "cursor": page["cursor"]});
    let next: Value = serde_json::from_str(&pipes.told("search", &next)).unwrap();
    assert_eq!(next["results"][0]["id"], ranked["hits"][2]["id"], "the next page goes on there");

    let id = page["results"][0]["id"].as_str().unwrap().to_owned();
    let fetched: Value = serde_json::from_str(&pipes.told("fetch", &json!({"id": id}))).unwrap();
    assert_eq!(fetched["text"], ranked["hits"][0]["text"]);
    let by_address = pipes.told("fetch", &json!({"id": page["results"][0]["url"]}));
    assert!(by_address.contains(&id), "{by_address}");

    let context = pipes.told("context", &json!({"question": "what moves the sea", "budget_tokens": 200}));
    assert!(context.contains("moon") && context.ends_with("(collection cento, generation 1)"), "{context}");
    let status: Value = serde_json::from_str(&pipes.told("status", &json!({}))).unwrap();
    assert_eq!((&status["collections"][0]["documents"], &status["not_shown"]), (&3.into(), &0.into()));
}

#[test]
fn a_long_document_is_fetched_in_parts() {
    let place = Place::new();
    let long: String = (0..2_000).map(|n| format!("Line {n} says \"tide\" — naïve.\n")).collect();
    place.write("notes/long.txt", &long);
    place.index(&["notes"]);
    let mut pipes = Pipes::start(&place, &["--tool-tokens", "700"]);
    pipes.greet("2025-06-18");
    let (mut whole, mut cursor, mut parts) = (String::new(), Value::Null, 0);
    loop {
        let mut arguments = json!({"id": "notes/long.txt", "max_tokens": 1_000_000});
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let told = pipes.told("fetch", &arguments);
        assert!(told.len() < 700 * 12, "{} bytes", told.len());
        let part: Value = serde_json::from_str(&told).unwrap();
        whole += part["text"].as_str().unwrap();
        cursor = part["cursor"].clone();
        parts += 1;
        if cursor.is_null() {
            break;
        }
    }
    assert!(whole == long && parts > 10, "{parts} parts");
    let small = pipes.call("fetch", &json!({"id": "notes/long.txt", "max_tokens": 3}));
    assert!(small["isError"] == true && text(&small).contains("nothing fits 3 tokens"), "{small}");
    let context = pipes.told("context", &json!({"question": "which line says tide", "budget_tokens": 100_000}));
    assert!(context.len() < 700 * 8, "the operator's cap holds too: {} bytes", context.len());
}

#[test]
fn the_budget_that_a_context_says_it_needs_is_enough() {
    let place = Place::indexed();
    let mut pipes = Pipes::start(&place, &[]);
    pipes.greet("2025-06-18");
    let mut n_told = 0;
    for budget in 1..60 {
        let ask = |budget: u64| json!({"question": "what moves the sea", "budget_tokens": budget});
        let told = text(&pipes.call("context", &ask(budget)));
        let marks = ["nothing fits below ", "answer needs "];
        let Some((_, rest)) = marks.iter().find_map(|mark| told.split_once(mark)) else { continue };
        let needed = rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
        assert!(needed > budget, "{told}");
        let enough = text(&pipes.call("context", &ask(needed)));
        assert!(!enough.contains("too small"), "{budget} {needed}: {told} {enough}");
        if told.contains("nothing fits") {
            assert!(enough.contains("[1]") && !enough.contains("nothing fits"), "{budget} {needed}: {enough}");
        }
        n_told += 1;
    }
    assert!(n_told > 10, "{n_told}");
}

#[test]
fn answers_say_that_files_changed() {
    let place = Place::indexed();
    let mut pipes = Pipes::start(&place, &[]);
    pipes.greet("2025-06-18");
    std::fs::remove_file(place.path("notes/bread.md")).unwrap();
    let context = pipes.told("context", &json!({"question": "what moves the sea"}));
    assert!(context.ends_with("generation 1; 1 file changed since)"), "{context}");
    place.index(&["notes"]);
    let context = pipes.told("context", &json!({"question": "what moves the sea"}));
    assert!(context.ends_with("(collection cento, generation 2)"), "{context}");
}

#[test]
fn files_under_a_label_of_several_parts_are_looked_at_too() {
    let place = Place::new();
    place.write_notes();
    place.index(&["my/own=notes"]);
    std::fs::remove_file(place.path("notes/sub/stars.txt")).unwrap();
    let mut pipes = Pipes::start(&place, &[]);
    pipes.greet("2025-06-18");
    let status: Value = serde_json::from_str(&pipes.told("status", &json!({}))).unwrap();
    assert_eq!(status["collections"][0]["changed_files"], 1, "{status}");
}

#[test]
fn wrong_calls_are_answered_in_words() {
    let place = Place::indexed();
    let mut pipes = Pipes::start(&place, &[]);
    pipes.greet("2025-06-18");
    for (tool, arguments, words) in [
        ("search", json!({}), "missing field `query`"),
        ("search", json!({"query": "x", "limit": 3}), "unknown field"),
        ("search", json!({"query": "x", "k": 500}), "not from 1 to 50"),
        ("search", json!({"query": "x", "cursor": "later"}), "cursor"),
        ("search", json!({"query": "x", "collection": "other"}), "no collection \"other\"; there are cento"),
        ("search", json!({"query": ""}), "empty"),
        ("fetch", json!({"id": "../../etc/passwd"}), "unknown_document"),
        ("fetch", json!({"id": "cento://other/x"}), "no collection"),
        ("context", json!({"question": "x", "budget_tokens": 1}), "tokens"),
        ("context", json!({"question": "x", "filter": "colour = 3"}), "colour"),
    ] {
        let result = pipes.call(tool, &arguments);
        assert!(result["isError"] == true && text(&result).contains(words), "{tool} {arguments}: {result}");
    }
    let unknown = pipes.ask("tools/call", &json!({"name": "delete", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let unknown = pipes.ask("tools/destroy", &json!({}));
    assert!(unknown["error"]["code"].is_i64(), "{unknown}");
    for garbage in ["not json", "{\"jsonrpc\": \"2.0\", \"id\": 99}", "[]", "{}", &"[".repeat(20_000), "\u{0}"] {
        pipes.send(garbage);
    }
    pipes.send(r#"{"jsonrpc": "2.0", "id": "the last", "method": "tools/list", "params": {}}"#);
    let mut answers = std::iter::from_fn(|| Some(pipes.next()));
    let listed = answers.find(|answer| answer["id"] == "the last").unwrap();
    assert!(listed["result"]["tools"].is_array(), "garbage before it ends nothing: {listed}");
}

#[test]
fn the_end_of_stdin_is_the_end() {
    let place = Place::indexed();
    let mut pipes = Pipes::start(&place, &[]);
    pipes.greet("2025-11-25");
    drop(pipes.input.take());
    assert_eq!(pipes.child.wait().unwrap().code(), Some(0));
    assert!(pipes.output.next().is_none(), "nothing is said to nobody");
}

#[test]
fn discovery_needs_no_encoder() {
    let place = Place::indexed();
    place.ok(&["status"]);
    let gone = place.path("gone").display().to_string();
    let mut pipes = Pipes::start(&place, &["--model", &gone]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let told = pipes.ask("server/discover", &json!({"_meta": meta}));
    assert_eq!(told["result"]["resultType"], "complete", "{told}");
    let tools = pipes.ask("tools/list", &json!({"_meta": meta}));
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(4), "{tools}");
    let call = json!({"name": "search", "arguments": {"query": "x"}, "_meta": meta});
    let call = pipes.ask("tools/call", &call);
    assert!(call["result"]["isError"] == true, "the encoder is not there, and is said so when it is needed: {call}");
}

#[test]
fn the_same_tools_answer_over_http() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &[]);
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let ask = |message: &Value, headers: &[(&str, &str)]| {
        serving.ask("POST", "/mcp", headers, message.to_string().as_bytes())
    };
    let call = json!({"name": "context", "arguments": {"question": "what moves the sea", "budget_tokens": 200}});
    let answer = ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}), &headers);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{}", answer.text());
    let over_http = text(&answer.json()["result"]);
    let mut pipes = Pipes::start(&place, &[]);
    pipes.greet("2025-06-18");
    assert_eq!(over_http, pipes.told("context", &call["arguments"]));

    serving.get("/mcp").refused(405, "protocol");
    ask(&json!({}), &[("Content-Type", "application/json")]).refused(406, "protocol");
    ask(&json!({}), &[("Accept", "application/json, text/event-stream")]).refused(415, "protocol");
    let large = format!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"{}\"}}", "x".repeat(2 << 20));
    assert_eq!(serving.ask("POST", "/mcp", &headers, large.as_bytes()).status, 413);
    for garbage in ["", "{", "[]", "7", "{\"jsonrpc\": \"1.0\"}", "[[[[[[[[[["] {
        let refused = serving.ask("POST", "/mcp", &headers, garbage.as_bytes());
        assert!((400..500).contains(&refused.status), "{garbage}: {} {}", refused.head, refused.text());
        assert!(!refused.text().contains("Content-Type must"), "{garbage}: {}", refused.text());
    }
    assert_eq!(serving.get("/health").status, 200);
}
