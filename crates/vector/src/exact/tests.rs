//! The exact scan against plain sorting, and against itself by other ways.

use std::sync::atomic::{AtomicUsize, Ordering};

use half::f16;
use proptest::prelude::*;

use super::*;
use crate::file::BLOCK_BYTES;
use crate::testing::{Folder, Random, clustered, in_pool};
use crate::{Kernel, NEVER};

const SCALARS: [Scalar; 2] = [Scalar::F32, Scalar::F16];

/// Every row's distance in f64, from the vectors as they are stored.
fn naive(rows: &Rows, query: &[f32]) -> Vec<f64> {
    (0..rows.len() as u32)
        .map(|row| {
            let vector = rows.row(row).unwrap();
            1.0 - vector.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        })
        .collect()
}

#[test]
fn search_finds_what_sorting_all_distances_finds() {
    let folder = Folder::new();
    let vectors = clustered(1, 3_000, 48, 20);
    for scalar in SCALARS {
        for kernel in Kernel::available() {
            let rows = folder.rows_by("rows", &vectors, 48, scalar, kernel);
            for query in clustered(2, 10, 48, 5) {
                let expected = naive(&rows, &query);
                let mut order: Vec<usize> = (0..rows.len()).collect();
                order.sort_by(|a, b| expected[*a].total_cmp(&expected[*b]));
                let found = search(&rows, &query, 100, None, NEVER).unwrap();
                assert!(found.is_sorted() && found.len() >= 100);
                for (neighbor, &row) in found.iter().zip(&order[..100]) {
                    // Rows nearer together than f32 rounds may stand in another order.
                    assert!((expected[neighbor.row as usize] - expected[row]).abs() < 1e-6, "{kernel} {scalar:?}");
                    assert!((f64::from(neighbor.distance) - expected[neighbor.row as usize]).abs() < 1e-6);
                }
            }
        }
    }
}

#[test]
fn rows_tied_with_the_last_are_all_found() {
    let mut random = Random::new(5);
    let (near, far) = (random.unit(40), random.unit(40));
    let vectors: Vec<Vec<f32>> = (0..2_500).map(|row| if row % 3 == 0 { near.clone() } else { far.clone() }).collect();
    let rows = Folder::new().rows("rows", &vectors, 40, Scalar::F16);
    let found = search(&rows, &near, 10, None, NEVER).unwrap();
    assert_eq!(found.len(), 834, "every third of 2,500 rows");
    assert!(found.iter().enumerate().all(|(i, neighbor)| neighbor.row as usize == 3 * i), "by row");
}

#[test]
fn a_filter_is_applied_before_the_nearest_are_taken() {
    let folder = Folder::new();
    let vectors = clustered(3, 2_600, 32, 10);
    let query = &clustered(4, 1, 32, 1)[0];
    for scalar in SCALARS {
        let rows = folder.rows("rows", &vectors, 32, scalar);
        let all = search(&rows, query, rows.len(), None, NEVER).unwrap();
        let allowed: RoaringBitmap = (0..2_600).filter(|row| row % 7 == 3).chain(10_000..10_010).collect();
        let expected: Vec<Neighbor> = all.into_iter().filter(|neighbor| allowed.contains(neighbor.row)).collect();
        assert_eq!(search(&rows, query, 5_000, Some(&allowed), NEVER).unwrap(), expected);
        assert_eq!(search(&rows, query, 20, Some(&allowed), NEVER).unwrap(), expected[..20]);
        assert!(search(&rows, query, 20, Some(&RoaringBitmap::new()), NEVER).unwrap().is_empty());
    }
}

