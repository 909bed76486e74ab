//! Parts that were indexed elsewhere, adopted by one commit: answers of one run, and nothing lost whatever is wrong.

use std::path::{Path, PathBuf};

use super::random::Random;
use super::volatile::{Fault, VolatileFs};
use super::writers::files;
use super::{Place, QuickFs, answers, copied, index_notes};
use crate::{
    CompactOptions, FilePart, HeaderStyle, IndexOptions, Manifest, Merge, Searcher, SearcherOptions, adopt, delete,
    describe, doctor,
};

const WORDS: [&str; 3] = ["tide of the moon", "bread and 5 grains", "rust"];

fn notes(n_notes: usize) -> Place {
    let place = Place::new();
    for n in 0..n_notes {
        let subject = ["tide", "bread", "iron", "moon", "rust"][n % 5];
        let lines = "It keeps grains, and nothing else is known of it.\n\n".repeat(1 + n % 4);
        place.write(&format!("note{n:02}.md"), &format!("# Of {subject} {n}\n\n{lines}## More\n\n{n} grains.\n"));
    }
    place
}

fn part(text: &str) -> FilePart {
    text.parse().unwrap()
}

/// Indexes a part of the notes into a collection of its own.
fn indexed_part(place: &Place, of: &str) -> PathBuf {
    let folder = place.folder.path().join(format!("part {}", of.replace('/', " of ")));
    let options = IndexOptions { part: Some(part(of)), ..place.options() };
    index_notes(&place.notes(), &folder, &options, &QuickFs).unwrap();
    folder
}

fn answers_at(collection: &Path) -> String {
    answers(&Searcher::open(collection, SearcherOptions::default()).unwrap(), &WORDS)
}

fn compact_all(collection: &Path) {
    let options = CompactOptions { merge: Merge::All, graph_rows_min: 1, ..CompactOptions::default() };
    crate::compact(collection, &options, &QuickFs, &mut |_| {}).unwrap();
}

/// The files of the only segment, without its name.
fn segment_files(collection: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let manifest = Manifest::read(collection).unwrap();
    assert_eq!(manifest.segments.len(), 1);
    files(&collection.join("segments").join(&manifest.segments[0].name)).into_iter().collect()
}

#[test]
fn parts_that_are_adopted_answer_as_one_run_and_compact_to_its_bytes() {
    let place = notes(23);
    place.index();
    let expected = answers(&place.searcher(), &WORDS);
    for n in [1, 2, 4, 7] {
        let parts: Vec<PathBuf> = (1..=n).map(|i| indexed_part(&place, &format!("{i}/{n}"))).collect();
        let whole = place.folder.path().join(format!("whole of {n}"));
        let report = adopt(&whole, &parts, &QuickFs, &mut |_| {}).unwrap();
        assert_eq!((report.generation, report.n_documents, report.n_collections), (1, 23, n), "{report:?}");
        assert_eq!(answers_at(&whole), expected, "{n} parts");
        assert!(doctor(&whole).unwrap().is_healthy());
        let manifests = [&whole, &place.collection()].map(|folder| Manifest::read(folder).unwrap());
        let figures = manifests.each_ref().map(|manifest| manifest.calibration.clone().map(|known| known.figures()));
        assert_eq!(figures[0], figures[1]);
        assert_eq!(manifests[0].roots, manifests[1].roots);
        compact_all(&whole);
        assert!(segment_files(&whole) == segment_files(&place.collection()), "{n} parts");
        let again = index_notes(&place.notes(), &whole, &place.options(), &QuickFs).unwrap();
        assert_eq!((again.n_unchanged, again.n_tokens_embedded), (23, 0));
    }
}

#[test]
fn parts_cover_every_file_once_and_a_part_may_be_empty() {
    let place = notes(3);
    let parts: Vec<PathBuf> = (1..=9).map(|i| indexed_part(&place, &format!("{i}/9"))).collect();
    let counts: Vec<u64> = parts.iter().map(|part| doctor(part).unwrap().segments.len() as u64).collect();
    assert_eq!(counts.iter().sum::<u64>(), 3, "{counts:?}");
    let whole = place.folder.path().join("whole");
    let report = adopt(&whole, &parts, &QuickFs, &mut |_| {}).unwrap();
    assert_eq!((report.n_documents, report.n_adopted, report.n_segments), (3, 3, 3));
}

