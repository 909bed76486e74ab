//! Compaction, snapshots, earlier generations, doctor and repair, as users meet them.

use serde_json::Value;

use crate::support::{Place, tiny_model};

/// A collection that came about in ten runs.
fn in_ten_runs() -> Place {
    let place = Place::new();
    for n in 0..10 {
        place.write(&format!("notes/note{n}.md"), format!("# Note {n}\n\nThe tide of day {n} rises with the moon.\n"));
        place.index(&["notes", "--no-compact"]);
    }
    place
}

fn hits(place: &Place, arguments: &[&str]) -> Value {
    place.json(&[&["search", "moon and tide of day 3", "-k", "100", "--explain"], arguments].concat())["hits"].clone()
}

fn n_segments(place: &Place) -> usize {
    place.json(&["status"])["segments"].as_array().unwrap().len()
}

#[test]
fn compact_merges_segments_and_changes_no_answer() {
    let place = in_ten_runs();
    let before = hits(&place, &[]);
    assert_eq!(n_segments(&place), 10);
    let report = place.json(&["compact"]);
    assert_eq!(
        (&report["n_merged"], &report["n_segments"], &report["n_rows_copied"], &report["generation"]),
        (&10.into(), &1.into(), &10.into(), &11.into())
    );
    assert!(report["n_bytes"].as_u64() < report["n_bytes_before"].as_u64(), "{report}");
    assert_eq!(hits(&place, &[]), before);
    let again = place.ok(&["compact"]);
    assert!(again.out.contains("nothing to merge; generation 11"), "{again:?}");
    place.json(&["delete", "notes/note3.md", "notes/note4.md", "notes/note5.md"]);
    let after = hits(&place, &[]);
    assert!(place.ok(&["compact"]).out.contains("3 dead rows left behind"));
    assert_eq!(hits(&place, &[]), after);
    assert_eq!(place.json(&["status"])["n_dead_documents"], 0);
}

#[test]
fn index_merges_by_itself_and_says_so() {
    let place = in_ten_runs();
    place.write("notes/last.md", "# Last\n\nThe last note.\n");
    let report = place.json(&["index", "--model", &tiny_model(), "notes"]);
    assert_eq!((&report["compaction"]["n_merged"], &report["generation"]), (&11.into(), &12.into()), "{report}");
    assert_eq!(n_segments(&place), 1);
}

#[test]
fn a_delete_merges_when_that_is_due() {
    let place = in_ten_runs();
    let ran = place.ok(&["delete", "notes/note3.md", "--no-compact"]);
    assert!(!ran.out.contains("merged"), "{ran:?}");
    let ran = place.ok(&["delete", "notes/note4.md"]);
    assert!(ran.out.contains("8 of 8 segments merged"), "{ran:?}");
}

#[test]
fn earlier_generations_answer_as_long_as_they_are_kept() {
    let place = Place::indexed();
    let first = hits(&place, &[]);
    let made = place.json(&["snapshot", "create", "first"]);
    assert_eq!((&made["snapshots"][0]["name"], &made["snapshots"][0]["generation"]), (&"first".into(), &1.into()));
    place.run(&["snapshot", "create", "first"]).fails(3, &["first", "generation 1"]);
    place.run(&["snapshot", "create", "a/b"]).fails(2, &["a/b", "letters"]);
    for n in 0..3 {
        place.write("notes/bread.md", format!("# Bread\n\nBread of day {n}, by the moon.\n"));
        place.index(&["notes"]);
    }
    assert_ne!(hits(&place, &[]), first);
    assert_eq!(hits(&place, &["--snapshot", "first"]), first);
    assert_eq!(hits(&place, &["--generation", "1"]), first);
    place.ok(&["search", "moon", "--generation", "3"]);
    place.run(&["search", "moon", "--generation", "2"]).fails(3, &["no generation 2", "1, 3, 4"]);
    place.run(&["search", "moon", "--snapshot", "frist"]).fails(3, &["frist", "there are first"]);
    place.run(&["search", "moon", "--snapshot", "first", "--generation", "1"]).fails(2, &["--generation"]);
    assert_eq!(place.json(&["status", "--snapshot", "first"])["generation"], 1);
    place.ok(&["context", "moon", "--budget", "100", "--snapshot", "first"]);
    let listed = place.ok(&["snapshot", "list"]).out;
    assert!(listed.contains("first") && listed.contains("GENERATION"), "{listed}");
    place.ok(&["snapshot", "remove", "first"]);
    place.run(&["search", "moon", "--generation", "1"]).fails(3, &["no generation 1", "3, 4"]);
    assert!(place.ok(&["snapshot", "list"]).out.contains("no snapshots"));
}

