//! `cento serve --writable`: what a writer does and leaves alone, its jobs, and what is refused of it.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serving::{Answer, Serving};
use crate::support::Place;

/// The time after which a job that goes on is taken to hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// The hashes of `moon` and of `tide`.
const MOON: &str = "9e78b43ea00edcac8299e0cc8df7f6f913078171335f733a21d5d911b6999132";
pub(crate) const TIDE: &str = "8a28929ac7f9a17e97a421ac2cd63ac73568ebe87bc0cee641a193d91c761577";

impl Serving {
    /// A job that a request begins, at its end.
    #[track_caller]
    pub(crate) fn wrote(&self, what: &str, body: &Value) -> Value {
        self.ended(&self.begun(what, body))
    }

    /// The id of the job that a request begins.
    #[track_caller]
    pub(crate) fn begun(&self, what: &str, body: &Value) -> String {
        let answer = self.write(what, body);
        assert_eq!(answer.status, 202, "{what}: {}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, what: &str, body: &Value) -> Answer {
        self.post(&format!("/v1/collections/cento/{what}"), body)
    }

    #[track_caller]
    pub(crate) fn job(&self, id: &str) -> Value {
        let answer = self.get(&format!("/v1/jobs/{id}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// A job when `is` holds of it.
    #[track_caller]
    pub(crate) fn job_when(&self, id: &str, is: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let job = self.job(id);
            if is(&job) {
                return job;
            }
            assert!(began.elapsed() < PATIENCE, "{job}");
            std::thread::yield_now();
        }
    }

    #[track_caller]
    pub(crate) fn ended(&self, id: &str) -> Value {
        self.job_when(id, |job| !["running", "cancelling"].contains(&job["state"].as_str().unwrap()))
    }
}

#[track_caller]
fn done(job: Value) -> Value {
    assert_eq!((&job["state"], &job["error"]), (&"done".into(), &Value::Null), "{job}");
    job["result"].clone()
}

#[track_caller]
fn failed(job: &Value, code: &str) -> String {
    assert_eq!((&job["state"], &job["result"]), (&"failed".into(), &Value::Null), "{job}");
    assert_eq!(job["error"]["code"], code, "{job}");
    job["error"]["message"].as_str().unwrap().to_owned()
}

/// Documents of some length, each unlike all others.
pub(crate) fn many(n: usize) -> Value {
    let text = |n: usize| (0..40).map(|word| format!("word{} ", n * 1000 + word)).collect::<String>();
    json!({"documents": (0..n).map(|n| json!({"id": format!("many/{n}"), "text": text(n)})).collect::<Vec<_>>()})
}

#[test]
fn documents_handed_over_are_found_and_stay_whatever_is_indexed() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--writable", "--root", "notes"]);
    let new = json!({"documents": [
        {"id": "volcano", "title": "Volcanoes", "text": "Lava flows down the slope.", "metadata": {"year": 2024, "by": {"name": "ann"}}},
        {"id": "geyser", "text": "# Geysers\n\nHot water rises.\n\n## Iceland\n\nA geyser erupts.\n", "format": "markdown"},
    ]});
    let added = done(serving.wrote("documents", &new));
    assert_eq!((&added["n_added"], &added["generation"]), (&2.into(), &2.into()), "{added}");
    let found =
        serving.told("/v1/search", &json!({"query": "lava slope", "filter": "year = 2024 and by.name = \"ann\""}));
    assert_eq!((&found["generation"], &found["hits"][0]["document"]), (&2.into(), &"volcano".into()), "{found}");
    let sections = serving.get("/v1/collections/cento/sections?document=geyser").json();
    assert_eq!(sections["sections"].as_array().unwrap().len(), 3, "{sections}");
    let again = done(serving.wrote("documents", &new));
    assert_eq!((&again["n_unchanged"], &again["generation"]), (&2.into(), &2.into()), "nothing to commit: {again}");
    let changed = json!({"documents": [{"id": "volcano", "text": "Ash falls on the town."}]});
    assert_eq!(done(serving.wrote("documents", &changed))["n_changed"], 1);
    // A folder is indexed, twice, by this server and by a command: what was handed over stays.
    place.write("notes/wind.md", "# Wind\n\nWind moves the sand.\n");
    let indexed = done(serving.wrote("index", &json!({"paths": ["notes"]})));
    assert_eq!(
        (&indexed["n_added"], &indexed["n_removed"], &indexed["n_unchanged"]),
        (&1.into(), &0.into(), &3.into())
    );
    std::fs::remove_file(place.path("notes/wind.md")).unwrap();
    let report = place.index(&["notes"]);
    assert_eq!((&report["n_removed"], &report["n_unchanged"]), (&1.into(), &3.into()), "{report}");
    let listed = place.json(&["list"]);
    let ids: Vec<&str> =
        listed["documents"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["geyser", "notes/bread.md", "notes/sub/stars.txt", "notes/tides.md", "volcano"]);
    let found = serving.told("/v1/search", &json!({"query": "ash town", "k": 1}));
    assert_eq!(found["hits"][0]["document"], "volcano");
    // Nobody's document is displaced by one of the same id, in either direction.
    let taken = serving.wrote("documents", &json!({"documents": [{"id": "notes/tides.md", "text": "mine"}]}));
    assert!(failed(&taken, "id_taken").contains("notes/tides.md"));
    done(serving.wrote("documents", &json!({"documents": [{"id": "notes/later.md", "text": "mine"}]})));
    place.write("notes/later.md", "theirs");
    place.run(&["index", "notes"]).fails(3, &["notes/later.md", "nothing was changed"]);
    assert!(failed(&serving.wrote("index", &json!({"paths": ["notes"]})), "id_taken").contains("/uploaded"));
}

#[test]
fn documents_go_and_segments_merge() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--writable"]);
    let documents: Vec<Value> =
        (0..6).map(|n| json!({"id": format!("d{n}"), "text": format!("text {n}"), "metadata": {"n": n}})).collect();
    for one in &documents {
        done(serving.wrote("documents", &json!({"documents": [one]})));
    }
    let removed = done(serving.wrote("delete", &json!({"ids": ["d0", "notes/bread.md"]})));
    assert_eq!((&removed["n_removed"], &removed["generation"]), (&2.into(), &8.into()));
    assert_eq!(done(serving.wrote("delete", &json!({"filter": "n >= 4"})))["n_removed"], 2);
    assert_eq!(done(serving.wrote("delete", &json!({"filter": "n >= 4"})))["n_removed"], 0);
    let before = serving.told("/v1/search", &json!({"query": "text 2", "k": 10}));
    let merged = done(serving.wrote("compact", &json!({"all": true})));
    assert!(merged["n_merged"].as_u64().unwrap() > 2, "{merged}");
    let after = serving.told("/v1/search", &json!({"query": "text 2", "k": 10}));
    assert_eq!((&before["hits"], &after["generation"]), (&after["hits"], &merged["generation"]));
    let unknown = failed(&serving.wrote("delete", &json!({"ids": ["d1", "d0"]})), "unknown_document");
    assert!(unknown.contains("d0"), "{unknown}");
    assert_eq!(serving.told("/v1/search", &json!({"query": "text 1"}))["generation"], merged["generation"]);
    let jobs = serving.get("/v1/jobs").json();
    assert_eq!((jobs["jobs"].as_array().unwrap().len(), &jobs["jobs"][0]["state"]), (11, &"failed".into()), "{jobs}");
}

#[test]
fn one_job_a_collection_at_a_time_and_it_outlives_its_client() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--writable"]);
    let body = many(2000).to_string();
    let head = format!(
        "POST /v1/collections/cento/documents HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
        serving.address,
        body.len()
    );
    let mut stream = serving.connect();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let began = Instant::now();
    let id = loop {
        let jobs = serving.get("/v1/jobs").json();
        if let Some(id) = jobs["jobs"][0]["id"].as_str() {
            break id.to_owned();
        }
        assert!(began.elapsed() < PATIENCE);
    };
    drop(stream);
    let refused = serving.write("compact", &json!({}));
    assert!(refused.refused(409, "job_running").contains(&id));
    // Searches are answered meanwhile, on the generation before.
    let mut n_answered = 0;
    let mut seen = serving.job(&id);
    while seen["state"] == "running" {
        let found = serving.told("/v1/search", &json!({"query": "tide moon", "k": 1}));
        let now = serving.job(&id);
        if now["state"] == "running" {
            // A job that has committed goes on for a moment.
            assert!([1, 2].map(Value::from).contains(&found["generation"]), "{found}");
            assert_eq!(found["hits"][0]["document"], "notes/tides.md");
            n_answered += usize::from(found["generation"] == 1);
        }
        seen = now;
    }
    assert!(n_answered > 0, "{seen}");
    assert_eq!(done(serving.ended(&id))["n_added"], 2000);
    assert_eq!(serving.told("/v1/search", &json!({"query": "word1999005"}))["generation"], 2);
}

