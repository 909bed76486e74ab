//! Qrels, runs, topics, questions and contexts: any bytes are an error or are read.
#![no_main]

use std::sync::LazyLock;

use cento_eval::{qrels::Qrels, questions::Questions, run::Rankings};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fuzz_target!(|bytes: &[u8]| {
    for name in ["a.txt", "a.tsv", "a.jsonl", "a.json", "a.trec"] {
        let path = FOLDER.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let _ = cento_eval::topics::read(&path);
        let _ = Qrels::read(&path);
        let _ = Questions::read(&path);
        let _ = Rankings::open(&path).map(|rankings| rankings.take_while(Result::is_ok).count());
        let _ = cento_eval::contexts::read(&path).map(|contexts| contexts.take_while(Result::is_ok).count());
    }
});
