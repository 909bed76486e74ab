//! Collections of vectors that were given, against scores computed one by one.

use std::path::{Path, PathBuf};

use cento_collection::care::doctor::doctor;
use cento_collection::format::config::Distance;
use cento_collection::fs::OsFs;
use cento_corpus as corpus;
use cento_embedder::{Accelerator, DeviceChoice};
use cento_vector::Scalar;

use super::rows::length;
use super::*;
use crate::api::{NeighborsRequest, SearchRequest};
use crate::ingest::delete::delete;
use crate::ingest::repair::{RepairOptions, repair};
use crate::ingest::{IndexOptions, compact, index};
use crate::retrieve::dense::NeighborSearch;
use crate::retrieve::request::{ChunkSearch, Mode};
use crate::retrieve::searcher::{Searcher, SearcherOptions};
use crate::source::seam::Scan;
use crate::{Cancel, Links, VectorNeighbors};

const DIMENSIONS: usize = 9;

/// A folder with files of vectors and a collection.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn collection(&self) -> PathBuf {
        self.path("collection")
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    fn vectors(&self, name: &str, rows: &[Vec<f32>]) -> PathBuf {
        let row = |row: &Vec<f32>| {
            let values = row.iter().flat_map(|value| value.to_le_bytes());
            (row.len() as u32).to_le_bytes().into_iter().chain(values).collect::<Vec<u8>>()
        };
        self.write(name, rows.iter().flat_map(row).collect::<Vec<u8>>())
    }

    fn index(&self, options: &GivenOptions) -> Result<IndexReport> {
        index_vectors(&self.collection(), options, &OsFs, &mut |_| {})
    }

    fn searcher(&self) -> Searcher {
        Searcher::open(self.collection(), SearcherOptions::default()).unwrap()
    }
}

/// Vectors of many lengths, in clusters.
fn rows(n: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut state = seed;
    let mut value = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5) * 40.0
    };
    let centres: Vec<Vec<f32>> = (0..5).map(|_| (0..DIMENSIONS).map(|_| value()).collect()).collect();
    (0..n).map(|n| centres[n % 5].iter().map(|centre| centre + value() / 8.0).collect()).collect()
}

fn normalized(rows: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let unit = |row: &Vec<f32>| row.iter().map(|value| (f64::from(*value) / length(row)) as f32).collect();
    rows.iter().map(unit).collect()
}

fn truth(distance: Distance, query: &[f32], row: &[f32]) -> f64 {
    let pairs = query.iter().zip(row).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    match distance {
        Distance::Cosine => pairs.map(|(a, b)| a * b).sum::<f64>() / length(query),
        Distance::InnerProduct => pairs.map(|(a, b)| a * b).sum(),
        Distance::Euclidean => 0.0 - pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
    }
}

/// The numbers of the `k` best rows, ties by id descending.
fn best(distance: Distance, query: &[f32], rows: &[Vec<f32>], k: usize) -> Vec<(String, f64)> {
    let mut scored: Vec<(String, f64)> =
        rows.iter().enumerate().map(|(row, vector)| (row.to_string(), truth(distance, query, vector))).collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
    scored.truncate(k);
    scored
}

#[track_caller]
fn check(searcher: &Searcher, distance: Distance, queries: &[Vec<f32>], rows: &[Vec<f32>], scan: Scan) {
    let request = NeighborsRequest { k: 7, scan, ..NeighborsRequest::default() };
    let (found, _) = searcher.neighbors(queries, &request.resolve(&Cancel::default()).unwrap()).unwrap();
    for (query, found) in queries.iter().zip(found) {
        let expected = best(distance, query, rows, 7);
        let ids: Vec<&String> = expected.iter().map(|(id, _)| id).collect();
        assert_eq!(found.ids.iter().collect::<Vec<_>>(), ids, "{distance}");
        for (score, (_, expected)) in found.scores.iter().zip(&expected) {
            let near = if distance == Distance::Cosine { 1e-6 } else { 0.0 };
            assert!((score - expected).abs() <= near, "{distance}: {score} for {expected}");
        }
    }
}