#[test]
fn a_job_that_is_cancelled_leaves_the_collection_and_keeps_what_was_embedded() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--writable"]);
    let before = place.read(".cento/manifest.json");
    let body = many(2000);
    let id = serving.begun("documents", &body);
    let running = serving.job_when(&id, |job| job["n_tokens"].as_u64().unwrap() > 0);
    assert!(running["tokens_per_second"].as_f64().unwrap() > 0.0 && running["kind"] == "add", "{running}");
    let cancelling = serving.ask("DELETE", &format!("/v1/jobs/{id}"), &[], b"");
    assert_eq!(cancelling.status, 200, "{}", cancelling.text());
    let cancelled = serving.ended(&id);
    assert_eq!((&cancelled["state"], &cancelled["error"]), (&"cancelled".into(), &Value::Null), "{cancelled}");
    assert_eq!(before, place.read(".cento/manifest.json"));
    let kept = cancelled["n_tokens"].as_u64().unwrap();
    let id = serving.begun("documents", &body);
    let whole = done(serving.ended(&id));
    assert_eq!((&whole["n_added"], &whole["generation"]), (&2000.into(), &2.into()));
    let other = Place::indexed();
    let alone = done(Serving::start(&other, &["--writable"]).wrote("documents", &body));
    let [embedded, all] = [&whole, &alone].map(|result| result["n_tokens_embedded"].as_u64().unwrap());
    assert!(embedded + kept <= all, "{kept} tokens were embedded before, {embedded} then, {all} are needed");
    place.ok(&["doctor"]);
}

