//! Files that a command of the user's reads: from the settings to the citation, what a command that fails costs, and who
//! may name one.

#![cfg(unix)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serving::Serving;
use crate::support::{Place, Ran, tiny_model};

/// Says as Markdown what stands in such a file behind its first three bytes.
const OCR: &str = "#!/bin/sh\necho \"with $1\" >&2\nprintf '# Harbour log\\n\\n'\ntail -c +4 | tr '\\000' '\\n'\n";

/// A scan, as far as the script is concerned: no text, by its zero bytes.
const SCAN: &[u8] = b"II*The harbour is closed until spring.\0\0The pilot waits at the lock.\0";

/// A place with a scan, a note, and a script beside them.
fn place() -> Place {
    let place = Place::new();
    place.write("notes/scan.tiff", SCAN);
    place.write("notes/open.md", "# Open\n\nThe gate is open.\n");
    place.write("ocr.sh", OCR);
    place
}

/// The settings that have a script read such files.
fn settings(place: &Place, script: &str) -> String {
    format!("[read.command]\ntiff = [\"/bin/sh\", \"{}\", \"--stdout\"]\n", place.path(script).display())
}

fn index(place: &Place, arguments: &[&str]) -> Ran {
    place.run(&[&["index", "--model", &tiny_model()], arguments].concat())
}

#[test]
fn a_command_reads_files_that_nobody_else_does() {
    let place = place();
    index(&place, &["notes"]).fails(0, &["left out", "scan.tiff", "unknown type"]);
    place.write_settings(settings(&place, "ocr.sh"));
    let report = place.index(&["notes"]);
    assert_eq!((&report["n_added"], &report["n_unchanged"]), (&1.into(), &1.into()), "{report}");
    let file = &report["files"][0];
    assert_eq!((&file["origin"], &file["format"]), (&"notes/scan.tiff".into(), &"markdown".into()), "{report}");
    assert_eq!((&file["extraction"]["engine"], &file["suspicion"]), (&"command /bin/sh".into(), &"fine".into()));
    assert!(report["warnings"].to_string().contains("/bin/sh says: with --stdout"), "{report}");
    let hits = place.json(&["search", "harbour spring", "--mode", "lexical"]);
    assert_eq!(hits["hits"][0]["document"], "notes/scan.tiff", "{hits}");
    assert_eq!(place.ok(&["get", "notes/scan.tiff bytes 15-50"]).out.trim_end(), "The harbour is closed until spring.");
    let context = place.ok(&["context", "when does the harbour open", "--budget", "200"]);
    let context = context.out + &context.err;
    assert!(
        context.contains("notes/scan.tiff bytes 0-") && context.contains("The pilot waits at the lock."),
        "{context}"
    );
    assert!(place.ok(&["inspect", "notes/scan.tiff", "--model", &tiny_model()]).out.contains("Harbour log"));
    // Another format that is asked for is read as that.
    index(&place, &["notes", "--dry-run", "--format", "md"]).fails(0, &["scan.tiff", "left out"]);
}

#[test]
fn a_command_that_changes_reads_its_files_again() {
    let place = place();
    place.write_settings(settings(&place, "ocr.sh"));
    place.index(&["notes"]);
    let again = place.index(&["notes"]);
    assert_eq!((&again["n_changed"], &again["n_unchanged"], &again["generation"]), (&0.into(), &2.into(), &1.into()));
    place.write("better.sh", OCR.replace("Harbour log", "Log of the harbour"));
    place.write_settings(settings(&place, "better.sh"));
    let changed = place.index(&["notes"]);
    assert_eq!((&changed["n_changed"], &changed["n_unchanged"]), (&1.into(), &1.into()), "{changed}");
    assert!(place.ok(&["get", "notes/scan.tiff"]).out.contains("Log of the harbour"));
    // What it reads is nobody else's to read any more: a PDF by its name alone.
    place.write("notes/page.pdf", b"III\0no PDF at all");
    place.write_settings(settings(&place, "better.sh").replace("tiff", "pdf"));
    assert!(place.index(&["notes"])["n_added"] == 1 && place.ok(&["get", "notes/page.pdf"]).out.contains("no PDF"));
}

