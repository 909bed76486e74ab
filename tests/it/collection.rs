//! The life of a collection: adding, changing, vanishing, deleting, being killed, locked, and damaged.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Place, tiny_model};

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
    let report = place.index(&["notes"]);
    assert_eq!(counts(&report), [0, 0, 2, 0]);
    assert!(report["failed"][0]["reason"].as_str().unwrap().contains("UTF-8"), "{report}");
    assert_eq!(documents(&place, "sourdough").len(), 1);
}

#[test]
fn rows_that_move_to_another_file_keep_their_ids() {
    let place = Place::new();
    place.write("rows/a.jsonl", "{\"_id\":\"1\",\"text\":\"the moon\"}\n{\"_id\":\"2\",\"text\":\"the sea\"}\n");
    place.index(&["rows"]);
    std::fs::rename(place.path("rows/a.jsonl"), place.path("rows/b.jsonl")).unwrap();
    let moved = place.index(&["rows"]);
    assert_eq!((counts(&moved), moved["n_tokens_embedded"].as_u64()), ([0, 2, 0, 0], Some(0)), "{moved}");
    assert_eq!(place.json(&["get", "1"])["origin"], "rows/b.jsonl");
    place.write("rows/c.jsonl", "{\"_id\":\"2\",\"text\":\"another sea\"}\n");
    let doubled = place.index(&["rows"]);
    assert_eq!(counts(&doubled), [0, 0, 2, 0]);
    assert!(doubled["failed"][0]["reason"].as_str().unwrap().contains("rows/b.jsonl"), "{doubled}");
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
