//! The files that hold a model's tensors: one safetensors file, or several with an index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use candle_core::{DType, Device, Tensor};
use parking_lot::Mutex;
use serde::Deserialize;

use super::hashes::WeightHashes;
use super::header::{self, TensorInfo};
use crate::error::{Error, Result};
use crate::tokens::bounded::read_bounded;

/// Values that are looked at together.
const LOT_VALUES: usize = 4096;

/// Tensors by their names, and the open files they are read from.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// The file itself, or the index of several.
    pub(super) path: PathBuf,
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    file: Mutex<File>,
    /// Size and time of change when the file was opened.
    opened: (u64, Option<SystemTime>),
}

#[derive(Debug)]
struct Entry {
    shard: usize,
    info: TensorInfo,
    /// True if a layer has asked for it.
    taken: AtomicBool,
}

/// `model.safetensors.index.json`.
#[derive(Deserialize)]
struct Index {
    /// The file of each tensor.
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Opens `path` (`model.safetensors`) or, where it is not, the files that the index beside it names. The second
    /// result is the BLAKE3 hash of the file's bytes; of several files, of their hashes in the order of their names.
    pub(super) fn open(path: &Path, hashes: &dyn WeightHashes) -> Result<(Self, blake3::Hash)> {
        if path.exists() {
            let mut checkpoint = Self { path: path.to_owned(), shards: Vec::new(), tensors: BTreeMap::new() };
            let hash = checkpoint.add(path, hashes)?;
            return Ok((checkpoint, hash));
        }
        let index_path = path.with_extension("safetensors.index.json");
        match read_bounded(&index_path) {
            Ok(bytes) => Self::open_shards(index_path, &bytes, hashes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(no_safetensors(path)),
            Err(source) => Err(Error::Io { path: index_path, source }),
        }
    }

    fn open_shards(path: PathBuf, index: &[u8], hashes: &dyn WeightHashes) -> Result<(Self, blake3::Hash)> {
        let damaged = |reason: String| Error::Damaged { path: path.clone(), reason };
        let index: Index = serde_json::from_slice(index).map_err(|error| damaged(error.to_string()))?;
        let names: BTreeSet<&String> = index.weight_map.values().collect();
        if let Some(name) = names.iter().find(|name| Path::new(name).file_name() != Some(name.as_ref())) {
            return Err(damaged(format!("names {name:?}, which is not a file of its own folder")));
        }
        let mut checkpoint = Self { path: path.clone(), shards: Vec::new(), tensors: BTreeMap::new() };
        let mut hasher = blake3::Hasher::new();
        for name in &names {
            hasher.update(checkpoint.add(&path.with_file_name(name), hashes)?.as_bytes());
        }
        for (tensor, file) in &index.weight_map {
            let shard = checkpoint.tensors.get(tensor).map(|entry| &checkpoint.shards[entry.shard].path);
            if shard != Some(&path.with_file_name(file)) {
                return Err(damaged(format!("says that tensor {tensor:?} is in {file}, where it is not")));
            }
        }
        Ok((checkpoint, hasher.finalize()))
    }

    /// Adds the tensors of a file.
    fn add(&mut self, path: &Path, hashes: &dyn WeightHashes) -> Result<blake3::Hash> {
        let unreadable = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => Error::Missing { path: path.to_owned(), purpose: "all files of its weights" },
            _ => Error::Io { path: path.to_owned(), source },
        };
        let mut file = File::open(path).map_err(unreadable)?;
        let opened = size_and_time(&file).map_err(unreadable)?;
        let hash = hashes.of(path, &file, &mut || hash(&file)).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let head = header::read(&file).map_err(unreadable)?;
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        let n_bytes = usize::try_from(opened.0).map_err(|error| damaged(error.to_string()))?;
        let tensors = header::parse(&head, n_bytes).map_err(damaged)?;
        for (name, info) in tensors {
            let entry = Entry { shard: self.shards.len(), info, taken: AtomicBool::new(false) };
            if let Some(other) = self.tensors.insert(name.clone(), entry) {
                let other = self.shards[other.shard].path.display();
                return Err(damaged(format!("tensor {name:?} is also in {other}")));
            }
        }
        self.shards.push(Shard { path: path.to_owned(), file: Mutex::new(file), opened });
        Ok(blake3::Hash::from_bytes(hash))
    }

