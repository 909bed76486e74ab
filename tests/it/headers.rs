//! Contexts behind headers that a language model writes: who sees them, what they cost, and what a killed run keeps.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::support::{Place, Server, default_model, tiny_model};

/// A word that no note has.
const WORD: &str = "Hydrography";

/// The chunk that a request is about.
fn chunk(asked: &Value) -> String {
    let user = asked["messages"][1]["content"].as_str().unwrap();
    let (_, chunk) = user.split_once("\n\nchunk-").unwrap();
    let lines: Vec<&str> = chunk.lines().collect();
    lines[1..lines.len() - 1].join("\n")
}

fn said(message: &str) -> (String, String) {
    let body = json!({"choices": [{"message": {"content": message}}]});
    ("200 OK".to_owned(), body.to_string())
}

/// A model that knows what gauges are for.
fn writer() -> Server {
    Server::replies(|asked| match chunk(asked).contains("gauge") {
        true => said("Hydrography of harbours:\n how tides are recorded."),
        false => said("One of the notes."),
    })
}

/// The chunks that a server was asked about.
fn asked(server: &Server) -> Vec<String> {
    let body = |request: &String| serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    server.heard().iter().map(|request| chunk(&body(request))).collect()
}

fn index<'a>(model: &'a str, server: &'a Server, more: &[&'a str]) -> Vec<&'a str> {
    let all =
        ["index", "notes", "--model", model, "--header", "llm", "--endpoint", &server.url, "--endpoint-model", "small"];
    [&all, more].concat()
}

fn first(answer: &Value) -> &Value {
    &answer["hits"][0]
}

/// Contexts that the journal of a place has.
fn n_kept(place: &Place) -> usize {
    let Ok(files) = std::fs::read_dir(place.path("cache/contexts")) else { return 0 };
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap().lines().count()).sum()
}

#[test]
fn words_find_a_chunk_by_its_context_which_is_never_cited_and_lasts() {
    let (place, server, model) = (Place::new(), writer(), tiny_model());
    place.write_notes();
    let report = place.json(&index(&model, &server, &[]));
    let n_chunks = report["n_chunks"].as_u64().unwrap();
    assert_eq!((&report["contexts"]["n_calls"], &report["contexts"]["n_known"]), (&json!(n_chunks), &json!(0)));
    assert_eq!(asked(&server).len() as u64, n_chunks);

    let search = ["search", "hydrography of harbours", "--mode", "lexical"];
    let answer = place.json(&search);
    assert!(first(&answer)["text"].as_str().unwrap().contains("gauge"), "{answer}");
    assert!(!answer.to_string().contains(WORD), "a context is no part of an answer");
    let context = place.ok(&["context", "hydrography of harbours", "--budget", "200"]);
    assert!(context.out.contains("gauge") && !context.out.contains(WORD), "{context:?}");
    let id = first(&answer)["id"].as_str().unwrap();
    assert!(!place.ok(&["get", id]).out.contains(WORD));

    // what is known is asked of nobody: the same again, and a document that is new
    let bare = ["index", "notes", "--model", &model];
    assert_eq!(place.json(&bare)["n_added"], json!(0));
    place.write("notes/moon.txt", "The moon is far.\n");
    place.run(&bare).fails(4, &["have no context", "llm (small, prompt ", "--endpoint URL"]);
    let report = place.json(&index(&model, &server, &[]));
    assert_eq!(report["contexts"]["n_calls"], json!(1));
    assert_eq!(asked(&server).len() as u64, n_chunks + 1);
    let grown = place.json(&search);
    assert_eq!(first(&grown)["id"].as_str().unwrap(), id);

    // a merge copies contexts
    place.write("notes/sun.txt", "The sun is far, too.\n");
    place.ok(&index(&model, &server, &["--no-compact"]));
    let before = place.json(&search)["hits"].clone();
    place.ok(&["compact"]);
    assert_eq!(place.json(&search)["hits"], before);
    place.ok(&["doctor"]);
}