#[test]
fn distances_of_a_batch_equal_those_of_each_search_to_the_bit_for_any_number_of_threads() {
    const N_QUERIES: [usize; 6] = [1, 2, 3, 64, 65, 130];
    let folder = Folder::new();
    // Two spans and a last group that is not whole.
    let vectors = clustered(6, 1_024 + 404, 40, 10);
    let queries = clustered(7, N_QUERIES[5], 40, 10);
    for scalar in SCALARS {
        for kernel in Kernel::available() {
            let rows = folder.rows_by("rows", &vectors, 40, scalar, kernel);
            let expected: Vec<Vec<f32>> = queries
                .iter()
                .map(|query| {
                    let mut by_row = search(&rows, query, rows.len(), None, NEVER).unwrap();
                    by_row.sort_by_key(|neighbor| neighbor.row);
                    by_row.into_iter().map(|neighbor| neighbor.distance).collect()
                })
                .collect();
            let chosen: Vec<u32> = (0..rows.len() as u32).rev().step_by(3).collect();
            let of_chosen = distances_to(&rows, &queries[0], &chosen).unwrap();
            assert!(of_chosen.iter().zip(&chosen).all(|(d, &row)| d.to_bits() == expected[0][row as usize].to_bits()));
            for n_queries in N_QUERIES {
                let batch = queries[..n_queries].concat();
                for n_threads in [1, 2, 3] {
                    let mut out = vec![f32::NAN; n_queries * rows.len()];
                    in_pool(n_threads, || distances(&rows, &batch, &mut out, NEVER)).unwrap();
                    assert!(
                        out.iter().map(|d| d.to_bits()).eq(expected[..n_queries].concat().iter().map(|d| d.to_bits())),
                        "{kernel} {scalar:?}: {n_queries} queries, {n_threads} threads"
                    );
                }
            }
        }
    }
}

#[test]
fn no_rows_and_no_queries_are_no_trouble() {
    let folder = Folder::new();
    for scalar in SCALARS {
        let rows = folder.rows("empty", &[], 4, scalar);
        assert!(search(&rows, &[1.0, 0.0, 0.0, 0.0], 10, None, NEVER).unwrap().is_empty());
        distances(&rows, &[1.0, 0.0, 0.0, 0.0], &mut [], NEVER).unwrap();
        let rows = folder.rows("one", &[vec![0.0, 1.0, 0.0, 0.0]], 4, scalar);
        distances(&rows, &[], &mut [], NEVER).unwrap();
        assert!(search(&rows, &[1.0, 0.0, 0.0, 0.0], 0, None, NEVER).unwrap().is_empty());
        let found = search(&rows, &[1.0, 0.0, 0.0, 0.0], 10, None, NEVER).unwrap();
        assert_eq!(found, [Neighbor { row: 0, distance: 1.0 }]);
    }
}

#[test]
fn a_query_that_does_not_fit_is_refused() {
    let rows = Folder::new().rows("rows", &[vec![0.0, 1.0]], 2, Scalar::F32);
    let error = |query: &[f32]| search(&rows, query, 1, None, NEVER).unwrap_err();
    assert!(matches!(error(&[1.0]), Error::Dimension { expected: 2, received: 1 }));
    assert!(matches!(error(&[f32::NAN, 0.0]), Error::NotFinite { dimension: 0, .. }));
    assert!(matches!(error(&[0.0, 0.0]), Error::NotUnit { .. }));
    let batch = distances(&rows, &[1.0, 0.0, 3.0, 0.0], &mut [0.0; 2], NEVER);
    assert!(matches!(batch, Err(Error::NotUnit { vector: 1, .. })));
    assert!(matches!(distances(&rows, &[1.0, 0.0, 1.0], &mut [0.0; 1], NEVER), Err(Error::Dimension { .. })));
    assert!(matches!(
        distances(&rows, &[1.0, 0.0], &mut [0.0; 2], NEVER),
        Err(Error::Dimension { expected: 1, received: 2 })
    ));
}

