//! Two runs, a crash, a flipped byte, a limit: what was kept is found, or is not found, and is never another vector.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cento_collection::fs::Fs;
use cento_collection::testing::random::Random;
use cento_collection::testing::volatile::{Fault, VolatileFs};
use cento_embedder::cache::{ENTRY_BYTES, HEADER_BYTES, key, text_bytes};

use super::*;

const DIMENSIONS: usize = 4;
const FINGERPRINT: &str = "f00d";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn options(&self) -> CacheOptions {
        CacheOptions { folder: self.folder.path().join("cache"), max_bytes: u64::MAX }
    }

    fn open(&self, fingerprint: &str) -> CachedEmbeddings {
        CachedEmbeddings::open(&self.options(), file("tiny", fingerprint)).unwrap()
    }

    /// A run that keeps these texts; all of them in one segment.
    fn keep(&self, texts: std::ops::Range<u32>) {
        let mut cache = self.open(FINGERPRINT);
        append(&mut cache, texts);
        cache.finish().unwrap();
    }

    /// Which of the first `n` texts are found; a vector that is found is the one that was kept.
    fn found(&self, n: u32) -> Vec<u32> {
        let mut cache = self.open(FINGERPRINT);
        (0..n).filter(|&text| is_found(&mut cache, text)).collect()
    }

    fn segments(&self) -> Vec<PathBuf> {
        segment::list(&self.folder.path().join(format!("cache/{FINGERPRINT}-{DIMENSIONS}-a-machine"))).unwrap()
    }

    fn prune(&self, request: &CachePrune) -> CachePruned {
        prune(&self.options(), request).unwrap()
    }
}

fn file(model: &str, fingerprint: &str) -> ModelFile {
    let (model, fingerprint, arithmetic) = (model.to_owned(), fingerprint.to_owned(), "a machine".to_owned());
    ModelFile { model, fingerprint, dimensions: DIMENSIONS, arithmetic, probes: None }
}

fn text_key(text: u32) -> cento_embedder::cache::Key {
    key(FINGERPRINT, &text.to_string())
}

fn vector(text: u32) -> Vec<f32> {
    (0..DIMENSIONS).map(|d| (text as usize * DIMENSIONS + d) as f32 / 7.0).collect()
}

fn append(cache: &mut CachedEmbeddings, texts: std::ops::Range<u32>) {
    let new: Vec<_> = texts.map(|text| (text_key(text), text, vector(text))).collect();
    cache.append(new.iter().map(|(key, n_tokens, vector)| (key, *n_tokens, &vector[..]))).unwrap();
}

fn is_found(cache: &mut CachedEmbeddings, text: u32) -> bool {
    let Some(found) = cache.find(&text_key(text)) else { return false };
    assert_eq!(found, (vector(text), text), "another vector than was kept");
    true
}

fn ago(hours: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(3600 * hours)
}

fn set_last_use(segment: &Path, time: SystemTime) {
    Segment::open(segment, DIMENSIONS).unwrap().unwrap().set_last_use(time).unwrap();
}

use super::segment::Segment;

#[test]
fn what_one_run_keeps_the_next_finds_and_so_does_the_run_itself() {
    let place = Place::new();
    assert_eq!(place.found(3), [] as [u32; 0]);
    let mut cache = place.open(FINGERPRINT);
    append(&mut cache, 0..2);
    append(&mut cache, 5..6);
    assert!(is_found(&mut cache, 1) && is_found(&mut cache, 5) && !is_found(&mut cache, 2));
    cache.finish().unwrap();
    assert_eq!(place.found(9), [0, 1, 5]);
    assert_eq!(place.open("beef").find(&text_key(0)), None, "another model finds nothing");
    assert!(place.segments().len() == 1, "a run that keeps nothing makes no segment");
}

#[test]
fn a_run_that_is_killed_keeps_what_it_had_and_a_torn_end_is_passed_over() {
    let place = Place::new();
    let mut cache = place.open(FINGERPRINT);
    append(&mut cache, 0..3);
    drop(cache); // no finish
    let segment = &place.segments()[0];
    let [keys, vectors] = ["keys", "vectors"].map(|name| fs::read(segment.join(name)).unwrap());
    for n_keys in 0..=keys.len() {
        fs::write(segment.join("keys"), &keys[..n_keys]).unwrap();
        let n_whole = n_keys.saturating_sub(HEADER_BYTES) / ENTRY_BYTES;
        assert_eq!(place.found(4).len(), n_whole, "{n_keys} bytes of the keys");
    }
    for n_vectors in 0..=vectors.len() {
        fs::write(segment.join("vectors"), &vectors[..n_vectors]).unwrap();
        assert_eq!(place.found(4).len(), n_vectors / (4 * DIMENSIONS), "{n_vectors} bytes of the vectors");
    }
}

