//! cento embed: the matrix, its ids and its manifest; types, ranges, kills and reruns, and each kind of bad input.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Place, Ran, TIDES, tiny_model};

/// A `.npy` file, taken apart by hand.
struct Array {
    descr: String,
    shape: [usize; 2],
    bytes: Vec<u8>,
}

impl Array {
    #[track_caller]
    fn read(place: &Place, name: &str) -> Self {
        let bytes = place.read(name);
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00", "format 1.0");
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert_eq!((start % 64, bytes[start - 1]), (0, b'\n'), "the values are aligned, the header ends its line");
        let header = std::str::from_utf8(&bytes[10..start]).unwrap();
        assert!(header.contains("'fortran_order': False, "), "{header}");
        let between = |from: &str, to: &str| header.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned();
        let shape: Vec<usize> = between("'shape': (", ")").split(", ").map(|n| n.parse().unwrap()).collect();
        Self { descr: between("'descr': '", "'"), shape: [shape[0], shape[1]], bytes: bytes[start..].to_vec() }
    }

    fn floats(&self) -> Vec<f32> {
        assert_eq!((self.descr.as_str(), self.bytes.len()), ("<f4", 4 * self.shape[0] * self.shape[1]));
        self.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

fn ids(place: &Place, name: &str) -> Vec<Value> {
    let text = String::from_utf8(place.read(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The arguments of an embedding of `texts.jsonl` into `out.npy`, and more.
fn arguments<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["embed", "texts.jsonl", "-o", "out.npy", "--model", model], more].concat()
}

#[track_caller]
fn embed(place: &Place, more: &[&str]) -> Value {
    place.json(&arguments(&tiny_model(), more))
}

fn fail(place: &Place, more: &[&str]) -> Ran {
    place.run(&arguments(&tiny_model(), more))
}

/// Three texts: one with a title, one empty, one beyond the window.
fn three() -> Place {
    let place = Place::new();
    let lines = [
        json!({"_id": "tides", "title": "Tides", "text": "The moon pulls the sea."}),
        json!({"id": 7, "text": ""}),
        json!({"docid": "long", "contents": "The tide rises. ".repeat(200)}),
    ];
    place.write("texts.jsonl", lines.map(|line| format!("{line}\n")).concat());
    place
}

/// Many texts of different lengths.
fn many(n: usize) -> String {
    let words = ["moon", "tide", "bread", "water", "star", "salt", "cloud", "time"];
    let text = |n: usize| (0..5 + n * 7 % 60).map(|k| words[(n + k * k) % words.len()]).collect::<Vec<_>>().join(" ");
    (0..n).map(|n| format!("{}\n", json!({"_id": format!("text{n}"), "text": text(n)}))).collect()
}

#[test]
fn a_file_of_texts_becomes_a_matrix_with_ids_and_a_manifest() {
    let place = three();
    let report = embed(&place, &[]);
    let array = Array::read(&place, "out.npy");
    assert_eq!((array.descr.as_str(), array.shape), ("<f4", [3, 32]));
    for row in array.floats().chunks(32) {
        let norm: f32 = row.iter().map(|x| x * x).sum();
        assert!((norm - 1.0).abs() < 1e-5, "{norm}");
    }
    let ids = ids(&place, "out.ids.jsonl");
    let field = |name: &str| ids.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("id"), ["tides", "7", "long"]);
    assert_eq!(field("truncated"), [false, false, true]);
    assert_eq!(
        (&ids[1]["n_tokens"], &ids[2]["n_tokens"]),
        (&json!(2), &json!(128)),
        "an empty text is its special tokens"
    );
    let manifest: Value = serde_json::from_slice(&place.read("out.json")).unwrap();
    assert_eq!(manifest["n_rows"], 3);
    for (key, value) in manifest.as_object().unwrap() {
        assert_eq!(report[key], *value, "the report has all of the manifest");
    }
    assert_eq!(
        (&manifest["dimensions"], &manifest["normalized"], &manifest["n_truncated"]),
        (&json!(32), &json!(true), &json!(1))
    );
    assert_eq!(manifest["input"]["n_bytes"].as_u64(), Some(place.read("texts.jsonl").len() as u64));
    assert!(!place.path("out.part").exists() && !place.path("cache").exists());
}

#[test]
fn title_and_text_are_joined_by_a_blank_and_the_vector_is_that_of_a_search() {
    let place = three();
    embed(&place, &[]);
    let with_title = Array::read(&place, "out.npy").floats()[..32].to_vec();
    place.write("texts.jsonl", "{\"text\": \"Tides The moon pulls the sea.\"}\n");
    embed(&place, &[]);
    assert_eq!(Array::read(&place, "out.npy").floats(), with_title);
    assert_eq!(ids(&place, "out.ids.jsonl")[0]["id"], "1", "without an id it is the line's number");
}

#[test]
fn the_parts_of_a_file_are_the_file() {
    let place = Place::new();
    let mut lines: Vec<String> = many(60).lines().map(|line| format!("{line}\n")).collect();
    lines.insert(20, "{\"text\": \"a text that its line names\"}\n".to_owned());
    lines.insert(40, format!("{}\n", json!({"_id": "wide", "text": "moon ".repeat(150)})));
    place.write("texts.jsonl", lines.concat().trim_end());
    embed(&place, &[]);
    let (whole, named) = (Array::read(&place, "out.npy").bytes, ids(&place, "out.ids.jsonl"));
    for n in [1, 2, 3, 7] {
        let (mut rows, mut lines, mut n_bytes) = (Vec::new(), Vec::new(), 0);
        for part in 1..=n {
            let report = embed(&place, &["--part", &format!("{part}/{n}"), "--restart"]);
            assert_eq!(report["input"]["part"], format!("{part}/{n}"));
            n_bytes += report["input"]["n_bytes"].as_u64().unwrap();
            rows.extend(Array::read(&place, "out.npy").bytes);
            lines.extend(ids(&place, "out.ids.jsonl"));
        }
        assert!(rows == whole && lines == named, "{n} parts");
        assert_eq!(n_bytes, place.read("texts.jsonl").len() as u64);
    }
    assert!(named.iter().any(|line| line["id"] == "21"), "lines are numbered in the whole file");
    let again = embed(&place, &["--part", "7/7"]);
    assert_eq!(again["n_resumed"], again["n_rows"], "what is there is left as it is");
    fail(&place, &["--part", "150/1000", "--restart"]).fails(3, &["no text to embed in part 150/1000"]); // inside of a line
    fail(&place, &["--part", "0/7"]).fails(2, &["0/7"]);
    place.run(&["embed", "-", "-o", "out.npy", "--part", "1/2"]).fails(2, &["1/2", "stdin"]);
}

#[test]
fn types_are_made_of_the_same_vectors() {
    let place = Place::new();
    place.write("texts.jsonl", many(150));
    embed(&place, &[]);
    let floats = Array::read(&place, "out.npy").floats();
    let make = |kind: &str| {
        embed(&place, &["--output-type", kind]);
        Array::read(&place, "out.npy")
    };
    for (kind, descr, columns) in
        [("f16", "<f2", 32), ("int8", "|i1", 32), ("uint8", "|u1", 32), ("binary", "|i1", 4), ("ubinary", "|u1", 4)]
    {
        let array = make(kind);
        assert_eq!((array.descr.as_str(), array.shape), (descr, [150, columns]), "{kind}");
        assert_eq!(place.path("out.ranges.npy").exists(), kind.ends_with("int8"), "{kind}");
    }
    let bits = make("ubinary").bytes;
    for (n, value) in floats.iter().enumerate() {
        assert_eq!(bits[n / 8] >> (7 - n % 8) & 1 == 1, *value > 0.0);
    }
    // Each level is the value's place between the least and the greatest of its dimension.
    let levels = make("uint8").bytes;
    let ranges = Array::read(&place, "out.ranges.npy");
    assert_eq!(ranges.shape, [2, 32]);
    let ranges = ranges.floats();
    for (n, (level, value)) in levels.iter().zip(&floats).enumerate() {
        let (min, max) = (ranges[n % 32], ranges[32 + n % 32]);
        let column = floats.iter().skip(n % 32).step_by(32);
        assert_eq!(column.clone().copied().fold(f32::INFINITY, f32::min), min);
        let expected = ((value - min) / ((max - min) / 255.0)).floor().clamp(0.0, 255.0);
        assert_eq!(f32::from(*level), expected, "value {n}");
    }
    let int8 = make("int8").bytes;
    assert!(int8.iter().zip(&levels).all(|(signed, level)| signed.wrapping_add(128) == *level));
}

#[test]
fn ranges_of_one_run_serve_another() {
    let place = Place::new();
    place.write("texts.jsonl", many(150));
    embed(&place, &["--output-type", "int8"]);
    let whole = Array::read(&place, "out.npy").bytes;
    std::fs::rename(place.path("out.ranges.npy"), place.path("ranges.npy")).unwrap();
    place.write("texts.jsonl", many(3));
    let report = embed(&place, &["--output-type", "int8", "--ranges", "ranges.npy"]);
    assert_eq!(Array::read(&place, "out.npy").bytes, whole[..3 * 32]);
    assert_eq!(place.read("out.ranges.npy"), place.read("ranges.npy"));
    assert_eq!(report["ranges"], "out.ranges.npy");
    let own = place.ok(&arguments(&tiny_model(), &["--output-type", "int8"]));
    assert!(own.err.contains("the ranges come from 3 texts alone"), "{own:?}");
    fail(&place, &["--ranges", "ranges.npy"]).fails(2, &["ranges.npy", "f32", "int8"]);
    let ranged = |file: &str| fail(&place, &["--output-type", "int8", "--ranges", file]);
    ranged("texts.jsonl").fails(3, &["texts.jsonl", "not a NumPy array"]);
    ranged("out.npy").fails(3, &["out.npy", "float32"]);
    place.ok(&["embed", "texts.jsonl", "-o", "cut.npy", "--model", &tiny_model(), "--dimensions", "8"]);
    ranged("cut.npy").fails(3, &["cut.npy", "3 x 8", "2 x 32"]);
}

#[test]
fn dimensions_are_cut_and_made_unit_length_again() {
    let place = three();
    embed(&place, &[]);
    let whole = Array::read(&place, "out.npy").floats();
    embed(&place, &["--dimensions", "8"]);
    let cut = Array::read(&place, "out.npy");
    assert_eq!(cut.shape, [3, 8]);
    for (row, cut) in whole.chunks(32).zip(cut.floats().chunks(8)) {
        let norm = row[..8].iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!(row.iter().zip(cut).all(|(x, cut)| (x / norm - cut).abs() < 1e-6));
    }
    fail(&place, &["--dimensions", "0"]).fails(2, &["dimensions", "\"0\"", "1 to 32"]);
    fail(&place, &["--dimensions", "33"]).fails(2, &["dimensions", "\"33\"", "1 to 32"]);
}

#[test]
fn the_window_can_be_narrowed_and_a_longer_text_can_be_an_error() {
    let place = three();
    assert_eq!(embed(&place, &["--max-tokens", "6"])["n_truncated"], 2);
    assert_eq!(ids(&place, "out.ids.jsonl")[0]["n_tokens"], 6);
    fail(&place, &["--too-long", "error"]).fails(3, &["texts.jsonl", "line 3", "\"long\"", "128 tokens", "--too-long"]);
    for n in ["2", "129"] {
        fail(&place, &["--max-tokens", n]).fails(2, &["max-tokens", n, "3 to 128"]);
    }
}

#[test]
fn threads_stdin_and_a_folder_give_the_same_bytes() {
    let place = Place::new();
    place.write("texts.jsonl", many(300));
    place.write("set/corpus.jsonl", many(300));
    place.write("set/queries.jsonl", many(5));
    embed(&place, &["--threads", "1"]);
    let one = (place.read("out.npy"), place.read("out.ids.jsonl"));
    embed(&place, &["--threads", "2", "--restart"]);
    assert!((place.read("out.npy"), place.read("out.ids.jsonl")) == one);
    let model = tiny_model();
    place.ok(&["embed", "set", "-o", "set.npy", "--model", &model]);
    assert!((place.read("set.npy"), place.read("set.ids.jsonl")) == one);
    assert_eq!(place.json(&["embed", "set", "-o", "queries.npy", "--model", &model, "--kind", "query"])["n_rows"], 5);
    let mut child = place
        .command(&["embed", "-", "-o", "stdin.npy", "--model", &model])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&place.read("texts.jsonl")).unwrap();
    assert!(child.wait().unwrap().success());
    assert!((place.read("stdin.npy"), place.read("stdin.ids.jsonl")) == one);
}

#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_bytes() {
    let place = Place::new();
    place.write("texts.jsonl", many(8000));
    let model = tiny_model();
    for kind in ["f32", "int8"] {
        let more = ["--output-type", kind, "--threads", "1"];
        let mut n_kills = 0;
        for _ in 0..3 {
            let mut child =
                place.command(&arguments(&model, &more)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let journal = || std::fs::metadata(place.path("out.part/journal.jsonl")).map_or(0, |file| file.len());
            let (before, started) = (journal(), Instant::now());
            while journal() <= before
                && child.try_wait().unwrap().is_none()
                && started.elapsed() < Duration::from_secs(60)
            {
                std::thread::yield_now();
            }
            n_kills += u32::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
            if !place.path("out.part").exists() {
                break;
            }
            // What a power loss may add: rows and a line of the journal that were never finished.
            for (file, torn) in
                [("vectors.npy", &[7; 33][..]), ("ids.jsonl", b"{\"id\""), ("journal.jsonl", b"{\"n_rows\":9")]
            {
                let path = place.path("out.part").join(file);
                std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(torn).unwrap();
            }
        }
        assert!(n_kills > 0, "no run was killed before it ended");
        let report = embed(&place, &more);
        assert!(report["n_resumed"].as_u64() >= Some(1024), "{report}");
        assert!(!place.path("out.part").exists());
        let names =
            ["npy", "ids.jsonl", "ranges.npy"].into_iter().filter(|name| kind == "int8" || *name != "ranges.npy");
        let files = || names.clone().map(|name| place.read(&format!("out.{name}"))).collect::<Vec<_>>();
        let (resumed, manifest) = (files(), place.read("out.json"));
        embed(&place, &["--output-type", kind, "--threads", "2", "--restart"]);
        assert!(files() == resumed && place.read("out.json") == manifest, "{kind}");
    }
}

/// A run of `texts` that ends with an error at its last line, so that the batches before it are kept.
fn interrupted(texts: &str) -> Place {
    let place = Place::new();
    place.write("texts.jsonl", format!("{texts}{{\"_id\": \"text0\", \"text\": \"again\"}}\n"));
    fail(&place, &[]).fails(3, &["texts.jsonl", "\"text0\"", "line 1201", "line 1 already"]);
    assert!(place.path("out.part/journal.jsonl").exists() && !place.path("out.npy").exists());
    place
}

#[test]
fn a_run_goes_on_once_its_input_is_mended_and_not_with_another_input_or_plan() {
    let texts = many(1200);
    let place = interrupted(&texts);
    fail(&place, &["--output-type", "f16"]).fails(3, &["out.part", "output type", "f32", "f16", "--restart"]);
    fail(&place, &["--kind", "query"]).fails(3, &["out.part", "kind", "document", "query", "--restart"]);
    place.write("texts.jsonl", texts.replacen("text5\"", "text5b\"", 1));
    fail(&place, &[]).fails(3, &["texts.jsonl", "first 1024 texts", "--restart"]);
    place.write("texts.jsonl", &texts[..texts.len() / 2]);
    fail(&place, &[]).fails(3, &["texts.jsonl", "first 1024 texts", "--restart"]);
    place.write("texts.jsonl", format!("{texts}{{\"_id\": \"last\", \"text\": \"now\"}}\n"));
    let report = embed(&place, &[]);
    assert_eq!((&report["n_resumed"], &report["n_rows"]), (&json!(1024), &json!(1201)));
    let place = interrupted(&texts);
    place.write("texts.jsonl", many(3));
    assert_eq!(embed(&place, &["--restart", "--output-type", "f16"])["n_resumed"], 0);
}

#[test]
fn two_processes_do_not_write_to_one_result() {
    let place = interrupted(&many(1200));
    let lock = std::fs::OpenOptions::new().write(true).open(place.path("out.part/LOCK")).unwrap();
    lock.lock().unwrap();
    fail(&place, &[]).fails(3, &["out.part", "another process"]);
    fail(&place, &["--restart"]).fails(3, &["out.part", "another process"]);
}

#[test]
fn a_result_that_is_there_is_left_as_it_is_and_another_input_replaces_it() {
    let place = three();
    assert_eq!(embed(&place, &[])["n_resumed"], 0);
    let again = place.ok(&arguments(&tiny_model(), &[]));
    assert!(again.err.contains("embedded already"), "{again:?}");
    assert_eq!(embed(&place, &[])["n_resumed"], 3);
    assert_eq!(embed(&place, &["--restart"])["n_resumed"], 0);
    assert_eq!(embed(&place, &["--output-type", "int8"])["output_type"], "int8");
    place.write("texts.jsonl", many(2));
    assert_eq!(embed(&place, &[])["n_rows"], 2);
    assert!(!place.path("out.ranges.npy").exists(), "the ranges of the old result are gone");
}

#[test]
fn files_of_others_are_not_replaced() {
    let place = three();
    for name in ["out.npy", "out.json"] {
        place.write(name, "somebody's work");
        fail(&place, &[]).fails(3, &[name, "no run that embeds texts made it"]);
        fail(&place, &["--restart"]).fails(3, &[name]);
        assert_eq!(place.read(name), b"somebody's work");
        std::fs::remove_file(place.path(name)).unwrap();
    }
    place.run(&["embed", "texts.jsonl", "-o", "out.bin", "--model", &tiny_model()]).fails(2, &["out.bin", ".npy"]);
}

#[test]
fn a_crash_between_the_renames_is_mended_by_the_next_run() {
    let place = three();
    embed(&place, &[]);
    let whole = ["out.npy", "out.ids.jsonl", "out.json"].map(|name| place.read(name));
    // As if the process had ended after the first rename.
    std::fs::create_dir(place.path("out.part")).unwrap();
    for (from, to) in [("out.ids.jsonl", "out.part/ids.jsonl"), ("out.json", "out.part/manifest.json")] {
        std::fs::rename(place.path(from), place.path(to)).unwrap();
    }
    assert_eq!(embed(&place, &[])["n_resumed"], 3);
    assert!(["out.npy", "out.ids.jsonl", "out.json"].map(|name| place.read(name)) == whole);
    assert!(!place.path("out.part").exists());
}

#[test]
fn a_bad_line_is_reported_and_the_others_are_embedded() {
    let place = Place::new();
    place.write("texts.jsonl", b"{\"_id\":\"a\",\"text\":\"one\"}\n{\"_id\":\n\n[1]\n{\"_id\":\"b\"}\n{\"text\":\"\xff\"}\n{\"_id\":\"c\",\"title\":\"two\"}");
    let ran = place.ok(&arguments(&tiny_model(), &[]));
    for words in ["line 2 is not a JSON object", "line 4", "line 5: no text", "invalid UTF-8 at byte"] {
        assert!(ran.err.contains(words), "no {words:?} in {ran:?}");
    }
    assert_eq!(ids(&place, "out.ids.jsonl").iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), ["a", "c"]);
    let manifest: Value = serde_json::from_slice(&place.read("out.json")).unwrap();
    assert_eq!(manifest["n_failed"], 4);
}

