//! The same models on the first adapter of this machine, by preference a GPU, else software that plays one.

use std::fs::File;
use std::io;
use std::path::Path;

use super::*;
use crate::cross::CrossEncoder;
use crate::kernels::gpu::{Pretence, Waited, adapters};
use crate::weights::WeightHashes;

const ARCHITECTURES: [&str; 15] = [
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
    "t5",
    "mt5",
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
    let precisions = [("bert", Precision::F16), ("gemma3", Precision::F16)];
    let models = ["bert", "mpnet", "modernbert", "gemma3", "t5"].map(|name| (name, Precision::F32));
    for (name, precision) in models.into_iter().chain(precisions) {
        let model = Model::open(name);
        let options = LoadOptions { precision, ..options(0) };
        let embedder = Embedder::load_with(&model.folder, &options, &Passed).unwrap();
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

/// Weights of 16 bits, as the adapter reads them and unpacked from words: the first check holds each token's row to
/// the CPU's with the same weights.
#[test]
fn every_architecture_in_f16_passes_its_first_check_and_needs_no_f16_of_the_adapter() {
    if !there_is_an_adapter() {
        return;
    }
    for name in ARCHITECTURES {
        let model = Model::open(name);
        let vectors = |lacks_f16| {
            let load = || Embedder::load(&model.folder, &LoadOptions { precision: Precision::F16, ..options(0) });
            let embedder = Pretence { lacks_f16, ..Pretence::NONE }.during(load);
            let embedder = embedder.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(embedder.device.gpu().unwrap().adapter().has_f16, !lacks_f16 && adapters()[0].has_f16);
            embed(&embedder, &model.strings(), Kind::Document)
        };
        assert_eq!(vectors(false), vectors(true), "{name}");
        assert_ne!(vectors(true), embed(&on_gpu(&model.folder, 0), &model.strings(), Kind::Document), "{name}");
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

/// The error of a device that something befell.
#[track_caller]
fn failure(embedder: &Embedder, texts: &[String]) -> String {
    error_in_words(&embedder.embed(texts, Kind::Document).unwrap_err())
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
    let words = failure(&embedder, &model.strings());
    assert!(words.contains("was lost") && words.contains(&adapters()[0].to_string()), "{words}");
    assert_eq!(failure(&embedder, &model.strings()), words);
    assert_eq!(embed(&on_gpu(&model.folder, 0), &model.strings(), Kind::Document), expected);
}

#[test]
fn whatever_thread_meets_a_fault_all_get_the_same_error_and_none_a_vector_made_under_it() {
    if !there_is_an_adapter() {
        return;
    }
    let model = Model::open("bert");
    let texts = model.strings();
    let lost = |gpu: &Gpu| gpu.lose_after(9);
    let refused = |gpu: &Gpu| drop(gpu.compile("nonsense").unwrap_err());
    for fault in [&lost as &(dyn Fn(&Gpu) + Sync), &refused] {
        let embedder = on_gpu(&model.folder, 30);
        let expected = embed(&embedder, &texts, Kind::Document);
        fault(embedder.device.gpu().unwrap());
        let until_failure = || loop {
            match embedder.embed(&texts, Kind::Document) {
                Ok(texts) => assert!(texts.into_iter().flat_map(|text| text.vector).eq(expected.iter().copied())),
                Err(error) => return error_in_words(&error),
            }
        };
        let errors: Vec<String> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(until_failure)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let name = adapters()[0].to_string();
        assert!(errors.iter().all(|error| *error == errors[0] && error.contains(&name)), "{errors:#?}");
    }
}

/// A thread's bytes may be announced by the wait of another.
#[test]
fn a_thread_whose_bytes_another_announces_waits_for_them() {
    if !there_is_an_adapter() {
        return;
    }
    let model = Model::open("bert");
    let embedder = on_gpu(&model.folder, 0);
    let expected = embed(&embedder, &model.strings(), Kind::Document);
    let gpu = embedder.device.gpu().unwrap();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                gpu.poll();
                thread::yield_now();
            }
        });
        gpu.rehearse(&[Waited::TooEarly; 3]);
        let vectors = (0..3).map(|_| embedder.embed(&model.strings(), Kind::Document)).collect::<Vec<_>>();
        is_done.store(true, Ordering::Relaxed);
        for vectors in vectors {
            let vectors: Vec<f32> = vectors.unwrap().into_iter().flat_map(|text| text.vector).collect();
            assert_eq!(vectors, expected);
        }
    });
}

