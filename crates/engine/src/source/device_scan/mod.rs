//! The exact scan of many queries on a GPU: the same documents and scores as the exact scan on the CPU.
//!
//! Rows are streamed from the memory map in blocks; the device keeps, for each query, more rows than are wanted by
//! products that are off by a known bound at most. Their distances are then computed as the CPU does, to the last bit.
//! A query is done when as many documents as wanted lie above all that was left out, the bound included; else it is
//! asked again with a longer list, which in the end holds all rows. So nothing depends on the device but the time. A
//! product that is further off than its bound is an error: the device computes wrongly.
//! Cost: every row is copied to the device once for all queries of a call; 2 Q N D operations there.

pub(crate) mod bench;

use cento_embedder::{Accelerator, Kept, RowType};
use cento_vector::{Rows, Scalar, exact};
use rayon::prelude::*;
use roaring::RoaringBitmap;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::source::ranking;

/// Queries compared at once; with the block of rows it bounds what a scan takes on the device, about half a gigabyte.
pub(crate) const SCAN_QUERIES: usize = 1024;
const BLOCK_ROWS: usize = 32 * 1024;
/// Rows kept beyond those wanted: a share of them, and some more. Too few cost a second scan, never a document.
const SPARE_SHARE: usize = 4;
const SPARE_ROWS: usize = 64;
/// The factor by which the lists grow for queries that were not done.
const GROWTH: usize = 4;

/// Rows that belong together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Units<'a> {
    /// A row is a unit.
    Rows,
    /// Chunks of a document: for each row its unit, ascending.
    Documents { of_row: &'a [u32], n_units: usize },
}

/// Rows that queries are compared with, and what is wanted of them.
pub(crate) struct Compared<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) units: Units<'a>,
    /// Best units of each query.
    pub(crate) depth: usize,
    /// Rows that count; none for all.
    pub(crate) allowed: Option<&'a RoaringBitmap>,
    /// Looked at between blocks of rows.
    pub(crate) cancel: &'a Cancel,
}

/// For each query \[Q, D\] the units that can be among its best, ties included, with the score of their best row.
pub(crate) fn best_units(
    accelerator: &Accelerator,
    compared: &Compared<'_>,
    queries: &[f32],
) -> Result<Vec<Vec<(u32, f64)>>> {
    let &Compared { rows, units, depth, .. } = compared;
    let dimensions = rows.dimensions();
    let query = |n: usize| &queries[n * dimensions..(n + 1) * dimensions];
    let rows_a_unit = match units {
        Units::Rows => 1,
        Units::Documents { n_units, .. } => rows.len().div_ceil(n_units.max(1)),
    };
    let mut limit = depth * rows_a_unit + depth / SPARE_SHARE + SPARE_ROWS;
    let mut found = vec![Vec::new(); queries.len() / dimensions];
    let mut open: Vec<usize> = (0..found.len()).collect();
    while !open.is_empty() && !rows.is_empty() {
        limit = limit.min(rows.len());
        let asked: Vec<f32> = open.iter().flat_map(|&n| query(n)).copied().collect();
        let (kept, error) = keep(accelerator, compared, &asked, limit)?;
        let bound = |kept: &Kept| match limit == rows.len() {
            true => f64::NEG_INFINITY, // nothing was left out
            false => f64::from(kept.floor) + f64::from(error),
        };
        let sure = |(&n, kept): (&usize, &Kept)| {
            let scored = scored(rows, units, query(n), kept, (accelerator, error))?;
            Ok(above(bound(kept), scored, depth))
        };
        let answers: Vec<_> = open.par_iter().zip(&kept).map(sure).collect::<Result<_>>()?;
        let mut unsure = Vec::new();
        for (n, answer) in open.into_iter().zip(answers) {
            match answer {
                Some(scored) => found[n] = scored,
                None => unsure.push(n),
            }
        }
        open = unsure;
        limit *= GROWTH;
    }
    Ok(found)
}

