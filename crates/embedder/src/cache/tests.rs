//! A log as a crash may leave it: whatever happened to its end, the frames before are found.

use proptest::prelude::*;

use super::*;

const DIMENSIONS: usize = 5;

fn log(n_frames: usize) -> Vec<u8> {
    let mut log = header(DIMENSIONS).to_vec();
    for i in 0..n_frames {
        log.extend(encode_frame(&key("model", &i.to_string()), i as u32, &vector(i)));
    }
    log
}

fn vector(i: usize) -> Vec<f32> {
    (0..DIMENSIONS).map(|d| (i * DIMENSIONS + d) as f32 / 7.0).collect()
}

/// The first `n_frames` of [`log`] are found, and nothing else.
#[track_caller]
fn check(damaged: &[u8], n_frames: usize) {
    let (frames, n_bytes) = scan(damaged, DIMENSIONS).unwrap();
    assert_eq!(frames.len(), n_frames);
    assert_eq!(n_bytes, HEADER_BYTES + n_frames * frame_bytes(DIMENSIONS));
    for (i, frame) in frames.iter().enumerate() {
        assert_eq!((frame.key, frame.n_tokens), (key("model", &i.to_string()), i as u32));
        assert_eq!(frame.vector(damaged), vector(i));
        assert_eq!(frame.vector_offset % 4, 0);
    }
}

#[test]
fn round_trip() {
    for n_frames in 0..4 {
        check(&log(n_frames), n_frames);
    }
}

#[test]
fn a_log_cut_anywhere_keeps_its_whole_frames() {
    let log = log(3);
    for n_bytes in HEADER_BYTES..log.len() {
        check(&log[..n_bytes], (n_bytes - HEADER_BYTES) / frame_bytes(DIMENSIONS));
    }
    for n_bytes in 0..HEADER_BYTES {
        assert_eq!(scan(&log[..n_bytes], DIMENSIONS).unwrap(), (vec![], 0));
    }
}

#[test]
fn zeros_end_a_log() {
    for n_zeros in [1, 4, 100, 10_000] {
        check(&[log(2), vec![0; n_zeros]].concat(), 2);
        assert_eq!(scan(&vec![0; HEADER_BYTES + n_zeros], DIMENSIONS).unwrap(), (vec![], 0));
    }
}

#[test]
fn a_key_binds_model_and_text() {
    let keys = [key("model", "text"), key("model", "text "), key("mode", "ltext"), key("", "modeltext")];
    for (i, key) in keys.iter().enumerate() {
        assert!(!keys[..i].contains(key));
    }
}

#[test]
fn another_file_is_refused_in_words() {
    #[track_caller]
    fn refused(log: &[u8], dimensions: usize, reason: &str) {
        let message = scan(log, dimensions).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }
    refused(&log(1), DIMENSIONS + 1, "5 dimensions, the model's 6");
    refused(&[b'x'; 100], DIMENSIONS, "not an embedding log");
    let mut newer = log(1);
    newer[8] = 2;
    refused(&newer, DIMENSIONS, "newer Cento");
    let mut damaged = log(1);
    damaged[20] = 1;
    refused(&damaged, DIMENSIONS, "header is damaged");
}

proptest! {
    #[test]
    fn an_altered_byte_ends_the_log_before_its_frame(at in HEADER_BYTES..HEADER_BYTES + 3 * frame_bytes(DIMENSIONS), flip in 1u8..=255) {
        let mut damaged = log(3);
        damaged[at] ^= flip;
        check(&damaged, (at - HEADER_BYTES) / frame_bytes(DIMENSIONS));
    }
}
