//! A power loss at every step of putting a whole run under its names.

use std::path::Path;

use cento_collection::testing::random::Random;
use cento_collection::testing::volatile::{Fault, VolatileFs};
use serde_json::json;

use super::*;

/// Seeds for one crash point.
const N_SEEDS: u64 = 8;

fn manifest(run: &str) -> Vec<u8> {
    let manifest: Manifest = serde_json::from_value(json!({
        "version": 1, "cento": "0", "model": run, "model_fingerprint": "", "kind": "document", "prompt": "",
        "dimensions": 1, "max_tokens": 1, "too_long": "truncate", "precision": "f32", "device": "cpu",
        "normalized": true, "array": "out.npy", "ids": "out.ids.jsonl", "output_type": "f32", "n_rows": 1,
        "n_columns": 1, "ranges": null, "ranges_given": null, "n_tokens": 1, "n_truncated": 0, "n_failed": 0,
        "input": { "path": "", "n_bytes": 0, "blake3": "" },
    }))
    .unwrap();
    to_json(&manifest)
}

fn write(fs: &dyn Fs, path: &Path, bytes: &[u8]) {
    let mut file = fs.create(path).unwrap();
    file.write_all(bytes).unwrap();
    file.sync().unwrap();
}

/// The run that a manifest names; its files are that run's, or there is no manifest.
fn published(names: &Names, when: &str) -> Option<String> {
    let run = Manifest::read(&names.manifest)?.model;
    for file in [&names.array, &names.ids] {
        assert_eq!(std::fs::read(file).ok().as_deref(), Some(run.as_bytes()), "{when}: {}", file.display());
    }
    Some(run)
}

/// Puts a new run in the place of an old one, losing power after every operation.
fn lose_power(matrix: &[(&str, &str)]) {
    let disk = tempfile::tempdir().unwrap();
    let fs = VolatileFs::new(disk.path(), Fault::None);
    let names = Names::new(&disk.path().join("out.npy")).unwrap();
    write(&fs, &names.array, b"old");
    write(&fs, &names.ids, b"old");
    write(&fs, &names.manifest, &manifest("old"));
    fs.create_dir(&names.part).unwrap();
    for (name, content) in matrix.iter().chain(&[(IDS, "new"), (JOURNAL, ""), (PLAN, "")]) {
        write(&fs, &names.part.join(name), content.as_bytes());
    }
    write(&fs, &names.part.join(MANIFEST), &manifest("new"));
    fs.sync_dir(&names.part).unwrap();
    fs.sync_dir(disk.path()).unwrap();
    let begun = fs.n_operations();
    publish(&fs, &names).unwrap();

    for n_operations in begun..=fs.n_operations() {
        for seed in 0..N_SEEDS {
            let when = format!("power lost after {n_operations} of {} operations, seed {seed}", fs.n_operations());
            let after = tempfile::tempdir().unwrap();
            fs.crash(n_operations, &mut Random::new(seed << 32 | n_operations as u64), after.path());
            let names = Names::new(&after.path().join("out.npy")).unwrap();
            let found = published(&names, &when);
            assert!(n_operations < fs.n_operations() || found.as_deref() == Some("new"), "{when}: it was acknowledged");
            if is_whole(&names) {
                publish(&OsFs, &names).unwrap_or_else(|error| panic!("{when}: {error}"));
                let mended = published(&names, &when).as_deref() == Some("new");
                assert!(mended || !names.array.exists() && !names.ids.exists(), "{when}: what is left is in the way");
                assert!(!names.part.exists(), "{when}");
            }
        }
    }
}

#[test]
fn a_power_loss_leaves_the_old_matrix_the_new_one_or_none() {
    lose_power(&[(VECTORS, "new")]);
}

#[test]
fn a_power_loss_never_takes_the_rows_for_the_matrix_made_of_them() {
    lose_power(&[(VECTORS, "rows"), (CONVERTED, "new")]);
}
