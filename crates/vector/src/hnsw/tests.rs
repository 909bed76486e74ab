//! The graph against the exact scan, against itself, and against files that no builder makes.

use std::io::Cursor;
use std::io::Write;
use std::ops::ControlFlow;

use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::*;
use crate::file::{Mapped, Writer};
use crate::testing::{Folder, Random, clustered, in_pool};
use crate::{Error, Kernel, Neighbor, Rows, Scalar, exact};

const DIMENSIONS: usize = 32;

/// Enough that a beam of 64 walks and does not scan.
const N_ROWS: usize = 1_200;

fn go_on(_: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn bytes_of(rows: &Rows) -> Vec<u8> {
    let graph = build(rows, &HnswConfig::default(), &mut go_on).unwrap();
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
    let folder = Folder::new();
    let rows = folder.rows("rows", vectors, vectors.first().map_or(DIMENSIONS, Vec::len), scalar);
    let bytes = bytes_of(&rows);
    let graph = open(&folder, &bytes).unwrap();
    Built { folder, rows, graph, bytes }
}

fn clusters() -> Built {
    built(&clustered(50, N_ROWS, DIMENSIONS, 20), Scalar::F32)
}

/// The share of the exact results that the search finds.
fn recall(built: &Built, queries: &[Vec<f32>], k: usize, ef: usize, allowed: Option<&RoaringBitmap>) -> f64 {
    let mut n_found = 0;
    for query in queries {
        let expected = exact::search(&built.rows, query, k, allowed).unwrap();
        let found = search(&built.graph, &built.rows, query, k, ef, allowed).unwrap();
        assert_eq!(found.len(), k);
        n_found += found.iter().filter(|neighbor| neighbor.distance <= expected[k - 1].distance).count();
    }
    n_found as f64 / (queries.len() * k) as f64
}

#[test]
fn every_row_of_fifty_clusters_is_reachable_and_recall_has_a_floor() {
    const N_ROWS: usize = 4_000;
    let built = built(&clustered(50, N_ROWS, DIMENSIONS, 50), Scalar::F32);
    built.graph.verify().unwrap();
    let health = health(&built.graph, &built.rows, &HealthConfig { n_sample: 400, ef: 64 }).unwrap();
    println!("{health:?}");
    assert_eq!((health.n_rows, health.n_distinct, health.n_sample), (N_ROWS, N_ROWS, 400));
    assert_eq!((health.n_unreachable, health.reachable), (0, 1.0));
    assert!(health.in_degree_min >= 1 && health.in_degrees[0] == 0);
    assert_eq!(health.in_degrees.iter().sum::<usize>(), N_ROWS);
    assert!(health.out_degree_max <= 48, "{}", health.out_degree_max);
    assert!(health.self_retrieval >= 0.99, "{}", health.self_retrieval);
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
    let graph = build(&rows, &HnswConfig { m: 4, ef_construction: 16 }, &mut go_on).unwrap();
    let repairs = graph.repairs();
    println!("{repairs:?}");
    assert!(repairs.n_unreachable > 10, "else this set proves nothing: {repairs:?}");
    assert!(repairs.n_edges >= repairs.n_unreachable);
    let bytes = graph.write(Cursor::new(Vec::new())).unwrap().into_inner();
    let graph = open(&folder, &bytes).unwrap();
    assert_eq!(graph.config(), HnswConfig { m: 4, ef_construction: 16 });
    let health = health(&graph, &rows, &HealthConfig::default()).unwrap();
    println!("{health:?}");
    assert_eq!((health.n_unreachable, health.in_degrees[0]), (0, 0));
}

#[test]
fn building_again_gives_the_same_bytes_for_any_number_of_threads() {
    let folder = Folder::new();
    for scalar in [Scalar::F32, Scalar::F16] {
        let rows = folder.rows("rows", &clustered(53, 500, DIMENSIONS, 8), DIMENSIONS, scalar);
        let expected = in_pool(1, || bytes_of(&rows));
        assert_eq!(in_pool(2, || bytes_of(&rows)), expected);
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
                exact::distances(&rows, &query, &mut distances).unwrap();
                for n_threads in [1, 2] {
                    let found = in_pool(n_threads, || search(&built.graph, &rows, &query, 10, 64, None)).unwrap();
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
                let found = search(&built.graph, &built.rows, query, k, 32, Some(&allowed)).unwrap();
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
    let mut all = exact::search(&built.rows, &query, N_ROWS, None).unwrap();
    all.reverse();
    // The farther half: the walk passes the nearer half first, and gives up for the scan.
    let allowed: RoaringBitmap = all[..N_ROWS / 2].iter().map(|neighbor| neighbor.row).collect();
    assert_eq!(plan(N_ROWS, allowed.len(), 10, 32), Path::Graph);
    let found = search(&built.graph, &built.rows, &query, 10, 32, Some(&allowed)).unwrap();
    let expected = exact::search(&built.rows, &query, 10, Some(&allowed)).unwrap();
    assert_eq!(found.len(), 10);
    let n_right = found.iter().filter(|neighbor| neighbor.distance <= expected[9].distance).count();
    assert!(n_right >= 9, "{n_right} of 10");
}

#[test]
fn asking_for_more_than_there_is_gives_all() {
    let built = &clusters();
    let query = built.rows.row(7).unwrap().into_owned();
    let all = search(&built.graph, &built.rows, &query, 2 * N_ROWS, 10, None).unwrap();
    assert_eq!(all, exact::search(&built.rows, &query, 2 * N_ROWS, None).unwrap());
    assert!(search(&built.graph, &built.rows, &query, 0, 64, None).unwrap().is_empty());
}

#[test]
fn thousands_of_equal_rows_neither_hide_one_another_nor_their_neighbours() {
    let mut vectors = clustered(56, 600, DIMENSIONS, 10);
    let same = vectors[0].clone();
    vectors.extend(std::iter::repeat_n(same.clone(), 1_500));
    vectors.extend(clustered(57, 100, DIMENSIONS, 10));
    let built = built(&vectors, Scalar::F32);
    let health = health(&built.graph, &built.rows, &HealthConfig { n_sample: 2_200, ef: 64 }).unwrap();
    assert_eq!((health.n_rows, health.n_distinct, health.n_unreachable), (2_200, 700, 0));
    assert!(health.self_retrieval >= 0.999 && health.recall_at_10 >= 0.99, "{health:?}");

    assert_eq!(plan(vectors.len(), vectors.len() as u64, 10, 64), Path::Graph);
    let ask = |k, allowed| search(&built.graph, &built.rows, &same, k, 64, allowed).unwrap();
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
        let found = search(&built.graph, &built.rows, &query, 10, 64, None).unwrap();
        assert_eq!(found.len(), n_rows.min(10));
        let allowed: RoaringBitmap = [1, 2, 50, 5_000].into();
        let found = search(&built.graph, &built.rows, &query, 10, 64, Some(&allowed)).unwrap();
        assert_eq!(found.len() as u64, allowed.range_cardinality(..n_rows as u32));
    }
}

#[test]
fn progress_counts_rows_and_may_stop_the_work() {
    let folder = Folder::new();
    let rows = folder.rows("rows", &clustered(58, 50, DIMENSIONS, 3), DIMENSIONS, Scalar::F32);
    let mut told = Vec::new();
    let mut progress = |n_done| {
        told.push(n_done);
        if n_done == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(matches!(build(&rows, &HnswConfig::default(), &mut progress), Err(Error::Cancelled)));
    assert_eq!(told, (1..=20).collect::<Vec<_>>());
}

#[test]
fn settings_out_of_range_are_refused() {
    let folder = Folder::new();
    let rows = folder.rows("rows", &clustered(59, 10, DIMENSIONS, 3), DIMENSIONS, Scalar::F32);
    for (m, ef_construction) in [(0, 200), (1, 200), (129, 200), (256, 200), (16, 15), (16, 0)] {
        let config = HnswConfig { m, ef_construction };
        assert!(matches!(build(&rows, &config, &mut go_on), Err(Error::Setting { .. })), "{config:?}");
    }
    build(&rows, &HnswConfig { m: M_MAX, ef_construction: 128 }, &mut go_on).unwrap();
}

#[test]
fn a_graph_is_not_searched_with_rows_of_another_segment() {
    let built = &clusters();
    let others = built.folder.rows("others", &clustered(60, 10, DIMENSIONS, 3), DIMENSIONS, Scalar::F32);
    let query = others.row(0).unwrap().into_owned();
    let result = search(&built.graph, &others, &query, 1, 64, None);
    assert!(matches!(result, Err(Error::OtherRows { graph: N_ROWS, rows: 10, .. })));
    assert!(matches!(health(&built.graph, &others, &HealthConfig::default()), Err(Error::OtherRows { .. })));
}

#[test]
fn a_damaged_graph_is_found_when_it_is_searched() {
    let built = clusters();
    let (rows, bytes) = (&built.rows, &built.bytes);
    let folder = Folder::new();
    let mut n_errors = 0;
    for at in (64..bytes.len() - 64).step_by(bytes.len() / 40) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x04;
        let Ok(graph) = open(&folder, &bytes) else {
            n_errors += 1;
            continue;
        };
        assert!(matches!(graph.verify(), Err(Error::Corrupt { .. })), "byte {at}");
        let query = rows.row(0).unwrap().into_owned();
        match search(&graph, rows, &query, 10, 256, None) {
            Err(Error::Corrupt { .. }) => n_errors += 1,
            Ok(found) => assert_eq!(found, search(&built.graph, rows, &query, 10, 256, None).unwrap()),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(n_errors > 5, "{n_errors}: the walk touches most blocks");
}

/// A graph of 1,000 rows whose lists are all alike, its words in the order of the file.
fn words_of(n_rows: u32, entry: u32, list: &[u32]) -> Vec<u32> {
    let mut words = vec![16, 200, entry, 0, 0, 0];
    words.resize(16, 0);
    words.extend((0..=n_rows).map(|row| row * list.len() as u32));
    words.resize(words.len().next_multiple_of(16), 0);
    (0..n_rows).for_each(|_| words.extend(list));
    words.resize(words.len().next_multiple_of(16) + 16, 0); // no twins: one list end, of 0
    words
}

/// A file whose checksums hold, whatever it contains.
fn crafted(folder: &Folder, words: &[u32], counts: [u64; 2]) -> Result<FrozenGraph, Error> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), KIND).unwrap();
    writer.write_all(bytemuck::cast_slice(words)).unwrap();
    open(folder, &writer.finish(counts).unwrap().into_inner())
}

fn thousand_rows(folder: &Folder) -> Rows {
    folder.rows("rows", &clustered(61, 1_000, DIMENSIONS, 3), DIMENSIONS, Scalar::F32)
}

#[test]
fn a_crafted_graph_leads_to_an_error_never_out_of_bounds() {
    let folder = Folder::new();
    let rows = thousand_rows(&folder);
    let query = rows.row(0).unwrap().into_owned();
    let ask = |words: &[u32]| -> Result<Vec<Neighbor>, Error> {
        search(&crafted(&folder, words, [1_000, 2_000])?, &rows, &query, 10, 64, None)
    };
    // Lists that reach two rows only: the scan gives the rest.
    assert_eq!(ask(&words_of(1_000, 5, &[1, 2])).unwrap(), exact::search(&rows, &query, 10, None).unwrap());
    assert!(matches!(ask(&words_of(1_000, 5, &[1, 1_000])), Err(Error::Corrupt { .. })), "names a row past the last");
    assert!(matches!(ask(&words_of(1_000, 5, &[1, u32::MAX])), Err(Error::Corrupt { .. })), "names no row at all");
    assert!(matches!(ask(&words_of(1_000, 1_000, &[1, 2])), Err(Error::Corrupt { .. })), "enters past the last row");
    assert!(matches!(ask(&words_of(900, 5, &[1, 2])), Err(Error::Corrupt { .. })), "rows are missing");
    let mut ends_late = words_of(1_000, 5, &[1, 2]);
    ends_late[16 + 6] = 2_001;
    assert!(matches!(ask(&ends_late), Err(Error::Corrupt { .. })), "a list ends past the lists");
    let mut ends_early = words_of(1_000, 5, &[1, 2]);
    ends_early[16 + 6] = 9;
    assert!(matches!(ask(&ends_early), Err(Error::Corrupt { .. })), "a list ends before it starts");
    let mut layers = words_of(1_000, 5, &[1, 2]);
    layers[3] = u32::MAX;
    assert!(matches!(ask(&layers), Err(Error::Corrupt { .. })), "more layers than there can be");
    // What the rounding of parts hides from opening, verification finds.
    let graph = crafted(&folder, &words_of(1_000, 5, &[1, 2]), [1_001, 2_000]).unwrap();
    assert!(matches!(graph.verify(), Err(Error::Corrupt { .. })), "a row without a list");
    for counts in [[u64::MAX, 2_000], [1_000, u64::MAX], [1_040, 2_000], [1_000, 2_016], [u64::MAX, u64::MAX], [0, 0]] {
        let opened = crafted(&folder, &words_of(1_000, 5, &[1, 2]), counts);
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{counts:?}");
    }
    assert!(matches!(crafted(&folder, &[], [0, 0]), Err(Error::Corrupt { .. })), "no payload");
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any words under whole checksums: every answer is a result or an error.
    #[test]
    fn no_payload_panics(
        changes in prop::collection::vec((0_usize..3_100, any::<u32>()), 1..8),
        small in prop::collection::vec((0_usize..20, 0_u32..40), 0..8),
    ) {
        let folder = Folder::new();
        let rows = thousand_rows(&folder);
        let mut words = words_of(1_000, 5, &[1, 2]);
        for (at, word) in changes.into_iter().chain(small) {
            let at = at % words.len();
            words[at] = word;
        }
        if let Ok(graph) = crafted(&folder, &words, [1_000, 2_000]) {
            let _ = graph.verify();
            if let Ok(found) = search(&graph, &rows, &rows.row(3).unwrap(), 10, 64, None) {
                prop_assert_eq!(found.len(), 10);
            }
        }
    }
}
