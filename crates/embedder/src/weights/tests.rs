//! Files with one tensor or two, whole and damaged: what is read, and what is refused by which words.

use std::fs;
use std::io;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A file with that header and that many bytes of data.
fn file(header: &Value, data: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn entry(dtype: &str, shape: &[usize], begin: usize, end: usize) -> Value {
    json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, end]})
}

fn read(bytes: &[u8]) -> Result<Weights> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    fs::write(&path, bytes).unwrap();
    Ok(Weights::open(&path, &Device::Cpu, &AlwaysHashed)?.0)
}

#[track_caller]
fn refused(error: Result<impl Sized>, words: &[&str]) {
    let message = error.map(|_| ()).unwrap_err().to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message:?} lacks one of {words:?}");
}

#[test]
fn every_floating_point_type_becomes_f32() {
    let header = json!({
        "__metadata__": {"format": "pt"},
        "d": entry("F64", &[2], 0, 16), "f": entry("F32", &[1, 2], 16, 24),
        "h": entry("F16", &[2], 24, 28), "b": entry("BF16", &[2], 28, 32), "i": entry("I64", &[1], 32, 40),
    });
    let mut data = Vec::new();
    data.extend([1.5f64, -0.1].iter().flat_map(|value| value.to_le_bytes()));
    data.extend([1.5f32, -0.1].iter().flat_map(|value| value.to_le_bytes()));
    data.extend([0x3e00u16, 0x0001].iter().flat_map(|value| value.to_le_bytes())); // 1.5 and the smallest subnormal
    data.extend([0x3fc0u16, 0xbdcd].iter().flat_map(|value| value.to_le_bytes())); // 1.5, -0.10009766
    data.extend(7i64.to_le_bytes());
    let weights = read(&file(&header, &data)).unwrap();
    assert_eq!(weights.vector("d", [2]).unwrap(), [1.5, -0.1]);
    assert_eq!(weights.vector("f", [1, 2]).unwrap(), [1.5, -0.1]);
    assert_eq!(weights.vector("h", [2]).unwrap(), [1.5, 2f32.powi(-24)]);
    assert_eq!(weights.vector("b", [2]).unwrap(), [1.5, -0.100_097_656]);
    refused(weights.vector("i", [1]), &["tensor \"i\" has type I64", "F32, F16, BF16, F64"]);
}

#[test]
fn a_tensor_is_what_the_configuration_asks_for_or_an_error_that_names_it() {
    let header = json!({"a.x": entry("F32", &[2], 0, 8), "a.y": entry("F32", &[2], 8, 16)});
    let data: Vec<u8> = [1.0, 2.0, 3.0, f32::NAN].iter().flat_map(|value| value.to_le_bytes()).collect();
    let weights = read(&file(&header, &data)).unwrap().at("a");
    assert_eq!(weights.vector("x", [2]).unwrap(), [1.0, 2.0]);
    refused(weights.vector("z", [2]), &["model.safetensors", "no tensor \"a.z\""]);
    refused(weights.vector("x", [1, 2]), &["\"a.x\"", "shape [2]", "[1, 2]"]);
    refused(weights.vector("y", [2]), &["\"a.y\" has the value NaN at 1"]);
}

#[test]
fn tensors_that_nobody_asked_for_are_an_error_unless_they_are_known() {
    let names = ["bert.x", "bert.encoder.extra", "bert.pooler.dense.weight", "cls.predictions.bias", "other"];
    let header: Value = names.iter().enumerate().map(|(i, n)| ((*n).to_owned(), entry("U8", &[1], i, i + 1))).collect();
    let weights = read(&file(&header, &[0; 5])).unwrap().encoder(&["roberta", "bert"], "x");
    assert!(weights.has("x"));
    refused(weights.check_all_taken(), &["bert.encoder.extra, bert.x"]);
    let many: Value = (0..9).map(|i| (format!("t{i}"), entry("U8", &[1], i, i + 1))).collect();
    refused(read(&file(&many, &[0; 9])).unwrap().check_all_taken(), &["t0, t1, t2 and 6 more"]);
    let known: Value = ["lm_head.bias", "embeddings.position_ids", "rotary.inv_freq"]
        .iter()
        .enumerate()
        .map(|(i, n)| ((*n).to_owned(), entry("U8", &[1], i, i + 1)))
        .collect();
    read(&file(&known, &[0; 3])).unwrap().check_all_taken().unwrap();
}