#[test]
fn a_command_that_fails_costs_its_file_alone() {
    let place = Place::new();
    let scripts = [
        (
            "dies",
            "echo no such language >&2; echo half a text; exit 3",
            ["failed: exit status: 3: no such language", ""],
        ),
        ("hangs", "sleep 600", ["was ended: not done in 4 s", "[read.command]"]),
        ("spins", "while :; do :; done", ["more than 1 s of processor time", "[read.command]"]),
        ("floods", "yes", ["wrote more than 100000 bytes", ""]),
        ("odd", "printf 'a\\377'", ["wrote what is not UTF-8, from byte 1", ""]),
        ("hungry", "head -c 900000000 /dev/zero | tail -c 900000000", ["failed: exit status: 1", "exhausted"]),
        ("killed", "kill -9 $$", ["failed: signal: 9", ""]),
    ];
    let mut settings = "[index]\nmax-file-bytes = 100000\n[read.command]\n".to_owned();
    settings += "gone = [\"no-such-program-of-anybody\"]\n";
    // It ends, and leaves behind a program that holds its output open.
    settings += "lingers = [\"/bin/sh\", \"-c\", \"cat; sleep 600 &\"]\n";
    for (extension, script, _) in &scripts {
        place.write(&format!("notes/a.{extension}"), "text");
        settings += &format!(
            "{extension} = {{ run = [\"/bin/sh\", \"-c\", {}], seconds = 1, memory = \"200MiB\" }}\n",
            json!(script)
        );
    }
    place.write("notes/a.gone", "text");
    place.write("notes/a.lingers", "It was read.");
    place.write("notes/b.md", "# Open\n");
    place.write_settings(settings);
    let began = Instant::now();
    let report = index(&place, &["notes", "--json"]);
    assert_eq!(report.code, 5, "{report:?}");
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!((&report["n_added"], report["failed"].as_array().unwrap().len()), (&2.into(), 8), "{report}");
    let reason = |extension: &str| {
        let path = format!("notes/a.{extension}");
        let failed = report["failed"].as_array().unwrap().iter().find(|issue| issue["path"] == path);
        failed.unwrap_or_else(|| panic!("{path}: {report}"))["reason"].as_str().unwrap().to_owned()
    };
    for (extension, _, words) in scripts {
        let reason = reason(extension);
        assert!(words.iter().all(|words| reason.contains(words)) && reason.contains("/bin/sh"), "{reason}");
    }
    let gone = reason("gone");
    assert!(
        gone.contains("no-such-program-of-anybody failed: exit status") && gone.contains("cannot be started"),
        "{gone}"
    );
    assert_eq!(place.ok(&["get", "notes/a.lingers"]).out.trim_end(), "It was read.");
    let lossy = place.run(&["index", "--model", &tiny_model(), "notes", "--lossy"]);
    assert!(!lossy.err.contains("a.odd: its command") && place.ok(&["get", "notes/a.odd"]).out.contains("a\u{fffd}"));
}

#[test]
fn only_a_file_outside_of_what_is_read_names_a_command() {
    let place = place();
    place.write("marking.sh", format!("touch '{}'\ncat\n", place.path("ran").display()));
    let named = settings(&place, "marking.sh");
    place.write("cento.toml", &named);
    index(&place, &["notes"]).fails(2, &["cento.toml", "read.command.tiff", "may not set this", "cento trust ."]);
    place.run(&["config", "check"]).fails(2, &["read.command.tiff"]);
    let show = place.ok(&["config", "show"]).out;
    assert!(show.contains("read.command.tiff") && show.contains("(refused)"), "{show}");
    place.write("notes/cento.toml", &named);
    let inside = ["is read, may not name a command, trusted or not", "read.command.tiff"];
    index(&place, &["notes", "--config", "notes/cento.toml"]).fails(2, &inside);
    place.run(&["inspect", "notes", "--model", &tiny_model(), "--config", "notes/cento.toml"]).fails(2, &inside);
    std::fs::remove_file(place.path("notes/cento.toml")).unwrap();
    std::os::unix::fs::symlink(place.path("cento.toml"), place.path("notes/link.toml")).unwrap();
    index(&place, &["notes", "--config", "notes/link.toml"]).fails(2, &inside);
    // Trusted, it may; not for the folder that it lies in.
    place.run(&["trust", "."]).fails(2, &["read.command.tiff", "(needs trust)"]);
    place.ok(&["trust", ".", "--yes"]);
    index(&place, &["."]).fails(2, &inside);
    place.run(&["serve", "--writable", "--root", ".", "--listen", "127.0.0.1:0"]).fails(2, &inside);
    assert!(!place.path("ran").exists());
    assert_eq!(index(&place, &["notes"]).code, 0);
    assert!(place.path("ran").exists());
    place.write("cento.toml", "[read.command]\ntiff = \"ocr --stdout\"\n");
    place.run(&["status"]).fails(2, &["cento.toml: read.command.tiff", "expected a list of program and arguments"]);
}

#[test]
fn a_command_is_given_no_key_and_no_folder() {
    let place = place();
    place.write("tells.sh", "cat > /dev/null; pwd; env\n");
    place.write_settings(settings(&place, "tells.sh"));
    let mut command = place.command(&["index", "--model", &tiny_model(), "notes"]);
    command.env("CENTO_ENDPOINT_KEY", "sk-hush").env("HF_TOKEN", "hf-hush").env("TESSDATA_PREFIX", "/words");
    assert!(command.output().unwrap().status.success());
    let told = place.ok(&["get", "notes/scan.tiff"]).out;
    assert!(told.starts_with("/\n") && told.contains("TESSDATA_PREFIX=/words") && !told.contains("hush"), "{told}");
}

#[test]
fn a_server_has_commands_read_its_own_files_and_none_that_are_handed_over() {
    let place = place();
    place.write_settings(settings(&place, "ocr.sh"));
    place.index(&["notes/open.md"]);
    let serving = Serving::start(&place, &["--writable", "--root", "notes"]);
    let job = serving.wrote("index", &json!({"paths": ["notes"]}));
    assert_eq!((&job["state"], &job["result"]["n_added"]), (&"done".into(), &2.into()), "{job}");
    let found = serving.told("/v1/search", &json!({"query": "harbour spring", "mode": "lexical"}));
    assert_eq!(found["hits"][0]["document"], "notes/scan.tiff", "{found}");
    let begun = serving.ask("PUT", "/v1/collections/cento/files/up.tiff", &[], SCAN);
    let job = serving.ended(begun.json()["id"].as_str().unwrap());
    assert!(job.to_string().contains(".tiff files are not read"), "{job}");
}
