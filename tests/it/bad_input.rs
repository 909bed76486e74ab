//! Each kind of bad input: a message that names the thing, the value and the way out; the right exit code; nothing lost.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Place, Ran, TIDES, root, tiny_model};

/// Indexes `corpus` of a place; the collection, if any, must answer afterwards as before.
fn index(place: &Place) -> Ran {
    place.run(&["index", "--model", &tiny_model(), "corpus"])
}

#[test]
fn an_empty_file_is_a_document_without_chunks() {
    let place = Place::indexed();
    place.write("corpus/empty.md", "");
    place.write("corpus/full.md", "# Full\n\nSome words.\n");
    let ran = index(&place);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.ok(&["get", "corpus/empty.md"]).out, "");
    let run = place.run(&["search", "words", "--mode", "dense"]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn a_folder_without_readable_files_is_named() {
    let place = Place::new();
    std::fs::create_dir(place.path("corpus")).unwrap();
    index(&place).fails(3, &["corpus"]);
    place.write("corpus/picture.png", b"\x89PNG\0\0\0");
    index(&place).fails(3, &["corpus"]);
    place.run(&["index", "--model", &tiny_model(), "nowhere"]).fails(3, &["nowhere"]);
}

#[test]
fn files_of_no_known_type_are_one_line_and_json_names_each() {
    let place = Place::new();
    place.write("corpus/full.md", "# Full\n\nSome words.\n");
    ["a.png", "b.png", "c.gif"].iter().for_each(|name| place.write(&format!("corpus/{name}"), b"\0"));
    let ran = index(&place);
    let told: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("left out")).collect();
    assert!(told.len() == 1 && told[0].ends_with("a.png and 2 more: unknown type (2 .png, 1 .gif)"), "{ran:?}");
    assert!(ran.out.contains("3 left out"), "{ran:?}");
    let report = place.json(&["index", "--model", &tiny_model(), "corpus", "--dry-run"]);
    assert_eq!(report["skipped"].as_array().unwrap().len(), 3);
}

#[test]
fn invalid_utf_8_is_reported_and_read_only_when_asked() {
    let place = Place::indexed();
    place.write("corpus/latin.md", b"# Caf\xe9\n\nA caf\xe9 serves tea.\n");
    place.write("corpus/good.md", "# Good\n\nAll is well.\n");
    let ran = index(&place);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("latin.md") && ran.err.contains("byte 5") && ran.err.contains("--lossy"), "{ran:?}");
    let lossy = place.ok(&["index", "--model", &tiny_model(), "corpus", "--lossy"]);
    assert!(lossy.out.contains("1 new"), "{lossy:?}");
    assert_eq!(place.json(&["get", "corpus/latin.md"])["text_kind"], "extracted");
}

#[test]
fn a_binary_file_and_a_large_file_are_reported() {
    let place = Place::new();
    place.write("corpus/good.md", "# Good\n\nAll is well.\n");
    place.write("corpus/program.md", b"\x7fELF\0\0\0\0");
    place.write("corpus/large.txt", "word ".repeat(1000));
    let ran = place.run(&["index", "--model", &tiny_model(), "corpus", "--max-file-bytes", "2000"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("program.md") && ran.err.contains("large.txt") && ran.err.contains("2000"), "{ran:?}");
}

#[test]
fn a_broken_line_of_jsonl_is_named_and_the_others_are_read() {
    let place = Place::new();
    place.write("corpus/rows.jsonl", "{\"_id\":\"a\",\"text\":\"first row\"}\n{\"_id\":\"b\",\"text\":\n{\"_id\":\"a\",\"text\":\"again\"}\n{\"_id\":\"c\",\"text\":\"last row\"}\n");
    let ran = index(&place);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("line 2") && ran.err.contains("line 3"), "{ran:?}");
    assert_eq!(place.json(&["status"])["n_documents"], 2);
}

