//! A log that a collection had of its own is read, whatever happened to it, and is never written.

use cento_embedder::cache::encode_vector;
use xxhash_rust::xxh3::xxh3_64;

use super::*;

const DIMENSIONS: usize = 3;

fn config() -> CollectionConfig {
    CollectionConfig {
        model: "tiny".to_owned(),
        model_fingerprint: "f00d".to_owned(),
        dimensions: DIMENSIONS,
        chunk_tokens: "128".to_owned(),
        chunker_version: 1,
        header: "none".to_owned(),
        language: "english".to_owned(),
        vectors: "f32".to_owned(),
        precision: cento_embedder::Precision::F32,
        pooling: crate::config::Pooling::Plain,
        late: None,
    }
}

fn vector(n: u32) -> Vec<f32> {
    (0..DIMENSIONS).map(|d| n as f32 + d as f32 / 4.0).collect()
}

fn text_key(n: u32) -> Key {
    cache::key("f00d", &n.to_string())
}

/// As the first versions of Cento wrote it.
fn old_log(n_frames: u32) -> Vec<u8> {
    let mut log = b"centoemb\x01\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    log.extend(xxh3_64(&log).to_le_bytes());
    for n in 0..n_frames {
        let mut frame = ((log::frame_bytes(DIMENSIONS) - 4) as u32).to_le_bytes().to_vec();
        frame.extend(text_key(n));
        frame.extend(n.to_le_bytes());
        frame.extend(encode_vector(&vector(n)));
        frame.extend(xxh3_64(&frame).to_le_bytes());
        log.extend(frame);
    }
    log
}

/// Which of the first nine texts are found, and what is said.
fn found(log: &[u8]) -> (Vec<u32>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(OLD_LOG), log).unwrap();
    let mut opened = EmbeddingLog::open(folder.path(), None, &config());
    let is_found = |n: &u32| {
        let found = opened.find(&text_key(*n)).unwrap();
        assert!(found.as_ref().is_none_or(|found| (&found.vector, found.n_tokens) == (&vector(*n), *n)));
        found.is_some()
    };
    let found = (0..9).filter(is_found).collect();
    let embedding = Embedding { vector: vector(8), n_tokens: 8, truncated: false };
    opened.append(&[text_key(8)], &[embedding]).unwrap();
    assert_eq!(std::fs::read(folder.path().join(OLD_LOG)).unwrap(), log, "an old log is not written to");
    (found, opened.finish())
}

#[test]
fn an_old_log_is_read_up_to_a_torn_end() {
    let log = old_log(3);
    for n_bytes in 0..=log.len() {
        let n_whole = n_bytes.saturating_sub(HEADER_BYTES) / log::frame_bytes(DIMENSIONS);
        assert_eq!(found(&log[..n_bytes]), ((0..n_whole as u32).collect(), vec![]), "{n_bytes} bytes");
    }
}

#[test]
fn the_frames_behind_a_damaged_one_are_found() {
    let sound = old_log(3);
    for at in HEADER_BYTES..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        let lost = ((at - HEADER_BYTES) / log::frame_bytes(DIMENSIONS)) as u32;
        assert_eq!(found(&damaged).0, (0..3).filter(|&n| n != lost).collect::<Vec<_>>(), "byte {at}");
    }
}

#[test]
fn another_file_in_its_place_is_said_to_be_one() {
    let (found, notes) = found(&[b'x'; 200]);
    assert!(found.is_empty() && notes[0].contains("no embeddings of Cento"), "{notes:?}");
}

#[test]
fn a_cache_that_cannot_be_written_stops_nothing_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let options = CacheOptions { folder: file.join("cache"), max_bytes: 0 };
    let mut opened = EmbeddingLog::open(folder.path(), Some(&options), &config());
    assert!(opened.find(&text_key(1)).unwrap().is_none());
    let embedding = Embedding { vector: vector(1), n_tokens: 1, truncated: false };
    opened.append(&[text_key(1)], &[embedding]).unwrap();
    let notes = opened.finish();
    assert!(notes[0].contains("file") && notes[0].contains("embedding cache"), "{notes:?}");
}
