//! The same models on the first adapter of this machine, by preference a GPU, else software that plays one.

use std::fs::File;
use std::io;
use std::path::Path;

use super::*;
use crate::cross::CrossEncoder;
use crate::kernels::gpu::adapters;
use crate::weights::WeightHashes;

const ARCHITECTURES: [&str; 13] = [
    "bert",
    "distilbert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "mpnet",
    "modernbert",
    "nomic-bert",
    "jina-bert-v2",
    "gte",
    "qwen3",
    "gemma3",
    "gemma3-causal",
];

/// Devices that passed their first check, so that a load does not repeat it.
struct Passed;

impl WeightHashes for Passed {
    fn of(&self, _: &Path, _: &File, hash: &mut dyn FnMut() -> io::Result<[u8; 32]>) -> io::Result<[u8; 32]> {
        hash()
    }

    fn has_passed(&self, _: &str) -> bool {
        true
    }
}

fn there_is_an_adapter() -> bool {
    let found = adapters();
    match found.first() {
        Some(adapter) => eprintln!("on {adapter}"),
        None => {
            eprintln!("skipped: no Vulkan or Metal driver offers an adapter (Debian: libvulkan1, mesa-vulkan-drivers)")
        }
    }
    !found.is_empty()
}

fn options(max_batch_tokens: usize) -> LoadOptions {
    LoadOptions { device: DeviceChoice::Gpu(Some(0)), threads: 1, max_batch_tokens, ..LoadOptions::default() }
}