#[cfg(unix)]
#[test]
fn a_server_that_stops_ends_its_job_within_a_bound() {
    let place = Place::indexed();
    let mut serving = Serving::start(&place, &["--writable"]);
    let before = place.read(".cento/manifest.json");
    let id = serving.begun("documents", &many(3000));
    serving.job_when(&id, |job| job["n_tokens"].as_u64().unwrap() > 0);
    let began = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &serving.child.id().to_string()]).status().unwrap().success());
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(before, place.read(".cento/manifest.json"), "not committed, as it was cancelled");
    let ended = Instant::now();
    while !serving.log().iter().any(|line| line.contains(r#""jobs_cancelled":1,"server":"stopped""#)) {
        assert!(ended.elapsed() < PATIENCE, "{:#?}", serving.log());
        std::thread::yield_now();
    }
    let serving = Serving::start(&place, &["--writable"]);
    assert_eq!(serving.get("/v1/jobs").json()["jobs"], json!([]));
    serving.get(&format!("/v1/jobs/{id}")).refused(404, "unknown_job");
    done(serving.wrote("documents", &json!({"documents": [{"id": "a", "text": "b"}]})));
}

#[test]
fn only_who_may_write_writes() {
    let place = Place::indexed();
    let reading = Serving::start(&place, &[]);
    let document = json!({"documents": [{"id": "a", "text": "b"}]});
    for (what, body) in
        [("documents", &document), ("delete", &json!({"ids": ["notes/bread.md"]})), ("compact", &json!({}))]
    {
        reading.write(what, body).refused(403, "read_only");
    }
    reading.ask("DELETE", "/v1/jobs/x", &[], b"").refused(403, "read_only");
    assert_eq!(reading.get("/v1/jobs").json()["jobs"], json!([]));
    place.run(&["serve", "--root", "notes"]).fails(2, &["--writable"]);
    place.run(&["serve", "--writable", "--root", "gone"]).fails(2, &["no such file or folder"]);
    place.run(&["serve", "--writable", "--root", "notes", "--root", "notes"]).fails(2, &["LABEL=DIR"]);
    place.write("keys", format!("read sha256:{MOON} ann\nwrite sha256:{TIDE} bob\n"));
    let serving = Serving::start(&place, &["--writable", "--api-keys", "keys"]);
    let path = "/v1/collections/cento/documents";
    let post = |key: &str| serving.ask("POST", path, &[("X-API-Key", key)], document.to_string().as_bytes());
    post("sun").refused(401, "key");
    post("moon").refused(403, "scope");
    serving.ask("DELETE", "/v1/jobs/x", &[("X-API-Key", "moon")], b"").refused(403, "scope");
    assert_eq!(serving.ask("GET", "/v1/jobs", &[("X-API-Key", "moon")], b"").status, 200);
    let begun = post("tide");
    assert_eq!(begun.status, 202, "{}", begun.text());
    serving.ask("DELETE", "/v1/jobs/x", &[("X-API-Key", "tide")], b"").refused(404, "unknown_job");
}

