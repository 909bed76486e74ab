//! What a command is given beyond its bounds, files without an end, readers that go away: an error in words, or a quiet end.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Place, Ran, tiny_model};
use crate::traces::{context, damage, tides, trace};

/// Runs with stdout, stderr or both closed by their reader.
fn unheard(place: &Place, arguments: &[&str], closes: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for stream in closes {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        match *stream {
            "stdout" => command.stdout(writer),
            _ => command.stderr(writer),
        };
    }
    Ran::new(arguments, command.output().unwrap())
}

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly_and_no_work_is_lost() {
    let model = tiny_model();
    let both: &[&str] = &["stdout", "stderr"];
    for closes in [&["stdout"][..], &["stderr"], both] {
        let place = Place::new();
        place.write_notes();
        place.write("notes/latin.md", b"caf\xe9"); // is remarked on
        let indexed = unheard(&place, &["index", "notes", "--model", &model], closes);
        // A document failed; but who does not read the answer has seen enough.
        let partial = if closes.contains(&"stdout") { 0 } else { 5 };
        assert_eq!(indexed.code, partial, "{closes:?}: {indexed:?}");
        assert_eq!(place.json(&["status"])["n_documents"], 3, "it was committed");
        for arguments in [
            &["completions", "bash"][..],
            &["search", "what moves the tide"],
            &["search", "what moves the tide", "--json"],
            &["context", "what moves the tide", "--budget", "200"],
            &["get", "notes/tides.md"],
            &["list"],
            &["status"],
            &["schema"],
            &["schema", "trace"],
            &["config", "show"],
            &["index", "notes", "--model", &model, "--json"],
        ] {
            let ran = unheard(&place, arguments, closes);
            let code = if arguments[0] == "index" { partial } else { 0 };
            assert!(ran.code == code && !ran.err.contains("panicked"), "{closes:?}: {ran:?}");
        }
        // What is wrong is still wrong.
        let wrong = unheard(&place, &["search", "moon", "-k", "0"], closes);
        assert_eq!(wrong.code, 2, "{closes:?}: {wrong:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_without_an_end_is_read_to_its_bound() {
    let place = Place::indexed();
    place.write("qrels", "q1 0 a 1\n");
    place.write("run", "q1 Q0 a 1 1.5 t\n");
    let zero = "/dev/zero";
    for (code, arguments, words) in [
        (2, &["context", "moon", "--budget", "99", "--policy", zero][..], &["--policy /dev/zero", "bytes"][..]),
        (2, &["search", "moon", "--config", zero], &["/dev/zero", "bytes"]),
        (3, &["replay", zero], &["/dev/zero", "bytes"]),
        (3, &["why", zero, "notes/tides.md"], &["/dev/zero", "bytes"]),
        (3, &["eval", zero, "run"], &["/dev/zero", "line 1", "a longer one"]),
        (3, &["eval", "qrels", zero], &["/dev/zero", "line 1", "a longer one"]),
        (3, &["run", "--topics", zero], &["/dev/zero", "line 1", "a longer one"]),
        (3, &["eval", "qrels", "run", "--baseline", zero], &["/dev/zero", "bytes"]),
        (3, &["compare", zero, zero], &["/dev/zero", "bytes"]),
        (2, &["context", "moon", "--budget", "99", "--tokenizer", zero], &["/dev/zero", "o200k"]),
    ] {
        place.run(arguments).fails(code, words);
    }
    let endless = std::fs::File::open(zero).unwrap();
    let output = place.command(&["search", "-"]).stdin(endless).output().unwrap();
    Ran::new(&["search", "-"], output).fails(2, &["stdin", "65536"]);
}

#[test]
fn a_request_beyond_its_bounds_is_refused_with_them() {
    let place = Place::indexed();
    let start = Instant::now();
    for (arguments, words) in [
        (&["search", "moon", "--candidates", "100001"][..], &["candidates", "100001", "1 to 100000"][..]),
        (&["search", "moon", "--ef", "1000000000"], &["ef", "1000000000", "100000"]),
        (&["context", "moon", "--budget", "1000001"], &["budget", "1000001", "1000000"]),
        (&["context", "moon", "--budget", "auto:1000001"], &["budget", "1000001", "1000000"]),
        (&["search", "moon", "--threads", "100000"], &["--threads", "100000", "1024"]),
        (&["index", "notes", "--threads", "1025"], &["--threads", "1025", "1024"]),
        (&["search", "moon", "--min-score", "nan"], &["min-score", "from 0 to 1"]),
        (&["search", "moon", "--min-score=-inf"], &["min-score", "from 0 to 1"]),
        (&["eval", "a", "b", "--tolerance", "nan"], &["--tolerance", "finite"]),
        (&["fuse", "a", "b", "--rrf-k", "inf"], &["--rrf-k", "finite"]),
    ] {
        place.run(arguments).fails(2, words);
    }
    assert!(start.elapsed() < Duration::from_secs(60), "nothing hangs");

    let long = "moon ".repeat(14_000);
    place.write("topics", format!("1\t{long}\n"));
    place.run(&["run", "--topics", "topics"]).fails(2, &["query", "bytes", "65536"]);
    place.write("long", &long);
    for command in ["search", "context"] {
        let stdin = std::fs::File::open(place.path("long")).unwrap();
        let output = place.command(&[command, "-"]).stdin(stdin).output().unwrap();
        Ran::new(&[command, "-"], output).fails(2, &["query", "65536"]);
        place.run(&[command, &long]).fails(2, &["query", "70000 bytes", "65536"]);
    }
}

#[test]
fn what_a_trace_asks_for_is_held_to_the_same_bounds() {
    let place = tides();
    context(&place, "trace.json", &["--budget", "120"]);
    for (pointer, value, words) in [
        ("/search/candidates", json!(0), &["candidates", "\"0\""][..]),
        ("/search/candidates", json!(100_000_000), &["candidates", "100000000"]),
        ("/search/ef", json!(1_u64 << 40), &["ef", "1099511627776"]),
        ("/assembly/query", json!(""), &["empty"]),
        ("/assembly/query", json!("x ".repeat(40_000)), &["query", "80000 bytes"]),
        ("/assembly/config/budget_tokens", json!(u64::MAX), &["budget", "18446744073709551615"]),
    ] {
        damage(&place, "trace.json", "changed.json", pointer, value);
        place.run(&["replay", "changed.json"]).fails(2, words);
    }
}

#[test]
fn numbers_that_a_trace_makes_up_are_explained_as_they_stand() {
    let place = tides();
    for (arguments, reason, key) in [
        (&["--budget", "60", "--strategy", "flat"][..], "budget_exceeded", "tokens_used"),
        (&["--budget", "400", "--strategy", "bubble", "--policy", "p"], "document_chunks_exceeded", "chunks_used"),
        (&["--budget", "400", "--strategy", "bubble", "--policy", "rho"], "section_budget_exceeded", "section_used"),
    ] {
        place.write("p", "max_per_document = 1\ngate = \"none\"\n");
        place.write("rho", "gate = \"none\"\nslack = \"none\"\n[rho]\n\"*\" = 0.02\n");
        context(&place, "trace.json", arguments);
        let trace = trace(&place, "trace.json");
        let records = trace["assembly"]["records"].as_array().unwrap();
        let at = records.iter().position(|record| record["final_reason"] == reason).unwrap();
        damage(
            &place,
            "trace.json",
            "changed.json",
            &format!("/assembly/records/{at}/step_details/{key}"),
            json!(u64::MAX),
        );
        let why = place.ok(&["why", "changed.json", records[at]["chunk_id"].as_str().unwrap()]);
        assert!(why.out.contains("18446744073709551615"), "{why:?}");
    }
}

#[test]
fn options_of_contexts_are_refused_where_none_are_made() {
    let place = Place::indexed();
    place.write("topics", "1\twhat moves the tide\n");
    for (name, value) in
        [("budget", "99"), ("strategy", "flat"), ("label", "x"), ("policy", "p.toml"), ("tokenizer", "model")]
    {
        let option = format!("--{name}");
        place.run(&["run", "--topics", "topics", &option, value]).fails(2, &[&option, "--contexts FILE"]);
    }
    // Settings speak to other runs too.
    place.write_settings("[run]\nbudget = \"99\"\n");
    let output = place.command(&["run", "--topics", "topics"]).env("CENTO_BUDGET", "99").output().unwrap();
    assert_eq!(Ran::new(&["run"], output).code, 0);
}

#[test]
fn a_query_beyond_the_window_of_the_encoder_is_remarked_on() {
    let place = Place::indexed();
    let (long, short) = ("the moon pulls the sea ".repeat(60), "what moves the tide");
    let told = "tokens that the encoder reads";
    let warnings = |query: &str, mode: &str| place.json(&["search", query, "--mode", mode])["warnings"].clone();
    assert!(warnings(&long, "hybrid")[0].as_str().unwrap().contains(told));
    assert!(!warnings(short, "hybrid").to_string().contains(told));
    assert_eq!(warnings(&long, "lexical"), Value::Null);
    assert!(place.ok(&["search", &long]).err.contains(told));
    assert!(!place.ok(&["search", short]).err.contains(told));
    let context = place.json(&["context", &long, "--budget", "200"]);
    assert!(context["warnings"].to_string().contains(told), "{context}");
    assert!(place.ok(&["context", &long, "--budget", "200"]).err.contains(told));
    place.write("topics", format!("1\t{long}\n2\t{short}\n"));
    assert!(place.ok(&["run", "--topics", "topics"]).err.contains("1 of 2 topics have more than the "));
}

#[test]
fn settings_that_cannot_be_are_found_by_the_check() {
    let place = Place::new();
    for (settings, words) in [
        ("[search]\nk = \"many\"\n", &["search.k", "many", "invalid digit"][..]),
        ("threads = 100000\n", &["threads", "100000", "1024"]),
        ("[run]\nbudget = \"1,x\"\n", &["run.budget", "1,x"]),
    ] {
        place.write_settings(settings);
        place.run(&["config", "check"]).fails(2, words);
        place.run(&["status"]).fails(2, words);
    }
}
