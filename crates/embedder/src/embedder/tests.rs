//! The whole way from a folder to vectors, on the tiny model; on a real one where `CENTO_MODEL_DIR` names a folder with
//! it.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use super::*;

fn tiny() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny"))
}

fn load(folder: &Path, n_threads: usize, max_batch_tokens: usize) -> Embedder {
    let options =
        LoadOptions { device: DeviceChoice::Cpu, threads: n_threads, max_batch_tokens, ..LoadOptions::default() };
    Embedder::load(folder, &options).unwrap()
}

/// The real model's folder; says so where there is none.
fn real_model() -> Option<PathBuf> {
    let folder = std::env::var_os("CENTO_MODEL_DIR").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: CENTO_MODEL_DIR does not name a model folder");
    }
    folder
}

/// What sentence-transformers computed.
#[derive(Deserialize)]
struct Golden {
    text: String,
    n_tokens: u32,
    truncated: bool,
    vector: Vec<f32>,
}

#[track_caller]
fn check_golden(embedder: &Embedder, golden: &[Golden], tolerance: f32) {
    let texts: Vec<String> = golden.iter().map(|golden| golden.text.clone()).collect();
    let embeddings = embedder.embed(&texts, Kind::Document).unwrap();
    for (embedding, golden) in embeddings.iter().zip(golden) {
        assert_eq!((embedding.n_tokens, embedding.truncated), (golden.n_tokens, golden.truncated), "{:?}", golden.text);
        let differences = embedding.vector.iter().zip(&golden.vector).map(|(a, b)| (a - b).abs());
        let difference = differences.fold(0.0, f32::max);
        assert!(difference <= tolerance, "{:?} differs by {difference}", golden.text);
        let norm: f64 = embedding.vector.iter().map(|&value| f64::from(value).powi(2)).sum();
        assert!((norm - 1.0).abs() < 1e-6);
    }
}

#[test]
fn the_tiny_model_agrees_with_sentence_transformers() {
    let golden: Vec<Golden> = serde_json::from_slice(&fs::read(tiny().join("golden.json")).unwrap()).unwrap();
    assert_eq!(golden.len(), 12);
    check_golden(&load(&tiny(), 1, 0), &golden, 2e-6);
}

#[test]
fn all_minilm_l6_v2_agrees_with_sentence_transformers() {
    let Some(folder) = real_model() else { return };
    let embedder = load(&folder, 1, 0);
    if embedder.dimensions() != 384 || embedder.max_tokens() != 256 {
        eprintln!("skipped: CENTO_MODEL_DIR is not all-MiniLM-L6-v2");
        return;
    }
    let golden: Vec<Golden> = serde_json::from_str(include_str!("all-MiniLM-L6-v2.json")).unwrap();
    check_golden(&embedder, &golden, 2e-6);
}

/// Texts of many lengths, from nothing to beyond the window.
fn texts(n: usize, n_words_max: usize) -> Vec<String> {
    let words = ["the", "city", "of", "river", "words,", "unknowable", "日本", "2024", "e\u{301}", "😀"];
    let text =
        |i: usize| (0..i * n_words_max / n).map(|w| words[(i * 7 + w * w) % words.len()]).collect::<Vec<_>>().join(" ");
    (0..n).map(text).collect()
}

fn bits(embeddings: &[Embedding]) -> Vec<Vec<u32>> {
    embeddings.iter().map(|embedding| embedding.vector.iter().map(|value| value.to_bits()).collect()).collect()
}