#[test]
fn nothing_to_embed_is_an_error_and_leaves_nothing() {
    let place = Place::new();
    for (content, words) in [("", "no text to embed"), ("\n\n", "no text to embed"), ("{}\n", "line 1: no text")] {
        place.write("texts.jsonl", content);
        fail(&place, &[]).fails(3, &["texts.jsonl", words]);
        assert!(!place.path("out.part").exists() && !place.path("out.npy").exists());
    }
    std::fs::remove_file(place.path("texts.jsonl")).unwrap();
    fail(&place, &[]).fails(3, &["texts.jsonl"]);
}

#[test]
fn a_text_of_ten_megabytes_is_embedded_by_its_beginning() {
    let place = Place::new();
    place.write("texts.jsonl", format!("{}\n", json!({"_id": "huge", "text": "the moon ".repeat(1_200_000)})));
    assert_eq!(embed(&place, &[])["n_truncated"], 1);
    place.write("texts.jsonl", format!("{}\n", json!({"_id": "huge", "text": "the moon ".repeat(500)})));
    let huge = place.read("out.npy");
    embed(&place, &[]);
    assert!(place.read("out.npy") == huge);
}

#[test]
fn an_unknown_model_or_type_is_named_and_a_folder_that_cannot_be_written() {
    let place = three();
    place
        .run(&["embed", "texts.jsonl", "-o", "out.npy", "--model", "minilm"])
        .fails(4, &["minilm", "all-minilm-l6-v2"]);
    place.run(&["embed", "texts.jsonl", "-o", "out.npy"]).fails(4, &["cento model pull"]);
    fail(&place, &["--output-type", "int4"]).fails(2, &["int4", "ubinary"]);
    place.write("file", "in the way");
    place.run(&["embed", "texts.jsonl", "-o", "file/out.npy", "--model", &tiny_model()]).fails(3, &["file/out.part"]);
}