#[test]
fn neighbours_are_those_of_the_distance_with_its_own_scores_by_scan_and_by_graph() {
    let (all, queries) = (rows(600, 3), rows(12, 4));
    for distance in [Distance::Cosine, Distance::InnerProduct, Distance::Euclidean] {
        let all = if distance == Distance::Cosine { normalized(&all) } else { all.clone() };
        let place = Place::new();
        let options = GivenOptions {
            distance: Some(distance),
            graph_rows_min: 500,
            ..GivenOptions::new(place.vectors("v.fvecs", &all))
        };
        assert_eq!(place.index(&options).unwrap().n_added, 600);
        let searcher = place.searcher();
        check(&searcher, distance, &queries, &all, Scan::Exact);
        let walked = NeighborsRequest { k: 7, ef: Some(60), ..NeighborsRequest::default() };
        let (found, scanned) = searcher.neighbors(&queries, &walked.resolve(&Cancel::default()).unwrap()).unwrap();
        let n_found = |(found, query): (&VectorNeighbors, &Vec<f32>)| {
            let expected = best(distance, query, &all, 7);
            expected.iter().filter(|(id, _)| found.ids.contains(id)).count()
        };
        let n_found: usize = found.iter().zip(&queries).map(n_found).sum();
        assert!(scanned == "graph" && n_found >= 7 * queries.len() * 9 / 10, "{distance}: {n_found}, {scanned}");
        let request = SearchRequest { vector: Some(queries[0].clone()), k: 3, ..SearchRequest::default() };
        let hits = searcher.search(&request.resolve().unwrap()).unwrap().hits;
        let expected = best(distance, &queries[0], &all, 3);
        assert_eq!(
            hits.iter().map(|hit| &hit.document).collect::<Vec<_>>(),
            expected.iter().map(|(id, _)| id).collect::<Vec<_>>()
        );
    }
}

/// The neighbours that the CPU finds, ties included, from several segments with rows that are gone.
#[test]
fn a_device_finds_the_neighbours_of_many_vectors_that_the_cpu_finds() {
    let Ok(device) = Accelerator::open(DeviceChoice::Gpu(Some(0))) else {
        eprintln!("skipped: no Vulkan or Metal driver offers an adapter (Debian: libvulkan1, mesa-vulkan-drivers)");
        return;
    };
    let mut all = normalized(&rows(700, 21));
    let tie = all[3].clone();
    all.iter_mut().step_by(9).for_each(|row| row.clone_from(&tie));
    let mut queries = normalized(&rows(40, 22));
    queries.push(tie);
    for (distance, scalar) in [
        (Distance::Cosine, Scalar::F32),
        (Distance::Cosine, Scalar::F16),
        (Distance::InnerProduct, Scalar::F32), // which a device leaves to the CPU
    ] {
        let place = Place::new();
        for (name, part) in [("a", &all[..400]), ("b", &all[400..])] {
            let ids: Vec<String> = (0..part.len()).map(|n| format!("{name}{n}")).collect();
            let options = GivenOptions {
                distance: Some(distance),
                scalar: Some(scalar),
                ids: Some(place.write(&format!("{name}.ids"), ids.join("\n"))),
                graph_rows_min: 350,
                ..GivenOptions::new(place.vectors(&format!("{name}.fvecs"), part))
            };
            place.index(&options).unwrap();
        }
        let gone: Vec<String> = (0..60).map(|n| format!("a{}", n * 3)).collect();
        delete(&place.collection(), &gone, &OsFs).unwrap();
        let searcher = place.searcher();
        for (k, scan) in [(1, Scan::Exact), (25, Scan::Exact), (640, Scan::Exact), (9, Scan::Auto)] {
            let request = NeighborsRequest { k, scan, ..NeighborsRequest::default() };
            let on = |accelerator: Option<Accelerator>| {
                let search = NeighborSearch { accelerator, ..request.resolve(&Cancel::default()).unwrap() };
                searcher.neighbors(&queries, &search).unwrap()
            };
            let (found, scanned) = on(Some(device.clone()));
            assert_eq!((&found, scanned), (&on(None).0, on(None).1), "{distance}, k {k}");
            assert!(found.iter().all(|found| found.ids.len() == k), "{distance}, k {k}");
        }
    }
}