#[test]
fn a_line_longer_than_any_record_is_refused_in_little_memory() {
    let place = Place::new();
    let mut file = std::io::BufWriter::new({
        place.write("corpus/rows.jsonl", "");
        std::fs::File::create(place.path("corpus/rows.jsonl")).unwrap()
    });
    writeln!(file, "{{\"_id\":\"a\",\"text\":\"a good row\"}}").unwrap();
    write!(file, "{{\"_id\":\"b\",\"text\":\"").unwrap();
    for _ in 0..70 {
        file.write_all(&[b'x'; 1 << 20]).unwrap();
    }
    write!(file, "\"}}\n{{\"_id\":\"c\",\"text\":\"another\"}}\n").unwrap();
    drop(file);
    let ran = index(&place);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("line 2"), "{ran:?}");
    assert_eq!(place.json(&["status"])["n_documents"], 2);
}

#[test]
fn a_missing_or_damaged_model_is_an_error_of_the_model() {
    let place = Place::new();
    place.write_notes();
    place.run(&["index", "notes"]).fails(4, &["all-minilm-l6-v2", "cento model pull"]);
    place.run(&["index", "notes", "--model", "all-minilm"]).fails(4, &["all-minilm-l6-v2"]);
    place.run(&["index", "notes", "--model", "./nowhere"]).fails(4, &["nowhere"]);
    for name in ["config.json", "tokenizer.json", "modules.json"] {
        let from = root().join("models/tiny").join(name);
        place.write(&format!("half/{name}"), std::fs::read(from).unwrap());
    }
    place.run(&["index", "notes", "--model", "./half"]).fails(4, &[]);
    let weights = std::fs::read(root().join("models/tiny/model.safetensors")).unwrap();
    for name in ["1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json"] {
        place.write(&format!("half/{name}"), std::fs::read(root().join("models/tiny").join(name)).unwrap());
    }
    place.write("half/model.safetensors", &weights[..weights.len() / 2]);
    place.run(&["index", "notes", "--model", "./half"]).fails(4, &["model.safetensors"]);
    assert!(!place.path(".cento/manifest.json").exists());
    place.run(&["model", "verify"]).fails(4, &["cento model pull"]);
}

#[test]
fn a_collection_of_another_model_or_setting_is_refused() {
    let place = Place::indexed();
    for name in [
        "config.json",
        "tokenizer.json",
        "modules.json",
        "1_Pooling/config.json",
        "2_Normalize/config.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "model.safetensors",
    ] {
        if let Ok(bytes) = std::fs::read(root().join("models/tiny").join(name)) {
            place.write(&format!("other/{name}"), bytes);
        }
    }
    let mut weights = place.read("other/model.safetensors");
    let last = weights.len() - 3;
    weights[last] ^= 1;
    place.write("other/model.safetensors", weights);
    place.run(&["index", "notes", "--model", "./other"]).fails(3, &["model", "tiny", "other"]);
    place.run(&["search", "moon", "--model", "./other"]).fails(3, &["model", "tiny", "other"]);
    place
        .run(&["index", "notes", "--model", &tiny_model(), "--header", "flat"])
        .fails(3, &["header", "structured", "flat"]);
    place
        .run(&["index", "notes", "--model", &tiny_model(), "--chunk-tokens", "64"])
        .fails(3, &["chunk-tokens", "128", "64"]);
    place.ok(&["search", "moon"]);
}

#[test]
fn a_collection_of_a_newer_format_is_refused() {
    let place = Place::indexed();
    let manifest = String::from_utf8(place.read(".cento/manifest.json")).unwrap();
    place.write(".cento/manifest.json", manifest.replace("\"format\": 2", "\"format\": 3"));
    place.run(&["search", "moon"]).fails(3, &["format 3", "update cento"]);
    place.run(&["index", "--model", &tiny_model(), "notes"]).fails(3, &["format 3"]);
}

#[test]
fn a_collection_of_an_older_format_is_refused_with_the_way_out() {
    let place = Place::indexed();
    let manifest = String::from_utf8(place.read(".cento/manifest.json")).unwrap();
    place.write(".cento/manifest.json", manifest.replace("\"format\": 2", "\"format\": 1"));
    for command in [&["search", "moon"][..], &["index", "--model", &tiny_model(), "notes"], &["doctor"]] {
        place.run(command).fails(3, &["format 1", "index again", "cache"]);
    }
    std::fs::rename(place.path(".cento"), place.path("old")).unwrap();
    assert_eq!(place.index(&["notes"])["n_tokens_embedded"], 0);
}

