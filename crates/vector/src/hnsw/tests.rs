//! The graph against the exact scan, against itself, and against files that no builder makes.

mod damage;

use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use roaring::RoaringBitmap;

use super::*;
use crate::file::Mapped;
use crate::testing::{Folder, Random, clustered, in_pool};
use crate::{Error, Kernel, NEVER, Rows, Scalar, exact};

const DIMENSIONS: usize = 32;

/// Enough that a beam of 64 walks and does not scan.
const N_ROWS: usize = 1_200;

fn go_on(_: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn bytes_of(rows: &Rows, config: &HnswConfig, n_threads: usize) -> Vec<u8> {
    let graph = build(rows, config, n_threads, &mut go_on).unwrap();
    graph.write(Cursor::new(Vec::new())).unwrap().into_inner()
}

fn open(folder: &Folder, bytes: &[u8]) -> Result<FrozenGraph, Error> {
    let path = folder.path("graph");
    fs_err::write(&path, bytes).unwrap();
    FrozenGraph::open(Mapped::open(path, KIND)?)
}

/// A graph and its rows, in a folder that lasts as long.
struct Built {
    folder: Folder,
    rows: Rows,
    graph: FrozenGraph,
    bytes: Vec<u8>,
}

fn built(vectors: &[Vec<f32>], scalar: Scalar) -> Built {
    built_with(vectors, scalar, &HnswConfig::default())
}

fn built_with(vectors: &[Vec<f32>], scalar: Scalar, config: &HnswConfig) -> Built {
    let folder = Folder::new();
    let rows = folder.rows("rows", vectors, vectors.first().map_or(DIMENSIONS, Vec::len), scalar);
    let bytes = bytes_of(&rows, config, 0);
    let graph = open(&folder, &bytes).unwrap();
    Built { folder, rows, graph, bytes }
}

fn clusters() -> Built {
    built(&clustered(50, N_ROWS, DIMENSIONS, 20), Scalar::F32)
}

fn within(k: usize, ef: usize, allowed: Option<&RoaringBitmap>) -> Wanted<'_> {
    Wanted { allowed, ..Wanted::new(k, ef) }
}

/// The share of the exact results that the search finds.
fn recall(built: &Built, queries: &[Vec<f32>], k: usize, ef: usize, allowed: Option<&RoaringBitmap>) -> f64 {
    let mut n_found = 0;
    for query in queries {
        let expected = exact::search(&built.rows, query, k, allowed, NEVER).unwrap();
        let found = search(&built.graph, &built.rows, query, &within(k, ef, allowed)).unwrap();
        assert_eq!((found.neighbors.len(), found.path), (k, Path::Graph));
        n_found += found.neighbors.iter().filter(|neighbor| neighbor.distance <= expected[k - 1].distance).count();
    }
    n_found as f64 / (queries.len() * k) as f64
}

#[test]
fn every_row_of_fifty_clusters_is_reachable_and_recall_has_a_floor() {
    const N_ROWS: usize = 4_000;
    let built = built(&clustered(50, N_ROWS, DIMENSIONS, 50), Scalar::F32);
    built.graph.verify().unwrap();
    let health = health(&built.graph, &built.rows, &HealthConfig { n_sample: 400, n_exact: 200, ef: 64 }).unwrap();
    println!("{health:?}");
    assert_eq!((health.n_rows, health.n_distinct), (N_ROWS, N_ROWS));
    assert_eq!((health.n_sample, health.n_exact, health.ef), (400, 200, 64));
    assert_eq!((health.n_unreachable, health.reachable), (0, 1.0));
    assert!(health.in_degree_min >= 1 && health.in_degrees[0] == 0);
    assert_eq!(health.in_degrees.iter().sum::<usize>(), N_ROWS);
    assert!(health.out_degree_max <= 32, "{}", health.out_degree_max);
    assert!(health.self_retrieval >= 0.999, "{}", health.self_retrieval);
    assert!(health.recall_at_10 >= 0.98, "{}", health.recall_at_10);

    let queries = clustered(51, 200, DIMENSIONS, 50);
    let [narrow, middle, wide] = [16, 64, 256].map(|ef| recall(&built, &queries, 10, ef, None));
    println!("recall@10: ef 16 {narrow:.4}, ef 64 {middle:.4}, ef 256 {wide:.4}");
    assert!(narrow <= middle && middle <= wide);
    assert!(middle >= 0.97 && wide >= 0.995, "{middle} {wide}");
}