/// The units of the kept rows with the scores of their best rows, which are the CPU's.
fn scored(
    rows: &Rows,
    units: Units<'_>,
    query: &[f32],
    kept: &Kept,
    (accelerator, error): (&Accelerator, f32),
) -> Result<Vec<(u32, f64)>> {
    let mut kept = kept.rows.clone();
    kept.sort_unstable_by_key(|&(row, _)| row); // units ascend with rows
    let chosen: Vec<u32> = kept.iter().map(|&(row, _)| row).collect();
    let distances = exact::distances_to(rows, query, &chosen)?;
    let mut scored: Vec<(u32, f64)> = Vec::new();
    for ((row, product), distance) in kept.into_iter().zip(distances) {
        let (unit, score) = (units.of(row), ranking::score(distance));
        let difference = (f64::from(product) - score).abs();
        if difference.is_nan() || difference > f64::from(error) {
            let reason = format!("computes wrongly: of row {row} its product is {product}, the CPU's {score}; use cpu");
            return Err(cento_embedder::Error::Device { device: accelerator.name(), reason }.into());
        }
        match scored.last_mut() {
            Some((last, best)) if *last == unit => *best = best.max(score),
            _ => scored.push((unit, score)),
        }
    }
    Ok(scored)
}

/// The units with scores above `bound`, if those are enough.
fn above(bound: f64, mut scored: Vec<(u32, f64)>, depth: usize) -> Option<Vec<(u32, f64)>> {
    scored.retain(|&(_, score)| score > bound);
    (scored.len() >= depth || bound == f64::NEG_INFINITY).then_some(scored)
}

/// For each query its `limit` rows with the largest products, and how far off those can be. Where the device's memory
/// is full, the queries are halved.
fn keep(accelerator: &Accelerator, compared: &Compared<'_>, queries: &[f32], limit: usize) -> Result<(Vec<Kept>, f32)> {
    let dimensions = compared.rows.dimensions();
    match scan(accelerator, compared, queries, limit) {
        Err(crate::Error::Embedder(error)) if error.is_out_of_memory() && queries.len() > dimensions => {
            let half = queries.len() / dimensions / 2 * dimensions;
            let (mut kept, bound) = keep(accelerator, compared, &queries[..half], limit)?;
            kept.extend(keep(accelerator, compared, &queries[half..], limit)?.0);
            Ok((kept, bound))
        }
        other => other,
    }
}

fn scan(accelerator: &Accelerator, compared: &Compared<'_>, queries: &[f32], limit: usize) -> Result<(Vec<Kept>, f32)> {
    let &Compared { rows, allowed, cancel, .. } = compared;
    let row_type = match rows.scalar() {
        Scalar::F32 => RowType::F32,
        Scalar::F16 => RowType::F16,
    };
    let block_rows = BLOCK_ROWS.min(rows.len());
    let mut scan = accelerator.scan(queries, rows.dimensions(), rows.stride(), row_type, limit, block_rows)?;
    for first in (0..rows.len()).step_by(block_rows) {
        cancel.check()?;
        let last = rows.len().min(first + block_rows);
        let bits = allowed.map(|allowed| bits(allowed, first as u32, last as u32));
        scan.push(rows.bytes(first..last)?, first as u32, bits.as_deref())?;
    }
    let error = scan.error();
    Ok((scan.finish()?, error))
}

impl Units<'_> {
    fn of(self, row: u32) -> u32 {
        match self {
            Self::Rows => row,
            Self::Documents { of_row, .. } => of_row[row as usize],
        }
    }
}