/// Vectors of a real model, with the neighbours that another program found before they were rounded to f16.
#[test]
fn real_vectors_have_the_neighbours_that_are_published_with_them() {
    const N_QUERIES: usize = 50;
    /// Rounding to f16 moves a distance by about 1e-5.
    const ROUNDING: f32 = 5e-5;
    let Some(split) = crate::testing::bge_split() else { return };
    let rows = Folder::new().rows("rows", &split.base, 768, Scalar::F32);
    let mut n_same = 0;
    for (query, expected) in split.queries.iter().zip(&split.neighbors).take(N_QUERIES) {
        let mut distance = vec![0.0; rows.len()];
        distances(&rows, query, &mut distance, NEVER).unwrap();
        for (neighbor, &row) in search(&rows, query, 100, None, NEVER).unwrap().iter().zip(expected) {
            let gap = (neighbor.distance - distance[row as usize]).abs();
            assert!(gap < ROUNDING, "{neighbor:?}, published {row}, gap {gap}");
            n_same += usize::from(expected.contains(&neighbor.row));
        }
    }
    println!("{n_same} of the {} published neighbours of {N_QUERIES} queries", 100 * N_QUERIES);
    assert!(n_same >= 99 * N_QUERIES, "{n_same}");
}

proptest! {
    #[test]
    fn f16_rows_are_as_far_as_their_widened_twins(seed in any::<u64>(), dimensions in 1_usize..70, n_rows in 1_usize..40) {
        let mut random = Random::new(seed);
        let widened: Vec<Vec<f32>> = (0..n_rows)
            .map(|_| random.unit(dimensions).into_iter().map(|x| f16::from_f32(x).to_f32()).collect())
            .collect();
        let query = random.unit(dimensions);
        let folder = Folder::new();
        let narrow = folder.rows("narrow", &widened, dimensions, Scalar::F16);
        let wide = folder.rows("wide", &widened, dimensions, Scalar::F32);
        prop_assert_eq!(search(&narrow, &query, 5, None, NEVER).unwrap(), search(&wide, &query, 5, None, NEVER).unwrap());
    }
}

#[test]
fn a_scan_ends_at_the_signal_to_stop() {
    let (dimensions, n_spans, n_done) = (64, 40, 3);
    let vectors = clustered(12, n_spans * SPAN_ROWS, dimensions, 4);
    let (folder, query) = (Folder::new(), &vectors[0]);
    let every_other: RoaringBitmap = (0..vectors.len() as u32).step_by(2).collect();
    for (name, scalar, allowed) in
        [("a", Scalar::F32, None), ("b", Scalar::F16, None), ("c", Scalar::F32, Some(&every_other))]
    {
        let rows = folder.rows(name, &vectors, dimensions, scalar);
        let n_asked = AtomicUsize::new(0);
        let stop = || n_asked.fetch_add(1, Ordering::Relaxed) >= n_done;
        let found = in_pool(1, || search(&rows, query, 10, allowed, &stop));
        assert!(matches!(found, Err(Error::Cancelled)));
        let span_bytes = rows.bytes(0..1).unwrap().len() * SPAN_ROWS;
        let (n_read, n_blocks) = (rows.file().n_verified(), span_bytes.div_ceil(BLOCK_BYTES) + 1);
        assert!(n_read <= n_done * n_blocks, "{n_read} blocks for {n_done} lots of {n_blocks}");
        assert_eq!(search(&rows, query, 10, allowed, NEVER).unwrap()[0].row, 0);
        assert!(rows.file().n_verified() > 10 * n_read, "the whole is many times as much");

        let n_asked = AtomicUsize::new(0);
        let stop = || n_asked.fetch_add(1, Ordering::Relaxed) >= n_done;
        let mut out = vec![f32::NAN; rows.len()];
        let done = in_pool(1, || distances(&rows, query, &mut out, &stop));
        assert!(matches!(done, Err(Error::Cancelled)));
        assert_eq!(out.iter().filter(|distance| !distance.is_nan()).count(), n_done * SPAN_ROWS);
    }
}
