//! Where a setting comes from: command line, then environment, then the user's file, then `cento.toml` here, then the
//! default. What `cento.toml` may say unless its folder is trusted, and where a key is sent.

use serde_json::{Value, json};

use crate::support::{Place, Ran, Server};

fn shown(value: &Value, setting: &str) -> (String, String) {
    let found = value["settings"].as_array().unwrap().iter().find(|shown| shown["setting"] == setting);
    let found = found.unwrap_or_else(|| panic!("no setting {setting}"));
    (found["value"].as_str().unwrap_or_default().to_owned(), found["source"].as_str().unwrap().to_owned())
}

#[test]
fn the_command_line_wins_over_environment_over_file_over_default() {
    let place = Place::indexed();
    assert_eq!(shown(&place.json(&["config", "show"]), "search.fusion"), ("adaptive".to_owned(), "default".to_owned()));
    place.write("cento.toml", "fusion = \"rrf\"\n[search]\nk = 2\n");
    let from_file = place.json(&["config", "show"]);
    assert_eq!(shown(&from_file, "search.fusion"), ("rrf".to_owned(), "cento.toml".to_owned()));
    assert_eq!(shown(&from_file, "search.k").0, "2");
    assert_eq!(shown(&from_file, "run.k").1, "default");
    let n_hits = |arguments: &[&str], k: Option<&str>| {
        let mut command = place.command(&[&["search", "moon tide bread", "--json"], arguments].concat());
        if let Some(k) = k {
            command.env("CENTO_K", k);
        }
        let answer: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        assert_eq!(answer["fusion"], "rrf");
        answer["hits"].as_array().unwrap().len()
    };
    assert_eq!(n_hits(&[], None), 2);
    assert_eq!(n_hits(&[], Some("3")), 3);
    assert_eq!(n_hits(&["-k", "1"], Some("3")), 1);
}

#[test]
fn a_setting_in_the_file_stands_for_an_option_that_is_not_given() {
    let place = Place::indexed();
    let ran = place.ok(&["context", "moon"]);
    assert!(ran.err.contains("budget: 2000 tokens (default)") && ran.err.contains("of 2000 tokens"), "{ran:?}");
    place.write("cento.toml", "[context]\nbudget = 120\n");
    let ran = place.ok(&["context", "moon"]);
    assert!(ran.err.contains("of 120 tokens") && !ran.err.contains("default"), "{ran:?}");
}

#[test]
fn an_unknown_setting_names_the_nearest() {
    let place = Place::new();
    place.write("cento.toml", "colection = \"x\"\n");
    place.run(&["status"]).fails(2, &["cento.toml", "colection", "collection"]);
    place.write("cento.toml", "[serch]\nk = 2\n");
    place.run(&["config", "check"]).fails(2, &["serch", "search"]);
    place.write("cento.toml", "k = [1]\n");
    place.run(&["config", "check"]).fails(2, &["array"]);
}

#[test]
fn no_setting_says_what_is_deleted() {
    let place = Place::indexed();
    place.write("cento.toml", "filter = 'id exists'\n");
    assert_eq!(place.json(&["search", "moon"])["filter"]["n_admitted"], 3);
    let mut command = place.command(&["delete"]);
    command.env("CENTO_FILTER", "id exists").env("CENTO_PATH", "notes").env("CENTO_DRY_RUN", "1");
    assert_eq!(command.output().unwrap().status.code(), Some(2));
    assert_eq!(place.json(&["delete", "notes/bread.md"])["deleted"], serde_json::json!(["notes/bread.md"]));
    place.write("cento.toml", "no-compact = true\n[delete]\nno-compact = true\n");
    place.ok(&["config", "check"]);
    place.write("cento.toml", "[delete]\nfilter = 'id exists'\n");
    place.run(&["config", "check"]).fails(2, &["delete.filter"]);
}

#[test]
fn an_unknown_option_names_the_nearest() {
    Place::new().run(&["search", "x", "--fuson", "rrf"]).fails(2, &["--fuson", "--fusion"]);
}