#[test]
fn the_cache_is_used_when_asked_for() {
    let place = Place::new();
    place.write("texts.jsonl", many(40));
    embed(&place, &[]);
    let files = || ["out.npy", "out.ids.jsonl"].map(|name| place.read(name));
    let plain = files();
    for n_found in [0, 40] {
        let report = embed(&place, &["--restart", "--use-cache"]);
        assert_eq!(report["n_from_cache"], n_found);
        assert!(files() == plain);
    }
    place.write("texts.jsonl", many(45));
    assert_eq!(embed(&place, &["--use-cache"])["n_from_cache"], 40);
    // Vectors of another window or of other dimensions are not those.
    assert_eq!(embed(&place, &["--use-cache", "--max-tokens", "9"])["n_from_cache"], 0);
    let cut = embed(&place, &["--use-cache", "--max-tokens", "9", "--restart"]);
    assert_eq!(cut["n_from_cache"], 45);
    assert_eq!(cut["n_truncated"], embed(&place, &["--max-tokens", "9", "--restart"])["n_truncated"]);
    assert_eq!(embed(&place, &["--use-cache", "--dimensions", "4"])["n_from_cache"], 0);
}

#[test]
fn the_bench_measures_the_built_in_texts_or_those_of_a_file() {
    let place = Place::new();
    let model = tiny_model();
    let bench = ["bench", "embed", "--model", &model, "--n-queries", "3", "--repeat", "1"];
    let answer = place.json(&[&bench[..], &["--n-texts", "20", "--threads", "1"]].concat());
    let uniform = &answer["sets"]["uniform"];
    assert_eq!((&uniform["n_texts"], &answer["n_threads"]), (&json!(20), &json!(1)));
    assert!(uniform["tokens_per_second"].as_f64() > Some(0.0) && answer["query_ms"]["p99"].as_f64() > Some(0.0));
    let n_tokens = |set: &str| answer["sets"][set]["n_tokens"].as_u64().unwrap();
    assert_eq!(n_tokens("uniform"), 20 * 128);
    assert!(n_tokens("mixed") < n_tokens("uniform"));
    assert!(answer["machine"]["cpu"].is_string());
    place.write("texts.jsonl", many(7));
    assert_eq!(place.json(&[&bench[..], &["--texts", "texts.jsonl"]].concat())["sets"]["file"]["n_texts"], 7);
    let table = place.ok(&[&bench[..], &["--n-texts", "2"]].concat()).out;
    assert!(table.contains("uniform") && table.contains("p95"), "{table}");
    place.run(&[&bench[..], &["--n-texts", "0"]].concat()).fails(2, &["--n-texts"]);
    place.write("tides.md", TIDES);
    place.run(&[&bench[..], &["--texts", "tides.md"]].concat()).fails(3, &["tides.md", "line 1"]);
}

