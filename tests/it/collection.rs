//! The life of a collection: adding, changing, vanishing, deleting, being killed, locked, and damaged.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{BREAD, Place, tiny_model};

fn counts(report: &Value) -> [u64; 4] {
    ["n_added", "n_changed", "n_unchanged", "n_removed"].map(|name| report[name].as_u64().unwrap())
}

fn documents(place: &Place, query: &str) -> Vec<String> {
    let answer = place.json(&["search", query, "--mode", "lexical", "-k", "100"]);
    answer["hits"].as_array().unwrap().iter().map(|hit| hit["document"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_unchanged_is_not_embedded_again() {
    let place = Place::indexed();
    let again = place.index(&["notes"]);
    assert_eq!(
        (counts(&again), again["n_tokens_embedded"].as_u64(), again["generation"].as_u64()),
        ([0, 0, 3, 0], Some(0), Some(1))
    );
    place.write("notes/bread.md", "# Bread\n\nBread is now made of rye.\n");
    std::fs::remove_file(place.path("notes/sub/stars.txt")).unwrap();
    place.write("notes/new.md", "# New\n\nA new note about rye.\n");
    let changed = place.index(&["notes"]);
    assert_eq!(counts(&changed), [1, 1, 1, 1]);
    let mut found = documents(&place, "rye star starter");
    found.sort();
    assert_eq!(found, ["notes/bread.md", "notes/new.md"], "the old bread and the stars are gone");
}

#[test]
fn scores_do_not_depend_on_how_a_collection_came_about() {
    let place = Place::indexed();
    place.write("notes/bread.md", "# Bread\n\nRye bread keeps for a week.\n");
    place.write("notes/zinc.md", "# Zinc\n\nZinc keeps iron from rust.\n");
    place.index(&["notes"]); // two segments, one document dead
    place.ok(&["index", "--model", &tiny_model(), "notes", "--collection", "fresh", "--no-cache"]);
    for mode in ["lexical", "dense", "hybrid"] {
        let ranked = |collection: &str| {
            place.json(&["search", "what keeps bread", "-k", "100", "--mode", mode, "--collection", collection])["hits"]
                .clone()
        };
        assert_eq!(ranked(".cento"), ranked("fresh"), "{mode}");
    }
}

#[test]
fn only_documents_under_the_given_roots_can_vanish() {
    let place = Place::indexed();
    place.write("other/cheese.md", "# Cheese\n\nCheese is milk.\n");
    assert_eq!(counts(&place.index(&["other"])), [1, 0, 0, 0]);
    std::fs::remove_file(place.path("notes/bread.md")).unwrap();
    assert_eq!(counts(&place.index(&["other"])), [0, 0, 1, 0]);
    assert_eq!(documents(&place, "sourdough").len(), 1);
    assert_eq!(counts(&place.index(&["notes"])), [0, 0, 2, 1]);
}

#[test]
fn a_document_that_can_no_longer_be_read_stays() {
    let place = Place::indexed();
    place.write("notes/bread.md", b"# Bread\n\n\xff\xfe not UTF-8\n");
    let ran = place.run(&["index", "--model", &tiny_model(), "notes", "--json"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, counts(&report)), (5, [0, 0, 2, 0]), "{ran:?}");
    assert!(report["failed"][0]["reason"].as_str().unwrap().contains("UTF-8"), "{report}");
    // It answers as it was, and every answer says so until its file can be read again.
    let searched = place.json(&["search", "sourdough", "--mode", "lexical"]);
    assert_eq!(searched["hits"][0]["document"], "notes/bread.md");
    let words = ["\"notes/bread.md\" answers with the text it had before", "invalid UTF-8 at byte 9"];
    let says_so =
        |warnings: &Value| words.iter().all(|word| warnings[0].as_str().is_some_and(|text| text.contains(word)));
    assert!(says_so(&searched["warnings"]), "{searched}");
    assert!(says_so(&place.json(&["context", "sourdough", "--budget", "400"])["warnings"]));
    assert!(says_so(&place.json(&["get", "notes/bread.md"])["warnings"]));
    assert_eq!(place.json(&["get", "notes/tides.md"])["warnings"], Value::Null);
    assert!(place.ok(&["get", "notes/bread.md#1"]).err.contains(words[0]));
    assert_eq!(place.json(&["status"])["stale"][0]["documents"], serde_json::json!(["notes/bread.md"]));
    place.write("notes/rye.md", "# Rye\n");
    let elsewhere = place.run(&["index", "--model", &tiny_model(), "notes"]);
    assert_eq!(elsewhere.code, 5, "{elsewhere:?}");
    place.ok(&["delete", "notes/rye.md"]);
    assert!(says_so(&place.json(&["search", "moon", "--mode", "lexical"])["warnings"]), "it outlives other commits");
    place.write("notes/bread.md", BREAD);
    assert_eq!(counts(&place.index(&["notes"])), [1, 0, 3, 0]);
    assert_eq!(place.json(&["search", "sourdough", "--mode", "lexical"])["warnings"], Value::Null);
}

#[test]
fn records_are_named_by_their_file_and_only_a_beir_corpus_by_themselves() {
    let place = Place::new();
    place.write("rows/a.jsonl", "{\"_id\":\"1\",\"text\":\"the moon\"}\n{\"_id\":\"2\",\"text\":\"the sea\"}\n");
    place.index(&["rows"]);
    place.write(
        "rows/b.jsonl",
        "{\"_id\":\"1\",\"text\":\"another moon\"}\n{\"_id\":\"a.jsonl\",\"text\":\"a shore\"}\n",
    );
    place.write("rows/sub/1", "no record, a file\n");
    assert_eq!(counts(&place.index(&["rows"])), [3, 0, 2, 0]);
    for (name, id) in [
        ("rows/a.jsonl/1", "rows/a.jsonl/1"),
        ("rows/b.jsonl/1#0", "rows/b.jsonl/1"),
        ("rows/b.jsonl:1", "rows/b.jsonl/1"),
        ("2", "rows/a.jsonl/2"),
        ("2#0", "rows/a.jsonl/2"),
        ("a.jsonl", "rows/b.jsonl/a.jsonl"),
        ("sub/1", "rows/sub/1"),
    ] {
        assert_eq!(place.json(&["get", name])["document"], id, "{name}");
    }
    let moved = "rows/c.jsonl";
    std::fs::rename(place.path("rows/a.jsonl"), place.path(moved)).unwrap();
    let report = place.index(&["rows"]);
    assert_eq!((counts(&report), report["n_tokens_embedded"].as_u64()), ([2, 0, 3, 2], Some(0)), "{report}");
    // Of a BEIR corpus an id is the record's own, and nothing else may have it.
    place.write("set/corpus.jsonl", "{\"_id\":\"rows/sub/1\",\"text\":\"a set\"}\n{\"_id\":\"9\",\"text\":\"nine\"}\n");
    place.write("set/queries.jsonl", "{\"_id\":\"q\",\"text\":\"set\"}\n");
    place
        .run(&["index", "--model", &tiny_model(), "set"])
        .fails(3, &["set/corpus.jsonl", "\"rows/sub/1\" of one of its documents is that of a document of rows/sub/1"]);
    assert_eq!(place.json(&["get", "sub/1"])["text"], "no record, a file\n");
    place.write("set/corpus.jsonl", "{\"_id\":\"8\",\"text\":\"a set\"}\n{\"_id\":\"9\",\"text\":\"nine\"}\n");
    assert_eq!(counts(&place.index(&["set"])), [2, 0, 0, 0]);
    assert_eq!(place.json(&["get", "9"])["origin"], "set/corpus.jsonl");
}

#[test]
fn judgements_and_topics_name_records_by_their_own_ids_where_one_file_has_them() {
    let place = Place::new();
    place.write("rows/a.jsonl", "{\"_id\":\"1\",\"text\":\"the moon\"}\n{\"_id\":\"2 b\",\"text\":\"the sea\"}\n");
    place.write("rows/b.jsonl", "{\"_id\":\"3\",\"text\":\"the star\"}\n{\"_id\":\"1\",\"text\":\"a loaf\"}\n");
    place.index(&["rows"]);
    place.write("topics.jsonl", "{\"_id\":\"m\",\"text\":\"sea star\",\"scope\":[\"2 b\",\"3\"]}\n");
    place.ok(&["run", "--topics", "topics.jsonl", "--mode", "lexical", "-o", "run"]);
    let run = String::from_utf8(place.read("run")).unwrap();
    assert!(
        run.contains(" rows/a.jsonl/2%20b ") && run.contains(" rows/b.jsonl/3 ") && run.lines().count() == 2,
        "{run}"
    );
    place.write("qrels.tsv", "query-id\tcorpus-id\tscore\nm\t2 b\t1\nm\t3\t1\n");
    assert_eq!(place.json(&["eval", "qrels.tsv", "run", "-m", "R@10"])["R@10"], 1.0);
    // An id that two files have names neither.
    place.write("topics.jsonl", "{\"_id\":\"m\",\"text\":\"moon\",\"scope\":[\"1\"]}\n");
    place.run(&["run", "--topics", "topics.jsonl"]).fails(1, &["\"1\""]);
}

#[test]
fn a_collection_of_an_earlier_version_gets_the_new_ids_and_keeps_none_of_the_old_ones() {
    let place = Place::new();
    let rows: String = (0..40).map(|n| format!("{{\"_id\":\"{n}\",\"text\":\"the moon {n}\"}}\n")).collect();
    place.write("rows/corpus.jsonl", &rows);
    // As an earlier version named them: by themselves.
    place.index(&["rows", "--format", "beir"]);
    assert_eq!(place.json(&["get", "7"])["document"], "7");
    let renamed = place.index(&["rows"]);
    assert_eq!((counts(&renamed), renamed["n_tokens_embedded"].as_u64()), ([40, 0, 0, 40], Some(0)), "{renamed}");
    assert_eq!(place.json(&["status"])["n_documents"], 40);
}

#[test]
fn a_deleted_document_is_gone_and_the_others_stay() {
    let place = Place::indexed();
    let deleted = place.json(&["delete", "notes/bread.md"]);
    assert_eq!(deleted["generation"], 2);
    place.run(&["search", "sourdough", "--mode", "lexical"]).fails(1, &[]);
    place.run(&["get", "notes/bread.md"]).fails(1, &["notes/bread.md"]);
    place.run(&["delete", "notes/tides.md", "notes/bred.md"]).fails(1, &["notes/bred.md"]);
    assert!(!documents(&place, "moon").is_empty(), "a delete with an unknown id deletes nothing");
    assert_eq!(place.json(&["status"])["n_documents"], 2);
}

#[test]
fn a_dry_run_writes_nothing() {
    let place = Place::new();
    place.write_notes();
    let report = place.index(&["notes", "--dry-run"]);
    assert_eq!((counts(&report), report["dry_run"].as_bool()), ([3, 0, 0, 0], Some(true)));
    assert!(report["n_chunks"].as_u64().unwrap() >= 3);
    assert!(!place.path(".cento").exists());
}

#[test]
fn status_and_doctor_know_the_collection() {
    let place = Place::indexed();
    let status = place.json(&["status"]);
    assert_eq!((&status["n_documents"], &status["generation"]), (&3.into(), &1.into()));
    let diagnosis = place.json(&["doctor"]);
    assert!(diagnosis["checks"].as_array().unwrap().iter().all(|check| check["problem"].is_null()), "{diagnosis}");
}

fn segment_files(place: &Place) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![place.path(".cento/segments")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

#[test]
fn a_flipped_bit_is_found_in_every_file_and_never_a_wrong_answer() {
    let place = Place::indexed();
    let search = ["search", "moon tide bread star", "-k", "100", "--explain"];
    let good = place.json(&search);
    for path in segment_files(&place) {
        let bytes = std::fs::read(&path).unwrap();
        for at in [0, 9, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            std::fs::write(&path, &flipped).unwrap();
            let doctor = place.run(&["doctor"]);
            assert!([1, 3].contains(&doctor.code), "byte {at} of {}: {doctor:?}", path.display());
            let answer = place.run(&[&search[..], &["--json"]].concat());
            match answer.code {
                0 => assert_eq!(
                    serde_json::from_str::<Value>(&answer.out).unwrap(),
                    good,
                    "byte {at} of {}",
                    path.display()
                ),
                _ => answer.fails(3, &["corrupt"]),
            }
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(place.json(&search), good);
}

#[test]
fn a_truncated_file_is_an_error() {
    let place = Place::indexed();
    for path in segment_files(&place) {
        let bytes = std::fs::read(&path).unwrap();
        for length in [0, 63, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            place.run(&["search", "moon"]).fails(3, &["corrupt"]);
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    place.ok(&["search", "moon"]);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let place = Place::new();
    place.write_notes();
    let files = |collection: &str, threads: &str| {
        place.ok(&[
            "index",
            "--model",
            &tiny_model(),
            "notes",
            "--collection",
            collection,
            "--threads",
            threads,
            "--no-cache",
            "--graph-rows-min",
            "1",
        ]);
        let mut files = Vec::new();
        let mut folders = vec![place.path(collection)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((
                        path.strip_prefix(place.path(collection)).unwrap().to_owned(),
                        std::fs::read(&path).unwrap(),
                    ));
                }
            }
        }
        files.sort();
        files
    };
    let (one, two) = (files("one", "1"), files("two", "2"));
    let names = |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&one), names(&two));
    for ((name, a), (_, b)) in one.iter().zip(&two) {
        assert!(a == b, "{} differs", name.display());
    }
}

#[test]
fn a_killed_run_leaves_the_collection_and_the_next_goes_on() {
    let place = Place::indexed();
    for n in 0..400 {
        let body = (0..12)
            .map(|k| format!("Sentence {k} of note {n} speaks of {} and {}.\n", n * 7 % 97, k * n % 89))
            .collect::<String>();
        place.write(&format!("many/note{n:03}.md"), format!("# Note {n}\n\n{body}"));
    }
    let before = place.json(&["search", "moon tide", "-k", "50"]);
    let model = tiny_model();
    let arguments = ["index", "--model", &model, "many", "--json", "--threads", "1"];
    let at_start = kept_texts(&place);
    let mut child = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    let is_waiting = || kept_texts(&place) == at_start && started.elapsed() < Duration::from_secs(60);
    while is_waiting() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = kept_texts(&place) - at_start;
    assert!(kept > 0, "nothing was kept before the kill");
    // Entries cut off in the middle, as a power loss leaves them.
    for file in kept_files(&place, "keys") {
        std::fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(&[7; 33]).unwrap();
    }

    assert_eq!(place.json(&["search", "moon tide", "-k", "50"]), before, "the committed generation answers as before");
    let report = place.json(&arguments[..arguments.len() - 3]);
    assert_eq!(counts(&report), [400, 0, 0, 0]);
    assert!(report["n_from_log"].as_u64().unwrap() >= kept, "{kept} vectors were kept: {report}");
    place.ok(&["index", "--model", &model, "notes", "many", "--collection", "fresh", "--no-cache"]);
    let ranked = |collection: &str| {
        place.json(&["search", "note about 42", "-k", "200", "--collection", collection])["hits"].clone()
    };
    assert_eq!(ranked(".cento"), ranked("fresh"));
}

/// The files of that name in the segments of the cache.
fn kept_files(place: &Place, name: &str) -> Vec<PathBuf> {
    let entries = |folder: &PathBuf| std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let segments = entries(&place.path("cache")).flat_map(|model| entries(&model).collect::<Vec<_>>());
    segments.map(|segment| segment.join(name)).filter(|file| file.is_file()).collect()
}

/// Texts in the cache: a header of 32 bytes, and 48 a text.
fn kept_texts(place: &Place) -> u64 {
    let n_bytes = |file: &PathBuf| std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    kept_files(place, "keys").iter().map(|file| n_bytes(file).saturating_sub(32) / 48).sum()
}

#[test]
fn what_one_collection_embedded_no_other_embeds_again() {
    let place = Place::indexed();
    let again = place.index(&["notes", "--collection", "second"]);
    assert_eq!((again["n_tokens_embedded"].as_u64(), &again["n_from_log"]), (Some(0), &again["n_chunks"]));
    let vectors = |collection: &str| place.read(&format!("{collection}/segments/1-0/vectors.rows"));
    assert_eq!(vectors(".cento"), vectors("second"));
    let without = place.index(&["notes", "--collection", "third", "--no-cache"]);
    assert_eq!((without["n_from_log"].as_u64(), &without["n_tokens_embedded"]), (Some(0), &without["n_tokens"]));
    assert_eq!(vectors(".cento"), vectors("third"));
    assert!(!place.path(".cento/embeddings").exists());
}

#[test]
fn a_damaged_vector_in_the_cache_is_embedded_again_and_said_to_be() {
    let place = Place::indexed();
    let file = kept_files(&place, "vectors").remove(0);
    let mut vectors = std::fs::read(&file).unwrap();
    vectors[5] ^= 1;
    std::fs::write(&file, vectors).unwrap();
    let ran = place.ok(&["index", "--model", &tiny_model(), "notes", "--collection", "second"]);
    assert!(ran.err.contains("1 damaged vectors were embedded again") && ran.err.contains("cache prune"), "{ran:?}");
    let rows = |collection: &str| place.read(&format!("{collection}/segments/1-0/vectors.rows"));
    assert_eq!(rows(".cento"), rows("second"));
    let pruned = place.json(&["cache", "prune"]);
    assert_eq!((&pruned["n_damaged"], &pruned["n_removed"]), (&Value::from(1), &Value::from(0)));
    assert!(!place.ok(&["index", "--model", &tiny_model(), "notes", "--collection", "third"]).err.contains("damaged"));
}

#[test]
fn the_cache_says_what_it_holds_and_gives_it_up() {
    let place = Place::new();
    let empty = place.json(&["cache", "status"]);
    assert_eq!((&empty["models"], &empty["max_bytes"]), (&Value::Array(vec![]), &Value::from(8_u64 << 30)));
    place.write_notes();
    let n_chunks = place.index(&["notes"])["n_chunks"].clone();
    let status = place.json(&["cache", "status"]);
    let model = &status["models"][0];
    assert_eq!((&model["n_embeddings"], &model["dimensions"]), (&n_chunks, &Value::from(32)));
    assert!(model["model"].as_str().unwrap().ends_with("tiny") && status["n_bytes"].as_u64() > Some(0), "{status}");
    let table = place.ok(&["cache", "status"]).out;
    assert!(table.contains("just now") && table.contains("8.00 GiB"), "{table}");
    place.run(&["cache", "prune", "--model", "minilm"]).fails(1, &["minilm", "tiny"]);
    place.run(&["cache", "prune", "--max-bytes", "8GB"]).fails(2, &["8GB", "8GiB"]);
    let all = ["cache", "prune", "--model", &model["fingerprint"].as_str().unwrap()[..12], "--all"];
    assert_eq!(place.json(&[&all[..], &["--dry-run"]].concat())["n_removed"], n_chunks);
    assert_eq!(place.json(&all)["n_removed"], n_chunks);
    assert_eq!(place.json(&["cache", "status"])["models"], Value::Array(vec![]));
    assert_eq!(place.index(&["notes", "--collection", "second"])["n_from_log"], 0);
}

#[test]
fn the_limit_of_the_cache_holds_after_each_run() {
    let place = Place::new();
    place.write_settings("cache-max-bytes = \"1KiB\"\n");
    place.write_notes();
    place.index(&["notes"]);
    let status = place.json(&["cache", "status"]);
    assert_eq!((&status["max_bytes"], &status["n_bytes"]), (&Value::from(1024), &Value::from(0)));
}

#[test]
fn a_cache_that_cannot_be_written_is_named_and_the_run_goes_on() {
    let place = Place::new();
    place.write_notes();
    place.write("file", "in the way");
    let ran = place.ok(&["index", "--model", &tiny_model(), "notes", "--cache", "file/cache"]);
    assert!(ran.err.contains("embedding cache") && ran.err.contains("file"), "{ran:?}");
    place.ok(&["search", "moon"]);
    let homeless = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        let output =
            command.env_remove("CENTO_CACHE").env_remove("HOME").env_remove("XDG_CACHE_HOME").output().unwrap();
        crate::support::Ran::new(arguments, output)
    };
    homeless(&["index", "--model", &tiny_model(), "notes"]).fails(2, &["CENTO_CACHE", "--no-cache"]);
    assert_eq!(homeless(&["index", "--model", &tiny_model(), "notes", "--no-cache"]).code, 0);
}

#[test]
fn a_collection_inside_the_indexed_folder_is_no_part_of_it() {
    let place = Place::indexed();
    let model = tiny_model();
    for n in 0..2 {
        let report = place.json(&["index", "--model", &model, "notes", "--collection", "notes/sub/index"]);
        assert_eq!(counts(&report), if n == 0 { [3, 0, 0, 0] } else { [0, 0, 3, 0] }, "{report}");
        let skipped: Vec<&str> = report["skipped"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|skipped| skipped["path"].as_str().unwrap())
            .collect();
        assert_eq!(skipped, ["notes/sub/index"], "{report}");
    }
    place.run(&["index", "notes/sub/index"]).fails(3, &["notes/sub/index", "collection of Cento"]);
}