#[test]
fn what_the_construction_leaves_unreachable_is_repaired() {
    let folder = Folder::new();
    let rows = folder.rows("rows", &clustered(52, 3_000, DIMENSIONS, 50), DIMENSIONS, Scalar::F32);
    let graph = build(&rows, &HnswConfig { m: 2, ef_construction: 4 }, 0, &mut go_on).unwrap();
    let repairs = graph.repairs();
    println!("{repairs:?}");
    assert!(repairs.n_unreachable > 10, "else this set proves nothing: {repairs:?}");
    assert!(repairs.n_edges >= repairs.n_unreachable);
    let bytes = graph.write(Cursor::new(Vec::new())).unwrap().into_inner();
    let graph = open(&folder, &bytes).unwrap();
    assert_eq!(graph.config(), HnswConfig { m: 2, ef_construction: 4 });
    let health = health(&graph, &rows, &HealthConfig::default()).unwrap();
    println!("{health:?}");
    assert_eq!((health.n_unreachable, health.in_degrees[0]), (0, 0));
}

#[test]
fn building_again_gives_the_same_bytes_for_any_number_of_threads() {
    let folder = Folder::new();
    for scalar in [Scalar::F32, Scalar::F16] {
        let rows = folder.rows("rows", &clustered(53, 1_500, DIMENSIONS, 8), DIMENSIONS, scalar);
        let config = HnswConfig { m: 6, ef_construction: 40 };
        let expected = bytes_of(&rows, &config, 1);
        for n_threads in [2, 3, 7] {
            assert!(bytes_of(&rows, &config, n_threads) == expected, "{n_threads} threads");
        }
        for kernel in Kernel::available() {
            let rows = Rows::with_kernel(rows.file().clone(), kernel).unwrap();
            assert!(bytes_of(&rows, &config, 2) == expected, "{kernel}: codes are compared in integers");
        }
    }
}

#[test]
fn a_batch_is_answered_like_its_queries_one_by_one() {
    let built = &clusters();
    let queries = clustered(63, 40, DIMENSIONS, 20);
    let half: RoaringBitmap = (0..N_ROWS as u32).filter(|row| row % 2 == 0).collect();
    let few: RoaringBitmap = (0..30).collect();
    for (allowed, path) in [(None, Path::Graph), (Some(&half), Path::Graph), (Some(&few), Path::Scan)] {
        let search = |query: &Vec<f32>| search(&built.graph, &built.rows, query, &within(10, 20, allowed)).unwrap();
        let expected: Vec<Found> = queries.iter().map(search).collect();
        assert!(expected.iter().all(|found| found.path == path));
        for n_threads in [0, 1, 2, 3] {
            let queries = queries.concat();
            let found = search_batch(&built.graph, &built.rows, &queries, &within(10, 20, allowed), n_threads).unwrap();
            assert_eq!(found, expected, "{n_threads} threads");
        }
    }
    assert!(search_batch(&built.graph, &built.rows, &[], &Wanted::new(10, 20), 2).unwrap().is_empty());
    let short = search_batch(&built.graph, &built.rows, &queries.concat()[1..], &Wanted::new(10, 20), 2);
    assert!(matches!(short, Err(Error::Dimension { .. })));
    let mut broken = queries.concat();
    broken[3 * DIMENSIONS + 5] = f32::NAN;
    let broken = search_batch(&built.graph, &built.rows, &broken, &Wanted::new(10, 20), 2);
    assert!(matches!(broken, Err(Error::NotFinite { vector: 3, dimension: 5 })));
}

