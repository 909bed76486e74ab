//! The accelerator's way from texts to vectors, on the emulated device, against the CPU's.

use std::cell::RefCell;
use std::path::PathBuf;

use super::*;
use crate::cross::CrossEncoder;
use crate::device::DeviceChoice;
use crate::embedder::LoadOptions;
use crate::encoder::stop::NEVER;
use crate::kernels::cuda::emulation;
use crate::precision::Precision;

fn tiny() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny"))
}

fn load(precision: Precision, max_batch_tokens: usize) -> Embedder {
    let options = LoadOptions { device: DeviceChoice::Cpu, precision, threads: 3, max_batch_tokens, dimensions: None };
    Embedder::load(&tiny(), &options).unwrap()
}

/// Texts of one to some hundred words.
fn texts(n: usize) -> Vec<String> {
    let words = ["bread", "the", "price of", "a long walk", "Tide!", "ß", "moon"];
    let text =
        |i: usize| (0..1 + i * i % 97).map(|word| words[(i + word * word) % words.len()]).collect::<Vec<_>>().join(" ");
    (0..n).map(text).collect()
}

/// The folders of small models, one of each architecture: of encoders, or of cross-encoders.
fn architectures(crossed: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity"));
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_wanted = |folder: &PathBuf| match crossed {
        "crossed" => folder.file_name().unwrap().to_string_lossy().starts_with("cross-"),
        _ => folder.join("1_Pooling").exists(), // tables of static vectors have no kernels
    };
    let mut models: Vec<PathBuf> = folders.filter(is_wanted).collect();
    models.sort();
    models
}

#[test]
fn every_cross_encoder_computes_the_same_by_kernels() {
    let texts = texts(8);
    let pairs: Vec<(String, String)> = texts.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let options = LoadOptions { device: DeviceChoice::Cpu, ..LoadOptions::default() };
    let score = |folder: &PathBuf| CrossEncoder::load(folder, &options).unwrap().score(&pairs).unwrap();
    assert!(architectures("crossed").len() >= 5);
    for folder in architectures("crossed") {
        let expected = score(&folder);
        emulation::with(|| {
            for (ours, theirs) in score(&folder).iter().zip(&expected) {
                assert!((ours - theirs).abs() <= 1e-4, "{}: {ours}, {theirs} on the CPU", folder.display());
            }
        });
    }
}

