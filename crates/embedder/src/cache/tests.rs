//! What is kept is found again as it was; what is not as it was is not found.

use proptest::prelude::*;

use super::*;

const DIMENSIONS: usize = 5;

fn vector(n: usize) -> Vec<f32> {
    (0..DIMENSIONS).map(|d| (n * DIMENSIONS + d) as f32 / 7.0).collect()
}

fn kept(n: usize) -> (Entry, Vec<u8>) {
    let bytes = encode_vector(&vector(n));
    (Entry::new(key("model", &n.to_string()), n as u32, &bytes), bytes)
}

#[test]
fn an_entry_and_its_vector_come_back_as_they_were() {
    for n in 0..4 {
        let (entry, bytes) = kept(n);
        let found = Entry::decode(&entry.encode());
        assert_eq!(found, entry);
        assert_eq!((found.key, found.n_tokens), (key("model", &n.to_string()), n as u32));
        assert!(found.fits(&bytes));
        assert_eq!(decode_vector(&bytes), vector(n));
        assert_eq!(text_bytes(DIMENSIONS), entry.encode().len() + bytes.len());
    }
}

#[test]
fn a_vector_fits_its_own_entry_only() {
    let vectors: Vec<_> = (0..4).map(kept).collect();
    for (i, (entry, _)) in vectors.iter().enumerate() {
        for (j, (_, bytes)) in vectors.iter().enumerate() {
            assert_eq!(entry.fits(bytes), i == j);
        }
        assert!(!entry.fits(&[]) && !entry.fits(&[0; 4 * DIMENSIONS]));
    }
    let zeros = Entry::decode(&[0; ENTRY_BYTES]);
    assert!(!zeros.fits(&[0; 4 * DIMENSIONS]), "what a hole in a file reads as is no entry");
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
    fn refused(header: [u8; HEADER_BYTES], dimensions: usize, reason: &str) {
        let message = check_header(&header, dimensions).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }
    check_header(&header(DIMENSIONS), DIMENSIONS).unwrap();
    refused(header(DIMENSIONS), DIMENSIONS + 1, "5 dimensions, the model's 6");
    refused([b'x'; HEADER_BYTES], DIMENSIONS, "no embeddings of Cento");
    refused([0; HEADER_BYTES], DIMENSIONS, "no embeddings of Cento");
    refused(header_of(3, DIMENSIONS), DIMENSIONS, "newer Cento");
    refused(header_of(1, DIMENSIONS), DIMENSIONS, "version 1 stands where version 2 is expected");
    let mut damaged = header(DIMENSIONS);
    damaged[20] = 1;
    refused(damaged, DIMENSIONS, "header is damaged");
}

proptest! {
    #[test]
    fn an_altered_byte_is_noticed(at in 0..ENTRY_BYTES + 4 * DIMENSIONS, flip in 1u8..=255) {
        let (entry, mut bytes) = kept(1);
        let mut encoded = entry.encode();
        match at.checked_sub(ENTRY_BYTES) {
            None => encoded[at] ^= flip,
            Some(at) => bytes[at] ^= flip,
        }
        let is_padding = (KEY_BYTES + 4..KEY_BYTES + 8).contains(&at);
        prop_assert_eq!(Entry::decode(&encoded).fits(&bytes), is_padding);
    }
}
