//! Crashes, full disks and failing ones, at every operation of every way to write: one generation or the next answers,
//! whole, with everything that was acknowledged, and the next run mends what was cut short.

use std::path::Path;

use super::random::Random;
use super::volatile::{Fault, VolatileFs};
use super::{Place, QuickFs, answers, copied, index_notes};
use crate::config::SEGMENT_ROWS_MAX;
use crate::{
    At, CacheOptions, CompactOptions, Fs, IndexOptions, Merge, Result, create_snapshot, delete, describe, doctor,
    remove_snapshot,
};
use cento_collection::format::manifest::Manifest;
use cento_collection::keep::generation::Generation;
use cento_collection::keep::snapshots::generations;
use cento_embedder::lose_gpus_after;

/// Ways to write to a collection, each on what the ones before it left.
const STEPS: [Step; 8] = [
    Step::Index(&[("tides.md", TIDES), ("bread.md", BREAD)]),
    Step::Index(&[
        ("bread.md", "# Bread\n\nBread is rye and water.\n"),
        ("tides.md", ""),
        ("cheese.md", "# Cheese\n\nCheese is milk.\n"),
    ]),
    Step::Snapshot("kept"),
    Step::Delete("notes/cheese.md"),
    Step::Index(&[("cheese.md", "# Cheese\n\nCheese is milk.\n"), ("iron.md", "# Iron\n\nIron rusts in the sea.\n")]),
    Step::Compact,
    Step::Delete("notes/iron.md"),
    Step::RemoveSnapshot("kept"),
];

const TIDES: &str = "# Tides\n\nThe moon pulls the sea.\n";
const BREAD: &str = "# Bread\n\nBread is flour and water.\n";

