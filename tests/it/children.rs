//! Files that are read in children of `cento`: the real child, confined, from its first line to its last, and what is
//! told of files.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Place, tiny_model};

/// A table that is long enough for a child: few words, so that little is embedded.
fn long_table() -> String {
    let table = format!("name,n\nnut,3\nbolt,4\n{}", format!(",{}\n", " ".repeat(98)).repeat(45_000));
    assert!(table.len() > 4 << 20);
    table
}

#[cfg(unix)]
#[test]
fn a_child_is_confined_and_answers_line_by_line() {
    let place = Place::new();
    let request = json!({
        "format": "csv", "origin": "notes/a.csv", "n_bytes": 9, "record_ids": "UnderFile", "lossy": false,
        "max_file_bytes": 1000, "passwords": [], "memory_bytes": 1_u64 << 30, "processor_seconds": 10, "run": []
    });
    let read = |input: &str| -> (i32, Vec<Value>, String) {
        let mut command = place.command(&["read"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (output.status.code().unwrap_or(-1), lines, String::from_utf8(output.stderr).unwrap())
    };
    let (code, lines, _) = read(&format!("{request}\na,b\n1,2\n"));
    assert_eq!((code, lines.len()), (0, 4), "{lines:?}");
    assert_eq!(lines[0], json!({"protocol": 3}));
    if cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        assert_eq!(lines[1]["confined"]["system_calls"], "full", "{lines:?}");
    }
    assert_eq!(lines[2]["document"]["text"], "a: 1 | b: 2\n");
    assert!(lines[3]["end"]["notes"][0].as_str().unwrap().contains("separated by commas"), "{lines:?}");
    let (code, lines, said) = read("a,b\n1,2\n");
    assert_eq!((code, lines.len()), (3, 1), "{said}");
    assert!(said.contains("is no request to read a file"), "{said}");
    place.ok(&["help", "read"]);
    assert!(!place.ok(&["--help"]).out.contains("\n  read "));
    place.run(&["read", "--lossy"]).fails(2, &["--lossy"]);
}

#[cfg(unix)]
#[test]
fn large_tables_are_read_in_a_child_and_files_that_fail_are_told_later() {
    let place = Place::new();
    place.write("notes/a.csv", long_table());
    place.write("notes/b.md", "# Bread\n\nBread is flour.\n");
    place.write("notes/c.md", b"# Stars \xff\n");
    let model = tiny_model();
    let index = place.run(&["index", "--model", &model, "notes", "--json", "--report", "report.json"]);
    assert_eq!(index.code, 5, "{index:?}");
    let report: Value = serde_json::from_slice(&place.read("report.json")).unwrap();
    assert_eq!(report["n_added"], 2, "{report}");
    assert_eq!(report["files"][0]["origin"], "notes/c.md");
    if cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        assert_eq!(report["confinement"]["system_calls"], "full", "{report}");
    }
    let got = place.ok(&["get", "notes/a.csv"]).out;
    assert!(got.contains("name: nut | n: 3\nname: bolt | n: 4\n"), "{got}");
    let told = place.json(&["status", "--files"]);
    assert_eq!(told["files"][0]["suspicion"], "failed");
    let shown = place.ok(&["status", "--files"]).out;
    assert!(shown.contains("notes/c.md: failed: invalid UTF-8 at byte 8"), "{shown}");
    // Once it can be read, there is nothing to tell any more.
    place.write("notes/c.md", "# Stars\n\nStars are gas.\n");
    place.index(&["notes"]);
    assert_eq!(place.json(&["status", "--files"])["files"], Value::Null);
    assert!(place.ok(&["status", "--files"]).out.contains("no report on files"));
}
