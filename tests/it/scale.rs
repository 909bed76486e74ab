//! Past one machine: parts indexed by several processes and adopted.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::hub::sha256;
use crate::serving::Serving;
use crate::support::{Place, tiny_model};

/// A corpus of some notes.
pub(crate) fn notes() -> Place {
    let place = Place::new();
    for n in 0..12 {
        let more = "The sea rises, and falls again.\n\n".repeat(n % 5);
        place.write(&format!("notes/note{n:02}.md"), format!("# Note {n}\n\nThe tide of day {n} comes.\n\n{more}"));
    }
    place
}

fn answers(place: &Place, collection: &str) -> [Value; 2] {
    let asked = |arguments: &[&str]| place.json(&[arguments, &["--collection", collection]].concat());
    let hits = asked(&["search", "the tide of day 3", "-k", "50", "--exact"])["hits"].clone();
    [hits, asked(&["context", "when does the sea rise", "--budget", "300"])["context"].clone()]
}

#[test]
fn parts_of_several_processes_are_adopted_and_answer_as_one_run() {
    let place = notes();
    place.index(&["notes"]);
    let model = tiny_model();
    for n in ["1", "2", "3"] {
        let (part, folder) = (format!("{n}/3"), format!("part{n}"));
        place.ok(&["index", "notes", "--model", &model, "--part", &part, "--no-cache", "--collection", &folder]);
    }
    let whole = ["--collection", "whole"];
    let report = place.json(&[&["adopt", "part1", "part2"], &whole[..]].concat());
    assert_eq!(
        (&report["generation"], &report["n_collections"], &report["n_segments"]),
        (&1.into(), &2.into(), &2.into())
    );
    place
        .run(&[&["adopt", "part3", "part2"], &whole[..]].concat())
        .fails(3, &["part2", "whole", "already", "leave it out"]);
    let ran = place.ok(&[&["adopt", "part3"], &whole[..]].concat());
    assert!(ran.out.contains("3 segments now; generation 2"), "{ran:?}");
    assert_eq!(answers(&place, "whole"), answers(&place, ".cento"));
    assert!(place.json(&["doctor", "--collection", "whole"])["checks"].is_array());
    let again = place.json(&["index", "notes", "--collection", "whole", "--no-cache"]);
    assert_eq!((&again["n_unchanged"], &again["n_tokens_embedded"]), (&12.into(), &0.into()), "{again}");
}

#[test]
fn parts_that_cannot_be_are_refused() {
    let place = notes();
    let model = tiny_model();
    place.run(&["index", "notes", "--part", "4/3"]).fails(2, &["--part", "4/3", "i from 1 to n"]);
    place.run(&["adopt"]).fails(2, &["DIR"]);
    place.run(&["adopt", "nowhere"]).fails(3, &["nowhere", "no collection"]);
    place.index(&["notes", "--part", "1/2"]);
    let other = ["index", "notes", "--model", &model, "--part", "2/2", "--header", "none", "--collection", "other"];
    place.ok(&other);
    place.run(&["adopt", "other"]).fails(3, &["other", "header", "none", "structured"]);
    place.write("more/notes/note00.md", "# Another\n\nOf the same name.\n");
    place.ok(&["index", "more/notes", "--model", &model, "--collection", "same"]);
    place.run(&["adopt", "same"]).fails(3, &["notes/note00.md", "same", "other labels"]);
}

/// The corpus in three parts, each behind a server of its own.
pub(crate) fn served_parts(place: &Place) -> Vec<Serving> {
    let model = tiny_model();
    let part = |n: usize| {
        let (part, folder) = (format!("{n}/3"), format!("part{n}"));
        place.ok(&["index", "notes", "--model", &model, "--part", &part, "--collection", &folder]);
        Serving::start(place, &["--collection", &folder])
    };
    (1..=3).map(part).collect()
}

pub(crate) fn coordinator(place: &Place, shards: &[String], more: &[&str]) -> Serving {
    let (model, shards) = (tiny_model(), shards.join(","));
    Serving::start(place, &[&["--model", &model, "--shards", &shards], more].concat())
}

pub(crate) fn addresses(parts: &[Serving]) -> Vec<String> {
    parts.iter().map(|part| format!("http://{}", part.address)).collect()
}

pub(crate) const QUESTIONS: [&str; 4] = ["the tide of day 3", "when does the sea rise", "note", "\"falls again\" sea"];

#[test]
fn servers_of_parts_answer_as_a_server_of_the_whole() {
    let place = notes();
    place.index(&["notes"]);
    let (whole, parts) = (Serving::start(&place, &[]), served_parts(&place));
    let shards = coordinator(&place, &addresses(&parts), &[]);
    let same = |path: &str, body: &Value| {
        let [mut one, mut other] = [&whole, &shards].map(|server| server.told(path, body));
        for answer in [&mut one, &mut other] {
            answer["generation"] = Value::Null; // of shards it is the sum
        }
        assert_eq!(one, other, "{path} {body}");
    };
    for query in QUESTIONS {
        for mode in ["hybrid", "dense", "lexical"] {
            same("/v1/search", &json!({"query": query, "mode": mode, "k": 20, "explain": true}));
        }
        for strategy in ["cento", "flat", "mmr", "bubble", "seal"] {
            same("/v1/context", &json!({"query": query, "strategy": strategy, "budget": 200}));
        }
        let filtered = json!({"query": query, "filter": "path starts with \"note0\"", "within": ["notes/note03.md"]});
        same("/v1/search", &filtered);
    }
    let listed = |server: &Serving| server.get("/v1/collections/cento/documents").json()["documents"].clone();
    let [one, other] = [&whole, &shards].map(listed);
    assert_eq!(one, other);
    let text = "/v1/collections/cento/text?citation=notes/note03.md%230";
    assert_eq!(whole.get(text).text(), shards.get(text).text());
    let status = shards.get("/v1/collections/cento").json();
    assert_eq!((&status["n_documents"], &status["segments"]), (&12.into(), &json!([])), "{status}");
    shards.get("/v1/collections/cento/snapshots").refused(400, "elsewhere");
}