#[test]
fn status_shows_how_good_a_graph_is() {
    let place = Place::new();
    place.write_notes();
    place.index(&["notes", "--graph-rows-min", "1"]);
    let graph = place.json(&["status"])["segments"][0]["graphs"][0].clone();
    assert_eq!(
        (&graph["n_unreachable"], &graph["self_retrieval"], &graph["vectors"]),
        (&0.into(), &1.0.into(), &"plain".into())
    );
    let shown = place.ok(&["status"]).out;
    assert!(shown.contains("RECALL@10") || shown.contains("recall@10"), "{shown}");
}

#[test]
fn damage_is_named_repaired_and_warned_of_until_it_is_made_good() {
    let place = Place::indexed();
    place.write("notes/more.md", "# More\n\nMore of the moon.\n");
    place.index(&["notes"]);
    let before = hits(&place, &[]);
    let texts = place.path(".cento/segments/1-0/documents.text");
    let mut bytes = std::fs::read(&texts).unwrap();
    bytes[80] ^= 1;
    std::fs::write(&texts, bytes).unwrap();
    place.run(&["search", "moon"]).fails(3, &["documents.text", "cento doctor", "cento repair"]);
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    for words in ["damaged  1-0/documents.text", "1-0", "intact", "1 of 4 documents can be read", "cento repair"] {
        assert!(doctor.out.contains(words), "{words}: {}", doctor.out);
    }
    let repaired = place.run(&["repair"]);
    assert_eq!(repaired.code, 1, "{repaired:?}");
    assert!(repaired.out.contains("lost notes/bread.md of notes/bread.md"), "{}", repaired.out);
    let answer = place.ok(&["search", "moon", "--json"]);
    assert!(answer.err.contains("warning: 3 documents of segment 1-0"), "{answer:?}");
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    assert!(answer["warnings"][0].as_str().unwrap().contains("indexing them again"), "{answer}");
    assert_eq!(place.json(&["status"])["losses"][0]["documents"].as_array().unwrap().len(), 3);
    place.ok(&["doctor"]);
    place.index(&["notes"]);
    assert_eq!(hits(&place, &[]), before);
    assert_eq!(place.ok(&["search", "moon"]).err, "");
    assert!(place.ok(&["repair"]).out.contains("no segment is damaged"));
}

#[test]
fn lost_vectors_come_from_the_cache_or_the_encoder() {
    for cache in [&[][..], &["--no-cache"]] {
        let place = Place::indexed();
        let before = hits(&place, &[]);
        std::fs::remove_file(place.path(".cento/segments/1-0/vectors.rows")).unwrap();
        place.run(&["search", "moon"]).fails(3, &["vectors.rows", "missing", "cento repair"]);
        place.run(&["repair", "--no-embed"]).fails(3, &["--no-embed"]);
        let report = place.json(&[&["repair"], cache].concat());
        let segment = &report["segments"][0];
        assert_eq!(segment["n_from_cache"].as_u64() > Some(0), cache.is_empty(), "{report}");
        assert_eq!(segment["n_tokens_embedded"].as_u64() > Some(0), !cache.is_empty(), "{report}");
        assert_eq!(hits(&place, &[]), before);
    }
}