#[test]
fn a_variable_that_is_no_setting_is_told_with_the_nearest() {
    let place = Place::indexed();
    let ask = |name: &str, arguments: &[&str]| {
        Ran::new(arguments, place.command(arguments).env(name, "rrf").output().unwrap())
    };
    let ran = ask("CENTO_FUSON", &["search", "moon"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("warning: CENTO_FUSON") && ran.err.contains("did you mean CENTO_FUSION?"), "{ran:?}");
    assert!(!ask("CENTO_FUSION", &["search", "moon"]).err.contains("CENTO_"));
    assert!(!ask("CENTO_FUSON", &["search", "moon", "--quiet"]).err.contains("CENTO_"));
}

#[test]
fn completions_name_the_verbs() {
    let script = Place::new().ok(&["completions", "bash"]).out;
    assert!(script.contains("context") && script.contains("--budget"));
}

#[test]
fn the_users_file_wins_over_the_file_of_the_folder() {
    let place = Place::indexed();
    place.write("cento.toml", "fusion = \"rrf\"\n[search]\nk = 2\nmode = \"dense\"\n");
    place.write_settings("k = 3\nmode = \"hybrid\"\n[search]\nmode = \"lexical\"\n");
    let show = place.json(&["config", "show"]);
    let users = place.path("user/config/cento/cento.toml").display().to_string();
    assert_eq!(shown(&show, "search.k"), ("3".to_owned(), users.clone()));
    assert_eq!(shown(&show, "search.mode"), ("lexical".to_owned(), users.clone()));
    assert_eq!(shown(&show, "context.mode"), ("hybrid".to_owned(), users));
    assert_eq!(shown(&show, "search.fusion"), ("rrf".to_owned(), "cento.toml".to_owned()));
    assert_eq!(ignored(&show, "search.k"), json!([{"value": "2", "source": "cento.toml", "why": "overruled"}]));
    // A file that is named stands for both.
    place.write("named.toml", "[search]\nk = 1\n");
    let show = place.json(&["config", "show", "--config", "named.toml"]);
    assert_eq!(shown(&show, "search.k"), ("1".to_owned(), "named.toml".to_owned()));
    assert_eq!(shown(&show, "search.fusion").1, "default");
}

#[test]
fn a_value_that_cannot_be_is_told_with_its_file_and_key() {
    let place = Place::indexed();
    for (text, words) in [
        ("[search]\nk = \"many\"\n", ["search.k = \"many\"", "invalid digit"]),
        ("mode = \"denze\"\n", ["mode = \"denze\"", "dense, lexical"]),
        ("quiet = \"perhaps\"\n", ["quiet = \"perhaps\"", "boolean"]),
        ("[fuse]\nweights = \"1,x\"\n", ["fuse.weights = \"1,x\"", "invalid float"]),
    ] {
        place.write("cento.toml", text);
        for command in [&["config", "check"][..], &["search", "moon"]] {
            let ran = place.run(command);
            ran.fails(2, &["cento.toml", words[0], words[1]]);
            assert!(!ran.err.contains("--"), "no option of the command line is to blame: {ran:?}");
        }
    }
    place.write("cento.toml", "[fuse]\nweights = \"1,0.5\"\n[search]\nexact = true\n");
    place.write_settings("[search]\nk = \"few\"\n");
    place.run(&["config", "check"]).fails(2, &["user/config/cento/cento.toml", "search.k = \"few\""]);
}

const SEAL: [&str; 6] = ["context", "what moves the tide", "--budget", "90", "--strategy", "seal"];

/// A language model that finds nothing.
fn server() -> Server {
    Server::says("{\"entities\": [], \"sufficient\": true, \"missing\": []}")
}

/// Asks for a context by `seal`, with a key in the environment.
fn ask(place: &Place, arguments: &[&str]) -> Ran {
    let arguments = [&SEAL[..], arguments].concat();
    Ran::new(&arguments, place.command(&arguments).env("CENTO_ENDPOINT_KEY", KEY).output().unwrap())
}

const KEY: &str = "sk-hush-123456";

fn planted(server: &Server) -> String {
    format!("[context]\nendpoint = {:?}\nendpoint-model = \"small\"\n", server.url)
}

#[test]
fn what_a_found_file_may_not_say_is_refused_before_anything_is_done() {
    let (place, server) = (Place::indexed(), server());
    place.write("precious", "not to be lost");
    place.write("evil/config.json", "{}");
    let url = format!("{:?}", server.url);
    for (key, value) in [
        ("context.endpoint", &*url),
        ("context.trace", "\"precious\""),
        ("trace", "\"precious\""),
        ("run.output", "\"precious\""),
        ("run.contexts", "\"precious\""),
        ("index.report", "\"precious\""),
        ("model", "\"./evil\""),
        ("model", "\"evil\""),
        ("tokenizer", "\"evil/tokenizer.json\""),
        ("policy", "\"evil/policy.toml\""),
        ("device", "\"cuda:0\""),
        ("threads", "\"3\""),
        ("cache", "\"evil\""),
        ("cache-max-bytes", "\"1KiB\""),
        ("collection", "\"../elsewhere\""),
        ("collection", "\"/elsewhere\""),
    ] {
        let (table, name) =
            key.split_once('.').map_or((String::new(), key), |(verb, name)| (format!("[{verb}]\n"), name));
        let also = if name == "endpoint" { "endpoint-model = \"small\"\n" } else { "" };
        place.write("cento.toml", format!("{table}{name} = {value}\n{also}"));
        let variable = format!("CENTO_{}", name.to_uppercase().replace('-', "_"));
        let line = format!("cento.toml: {key} = {value}");
        let words = [&*line, &format!("--{name}"), &variable, "user/config/cento/cento.toml", "`cento trust"];
        ask(&place, &[]).fails(2, &words);
        place.run(&["config", "check"]).fails(2, &words);
        // The word of the user is another matter.
        assert_eq!(place.json(&["config", "check", "--config", "cento.toml"])["files"], json!(["cento.toml"]));
    }
    assert!(server.heard().is_empty(), "{:?}", server.heard());
    assert_eq!(place.read("precious"), b"not to be lost");
    place.write("cento.toml", "[context]\nendpoint = \"http://me:secret@host/v1\"\n");
    let ran = ask(&place, &[]);
    ran.fails(2, &["context.endpoint"]);
    assert!(!ran.err.contains("secret"), "{ran:?}");
}

#[test]
fn a_found_file_may_name_cards_and_a_collection_inside_its_folder() {
    let place = Place::new();
    place.write_notes();
    place.write("cento.toml", "collection = \"made/here\"\nmodel = \"all-minilm-l6-v2\"\ntokenizer = \"cl100k\"\n");
    place.index(&["notes"]);
    assert!(place.path("made/here/manifest.json").is_file());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("notes"), place.path("out")).unwrap();
        for collection in ["out", "out/here", "./made/../out"] {
            place.write("cento.toml", format!("collection = {collection:?}\n"));
            place.run(&["status"]).fails(2, &["cento.toml: collection = ", "inside its folder"]);
        }
    }
}