#[test]
fn a_shard_that_is_gone_is_named_and_one_that_was_written_is_opened_anew() {
    let place = notes();
    let mut parts = served_parts(&place);
    let shards = coordinator(&place, &addresses(&parts), &[]);
    let question = json!({"query": "the tide of day 3", "k": 20});
    let before = shards.told("/v1/search", &question);
    place.write("notes/note00.md", "# Note 0\n\nThe tide of day 3, and of day 3 again.\n");
    place.ok(&["index", "notes", "--part", "1/3", "--collection", "part1"]);
    let after = shards.told("/v1/search", &question);
    assert_ne!(before["hits"], after["hits"]);
    assert_eq!(after["generation"], 4, "1 + 1 + 2");
    let gone = parts.pop().unwrap();
    let address = gone.address.clone();
    drop(gone);
    for (path, body) in [("/v1/search", &question), ("/v1/context", &json!({"query": "tide", "budget": 100}))] {
        let said = shards.post(path, body).refused(502, "shard");
        assert!(said.contains(&address), "{said}");
    }
    let back = Serving::start(&place, &["--collection", "part3", "--listen", &address]);
    assert_eq!(shards.told("/v1/search", &question)["hits"], after["hits"]);
    drop(back);
}

#[test]
fn shards_that_cannot_be_are_refused() {
    let place = notes();
    let model = tiny_model();
    let refused = |shards: &str, code: i32, words: &[&str]| {
        place.run(&["serve", "--listen", "127.0.0.1:0", "--model", &model, "--shards", shards]).fails(code, words);
    };
    refused("nothing", 2, &["shards", "nothing", "no address"]);
    refused("http://127.0.0.1:9,http://127.0.0.1:9", 2, &["named twice"]);
    refused("http://127.0.0.1:9", 3, &["shard http://127.0.0.1:9", "cannot be reached"]);
    place.run(&["serve", "--shards", "http://a", "--writable"]).fails(2, &["--writable", "--shards"]);
    let parts = served_parts(&place);
    let twice = place.json(&["index", "notes", "--model", &model, "--collection", "whole", "--header", "none"]);
    assert_eq!(twice["n_added"], 12);
    let other = Serving::start(&place, &["--collection", "whole"]);
    let [one, other] = [&parts[0], &other].map(|server| format!("http://{}", server.address));
    refused(&format!("{one},{other}"), 2, &["shards", "header", "same settings"]);
    let shards = coordinator(&place, &addresses(&parts), &[]);
    refused(&format!("http://{}", shards.address), 3, &["other servers"]);
    let own = env!("CARGO_PKG_VERSION");
    for body in ["".to_owned(), "{}".to_owned(), json!({"wire": 4}).to_string()] {
        parts[0].ask("POST", "/v1/shard", &[], body.as_bytes()).refused(400, "request");
    }
    for other in [json!({"wire": 99, "cento": own}), json!({"wire": 4, "cento": "9.9.9"})] {
        let said = parts[0].post("/v1/shard", &other).refused(400, "request");
        assert!(said.contains("must be of one version") && said.contains(own), "{said}");
    }
    let stale = json!({"wire": 4, "cento": own, "generation": "0", "call": "schema"});
    parts[0].post("/v1/shard", &stale).refused(409, "other_generation");
    refused(&format!("{one},{one}/"), 2, &["shards", "is http"]);
    let by_name = one.replace("127.0.0.1", "localhost");
    refused(&format!("{one},{by_name}"), 2, &["same collection", &by_name, "name it once"]);
}

#[test]
fn a_shard_that_asks_for_a_key_gets_it_and_a_deadline_ends_the_wait() {
    let place = notes();
    let model = tiny_model();
    place.index(&["notes"]);
    let key = "a-key-of-many-letters";
    place.write("keys", format!("read sha256:{} coordinator\n", sha256(key.as_bytes())));
    let guarded = Serving::start(&place, &["--api-keys", "keys"]);
    let url = format!("http://{}", guarded.address);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--model", &model, "--shards", &url];
    place.run(&serve).fails(3, &["401"]);
    let mut with_key = place.command(&serve).env("CENTO_SHARD_KEY", key).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(with_key.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    with_key.kill().unwrap();
    with_key.wait().unwrap();
    assert!(said.contains("answers for cento"), "{said}");
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap(); // it never answers
    let url = format!("http://{}", mute.local_addr().unwrap());
    let began = std::time::Instant::now();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--model", &model, "--deadline", "1", "--shards", &url];
    place.run(&serve).fails(3, &[url.trim_start_matches("http://"), "no answer within 1 s"]);
    assert!(began.elapsed().as_secs() < 20);
}