#[test]
fn a_flipped_byte_loses_its_own_text_and_no_other() {
    let place = Place::new();
    place.keep(0..3);
    let segment = place.segments()[0].clone();
    for name in ["keys", "vectors"] {
        let path = segment.join(name);
        let sound = fs::read(&path).unwrap();
        let (start, each) = if name == "keys" { (HEADER_BYTES, ENTRY_BYTES) } else { (0, 4 * DIMENSIONS) };
        for at in start..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).unwrap();
            let lost = ((at - start) / each) as u32;
            let found = place.found(3);
            let expected: Vec<u32> = (0..3).filter(|&text| text != lost).collect();
            let is_padding = name == "keys" && (36..40).contains(&((at - start) % each));
            assert!(found == expected || is_padding && found == [0, 1, 2], "{name}, byte {at}: {found:?}");
        }
        fs::write(&path, &sound).unwrap();
    }
    let mut keys = fs::read(segment.join("keys")).unwrap();
    keys[3] ^= 1;
    fs::write(segment.join("keys"), keys).unwrap();
    let cache = place.open(FINGERPRINT);
    assert!(cache.refused[0].contains("no embeddings of Cento"), "{:?}", cache.refused);
    place.prune(&CachePrune::default());
    assert!(place.segments().is_empty(), "a segment without a header is of no use");
}

#[test]
fn a_vector_that_was_damaged_is_kept_anew_and_prune_drops_the_old_one() {
    let place = Place::new();
    place.keep(0..3);
    let path = place.segments()[0].join("vectors");
    let mut vectors = fs::read(&path).unwrap();
    vectors[4 * DIMENSIONS] ^= 1;
    fs::write(&path, vectors).unwrap();
    assert_eq!(place.found(3), [0, 2]);
    place.keep(1..2);
    place.keep(2..3);
    assert_eq!(place.found(3), [0, 1, 2]);
    let counted = place.prune(&CachePrune { dry_run: true, ..CachePrune::default() });
    assert_eq!((counted.n_damaged, counted.n_twice, place.segments().len()), (1, 1, 3));
    let pruned = place.prune(&CachePrune::default());
    assert_eq!((pruned.n_damaged, pruned.n_twice, pruned.n_removed, pruned.n_busy), (1, 1, 0, 0));
    assert_eq!(pruned.n_bytes_before - pruned.n_bytes_after, 2 * text_bytes(DIMENSIONS) as u64);
    assert_eq!((place.found(3), place.segments().len()), (vec![0, 1, 2], 1));
    assert_eq!(place.prune(&CachePrune::default()).n_damaged, 0);
}

#[test]
fn two_runs_at_once_both_keep_and_are_both_left_alone_by_prune() {
    let place = Place::new();
    let (mut one, mut two) = (place.open(FINGERPRINT), place.open(FINGERPRINT));
    append(&mut one, 0..2);
    append(&mut two, 1..4);
    append(&mut one, 6..7);
    let all = CachePrune { all: true, ..CachePrune::default() };
    let pruned = place.prune(&all);
    assert_eq!((pruned.n_removed, pruned.n_busy, place.segments().len()), (0, 2, 2));
    assert!(is_found(&mut one, 6) && is_found(&mut two, 3) && !is_found(&mut two, 6));
    one.finish().unwrap();
    two.finish().unwrap();
    assert_eq!(place.found(9), [0, 1, 2, 3, 6]);
    assert_eq!(place.prune(&all).n_removed, 6);
    assert_eq!(place.found(9), [] as [u32; 0]);
    assert!(status(&place.options()).unwrap().models.is_empty());
}

#[test]
fn a_reader_whose_segments_are_pruned_meanwhile_reads_on() {
    let place = Place::new();
    place.keep(0..3);
    let mut reader = place.open(FINGERPRINT);
    place.prune(&CachePrune { all: true, ..CachePrune::default() });
    assert!(is_found(&mut reader, 2));
    append(&mut reader, 3..4);
    reader.finish().unwrap();
    assert_eq!(place.found(9), [3]);
}

#[test]
fn the_limit_removes_what_was_used_longest_ago() {
    let place = Place::new();
    for text in 0..4 {
        place.keep(text..text + 1);
    }
    for (hours, segment) in [1, 4, 2, 3].into_iter().zip(place.segments()) {
        set_last_use(&segment, ago(hours));
    }
    let bytes = |n: u64| n * (HEADER_BYTES + text_bytes(DIMENSIONS)) as u64;
    let dry = CachePrune { max_bytes: Some(bytes(3)), dry_run: true, ..CachePrune::default() };
    assert_eq!((place.prune(&dry).n_removed, place.prune(&dry).n_bytes_after), (1, bytes(3)));
    assert_eq!(place.found(4), [0, 1, 2, 3]);
    // The third is used now; the run that used it wrote something, so the limit holds after it.
    let options = CacheOptions { max_bytes: bytes(3), ..place.options() };
    let mut cache = CachedEmbeddings::open(&options, file("tiny", FINGERPRINT)).unwrap();
    assert!(is_found(&mut cache, 3));
    append(&mut cache, 4..5);
    cache.finish().unwrap();
    assert_eq!(place.found(9), [0, 3, 4]);
    let status = status(&options).unwrap();
    let model = &status.models[0];
    assert_eq!((status.n_bytes, model.n_embeddings, model.n_segments), (bytes(3), 3, 3));
    assert_eq!((model.model.as_str(), model.fingerprint.as_str(), model.dimensions), ("tiny", FINGERPRINT, DIMENSIONS));
    assert!(SystemTime::UNIX_EPOCH + Duration::from_secs(model.last_use_seconds) > ago(1));
}

