//! Late vectors, from the command line to the files: which a collection has, which a search uses, what a rerun costs.

use serde_json::Value;

use crate::support::{Place, tiny_model};

/// Chunks of so few tokens that every note has several.
const CHUNKS: &str = "12";

fn indexed(pooling: &str) -> Place {
    let place = Place::new();
    place.write_notes();
    place.index(&["notes", "--chunk-tokens", CHUNKS, "--pooling", pooling]);
    place
}

fn search(place: &Place, arguments: &[&str]) -> Value {
    place.json(&[&["search", "moon and sun", "--mode", "dense", "-k", "100"], arguments].concat())
}

/// Ids and scores of a ranking.
fn ranking(answer: &Value) -> Vec<(String, f64)> {
    let hits = answer["hits"].as_array().unwrap();
    hits.iter().map(|hit| (hit["id"].as_str().unwrap().to_owned(), hit["score"].as_f64().unwrap())).collect()
}

fn segment_files(place: &Place) -> Vec<String> {
    let files = std::fs::read_dir(place.path(".cento/segments/1-0")).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".rows"))
        .collect();
    names.sort();
    names
}

#[test]
fn every_chunk_has_a_vector_and_late_ones_differ() {
    let rankings: Vec<_> = ["plain", "late"].map(|pooling| ranking(&search(&indexed(pooling), &[]))).to_vec();
    let mut ids: Vec<Vec<&str>> =
        rankings.iter().map(|ranking| ranking.iter().map(|(id, _)| id.as_str()).collect()).collect();
    ids.iter_mut().for_each(|ids| ids.sort_unstable());
    assert_eq!(ids[0], ids[1], "the same chunks, each with its vector");
    assert!(ids[0].len() > 6);
    assert_ne!(rankings[0], rankings[1]);
}

#[test]
fn with_both_a_search_names_the_vectors_it_uses() {
    let place = indexed("both");
    assert_eq!(segment_files(&place), ["vectors-late.rows", "vectors.rows"]);
    let used = |arguments: &[&str]| search(&place, arguments)["vectors"].clone();
    assert_eq!(used(&[]), serde_json::json!({ "find": "plain", "score": "late" }));
    let plain = ["--find-vectors", "plain", "--score-vectors", "plain"];
    let late = ["--find-vectors", "late", "--score-vectors", "late"];
    assert_eq!(used(&late), serde_json::json!({ "find": "late", "score": "late" }));
    assert_eq!(ranking(&search(&place, &plain)), ranking(&search(&indexed("plain"), &[])), "the same bits");
    assert_eq!(ranking(&search(&place, &late)), ranking(&search(&indexed("late"), &[])), "the same bits");
}

/// The rule of the mixed ranking, by hand from the two pure ones.
#[test]
fn one_kind_finds_the_document_and_the_other_orders_its_chunks() {
    let place = indexed("both");
    let scores =
        |find: &str, score: &str| ranking(&search(&place, &["--find-vectors", find, "--score-vectors", score]));
    let document = |id: &str| id.split('#').next().unwrap().to_owned();
    let best = |ranking: &[(String, f64)], of: &str| {
        ranking.iter().filter(|(id, _)| document(id) == of).map(|(_, score)| *score).fold(f64::MIN, f64::max)
    };
    let (plain, late) = (scores("plain", "plain"), scores("late", "late"));
    for (id, score) in scores("plain", "late") {
        let of = document(&id);
        let own = late.iter().find(|(known, _)| *known == id).unwrap().1;
        let expected = best(&plain, &of) + own - best(&late, &of);
        assert!((score - expected).abs() < 1e-9, "{id}: {score} instead of {expected}");
    }
    assert_eq!(scores("plain", "late").len(), late.len());
}

#[test]
fn run_and_context_take_the_same_choice() {
    let place = indexed("both");
    place.write("topics.tsv", "1\tmoon and sun\n2\tflour and water\n");
    let run = |place: &Place, arguments: &[&str]| {
        place.ok(&[&["run", "--topics", "topics.tsv", "--mode", "dense"], arguments].concat()).out
    };
    for kind in ["plain", "late"] {
        let other = indexed(kind);
        other.write("topics.tsv", "1\tmoon and sun\n2\tflour and water\n");
        assert_eq!(run(&place, &["--find-vectors", kind]), run(&other, &[]));
        let context = ["context", "moon and sun", "--budget", "60", "--mode", "dense", "--strategy", "flat"];
        let chosen = ["--find-vectors", kind, "--score-vectors", kind];
        assert_eq!(place.ok(&[&context[..], &chosen].concat()).out, other.ok(&context).out);
    }
    assert_eq!(run(&place, &[]), run(&place, &["--find-vectors", "plain"]));
}

#[test]
fn vectors_that_are_not_there_are_refused() {
    for (has, asked) in [("plain", "late"), ("late", "plain")] {
        let place = indexed(has);
        for option in ["--find-vectors", "--score-vectors"] {
            place.run(&["search", "moon", option, asked]).fails(3, &[&option[2..], has, asked]);
        }
        place.run(&["search", "moon", "--find-vectors", "last"]).fails(2, &["plain or late"]);
    }
}