/// One text alone, all together, in reverse, in batches of any size, on one thread and on three: the same bits.
#[track_caller]
fn check_invariance(folder: &Path, texts: &[String]) {
    let alone = load(folder, 1, 1);
    let expected: Vec<_> =
        texts.iter().flat_map(|text| bits(&alone.embed(std::slice::from_ref(text), Kind::Document).unwrap())).collect();
    for (n_threads, max_batch_tokens) in [(1, 0), (2, 0), (3, 300)] {
        let embedder = load(folder, n_threads, max_batch_tokens);
        assert_eq!(embedder.fingerprint(), alone.fingerprint());
        assert_eq!(bits(&embedder.embed(texts, Kind::Document).unwrap()), expected);
        let reversed: Vec<String> = texts.iter().rev().cloned().collect();
        let mut found = bits(&embedder.embed(&reversed, Kind::Document).unwrap());
        found.reverse();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_vector_depends_on_its_text_alone() {
    check_invariance(&tiny(), &texts(150, 150));
}

#[test]
fn a_real_vector_depends_on_its_text_alone() {
    let Some(folder) = real_model() else { return };
    check_invariance(&folder, &texts(30, 120));
}

#[test]
fn long_text_is_cut_and_says_so() {
    let embedder = load(&tiny(), 1, 0);
    let fitting = "the ".repeat(126);
    let longer = "the ".repeat(127);
    let very_long = "the ".repeat(3_000_000); // 12 MB
    let embeddings = embedder.embed(&[fitting, longer, very_long], Kind::Document).unwrap();
    let outcomes: Vec<_> = embeddings.iter().map(|embedding| (embedding.n_tokens, embedding.truncated)).collect();
    assert_eq!(outcomes, [(128, false), (128, true), (128, true)]);
    assert_eq!(embeddings[0].vector, embeddings[2].vector);
}

#[test]
fn no_texts_give_no_vectors() {
    assert_eq!(load(&tiny(), 2, 0).embed(&[], Kind::Query).unwrap(), []);
}

#[test]
fn the_face_of_the_tiny_model() {
    let embedder = load(&tiny(), 1, 0);
    assert_eq!((embedder.dimensions(), embedder.max_tokens(), embedder.n_special()), (32, 128, 2));
    assert_eq!((embedder.prompt(Kind::Query), embedder.prompt(Kind::Document)), ("", ""));
    assert_eq!(embedder.bytes_embedded("text", Kind::Document), "text");
    assert_eq!(embedder.fingerprint().len(), 64);
    assert!(embedder.device_name().starts_with("cpu"));
}

/// Collections name their encoder by it: one whose vectors became others must not pass for the one it was.
#[test]
fn int8_has_another_fingerprint_than_before_it_turned_rows() {
    let of = |precision| {
        let options = LoadOptions { device: DeviceChoice::Cpu, threads: 1, precision, ..LoadOptions::default() };
        let embedder = Embedder::load(&tiny(), &options).unwrap();
        (embedder.fingerprint().to_owned(), embedder.superseded_fingerprint().map(ToOwned::to_owned))
    };
    let before = "e05c35c85212270c87c402a0db0ec2df178eb233a3ab265980e88e2ec1d46977"; // as a build from then says it
    let (now, superseded) = of(Precision::Int8);
    assert_eq!(superseded.as_deref(), Some(before));
    assert_ne!(now, before);
    for precision in [Precision::F32, Precision::Bf16] {
        assert_eq!(of(precision).1, None, "{precision}");
    }
}

#[test]
fn jobs_keep_their_order_and_report_the_first_failure() {
    for n_threads in [1, 2, 5] {
        assert_eq!(in_parallel(n_threads, 20, |i| Ok(i * i)).unwrap(), (0..20).map(|i| i * i).collect::<Vec<_>>());
        let failing =
            |i: usize| if i % 7 == 3 { Err(Error::Vector { index: i, reason: "is not finite" }) } else { Ok(i) };
        assert!(matches!(in_parallel(n_threads, 20, failing), Err(Error::Vector { index: 3, .. })));
    }
}

#[test]
fn long_texts_are_left_at_the_signal() {
    let embedder = load(&tiny(), 1, 64);
    let texts: Vec<String> = (0..40).map(|n| format!("{n} ").repeat(200)).collect();
    let run = |signal: usize| {
        let n_looks = AtomicUsize::new(0);
        let stop = || n_looks.fetch_add(1, Ordering::Relaxed) >= signal;
        (embedder.embed_unless(&texts, Kind::Document, &stop), n_looks.into_inner())
    };
    let (all, n_looks) = run(usize::MAX);
    let n_layers = 2;
    assert_eq!(
        (all.unwrap().len(), n_looks),
        (40, 40 + 40 * n_layers),
        "a look before each text, and each layer of it"
    );
    for signal in [0, 7, 40, 41, 90, n_looks - 1] {
        let (stopped, n_looks) = run(signal);
        assert!(matches!(stopped, Err(Error::Cancelled)));
        assert_eq!(n_looks, signal + 1, "nothing is tokenized or computed behind it");
    }
    assert_eq!(embedder.embed(&texts[..1], Kind::Document).unwrap().len(), 1, "and it goes on for others");
}

#[test]
fn a_panic_among_the_layers_takes_nothing_from_those_who_come_after() {
    for n_threads in [1, 3] {
        let embedder = load(&tiny(), n_threads, 0);
        let text = ["The moon pulls the sea.".to_owned()];
        let before = embedder.embed(&text, Kind::Document).unwrap();
        let mut batch = Batch::new([(0, vec![1; 3])]);
        batch.is_alone = true;
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = embedder.with_hidden(&batch, &|| panic!("as a kernel might"), |_, _| ());
        }));
        assert!(ran.is_err());
        assert_eq!(embedder.embed(&text, Kind::Document).unwrap(), before);
        assert_eq!(embedder.team.lock().is_some(), n_threads > 1, "and as fast");
    }
}

