//! Compaction, pins and snapshots: no answer changes, no file is missing under a reader, no space is lost.

use std::collections::BTreeMap;

use super::{Place, QuickFs, answers};
use crate::{At, Merge, create_snapshot, delete, doctor, remove_snapshot, snapshots};

const WORDS: [&str; 4] = ["tide of the moon", "bread with 17 grains", "note 3", "what keeps iron from rust"];

/// A note of several sections whose words depend on its number and its version.
fn note(n: usize, version: usize) -> String {
    let subject = ["tide", "bread", "iron", "moon", "rust", "grain"][n % 6];
    let mut text =
        format!("---\ntitle: Note {n}\nnumber: {n}\n---\n# Of {subject}\n\nVersion {version} of note {n}.\n\n");
    for section in 0..1 + n % 4 {
        let words = n * 7 + section * 13 + version;
        text += &format!("## Part {section}\n\nThe {subject} keeps {} grains and {} stones. ", words % 29, words % 31);
        text += &format!("{}\n\n", "It rises and falls with the moon, twice a day. ".repeat(1 + words % 5));
    }
    text
}

fn name(n: usize) -> String {
    format!("note{n:02}.md")
}

/// A collection of 40 notes that came in `n_runs` runs, of which 30 % were then deleted and 20 % replaced.
fn aged(n_runs: usize) -> (Place, BTreeMap<usize, usize>) {
    let place = Place::new();
    let mut versions = BTreeMap::new();
    for run in 0..n_runs {
        for n in (0..40).filter(|n| n * n_runs / 40 == run) {
            place.write(&name(n), &note(n, 0));
            versions.insert(n, 0);
        }
        place.index();
    }
    let shuffled: Vec<usize> = (0..40).map(|n| n * 27 % 40).collect();
    for n in &shuffled[..12] {
        place.remove(&name(*n));
        versions.remove(n);
        delete(&place.collection(), &[format!("notes/{}", name(*n))], &QuickFs).unwrap();
    }
    for batch in shuffled[12..20].chunks(3) {
        for n in batch {
            place.write(&name(*n), &note(*n, 1));
            versions.insert(*n, 1);
        }
        place.index();
    }
    (place, versions)
}

#[test]
fn answers_do_not_depend_on_runs_deletes_or_compaction() {
    let (fresh, versions) = {
        let (_, versions) = aged(1);
        let place = Place::new();
        versions.iter().for_each(|(n, version)| place.write(&name(*n), &note(*n, *version)));
        place.index();
        (place, versions)
    };
    let expected = answers(&fresh.searcher(), &WORDS);
    for n_runs in [1, 3, 10] {
        let (place, same) = aged(n_runs);
        assert_eq!(same, versions);
        assert_eq!(answers(&place.searcher(), &WORDS), expected, "{n_runs} runs");
        for merge in [Merge::Policy, Merge::All] {
            let report = place.compact(merge);
            assert_eq!(answers(&place.searcher(), &WORDS), expected, "{n_runs} runs, {merge:?}: {report:?}");
        }
        let status = crate::status(&place.collection(), &At::Current).unwrap();
        assert_eq!((status.segments.len(), status.n_dead_documents), (1, 0));
        assert_eq!((status.n_documents, status.segments[0].graphs.len()), (28, 1));
        let diagnosis = doctor(&place.collection()).unwrap();
        assert!(diagnosis.is_healthy(), "{diagnosis:?}");
        let (n_bytes, n_fresh) = (place.n_bytes(), fresh.n_bytes());
        assert!(n_bytes.abs_diff(n_fresh) * 20 <= n_fresh, "{n_runs} runs: {n_bytes} bytes, fresh {n_fresh}");
        assert_eq!(place.compact(Merge::All).n_merged, 0, "there is nothing left to merge");
    }
}

#[test]
fn a_compacted_segment_is_the_segment_of_one_run() {
    let place = Place::new();
    for n in 0..10 {
        place.write(&name(n), &note(n, 0));
        place.index();
    }
    assert_eq!(place.compact(Merge::Policy).n_segments, 1);
    let fresh = Place::new();
    (0..10).for_each(|n| fresh.write(&name(n), &note(n, 0)));
    fresh.index();
    let files = |place: &Place, segment: &str| {
        let folder = place.collection().join("segments").join(segment);
        let mut files = BTreeMap::new();
        for place in [folder.clone(), folder.join("lexical")] {
            for entry in std::fs::read_dir(place).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    files.insert(path.strip_prefix(&folder).unwrap().to_owned(), std::fs::read(path).unwrap());
                }
            }
        }
        files
    };
    let (merged, fresh) = (files(&place, "11-0"), files(&fresh, "1-0"));
    assert_eq!(merged.keys().collect::<Vec<_>>(), fresh.keys().collect::<Vec<_>>());
    merged.iter().for_each(|(name, bytes)| assert!(*bytes == fresh[name], "{} differs", name.display()));
}

#[test]
fn segments_are_merged_by_themselves_when_there_are_many() {
    let place = Place::new();
    let options = crate::IndexOptions { compact: true, ..place.options() };
    for n in 0..20 {
        place.write(&name(n), &note(n, 0));
        let report = place.index_with(&options, &QuickFs).unwrap();
        assert_eq!(report.compaction.is_some(), [7, 14].contains(&n), "{report:?}");
        let segments = crate::status(&place.collection(), &At::Current).unwrap().segments;
        assert!(segments.len() < 8, "{segments:?}");
    }
}