#[test]
fn no_collection_and_a_folder_of_something_else_are_told_apart() {
    let place = Place::new();
    place.write_notes();
    place.run(&["search", "moon"]).fails(3, &[".cento", "cento index"]);
    place
        .run(&["index", "--model", &tiny_model(), "notes", "--collection", "notes"])
        .fails(3, &["notes", "--collection"]);
}

#[test]
fn a_second_writer_is_refused_and_readers_are_not() {
    let place = Place::indexed();
    let lock = std::fs::OpenOptions::new().write(true).open(place.path(".cento/LOCK")).unwrap();
    lock.lock().unwrap();
    place.run(&["index", "--model", &tiny_model(), "notes"]).fails(3, &["LOCK", "another process"]);
    place.run(&["delete", "notes/bread.md"]).fails(3, &["LOCK"]);
    place.ok(&["search", "moon"]);
    drop(lock);
    place.ok(&["delete", "notes/bread.md"]);
}

#[test]
fn two_folders_of_one_name_need_two_labels() {
    let place = Place::indexed();
    place.write("elsewhere/notes/a.md", "# A\n\nAnother folder of notes.\n");
    place.run(&["index", "--model", &tiny_model(), "elsewhere/notes"]).fails(2, &["notes", "NAME="]);
    place.ok(&["index", "--model", &tiny_model(), "more=elsewhere/notes"]);
    assert!(place.ok(&["get", "more/a.md"]).out.contains("Another folder"));
}

