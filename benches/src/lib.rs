//! Benchmark bodies, each a function of its size; the tests run them small, `cento-bench` runs them large.
//!
//! A speed stands beside its error or its recall, and beside a slow peer in the same run: absolute times of a shared
//! machine say little.

pub mod assembly;
pub mod graphs;
pub mod lexical;
pub mod reproduce;
pub mod scale;
pub mod shards;

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use cento_embedder::{Embedder, Kind, LoadOptions};
use cento_vector::file::Mapped;
use cento_vector::hnsw::Wanted;
use cento_vector::{NEVER, Rows, Scalar, exact, hnsw, write_rows};
use serde::Serialize;

/// Dimensions of the vectors, those of the default encoder.
pub const DIMENSIONS: usize = 384;

/// The exact scan beside a plain loop over the same rows.
#[derive(Debug, Serialize)]
pub struct Scan {
    /// Rows scanned.
    pub n_rows: usize,
    /// Queries answered one by one.
    pub n_queries: usize,
    /// Bytes of rows read a second; the bound is the memory's bandwidth.
    pub gigabytes_per_second: f64,
    /// Times faster than the plain loop.
    pub speedup: f64,
    /// Largest difference of a distance to the plain loop in 64 bits.
    pub error_max: f64,
}

/// Scans `n_rows` random unit rows for `n_queries` queries, the ten nearest each.
///
/// # Errors
/// If the temporary file cannot be written.
pub fn scan(n_rows: usize, n_queries: usize) -> Result<Scan> {
    let (vectors, rows) = (unit_vectors(n_rows, 1), unit_vectors(n_queries, 2));
    let folder = tempfile::tempdir()?;
    let mapped = stored(folder.path(), &vectors)?;
    let (mut fast, mut slow, mut error_max) = (Duration::ZERO, Duration::ZERO, 0.0_f64);
    for query in rows.chunks_exact(DIMENSIONS) {
        let start = Instant::now();
        let nearest = exact::search(&mapped, query, 10, None, NEVER)?;
        fast += start.elapsed();
        let start = Instant::now();
        let mut distances: Vec<f64> = vectors.chunks_exact(DIMENSIONS).map(|row| 1.0 - dot(row, query)).collect();
        slow += start.elapsed();
        for neighbor in &nearest {
            error_max = error_max.max((f64::from(neighbor.distance) - distances[neighbor.row as usize]).abs());
        }
        distances.sort_by(f64::total_cmp);
        error_max =
            error_max.max((f64::from(nearest[nearest.len() - 1].distance) - distances[nearest.len() - 1]).abs());
    }
    let n_bytes = (n_queries * n_rows * DIMENSIONS * size_of::<f32>()) as f64;
    let gigabytes_per_second = n_bytes / fast.as_secs_f64() / 1e9;
    Ok(Scan { n_rows, n_queries, gigabytes_per_second, speedup: slow.as_secs_f64() / fast.as_secs_f64(), error_max })
}

/// The graph beside the exact scan.
#[derive(Debug, Serialize)]
pub struct Graph {
    /// Rows in the graph.
    pub n_rows: usize,
    /// Width of the beam.
    pub ef: usize,
    /// Share of the ten nearest that the graph finds.
    pub recall_at_10: f64,
    /// Times faster than the exact scan.
    pub speedup: f64,
    /// Time to build, freeze and repair.
    pub build_seconds: f64,
}

/// Builds a graph over `n_rows` random unit rows and searches it with a beam of `ef`.
///
/// # Errors
/// If the temporary files cannot be written.
pub fn graph(n_rows: usize, n_queries: usize, ef: usize) -> Result<Graph> {
    let folder = tempfile::tempdir()?;
    let rows = stored(folder.path(), &unit_vectors(n_rows, 3))?;
    let start = Instant::now();
    let built = hnsw::build(&rows, &hnsw::HnswConfig::default(), 0, &mut |_| ControlFlow::Continue(()))?;
    let build_seconds = start.elapsed().as_secs_f64();
    let path = folder.path().join("graph");
    std::fs::write(&path, built.write(Cursor::new(Vec::new()))?.into_inner())?;
    let frozen = hnsw::FrozenGraph::open(Mapped::open(&path, hnsw::KIND)?)?;
    let (mut fast, mut slow, mut n_found) = (Duration::ZERO, Duration::ZERO, 0);
    for query in unit_vectors(n_queries, 4).chunks_exact(DIMENSIONS) {
        let start = Instant::now();
        let near = hnsw::search(&frozen, &rows, query, &Wanted::new(10, ef))?.neighbors;
        fast += start.elapsed();
        let start = Instant::now();
        let nearest = exact::search(&rows, query, 10, None, NEVER)?;
        slow += start.elapsed();
        n_found += near.iter().filter(|found| nearest.iter().any(|true_one| true_one.row == found.row)).count();
    }
    let recall_at_10 = n_found as f64 / (10 * n_queries) as f64;
    Ok(Graph { n_rows, ef, recall_at_10, speedup: slow.as_secs_f64() / fast.as_secs_f64(), build_seconds })
}

