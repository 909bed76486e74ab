//! The embedding cache: what lies in its files is found as it was kept, or not found.
#![no_main]

use cento_embedder::cache::{self, ENTRY_BYTES, Entry, HEADER_BYTES};
use libfuzzer_sys::fuzz_target;

const DIMENSIONS: usize = 4;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (keys, vectors) = input;
    if let Some((header, entries)) = keys.split_first_chunk::<HEADER_BYTES>() {
        let _ = cache::check_header(header, DIMENSIONS);
        let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
        for (entry, vector) in entries.iter().zip(vectors.chunks_exact(cache::vector_bytes(DIMENSIONS))) {
            let entry = Entry::decode(entry);
            if entry.fits(vector) {
                assert_eq!(Entry::new(entry.key, entry.n_tokens, vector), entry);
            }
        }
    }
});