fn on_gpu(folder: &Path, max_batch_tokens: usize) -> Embedder {
    Embedder::load_with(folder, &options(max_batch_tokens), &Passed)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

#[test]
fn every_architecture_agrees_with_transformers() {
    if !there_is_an_adapter() {
        return;
    }
    for name in ARCHITECTURES {
        let model = Model::open(name);
        check_tokens_of(&model, name, &on_gpu(&model.folder, 0));
        for mode in ["mean", "lasttoken", "cls"] {
            let golden = format!("pooled.{mode}");
            if model.goldens.contains_key(&golden) {
                let copy = copy_with(&model.folder, mode, "");
                let vectors = embed(&on_gpu(copy.path(), 0), &model.strings(), Kind::Document);
                check_close(&format!("{name}: {golden}"), &vectors, &model.values(&golden), TEXT_TOLERANCE);
            }
        }
    }
}

#[test]
fn every_cross_encoder_agrees_with_the_cpu() {
    if !there_is_an_adapter() {
        return;
    }
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let pairs = [pair("the price of bread", "bread rose by a penny"), pair("tide", "a long walk by the sea, alone")];
    let names = ["cross-bert", "cross-distilbert", "cross-gte", "cross-modernbert", "cross-mpnet", "cross-qwen3"];
    for name in names {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity")).join(name);
        let cpu = LoadOptions { device: DeviceChoice::Cpu, ..LoadOptions::default() };
        let expected = CrossEncoder::load(&folder, &cpu).unwrap().score(&pairs).unwrap();
        let scores = CrossEncoder::load_with(&folder, &options(0), &Passed).unwrap().score(&pairs).unwrap();
        check_close(name, &scores, &expected, 2e-5);
    }
}

/// Bits of the rows of a sequence, alone, and among sequences of all lengths in both orders.
#[test]
fn a_text_has_the_same_bits_in_any_company() {
    if !there_is_an_adapter() {
        return;
    }
    for name in ["bert", "mpnet", "modernbert", "gemma3"] {
        let model = Model::open(name);
        let embedder = on_gpu(&model.folder, 0);
        let longest = embedder.n_positions().min(512);
        let lengths: Vec<usize> = [1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 200, 511, 512]
            .into_iter()
            .filter(|&n| n <= longest)
            .collect();
        let ids = model.ids(&format!("ids.{}", model.lengths().last().unwrap()));
        let sequence = |n: usize| -> Vec<u32> { (0..n).map(|i| ids[(i * 7 + n) % ids.len()]).collect() };
        let alone: Vec<Vec<f32>> =
            lengths.iter().map(|&n| hidden(&embedder, &Batch::new([(0, sequence(n))]))).collect();
        for order in [lengths.clone(), lengths.iter().rev().copied().collect()] {
            let together = hidden(&embedder, &Batch::new(order.iter().map(|&n| (n, sequence(n)))));
            let mut rest = together.as_slice();
            for n in order {
                let expected = &alone[lengths.iter().position(|&length| length == n).unwrap()];
                let rows;
                (rows, rest) = rest.split_at(expected.len());
                assert!(rows.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}: {n} tokens");
            }
        }
    }
}

#[test]
fn batches_of_any_size_give_the_same_vectors_and_a_full_memory_halves_them() {
    if !there_is_an_adapter() {
        return;
    }
    let model = Model::open("bert");
    let texts = model.strings();
    let whole = on_gpu(&model.folder, 0);
    let expected = embed(&whole, &texts, Kind::Document);
    assert_eq!(embed(&on_gpu(&model.folder, 20), &texts, Kind::Document), expected);
    let small = on_gpu(&model.folder, 0);
    let longest = texts.iter().map(|text| small.encode("", text).unwrap().ids.len()).max().unwrap();
    small.device.gpu().unwrap().shrink((longest * small.encoder.widest_row() * size_of::<f32>()) as u64);
    assert_eq!(embed(&small, &texts, Kind::Document), expected);
    assert!(small.n_batches_halved() > 0);
    assert!(small.device_remark().unwrap().contains("memory was full"), "{:?}", small.device_remark());
    small.device.gpu().unwrap().shrink(64);
    let error = small.embed(&texts, Kind::Document).unwrap_err();
    assert!(error.is_out_of_memory(), "{error:?}");
}

#[test]
fn a_lost_device_is_told_by_name_and_another_goes_on() {
    if !there_is_an_adapter() {
        return;
    }
    let model = Model::open("bert");
    let embedder = on_gpu(&model.folder, 0);
    let expected = embed(&embedder, &model.strings(), Kind::Document);
    embedder.device.gpu().unwrap().lose();
    let error = embedder.embed(&model.strings(), Kind::Document).unwrap_err();
    assert!(crate::embedder::error_in_words(&error).contains("was lost"), "{error:?}");
    assert_eq!(embed(&on_gpu(&model.folder, 0), &model.strings(), Kind::Document), expected);
}

#[test]
fn the_first_check_passes_here_and_refuses_a_device_that_computes_something_else() {
    if !there_is_an_adapter() {
        return;
    }
    let model = Model::open("bert");
    let gpu = Embedder::load(&model.folder, &options(0)).unwrap(); // checked: nobody remembers
    assert_eq!(gpu.first_check(&model.load()).unwrap(), None);
    let other = load(&Model::open("camembert").folder, None);
    let reason = gpu.first_check(&other).unwrap().unwrap();
    assert!(reason.contains("from the CPU's"), "{reason}");
    assert!(gpu.device_name().contains(&adapters()[0].driver_version));
    assert_eq!(gpu.arithmetic(), gpu.device_name());
    assert_eq!(gpu.fingerprint(), model.load().fingerprint());
    assert_ne!(gpu.check_key(), on_gpu(&Model::open("mpnet").folder, 0).check_key());
}

#[test]
fn a_real_model_agrees_with_the_cpu() {
    let Some(folder) = std::env::var_os("CENTO_MODEL_DIR").map(PathBuf::from) else {
        eprintln!("skipped: CENTO_MODEL_DIR does not name a model folder");
        return;
    };
    if !there_is_an_adapter() {
        return;
    }
    let words = ["trade winds", "the cell wall", "in 1887", "of bread", "rises", "measured", "against", "cold water"];
    let text = |i: usize| (0..3 + 5 * i).map(|n| words[(n * n + i) % words.len()]).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = (0..6).map(text).collect();
    let (ours, theirs) = (on_gpu(&folder, 0), load(&folder, None));
    let ours = ours.embed(&texts, Kind::Document).unwrap();
    for (ours, theirs) in ours.iter().zip(theirs.embed(&texts, Kind::Document).unwrap()) {
        let cosine = cosine(&ours.vector, &theirs.vector);
        assert!(cosine >= 0.999_999, "{cosine}");
        check_close("a text", &ours.vector, &theirs.vector, TEXT_TOLERANCE);
    }
}