/// Something that is done to a collection.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Writes these notes (an empty one goes) and indexes all.
    Index(&'static [(&'static str, &'static str)]),
    Delete(&'static str),
    Compact,
    Snapshot(&'static str),
    RemoveSnapshot(&'static str),
}

impl Step {
    fn prepare(self, place: &Place) {
        let Self::Index(notes) = self else { return };
        for (name, text) in notes {
            if text.is_empty() { place.remove(name) } else { place.write(name, text) }
        }
    }

    fn take(self, place: &Place, rows_max: usize, collection: &Path, fs: &dyn Fs) -> Result<()> {
        match self {
            Self::Index(_) => index_notes(&place.notes(), collection, &options(place, rows_max), fs).map(drop),
            Self::Delete(id) => delete(collection, &[id.to_owned()], fs).map(drop),
            Self::Compact => {
                let merge = Merge::All;
                let options = CompactOptions {
                    merge,
                    graph_rows_min: 1,
                    segment_rows_max: rows_max,
                    ..CompactOptions::default()
                };
                crate::compact(collection, &options, fs, &mut |_| {}).map(drop)
            }
            Self::Snapshot(name) => Ok(create_snapshot(collection, name, fs).map(drop)?),
            Self::RemoveSnapshot(name) => Ok(remove_snapshot(collection, name, fs).map(drop)?),
        }
    }
}

fn options(place: &Place, rows_max: usize) -> IndexOptions {
    IndexOptions { segment_rows_max: rows_max, ..place.options() }
}

/// All that answers: each chunk with its text and its vector, and the snapshots, each of which must open. Nothing where
/// there is no collection.
fn content(collection: &Path) -> Vec<String> {
    let chunks = |at: &At| {
        let snapshot = Generation::open_at(collection, at).unwrap();
        let mut chunks = Vec::new();
        for segment in &snapshot.segments {
            for row in 0..segment.chunks.len() as u32 {
                let chunk = segment.chunks.record(row as usize).unwrap();
                if segment.deleted.contains(chunk.document) {
                    continue;
                }
                let document = segment.document(chunk.document).unwrap();
                let text = segment.text(&document, chunk.start..chunk.end).unwrap();
                let vector = segment.columns[0].rows.row(row).unwrap();
                chunks.push(format!("{} {text:?} {vector:?}", segment.document_id(chunk.document).unwrap()));
            }
        }
        chunks.sort();
        chunks
    };
    if !collection.join("manifest.json").exists() {
        return Vec::new();
    }
    let mut content = chunks(&At::Current);
    let current = Manifest::read(collection).unwrap();
    for generation in generations(collection, &current).unwrap() {
        chunks(&At::Generation(generation)); // whatever can be asked for can be opened
    }
    for snapshot in crate::snapshots(collection).unwrap() {
        content.push(format!("snapshot {} has {:?}", snapshot.name, chunks(&At::Snapshot(snapshot.name.clone()))));
    }
    content
}

fn check_health(collection: &Path, when: &str) {
    if collection.join("manifest.json").exists() {
        let diagnosis = doctor(collection).unwrap();
        assert!(diagnosis.is_healthy(), "{when}: {diagnosis:?}");
    }
}

/// Seeds for one crash point; more with an environment variable.
fn n_seeds() -> u64 {
    std::env::var("CENTO_CRASH_SEEDS").map_or(2, |seeds| seeds.parse().expect("CENTO_CRASH_SEEDS is a number"))
}

#[test]
fn whatever_a_power_loss_forgets_a_generation_answers_whole() {
    check_power_losses(SEGMENT_ROWS_MAX);
}

#[test]
fn whatever_a_power_loss_forgets_of_a_run_with_several_segments_a_generation_answers_whole() {
    check_power_losses(1);
    check_power_losses(2);
}

fn check_power_losses(rows_max: usize) {
    let place = Place::new();
    let root = place.folder.path().join("disk");
    std::fs::create_dir(&root).unwrap();
    let collection = root.join("collection");
    let fs = VolatileFs::new(&root, Fault::None);
    let (mut contents, mut acknowledged) = (vec![content(&collection)], vec![0]);
    for step in STEPS {
        step.prepare(&place);
        step.take(&place, rows_max, &collection, &fs).unwrap();
        contents.push(content(&collection));
        acknowledged.push(fs.n_operations());
    }
    let (mut n_points, mut n_old, mut n_new) = (0, 0, 0);
    for n_operations in 0..=fs.n_operations() {
        let n_acknowledged = acknowledged.partition_point(|acknowledged| *acknowledged <= n_operations);
        for seed in 0..n_seeds() {
            let when = format!("power lost after {n_operations} operations, {n_acknowledged} steps, seed {seed}");
            let after = tempfile::tempdir().unwrap();
            let mut random = Random::new(seed << 32 | n_operations as u64);
            fs.crash(n_operations, &mut random, after.path());
            let collection = after.path().join("collection");
            let found = content(&collection);
            let old = &contents[n_acknowledged - 1];
            match contents.get(n_acknowledged) {
                _ if found == *old => n_old += 1,
                Some(new) if found == *new => n_new += 1,
                _ => panic!("{when}: neither generation answers: {found:?}"),
            }
            check_health(&collection, &when);
            if seed == 0 {
                index_notes(&place.notes(), &collection, &options(&place, rows_max), &QuickFs)
                    .unwrap_or_else(|error| panic!("{when}: the next run failed: {}", describe(&error)));
                let chunks = content(&collection);
                let chunks = chunks.iter().filter(|line| !line.starts_with("snapshot"));
                assert_eq!(chunks.count(), 3, "{when}: the next run mends it");
                check_health(&collection, &when);
            }
            n_points += 1;
        }
    }
    println!(
        "{n_points} power losses over {} operations, {rows_max} rows a segment: {n_old} left the old generation, {n_new} the new",
        fs.n_operations()
    );
    assert!(n_new > 10 && n_old > n_points / 2);
}

#[test]
fn whatever_operation_fails_a_generation_answers_whole_and_the_next_run_mends_it() {
    check_faults(SEGMENT_ROWS_MAX);
}

#[test]
fn whatever_operation_of_a_run_with_several_segments_fails_a_generation_answers_whole_and_the_next_run_mends_it() {
    check_faults(1);
}

fn check_faults(rows_max: usize) {
    let place = Place::new();
    let base = place.folder.path().join("disk");
    std::fs::create_dir(&base).unwrap();
    let fs = VolatileFs::new(&base, Fault::None);
    let (mut n_faults, mut n_failed, mut n_new) = (0, 0, 0);
    for step in STEPS {
        step.prepare(&place);
        let before = content(&base.join("collection"));
        let state = copied(&base);
        step.take(&place, rows_max, &base.join("collection"), &fs).unwrap();
        let after = content(&base.join("collection"));
        for kind in [Fault::Io, Fault::Full] {
            for at in 0.. {
                let when = format!("{step:?}, {:?}", kind(at));
                let disk = copied(state.path());
                let collection = disk.path().join("collection");
                let failing = VolatileFs::new(disk.path(), kind(at));
                let ended = step.take(&place, rows_max, &collection, &failing);
                let found = content(&collection);
                assert!(found == before && ended.is_err() || found == after, "{when}: {ended:?}, {found:?}");
                check_health(&collection, &when);
                if let Err(error) = &ended {
                    let disk = disk.path().to_str().unwrap();
                    assert!(describe(error).contains(disk), "{when}: the message names the file: {error}");
                    (n_failed, n_new) = (n_failed + 1, n_new + usize::from(found == after));
                    if found == before {
                        step.take(&place, rows_max, &collection, &QuickFs).unwrap();
                    }
                    assert_eq!(content(&collection), after, "{when}: the next run mends it");
                    check_health(&collection, &when);
                }
                if at >= failing.n_begun() {
                    break; // nothing was left to fail
                }
                n_faults += 1;
            }
        }
    }
    println!("{n_faults} faults: {n_failed} commands failed, {n_new} of them after their commit");
    assert!(n_failed > 400, "{n_failed}");
}

#[test]
fn a_collection_in_new_folders_survives_a_power_loss_once_it_is_acknowledged() {
    let place = Place::new();
    place.write("tides.md", TIDES);
    let root = place.folder.path().join("disk");
    std::fs::create_dir(&root).unwrap();
    let collection = root.join("of/many/parents/collection");
    let fs = VolatileFs::new(&root, Fault::None);
    index_notes(&place.notes(), &collection, &place.options(), &fs).unwrap();
    let acknowledged = content(&collection);
    for seed in 0..50 {
        let after = tempfile::tempdir().unwrap();
        fs.crash(fs.n_operations(), &mut Random::new(seed), after.path());
        assert_eq!(content(&after.path().join("of/many/parents/collection")), acknowledged, "seed {seed}");
    }
}

/// A device that is lost costs what it was computing; what it had embedded is there for the next run, and another
/// device makes the collection that it would have made.
#[test]
fn a_gpu_lost_in_mid_run_loses_nothing_and_another_device_goes_on() {
    if cento_embedder::devices().unwrap().adapters.is_empty() {
        eprintln!("skipped: no Vulkan or Metal driver offers an adapter (Debian: libvulkan1, mesa-vulkan-drivers)");
        return;
    }
    let n_notes = 700; // two calls of the encoder
    let place = || {
        let place = Place::new();
        let word = |n: u64| ["tide", "bread", "iron", "moon", "rye"][n as usize % 5];
        let text = |n: u64| format!("{} {} {} {n}\n", word(n), word(n / 5), word(n / 25));
        (0..n_notes).for_each(|n| place.write(&format!("{n:03}.txt"), &text(n)));
        place
    };
    let (lost, whole, again) = (place(), place(), place());
    let on = |place: &Place, device: &str| {
        let cache = Some(CacheOptions { folder: lost.folder.path().join("cache"), max_bytes: 1 << 30 });
        place.index_with(&IndexOptions { cache, device: device.parse().unwrap(), ..place.options() }, &QuickFs)
    };
    let checked = Place::new(); // the first check of the device takes submissions too, unless it is remembered
    checked.write("tides.txt", "The moon pulls the sea.\n");
    on(&checked, "gpu:0").unwrap();
    std::fs::remove_dir_all(lost.folder.path().join("cache")).unwrap();
    let kept = (1..100).find_map(|n_submissions| {
        lose_gpus_after(Some(n_submissions));
        let error = format!("{:?}", on(&lost, "gpu:0").unwrap_err());
        assert!(error.contains("was lost") && error.contains("what was embedded before is kept"), "{error}");
        lose_gpus_after(None);
        lost.folder.path().join("cache").exists().then(|| on(&again, "gpu:0").unwrap().n_from_log)
    });
    assert!(kept.is_some_and(|n| n > 0 && n < n_notes), "{kept:?} of {n_notes}");
    assert_eq!(on(&lost, "cpu").unwrap().n_added, n_notes);
    assert_eq!(whole.index().n_added, n_notes);
    let words = ["tide", "bread by the moon", "rye 17"];
    assert_eq!(answers(&lost.searcher(), &words), answers(&whole.searcher(), &words));
}