#[test]
fn a_reader_keeps_its_generation_through_commits_and_compactions() {
    let place = Place::new();
    place.write("first.md", &note(1, 0));
    place.write("second.md", &note(2, 0));
    place.index();
    let searcher = place.searcher();
    assert!(searcher.is_pinned());
    let before = answers(&searcher, &WORDS);
    place.remove("first.md");
    place.write("other.md", &note(4, 0));
    for n in 0..10 {
        place.write("second.md", &note(2, n + 1));
        place.index();
    }
    assert_eq!(place.compact(Merge::All).n_merged, 2);
    assert_eq!(answers(&searcher, &WORDS), before);
    let again = place.open(At::Generation(1)).unwrap();
    assert_eq!(answers(&again, &WORDS), before, "what is held can be opened again");
    drop(again);
    assert!(place.collection().join("segments/1-0").is_dir());
    drop(searcher);
    place.write("third.md", &note(3, 0));
    place.index();
    assert!(!place.collection().join("segments/1-0").exists(), "what nobody holds goes with the next commit");
    let error = place.open(At::Generation(1)).unwrap_err().to_string();
    assert!(error.contains("no generation 1") && error.contains("12, 13"), "{error}");
    let left = std::fs::read_dir(place.collection().join("pins")).unwrap().count();
    assert_eq!(left, 2);
}

#[test]
fn a_collection_that_cannot_be_pinned_can_be_read() {
    let place = Place::new();
    place.write("first.md", &note(1, 0));
    place.index();
    std::fs::remove_dir_all(place.collection().join("pins")).unwrap();
    let searcher = place.searcher();
    assert!(!searcher.is_pinned());
    let before = answers(&searcher, &WORDS);
    for n in 0..3 {
        place.write("first.md", &note(1, n + 1));
        place.index();
    }
    assert_eq!(answers(&searcher, &WORDS), before, "what is mapped stays mapped");
}

#[test]
fn a_snapshot_keeps_its_generation_until_it_is_removed() {
    let place = Place::new();
    let folder = place.collection();
    place.write("first.md", &note(1, 0));
    place.index();
    let before = answers(&place.searcher(), &WORDS);
    assert_eq!(create_snapshot(&folder, "good", &QuickFs).unwrap().generation, 1);
    let taken = create_snapshot(&folder, "good", &QuickFs).unwrap_err().to_string();
    assert!(taken.contains("good") && taken.contains("generation 1"), "{taken}");
    for name in ["", "../x", ".x", "a b", &"x".repeat(65)] {
        assert!(create_snapshot(&folder, name, &QuickFs).unwrap_err().to_string().contains("is no name"), "{name}");
    }
    for n in 0..4 {
        place.write("first.md", &note(1, n + 1));
        place.index();
    }
    place.compact(Merge::All);
    let old = place.open(At::Snapshot("good".to_owned())).unwrap();
    assert_eq!((answers(&old, &WORDS), old.manifest().generation), (before, 1));
    drop(old);
    assert_eq!(snapshots(&folder).unwrap().len(), 1);
    let unknown = place.open(At::Snapshot("godo".to_owned())).unwrap_err().to_string();
    assert!(unknown.contains("godo") && unknown.contains("there are good"), "{unknown}");
    remove_snapshot(&folder, "good", &QuickFs).unwrap();
    assert!(!folder.join("segments/1-0").exists() && snapshots(&folder).unwrap().is_empty());
    assert!(remove_snapshot(&folder, "good", &QuickFs).unwrap_err().to_string().contains("there are none"));
}

#[test]
fn a_generation_that_was_not_committed_is_not_opened() {
    let place = Place::new();
    place.write("first.md", &note(1, 0));
    place.index();
    let manifests = place.collection().join("manifests");
    std::fs::copy(manifests.join("1.json"), manifests.join("2.json")).unwrap();
    let error = place.open(At::Generation(2)).unwrap_err().to_string();
    assert!(error.contains("there are 1"), "{error}");
}

#[test]
fn a_reader_that_hangs_does_not_hold_garbage_for_ever() {
    let place = Place::new();
    place.write("first.md", &note(1, 0));
    place.index();
    let searcher = place.searcher();
    let before = answers(&searcher, &WORDS);
    for n in 0..3 {
        place.write("first.md", &note(1, n + 1));
        place.index();
    }
    assert!(place.collection().join("segments/1-0").is_dir(), "it is held");
    let week = std::time::Duration::from_secs(8 * 24 * 3600);
    for pin in std::fs::read_dir(place.collection().join("pins")).unwrap() {
        let pin = std::fs::File::open(pin.unwrap().path()).unwrap();
        pin.set_modified(std::time::SystemTime::now() - week).unwrap();
    }
    place.write("first.md", &note(1, 9));
    place.index();
    assert!(!place.collection().join("segments/1-0").exists(), "but not a week after it was replaced");
    assert_eq!(answers(&searcher, &WORDS), before, "what is mapped stays mapped");
    assert!(place.searcher().is_pinned());
}
