//! The folder of an encoder of which one file was changed, weights under a header whose length holds: an error or vectors.
#![no_main]

mod place;

use std::path::PathBuf;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use cento_embedder::{DeviceChoice, Embedder, Kind, LoadOptions, Precision, Tokenizer};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    file: u8,
    precision: u8,
    edit: Edit<'a>,
}

#[derive(Debug, Arbitrary)]
enum Edit<'a> {
    /// The whole file.
    Instead(&'a [u8]),
    /// Bytes over its own; of weights over their header.
    Over(Vec<(u32, &'a [u8])>),
    /// Text in the place of other text: numbers of JSON become others.
    Text(Vec<(u32, u8, &'a str)>),
}

/// Every file of the folder that is read, and its bytes.
static FILES: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let names = [
        "config.json",
        "tokenizer.json",
        "modules.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "model.safetensors",
    ];
    names.map(|name| (name, std::fs::read(place::tiny_model().join(name)).unwrap())).into()
});

static FOLDER: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    for (name, bytes) in &*FILES {
        let path = model.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    (folder, model)
});

fn edited(bytes: &[u8], edit: &Edit<'_>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match edit {
        Edit::Instead(new) => return new.to_vec(),
        Edit::Over(changes) => {
            for (at, new) in changes {
                let at = *at as usize % bytes.len().max(1);
                let n = new.len().min(bytes.len() - at);
                bytes[at..at + n].copy_from_slice(&new[..n]);
            }
        }
        Edit::Text(changes) => {
            for (at, n, new) in changes {
                let at = *at as usize % bytes.len().max(1);
                let end = (at + usize::from(*n % 16)).min(bytes.len());
                bytes.splice(at..end, new.bytes());
            }
        }
    }
    bytes
}

fuzz_target!(|input: Input<'_>| {
    let (name, bytes) = &FILES[usize::from(input.file) % FILES.len()];
    let model = &FOLDER.1;
    let changed = match bytes.split_first_chunk::<8>() {
        Some((length, rest)) if name.ends_with(".safetensors") => {
            let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
            let header = edited(header, &input.edit);
            [&(header.len() as u64).to_le_bytes()[..], &header, data].concat()
        }
        _ => edited(bytes, &input.edit),
    };
    std::fs::write(model.join(name), &changed).unwrap();
    let precision = [Precision::F32, Precision::Bf16, Precision::Int8][usize::from(input.precision) % 3];
    let options = LoadOptions { device: DeviceChoice::Cpu, precision, threads: 1, ..LoadOptions::default() };
    let texts = ["The moon pulls the sea.".to_owned(), String::new(), "\u{1f409} tide".repeat(200)];
    if let Ok(embedder) = Embedder::load(model, &options)
        && let Ok(embedded) = embedder.embed(&texts, Kind::Query)
    {
        for embedding in embedded {
            assert_eq!(embedding.vector.len(), embedder.dimensions());
            assert!(embedding.vector.iter().all(|value| value.is_finite()));
        }
    }
    if *name == "tokenizer.json"
        && let Ok(tokenizer) = Tokenizer::load(&model.join(name))
    {
        for text in &texts {
            let ends = tokenizer.ends(text);
            assert!(ends.is_sorted() && ends.last().is_none_or(|end| *end <= text.len()));
        }
    }
    std::fs::write(model.join(name), bytes).unwrap();
});
