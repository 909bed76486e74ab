//! Files with a password, from the command line to the collection: opened, reported, kept when nobody opens them any
//! more, and never shown.

use serde_json::json;

use crate::serving::Serving;
use crate::support::{Place, root, tiny_model};

const SENTENCE: &str = "The harbour is closed until spring.";

fn place() -> Place {
    let place = Place::new();
    let locked = root().join("crates/corpus/src/tests/locked");
    for name in ["aes256.pdf", "agile.docx", "zipcrypto.zip"] {
        place.write(&format!("corpus/{name}"), std::fs::read(locked.join(name)).unwrap());
    }
    place.write("corpus/open.md", "# Open\n\nNobody locked it.\n");
    place.write("right", "hunter2\r\ntide\r\n");
    place.write("wrong", "hunter2\nTide\n");
    place
}

#[test]
fn a_password_that_comes_later_opens_and_one_that_goes_leaves_what_stands() {
    let place = place();
    let index = |more: &[&str]| {
        let ran = place.run(&[&["index", "--model", &tiny_model(), "corpus"], more].concat());
        assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
        ran
    };
    let without = index(&["--report", "report.json"]);
    without.fails(5, &["aes256.pdf", "agile.docx", "zipcrypto.zip", "encrypted", "--password-file FILE"]);
    let report = std::fs::read_to_string(place.path("report.json")).unwrap();
    assert!(report.contains("agile.docx") && report.contains("give its password in a file"), "{report}");
    index(&["--password-file", "wrong"]).fails(5, &["agile.docx", "none of the 2 passwords given opens it"]);
    assert_eq!(place.json(&["status"])["n_documents"], 1);

    let with = index(&["--password-file", "right", "--report", "report.json"]);
    assert_eq!(with.code, 0, "{with:?}");
    for id in ["corpus/aes256.pdf", "corpus/agile.docx", "corpus/zipcrypto.zip/notes.md"] {
        assert!(place.ok(&["get", id]).out.contains(SENTENCE), "{id}");
    }
    assert!(!std::fs::read_to_string(place.path("report.json")).unwrap().contains("tide"));

    let gone = index(&[]);
    gone.fails(5, &["agile.docx", "--password-file FILE"]);
    assert!(place.ok(&["get", "corpus/agile.docx"]).out.contains(SENTENCE));
    assert_eq!(place.json(&["status"])["n_documents"], 4);
}

#[test]
fn a_file_of_passwords_that_is_none_is_refused() {
    let place = place();
    place.write("long", "x".repeat(300));
    place.write("empty", "");
    let index = |file: &str| place.run(&["index", "--model", &tiny_model(), "corpus", "--password-file", file]);
    index("long").fails(2, &["--password-file long", "line 1 has 300 bytes, the limit is 255"]);
    index("empty").fails(2, &["--password-file empty", "no password in it"]);
    assert_ne!(index("absent").code, 0);
    place.write("cento.toml", "[index]\npassword-file = \"right\"\n");
    let refused = place.run(&["index", "--model", &tiny_model(), "corpus"]);
    assert!(refused.code != 0 && refused.err.contains("password-file") && refused.err.contains("trust"), "{refused:?}");
}

#[test]
fn inspect_and_a_server_try_passwords_too() {
    let place = place();
    let inspect =
        |more: &[&str]| place.run(&[&["inspect", "corpus/agile.docx", "--model", &tiny_model()], more].concat());
    inspect(&[]).fails(3, &["agile.docx", "give its password in a file of passwords", "(--password-file)"]);
    let opened = inspect(&["--password-file", "right"]);
    assert!(opened.code == 0 && opened.out.contains(SENTENCE), "{opened:?}");

    place.index(&["corpus/open.md"]);
    let serve = ["--writable", "--root", "corpus", "--password-file", "right"];
    place.run(&["serve", "--password-file", "right"]).fails(2, &["--writable"]);
    let serving = Serving::start(&place, &serve);
    let job = serving.wrote("index", &json!({"paths": ["corpus"]}));
    assert_eq!((&job["result"]["n_failed"], &job["result"]["n_added"]), (&0.into(), &4.into()), "{job}");
    let locked = std::fs::read(place.path("corpus/agile.docx")).unwrap();
    let begun = serving.ask("PUT", "/v1/collections/cento/files/up.docx", &[], &locked);
    let job = serving.ended(begun.json()["id"].as_str().unwrap());
    assert_eq!(job["result"]["n_added"], 1, "{job}");
    assert!(place.ok(&["get", "/uploaded/up.docx"]).out.contains(SENTENCE));
}
