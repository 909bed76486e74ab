//! What the tests of this crate share: seeded numbers, vectors in clusters, files in a folder that goes away.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use half::f16;
use half::slice::HalfFloatSliceExt;
use tempfile::TempDir;

use crate::file::Mapped;
use crate::{Kernel, Rows, Scalar, write_rows};

/// SplitMix64: small, seeded, the same everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// In `[-1, 1)`.
    pub(crate) fn signed(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// A unit vector.
    pub(crate) fn unit(&mut self, dimensions: usize) -> Vec<f32> {
        normalized((0..dimensions).map(|_| self.signed()).collect())
    }
}

pub(crate) fn normalized(mut vector: Vec<f32>) -> Vec<f32> {
    let norm = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt() as f32;
    vector.iter_mut().for_each(|x| *x /= norm);
    vector
}

/// Unit vectors around `n_clusters` centres, in random order of the clusters.
pub(crate) fn clustered(seed: u64, n_rows: usize, dimensions: usize, n_clusters: usize) -> Vec<Vec<f32>> {
    let mut random = Random::new(seed);
    let centers: Vec<Vec<f32>> = (0..n_clusters).map(|_| random.unit(dimensions)).collect();
    (0..n_rows)
        .map(|_| {
            let center = &centers[random.below(n_clusters)];
            let noise = random.unit(dimensions);
            normalized(center.iter().zip(&noise).map(|(c, n)| c + 0.4 * n).collect())
        })
        .collect()
}

/// A folder for the files of one test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes rows to a file and opens it.
    pub(crate) fn rows(&self, name: &str, vectors: &[Vec<f32>], dimensions: usize, scalar: Scalar) -> Rows {
        self.rows_by(name, vectors, dimensions, scalar, Kernel::active().expect("a path of this machine"))
    }

    pub(crate) fn rows_by(
        &self,
        name: &str,
        vectors: &[Vec<f32>],
        dimensions: usize,
        scalar: Scalar,
        kernel: Kernel,
    ) -> Rows {
        let path = self.path(name);
        let out = fs_err::File::create(&path).expect("a file");
        write_rows(out, dimensions, scalar, vectors.iter().map(Vec::as_slice)).expect("rows are written");
        Rows::with_kernel(Mapped::open(&path, scalar.kind()).expect("the file opens"), kernel).expect("rows open")
    }
}

/// Changes bits of one byte of a file that nobody has mapped. Doing it again undoes it.
pub(crate) fn flip(path: &std::path::Path, at: usize, bits: u8) {
    let mut file = fs_err::OpenOptions::new().read(true).write(true).open(path).expect("a file");
    let mut byte = [0];
    file.seek(SeekFrom::Start(at as u64)).and_then(|_| file.read_exact(&mut byte)).expect("the byte is there");
    file.seek(SeekFrom::Start(at as u64)).and_then(|_| file.write_all(&[byte[0] ^ bits])).expect("it can be written");
}

/// Runs in a rayon pool of its own.
pub(crate) fn in_pool<T: Send>(n_threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("a pool").install(run)
}

/// Vectors of a real model, split into a base and queries, with the nearest 100 rows of the base of each query.
pub(crate) struct Split {
    pub(crate) base: Vec<Vec<f32>>,
    pub(crate) queries: Vec<Vec<f32>>,
    pub(crate) neighbors: Vec<Vec<u32>>,
}

/// The set `bge_base_vectors` of the evaluation data, if the environment says where that is.
pub(crate) fn bge_split() -> Option<Split> {
    let Some(data) = std::env::var_os("CENTO_DATA") else {
        println!("skipped: CENTO_DATA is not set, it names the folder of the evaluation data");
        return None;
    };
    let folder = PathBuf::from(data).join("bge_base_vectors");
    let (values, dimensions) = npy(&fs_err::read(folder.join("vectors.npy")).expect("vectors.npy"));
    let values: Vec<f16> = bytemuck::pod_collect_to_vec(&values);
    let mut archive =
        zip::ZipArchive::new(fs_err::File::open(folder.join("split.npz")).expect("split.npz")).expect("zip");
    let mut part = |name: &str| {
        let mut bytes = Vec::new();
        archive.by_name(name).expect("a part of the split").read_to_end(&mut bytes).expect("inflates");
        let (values, columns) = npy(&bytes);
        (bytemuck::pod_collect_to_vec::<u8, u32>(&values), columns)
    };
    let row = |row: &u32| {
        let start = *row as usize * dimensions;
        normalized(values[start..start + dimensions].to_f32_vec())
    };
    let base = part("base_rows.npy").0.iter().map(row).collect();
    let queries = part("query_rows.npy").0.iter().map(row).collect();
    let (neighbors, k) = part("neighbours.npy");
    Some(Split { base, queries, neighbors: neighbors.chunks(k).map(<[u32]>::to_vec).collect() })
}

/// The values of a .npy file and the length of its last axis.
fn npy(bytes: &[u8]) -> (Vec<u8>, usize) {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00", "a .npy file of version 1");
    let header_end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..header_end]).expect("a header of text");
    let shape = header.split(['(', ')']).nth(1).expect("a shape");
    let last = shape.split(',').map(str::trim).rfind(|axis| !axis.is_empty()).expect("an axis");
    (bytes[header_end..].to_vec(), last.parse().expect("a number"))
}