/// The rows from `first` to `last` that are set, 32 to a number.
fn bits(allowed: &RoaringBitmap, first: u32, last: u32) -> Vec<u32> {
    let mut bits = vec![0; (last - first).div_ceil(32) as usize];
    for row in allowed.range(first..last) {
        let at = row - first;
        bits[at as usize / 32] |= 1 << (at % 32);
    }
    bits
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::LazyLock;

    use cento_embedder::DeviceChoice;
    use proptest::prelude::*;

    use super::*;

    /// The CPU, and the first adapter if there is one.
    static ACCELERATORS: LazyLock<Vec<Accelerator>> = LazyLock::new(|| {
        let choices = [DeviceChoice::Cpu, DeviceChoice::Gpu(Some(0))];
        let accelerators: Vec<_> = choices.into_iter().filter_map(|choice| Accelerator::open(choice).ok()).collect();
        if accelerators.len() == 1 {
            eprintln!(
                "on the CPU alone: no Vulkan or Metal driver offers an adapter (libvulkan1, mesa-vulkan-drivers)"
            );
        }
        accelerators
    });

    /// Unit rows of a few directions, so that there are ties.
    fn unit_rows(seed: u64, n_rows: usize, dimensions: usize, levels: f32) -> Vec<Vec<f32>> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * levels
        };
        let mut row = || {
            let mut row: Vec<f32> = (0..dimensions).map(|_| next().round()).collect();
            row[0] += 0.5;
            let length = row.iter().map(|value| value * value).sum::<f32>().sqrt();
            row.iter().map(|value| value / length).collect()
        };
        (0..n_rows).map(|_| row()).collect()
    }

    fn open(rows: &[Vec<f32>], scalar: Scalar) -> (tempfile::TempDir, Rows) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors.rows");
        let dimensions = rows[0].len();
        let written =
            cento_vector::write_rows(Cursor::new(Vec::new()), dimensions, scalar, rows.iter().map(Vec::as_slice));
        std::fs::write(&path, written.unwrap().into_inner()).unwrap();
        (folder, Rows::open(cento_vector::file::Mapped::open(&path, scalar.kind()).unwrap()).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_documents_and_scores_are_those_of_the_exact_scan(
            seed in any::<u64>(),
            n_rows in 1usize..400,
            dimensions in 1usize..40,
            rows_a_unit in 1usize..5,
            depth in 1usize..30,
            levels in prop::sample::select(vec![1.0f32, 2.0, 40.0]),
            scalar in prop::sample::select(vec![Scalar::F32, Scalar::F16]),
            some in any::<bool>(),
        ) {
            let (_folder, rows) = open(&unit_rows(seed, n_rows, dimensions, levels), scalar);
            let queries = unit_rows(seed ^ 1, 3, dimensions, levels).concat();
            let of_row: Vec<u32> = (0..n_rows).map(|row| (row / rows_a_unit) as u32).collect();
            let n_units = n_rows.div_ceil(rows_a_unit);
            let units = if rows_a_unit == 1 { Units::Rows } else { Units::Documents { of_row: &of_row, n_units } };
            let allowed = some.then(|| (0..n_rows as u32).filter(|row| row % 3 != 0).collect::<RoaringBitmap>());
            let mut distances = vec![0.0; 3 * n_rows];
            exact::distances(&rows, &queries, &mut distances, cento_vector::NEVER).unwrap();
            let (cancel, allowed_rows) = (&Cancel::default(), allowed.as_ref());
            let compared = Compared { rows: &rows, units, depth, allowed: allowed_rows, cancel };
            let found: Vec<Vec<_>> =
                ACCELERATORS.iter().flat_map(|on| best_units(on, &compared, &queries).unwrap()).collect();
            for (mut found, distances) in found.into_iter().zip(distances.chunks(n_rows).cycle()) {
                let mut best = vec![None; n_units];
                for (row, &distance) in distances.iter().enumerate() {
                    if allowed.as_ref().is_none_or(|allowed| allowed.contains(row as u32)) {
                        ranking::keep_larger(&mut best[of_row[row] as usize], ranking::score(distance));
                    }
                }
                let units = best.into_iter().enumerate();
                let mut expected: Vec<_> = units.filter_map(|(unit, score)| Some((unit as u32, score?))).collect();
                ranking::keep_best(&mut expected, depth, |unit| unit.1);
                ranking::keep_best(&mut found, depth, |unit| unit.1);
                expected.sort_unstable_by_key(|unit| unit.0);
                found.sort_unstable_by_key(|unit| unit.0);
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn a_device_whose_products_are_off_by_more_than_their_bound_is_refused() {
        let (_folder, rows) = open(&unit_rows(3, 8, 4, 2.0), Scalar::F32);
        let query = unit_rows(4, 1, 4, 2.0).concat();
        let (units, cancel, accelerator) = (Units::Rows, Cancel::new(), Accelerator::cpu());
        let compared = Compared { rows: &rows, units, depth: 3, allowed: None, cancel: &cancel };
        let (mut kept, error) = keep(&accelerator, &compared, &query, 3).unwrap();
        let mut kept = kept.remove(0);
        assert_eq!(scored(&rows, units, &query, &kept, (&accelerator, error)).unwrap().len(), 3);
        for wrong in [kept.rows[1].1 + 2.0 * error, f32::NAN] {
            kept.rows[1].1 = wrong;
            let refused = scored(&rows, units, &query, &kept, (&accelerator, error)).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("of row {}", kept.rows[1].0)) && refused.contains("computes wrongly"),
                "{refused}"
            );
        }
        cancel.cancel();
        assert!(matches!(keep(&accelerator, &compared, &query, 3), Err(crate::Error::Cancelled)));
    }

    #[test]
    fn bits_are_those_of_the_block() {
        let allowed: RoaringBitmap = [3, 32, 40, 71, 72].into_iter().collect();
        assert_eq!(bits(&allowed, 32, 72), [1 | 1 << 8, 1 << 7]);
    }
}
