//! Tables of static vectors: those of model2vec and sentence-transformers to the last digits, and what is refused.
//!
//! The folders and their golden files are made by `scripts/make-parity-models`.

use std::fs;
use std::path::PathBuf;

use candle_core::Device;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::folder::describe::{TABLE, describe};

/// Largest difference of one value of a vector of unit length: from model2vec, and from sentence-transformers, which
/// adds up the rows of a text in f32.
const TOLERANCES: [f32; 2] = [1e-6, 4e-6];
const NAMES: [&str; 5] = ["table", "table-f16", "table-int8", "table-mapped", "static-embedding"];
const DIMENSIONS: usize = 24;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity")).join(name)
}

fn load(folder: &Path, threads: usize, precision: Precision) -> Result<Embedder> {
    let options = LoadOptions { device: DeviceChoice::Cpu, threads, precision, ..LoadOptions::default() };
    Embedder::load(folder, &options)
}

fn texts(name: &str) -> Vec<String> {
    serde_json::from_slice(&fs::read(folder(name).join("golden.json")).unwrap()).unwrap()
}

/// The files of a table, to be altered.
fn copy(name: &str) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in ["config.json", "modules.json", "tokenizer.json", "model.safetensors"] {
        let from = folder(name).join(file);
        if from.exists() {
            fs::copy(from, copy.path().join(file)).unwrap();
        }
    }
    copy
}

#[track_caller]
fn refused(folder: &Path, words: &[&str]) {
    let message = load(folder, 1, Precision::F32).map(|_| ()).unwrap_err().to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message:?} lacks one of {words:?}");
}

#[test]
fn vectors_are_those_of_the_libraries_that_wrote_the_table() {
    for name in NAMES {
        let goldens = candle_core::safetensors::load(folder(name).join("golden.safetensors"), &Device::Cpu).unwrap();
        let rows: Vec<Vec<f32>> = goldens["vectors"].to_vec2().unwrap();
        let unknown: Option<Vec<f32>> = goldens.get("unknown").map(|row| row.to_vec1().unwrap());
        let embedder = load(&folder(name), 1, Precision::F32).unwrap();
        assert_eq!((embedder.dimensions(), embedder.flops(100)), (DIMENSIONS, 0));
        for (text, golden) in texts(name).iter().zip(rows) {
            let has_none = golden.iter().all(|value| *value == 0.0);
            let ours = embedder.embed_one_unless(text, Kind::Document, NEVER);
            let expected = match (has_none, &unknown) {
                (false, _) => &golden,
                (true, Some(unknown)) => unknown, // theirs has no direction
                (true, None) => {
                    assert!(matches!(ours, Err(Error::Tokenize { index: 0, .. })), "{name}: {text:?}");
                    continue;
                }
            };
            let ours = ours.unwrap().vector;
            let difference = ours.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let tolerance = TOLERANCES[usize::from(name == "static-embedding")];
            assert!(difference <= tolerance, "{name}: {text:?} differs by {difference}");
        }
    }
}

#[test]
fn a_vector_is_the_same_alone_among_others_and_on_any_number_of_threads() {
    for name in NAMES {
        let words = texts(name).concat();
        let words: Vec<&str> = words.split_whitespace().collect();
        let texts: Vec<String> = (1..400).map(|n| words[n % 7..][..1 + n % 60].join(" ")).collect();
        let embedder = load(&folder(name), 1, Precision::F32).unwrap();
        let alone: Vec<Embedding> =
            texts.iter().map(|text| embedder.embed_one_unless(text, Kind::Query, NEVER).unwrap()).collect();
        for threads in [1, 3] {
            let embedder = load(&folder(name), threads, Precision::F32).unwrap();
            assert_eq!(embedder.embed(&texts, Kind::Query).unwrap(), alone, "{name}");
        }
    }
}