/// Bits of f32 and int8 are those of every set of this processor: [`Embedder::arithmetic`] does not tell them apart.
/// Each set runs in a process of its own, as it is chosen once.
#[test]
fn what_one_arithmetic_computes_is_the_same_on_every_instruction_set() {
    const TOLD: &str = "CENTO_TEST_BITS";
    let folders = ["models/tiny", "models/parity/nomic-bert", "models/parity/modernbert", "models/parity/jina-bert-v2"];
    let texts = ["The moon pulls the sea.".to_owned(), "tide ".repeat(90), String::new()];
    if std::env::var_os(TOLD).is_some() {
        for (folder, precision) in folders.into_iter().flat_map(|folder| [(folder, 0), (folder, 1), (folder, 2)]) {
            let precision = [Precision::F32, Precision::Int8, Precision::Bf16][precision];
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
            let options = LoadOptions { device: DeviceChoice::Cpu, precision, ..LoadOptions::default() };
            let embedder = Embedder::load(&folder, &options).unwrap();
            let mut hasher = blake3::Hasher::new();
            for embedding in embedder.embed(&texts, Kind::Document).unwrap() {
                for value in &embedding.vector {
                    hasher.update(&value.to_le_bytes());
                }
            }
            println!("bits {} {precision} {} {}", folder.display(), embedder.arithmetic(), hasher.finalize());
        }
        return;
    }
    let bits = |set: &str| {
        let name = "embedder::tests::what_one_arithmetic_computes_is_the_same_on_every_instruction_set";
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        let told = test.args([name, "--exact", "--nocapture"]).env(TOLD, "1").env("CENTO_SIMD", set).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let lines = told.lines().filter_map(|line| line.split_once("bits ")).map(|(_, line)| line.to_owned());
        let lines: Vec<String> = lines.collect();
        assert_eq!(lines.len(), 3 * folders.len(), "{told}");
        lines
    };
    let mut known: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for set in ["portable", "avx2", "avx512", "bf16", "amx"] {
        for line in bits(set) {
            let (computed, bits) = line.rsplit_once(' ').unwrap();
            let first = known.entry(computed.to_owned()).or_insert_with(|| bits.to_owned());
            assert_eq!(first, bits, "{set}: {computed}");
        }
    }
}

#[test]
fn a_first_check_tells_rounding_from_another_model() {
    let load = |name: &str, precision| {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/parity")).join(name);
        let options = LoadOptions { device: DeviceChoice::Cpu, precision, ..LoadOptions::default() };
        Embedder::load(&folder, &options).unwrap()
    };
    let reference = load("bert", Precision::F32);
    let rounded = load("bert", Precision::Bf16);
    assert_eq!(rounded.first_check(&reference).unwrap(), None);
    assert_eq!(reference.first_check(&reference).unwrap(), None);
    let too_far = reference.first_check(&rounded).unwrap().expect("f32 is held to what f32 can do");
    assert!(too_far.ends_with("1e-4 is allowed"), "{too_far}");
    let another = rounded.first_check(&load("camembert", Precision::F32)).unwrap().expect("no rounding does that");
    assert!(another.contains("from the CPU's"), "{another}");
}
