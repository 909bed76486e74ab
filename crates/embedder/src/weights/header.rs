//! The header of a safetensors file: which tensors, of what type and shape, at which bytes. Nothing in it is believed.
//!
//! Source: the format of safetensors 0.8: eight bytes with the header's length, the header as JSON, then the tensors'
//! bytes without gaps or overlaps.
//! Differs: every error names the tensor; no number is added, multiplied or allocated before it is held against the
//! file.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;

/// Headers are a few hundred bytes a tensor; the reference refuses what is longer, too.
const HEADER_BYTES_MAX: u64 = 100_000_000;
/// Bytes that hold the header's length.
const LENGTH_BYTES: usize = 8;

/// One tensor of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TensorInfo {
    /// As the file names it: `F32`, `BF16`, ...
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    /// Its bytes in the file.
    pub(super) bytes: Range<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// The first bytes of a file, as far as its header goes.
pub(super) fn read(mut file: impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.by_ref().take(LENGTH_BYTES as u64).read_to_end(&mut head)?;
    if let Some(length) = head.first_chunk() {
        let length = u64::from_le_bytes(*length).min(HEADER_BYTES_MAX);
        file.take(length).read_to_end(&mut head)?;
    }
    Ok(head)
}

/// The tensors by name of a file of `n_bytes` that begins with `head`, or what is wrong with its header.
pub(super) fn parse(head: &[u8], n_bytes: usize) -> Result<BTreeMap<String, TensorInfo>, String> {
    if head.starts_with(b"version https://git-lfs") {
        return Err("is a Git LFS pointer, not the weights; fetch the file itself (`git lfs pull`)".to_owned());
    }
    let incomplete = |reason: String| format!("not a complete safetensors file ({n_bytes} bytes): {reason}");
    let Some((length, rest)) = head.split_first_chunk::<LENGTH_BYTES>() else {
        return Err(incomplete("too short for a header".to_owned()));
    };
    let length = u64::from_le_bytes(*length);
    let header = usize::try_from(length).ok().filter(|_| length <= HEADER_BYTES_MAX).and_then(|n| rest.get(..n));
    let (Some(header), Some(n_data)) = (header, n_bytes.checked_sub(LENGTH_BYTES + header.map_or(0, <[u8]>::len)))
    else {
        return Err(incomplete(format!("its header says it is {length} bytes long")));
    };
    let start = n_bytes - n_data;
    let entries: BTreeMap<String, Value> =
        serde_json::from_slice(header).map_err(|error| incomplete(format!("its header is not JSON: {error}")))?;
    let mut tensors = BTreeMap::new();
    for (name, entry) in entries {
        if name == "__metadata__" {
            continue;
        }
        let entry = Entry::deserialize(entry).map_err(|error| format!("the header's entry of {name:?}: {error}"))?;
        let info = check(&entry, start, n_data).map_err(|reason| format!("tensor {name:?} {reason}"))?;
        tensors.insert(name, info);
    }
    check_cover(&tensors, start, n_bytes).map_err(incomplete)?;
    Ok(tensors)
}

/// The entry's bytes in a file whose `n_data` bytes of data begin at `start`.
fn check(entry: &Entry, start: usize, n_data: usize) -> Result<TensorInfo, String> {
    let (begin, end) = entry.data_offsets;
    if begin > end || end > n_data {
        return Err(format!("has bytes {begin} to {end} of the data, which are {n_data}"));
    }
    let n_values = entry.shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    let n_needed = match n_bits(&entry.dtype) {
        Some(n_bits) => n_values.and_then(|n| n.checked_mul(n_bits)).map(|n_bits| n_bits / 8),
        None => Some(end - begin), // of a type that is never computed with
    };
    if n_needed != Some(end - begin) {
        let Entry { dtype, shape, .. } = entry;
        return Err(format!("of type {dtype} and shape {shape:?} does not have {} bytes", end - begin));
    }
    Ok(TensorInfo { dtype: entry.dtype.clone(), shape: entry.shape.clone(), bytes: start + begin..start + end })
}

/// Tensors lie one after the other, from the header to the end of the file.
fn check_cover(tensors: &BTreeMap<String, TensorInfo>, start: usize, end: usize) -> Result<(), String> {
    let mut by_place: Vec<_> = tensors.iter().collect();
    by_place.sort_by_key(|(_, info)| (info.bytes.start, info.bytes.end));
    let mut at = start;
    for (name, info) in by_place {
        if info.bytes.start != at {
            let reason = if info.bytes.start < at { "overlaps another" } else { "does not follow the one before it" };
            return Err(format!("tensor {name:?} {reason}"));
        }
        at = info.bytes.end;
    }
    if at == end { Ok(()) } else { Err(format!("{} bytes belong to no tensor", end - at)) }
}

/// Size of one value; nothing for types this version does not know.
fn n_bits(dtype: &str) -> Option<usize> {
    match dtype {
        "F64" | "I64" | "U64" | "C64" => Some(64),
        "F32" | "I32" | "U32" => Some(32),
        "F16" | "BF16" | "I16" | "U16" => Some(16),
        "I8" | "U8" | "BOOL" => Some(8),
        _ => None,
    }
}