/// Instruction models have a prompt a task.
#[test]
fn a_prompt_of_a_task_is_put_before_queries_by_its_name() {
    let place = Place::new();
    place.write_notes();
    let model = model_with(&place, &json!({"query": "what is ", "code": "the code of "}));
    let embedded = |name: &str, line: &str, more: &[&str]| {
        place.write("texts.jsonl", format!("{}\n", json!({"id": "1", "text": line})));
        let output = format!("{name}.npy");
        place.ok(&[&["embed", "texts.jsonl", "-o", &output, "--model", &model], more].concat());
        place.read(&output)
    };
    let asked = ["--kind", "query", "--prompt", "code"];
    let by_name = embedded("named", "the moon", &asked);
    assert_eq!(by_name, embedded("whole", "the code of the moon", &[]));
    assert_ne!(by_name, embedded("query", "the moon", &["--kind", "query"]));
    place
        .run(&["embed", "texts.jsonl", "-o", "other.npy", "--model", &model, "--prompt", "code"])
        .fails(2, &["prompt", "is for queries"]);

    let index = ["index", "notes", "--model", &model];
    let collection = |name: &'static str| ["--collection", name];
    place.run(&[&index[..], &["--prompt", "cod"]].concat()).fails(4, &["\"cod\"", "code, query"]);
    place.ok(&[&index[..], &["--prompt", "code"], &collection("code")].concat());
    place.ok(&[&index[..], &collection("plain")].concat());
    place
        .run(&[&index[..], &["--prompt", "query"], &collection("code")].concat())
        .fails(3, &["prompt:", "code", "query"]);
    place
        .run(&[&index[..], &["--prompt", "code"], &collection("plain")].concat())
        .fails(3, &["prompt:", "code", "query"]);
    place.ok(&[&index[..], &collection("code")].concat());
    let scores = |name: &'static str| {
        let answer =
            place.json(&[&["search", "the moon", "--mode", "dense", "-k", "3"], &collection(name)[..]].concat());
        answer["hits"].as_array().unwrap().iter().map(|hit| hit["score"].clone()).collect::<Vec<_>>()
    };
    assert_ne!(scores("code"), scores("plain"), "the collection keeps its prompt");
}

/// A copy of the tiny encoder with prompts.
fn model_with(place: &Place, prompts: &Value) -> String {
    let (from, to) = (std::path::PathBuf::from(tiny_model()), place.path("prompted"));
    for entry in walkdir(&from) {
        let name = entry.strip_prefix(&from).unwrap();
        std::fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
        std::fs::copy(&entry, to.join(name)).unwrap();
    }
    let settings = to.join("config_sentence_transformers.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&settings).unwrap()).unwrap();
    config["prompts"] = prompts.clone();
    std::fs::write(settings, config.to_string()).unwrap();
    to.display().to_string()
}

/// The files below a folder.
fn walkdir(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walkdir(&path) } else { vec![path] }).collect()
}
