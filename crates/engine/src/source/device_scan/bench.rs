//! How fast the exact scan is here: random rows, compared on a device and on the CPU, and whether both say the same.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cento_embedder::{Accelerator, DeviceChoice};
use cento_vector::file::Mapped;
use cento_vector::{NEVER, RowWriter, Rows, Scalar, exact};
use rayon::prelude::*;
use serde::Serialize;

use super::{Compared, SCAN_QUERIES, Units, best_units};
use crate::cancel::Cancel;
use crate::error::{AtPath, Result};
use crate::source::ranking;

/// Queries whose rows are compared with the CPU's, at most.
const CHECKED: usize = 32;
/// Rows that are made at a time.
const MADE_ROWS: usize = 16 * 1024;

/// The input of a scan benchmark.
#[derive(Debug, Clone)]
pub struct ScanBenchRequest {
    /// Random unit vectors of normally distributed values.
    pub n_rows: usize,
    /// Values of each.
    pub dimensions: usize,
    /// Their number type.
    pub scalar: Scalar,
    /// Vectors they are compared with.
    pub n_queries: usize,
    /// Rows wanted for each.
    pub k: usize,
    /// Where.
    pub device: DeviceChoice,
    /// Times the scan is made after a first that does not count.
    pub repeat: usize,
}

/// The result of a scan benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct ScanBench {
    /// In words.
    pub device: String,
    /// Of the fastest scan of all queries: rows in the system's file cache to neighbours in memory.
    pub seconds: f64,
    /// Queries that the CPU answered too, and how long it took.
    pub n_checked: usize,
    /// See `n_checked`.
    pub cpu_seconds: f64,
    /// True if it found the same rows at the same distances, to the last bit.
    pub equal: bool,
}

/// Rows and scores, best first, ties by row.
type Ranking = Vec<(u32, f64)>;

/// Makes the rows in a file of the system's temporary folder, scans them, and takes them away again.
///
/// # Errors
/// If the device is not there or has no room, or the file cannot be written.
pub fn bench_scan(request: &ScanBenchRequest) -> Result<ScanBench> {
    let accelerator = Accelerator::open(request.device)?;
    let path = std::env::temp_dir().join(format!("cento-scan-{}.rows", std::process::id()));
    let file = Temporary(path);
    write(&file.0, request)?;
    let rows = Rows::open(Mapped::open(&file.0, request.scalar.kind())?)?;
    let queries: Vec<f32> =
        (0..request.n_queries).flat_map(|n| vector(u64::MAX - n as u64, request.dimensions)).collect();
    let compared =
        Compared { rows: &rows, units: Units::Rows, depth: request.k, allowed: None, cancel: &Cancel::default() };
    let scan = || -> Result<Vec<Ranking>> {
        let parts = queries.chunks(SCAN_QUERIES * request.dimensions);
        let found = parts.map(|queries| best_units(&accelerator, &compared, queries));
        let found = found.collect::<Result<Vec<_>>>()?.into_iter().flatten();
        Ok(found.map(|found| ranking(found, request.k)).collect())
    };
    let found = scan()?;
    let mut seconds = f64::INFINITY;
    for _ in 0..request.repeat {
        let start = Instant::now();
        scan()?;
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let n_checked = request.n_queries.min(CHECKED);
    let start = Instant::now();
    let mut distances = vec![0.0; n_checked * request.n_rows];
    exact::distances(&rows, &queries[..n_checked * request.dimensions], &mut distances, NEVER)?;
    let of_query = |distances: &[f32]| {
        let scored = distances.iter().enumerate().map(|(row, &distance)| (row as u32, ranking::score(distance)));
        ranking(scored.collect(), request.k)
    };
    let expected: Vec<Ranking> = distances.par_chunks(request.n_rows).map(of_query).collect();
    let cpu_seconds = start.elapsed().as_secs_f64();
    Ok(ScanBench { device: accelerator.name(), seconds, n_checked, cpu_seconds, equal: expected == found[..n_checked] })
}

fn ranking(mut scored: Ranking, k: usize) -> Ranking {
    ranking::keep_best(&mut scored, k, |row| row.1);
    scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored.truncate(k);
    scored
}

fn write(path: &Path, request: &ScanBenchRequest) -> Result<()> {
    let file = File::create(path).at(path)?;
    let mut writer = RowWriter::new(BufWriter::new(file), request.dimensions, request.scalar)?;
    for first in (0..request.n_rows).step_by(MADE_ROWS) {
        let numbers = first..request.n_rows.min(first + MADE_ROWS);
        let made: Vec<Vec<f32>> =
            numbers.into_par_iter().map(|number| vector(number as u64, request.dimensions)).collect();
        made.iter().try_for_each(|row| writer.push(row))?;
    }
    writer.finish()?.flush().at(path)
}

/// A unit vector that depends on the seed alone: each value the sum of four even ones, which is close to normal.
fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut even = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..dimensions).map(|_| even() + even() + even() + even()).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.iter().map(|value| value / length).collect()
}

/// A file that goes with its owner.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // the system's temporary folder is cleared by the system too
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees_with_itself_and_an_adapter_with_the_cpu() {
        let devices = [DeviceChoice::Cpu, DeviceChoice::Gpu(Some(0))];
        let there_is = |device: &DeviceChoice| Accelerator::open(*device).is_ok();
        let devices = devices.into_iter().filter(there_is);
        for (device, scalar) in devices.flat_map(|device| [(device, Scalar::F32), (device, Scalar::F16)]) {
            let request =
                ScanBenchRequest { n_rows: 2000, dimensions: 24, scalar, n_queries: 5, k: 30, device, repeat: 1 };
            let bench = bench_scan(&request).unwrap();
            assert!(bench.equal && bench.n_checked == 5 && bench.seconds > 0.0, "{bench:?}");
        }
    }
}