#[test]
fn every_setting_says_where_it_comes_from_and_what_was_refused() {
    let place = Place::new();
    place.write("cento.toml", "[context]\ntrace = \"precious\"\nbudget = 7\n");
    let show = place.json(&["config", "show"]);
    assert_eq!(shown(&show, "context.trace"), (String::new(), "default".to_owned()));
    assert_eq!(
        ignored(&show, "context.trace"),
        json!([{"value": "precious", "source": "cento.toml", "why": "refused"}])
    );
    assert_eq!(shown(&show, "context.budget"), ("7".to_owned(), "cento.toml".to_owned()));
    let text = place.ok(&["config", "show"]).out;
    assert!(text.contains("cento.toml: \"precious\" (refused)"), "{text}");
}

fn ignored(value: &Value, setting: &str) -> Value {
    let found = value["settings"].as_array().unwrap().iter().find(|shown| shown["setting"] == setting);
    found.unwrap_or_else(|| panic!("no setting {setting}"))["ignored"].clone()
}

#[test]
fn a_folder_is_trusted_by_the_content_of_its_file() {
    let (place, server) = (Place::indexed(), server());
    place.run(&["trust", "."]).fails(2, &["cento.toml"]);
    place.write("cento.toml", planted(&server));
    // Nobody is there to be asked.
    place.run(&["trust", "."]).fails(2, &["context.endpoint", &server.url, "--yes"]);
    assert_eq!(place.json(&["trust"])["trusted"], json!([]));
    ask(&place, &[]).fails(2, &["context.endpoint"]);

    assert_eq!(place.json(&["trust", ".", "--yes"])["state"], "trusted");
    // It is obeyed; but only who asks may send the machine to its own network.
    ask(&place, &[]).fails(2, &["endpoint", "127.0.0.1", "no public address"]);
    assert_eq!(ask(&place, &["--endpoint", &server.url]).code, 0);
    assert!(!server.heard().is_empty());
    let folder = place.path("").canonicalize().unwrap().display().to_string();
    assert_eq!(place.json(&["trust"])["trusted"], json!([{"folder": folder, "state": "trusted"}]));

    // Another content, or the same one elsewhere, is another file.
    let n_heard = server.heard().len();
    place.write("cento.toml", planted(&server) + "trace = \"precious\"\n");
    ask(&place, &[]).fails(2, &["context.endpoint", "has changed since it was trusted"]);
    assert_eq!(place.json(&["trust"])["trusted"][0]["state"], "changed");
    place.write("other/cento.toml", planted(&server));
    let mut elsewhere = place.command(&["context", "x", "--budget", "9"]);
    assert_eq!(elsewhere.current_dir(place.path("other")).output().unwrap().status.code(), Some(2));
    assert_eq!(server.heard().len(), n_heard);

    place.write("cento.toml", planted(&server));
    place.ok(&["config", "check"]);
    assert_eq!(place.json(&["trust", ".", "--remove"])["state"], "removed");
    place.run(&["config", "check"]).fails(2, &["context.endpoint"]);
    assert_eq!(place.run(&["trust", ".", "--remove"]).code, 1);
}