#[test]
fn one_row_far_from_all_others_costs_no_scan_a_neighbour() {
    let mut all: Vec<Vec<f32>> =
        rows(300, 13).iter().map(|row| row.iter().map(|value| value / 1e3).collect()).collect();
    all.push(vec![4e7; DIMENSIONS]);
    let queries: Vec<Vec<f32>> = all[..9].iter().map(|row| row.iter().map(|value| value + 1e-4).collect()).collect();
    for distance in [Distance::InnerProduct, Distance::Euclidean] {
        let place = Place::new();
        let options = GivenOptions { distance: Some(distance), ..GivenOptions::new(place.vectors("v.fvecs", &all)) };
        place.index(&options).unwrap();
        let searcher = place.searcher();
        check(&searcher, distance, &queries, &all, Scan::Exact);
        for query in &queries {
            let request = SearchRequest { vector: Some(query.clone()), k: 5, ..SearchRequest::default() };
            let hits = searcher.search(&request.resolve().unwrap()).unwrap().hits;
            let expected = best(distance, query, &all, 5);
            let ids: Vec<&String> = hits.iter().map(|hit| &hit.document).collect();
            assert_eq!(ids, expected.iter().map(|(id, _)| id).collect::<Vec<_>>(), "{distance}: documents");
        }
    }
    // Halves are what is compared, where they are what is stored: the best by their own numbers is the first.
    let place = Place::new();
    let vectors = place.vectors("v.fvecs", &all[..300]);
    let options = GivenOptions {
        distance: Some(Distance::Euclidean),
        scalar: Some(Scalar::F16),
        norm_max: Some(1024.0),
        ..GivenOptions::new(vectors)
    };
    place.index(&options).unwrap();
    let half = |value: &f32| half::f16::from_f32(value / 2048.0).to_f32() * 2048.0;
    let stored: Vec<Vec<f32>> = all[..300].iter().map(|row| row.iter().map(half).collect()).collect();
    check(&place.searcher(), Distance::Euclidean, &queries, &stored, Scan::Exact);
}

#[test]
fn vectors_of_one_dimension_and_vectors_that_are_all_the_same_have_neighbours() {
    for distance in [Distance::Cosine, Distance::InnerProduct, Distance::Euclidean] {
        let place = Place::new();
        let line: Vec<Vec<f32>> = [3.0, -1.0, 2.0].map(|value: f32| vec![value]).to_vec();
        let lengths = if distance == Distance::Cosine { Lengths::Normalized } else { Lengths::Kept };
        let options =
            GivenOptions { distance: Some(distance), lengths, ..GivenOptions::new(place.vectors("v.fvecs", &line)) };
        place.index(&options).unwrap();
        let line = if distance == Distance::Cosine { normalized(&line) } else { line };
        let (k, queries) = (3, [vec![1.9_f32], vec![-5.0]]);
        let request = NeighborsRequest { k, ..NeighborsRequest::default() };
        let resolved = request.resolve(&Cancel::default()).unwrap();
        let (found, _) = place.searcher().neighbors(&queries, &resolved).unwrap();
        for (query, found) in queries.iter().zip(found) {
            let expected: Vec<String> = best(distance, query, &line, k).into_iter().map(|(id, _)| id).collect();
            assert_eq!(found.ids, expected, "{distance}: {query:?}");
        }
        let place = Place::new();
        let same = vec![vec![0.6, 0.8]; 600];
        let options = GivenOptions {
            distance: Some(distance),
            graph_rows_min: 500,
            ..GivenOptions::new(place.vectors("v.fvecs", &same))
        };
        place.index(&options).unwrap();
        let (found, _) = place.searcher().neighbors(&[same[0].clone()], &resolved).unwrap();
        assert_eq!(found[0].scores.len(), k, "{distance}");
        assert!(found[0].scores.iter().all(|score| score == &found[0].scores[0]), "{distance}: {found:?}");
    }
}

#[test]
fn ids_are_their_own_whatever_they_look_like() {
    let place = Place::new();
    let unit = normalized(&rows(2, 8));
    let vectors = place.vectors("v.fvecs", &unit);
    let ids = Some(place.write("ids", "\u{feff}east\r\nwest\r\n"));
    place.index(&GivenOptions { ids, ..GivenOptions::new(&vectors) }).unwrap();
    let found = |place: &Place| {
        let request = NeighborsRequest { k: 1, ..NeighborsRequest::default() };
        let searcher = place.searcher();
        let (found, _) = searcher.neighbors(&unit, &request.resolve(&Cancel::default()).unwrap()).unwrap();
        found.into_iter().flat_map(|found| found.ids).collect::<Vec<_>>()
    };
    assert_eq!(found(&place), ["east", "west"]);
    let place = Place::new();
    let vectors = place.vectors("v.fvecs", &unit);
    let texts = "{\"id\": \"t.jsonl:9\", \"text\": \"x\"}\n\n{\"text\": \"y\"}";
    let texts = Some(place.write("t.jsonl", texts));
    place.index(&GivenOptions { texts, ..GivenOptions::new(vectors) }).unwrap();
    assert_eq!(found(&place), ["t.jsonl:9", "1"]);
}