#[test]
fn a_part_leaves_the_documents_of_other_parts_alone() {
    let place = notes(8);
    for of in ["1/3", "2/3", "3/3", "1/3"] {
        place.index_with(&IndexOptions { part: Some(part(of)), ..place.options() }, &QuickFs).unwrap();
    }
    let expected = notes(8);
    expected.index();
    assert_eq!(answers(&place.searcher(), &WORDS), answers(&expected.searcher(), &WORDS));
    place.write("note00.md", "# Of stars\n\nStars are born.\n");
    let last = place.index_with(&IndexOptions { part: Some(part("3/3")), ..place.options() }, &QuickFs).unwrap();
    assert_eq!((last.n_changed, last.n_removed), (0, 0));
    for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2", "1/2000000"] {
        assert!(wrong.parse::<FilePart>().is_err(), "{wrong}");
    }
}

#[test]
fn what_was_deleted_in_a_part_stays_dead() {
    let place = notes(8);
    let parts = [indexed_part(&place, "1/2"), indexed_part(&place, "2/2")];
    delete(&parts[0], &["notes/note01.md".to_owned()], &QuickFs).unwrap();
    let whole = place.folder.path().join("whole");
    adopt(&whole, &parts, &QuickFs, &mut |_| {}).unwrap();
    place.remove("note01.md");
    place.index();
    assert_eq!(answers_at(&whole), answers(&place.searcher(), &WORDS));
    assert!(doctor(&whole).unwrap().is_healthy());
}

/// Adopts and expects these words of refusal; the collection, if there was one, is as it was.
#[track_caller]
fn refused(whole: &Path, parts: &[PathBuf], words: &[&str]) {
    let before = whole.exists().then(|| files(whole));
    let error = crate::Error::from(adopt(whole, parts, &QuickFs, &mut |_| {}).unwrap_err());
    let said = describe(&error);
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    let is_mine = |path: &&PathBuf| !path.ends_with("LOCK");
    match before {
        Some(before) => {
            let after = files(whole);
            let [before, after] = [&before, &after].map(|files| files.iter().filter(|(path, _)| is_mine(path)));
            assert!(before.eq(after), "{said}");
        }
        None => assert!(!whole.join("manifest.json").exists()),
    }
}

#[test]
fn a_part_that_is_there_already_or_is_of_another_kind_is_refused_by_name() {
    let place = notes(9);
    let [one, two] = ["1/2", "2/2"].map(|of| indexed_part(&place, of));
    let [fresh, whole] = ["fresh", "whole"].map(|name| place.folder.path().join(name));
    refused(&fresh, &[], &["at least one"]);
    refused(&fresh, &[one.clone(), one.clone()], &["part 1 of 2", "already"]);
    adopt(&whole, &[one.clone()], &QuickFs, &mut |_| {}).unwrap();
    refused(&whole, &[two.clone(), one.clone()], &["part 1 of 2", "whole", "already"]);
    refused(&whole, &[whole.clone()], &["already"]);
    let copy = copied(&one);
    compact_all(copy.path());
    refused(&whole, &[copy.path().to_owned()], &["already"]); // by content, not by name or bytes
    let changed = notes(9);
    changed.write("note00.md", "# Of stars\n\nStars are born.\n");
    changed.index();
    refused(&whole, &[changed.collection()], &["notes/note00.md", "whole", "delete it"]);
    let other = notes(2);
    other.index_with(&IndexOptions { header: Some(HeaderStyle::None), ..other.options() }, &QuickFs).unwrap();
    refused(&whole, &[two.clone(), other.collection()], &["header", "none", "structured"]);
    refused(&whole, &[place.folder.path().join("nowhere")], &["nowhere", "no collection"]);
    adopt(&whole, &[two], &QuickFs, &mut |_| {}).unwrap();
    place.index();
    assert_eq!(answers_at(&whole), answers(&place.searcher(), &WORDS));
}