#[test]
fn another_pooling_or_window_is_refused() {
    let place = indexed("late");
    let index = |arguments: &[&str]| place.run(&[&["index", "notes", "--model", &tiny_model()], arguments].concat());
    index(&["--pooling", "plain"]).fails(3, &["pooling", "late", "plain"]);
    index(&["--late-window", "64"]).fails(3, &["late-window", "128", "64"]);
    assert_eq!(index(&[]).code, 0);
    assert_eq!(index(&["--pooling", "late", "--late-window", "128"]).code, 0);
    let other = Place::new();
    other.write_notes();
    let index = |arguments: &[&str]| other.run(&[&["index", "notes", "--model", &tiny_model()], arguments].concat());
    index(&["--late-window", "64"]).fails(2, &["late-window", "--pooling late"]);
    index(&["--pooling", "late", "--late-window", "129"]).fails(2, &["late-window", "129", "4 to 128"]);
    index(&["--pooling", "early"]).fails(2, &["plain, late or both"]);
}

#[test]
fn what_was_embedded_is_not_embedded_again() {
    let place = indexed("both");
    let unchanged = place.index(&["notes"]);
    assert_eq!((unchanged["n_unchanged"].as_u64(), unchanged["n_tokens_embedded"].as_u64()), (Some(3), Some(0)));
    // away and back: the rows are new, their vectors are in the log
    let before = search(&place, &[]);
    let text = place.read("notes/bread.md");
    std::fs::remove_file(place.path("notes/bread.md")).unwrap();
    place.index(&["notes"]);
    place.write("notes/bread.md", text);
    let back = place.index(&["notes"]);
    assert_eq!((back["n_added"].as_u64(), back["n_tokens_embedded"].as_u64()), (Some(1), Some(0)));
    assert_eq!(back["n_from_log"], back["n_chunks"]);
    assert_eq!(ranking(&search(&place, &[])), ranking(&before));
    // a word more in one chunk changes the late vectors of all of its document, the plain ones of that chunk alone
    place.write("notes/bread.md", [place.read("notes/bread.md"), b"Crumbs remain.\n".to_vec()].concat());
    let changed = place.index(&["notes"]);
    assert_eq!(changed["n_from_log"].as_u64(), Some(0));
    assert!(changed["n_tokens_embedded"].as_u64() < changed["n_tokens"].as_u64());
}

#[test]
fn a_document_beyond_the_window_is_read_whole() {
    let place = Place::new();
    let text: String = (0..400).map(|n| format!("Sentence {n} tells of the river and the city. ")).collect();
    place.write("long/river.txt", &text);
    let report = place.index(&["long", "--pooling", "late", "--chunk-tokens", "document"]);
    assert_eq!((report["n_chunks"].as_u64(), report["n_truncated"].as_u64()), (Some(1), Some(0)));
    assert!(report["n_tokens"].as_u64().unwrap() > 4000, "{report}");
    assert!(report["n_tokens_embedded"] == report["n_tokens"]);
}

#[test]
fn both_columns_are_checked_and_shown() {
    let place = Place::new();
    place.write_notes();
    place.index(&["notes", "--chunk-tokens", CHUNKS, "--pooling", "both", "--graph-rows-min", "1"]);
    let status = place.json(&["status"]);
    assert_eq!(status["config"]["pooling"], "both");
    assert_eq!(status["config"]["late"]["window_tokens"], 128);
    assert!(status["n_bytes"]["vectors-late.rows"].as_u64() > Some(0));
    assert!(place.ok(&["status"]).out.contains("pooling both"));
    let checks = place.ok(&["doctor"]).out;
    for name in ["vectors.rows", "vectors-late.rows", "hnsw-late.graph", "graph of late vectors"] {
        assert!(checks.contains(name), "no {name} in {checks}");
    }
    let found = search(&place, &["--find-vectors", "late", "--score-vectors", "late"]);
    assert_eq!(found["scanned"], "exact"); // of so few rows a scan is the shorter way
    let mut bytes = place.read(".cento/segments/1-0/vectors-late.rows");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    place.write(".cento/segments/1-0/vectors-late.rows", bytes);
    let ran = place.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("damaged  1-0/vectors-late.rows"), "{ran:?}");
}

/// A plain collection is written as it was before there was a choice, and opens.
#[test]
fn a_plain_manifest_names_no_pooling() {
    let place = indexed("plain");
    let manifest = String::from_utf8(place.read(".cento/manifest.json")).unwrap();
    assert!(!manifest.contains("\"pooling\"") && !manifest.contains("\"late\""), "{manifest}");
    assert_eq!(segment_files(&place), ["vectors.rows"]);
    assert_eq!(place.json(&["status"])["config"].get("pooling"), None);
}