#[cfg(unix)]
#[test]
fn nothing_outside_the_roots_is_read() {
    let place = Place::indexed();
    place.write("secret/passwd.txt", "root:x:0:0");
    place.write("notes/sub/deeper/rain.md", "# Rain\n\nRain falls.\n");
    std::os::unix::fs::symlink(place.path("secret"), place.path("notes/out")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.path("notes/sub/users.txt")).unwrap();
    let serving = Serving::start(&place, &["--writable", "--root", "notes"]);
    let folder = place.path("").display().to_string();
    for path in [
        "secret",
        "../secret",
        "notes/../secret",
        "notes/out",
        "notes/out/passwd.txt",
        "notes/sub/users.txt",
        "/etc/passwd",
        "notes//etc",
        "notes/./sub",
        "notes/%2e%2e/secret",
        "notes/..%2fsecret",
        "notes\u{0}",
        "notes/\u{0}",
        "~",
        "",
        "/",
        &format!("{folder}/secret"),
        &format!("{folder}/notes"),
        "notes/gone",
        "file:///etc",
        "notes=/etc",
        "x=/etc/passwd",
    ] {
        let refused = serving.write("index", &json!({"paths": [path]}));
        assert!(refused.refused(400, "setting").contains("\"parameter\":\"paths\""), "{path:?}");
        assert!(!refused.text().contains(&format!("{folder}notes")), "{}", refused.text());
    }
    serving.write("index", &json!({"paths": []})).refused(400, "setting");
    serving.write("index", &json!({"paths": ["notes"], "root": "/etc"})).refused(400, "unknown_field");
    let indexed = done(serving.wrote("index", &json!({"paths": ["notes/sub/deeper", "notes"]})));
    assert_eq!(indexed["n_added"], 1, "{indexed}");
    let listed = serving.get("/v1/collections/cento/documents").text();
    assert!(
        listed.contains("notes/sub/deeper/rain.md") && !listed.contains("passwd") && !listed.contains("users"),
        "{listed}"
    );
    let gone = serving.wrote("index", &json!({"paths": ["notes/sub/deeper"]}));
    assert_eq!(done(gone)["n_unchanged"], 1, "a part of a root is a run of its own");
    assert_eq!(serving.get("/v1/collections/cento/documents").text(), listed);
}

