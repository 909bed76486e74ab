//! `cento serve --writable`: collections that are made over HTTP, and files that are handed over.

use serde_json::{Value, json};

use crate::serving::{Answer, Serving};
use crate::support::{Place, tiny_model};

impl Serving {
    fn put(&self, path: &str, body: &[u8]) -> Answer {
        self.ask("PUT", path, &[], body)
    }

    /// The job of a file that is handed over, at its end.
    #[track_caller]
    fn uploaded(&self, path: &str, body: &[u8]) -> Value {
        let begun = self.put(&format!("/v1/collections/cento/files/{path}"), body);
        assert_eq!(begun.status, 202, "{path}: {}", begun.text());
        self.ended(begun.json()["id"].as_str().unwrap())
    }
}

/// A server of a folder of collections, of which there is none yet.
fn empty(place: &Place) -> Serving {
    std::fs::create_dir_all(place.path("all")).unwrap();
    Serving::start(place, &["--collections", "all", "--writable", "--model", &tiny_model()])
}

#[test]
fn a_collection_is_made_filled_and_served_again() {
    let place = Place::new();
    let serving = empty(&place);
    assert_eq!(serving.get("/v1/collections").json()["collections"], json!([]));
    serving.post("/v1/search", &json!({"query": "rain"})).refused(404, "unknown_collection");
    serving.post("/v1/embeddings", &json!({"input": "rain"})).refused(404, "model");
    let made = serving.put("/v1/collections/new-1", br#"{"chunk_tokens": 64, "language": "none", "vectors": "f16"}"#);
    assert_eq!(made.status, 201, "{}", made.text());
    let status = made.json();
    assert_eq!((&status["n_documents"], &status["generation"]), (&0.into(), &1.into()), "{status}");
    let config = &status["config"];
    assert_eq!(
        (&config["chunk_tokens"], &config["language"], &config["vectors"], &config["model"]),
        (&"64".into(), &"none".into(), &"f16".into(), &"tiny".into())
    );
    for mode in ["hybrid", "lexical", "dense"] {
        assert_eq!(serving.told("/v1/search", &json!({"query": "rain", "mode": mode}))["hits"], json!([]), "{mode}");
    }
    let context = serving.told("/v1/context", &json!({"query": "rain"}));
    assert_eq!(context["outcome"], "nothing_relevant", "{context}");
    let document = json!({"documents": [{"id": "rain", "text": "Rain falls from clouds."}]});
    let begun = serving.post("/v1/collections/new-1/documents", &document).json();
    let job = serving.ended(begun["id"].as_str().unwrap());
    assert_eq!((&job["state"], &job["result"]["n_added"]), (&"done".into(), &1.into()), "{job}");
    assert_eq!(serving.told("/v1/search", &json!({"query": "rain"}))["hits"][0]["document"], "rain");
    assert!(serving.put("/v1/collections/new-1", b"{}").refused(409, "collection_taken").contains("\"collection\""));
    drop(serving);
    let serving = empty(&place);
    assert_eq!(serving.told("/v1/search", &json!({"query": "rain"}))["hits"][0]["document"], "rain");
    place.ok(&["doctor", "--collection", "all/new-1"]);
}

#[test]
fn what_cannot_be_a_collection_is_not_made() {
    let place = Place::new();
    place.write("all/taken/mine.txt", "not a collection");
    place.write("secret/config.json", "{}");
    let serving = empty(&place);
    let before = || std::fs::read_dir(place.path("all")).unwrap().count();
    for name in ["..", "%2e%2e", ".hidden", "a%20b", "a%2fb", "..%2fout", "%00", "-x", "a%5cb", "a:b", "\u{e4}"] {
        let refused = serving.put(&format!("/v1/collections/{name}"), b"{}");
        assert!([400, 404, 405].contains(&refused.status), "{name}: {}", refused.text());
    }
    let long = serving.put(&format!("/v1/collections/{}", "x".repeat(65)), b"{}");
    assert!(long.refused(400, "setting").contains("\"collection\""));
    serving.put("/v1/collections/taken", b"{}").refused(409, "collection_taken");
    let folder = place.path("secret").display().to_string();
    for (body, parameter) in [
        (json!({"model": "nobody/nothing"}), "model"),
        (json!({"model": folder}), "model"),
        (json!({"model": "secret"}), "model"),
        (json!({"model": "../secret"}), "model"),
        (json!({"chunk_tokens": 0}), "chunk_tokens"),
        (json!({"chunk_tokens": "page"}), "chunk_tokens"),
        (json!({"header": "big"}), "header"),
        (json!({"language": "klingon"}), "language"),
        (json!({"vectors": "f8"}), "vectors"),
        (json!({"pooling": "max"}), "pooling"),
        (json!({"precision": "f1"}), "precision"),
        (json!({"late_window": 64}), "late-window"),
    ] {
        let refused = serving.put("/v1/collections/new", body.to_string().as_bytes()).refused(400, "setting");
        assert!(refused.contains(&format!("\"parameter\":\"{parameter}\"")), "{body}: {refused}");
    }
    serving.put("/v1/collections/new", br#"{"modle": "x"}"#).refused(400, "unknown_field");
    assert_eq!(before(), 1, "nothing is left of what was refused");
    // Of many who make one name at once, one does.
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| serving.put("/v1/collections/new", b"{}").status)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [201, 409, 429].contains(status)), "{statuses:?}");
    let one = Place::indexed();
    Serving::start(&one, &["--writable"]).put("/v1/collections/new", b"{}").refused(403, "read_only");
    let reading = Serving::start(&place, &["--collections", "all"]);
    reading.put("/v1/collections/other", b"{}").refused(403, "read_only");
    reading.put("/v1/collections/new/files/a.md", b"a").refused(403, "read_only");
}