#[test]
fn the_encoder_reads_contexts() {
    let plain = Place::indexed();
    let (place, server, model) = (Place::new(), writer(), tiny_model());
    place.write_notes();
    place.ok(&index(&model, &server, &[]));
    let search = ["search", "the tide", "--mode", "dense"];
    assert_ne!(first(&plain.json(&search))["score"], first(&place.json(&search))["score"]);

    let Some(model) = default_model() else { return };
    let place = Place::new();
    place.write_notes();
    place.ok(&index(&model, &server, &["--chunk-tokens", "16"]));
    let answer = place.json(&["search", "hydrography of harbours", "--mode", "dense"]);
    assert!(first(&answer)["text"].as_str().unwrap().contains("gauge"), "{answer}");
}

#[test]
fn a_killed_run_asks_nothing_twice() {
    let (place, model) = (Place::new(), tiny_model());
    place.write_notes();
    let (reached, is_reached) = channel();
    let (release, is_released) = channel::<()>();
    let is_released = Mutex::new(is_released);
    let n_answered = Mutex::new(0);
    let server = Server::replies(move |asked| {
        *n_answered.lock().unwrap() += 1;
        if *n_answered.lock().unwrap() == 8 {
            reached.send(()).unwrap();
            let _ = is_released.lock().unwrap().recv(); // nobody reads the answer
        }
        said(&format!("About: {}", chunk(asked)))
    });
    let mut run = place.command(&index(&model, &server, &["--quiet"])).spawn().unwrap();
    is_reached.recv().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    drop(release);
    let n_known = n_kept(&place);
    assert!(n_known >= 3, "eight calls of four at a time, one on its way to the journal: {n_known}");

    let second = writer();
    let report = place.json(&index(&model, &second, &[]));
    let n_chunks = report["n_chunks"].as_u64().unwrap();
    assert_eq!(report["contexts"]["n_known"], json!(n_known));
    assert_eq!(asked(&second).len(), n_chunks as usize - n_known);
    assert_eq!(asked(&second).iter().collect::<BTreeSet<_>>().len(), asked(&second).len());
}

#[test]
fn answers_that_are_no_contexts_end_the_run_and_long_ones_are_cut() {
    let (place, model) = (Place::new(), tiny_model());
    place.write("notes/moon.txt", "The moon is far.\n");
    for (message, words) in [
        ("", "is empty"),
        ("I'm sorry, but I can't do that.", "is a refusal"),
        ("<html>busy</html>", "is a page"),
        (&"word ".repeat(2_000), "more than"),
    ] {
        let server = Server::says(message);
        place
            .run(&index(&model, &server, &[]))
            .fails(4, &["notes/moon.txt: the context of chunk 0", words, "goes on there"]);
        assert_eq!(n_kept(&place), 0);
    }
    for (status, body, n_asked, words) in [
        ("200 OK", "<html>busy</html>", 1, "no chat completion"),
        ("200 OK", &"x".repeat(2 << 20), 1, "more than 1048576 bytes"),
        ("400 Bad Request", "{}", 1, "400"),
        ("500 No", "{}", 4, "500"),
        ("429 Too Many Requests\r\nRetry-After: 3600", "{}", 1, "3600 s, longer than 60 s"),
        ("302 Found\r\nLocation: http://127.0.0.1:9/", "{}", 1, "302"),
    ] {
        let server = Server::answers(status, body);
        place.run(&index(&model, &server, &[])).fails(4, &[words]);
        assert_eq!(server.heard().len(), n_asked, "{status}");
    }
    let server = Server::says(&"moonlight ".repeat(150));
    let report = place.json(&index(&model, &server, &[]));
    assert_eq!(report["contexts"]["n_cut"], json!(1));
}

#[test]
fn a_server_that_asks_for_patience_is_asked_again_and_one_that_hangs_is_left() {
    let (place, model) = (Place::new(), tiny_model());
    place.write("notes/moon.txt", "The moon is far.\n");
    let (release, is_released) = channel::<()>();
    let is_released = Mutex::new(is_released);
    let server = Server::replies(move |_| {
        let _ = is_released.lock().unwrap().recv();
        said("Too late.")
    });
    place.run(&index(&model, &server, &["--endpoint-timeout", "1"])).fails(4, &["no answer within 1 s"]);
    drop(release);
    let n_asked = Mutex::new(0);
    let server = Server::replies(move |_| {
        *n_asked.lock().unwrap() += 1;
        let busy = ("429 Too Many Requests\r\nRetry-After: 0".to_owned(), "{}".to_owned());
        if *n_asked.lock().unwrap() < 3 { busy } else { said("About the moon.") }
    });
    place.ok(&index(&model, &server, &[]));
    assert_eq!((server.heard().len(), n_kept(&place)), (3, 1));
}