#[test]
fn empty_and_huge_queries() {
    let place = Place::indexed();
    place.run(&["search", ""]).fails(2, &["empty"]);
    place.run(&["search", " \n\t"]).fails(2, &["empty"]);
    place.run(&["context", "", "--budget", "100"]).fails(2, &["empty"]);
    let words = (0..8_000).map(|n| format!("moon{} ", n % 500)).collect::<String>();
    let mut child = place
        .command(&["search", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(words.as_bytes()).unwrap();
    let ran = Ran::new(&["search", "-"], child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn budgets_that_hold_nothing_are_refused_with_numbers() {
    let place = Place::indexed();
    place.run(&["context", "moon", "--budget", "0"]).fails(2, &["budget"]);
    place.run(&["context", "moon", "--budget", "1"]).fails(2, &["budget", "1"]);
}

#[test]
fn k_has_its_limits() {
    let place = Place::indexed();
    place.run(&["search", "moon", "-k", "0"]).fails(2, &["k"]);
    place.run(&["index", "notes", "--memory", "319MiB"]).fails(2, &["memory", "the least is 320MiB"]);
    place.run(&["compact", "--memory", "1"]).fails(2, &["memory", "the least is 320MiB"]);
    place.ok(&["index", "notes", "--memory", "320MiB"]);
    place.run(&["search", "moon", "-k", "1001"]).fails(2, &["1001", "1000"]);
    place.ok(&["search", "moon", "-k", "1001", "--candidates", "2000"]);
    place.run(&["search", "moon", "--candidates", "0"]).fails(2, &["candidates", "\"0\"", "at least one"]);
    for flag in ["-n", "--top-k", "--limit=2", "--n-results"] {
        let name = flag.split('=').next().unwrap();
        let told = format!("unexpected argument '{name}' found");
        place.run(&["search", "moon", flag, "2"]).fails(2, &[&told, "tip: the number of results is said with '-k'"]);
    }
    let ran = place.run(&["context", "moon", "-n", "2"]); // a context has tokens, not a number of results
    assert!(!ran.err.contains("'-k'"), "{ran:?}");
}

#[test]
fn a_beam_narrower_than_the_candidates_is_refused() {
    let place = Place::indexed();
    for ef in ["0", "999"] {
        place.run(&["search", "moon", "--ef", ef]).fails(2, &["--ef", ef, "--candidates", "1000"]);
    }
    place.ok(&["search", "moon", "--ef", "100000"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_with_the_way_out() {
    let place = Place::indexed();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.command(&["list", "--json"]).stdout(full).output().unwrap();
    Ran::new(&["list"], output).fails(3, &["No space left", "make room there"]);
}

#[test]
fn a_policy_with_a_wrong_key_names_the_nearest() {
    let place = Place::indexed();
    place.write("policy.toml", "# gates\ndelt = 0.5\n");
    place
        .run(&["context", "moon", "--budget", "100", "--policy", "policy.toml"])
        .fails(2, &["policy.toml: line 2: ", "`delt`", "`delta`"]);
    place.write("policy.toml", "[rho]\nappendix = 1.5\n");
    place
        .run(&["context", "moon", "--budget", "100", "--policy", "policy.toml"])
        .fails(2, &["policy.toml: line 2: ", "`rho.appendix` must be a share between 0 and 1"]);
    place.write("policy.toml", "gate = \"none\"\ngate = \"union\"\n");
    place
        .run(&["context", "moon", "--budget", "100", "--policy", "policy.toml"])
        .fails(2, &["policy.toml", "line 2", "duplicate key"]);
    place.run(&["context", "moon", "--budget", "100", "--policy", "nowhere.toml"]).fails(2, &["nowhere.toml"]);
    place.run(&["context", "moon", "--budget", "100", "--tokenizer", "gpt5"]).fails(2, &["gpt5", "o200k"]);
}

#[test]
fn topics_that_cannot_be_read_are_named_with_their_line() {
    let place = Place::indexed();
    place.write("topics.jsonl", "{\"_id\":\"1\",\"text\":\"moon\"}\n{\"_id\":\"1\",\"text\":\"sun\"}\n");
    place.run(&["run", "--topics", "topics.jsonl"]).fails(3, &["topics.jsonl", "line 2", "twice"]);
    place.run(&["run", "--topics", "nowhere"]).fails(3, &["nowhere"]);
}

/// Judgements and a run of them.
fn write_judged(place: &Place) {
    place.write("qrels", "q1 0 a 1\nq2 0 b 1\n");
    place.write("run", "q1 Q0 a 1 1.5 t\nq2 Q0 b 1 1.5 t\n");
}

#[test]
fn a_malformed_line_of_judgements_a_run_or_topics_is_named_with_what_was_expected() {
    let place = Place::indexed();
    write_judged(&place);
    place.ok(&["eval", "qrels", "run"]);
    for (file, content, words) in [
        ("qrels", "q1 0 a 1\nq1 0 b\n", &["line 2, column 1", "expected 4 columns", "found 3"][..]),
        ("qrels", "q1 0 a 1\nq1 0 b high\n", &["line 2, column 8", "expected an integer grade", "\"high\""]),
        ("qrels", "query-id\tcorpus-id\tscore\nq1 a 1\n", &["line 2, column 1", "3 columns with tabs", "found 1"]),
        ("qrels", "q1 0 a 1\nq2 0 b 1\nq1 0 a 2\n", &["line 3", "\"a\"", "twice"]),
        ("qrels", "\n", &["no judgements"]),
        ("run", "q1 Q0 a 1 1.5 t\nq1 Q0 b 1.0\n", &["line 2, column 1", "expected 6 columns", "found 4"]),
        ("run", "q1 Q0 a 1 1.5 t\nq1 Q0 é 2 high t\n", &["line 2, column 11", "expected a finite score", "\"high\""]),
        ("run", "q1 Q0 a 1 NaN t\n", &["line 1, column 11", "expected a finite score", "\"NaN\""]),
        ("run", "q1 Q0 a 1 -inf t\n", &["line 1, column 11", "expected a finite score", "\"-inf\""]),
        ("run", "q1 a 1\nq1 b -2\n", &["line 2, column 6", "expected a rank", "\"-2\""]),
        ("run", "q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n", &["line 2", "\"a\"", "twice"]),
        ("run", "q1 Q0 a 1 2 t\nq2 Q0 a 1 1 t\nq1 Q0 b 2 1 t\n", &["line 3", "\"q1\"", "sort -s -k1,1"]),
        ("run", "{\"q1\": {\"a\": \"high\"}}", &["line 1", "expected JSON", "numbers as scores", "\"a\""]),
        ("run", "", &["no results"]),
    ] {
        write_judged(&place);
        place.write(file, content);
        for command in [&["eval", "qrels", "run"][..], &["compare", "run", "run", "--qrels", "qrels"]] {
            place.run(command).fails(3, &[&[file], words].concat());
        }
    }
    for (content, words) in [
        (
            "{\"_id\":\"1\",\"text\":\"moon\"}\n{\"_id\":\"2\"}\n",
            &["line 2, column 1", "expected a key `text`", "`_id`"][..],
        ),
        ("{\"_id\":\"1\",\"text\":\"moon\"}\n{\"_id\":\n", &["line 2, column 7", "expected a JSON object"]),
        ("{\"_id\":\"1 2\",\"text\":\"moon\"}\n", &["line 1", "no blanks", "\"1 2\""]),
        ("{\"_id\":\"1\",\"text\":\"moon\",\"scope\":[]}\n", &["line 1", "`scope`"]),
        ("1 moon\n", &["line 1", "`id <tab> text`"]),
        ("", &["no topics"]),
    ] {
        place.write("topics", content);
        place.run(&["run", "--topics", "topics"]).fails(3, &[&["topics"], words].concat());
    }
}

#[test]
fn judgements_of_another_set_are_refused_and_so_is_a_measure_that_nobody_knows() {
    let place = Place::new();
    write_judged(&place);
    place.write("notes/a.md", "No judgements.\n");
    place.write("run", "k1 Q0 a 1 1.5 t\n");
    place.run(&["eval", "qrels", "run"]).fails(3, &["run", "no query in common", "\"k1\"", "\"q1\""]);
    place.write("run", "q1 Q0 k1 1 1.5 t\n");
    place.run(&["eval", "qrels", "run"]).fails(3, &["run", "no document in common", "\"k1\"", "\"a\""]);
    place.run(&["eval", "qrels", "run", "-m", "ndgc@10"]).fails(2, &["\"ndgc\"", "nDCG@10"]);
    place.run(&["eval", "qrels", "run", "-m", "R"]).fails(2, &["\"R\"", "R@100"]);
    place.run(&["eval", "qrels", "run", "-m", "P@0"]).fails(2, &["P@0", "above 0"]);
    place.run(&["compare", "run", "run", "--qrels", "qrels", "-m", "mpa"]).fails(2, &["\"mpa\"", "AP"]);
    place.run(&["eval", "qrels", "nowhere"]).fails(3, &["nowhere"]);
    place.run(&["eval", "notes", "run"]).fails(3, &["notes", "no judgements"]);
}

#[test]
fn chunks_longer_than_the_encoder_reads_are_said_to_be_cut() {
    let place = Place::new();
    place.write("notes/tides.md", TIDES);
    let said = |tokens: &str| {
        place.ok(&["index", "notes", "--model", &tiny_model(), "--chunk-tokens", tokens, "--dry-run"]).err
    };
    assert!(said("5000").contains("chunk-tokens: 5000 is more than the encoder reads"));
    assert!(!said("64").contains("chunk-tokens"));
}

#[test]
fn a_malformed_line_of_contexts_is_named_with_what_was_expected() {
    let place = Place::indexed();
    place.write("set/docs/a.md", "A moon.\n");
    place.write(
        "set/questions.jsonl",
        "{\"id\":\"1\",\"question\":\"moon?\",\"refs\":[{\"doc\":\"a\",\"start\":2,\"end\":6,\"text\":\"moon\"}]}\n",
    );
    place.index(&["set/docs", "--collection", "set.cento"]);
    let run = ["run", "--topics", "set", "--collection", "set.cento", "-o", "run"];
    place.ok(&[&run[..], &["--contexts", "contexts", "--budget", "50"]].concat());
    place.ok(&["eval-context", "set", "contexts"]);
    let line = String::from_utf8(place.read("contexts")).unwrap();
    let check = |content: &str, words: &[&str]| {
        place.write("contexts", content);
        place.run(&["eval-context", "set", "contexts"]).fails(3, &[&["contexts"], words].concat());
    };
    check(&line.replace("\"tokenizer\"", "\"else\""), &["line 1, column", "missing field `tokenizer`"]);
    check(&line.replace("\"n_tokens\":", "\"n_tokens\":-"), &["line 1, column", "expected a record", "u64"]);
    check(&format!("{line}{line}"), &["line 2", "query 1", "twice"]);
    check(&format!("{line}no json\n"), &["line 2, column", "expected a JSON object"]);
    check("", &["no contexts"]);
    place.run(&["eval-context", "notes", "contexts"]).fails(3, &["notes", "questions.jsonl"]);
}

#[test]
fn files_with_odd_names_are_indexed_and_opened() {
    let place = Place::new();
    for (n, name) in ["a b.md", "c#d.md", "e&f.md", "[g].md", "h_i.md", "50%.md", "日本.md"].iter().enumerate() {
        place.write(&format!("corpus/{name}"), format!("# T{n}\n\nText number {n}.\n"));
    }
    let ran = index(&place);
    assert_eq!(ran.code, 0, "{ran:?}");
    for (n, name) in ["a b.md", "c#d.md", "e&f.md", "[g].md", "h_i.md", "50%.md", "日本.md"].iter().enumerate() {
        assert!(place.ok(&["get", &format!("corpus/{name}")]).out.contains(&format!("number {n}")));
    }
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_folder_is_not_followed() {
    let place = Place::new();
    place.write("secret/key.md", "# Key\n\nA secret.\n");
    place.write("corpus/good.md", "# Good\n\nAll is well.\n");
    std::os::unix::fs::symlink(place.path("secret/key.md"), place.path("corpus/key.md")).unwrap();
    let ran = index(&place);
    assert!(ran.err.contains("key.md"), "{ran:?}");
    place.run(&["search", "secret", "--mode", "lexical"]).fails(1, &[]);
}

#[cfg(unix)]
#[test]
fn a_link_that_the_user_names_is_followed_and_one_inside_is_not() {
    let place = Place::new();
    place.write("notes/tides.md", TIDES);
    std::fs::create_dir(place.path("real")).unwrap();
    std::os::unix::fs::symlink("real", place.path("link")).unwrap();
    place.index(&["notes", "--collection", "link"]);
    for named in ["link", "link/", "./link", "real"] {
        let found = place.json(&["search", "tide", "--collection", named]);
        assert_eq!(found["hits"][0]["document"], "notes/tides.md", "{named}");
    }
    let serving = crate::serving::Serving::start(&place, &["--collection", "link"]);
    assert_eq!(serving.get("/v1/collections").json()["collections"][0], "link", "by the name that the user gave");
    drop(serving);
    std::os::unix::fs::symlink("link", place.path(".cento")).unwrap();
    place.run(&["search", "tide"]).fails(3, &["is a link to link"]);
    place.ok(&["search", "tide", "--collection", ".cento"]);
    std::fs::rename(place.path("real/segments"), place.path("segments")).unwrap();
    std::os::unix::fs::symlink("../segments", place.path("real/segments")).unwrap();
    place.run(&["search", "tide", "--collection", "link"]).fails(3, &["is a link to ../segments", "remove the link"]);
}

#[cfg(unix)]
#[test]
fn a_cloned_collection_that_is_a_link_empties_no_folder() {
    let place = Place::new();
    place.write("home/letters/1.txt", "dear reader");
    place.write("home/precious.txt", "years of work");
    place.write("clone/notes/tides.md", TIDES);
    std::fs::create_dir(place.path("clone/.cento")).unwrap();
    std::os::unix::fs::symlink("../../home", place.path("clone/.cento/segments")).unwrap();
    let model = tiny_model();
    let arguments = ["index", "--model", model.as_str(), "notes"];
    let run = || Ran::new(&arguments, place.command(&arguments).current_dir(place.path("clone")).output().unwrap());
    run().fails(3, &[".cento/segments", "is a link to ../../home", "remove the link"]);
    std::fs::remove_dir_all(place.path("clone/.cento")).unwrap();
    std::os::unix::fs::symlink("../home", place.path("clone/.cento")).unwrap();
    run().fails(3, &[".cento", "is a link to ../home", "name that folder itself"]);
    assert_eq!(place.read("home/letters/1.txt"), b"dear reader");
    assert_eq!(std::fs::read_dir(place.path("home")).unwrap().count(), 2, "nothing is added, nothing is gone");
}

#[test]
fn a_reader_that_hears_enough_is_no_error() {
    let place = Place::indexed();
    let mut child = place
        .command(&["search", "moon bread star", "-k", "100", "--format", "jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

/// An escape sequence that empties the screen, and a text with one in it.
const ESCAPE: &str = "\u{1b}[2J";

#[cfg(unix)]
#[test]
fn no_name_and_no_text_commands_the_terminal() {
    let place = Place::new();
    place.write(&format!("notes/a{ESCAPE}b.md"), format!("# Ti{ESCAPE}tle\n\nThe moon {ESCAPE} pulls.\n"));
    place.write(&format!("notes/c{ESCAPE}d.bin"), [0_u8; 9]);
    place.write("notes/\r\u{9b}31m.md", "# Bread\n\nBread.\n");
    let model = crate::support::tiny_model();
    let id = format!("notes/a{ESCAPE}b.md");
    let mut n_shown = 0;
    for arguments in [
        &["index", "--model", &model, "notes"][..],
        &["list"],
        &["search", "moon", "--explain"],
        &["search", "moon"],
        &["why-not", "moon", "--doc", &id],
        &["inspect", &format!("notes/a{ESCAPE}b.md"), "--model", &model],
        &["get", "notes/none\u{1b}[2J.md"],
        &["status"],
        &["delete", &id, "--dry-run"],
    ] {
        let ran = place.run(arguments);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(!said.contains(['\u{1b}', '\r', '\u{9b}']), "{ran:?}");
        n_shown += usize::from(said.contains("\\u{1b}[2J"));
    }
    assert!(n_shown >= 6, "{n_shown} show it");
    // Into a pipe and into JSON goes what there is.
    assert!(place.ok(&["get", &id]).out.contains(ESCAPE));
    assert!(place.ok(&["context", "moon", "--mode", "lexical"]).out.contains(ESCAPE));
    assert_eq!(place.json(&["list"])["documents"][1]["id"].as_str().unwrap(), id);
}

#[cfg(unix)]
#[test]
fn an_output_that_finds_no_room_leaves_the_old_file_as_it_was() {
    let place = Place::indexed();
    let topics: String =
        (0..200).map(|n| format!("{{\"qid\": \"q{n}\", \"query\": \"bread moon star {n}\"}}\n")).collect();
    place.write("topics.jsonl", topics);
    let outputs = [("run.txt", vec![]), ("contexts.jsonl", vec!["--contexts", "contexts.jsonl", "--budget", "50"])];
    for (output, more) in outputs {
        place.write(output, "yesterday's figures");
        let run = [
            "run",
            "--topics",
            "topics.jsonl",
            "--mode",
            "lexical",
            "-o",
            if more.is_empty() { "run.txt" } else { "/dev/null" },
        ];
        let arguments = [&run[..], &more].concat();
        let mut limited =
            place.command_of(std::path::Path::new("sh"), &["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]);
        let binary = crate::support::binary();
        let ended = limited.arg(&binary).args(&arguments).output().unwrap();
        assert_eq!(ended.status.code(), Some(3), "{ended:?}");
        assert_eq!(place.read(output), b"yesterday's figures", "{ended:?}");
        let left: Vec<_> =
            std::fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{left:?}");
        place.ok(&arguments);
        assert!(place.read(output).len() > 2_000);
    }
}

#[cfg(unix)]
#[test]
fn an_output_keeps_its_rights_follows_a_link_and_may_be_a_pipe() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let place = Place::indexed();
    let mode = |name: &str| place.path(name).metadata().unwrap().permissions().mode() & 0o777;
    place.write("kept.json", "old");
    std::fs::set_permissions(place.path("kept.json"), PermissionsExt::from_mode(0o640)).unwrap();
    symlink("kept.json", place.path("link.json")).unwrap();
    place.ok(&["context", "bread", "--trace", "link.json"]);
    assert!(place.read("kept.json").len() > 100 && place.path("link.json").is_symlink());
    assert_eq!(mode("kept.json"), 0o640);
    place.ok(&["context", "bread", "--trace", "new.json"]);
    assert_eq!(mode("new.json"), 0o600, "a trace holds texts");
    place.ok(&["context", "bread", "--trace", "/dev/null"]);
    assert!(!place.path("/dev/null").is_file());
}