#[test]
fn the_same_ids_again_replace_and_others_are_added_and_the_order_of_writing_tells_nothing() {
    let all = rows(60, 5);
    let place = Place::new();
    let distance = Some(Distance::Euclidean);
    let first =
        GivenOptions { distance, norm_max: Some(200.0), ..GivenOptions::new(place.vectors("a.fvecs", &all[..40])) };
    place.index(&first).unwrap();
    let again = place.index(&first).unwrap();
    assert_eq!((again.generation, again.n_unchanged, again.n_added), (1, 40, 0));
    let mut moved = all[30..].to_vec();
    moved[0] = vec![1.0; DIMENSIONS];
    let ids: String = (30..60).map(|n| format!("{n}\n")).collect();
    let second = GivenOptions {
        ids: Some(place.write("ids", ids)),
        compact: false,
        ..GivenOptions::new(place.vectors("b.fvecs", &moved))
    };
    let report = place.index(&second).unwrap();
    assert_eq!((report.generation, report.n_unchanged, report.n_changed, report.n_added), (2, 9, 1, 20));
    let mut now = all.clone();
    now[30] = moved[0].clone();
    let queries = rows(8, 6);
    check(&place.searcher(), Distance::Euclidean, &queries, &now, Scan::Exact);
    delete(&place.collection(), &["3".to_owned()], &OsFs).unwrap();
    now[3] = vec![9e9; DIMENSIONS]; // too far to be found
    check(&place.searcher(), Distance::Euclidean, &queries, &now, Scan::Exact);
    let options = CompactOptions { merge: Merge::All, ..CompactOptions::default() };
    compact(&place.collection(), &options, &OsFs, &mut |_| {}).unwrap();
    check(&place.searcher(), Distance::Euclidean, &queries, &now, Scan::Exact);
    let diagnosis = doctor(&place.collection()).unwrap();
    assert!(diagnosis.is_healthy(), "{diagnosis:?}");
}

#[test]
fn texts_are_searched_by_words_and_beside_a_vector_and_without_an_encoder_no_text_is_embedded() {
    let place = Place::new();
    let vectors = place.vectors("v.fvecs", &normalized(&rows(3, 7)));
    let texts = [
        r#"{"id": "moon", "title": "Moon", "text": "It pulls the sea.", "year": 1969}"#,
        r#"{"text": "Bread rises."}"#,
        r#"{"text": "?"}"#,
    ];
    let texts = Some(place.write("t.jsonl", texts.join("\n")));
    place.index(&GivenOptions { texts, ..GivenOptions::new(&vectors) }).unwrap();
    let searcher = place.searcher();
    let lexical = ChunkSearch { mode: Mode::Lexical, ..ChunkSearch::new("sea") };
    assert_eq!(searcher.search(&lexical).unwrap().hits[0].id, "moon#0");
    let both = ChunkSearch { vector: Some(vec![1.0; DIMENSIONS]), links: Links::None, ..ChunkSearch::new("bread") };
    let hits = searcher.search(&both).unwrap().hits;
    assert_eq!(hits.len(), 3, "a text without a word has a vector all the same");
    assert!(hits.iter().any(|hit| hit.contributions.len() == 2), "{hits:?}");
    for mode in [Mode::Hybrid, Mode::Dense] {
        let error = searcher.search(&ChunkSearch { mode, ..ChunkSearch::new("sea") }).unwrap_err();
        assert!(matches!(error, Error::NoEncoder), "{error}");
    }
    let filter = crate::Filter::parse("year > 1960").unwrap();
    let filtered = ChunkSearch {
        vector: Some(vec![1.0; DIMENSIONS]),
        mode: Mode::Dense,
        filter: Some(filter),
        ..ChunkSearch::new("")
    };
    assert_eq!(searcher.search(&filtered).unwrap().hits.len(), 1);

    let bare = Place::new();
    bare.index(&GivenOptions::new(vectors)).unwrap();
    let error = bare.searcher().search(&lexical).unwrap_err();
    assert!(matches!(error, Error::NoWords), "{error}");
}

