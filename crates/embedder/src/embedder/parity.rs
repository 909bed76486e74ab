//! Small random models of every architecture against what transformers and sentence-transformers compute of them.
//!
//! The folders and their golden files are made by `scripts/make-parity-models`, which says what is in them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use candle_core::{Device, Tensor};
use serde::Deserialize;

use super::*;
use crate::pack::pack;

/// Largest difference of one value of a token's vector.
const TOKEN_TOLERANCE: f32 = 2e-5;
/// Largest difference of one value of a text's vector, which has unit length.
const TEXT_TOLERANCE: f32 = 4e-6;
const MODES: [&str; 7] = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", "mean+max"];

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
    truncated: bool,
}

/// A folder of `models/parity` with its golden files.
struct Model {
    folder: PathBuf,
    texts: Vec<Text>,
    goldens: HashMap<String, Tensor>,
}

impl Model {
    fn open(name: &str) -> Self {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity")).join(name);
        let texts = serde_json::from_slice(&fs::read(folder.join("golden.json")).unwrap()).unwrap();
        let goldens = candle_core::safetensors::load(folder.join("golden.safetensors"), &Device::Cpu).unwrap();
        Self { folder, texts, goldens }
    }

    fn load(&self) -> Embedder {
        load(&self.folder, None)
    }

    fn values(&self, name: &str) -> Vec<f32> {
        self.goldens[name].flatten_all().unwrap().to_vec1().unwrap()
    }

    fn ids(&self, name: &str) -> Vec<u32> {
        self.goldens[name].to_vec1().unwrap()
    }

    fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> =
            self.goldens.keys().filter_map(|name| name.strip_prefix("ids.")).map(|n| n.parse().unwrap()).collect();
        lengths.sort_unstable();
        lengths
    }

    fn strings(&self) -> Vec<String> {
        self.texts.iter().map(|text| text.text.clone()).collect()
    }
}

fn load(folder: &Path, dimensions: Option<usize>) -> Embedder {
    let options = LoadOptions { device: DeviceChoice::Cpu, threads: 1, dimensions, ..LoadOptions::default() };
    Embedder::load(folder, &options).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

#[track_caller]
fn check_close(what: &str, ours: &[f32], theirs: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let difference = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference <= tolerance, "{what} differs by {difference}");
}

/// Sequences of all lengths, alone and in one batch, token by token.
#[track_caller]
fn check_tokens(name: &str) {
    let model = Model::open(name);
    let embedder = model.load();
    let lengths = model.lengths();
    let sequences: Vec<Vec<u32>> = lengths.iter().map(|n| model.ids(&format!("ids.{n}"))).collect();
    let alone = sequences.iter().map(|ids| pack(vec![ids.clone()], usize::MAX).remove(0));
    for (batch, &n) in alone.zip(&lengths) {
        check_rows(&model, &format!("{name}: {n} tokens alone"), n, &embedder.hidden(&batch).unwrap());
    }
    for batch in pack(sequences.clone(), usize::MAX) {
        let hidden = embedder.hidden(&batch).unwrap();
        let width = hidden.len() / batch.ids.len();
        for (span, &input) in batch.spans.iter().zip(&batch.inputs) {
            let (n, rows) = (lengths[input], &hidden[span.start * width..span.end * width]);
            check_rows(&model, &format!("{name}: {n} tokens among others"), n, rows);
        }
    }
}

/// The rows of a sequence of `n` tokens against its golden ones.
#[track_caller]
fn check_rows(model: &Model, what: &str, n: usize, rows: &[f32]) {
    let width = rows.len() / n;
    let tokens = model.ids(&format!("tokens.{n}"));
    let chosen: Vec<f32> = tokens.iter().flat_map(|&token| rows[token as usize * width..][..width].to_vec()).collect();
    check_close(what, &chosen, &model.values(&format!("rows.{n}")), TOKEN_TOLERANCE);
    let sums: Vec<f32> = rows.chunks_exact(width).map(|row| row.iter().sum()).collect();
    check_close(what, &sums, &model.values(&format!("sums.{n}")), TOKEN_TOLERANCE * width as f32 / 4.0);
}

/// Texts as the reference tokenizes them, and their vectors by every pooling that the golden file has.
#[track_caller]
fn check_texts(name: &str) {
    let model = Model::open(name);
    let embedder = model.load();
    for text in &model.texts {
        let encoded = embedder.tokenizer.encode(&text.text, embedder.max_tokens).unwrap();
        assert_eq!((&encoded.ids, encoded.truncated), (&text.ids, text.truncated), "{name}: {:?}", text.text);
    }
    for mode in MODES {
        for (kind, prompt) in [("pooled", ""), ("prompted", "the text: ")] {
            let golden = format!("{kind}.{mode}");
            if !model.goldens.contains_key(&golden) {
                continue;
            }
            let copy = copy_with(&model.folder, mode, prompt);
            let vectors = embed(&load(copy.path(), None), &model.strings(), Kind::Document);
            check_close(&format!("{name}: {golden}"), &vectors, &model.values(&golden), TEXT_TOLERANCE);
        }
    }
}

/// A folder with the files of another, but for its pooling and its prompts.
fn copy_with(folder: &Path, mode: &str, prompt: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let config: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
    let hidden = ["hidden_size", "dim", "n_embd"].iter().find_map(|key| config[*key].as_u64());
    let modes: Vec<&str> = mode.split('+').collect();
    let pooling = serde_json::json!({
        "embedding_dimension": hidden, "pooling_mode": modes, "include_prompt": prompt.is_empty(),
    });
    fs::create_dir(copy.path().join("1_Pooling")).unwrap();
    fs::write(copy.path().join("1_Pooling/config.json"), pooling.to_string()).unwrap();
    let prompts = serde_json::json!({"prompts": {"document": prompt}});
    fs::write(copy.path().join("config_sentence_transformers.json"), prompts.to_string()).unwrap();
    copy
}

fn embed(embedder: &Embedder, texts: &[String], kind: Kind) -> Vec<f32> {
    embedder.embed(texts, kind).unwrap().into_iter().flat_map(|embedding| embedding.vector).collect()
}

macro_rules! architectures {
    ($($test:ident: $name:literal,)*) => {$(
        mod $test {
            #[test]
            fn tokens() {
                super::check_tokens($name);
            }

            #[test]
            fn texts() {
                super::check_texts($name);
            }
        }
    )*};
}

architectures! {
    bert: "bert",
}

#[test]
fn a_chain_of_modules_agrees_with_sentence_transformers() {
    let model = Model::open("modules");
    for (dimensions, cut) in [(12, None), (5, Some(5))] {
        let embedder = load(&model.folder, cut);
        assert_eq!(embedder.dimensions(), dimensions);
        for (name, kind) in [("document", Kind::Document), ("query", Kind::Query)] {
            let vectors = embed(&embedder, &model.strings(), kind);
            check_close(name, &vectors, &model.values(&format!("{name}.{dimensions}")), TEXT_TOLERANCE);
        }
    }
}