#[test]
fn a_device_that_hangs_is_given_up_and_one_that_is_slow_is_not() {
    if !there_is_an_adapter() {
        return;
    }
    let model = Model::open("bert");
    let texts = model.strings();
    let embedder = on_gpu(&model.folder, 0);
    let expected = embed(&embedder, &texts, Kind::Document);
    let gpu = embedder.device.gpu().unwrap();
    gpu.rehearse(&[Waited::ForOthers, Waited::ForOthers]);
    assert_eq!(embed(&embedder, &texts, Kind::Document), expected);
    gpu.rehearse(&[Waited::ForOthers, Waited::InVain]);
    let words = failure(&embedder, &texts);
    for part in ["has finished nothing for 600 s", "use cpu", &gpu.name()] {
        assert!(words.contains(part), "{words:?} lacks {part:?}");
    }
    assert_eq!(failure(&embedder, &texts), words);
}

#[test]
fn a_library_that_panics_when_a_device_is_lost_ends_the_run_by_an_error() {
    if !there_is_an_adapter() {
        return;
    }
    let model = Model::open("bert");
    let embedder = on_gpu(&model.folder, 0);
    embedder.device.gpu().unwrap().rehearse(&[Waited::Panicking]);
    let words = failure(&embedder, &model.strings());
    assert!(words.contains("was lost: the driver failed while it was waited for"), "{words}");
}

#[test]
fn an_adapter_too_small_for_the_window_is_refused_when_the_model_is_loaded() {
    if !there_is_an_adapter() {
        return;
    }
    let model = Model::open("bert");
    let folder = copy_with(&model.folder, "mean", "");
    let window = serde_json::json!({"max_seq_length": 256}); // of 512 positions
    fs::write(folder.path().join("sentence_bert_config.json"), window.to_string()).unwrap();
    let whole = on_gpu(folder.path(), 0);
    let row_bytes = whole.encoder.widest_row() * size_of::<f32>();
    let load = |is_hardware, n_rows: usize, device| {
        let binding_bytes_max = (n_rows * row_bytes) as u64;
        let load = || Embedder::load(folder.path(), &LoadOptions { device, ..options(0) });
        Pretence { is_hardware, binding_bytes_max, ..Pretence::NONE }.during(load)
    };
    let refused = load(false, 255, DeviceChoice::Gpu(Some(0))).unwrap_err().to_string();
    assert!(refused.starts_with("device gpu:0: "), "{refused}");
    let passed_over = load(true, 255, DeviceChoice::Auto).unwrap();
    assert!(passed_over.device.is_cpu());
    let bytes = format!("{row_bytes} bytes");
    let numbers = ["256 tokens", &bytes, "takes 255 such rows", "use cpu", &adapters()[0].name];
    for words in [refused, passed_over.device_remark().unwrap()] {
        assert!(numbers.iter().all(|part| words.contains(part)), "{words:?} lacks one of {numbers:?}");
    }
    let small = load(true, 400, DeviceChoice::Auto).unwrap();
    assert!(small.device.gpu().is_some(), "{:?}", small.device_remark());
    assert_eq!(small.late_windows(Some(400), None).unwrap().n_positions(), 400);
    let beyond = small.late_windows(Some(401), None).unwrap_err().to_string();
    assert!(beyond.ends_with("to 400"), "{beyond}");
    let texts = model.strings();
    assert_eq!(embed(&small, &texts, Kind::Document), embed(&whole, &texts, Kind::Document));
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
    assert!(gpu.arithmetic().ends_with(&gpu.device_name()), "{}", gpu.arithmetic());
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
    let expected = load(&folder, None).embed(&texts, Kind::Document).unwrap();
    for (precision, cosine_min) in [(Precision::F32, 0.999_999), (Precision::F16, 0.9999)] {
        let options = LoadOptions { precision, ..options(0) };
        let embedder = Embedder::load_with(&folder, &options, &Passed).unwrap();
        let together = embedder.embed(&texts, Kind::Document).unwrap();
        for ((ours, theirs), text) in together.iter().zip(&expected).zip(&texts) {
            let cosine = cosine(&ours.vector, &theirs.vector);
            eprintln!("{precision}: 1 - {:.1e}", 1.0 - cosine);
            assert!(cosine >= cosine_min, "{precision}: {cosine}");
            let alone = embedder.embed(std::slice::from_ref(text), Kind::Document).unwrap().remove(0);
            assert_eq!(alone.vector, ours.vector);
            if precision == Precision::F32 {
                check_close("a text", &ours.vector, &theirs.vector, TEXT_TOLERANCE);
            }
        }
    }
}