#[test]
fn headers_that_lie_are_refused() {
    let one = |entry: Value| file(&json!({"x": entry}), &[0; 8]);
    refused(read(b""), &["too short for a header"]);
    refused(read(&u64::MAX.to_le_bytes()), &["18446744073709551615 bytes long"]);
    refused(read(&[&9u64.to_le_bytes()[..], b"{}"].concat()), &["9 bytes long"]);
    refused(read(&[&2u64.to_le_bytes()[..], b"[]"].concat()), &["not JSON"]);
    refused(read(&one(json!("F32"))), &["entry of \"x\""]);
    refused(read(&one(json!({"dtype": "F32", "shape": [2]}))), &["data_offsets"]);
    refused(read(&one(json!({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}))), &["entry of \"x\""]);
    refused(read(&one(json!({"dtype": "F32", "shape": [2], "data_offsets": [0, 1e99]}))), &["entry of \"x\""]);
    refused(read(&one(entry("F32", &[2], 8, 0))), &["bytes 8 to 0"]);
    refused(read(&one(entry("F32", &[2], 0, 16))), &["\"x\" has bytes 0 to 16 of the data, which are 8"]);
    refused(read(&one(entry("F32", &[2], usize::MAX - 7, usize::MAX))), &["of the data, which are 8"]);
    refused(read(&one(entry("F32", &[3], 0, 8))), &["shape [3] does not have 8 bytes"]);
    refused(read(&one(entry("F32", &[1 << 62, 16], 0, 8))), &["does not have 8 bytes"]);
    refused(read(&one(entry("F32", &[usize::MAX, usize::MAX], 0, 8))), &["does not have 8 bytes"]);
    refused(read(&one(entry("F32", &[1], 0, 4))), &["4 bytes belong to no tensor"]);
    refused(read(&one(entry("F32", &[1], 4, 8))), &["does not follow"]);
    let two = |a, b| file(&json!({"a": a, "b": b}), &[0; 8]);
    refused(read(&two(entry("F32", &[2], 0, 8), entry("F32", &[1], 4, 8))), &["\"b\" overlaps"]);
    refused(read(b"version https://git-lfs.github.com/spec/v1\n"), &["Git LFS pointer"]);
}

/// A folder of shards as transformers writes them: `x` in the first file, `y` in the second.
fn shards() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let shard = |tensor: &str, value: f32| file(&json!({tensor: entry("F32", &[1], 0, 4)}), &value.to_le_bytes());
    fs::write(folder.path().join("model-00001-of-00002.safetensors"), shard("x", 1.0)).unwrap();
    fs::write(folder.path().join("model-00002-of-00002.safetensors"), shard("y", 2.0)).unwrap();
    index(&folder, &json!({"x": "model-00001-of-00002.safetensors", "y": "model-00002-of-00002.safetensors"}));
    folder
}

fn index(folder: &tempfile::TempDir, map: &Value) {
    let index = json!({"metadata": {"total_size": 8}, "weight_map": map});
    fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
}

fn read_folder(folder: &tempfile::TempDir) -> Result<(Weights, blake3::Hash)> {
    Weights::open(&folder.path().join("model.safetensors"), &Device::Cpu, &AlwaysHashed)
}