#[test]
fn a_query_that_is_no_unit_vector_of_these_dimensions_is_refused() {
    let built = &clusters();
    let ask = |query: &[f32]| search(&built.graph, &built.rows, query, &Wanted::new(10, 64));
    let with = |value: f32| -> Vec<f32> {
        let mut query = vec![0.0; DIMENSIONS];
        query[7] = value;
        query
    };
    assert!(matches!(ask(&with(1.0)[1..]), Err(Error::Dimension { expected: DIMENSIONS, .. })));
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(matches!(ask(&with(value)), Err(Error::NotFinite { vector: 0, dimension: 7 })));
    }
    for value in [0.0, 0.9, 1.1] {
        assert!(matches!(ask(&with(value)), Err(Error::NotUnit { vector: 0, .. })));
    }
}

#[test]
fn distances_are_those_of_the_exact_scan_to_the_bit() {
    let vectors = clustered(54, 700, 40, 8);
    for scalar in [Scalar::F32, Scalar::F16] {
        let built = built(&vectors, scalar);
        assert_eq!(plan(vectors.len(), vectors.len() as u64, 10, 64), Path::Graph);
        for kernel in Kernel::available() {
            let rows = Rows::with_kernel(built.rows.file().clone(), kernel).unwrap();
            for query in clustered(55, 20, 40, 8) {
                let mut distances = vec![0.0; rows.len()];
                exact::distances(&rows, &query, &mut distances, NEVER).unwrap();
                for n_threads in [1, 2] {
                    let found = in_pool(n_threads, || search(&built.graph, &rows, &query, &Wanted::new(10, 64)));
                    let found = found.unwrap().neighbors;
                    assert!(found.is_sorted());
                    for neighbor in found {
                        let expected = distances[neighbor.row as usize];
                        assert_eq!(neighbor.distance.to_bits(), expected.to_bits(), "{kernel}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_filter_keeps_rows_out_and_all_places_filled() {
    let built = &clusters();
    let queries = clustered(55, 30, DIMENSIONS, 50);
    let mut random = Random::new(9);
    // From none to all: the scan answers where few are allowed, the walk where many are.
    for n_in_thousand in [0, 1, 3, 20, 100, 300, 700, 1_000] {
        let allowed: RoaringBitmap = (0..N_ROWS as u32).filter(|_| random.below(1_000) < n_in_thousand).collect();
        for query in &queries {
            for k in [1, 10, 100] {
                let found = search(&built.graph, &built.rows, query, &within(k, 32, Some(&allowed))).unwrap().neighbors;
                assert_eq!(found.len() as u64, allowed.len().min(k as u64), "{n_in_thousand} in thousand, k {k}");
                assert!(found.iter().all(|neighbor| allowed.contains(neighbor.row)));
                assert!(found.is_sorted_by(|a, b| a < b), "nearest first, none twice");
            }
        }
    }
    let half: RoaringBitmap = (0..N_ROWS as u32).filter(|row| row % 2 == 0).collect();
    assert_eq!(plan(N_ROWS, half.len(), 10, 32), Path::Graph);
    let recall = recall(built, &queries, 10, 32, Some(&half));
    assert!(recall >= 0.97, "{recall}");
}

#[test]
fn a_filter_far_from_the_query_still_fills_all_places() {
    let built = &clusters();
    let query = built.rows.row(0).unwrap().into_owned();
    let mut all = exact::search(&built.rows, &query, N_ROWS, None, NEVER).unwrap();
    all.reverse();
    // The farther half: the walk passes the nearer half first, and gives up for the scan.
    let allowed: RoaringBitmap = all[..N_ROWS / 2].iter().map(|neighbor| neighbor.row).collect();
    assert_eq!(plan(N_ROWS, allowed.len(), 10, 32), Path::Graph);
    let found = search(&built.graph, &built.rows, &query, &within(10, 32, Some(&allowed))).unwrap().neighbors;
    let expected = exact::search(&built.rows, &query, 10, Some(&allowed), NEVER).unwrap();
    assert_eq!(found.len(), 10);
    let n_right = found.iter().filter(|neighbor| neighbor.distance <= expected[9].distance).count();
    assert!(n_right >= 9, "{n_right} of 10");
}

#[test]
fn asking_for_more_than_there_is_gives_all() {
    let built = &clusters();
    let query = built.rows.row(7).unwrap().into_owned();
    let all = search(&built.graph, &built.rows, &query, &Wanted::new(2 * N_ROWS, 10)).unwrap().neighbors;
    assert_eq!(all, exact::search(&built.rows, &query, 2 * N_ROWS, None, NEVER).unwrap());
    assert!(search(&built.graph, &built.rows, &query, &Wanted::new(0, 64)).unwrap().neighbors.is_empty());
}

#[test]
fn thousands_of_equal_rows_neither_hide_one_another_nor_their_neighbours() {
    let mut vectors = clustered(56, 600, DIMENSIONS, 10);
    let same = vectors[0].clone();
    vectors.extend(std::iter::repeat_n(same.clone(), 1_500));
    vectors.extend(clustered(57, 100, DIMENSIONS, 10));
    let built = built(&vectors, Scalar::F32);
    let health = health(&built.graph, &built.rows, &HealthConfig { n_sample: 2_200, n_exact: 2_200, ef: 64 }).unwrap();
    assert_eq!((health.n_rows, health.n_distinct, health.n_unreachable), (2_200, 700, 0));
    assert!(health.self_retrieval >= 0.999 && health.recall_at_10 >= 0.99, "{health:?}");

    assert_eq!(plan(vectors.len(), vectors.len() as u64, 10, 64), Path::Graph);
    let ask = |k, allowed| search(&built.graph, &built.rows, &same, &within(k, 64, allowed)).unwrap().neighbors;
    let rows: Vec<u32> = ask(10, None).iter().map(|neighbor| neighbor.row).collect();
    assert_eq!(rows, [0, 600, 601, 602, 603, 604, 605, 606, 607, 608], "equal rows, by row");
    let odd: RoaringBitmap = (0..2_200).filter(|row| row % 2 == 1).collect();
    let rows: Vec<u32> = ask(5, Some(&odd)).iter().map(|neighbor| neighbor.row).collect();
    assert_eq!(rows, [601, 603, 605, 607, 609], "twins of a row that is not allowed");
}

#[test]
fn small_graphs_are_whole() {
    for n_rows in [0, 1, 2, 3, 17, 100] {
        let built = built(&clustered(62, n_rows, DIMENSIONS, 3), Scalar::F16);
        assert_eq!(built.graph.len(), n_rows);
        built.graph.verify().unwrap();
        let health = health(&built.graph, &built.rows, &HealthConfig::default()).unwrap();
        assert_eq!((health.n_unreachable, health.reachable, health.recall_at_10), (0, 1.0, 1.0), "{n_rows} rows");
        let query = Random::new(1).unit(DIMENSIONS);
        let found = search(&built.graph, &built.rows, &query, &Wanted::new(10, 64)).unwrap().neighbors;
        assert_eq!(found.len(), n_rows.min(10));
        let allowed: RoaringBitmap = [1, 2, 50, 5_000].into();
        let found = search(&built.graph, &built.rows, &query, &within(10, 64, Some(&allowed))).unwrap().neighbors;
        assert_eq!(found.len() as u64, allowed.range_cardinality(..n_rows as u32));
    }
}

#[test]
fn progress_counts_rows_and_may_stop_the_work() {
    let folder = Folder::new();
    let mut vectors = clustered(58, 1_200, DIMENSIONS, 3);
    vectors.push(vectors[0].clone());
    let rows = folder.rows("rows", &vectors, DIMENSIONS, Scalar::F32);
    let config = HnswConfig { m: 4, ef_construction: 10 };
    let told = |stop_at| {
        let mut told = Vec::new();
        let mut progress = |n_done| {
            told.push(n_done);
            if n_done >= stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = matches!(build(&rows, &config, 2, &mut progress), Err(Error::Cancelled));
        (told, stopped)
    };
    assert_eq!(told(usize::MAX), (vec![512, 1_024, 1_201], false));
    assert_eq!(told(600), (vec![512, 1_024], true));
}

#[test]
fn settings_out_of_range_are_refused_by_name_and_value() {
    let folder = Folder::new();
    let rows = folder.rows("rows", &clustered(59, 10, DIMENSIONS, 3), DIMENSIONS, Scalar::F32);
    let refused = [
        (0, 200, "m is 0, allowed is 2 to 128"),
        (1, 200, "m is 1, allowed is 2 to 128"),
        (129, 200, "m is 129, allowed is 2 to 128"),
        (usize::MAX, 200, "m is 18446744073709551615, allowed is 2 to 128"),
        (16, 15, "ef_construction is 15, allowed is m to 65,536"),
        (16, 0, "ef_construction is 0, allowed is m to 65,536"),
        (16, 65_537, "ef_construction is 65537, allowed is m to 65,536"),
    ];
    for (m, ef_construction, message) in refused {
        let error = build(&rows, &HnswConfig { m, ef_construction }, 0, &mut go_on).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    for (m, ef_construction) in [(2, 2), (M_MAX, M_MAX), (16, EF_CONSTRUCTION_MAX)] {
        build(&rows, &HnswConfig { m, ef_construction }, 0, &mut go_on).unwrap();
    }
}

#[test]
fn a_graph_is_not_searched_with_rows_of_another_segment() {
    let built = &clusters();
    let others = built.folder.rows("others", &clustered(60, 10, DIMENSIONS, 3), DIMENSIONS, Scalar::F32);
    let query = others.row(0).unwrap().into_owned();
    let result = search(&built.graph, &others, &query, &Wanted::new(1, 64));
    assert!(matches!(result, Err(Error::OtherRows { graph: N_ROWS, rows: 10, .. })));
    assert!(matches!(health(&built.graph, &others, &HealthConfig::default()), Err(Error::OtherRows { .. })));
}

/// Real vectors: the graph of a part of them against the exact scan.
#[test]
fn recall_on_real_vectors_has_a_floor() {
    const N_BASE: usize = 1_200;
    const N_QUERIES: usize = 100;
    let Some(split) = crate::testing::bge_split() else { return };
    let built = built(&split.base[..N_BASE], Scalar::F16);
    let queries = &split.queries[..N_QUERIES];
    let recall = [32, 64, 128].map(|ef| recall(&built, queries, 10, ef, None));
    println!("bge-base, {N_BASE} rows of f16, {N_QUERIES} queries: recall@10 at ef 32, 64, 128: {recall:.4?}");
    assert!(recall[1] >= 0.95 && recall[2] >= 0.98, "{recall:?}");
}

#[test]
fn a_walk_ends_where_it_is_told_to_stop() {
    let built = clusters();
    let query = built.rows.row(7).unwrap().into_owned();
    let all: RoaringBitmap = (0..N_ROWS as u32).collect();
    for allowed in [None, Some(&all)] {
        for n_first in [0, 1] {
            let n_asked = AtomicUsize::new(0);
            let stop = || n_asked.fetch_add(1, Ordering::Relaxed) >= n_first;
            let wanted = Wanted { stop: &stop, ..within(1, 64, allowed) };
            assert_eq!(plan(N_ROWS, N_ROWS as u64, 1, 64), Path::Graph);
            let found = search(&built.graph, &built.rows, &query, &wanted);
            assert!(matches!(found, Err(Error::Cancelled)), "{found:?}");
            assert_eq!(n_asked.into_inner(), n_first + 1, "it goes on from no node behind the signal");
        }
    }
    assert_eq!(search(&built.graph, &built.rows, &query, &Wanted::new(1, 64)).unwrap().neighbors[0].row, 7);
}