/// All requests about a document begin alike, and the first of them is answered before the others are made.
#[test]
fn a_server_can_keep_what_it_has_read_of_a_document() {
    let (place, server, model) = (Place::new(), writer(), tiny_model());
    place.write("notes/long.txt", (0..60).map(|n| format!("Sentence {n} of the note. ")).collect::<String>());
    let report = place.json(&index(&model, &server, &[]));
    let counts = &report["contexts"];
    let n_calls = counts["n_calls"].as_u64().unwrap();
    assert!(n_calls > 4 && counts["n_documents"] == json!(1), "{report}");
    let body = |request: &String| -> Value { serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap() };
    let bodies: Vec<Value> = server.heard().iter().map(body).collect();
    let before = |asked: &Value| {
        let user = asked["messages"][1]["content"].as_str().unwrap();
        (asked["messages"][0].clone(), user[..user.rfind("\n\nchunk-").unwrap()].to_owned())
    };
    assert!(bodies.iter().all(|asked| before(asked) == before(&bodies[0])));
    assert!(before(&bodies[0]).1.contains("Sentence 59"));
}

#[test]
fn tokens_that_a_server_counts_are_those_that_are_told() {
    let (place, model) = (Place::new(), tiny_model());
    place.write("notes/moon.txt", "The moon is far.\n");
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 7});
    let body = json!({"choices": [{"message": {"content": "About the moon."}}], "usage": usage});
    let server = Server::answers("200 OK", &body.to_string());
    let report = place.json(&index(&model, &server, &["--endpoint-price", "2,3,1"]));
    let counts = &report["contexts"];
    assert_eq!((&counts["n_tokens_asked"], &counts["n_tokens_answered"]), (&json!(1000), &json!(7)));
    assert!((report["contexts_price"].as_f64().unwrap() - (1000.0 * 2.0 + 7.0 * 3.0) / 1e6).abs() < 1e-12);
}

#[test]
fn a_folder_cannot_name_who_is_sent_its_documents() {
    let (place, server, model) = (Place::new(), writer(), tiny_model());
    place.write_notes();
    place.write("cento.toml", format!("[index]\nendpoint = {:?}\nendpoint-model = \"small\"\n", server.url));
    let bare = ["index", "notes", "--model", &model];
    place.run(&[&bare[..], &["--header", "llm"]].concat()).fails(2, &["index.endpoint", "may not set this"]);
    // the user's own endpoint is not for a folder to use
    place.write("cento.toml", "[index]\nheader = \"llm\"\n");
    place.write_settings(format!("endpoint = {:?}\nendpoint-model = \"small\"\n", server.url));
    place.run(&bare).fails(2, &["index.header", "only name a style of headers"]);
    assert!(server.heard().is_empty());
    place.write("cento.toml", "[index]\nheader = \"flat\"\n");
    place.ok(&bare);
    assert!(server.heard().is_empty(), "an endpoint alone asks for nothing");
    place.ok(&[&bare[..], &["--header", "llm", "--collection", "written"]].concat());
    assert!(!server.heard().is_empty());
}

#[test]
fn calls_tokens_and_price_are_told_before_any_call() {
    let (place, server, model) = (Place::new(), writer(), tiny_model());
    place.write_notes();
    let more = ["--dry-run", "--endpoint-price", "1000,2000"];
    let report = place.json(&index(&model, &server, &more));
    let counts = &report["contexts"];
    let number = |name: &str| counts[name].as_f64().unwrap();
    assert_eq!(counts["n_calls"], report["n_chunks"]);
    assert_eq!(number("n_tokens_answered"), number("n_calls") * 100.0);
    let price = number("n_tokens_asked") / 1e3 + number("n_tokens_answered") / 500.0;
    assert!((report["contexts_price"].as_f64().unwrap() - price).abs() < 1e-9, "{report}");
    let cheaper = place.json(&index(&model, &server, &["--dry-run", "--endpoint-price", "1000,2000,0"]));
    let price = price - number("n_tokens_repeated") / 1e3;
    assert!((cheaper["contexts_price"].as_f64().unwrap() - price).abs() < 1e-9, "{cheaper}");
    assert!(number("n_tokens_repeated") > 0.0 && number("n_documents") < number("n_calls"));
    assert!(server.heard().is_empty(), "a dry run asks nobody");
    let ran = place.ok(&index(&model, &server, &["--endpoint-price", "1,2"]));
    assert!(ran.err.contains("calls for chunks of") && ran.err.contains("; price "), "{}", ran.err);
}