#[test]
fn weights_that_are_written_to_while_they_are_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    fs::write(&path, file(&json!({"x": entry("F32", &[1], 0, 4)}), &1f32.to_le_bytes())).unwrap();
    let weights = read_folder(&folder).unwrap().0;
    weights.vector("x", [1]).unwrap();
    weights.check_all_taken().unwrap();
    fs::OpenOptions::new().append(true).open(&path).unwrap().set_len(1000).unwrap();
    refused(weights.check_all_taken(), &["model.safetensors", "was written to while it was read"]);
}

#[test]
fn a_hash_that_is_known_is_not_worked_out() {
    struct Known;
    impl WeightHashes for Known {
        fn of(&self, _: &Path, _: &fs::File, _: &mut dyn FnMut() -> io::Result<[u8; 32]>) -> io::Result<[u8; 32]> {
            Ok([7; 32])
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    fs::write(&path, file(&json!({"x": entry("F32", &[1], 0, 4)}), &1f32.to_le_bytes())).unwrap();
    let (weights, hash) = Weights::open(&path, &Device::Cpu, &Known).unwrap();
    assert_eq!((hash, weights.vector("x", [1]).unwrap()), (blake3::Hash::from_bytes([7; 32]), vec![1.0]));
    assert_eq!(read_folder(&folder).unwrap().1, blake3::hash(&fs::read(&path).unwrap()));
}

#[test]
fn shards_are_one_model() {
    let folder = shards();
    let (weights, hash) = read_folder(&folder).unwrap();
    assert_eq!((weights.vector("x", [1]).unwrap(), weights.vector("y", [1]).unwrap()), (vec![1.0], vec![2.0]));
    let second = folder.path().join("model-00002-of-00002.safetensors");
    let mut bytes = fs::read(&second).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&second, bytes).unwrap();
    assert_ne!(read_folder(&folder).unwrap().1, hash);
}

#[test]
fn an_index_that_does_not_fit_its_files_is_refused() {
    let folder = shards();
    index(&folder, &json!({"x": "model-00002-of-00002.safetensors", "y": "model-00001-of-00002.safetensors"}));
    refused(read_folder(&folder), &["index.json", "\"x\" is in model-00002-of-00002.safetensors, where it is not"]);
    index(&folder, &json!({"x": "model-00001-of-00002.safetensors", "z": "model-00002-of-00002.safetensors"}));
    refused(read_folder(&folder), &["\"z\""]);
    index(&folder, &json!({"x": "nowhere.safetensors"}));
    refused(read_folder(&folder), &["nowhere.safetensors: not found", "all files of its weights"]);
    for outside in ["../model.safetensors", "/etc/passwd", "a/b", ".."] {
        index(&folder, &json!({ "x": outside }));
        refused(read_folder(&folder), &["not a file of its own folder", outside]);
    }
    let folder = shards();
    let first = folder.path().join("model-00001-of-00002.safetensors");
    fs::copy(&first, folder.path().join("model-00002-of-00002.safetensors")).unwrap();
    refused(read_folder(&folder), &["tensor \"x\" is also in"]);
}

#[test]
fn pickled_weights_are_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    refused(read_folder(&folder), &["model.safetensors: not found", "model.safetensors.index.json"]);
    fs::write(folder.path().join("pytorch_model.bin"), b"\x80\x02}q\x00.").unwrap();
    refused(read_folder(&folder), &["pytorch_model.bin", "\"pickle\" is not supported", "safe_serialization=True"]);
}

proptest! {
    /// Whatever the bytes are, the answer is a list of tensors within the file, or an error.
    #[test]
    fn damaged_bytes_never_panic(at in 0usize..200, byte: u8, cut in 0usize..200) {
        let header = json!({"x": entry("F32", &[2, 3], 0, 24), "y": entry("F16", &[4], 24, 32)});
        let mut bytes = file(&header, &[7; 32]);
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len().saturating_sub(cut / 4));
        if let Ok(tensors) = header::parse(&header::read(&bytes[..]).unwrap(), bytes.len()) {
            prop_assert!(tensors.values().all(|info| info.bytes.end <= bytes.len()));
        }
    }
}