/// The encoder on one thread and on all.
#[derive(Debug, Serialize)]
pub struct Embedding {
    /// Texts embedded.
    pub n_texts: usize,
    /// Tokens of them.
    pub n_tokens: u64,
    /// Tokens a second on one thread.
    pub tokens_per_second_1: f64,
    /// Tokens a second on every core.
    pub tokens_per_second_all: f64,
    /// Whether both gave the same bits.
    pub is_equal: bool,
}

/// Embeds `n_texts` made-up texts of 10 to 130 words with the encoder in `model`.
///
/// # Errors
/// If the encoder cannot be loaded.
pub fn embed(model: &Path, n_texts: usize) -> Result<Embedding> {
    let mut random = Random(5);
    let text = |random: &mut Random| {
        let n_words = 10 + random.below(120);
        (0..n_words).map(|_| WORDS[random.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = (0..n_texts).map(|_| text(&mut random)).collect();
    let timed = |threads| -> Result<_> {
        let embedder = Embedder::load(model, &LoadOptions { threads, ..LoadOptions::default() })?;
        let start = Instant::now();
        Ok((embedder.embed(&texts, Kind::Document)?, start.elapsed().as_secs_f64()))
    };
    let ((one, seconds_1), (all, seconds_all)) = (timed(1)?, timed(0)?);
    let n_tokens: u64 = one.iter().map(|embedding| u64::from(embedding.n_tokens)).sum();
    Ok(Embedding {
        n_texts,
        n_tokens,
        tokens_per_second_1: n_tokens as f64 / seconds_1,
        tokens_per_second_all: n_tokens as f64 / seconds_all,
        is_equal: one.iter().zip(&all).all(|(a, b)| a.vector == b.vector),
    })
}

const WORDS: [&str; 12] =
    ["the", "tide", "of", "water", "rises", "when", "sun", "and", "moon", "stand", "measured", "twice"];

fn stored(folder: &Path, vectors: &[f32]) -> Result<Rows> {
    let path = folder.join("rows");
    let rows = vectors.chunks_exact(DIMENSIONS);
    let bytes = write_rows(Cursor::new(Vec::new()), DIMENSIONS, Scalar::F32, rows)?.into_inner();
    std::fs::write(&path, bytes)?;
    Ok(Rows::open(Mapped::open_any(&path, &Scalar::KINDS)?)?)
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Unit vectors around 50 centres, the same for the same seed.
fn unit_vectors(n: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(7);
    let centres: Vec<f32> = (0..50 * DIMENSIONS).map(|_| random.centred()).collect();
    let mut random = Random(seed);
    let mut vectors = Vec::with_capacity(n * DIMENSIONS);
    for _ in 0..n {
        let centre = random.below(50) * DIMENSIONS;
        let vector: Vec<f32> = centres[centre..centre + DIMENSIONS].iter().map(|c| c + random.centred()).collect();
        let norm = dot(&vector, &vector).sqrt() as f32;
        vectors.extend(vector.iter().map(|value| value / norm));
    }
    vectors
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn centred(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scan_is_right_at_a_small_size() {
        let scan = scan(300, 4).unwrap();
        assert!(scan.error_max < 1e-6, "{scan:?}");
    }

    #[test]
    fn the_graph_finds_most_at_a_small_size() {
        let graph = graph(400, 10, 100).unwrap();
        assert!(graph.recall_at_10 > 0.95, "{graph:?}");
    }

    #[test]
    fn the_encoder_gives_the_same_bits_on_any_number_of_threads() {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("models/tiny");
        let embedding = embed(&model, 50).unwrap();
        assert!(embedding.is_equal, "{embedding:?}");
    }
}