#[test]
fn many_small_segments_become_one() {
    let place = Place::new();
    for text in 0..40 {
        place.keep(text..text + 1);
        assert!(place.segments().len() <= 17);
    }
    assert_eq!(place.found(41), (0..40).collect::<Vec<_>>());
}

#[test]
fn prune_takes_a_name_or_the_beginning_of_a_fingerprint() {
    let place = Place::new();
    place.keep(0..1);
    let mut other = CachedEmbeddings::open(&place.options(), file("other", "beef01")).unwrap();
    append(&mut other, 0..5);
    other.finish().unwrap();
    let only = |model: &str| CachePrune { all: true, model: Some(model.to_owned()), ..CachePrune::default() };
    let message = prune(&place.options(), &only("minilm")).unwrap_err().to_string();
    assert!(message.contains("minilm") && message.contains("tiny") && message.contains("other"), "{message}");
    assert_eq!(place.prune(&only("beef")).n_removed, 5);
    assert_eq!(place.found(2), [0]);
    assert_eq!(place.prune(&only("tiny")).n_removed, 1);
}

#[test]
fn what_a_crash_leaves_of_a_prune_or_of_a_new_segment_is_swept_away() {
    let place = Place::new();
    place.keep(0..2);
    let segment = place.segments()[0].clone();
    fs::rename(&segment, segment.with_extension("gone")).unwrap();
    let folder = segment.parent().unwrap();
    drop(segment::SegmentWriter::begin(folder, DIMENSIONS).unwrap());
    let living = segment::SegmentWriter::begin(folder, DIMENSIONS).unwrap();
    assert_eq!(place.found(2), [] as [u32; 0]);
    place.keep(5..6);
    let left = segment::entries(folder).unwrap();
    let extensions: Vec<_> = left.iter().filter_map(|path| path.extension()).collect();
    assert_eq!(extensions, ["new", "json"], "the one that is being made stays: {left:?}");
    living.publish().unwrap();
    assert_eq!(place.found(9), [5]);
}

#[test]
fn a_segment_that_has_its_name_outlives_a_power_loss() {
    let disk = tempfile::tempdir().unwrap();
    let volatile = VolatileFs::new(disk.path(), Fault::None);
    let path = disk.path().join("1");
    let files = ["keys", "vectors"];
    volatile.create_dir(&path.with_extension("new")).unwrap();
    for name in files {
        let mut file = volatile.create(&path.with_extension("new").join(name)).unwrap();
        file.write_all(name.as_bytes()).unwrap();
        file.sync().unwrap();
    }
    segment::publish(&volatile, &path).unwrap();
    for seed in 0..16 {
        let after = tempfile::tempdir().unwrap();
        volatile.crash(volatile.n_operations(), &mut Random::new(seed), after.path());
        for name in files {
            let kept = fs::read(after.path().join("1").join(name));
            assert_eq!(kept.ok().as_deref(), Some(name.as_bytes()), "seed {seed}: {name}");
        }
    }
}

#[test]
fn a_machine_that_computes_otherwise_finds_its_own_vectors_alone() {
    let place = Place::new();
    place.keep(0..3);
    let other = ModelFile { arithmetic: "another machine".to_owned(), ..file("tiny", FINGERPRINT) };
    let mut cache = CachedEmbeddings::open(&place.options(), other).unwrap();
    assert!((0..3).all(|text| !is_found(&mut cache, text)));
    append(&mut cache, 2..4);
    cache.finish().unwrap();
    assert_eq!(place.found(4), [0, 1, 2]);
    let arithmetics: Vec<String> =
        status(&place.options()).unwrap().models.into_iter().map(|model| model.arithmetic).collect();
    assert_eq!(arithmetics, ["a machine", "another machine"]);
}

#[test]
fn what_a_version_kept_that_did_not_tell_its_machine_is_listed_and_found_by_nobody() {
    let place = Place::new();
    place.keep(0..3);
    let (kept, before) = (place.segments(), place.options().folder.join(format!("{FINGERPRINT}-{DIMENSIONS}")));
    std::fs::rename(kept[0].parent().unwrap(), &before).unwrap();
    let json = format!("{{\"model\": \"tiny\", \"fingerprint\": \"{FINGERPRINT}\", \"dimensions\": {DIMENSIONS}}}");
    std::fs::write(before.join(ModelFile::NAME), json).unwrap();
    assert_eq!(place.found(3), [] as [u32; 0]);
    let models = status(&place.options()).unwrap().models;
    assert_eq!((models.len(), models[0].n_embeddings, models[0].arithmetic.as_str()), (1, 3, ""));
    assert_eq!(place.prune(&CachePrune { all: true, ..CachePrune::default() }).n_removed, 3);
}