#[test]
fn requests_that_do_not_fit_the_collection_are_refused() {
    let (place, server, model) = (Place::new(), writer(), tiny_model());
    place.write_notes();
    let bare = ["index", "notes", "--model", &model];
    place.run(&[&bare[..], &["--header", "llm"]].concat()).fails(2, &["--endpoint URL"]);
    place
        .run(&[&bare[..], &["--endpoint", &server.url, "--endpoint-model", "small"]].concat())
        .fails(2, &["--header llm"]);
    place.run(&index(&model, &server, &["--no-cache"])).fails(2, &["embedding cache"]);
    place.run(&index(&model, &server, &["--pooling", "late"])).fails(2, &["plain vectors"]);
    place.run(&index(&model, &server, &["--endpoint-price", "1"])).fails(2, &["two numbers"]);
    assert!(server.heard().is_empty());

    place.ok(&index(&model, &server, &[]));
    let mut other = index(&model, &server, &[]);
    *other.last_mut().unwrap() = "large";
    place.run(&other).fails(3, &["llm (small, prompt ", "llm (large, prompt "]);
    place.run(&[&bare[..], &["--header", "structured"]].concat()).fails(3, &["llm (small, prompt ", "structured"]);
    let plain = Place::indexed();
    plain.run(&index(&model, &server, &[])).fails(3, &["structured", "llm (small, prompt "]);
}

#[test]
fn lost_contexts_are_a_damage_that_a_repair_mends_by_indexing_again() {
    let (place, server, model) = (Place::new(), writer(), tiny_model());
    place.write_notes();
    place.ok(&index(&model, &server, &[]));
    let segment = std::fs::read_dir(place.path(".cento/segments")).unwrap().next().unwrap().unwrap().path();
    let file = segment.join("contexts.table");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let ran = place.run(&["doctor"]);
    assert!(ran.code != 0 && format!("{}{}", ran.out, ran.err).contains("contexts.table"), "{ran:?}");
    place.run(&["repair"]);
    // what was lost is indexed again with the contexts of the journal: nobody is asked
    let n_asked = asked(&server).len();
    place.ok(&["index", "notes", "--model", &model]);
    assert_eq!(asked(&server).len(), n_asked);
    let answer = place.json(&["search", "hydrography of harbours", "--mode", "lexical"]);
    assert!(first(&answer)["text"].as_str().unwrap().contains("gauge"), "{answer}");
    place.ok(&["doctor"]);
}

#[test]
fn a_damaged_journal_is_told_before_any_call_and_costs_what_it_lost() {
    let (place, server, model) = (Place::new(), writer(), tiny_model());
    place.write_notes();
    place.ok(&index(&model, &server, &[]));
    let n_asked = server.heard().len();
    let journal = std::fs::read_dir(place.path("cache/contexts")).unwrap().next().unwrap().unwrap().path();
    let mut lines: Vec<String> =
        std::fs::read_to_string(&journal).unwrap().lines().map(|line| format!("{line}\n")).collect();
    lines[1] = lines[1].replacen("of", "off", 1);
    std::fs::write(&journal, lines.concat()).unwrap();

    let again = ["--collection", "again"];
    let planned = place.json(&index(&model, &server, &[&again[..], &["--dry-run"]].concat()));
    assert_eq!((&planned["contexts"]["n_calls"], &planned["contexts"]["n_damaged"]), (&json!(1), &json!(1)));
    let warning = &planned["warnings"][0];
    assert_eq!(warning["path"].as_str(), journal.to_str());
    assert!(
        warning["reason"].as_str().unwrap().contains("1 line without a whole context, from line 2 on"),
        "{warning}"
    );
    let ran = place.ok(&index(&model, &server, &again));
    assert!(ran.err.contains("of the journal 1 line without a whole context"), "{ran:?}");
    assert_eq!(server.heard().len(), n_asked + 1);
}
