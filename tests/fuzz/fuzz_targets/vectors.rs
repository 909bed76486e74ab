//! Files of vectors: any bytes are a fault with a reason, or rows that are all as long.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use cento_engine::{Error, bare_vectors, open_vectors, read_vectors};
use libfuzzer_sys::fuzz_target;

const DIMENSIONS: usize = 3;
/// Bytes of vectors that are read.
const BYTES_MAX: u64 = 64 << 20;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fn check(read: Result<Vec<Vec<f32>>, Error>) {
    match read {
        Ok(rows) => assert!(rows.windows(2).all(|pair| pair[0].len() == pair[1].len())),
        Err(Error::Vectors { reason, .. }) => assert!(!reason.is_empty()),
        Err(error) => assert!(matches!(error, Error::Io { .. }), "{error}"),
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    match ["npy", "fvecs", "bvecs", "parquet", "hdf5", "json", "f32"][usize::from(kind) % 7] {
        name @ ("parquet" | "hdf5") => {
            let path = FOLDER.path().join(format!("v.{name}"));
            std::fs::write(&path, bytes).unwrap();
            check(open_vectors(&path, BYTES_MAX).map(Option::unwrap));
        }
        "json" => drop(read_vectors(Path::new("v.json"), bytes.to_vec(), DIMENSIONS)), // lists as a client writes them
        "f32" => drop(bare_vectors(bytes, DIMENSIONS)),
        name => check(read_vectors(Path::new(&format!("v.{name}")), bytes.to_vec(), DIMENSIONS)),
    }
});
