//! Damage: it is found wherever it is, nothing wrong is ever answered, and a repair keeps what can be read.

use std::path::{Path, PathBuf};

use super::random::Random;
use super::{Place, QuickFs, answers, copied};
use crate::{
    At, CACHE_BYTES_MAX, CacheOptions, ChunkSearch, IndexOptions, Losses, Merge, Missing, Mode, RepairOptions,
    RepairReport, Searcher, SearcherOptions, Selection, create_snapshot, delete, delete_selected, describe, doctor,
    index, remove_snapshot, repair, snapshots, unread_snapshots,
};

const WORDS: [&str; 2] = ["moon tide bread star", "note 7 of rye"];

/// A way to damage a file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip(usize),
    Cut,
    Gone,
}

impl Damage {
    /// Damages a file; `Flip` counts in percent of its length.
    fn inflict(self, path: &Path) {
        let mut bytes = std::fs::read(path).unwrap();
        match self {
            Self::Flip(percent) => {
                let at = (bytes.len() - 1) * percent / 100;
                bytes[at] ^= 0x10;
                std::fs::write(path, bytes).unwrap();
            }
            Self::Cut => std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap(),
            Self::Gone => std::fs::remove_file(path).unwrap(),
        }
    }
}

/// Three notes, then two more: two segments.
fn notes() -> Place {
    let place = Place::new();
    place.write(
        "tides.md",
        "# Tides\n\nThe moon pulls the sea.\n\n## Spring tides\n\nWhen sun and moon stand in line.\n",
    );
    place.write("bread.md", "---\ntitle: Bread\n---\nBread is flour and water, and rye in note 7.\n");
    place.write("stars.txt", "Stars are born in clouds of gas. The nearest star is the sun.\n");
    place.index();
    place.write("rye.md", "# Rye\n\nRye bread keeps for a week.\n");
    place.write("note7.md", "# Note 7\n\nA note about the tide.\n");
    place.index();
    place
}

fn options(cache: Option<&Path>) -> RepairOptions {
    let cache = cache.map(|folder| CacheOptions { folder: folder.to_owned(), max_bytes: CACHE_BYTES_MAX });
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny").to_owned();
    let index = IndexOptions { model: Some(model), graph_rows_min: 1, cache, threads: 1, ..IndexOptions::default() };
    RepairOptions { index, ..RepairOptions::default() }
}

fn repaired(collection: &Path, options: &RepairOptions) -> RepairReport {
    let report = repair(collection, options, &QuickFs, &mut |_| {}).unwrap();
    let diagnosis = doctor(collection).unwrap();
    assert!(diagnosis.is_healthy(), "{diagnosis:?}");
    report
}

fn open(collection: &Path) -> crate::Result<Searcher> {
    Searcher::open(collection, SearcherOptions::default())
}