#[test]
fn hostile_documents_are_refused_and_the_rest_is_served() {
    let place = Place::indexed();
    let serving = Serving::start(&place, &["--writable", "--max-body", "2000000"]);
    let before = place.read(".cento/manifest.json");
    let one = |document: Value| json!({"documents": [document]}).to_string();
    let deep = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    for (body, status) in [
        (one(json!({"id": "", "text": "x"})), 400),
        (one(json!({"id": " \t", "text": "x"})), 400),
        (one(json!({"id": "a\u{0}b", "text": "x"})), 400),
        (one(json!({"id": "a\nb", "text": "x"})), 400),
        (one(json!({"id": "x".repeat(5000), "text": "x"})), 400),
        (one(json!({"id": 7, "text": "x"})), 400),
        (one(json!({"text": "x"})), 400),
        (one(json!({"id": "a"})), 400),
        (one(json!({"id": "a", "text": null})), 400),
        (one(json!({"id": "a", "text": "x", "format": "pdf"})), 400),
        (one(json!({"id": "a", "text": "x", "origin": "/etc/passwd"})), 400),
        (one(json!({"id": "a", "text": "x", "title": "t".repeat(20_000)})), 400),
        (one(json!({"id": "a", "text": "x", "metadata": [1]})), 400),
        (one(json!({"id": "a", "text": "x", "metadata": {"n".repeat(5000): 1}})), 400),
        (one(json!({"id": "a", "text": "x", "metadata": {"a": vec![1; 70_000]}})), 400),
        (
            one(
                json!({"id": "a", "text": "x", "metadata": (0..5000).map(|n| (n.to_string(), n.into())).collect::<serde_json::Map<_, Value>>()}),
            ),
            400,
        ),
        (format!("{{\"documents\": [{{\"id\": \"a\", \"text\": \"x\", \"metadata\": {deep}}}]}}"), 400),
        ("{\"documents\": [{\"id\": \"a\", \"text\": \"x\", \"metadata\": {\"a\": 1e999}}]}".to_owned(), 400),
        ("{\"documents\": [{\"id\": \"a\", \"text\": \"x\", \"metadata\": {\"a\": 1, \"a\": 2}}]}".to_owned(), 400),
        (
            "{\"documents\": [{\"id\": \"a\", \"text\": \"x\", \"metadata\": {\"b\": [{\"a\": 1, \"a\": 1}]}}]}"
                .to_owned(),
            400,
        ),
        ("{\"documents\": [{\"id\": \"a\", \"id\": \"b\", \"text\": \"x\"}]}".to_owned(), 400),
        ("{\"documents\": [], \"documents\": []}".to_owned(), 400),
        (json!({"documents": []}).to_string(), 400),
        (json!({"documents": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]}).to_string(), 400),
        (one(json!({"id": "a", "text": "x".repeat(3_000_000)})), 413),
        ("[]".to_owned(), 400),
        ("\u{1f}".to_owned(), 400),
    ] {
        let refused = serving.ask("POST", "/v1/collections/cento/documents", &[], body.as_bytes());
        let shown: String = body.chars().take(100).collect();
        assert_eq!(refused.status, status, "{shown}: {}", refused.text());
        assert_eq!(refused.header("content-type"), Some("application/json"));
        assert!(refused.json()["error"]["code"].is_string(), "{shown}: {}", refused.text());
    }
    for collection in ["..", "%2e%2e", "..%2f.cento", "%00", ".cento", "cento%2f..", "/etc", "cento\\..", "%2Fetc"] {
        for what in ["documents", "index", "delete", "compact"] {
            let refused = serving.post(&format!("/v1/collections/{collection}/{what}"), &json!({}));
            assert!([400, 404, 405].contains(&refused.status), "{collection}/{what}: {}", refused.text());
        }
    }
    for body in [
        json!({}),
        json!({"ids": []}),
        json!({"ids": ["a"], "filter": "x = 1"}),
        json!({"filter": "(((("}),
        json!({"ids": "all"}),
    ] {
        let refused = serving.write("delete", &body);
        assert_eq!(refused.status, 400, "{body}: {}", refused.text());
    }
    assert_eq!(before, place.read(".cento/manifest.json"));
    // An id that looks like a path is a name, and nothing else.
    let names = ["../../etc/passwd", "/etc/passwd", "..", "%2e%2e", "a#1", "con", "a b", "ünï/\u{202e}x"];
    let documents: Vec<Value> = names.iter().map(|id| json!({"id": id, "text": format!("the text of {id}")})).collect();
    assert_eq!(done(serving.wrote("documents", &json!({"documents": documents})))["n_added"], names.len());
    let found = serving.get("/v1/collections/cento/text?citation=../../etc/passwd").json();
    assert_eq!(found["text"], "the text of ../../etc/passwd");
    assert_eq!(done(serving.wrote("delete", &json!({"ids": names})))["n_removed"], names.len());
    assert_eq!(serving.told("/v1/search", &json!({"query": "tide"}))["hits"][0]["document"], "notes/tides.md");
}

#[test]
fn folders_of_the_server_are_not_shown_and_paths_are_no_names() {
    let place = Place::indexed();
    let (folder, encoder) = (place.path("").display().to_string(), crate::support::tiny_model());
    let cited = place.path("notes/tides.md").display().to_string();
    let serving = Serving::start(&place, &[]);
    let status = serving.get("/v1/collections/cento");
    assert!(!status.text().contains(&folder) && !status.text().contains(&encoder), "{}", status.text());
    assert_eq!(
        (&status.json()["roots"]["notes"], &status.json()["config"]["model"]),
        (&"notes".into(), &"tiny".into())
    );
    let embedded = serving.told("/v1/embed", &json!({"texts": ["a"]}));
    assert_eq!(embedded["model"], "tiny");
    serving.get(&format!("/v1/collections/cento/text?citation={cited}")).refused(404, "unknown_document");
    serving.get("/v1/collections/cento/text?citation=./notes/../notes/tides.md").refused(404, "unknown_document");
    let shown = Serving::start(&place, &["--show-folders"]);
    assert!(shown.get("/v1/collections/cento").text().contains(&encoder));
    assert_eq!(shown.get(&format!("/v1/collections/cento/text?citation={cited}")).status, 200);
}