#[test]
fn a_part_that_is_damaged_or_half_there_is_refused_and_nothing_of_it_stays() {
    let place = notes(6);
    let [one, two] = ["1/2", "2/2"].map(|of| indexed_part(&place, of));
    let whole = place.folder.path().join("whole");
    adopt(&whole, &[one], &QuickFs, &mut |_| {}).unwrap();
    let segment = Manifest::read(&two).unwrap().segments[0].name.clone();
    for (name, bytes) in files(&two.join("segments").join(&segment)) {
        for damage in ["cut", "flipped", "gone"] {
            let copy = copied(&two);
            let path = copy.path().join("segments").join(&segment).join(&name);
            match damage {
                "cut" => std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap(),
                "gone" => std::fs::remove_file(&path).unwrap(),
                _ => {
                    let mut flipped = bytes.clone();
                    let middle = flipped.len() / 2;
                    flipped[middle] ^= 1;
                    std::fs::write(&path, flipped).unwrap();
                }
            }
            // A graph and links may be left out, and of positions in texts there are none.
            let is_optional = [Path::new("hnsw.graph"), Path::new("links.table")].contains(&&*name)
                || name.extension().is_some_and(|extension| extension == "pos");
            let without = damage == "gone" && is_optional;
            if !without {
                refused(&whole, &[copy.path().to_owned()], &[copy.path().to_str().unwrap()]);
            }
        }
    }
    let copy = copied(&two);
    let path = copy.path().join("manifest.json");
    let newer = std::fs::read_to_string(&path).unwrap().replace("\"format\": 2", "\"format\": 3");
    std::fs::write(&path, newer).unwrap();
    refused(&whole, &[copy.path().to_owned()], &["format 3 is newer"]);
    std::fs::remove_file(&path).unwrap();
    refused(&whole, &[copy.path().to_owned()], &["no collection"]);
}

#[test]
fn whatever_a_power_loss_forgets_of_an_adoption_it_is_whole_or_has_not_been() {
    let place = notes(6);
    let [one, two] = ["1/2", "2/2"].map(|of| indexed_part(&place, of));
    let disk = place.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let whole = disk.join("whole");
    let fs = VolatileFs::new(&disk, Fault::None);
    adopt(&whole, &[one.clone()], &fs, &mut |_| {}).unwrap();
    let (n_first, first) = (fs.n_operations(), answers_at(&whole));
    adopt(&whole, &[two.clone()], &fs, &mut |_| {}).unwrap();
    let both = answers_at(&whole);
    let mut n_both = 0;
    for n_operations in 0..=fs.n_operations() {
        let when = format!("power lost after {n_operations} operations");
        let after = tempfile::tempdir().unwrap();
        fs.crash(n_operations, &mut Random::new(n_operations as u64), after.path());
        let whole = after.path().join("whole");
        if !whole.join("manifest.json").exists() {
            assert!(n_operations < n_first, "{when}");
            continue;
        }
        let found = answers_at(&whole);
        assert!(found == both || found == first && n_operations < fs.n_operations(), "{when}");
        assert!(doctor(&whole).unwrap().is_healthy(), "{when}");
        n_both += usize::from(found == both);
        if found == first {
            adopt(&whole, &[two.clone()], &QuickFs, &mut |_| {}).unwrap();
            assert_eq!(answers_at(&whole), both, "{when}: the next one does it");
        }
    }
    assert!(n_both > 0);
}

#[test]
fn whatever_operation_of_an_adoption_fails_it_is_whole_or_has_not_been_and_leaves_no_room_taken() {
    let place = notes(6);
    let [one, two] = ["1/2", "2/2"].map(|of| indexed_part(&place, of));
    let before = place.folder.path().join("disk");
    std::fs::create_dir(&before).unwrap();
    adopt(&before.join("whole"), &[one], &QuickFs, &mut |_| {}).unwrap();
    let first = answers_at(&before.join("whole"));
    let mut n_failed = 0;
    for kind in [Fault::Io, Fault::Full] {
        for at in 0.. {
            let when = format!("{:?}", kind(at));
            let disk = copied(&before);
            let whole = disk.path().join("whole");
            let fs = VolatileFs::new(disk.path(), kind(at));
            let ended = adopt(&whole, &[two.clone()], &fs, &mut |_| {});
            assert!(doctor(&whole).unwrap().is_healthy(), "{when}");
            if let Err(error) = ended {
                assert!(describe(&error).contains(disk.path().to_str().unwrap()), "{when}: {error}");
                n_failed += 1;
                if answers_at(&whole) == first {
                    adopt(&whole, &[two.clone()], &QuickFs, &mut |_| {}).unwrap();
                }
            }
            assert_ne!(answers_at(&whole), first, "{when}");
            assert_eq!(std::fs::read_dir(whole.join("segments")).unwrap().count(), 2, "{when}");
            if at >= fs.n_begun() {
                break;
            }
        }
    }
    assert!(n_failed > 60, "{n_failed}");
}