#[test]
fn every_architecture_computes_the_same_by_kernels() {
    let texts = texts(6);
    let load = |folder: &PathBuf, precision| {
        let options = LoadOptions { device: DeviceChoice::Cpu, precision, threads: 2, ..LoadOptions::default() };
        Embedder::load(folder, &options).unwrap()
    };
    assert!(architectures("alone").len() >= 10);
    for folder in architectures("alone") {
        let expected = load(&folder, Precision::F32).embed(&texts, Kind::Query).unwrap();
        emulation::with(|| {
            for (precision, difference_max) in [(Precision::F32, 2e-5), (Precision::Bf16, 0.05)] {
                let ours = load(&folder, precision).embed(&texts, Kind::Query).unwrap();
                for (ours, theirs) in ours.iter().zip(&expected) {
                    let differences = ours.vector.iter().zip(&theirs.vector).map(|(a, b)| (a - b).abs());
                    let difference = differences.fold(0.0, f32::max);
                    assert!(difference <= difference_max, "{}, {precision}: {difference}", folder.display());
                }
            }
        });
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn vectors_are_those_of_the_cpu_whatever_shares_a_batch() {
    let texts = texts(9);
    let expected = load(Precision::F32, 0).embed(&texts, Kind::Document).unwrap();
    emulation::with(|| {
        for (precision, max_batch_tokens, cosine_min) in
            [(Precision::F32, 150, 0.999_999), (Precision::Bf16, 100, 0.9999), (Precision::F16, 0, 0.9999)]
        {
            let embeddings = load(precision, max_batch_tokens).embed(&texts, Kind::Document).unwrap();
            for (ours, theirs) in embeddings.iter().zip(&expected) {
                assert_eq!((ours.n_tokens, ours.truncated), (theirs.n_tokens, theirs.truncated));
                let cosine = cosine(&ours.vector, &theirs.vector);
                assert!(cosine > cosine_min, "{precision}: {cosine}");
            }
        }
    });
}

#[test]
fn pieces_come_in_order_and_the_first_failure_ends_it() {
    let embedder = load(Precision::F32, 0);
    let texts: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let mut taken = Vec::new();
    let take = |all: &mut dyn Iterator<Item = Encoded>| {
        taken.extend(all.map(|text| text.ids));
        Ok(())
    };
    embedder.tokenize(&texts, Kind::Document, NEVER, take).unwrap();
    let expected = texts.iter().map(|text| embedder.encode("", text).unwrap().ids);
    assert!(taken.into_iter().eq(expected));
    let none = |all: &mut dyn Iterator<Item = Encoded>| {
        assert!(all.next().is_none());
        Ok(())
    };
    embedder.tokenize(&[], Kind::Document, NEVER, none).unwrap();
    let stop = |all: &mut dyn Iterator<Item = Encoded>| match all.nth(100) {
        Some(_) => Err(Error::Vector { index: 100, reason: "has length zero" }), // with the threads still at work
        None => Ok(()),
    };
    assert!(matches!(embedder.tokenize(&texts, Kind::Document, NEVER, stop), Err(Error::Vector { index: 100, .. })));
}

/// A device that has memory for so many tokens, and for nothing beside them.
fn flights(lengths: &[usize], budget: usize, n_tokens_max: usize) -> (Result<()>, Vec<usize>, usize) {
    let (landed, n_halved, n_used) = (RefCell::new(Vec::new()), AtomicUsize::new(0), RefCell::new(0));
    let start = |batch: &Batch| {
        if *n_used.borrow() + batch.ids.len() > n_tokens_max {
            return Err(
                candle_core::Error::Msg("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")".to_owned()).into()
            );
        }
        *n_used.borrow_mut() += batch.ids.len();
        let texts =
            batch.inputs.iter().zip(batch.spans.iter()).map(|(&input, span)| (input, span.len() as u32)).collect();
        Ok(Flying { texts, vectors: Vectors::Here(Vec::new()) })
    };
    let land = |flying: Flying| {
        for (input, n_tokens) in flying.texts {
            landed.borrow_mut().push(input);
            *n_used.borrow_mut() -= n_tokens as usize;
        }
        Ok(())
    };
    let mut flight = Flight { start, land, budget, n_halved: &n_halved, flying: VecDeque::new() };
    let batch = |texts: &[(usize, &usize)]| Batch::new(texts.iter().map(|&(input, &length)| (input, vec![0; length])));
    let texts: Vec<(usize, &usize)> = lengths.iter().enumerate().collect();
    let result = texts.chunks(8).try_for_each(|texts| flight.push(&batch(texts))).and_then(|()| flight.finish());
    drop(flight);
    (result, landed.into_inner(), n_halved.into_inner())
}

#[test]
fn where_memory_is_full_batches_are_halved_down_to_one_text() {
    let lengths = [5, 9, 2, 7, 7, 1, 8, 30, 4, 4, 4, 4, 4, 4, 4, 4];
    let all: Vec<usize> = (0..lengths.len()).collect();
    for n_tokens_max in [30, 31, 40, 64, 100, 101] {
        let (result, landed, n_halved) = flights(&lengths, 100, n_tokens_max);
        result.unwrap();
        assert_eq!(landed, all, "memory for {n_tokens_max}");
        assert_eq!(n_halved > 0, n_tokens_max < 101, "memory for {n_tokens_max}: halved {n_halved} times");
    }
    let (result, landed, _) = flights(&lengths, 100, 29);
    assert!(result.unwrap_err().is_out_of_memory(), "the text of 30 tokens cannot be computed");
    assert_eq!(landed, all[..7]);
}

#[test]
fn other_errors_are_not_taken_for_full_memory() {
    let error = |reason: &str| Error::from(candle_core::Error::Msg(reason.to_owned()));
    assert!(error("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")").is_out_of_memory());
    assert!(error("CUBLAS_STATUS_ALLOC_FAILED").is_out_of_memory());
    assert!(!error("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS)").is_out_of_memory());
}