/// Every file of a segment, relative to the collection.
fn files(collection: &Path, segment: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![collection.join("segments").join(segment)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                files.push(path.strip_prefix(collection).unwrap().to_owned())
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_repair_keeps_everything_but_what_only_the_damaged_bytes_knew() {
    let place = notes();
    let before = answers(&place.searcher(), &WORDS);
    let files = files(&place.collection(), "1-0");
    assert!(files.len() > 10, "{files:?}");
    let (mut n_kept, mut n_lost) = (0, 0);
    for file in &files {
        for damage in [Damage::Flip(0), Damage::Flip(60), Damage::Flip(100), Damage::Cut, Damage::Gone] {
            let when = format!("{damage:?} of {}", file.display());
            let copy = copied(place.folder.path());
            let collection = copy.path().join("collection");
            damage.inflict(&collection.join(file));
            let diagnosis = doctor(&collection).unwrap();
            assert!(!diagnosis.is_healthy(), "{when}: {diagnosis:?}");
            let damaged = &diagnosis.segments[0];
            assert_eq!((damaged.is_damaged, diagnosis.segments[1].is_damaged), (true, false), "{when}");
            if let Err(error) = open(&collection) {
                let words = describe(&error);
                assert!(words.contains("corrupt") || words.contains("lexical"), "{when}: {words}");
            }
            let report = repaired(&collection, &options(None));
            assert_eq!(report.segments.len(), 1, "{when}");
            let searcher = open(&collection).unwrap();
            if report.losses.is_empty() {
                assert_eq!(answers(&searcher, &WORDS), before, "{when}");
                n_kept += 1;
            } else {
                assert_eq!(damaged.n_documents_readable, 3 - report.losses[0].n_documents(), "{when}");
                let request = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("rye") };
                let response = searcher.search(&request).unwrap();
                assert!(response.warnings[0].contains("1-0") && !response.hits.is_empty(), "{when}: {response:?}");
                let fs = &QuickFs;
                super::index_notes(&place.notes(), &collection, &place.options(), fs).unwrap();
                let searcher = open(&collection).unwrap();
                assert_eq!((answers(&searcher, &WORDS), searcher.warnings()), (before.clone(), Vec::new()), "{when}");
                n_lost += 1;
            }
            assert!(collection.join("quarantine/1-0").is_dir(), "{when}");
            let again = repaired(&collection, &options(None));
            assert!(again.segments.is_empty() && again.losses.is_empty(), "{when}: {again:?}");
        }
    }
    println!("{n_kept} damages without a loss, {n_lost} with documents to be indexed again");
    assert!(n_kept > 5 * (files.len() - 4) - 5 && n_lost > 10, "{n_kept} {n_lost}");
}

/// Notes that take several blocks of every large file.
fn large() -> Place {
    let place = Place::new();
    let mut random = Random::new(7);
    for n in 0..30 {
        let mut text = format!("# Note {n}\n\n");
        for word in 0..1200 {
            (0..3 + random.below(6)).for_each(|_| text.push((b'a' + random.below(26) as u8) as char));
            text.push_str(if word % 12 == 11 { ".\n\n" } else { " " });
        }
        place.write(&format!("note{n:02}.md"), &text);
    }
    place
}

#[test]
fn a_damaged_block_costs_what_lies_in_it_and_lost_vectors_come_from_the_cache() {
    let place = large();
    let cache = place.folder.path().join("cache");
    let options = options(Some(&cache));
    place.index_with(&IndexOptions { compact: false, ..options.index.clone() }, &QuickFs).unwrap();
    let before = answers(&place.searcher(), &["note 12", "note 29"]);
    let segment = PathBuf::from("segments/1-0");

    let copy = copied(place.folder.path());
    let collection = copy.path().join("collection");
    Damage::Flip(50).inflict(&collection.join(&segment).join("vectors.rows"));
    let refused =
        repair(&collection, &RepairOptions { vectors: Missing::Refused, ..options.clone() }, &QuickFs, &mut |_| {});
    assert!(matches!(refused, Err(crate::Error::VectorsLost)));
    let report = repaired(&collection, &options);
    let of_segment = &report.segments[0];
    assert!(report.losses.is_empty() && of_segment.n_tokens_embedded == 0, "{report:?}");
    assert!(0 < of_segment.n_from_cache && of_segment.n_from_cache < of_segment.n_rows, "{report:?}");
    assert_eq!(answers(&open(&collection).unwrap(), &["note 12", "note 29"]), before);

    let copy = copied(place.folder.path());
    let collection = copy.path().join("collection");
    Damage::Flip(50).inflict(&collection.join(&segment).join("documents.text"));
    let diagnosis = doctor(&collection).unwrap();
    let report = repaired(&collection, &options);
    let lost = &report.losses[0];
    assert!(0 < lost.n_documents() && lost.n_documents() < 20 && lost.n_unnamed == 0, "{lost:?}");
    assert_eq!(diagnosis.segments[0].n_documents_readable, 30 - lost.n_documents());
    let searcher = open(&collection).unwrap();
    assert!(searcher.warnings()[0].contains(&lost.documents[0].id), "{:?}", searcher.warnings());
    assert_eq!(searcher.source.describe().n_documents, 30 - lost.n_documents());
    let accepted = repaired(&collection, &RepairOptions { losses: Losses::Accepted, ..options.clone() });
    assert!(accepted.losses.is_empty() && open(&collection).unwrap().warnings().is_empty());
}

#[test]
fn deleted_documents_stay_deleted_as_far_as_an_older_generation_knows_them() {
    let place = notes();
    delete(&place.collection(), &["notes/tides.md".to_owned()], &QuickFs).unwrap();
    let before = answers(&place.searcher(), &WORDS);
    place.write("rye.md", "# Rye\n\nRye is a grass.\n");
    place.remove("tides.md");
    place.index(); // a tombstone in the second segment too
    let after = answers(&place.searcher(), &WORDS);
    assert_ne!(before, after);
    let deletes = place.collection().join("deletes");
    let newest = std::fs::read_dir(&deletes).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    Damage::Flip(50).inflict(&newest);
    assert!(describe(&open(&place.collection()).unwrap_err()).contains("corrupt"));
    let report = repaired(&place.collection(), &options(None));
    assert!(report.notes.iter().any(|note| note.contains("may answer again")), "{report:?}");
    assert_eq!(answers(&place.searcher(), &WORDS), after, "the old rye answers from another segment");
}

#[test]
fn a_damaged_manifest_is_restored_from_its_copy() {
    for damage in [Damage::Flip(0), Damage::Flip(50), Damage::Cut, Damage::Gone] {
        for name in ["manifest.json", "manifests/2.json"] {
            let place = notes();
            let before = answers(&place.searcher(), &WORDS);
            damage.inflict(&place.collection().join(name));
            let diagnosis = doctor(&place.collection()).unwrap();
            assert!(!diagnosis.is_healthy() && diagnosis.generation == 2, "{damage:?} {name}: {diagnosis:?}");
            let report = repaired(&place.collection(), &options(None));
            assert!(report.segments.is_empty() && report.notes.len() == 1, "{damage:?} {name}: {report:?}");
            assert_eq!(answers(&place.searcher(), &WORDS), before, "{damage:?} {name}");
        }
    }
}

#[test]
fn what_does_not_belong_is_named_and_left_alone() {
    let place = notes();
    std::fs::write(place.collection().join("notes.bak"), "").unwrap();
    std::fs::create_dir(place.collection().join("segments/9-9")).unwrap();
    let diagnosis = doctor(&place.collection()).unwrap();
    assert!(diagnosis.is_healthy(), "{diagnosis:?}");
    assert_eq!(diagnosis.remarks.len(), 2, "{diagnosis:?}");
    assert!(diagnosis.remarks[0].contains("notes.bak") && diagnosis.remarks[1].contains("segments/9-9"));
}

#[test]
fn a_root_that_was_not_indexed_keeps_its_losses() {
    let place = notes();
    Damage::Cut.inflict(&place.collection().join("segments/1-0/documents.table"));
    let report = repaired(&place.collection(), &options(None));
    assert_eq!((report.losses[0].n_unnamed, report.losses[0].documents.len()), (3, 0));
    std::fs::create_dir(place.folder.path().join("other")).unwrap();
    std::fs::write(place.folder.path().join("other/zinc.md"), "Zinc is a metal.").unwrap();
    let other = crate::Root { label: "other".to_owned(), path: place.folder.path().join("other") };
    index(&place.collection(), &[other], &place.options(), &QuickFs, &mut |_| {}).unwrap();
    assert_eq!(place.searcher().warnings().len(), 1);
    let notes = crate::Root { label: "notes".to_owned(), path: place.notes() };
    let other = crate::Root { label: "other".to_owned(), path: place.folder.path().join("other") };
    index(&place.collection(), &[notes, other], &place.options(), &QuickFs, &mut |_| {}).unwrap();
    assert!(place.searcher().warnings().is_empty());
}

#[test]
fn damage_elsewhere_keeps_no_index_run_from_adding() {
    for file in ["documents.text", "vectors.rows"] {
        let place = notes();
        let damaged = place.collection().join("segments/1-0").join(file);
        Damage::Flip(60).inflict(&damaged);
        place.write("new.md", "# New\n\nThe harbour opens at six in the morning.\n");
        assert_eq!(place.index().n_added, 1, "{file}");
        assert!(!doctor(&place.collection()).unwrap().is_healthy(), "{file}: it is still told");
    }
}

/// Two snapshots of different generations, of which one is damaged; then one generation more.
fn with_damaged_snapshot(damage: Damage) -> Place {
    let place = notes();
    create_snapshot(&place.collection(), "good", &QuickFs).unwrap();
    place.remove("tides.md");
    place.index();
    create_snapshot(&place.collection(), "bad", &QuickFs).unwrap();
    damage.inflict(&place.collection().join("snapshots/bad.json"));
    place
}

#[test]
fn a_damaged_snapshot_is_named_and_in_nobodys_way() {
    for damage in [Damage::Flip(0), Damage::Flip(50), Damage::Cut] {
        let place = with_damaged_snapshot(damage);
        let folder = place.collection();
        let names: Vec<String> = snapshots(&folder).unwrap().into_iter().map(|snapshot| snapshot.name).collect();
        assert_eq!(names, ["good"]);
        let unread = unread_snapshots(&folder).unwrap();
        assert!(unread.len() == 1 && unread[0].name == "bad" && unread[0].problem.contains("bad.json"), "{unread:?}");
        let at = |name: &str| place.open(At::Snapshot(name.to_owned()));
        assert!(at("good").is_ok());
        assert!(describe(&at("bad").unwrap_err()).contains("bad.json"));
        assert!(describe(&at("none").unwrap_err()).contains("good, bad"));
        assert!(describe(&create_snapshot(&folder, "bad", &QuickFs).unwrap_err()).contains("bad.json"));
        create_snapshot(&folder, "more", &QuickFs).unwrap();

        // What it may have named stays, what is newer than it goes, and whoever writes is told.
        std::fs::create_dir(folder.join("segments/99-0")).unwrap();
        let deleted =
            delete_selected(&folder, &Selection::Documents(vec!["notes/rye.md".to_owned()]), &QuickFs).unwrap();
        let remark = deleted.remark.unwrap();
        assert!(remark.contains("bad.json") && remark.contains("is kept"), "{remark}");
        let deleted = delete_selected(&folder, &Selection::Documents(vec!["notes/bread.md".to_owned()]), &QuickFs);
        place.compact(Merge::All);
        place.write("more.md", "# More\n\nMore words.\n");
        let notes = place.index().notes;
        assert!(notes.iter().any(|note| note.contains("bad.json")), "{notes:?}");
        for name in ["segments/1-0", "segments/2-0", "deletes/3-1-0"] {
            assert!(folder.join(name).exists(), "{name} may be the snapshot's: {deleted:?}");
        }
        assert!(!folder.join("segments/99-0").exists());
        assert!(!folder.join("manifests/4.json").exists(), "manifests go");

        let diagnosis = doctor(&folder).unwrap();
        let damaged: Vec<_> = diagnosis.checks.iter().filter(|check| check.problem.is_some()).collect();
        assert!(damaged.len() == 1 && damaged[0].name == "snapshots/bad.json", "{diagnosis:?}");
    }
}

#[test]
fn a_damaged_snapshot_can_be_removed_or_set_aside_and_garbage_goes_again() {
    for is_repaired in [false, true] {
        let place = with_damaged_snapshot(Damage::Flip(50));
        let folder = place.collection();
        remove_snapshot(&folder, "good", &QuickFs).unwrap();
        place.compact(Merge::All);
        assert!(folder.join("segments/1-0").exists());
        if is_repaired {
            let report = repaired(&folder, &options(None));
            assert!(report.notes.iter().any(|note| note.contains("snapshot bad was set aside")), "{report:?}");
            assert!(folder.join("quarantine/bad.json").exists() && folder.join("segments/1-0").exists());
        } else {
            let removed = remove_snapshot(&folder, "bad", &QuickFs).unwrap();
            assert!(removed.generation.is_none() && removed.remark.is_none(), "{removed:?}");
            assert!(!folder.join("segments/1-0").exists());
        }
        assert!(!folder.join("snapshots/bad.json").exists() && doctor(&folder).unwrap().is_healthy());
        place.write("more.md", "# More\n\nMore words.\n");
        place.index();
        assert!(!folder.join("segments/1-0").exists(), "with the next commit at the latest");
    }
}

#[test]
fn a_damaged_manifest_that_a_reader_holds_keeps_no_garbage_collection_from_the_rest() {
    let place = notes();
    let reader = place.searcher(); // of generation 2
    Damage::Flip(50).inflict(&place.collection().join("manifests/2.json"));
    for n in 0..3 {
        place.write("rye.md", &format!("# Rye {n}\n\nRye is a grass.\n"));
        let notes = place.index().notes;
        assert!(n == 0 || notes.iter().any(|note| note.contains("2.json")), "{n}: {notes:?}");
    }
    assert!(place.collection().join("segments/2-0").exists(), "the reader has it open");
    drop(reader);
    place.write("rye.md", "# Rye\n");
    let notes = place.index().notes;
    assert!(!notes.iter().any(|note| note.contains("2.json")), "{notes:?}");
    assert!(!place.collection().join("manifests/2.json").exists());
}