#[test]
fn a_file_is_handed_over_and_replaced_by_another_of_its_path() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--writable", "--root", "notes", "--max-body", "100000"]);
    let page = b"---\ntags: [hot]\n---\n# Geysers\n\nHot water rises.\n\n## Iceland\n\nA geyser erupts.\n";
    let added = serving.uploaded("manual/geyser.md", page);
    assert_eq!((&added["state"], &added["result"]["n_added"]), (&"done".into(), &1.into()), "{added}");
    let found = serving.told("/v1/search", &json!({"query": "geyser erupts", "filter": "tags = \"hot\"", "k": 1}));
    assert_eq!(found["hits"][0]["document"], "/uploaded/manual/geyser.md", "{found}");
    let again = serving.uploaded("manual/geyser.md", page);
    assert_eq!((&again["result"]["n_unchanged"], &again["result"]["generation"]), (&1.into(), &2.into()), "{again}");
    let records =
        |n: usize| (0..n).map(|n| format!("{{\"id\": \"r{n}\", \"text\": \"record {n}\"}}\n")).collect::<String>();
    assert_eq!(serving.uploaded("rows.jsonl", records(3).as_bytes())["result"]["n_added"], 3);
    let fewer = serving.uploaded("rows.jsonl", records(2).as_bytes());
    assert_eq!((&fewer["result"]["n_removed"], &fewer["result"]["n_unchanged"]), (&1.into(), &2.into()), "{fewer}");
    let indexed = serving.wrote("index", &json!({"paths": ["notes"]}));
    assert_eq!(indexed["result"]["n_removed"], 0, "{indexed}");
    let listed = serving.get("/v1/collections/cento/documents").text();
    assert!(listed.contains("/uploaded/rows.jsonl/r1") && !listed.contains("rows.jsonl/r2"), "{listed}");
    let spaced = serving.uploaded("a%20b/%C3%BCn.txt", "A text.".as_bytes());
    assert_eq!(spaced["result"]["n_added"], 1, "{spaced}");
    assert_eq!(serving.wrote("delete", &json!({"ids": ["/uploaded/manual/geyser.md"]}))["result"]["n_removed"], 1);
    place.ok(&["doctor"]);
}

#[test]
fn files_that_cannot_be_read_and_paths_that_are_none_change_nothing() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--writable", "--max-body", "100000"]);
    assert_eq!(serving.uploaded("x.md/y.md", b"# Inner")["state"], "done");
    let before = place.read(".cento/manifest.json");
    let temporary = std::env::temp_dir().display().to_string();
    for (path, body) in [("photo.png", &b"\x89PNG\r\n\x1a\n\0\0\0"[..]), ("bin.txt", b"a\0\xff\xfe\0b")] {
        let job = serving.uploaded(path, body);
        assert!(job["state"] == "failed" || job["result"]["n_added"] == 0, "{path}: {job}");
        assert!(!job.to_string().contains(&format!("{temporary}/")), "{path}: {job}");
    }
    let folder = serving.uploaded("x.md", b"# Outer");
    assert!(folder["state"] == "failed" && folder["error"]["parameter"] == "path", "{folder}");
    for path in
        ["..", "../x.md", "a/../x.md", "%2e%2e/x.md", "a//b.md", "/etc/passwd", "a%5cb.md", "a%00b.md", "c:x.md"]
    {
        let refused = serving.put(&format!("/v1/collections/cento/files/{path}"), b"x");
        assert!([400, 404, 405].contains(&refused.status), "{path}: {}", refused.text());
    }
    let long = format!("/v1/collections/cento/files/{}.md", "x".repeat(300));
    assert!(serving.put(&long, b"x").refused(400, "setting").contains("\"path\""));
    serving.put("/v1/collections/cento/files/a.md", &[b'x'; 200_000]).refused(413, "body");
    serving.put("/v1/collections/gone/files/a.md", b"x").refused(404, "unknown_collection");
    serving.put("/v1/collections/cento/files/a.md?title=x", b"x").refused(400, "unknown_field");
    assert_eq!(before, place.read(".cento/manifest.json"));
}