#[test]
fn what_cannot_be_indexed_is_named_and_nothing_is_made() {
    let unit = normalized(&rows(3, 8));
    let with = |at: usize, value: f32| {
        let mut rows = unit.clone();
        rows[1][at] = value;
        rows
    };
    let zeros = vec![unit[0].clone(), vec![0.0; DIMENSIONS]];
    let cases: &[(&[Vec<f32>], Lengths, Option<Distance>, &str, &str, &str)] = &[
        (&with(2, f32::NAN), Lengths::Kept, None, "", "", "row 1 has a number that is not finite"),
        (&with(2, f32::INFINITY), Lengths::Normalized, None, "", "", "row 1 has a number that is not finite"),
        (&with(2, 3.0), Lengths::Kept, None, "", "", "row 1 has length"),
        (&zeros, Lengths::Kept, None, "", "", "row 1 has length 0"),
        (&zeros, Lengths::Normalized, None, "", "", "row 1 is a vector of zeros"),
        (&unit, Lengths::Kept, None, "a\nb", "", "has 2 ids, and there are 3 vectors"),
        (&unit, Lengths::Kept, None, "a\nb\na", "", "row 2 has the id \"a\" of another row"),
        (&unit, Lengths::Kept, None, "a\n\nb", "", "line 2 is empty"),
        (&unit, Lengths::Kept, None, "", "{\"text\": \"x\"}", "has 1 text, and there are 3 vectors"),
        (&unit[..1], Lengths::Kept, None, "", "{\"text\": \"x\"}\n{\"text\": \"y\"}", "more texts than the 1 vector"),
        (
            &unit[..1],
            Lengths::Kept,
            None,
            "a",
            "{\"id\": \"b\", \"text\": \"x\"}",
            "\"a\" by its id and \"b\" by its text",
        ),
        (&with(2, 1e30), Lengths::Kept, Some(Distance::InnerProduct), "", "", "row 1: a length of"),
    ];
    for (rows, lengths, distance, ids, texts, words) in cases {
        let place = Place::new();
        let file = |name: &str, content: &str| (!content.is_empty()).then(|| place.write(name, content));
        let (ids, texts) = (file("ids", ids), file("t.jsonl", texts));
        let vectors = place.vectors("v.fvecs", rows);
        let options = GivenOptions { ids, texts, lengths: *lengths, distance: *distance, ..GivenOptions::new(vectors) };
        let error = place.index(&options).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(!place.collection().exists(), "{words}");
    }
}

#[test]
fn what_does_not_fit_the_collection_is_refused() {
    let place = Place::new();
    let small = place.vectors("small.fvecs", &[vec![3.0, 4.0], vec![1.0, 0.0]]);
    let product = GivenOptions { distance: Some(Distance::InnerProduct), ..GivenOptions::new(&small) };
    place.index(&product).unwrap();
    let refused = |options: GivenOptions, words: &str| {
        let error = place.index(&options).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(GivenOptions { distance: Some(Distance::Euclidean), ..product.clone() }, "distance");
    refused(
        GivenOptions { texts: Some(place.write("t", "{\"text\": \"x\"}\n{\"text\": \"y\"}")), ..product.clone() },
        "texts",
    );
    refused(GivenOptions { scalar: Some(Scalar::F16), ..product }, "vectors");
    refused(GivenOptions::new(place.vectors("wide.fvecs", &[vec![1.0; 3]])), "dimensions");
    refused(GivenOptions::new(place.vectors("long.fvecs", &[vec![8.5, 0.0]])), "made for lengths to 8");
    let fits = GivenOptions::new(place.vectors("fits.fvecs", &[vec![8.0, 0.0]]));
    refused(GivenOptions { norm_max: Some(100.0), ..fits.clone() }, "norm_max");
    assert_eq!(place.index(&GivenOptions { norm_max: Some(8.0), ..fits }).unwrap().n_changed, 1);

    let notes = [corpus::Root::parse(place.write("note.md", "The tide rises.").to_str().unwrap()).unwrap()];
    let model = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny").to_owned());
    let files = IndexOptions { model, ..IndexOptions::default() };
    let error = index(&place.collection(), &notes, &files, &OsFs, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("its vectors were given"), "{error}");
    let other = place.path("other");
    index(&other, &notes, &files, &OsFs, &mut |_| {}).unwrap();
    let error = index_vectors(&other, &GivenOptions::new(small), &OsFs, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("has an encoder"), "{error}");
}

#[test]
fn a_vector_that_is_lost_costs_its_document_alone_until_it_is_given_again() {
    let place = Place::new();
    let all = rows(5, 9);
    let options =
        GivenOptions { distance: Some(Distance::Euclidean), ..GivenOptions::new(place.vectors("v.fvecs", &all)) };
    place.index(&options).unwrap();
    let file = place.collection().join("segments/1-0/vectors.rows");
    damage(&file);
    let report = repair(&place.collection(), &RepairOptions::default(), &OsFs, &mut |_| {}).unwrap();
    assert_eq!(report.losses.iter().map(|loss| loss.documents.len()).sum::<usize>(), 5, "{report:?}");
    let again = place.index(&options).unwrap();
    assert_eq!(again.n_added, 5);
    let searcher = place.searcher();
    assert!(searcher.warnings().is_empty());
    check(&searcher, Distance::Euclidean, &all[..2], &all, Scan::Exact);
}

/// Turns a bit of the first vector over.
fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[64] ^= 0x40;
    std::fs::write(file, bytes).unwrap();
}