#[test]
fn a_text_is_read_up_to_the_limit_of_the_folder() {
    let text = "one two three ".repeat(300);
    for (name, n_tokens) in
        [("table", Some(512)), ("table-mapped", Some(16)), ("table-int8", None), ("static-embedding", None)]
    {
        let embedding = load(&folder(name), 1, Precision::F32).unwrap();
        let embedding = embedding.embed_one_unless(&text, Kind::Document, NEVER).unwrap();
        assert_eq!(embedding.truncated, n_tokens.is_some(), "{name}");
        assert!(n_tokens.is_none_or(|n| embedding.n_tokens <= n) && embedding.n_tokens > 8, "{name}: {embedding:?}");
    }
}

#[test]
fn a_table_is_described_before_its_weights_are_there_and_without_modules() {
    for name in NAMES {
        let copy = copy(name);
        let whole = describe(copy.path()).unwrap();
        assert_eq!((whole.architecture.as_str(), whole.dimensions), (TABLE, Some(DIMENSIONS)));
        fs::remove_file(copy.path().join("model.safetensors")).unwrap();
        let early = describe(copy.path()).unwrap();
        assert_eq!((early.dimensions, early.max_tokens, early.pooling), (None, whole.max_tokens, whole.pooling));
        refused(copy.path(), &["model.safetensors", "weights"]);
    }
    let copy = copy("table");
    fs::remove_file(copy.path().join("modules.json")).unwrap();
    let fingerprint = |folder: &Path| load(folder, 1, Precision::F32).unwrap().fingerprint().to_owned();
    assert_eq!(fingerprint(copy.path()), fingerprint(&folder("table")));
    // without a configuration it is read as another library does, which counts unknown tokens
    let copy = self::copy("table");
    fs::remove_file(copy.path().join("config.json")).unwrap();
    assert_ne!(fingerprint(copy.path()), fingerprint(&folder("table")));
}

#[test]
fn what_a_table_cannot_be_is_refused_by_name() {
    let error = load(&folder("table"), 1, Precision::Int8).unwrap_err().to_string();
    assert!(error.contains("int8") && error.contains("use f32"), "{error}");
    let embedder = load(&folder("table"), 1, Precision::F32).unwrap();
    assert!(matches!(embedder.late_windows(None, None), Err(Error::LateTable)));

    let with = |key: &str, value: Value, words: &[&str]| {
        let copy = copy("table-mapped");
        let mut config = json!({"model_type": "model2vec"});
        config[key] = value;
        fs::write(copy.path().join("config.json"), config.to_string()).unwrap();
        refused(copy.path(), words);
    };
    with("max_length", json!(0), &["config.json", "max_length is 0"]);
    with("max_length", json!("many"), &["max_length is \"many\""]);
    with("model_type", json!("bert"), &["kind of table", "\"bert\"", "model2vec"]);

    let weights = |name: &str, alter: &dyn Fn(&mut Vec<u8>), words: &[&str]| {
        let copy = copy(name);
        let path = copy.path().join("model.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        alter(&mut bytes);
        fs::write(path, bytes).unwrap();
        refused(copy.path(), words);
    };
    let rename = |from: &'static str, to: &'static str| {
        move |bytes: &mut Vec<u8>| {
            let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    };
    weights("table", &rename("\"embeddings\"", "\"embeddingz\""), &["no tensor \"embeddings\""]);
    weights("table-mapped", &rename("\"weights\"", "\"weightz\""), &["no place for: weightz"]);
    weights("table-mapped", &rename("I64", "F64"), &["\"mapping\"", "F64", "I32, I64"]);
    let far = |bytes: &mut Vec<u8>| {
        let header: Value = serde_json::from_slice(&bytes[8..8 + bytes[0] as usize + 256 * bytes[1] as usize]).unwrap();
        let at = 8 + bytes[0] as usize + 256 * bytes[1] as usize;
        let at = at + header["mapping"]["data_offsets"][0].as_u64().unwrap() as usize;
        bytes[at..at + 8].copy_from_slice(&50i64.to_le_bytes());
    };
    weights("table-mapped", &far, &["names row 50 of 50"]);
}