    /// Holds the files against what they were when they were opened.
    ///
    /// # Errors
    /// If one was written to since: its hash may be that of other tensors.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        for Shard { path, file, opened } in &self.shards {
            let file = file.lock();
            let now = size_and_time(&file).map_err(|source| Error::Io { path: path.clone(), source })?;
            if now != *opened {
                let reason = "was written to while it was read; load the model again".to_owned();
                return Err(Error::Damaged { path: path.clone(), reason });
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The values of a tensor of that shape, as f32.
    pub(super) fn take(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let (shard, TensorInfo { dtype, bytes: range, .. }) = self.find(name, shape)?;
        let damaged = |reason: String| shard.damaged(name, &reason);
        let Some(values) = shard.read(range, dtype)? else {
            return Err(damaged(format!("has type {dtype}; supported: F32, F16, BF16, F64")));
        };
        // Lot by lot, each to its end: the compiler looks at many values at once.
        let is_finite = |lot: &[f32]| lot.iter().fold(true, |all, value| all & value.is_finite());
        let lot = values.chunks(LOT_VALUES).position(|lot| !is_finite(lot));
        match lot.and_then(|lot| (lot * LOT_VALUES..values.len()).find(|&at| !values[at].is_finite())) {
            None => Ok(values),
            Some(at) => Err(damaged(format!("has the value {} at {at}", values[at]))),
        }
    }

    /// The type of a tensor of that shape, and its bytes.
    pub(super) fn take_bytes(&self, name: &str, shape: &[usize]) -> Result<(String, Vec<u8>)> {
        let (shard, TensorInfo { dtype, bytes: range, .. }) = self.find(name, shape)?;
        let mut bytes = vec![0; range.len()];
        shard.fill(range.start, &mut bytes)?;
        Ok((dtype.clone(), bytes))
    }

    /// The type of a tensor, where it is there.
    pub(super) fn dtype(&self, name: &str) -> Option<&str> {
        self.tensors.get(name).map(|entry| entry.info.dtype.as_str())
    }

    /// A tensor of that shape, which counts as taken, and the file it is in.
    fn find(&self, name: &str, shape: &[usize]) -> Result<(&Shard, &TensorInfo)> {
        let Some(entry) = self.tensors.get(name) else {
            return Err(Error::Damaged { path: self.path.clone(), reason: format!("has no tensor {name:?}") });
        };
        entry.taken.store(true, Ordering::Relaxed);
        let (shard, found) = (&self.shards[entry.shard], &entry.info.shape);
        match found == shape {
            true => Ok((shard, &entry.info)),
            false => {
                let reason = format!("has shape {found:?} where the configuration asks for {shape:?}");
                Err(shard.damaged(name, &reason))
            }
        }
    }

    /// Names of tensors that begin with `prefix` and that no layer has asked for, ascending.
    pub(super) fn left(&self, prefix: &str) -> Vec<&str> {
        let of_prefix = self.tensors.iter().filter(|(name, _)| name.starts_with(prefix));
        of_prefix.filter(|(_, entry)| !entry.taken.load(Ordering::Relaxed)).map(|(name, _)| name.as_str()).collect()
    }
}

/// Says what lies in the folder instead of `path`.
pub(super) fn no_safetensors(path: &Path) -> Error {
    let pickled = ["pytorch_model.bin", "pytorch_model.bin.index.json"].map(|name| path.with_file_name(name));
    match pickled.into_iter().find(|path| path.exists()) {
        Some(path) => Error::Unsupported {
            path,
            what: "format of weights",
            name: "pickle".to_owned(),
            supported: "safetensors: pickled files can run code when they are read; load the model where you trust it \
                        and save it again with `model.save_pretrained(folder, safe_serialization=True)`",
        },
        None => Error::Missing {
            path: path.to_owned(),
            purpose: "the weights in one safetensors file, or in several with model.safetensors.index.json",
        },
    }
}

/// The shape of each tensor of the file at `path`, by the tensors' names; nothing where there is no file.
pub(super) fn shapes(path: &Path) -> Result<Option<BTreeMap<String, Vec<usize>>>> {
    let unreadable = |source: io::Error| Error::Io { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(unreadable(source)),
    };
    let n_bytes = size_and_time(&file).map_err(unreadable)?.0;
    let head = header::read(&file).map_err(unreadable)?;
    let damaged = |reason: String| Error::Damaged { path: path.to_owned(), reason };
    let n_bytes = usize::try_from(n_bytes).map_err(|error| damaged(error.to_string()))?;
    let tensors = header::parse(&head, n_bytes).map_err(damaged)?;
    Ok(Some(tensors.into_iter().map(|(name, info)| (name, info.shape)).collect()))
}

impl Shard {
    fn damaged(&self, tensor: &str, reason: &str) -> Error {
        Error::Damaged { path: self.path.clone(), reason: format!("tensor {tensor:?} {reason}") }
    }

    /// The values of a tensor, straight to where they stay; nothing where the type is not one of floating-point
    /// numbers.
    fn read(&self, range: &Range<usize>, dtype: &str) -> Result<Option<Vec<f32>>> {
        if dtype == "F32" {
            let mut values = vec![0f32; range.len() / size_of::<f32>()];
            self.fill(range.start, bytemuck::cast_slice_mut(&mut values))?;
            values.iter_mut().for_each(|value| *value = f32::from_bits(u32::from_le(value.to_bits())));
            return Ok(Some(values));
        }
        let mut bytes = vec![0; range.len()];
        self.fill(range.start, &mut bytes)?;
        widen(&bytes, dtype)
    }

    fn fill(&self, start: usize, bytes: &mut [u8]) -> Result<()> {
        let mut file = self.file.lock(); // the place is sought anew each time
        let filled = file.seek(SeekFrom::Start(start as u64)).and_then(|_| file.read_exact(bytes));
        filled.map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

/// The values of little-endian `bytes`; nothing where the type is not one of floating-point numbers.
fn widen(bytes: &[u8], dtype: &str) -> Result<Option<Vec<f32>>> {
    let small = |dtype: DType, n_bytes: usize| -> Result<Vec<f32>> {
        let tensor = Tensor::from_raw_buffer(bytes, dtype, &[bytes.len() / n_bytes], &Device::Cpu)?;
        Ok(tensor.to_dtype(DType::F32)?.to_vec1()?)
    };
    Ok(Some(match dtype {
        "F64" => bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes) as f32).collect(),
        "F16" => small(DType::F16, 2)?,
        "BF16" => small(DType::BF16, 2)?,
        _ => return Ok(None),
    }))
}

/// BLAKE3 of a file from its start.
fn hash(mut file: &File) -> io::Result<[u8; 32]> {
    file.rewind()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(hasher.finalize().into())
}

fn size_and_time(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}