#[cfg(unix)]
#[test]
fn what_is_trusted_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.write("cento.toml", "threads = 2\n");
    place.ok(&["trust", ".", "--yes"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = place.path("user/data/cento/trusted");
    assert_eq!(mode(&folder), 0o700);
    let records: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(records.len(), 1, "nothing but the record: {records:?}");
    assert_eq!(mode(&records[0]), 0o600);
    // A damaged record is no trust, and another answer mends it.
    std::fs::write(&records[0], "{").unwrap();
    place.run(&["config", "check"]).fails(2, &["threads"]);
    place.ok(&["trust", ".", "--yes"]);
    place.ok(&["config", "check"]);
}

#[test]
fn no_setting_answers_for_the_user() {
    let place = Place::new();
    place.write("cento.toml", "threads = 2\n");
    let mut command = place.command(&["trust", "."]);
    assert_eq!(command.env("CENTO_YES", "1").output().unwrap().status.code(), Some(2));
    place.write("cento.toml", "[trust]\nyes = true\n");
    place.run(&["config", "check"]).fails(2, &["trust.yes"]);
}

#[test]
fn a_key_goes_to_no_host_that_a_folder_names() {
    let (place, users, folders) = (Place::indexed(), server(), server());
    let authorized = |server: &Server| server.heard().iter().filter(|heard| heard.contains(KEY)).count();
    place.write_settings(planted(&users));
    assert_eq!(ask(&place, &[]).code, 0);
    assert!(authorized(&users) > 0 && authorized(&users) == users.heard().len(), "{:?}", users.heard());
    place.write_settings("");

    place.write("cento.toml", planted(&folders));
    place.ok(&["trust", ".", "--yes"]);
    ask(&place, &[]).fails(2, &["no public address"]);
    for host in ["localhost", "models.invalid"] {
        let port = folders.url.trim_end_matches("/v1").rsplit_once(':').unwrap().1;
        place.write("cento.toml", planted(&folders).replace("127.0.0.1", host));
        place.ok(&["trust", ".", "--yes"]);
        let ran = ask(&place, &[]);
        ran.fails(4, &[&format!("CENTO_ENDPOINT_KEY is not sent to {host}:{port}"), "cento.toml", "cannot be reached"]);
        assert_eq!(ran.err.contains("no public address"), host == "localhost", "{ran:?}");
    }
    place.write("cento.toml", planted(&folders));
    place.ok(&["trust", ".", "--yes"]);
    assert!(folders.heard().is_empty(), "{:?}", folders.heard());

    // Named by the user it has the key, whatever the file says.
    let named = ask(&place, &["--endpoint", &folders.url]);
    assert_eq!((named.code, authorized(&folders) > 0), (0, true), "{named:?}");
}

#[test]
fn a_key_does_not_follow_a_redirect() {
    let (place, elsewhere) = (Place::indexed(), server());
    let status = format!("307 Temporary Redirect\r\nLocation: {}/chat/completions", elsewhere.url);
    let server = Server::answers(&status, "");
    ask(&place, &["--endpoint", &server.url, "--endpoint-model", "small"]).fails(4, &["307"]);
    assert!(server.heard()[0].contains(KEY));
    assert!(elsewhere.heard().is_empty(), "{:?}", elsewhere.heard());
}
